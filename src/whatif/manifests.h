// Manifests as pods: what the API server and the workload controllers would make of a file before it is scheduled. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/views/pod_facts.h"
#include "placement/cluster.h"

namespace berth::whatif {

/// The document with the API server's defaults; as it is when its kind is unknown or a field has the wrong type.
json::Value with_defaults(json::Value document);
/// The same; the error names the object and the field of a wrong type, and kinds that nobody knows are an error, too.
Result<json::Value> checked(json::Value document);
/// What a pod of this class gets by admission (spec.priorityClassName; empty: the global default).
struct Priority {
  std::int64_t value = 0;
  std::string preemption_policy;  ///< Empty: as the pod says.
  bool is_known = true;           ///< False: there is no such class, and the API server would refuse the pod.
};
Priority priority_of(std::string_view class_name, const placement::Cluster& cluster);
/// What is to be told of a completed pod whose class the cluster does not have; empty: nothing.
std::string unknown_priority(std::string_view class_name, const placement::Cluster& cluster);
/// What the API server would have done to a pod of a manifest: defaults, namespace, priority by class. Requires a document of kind Pod.
json::Value complete_pod(json::Value pod, const placement::Cluster& cluster, const std::string& default_namespace);
/// The pods that a document asks for: a Pod itself; a workload's template as often as it has replicas. Empty for other kinds.
std::vector<json::Value> pods_of(const json::Value& document);
/// Of a pod that is only to come: nothing of it is told by a status.
model::PodFacts facts_of_new(const json::Value& pod);
/// A pod of a workload's template: a Pod document owned and controlled by the workload, without a name of its own. Requires a template.
json::Value pod_of_template(const json::Value& workload);

}  // namespace berth::whatif
