// Documents in and out of the object cache, for the objects that this folder writes itself.
#pragma once
#include <string>

#include "apiserver/cache/object_cache.h"
#include "base/json.h"

namespace berth::apiserver::auth {

/// The cache's key of an rbac.authorization.k8s.io document, by its kind, namespace and name.
std::string rbac_key(const json::Value& document);
/// A write of the document: metadata.resourceVersion is set, uid and creationTimestamp too when missing.
Proposal make_proposal(json::Value document, std::optional<Revision> expected, TimePoint now);
/// Proposes and waits for the answer (at once with a synchronous cache). Not to be called from the cache's own thread.
ProposeResult propose_and_wait(ObjectCache& cache, Proposal proposal);

}  // namespace berth::apiserver::auth
