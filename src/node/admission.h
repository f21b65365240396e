// Whether a pod that the API bound to a node may start there: the kubelet's own second look (lifecycle/predicate.go), for real and
// simulated nodes. The order of the checks is the kubelet's: the first that fails gives the reason.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "model/selector.h"
#include "model/views/common.h"
#include "node/eviction/pod_facts.h"
#include "placement/numa/refusal.h"

namespace berth::node {

using placement::numa::Refusal;

/// The node as admission sees it.
struct AdmissionNode {
  std::string name;
  eviction::ResourceList allocatable;
  model::Labels labels;
  std::vector<model::Taint> taints;
};

struct HostPort {
  std::string protocol, ip;
  std::int64_t port = 0;
};

/// What one pod takes of its node. CPU in thousandths, everything else in whole units.
struct PodDemand {
  std::int64_t cpu_milli = 0, memory_bytes = 0, ephemeral_bytes = 0;
  std::vector<std::pair<std::string, std::int64_t>> others;  ///< Extended resources and huge pages.
  std::vector<HostPort> ports;

  [[nodiscard]] static PodDemand of(const json::Value& pod);
};

/// Checks the pod's operating system, resources (OutOfpods, OutOfcpu, OutOfmemory, …; resources that the node does not know are left to
/// others), node selector and required affinity (NodeAffinity), host ports (NodePorts) and NoExecute taints (TaintToleration). `active`:
/// the pods that take room there already. Nullopt: the pod may start.
[[nodiscard]] std::optional<Refusal> refuse_pod(const AdmissionNode& node, const json::Value& pod, const PodDemand& demand,
                                                const std::vector<const PodDemand*>& active);
/// Of these, the resources alone: what a resize is looked at for.
[[nodiscard]] std::optional<Refusal> refuse_resources(const AdmissionNode& node, const PodDemand& demand,
                                                      const std::vector<const PodDemand*>& active);
/// The same with the active pods as the API has them.
[[nodiscard]] std::optional<Refusal> refuse_pod(const AdmissionNode& node, const json::Value& pod, const std::vector<json::Value>& active);

/// Whether a pod as first seen still has to be admitted: one that already ran somewhere was admitted then.
[[nodiscard]] bool needs_admission(const json::Value& pod);

}  // namespace berth::node
