// What `kubectl get componentstatuses` shows: whether the store takes writes, and whether scheduler and controllers hold their Leases
// (pkg/registry/core/componentstatus asks their ports; here they may be in any process).
#pragma once
#include <vector>

#include "apiserver/reads/reads.h"
#include "model/kinds.h"

namespace berth::apiserver {

/// In order of name. `now`: what leases are judged by.
std::vector<ObjectPtr> component_statuses(const ObjectCache& cache, const model::KindInfo& kind, TimePoint now);

/// GET of one or all.
void answer_component_status(Reads& reads, const RequestPtr& request);

}  // namespace berth::apiserver
