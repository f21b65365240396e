// The selector of the workloads that a pod belongs to (pkg/scheduler/framework/plugins/helper/spread.go).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement {

/// Services of the pod's namespace that select it, by name.
std::vector<std::shared_ptr<const model::ServiceView>> pod_services(const model::PodView& pod, const Cluster& cluster);
/// What all its services and workloads ask for together; everything when it belongs to none. 1.20 goes by matching labels, 1.36 by the
/// controlling owner reference.
model::Selector default_selector(const model::PodView& pod, const Cluster& cluster, Era era);
/// "region:zone" of a node in 1.20's way; empty when it has neither label.
std::string zone_key(const model::Labels& labels);

}  // namespace berth::placement
