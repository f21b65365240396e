// Whom a pod's own tokens are for.
#pragma once
#include "apiserver/cache/object_cache.h"
#include "base/json.h"

namespace berth::apiserver {

/// Whether a volume of the pod asks for a token with this audience (empty: the server's own): a projected token, or a CSI driver that is
/// given tokens (plugin/pkg/admission/noderestriction, podReferencesAudience).
bool pod_uses_audience(const ObjectCache& cache, const json::Value& pod, std::string_view ns, std::string_view audience);

}  // namespace berth::apiserver
