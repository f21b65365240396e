// Whether a pod that the API bound to this node may start here: the kubelet's own second look (lifecycle/predicate.go).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/selector.h"
#include "node/eviction/pod_facts.h"

namespace berth::node::agent {

/// Becomes the pod's status.reason and, behind "Pod was rejected: ", its message.
struct Refusal {
  std::string reason, message;
};

/// The node as admission sees it.
struct AdmissionNode {
  std::string name;
  eviction::ResourceList allocatable;
  model::Labels labels;
};

/// Checks resources (OutOfcpu, OutOfmemory, OutOfpods, …), node selector and required affinity (NodeAffinity), host ports (NodePorts).
/// NoExecute taints are left to the taint manager. `active`: the pods that take room here already. Nullopt: the pod may start.
[[nodiscard]] std::optional<Refusal> refuse_pod(const AdmissionNode& node, const json::Value& pod, const std::vector<json::Value>& active);

}  // namespace berth::node::agent
