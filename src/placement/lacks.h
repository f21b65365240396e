// What a node is wanting for a pod, in words with names and amounts: the taint, the label and the values there are, the port's holder.
// Pure.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {

/// Of one resource, in its own unit: thousandths of cpu, bytes, pieces.
[[nodiscard]] std::int64_t amount_of(const Resource& resource, std::string_view name);

struct Shortage {
  std::string resource;
  std::int64_t asked = 0, free = 0, allocatable = 0;
};
/// The resources of which the node has less free than the pod asks for; those that come by devices instead are not counted.
std::vector<Shortage> shortages(const Cluster& cluster, const PodInfo& pod, const NodeInfo& node);
/// The taints with NoSchedule or NoExecute that the pod does not tolerate.
std::vector<model::Taint> untolerated(const PodInfo& pod, const NodeInfo& node);
/// The terms' requirements of the pod's required node affinity that the node fails, by the term that it is nearest to.
std::vector<model::Requirement> failed_affinity(const PodInfo& pod, const NodeInfo& node);
/// "a, b, c and 12 more"
std::string some_of(const std::vector<std::string>& names, std::size_t limit);

/// The node names that the pod allows at most, when it names nodes at all: nodeName, the hostname label, matchFields.
std::vector<std::string> pinned_nodes(const model::PodView& pod);
bool is_pinned_to(const std::vector<std::string>& pins, const NodeInfo& node);

/// For one pod on one cluster, which must outlive it. What the cluster is asked for is found once, not a node at a time.
class Lacks {
 public:
  Lacks(const Framework& framework, const Cluster& cluster, const PodInfo& pod) : framework_(framework), cluster_(cluster), pod_(pod) {}

  /// What the plugin that refused the node found wanting, each a noun phrase; empty when the plugin's own reasons say all there is.
  std::vector<std::string> of(const NodeInfo& node, std::string_view plugin);

 private:
  using Domain = std::pair<std::string, std::string>;  ///< Topology key and value.

  std::vector<std::string> of_affinity(const NodeInfo& node);
  std::vector<std::string> of_ports(const NodeInfo& node) const;
  std::vector<std::string> of_pods(const NodeInfo& node);
  std::vector<std::string> of_spread(const NodeInfo& node);
  /// " (has x)", " (the nodes have a, b)", " (no node has that key; there are …)"
  std::string values_there(const NodeInfo& node, const std::string& key, const std::vector<std::string>& wanted);
  const std::set<std::string>& values_of(const std::string& key);
  std::string missing_key(const std::string& key);
  [[nodiscard]] std::string no_such_key(const std::string& key) const;
  /// Pods that a term matches, by domain of its key: the first one's name and how many.
  std::map<std::string, std::pair<std::string, std::size_t>> domains_of(const AffinityTerm& term) const;
  void read_pods();

  const Framework& framework_;
  const Cluster& cluster_;
  const PodInfo& pod_;
  std::map<std::string, std::set<std::string>> values_;
  bool has_read_pods_ = false;
  std::vector<std::map<std::string, std::pair<std::string, std::size_t>>> affinity_, anti_affinity_;  ///< By term.
  std::map<Domain, std::string> repelled_by_;  ///< Where pods are whose own anti-affinity keeps this one away.
};

}  // namespace berth::placement
