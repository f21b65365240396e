// ClusterRoles with an aggregationRule: their rules are gathered from the ClusterRoles that it selects
// (kube-controller-manager's clusterrole-aggregation-controller).
#pragma once
#include <memory>

#include "apiserver/cache/object_cache.h"

namespace berth::apiserver::auth {

/// Gathers at once and then on every change of a ClusterRole, until the watch is destroyed (before the cache).
std::unique_ptr<Watch> start_aggregation(ObjectCache& cache);

}  // namespace berth::apiserver::auth
