// One DaemonSet's pods and nodes, kept by differences: an event costs a look at the node it is about, not at all of them.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controllers/daemonset_model.h"

namespace berth::controllers::daemon {

/// What decides about a node's pods; a heartbeat changes none of it.
struct NodeFacts {
  model::Labels labels;
  std::vector<model::Taint> taints;
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};
using NodeFactsMap = std::map<std::string, NodeFacts>;

/// The node a daemon pod is for: where it is, or where its affinity sends it.
std::string target_node(const PodInfo& pod);

/// Invariant, after refresh(): counts and outdated nodes equal what daemon::count and the pods say of all nodes. A node is open while it
/// has changed since the last look, or while the last look left something to do. Single-threaded, no I/O.
class Ledger {
 public:
  /// Of which object and template the rest is; while it stays the same, differences do.
  struct Basis {
    std::string uid, spec, hash, template_generation;
    friend bool operator==(const Basis&, const Basis&) = default;
  };
  [[nodiscard]] bool is_of(const Basis& basis) const { return basis_ && *basis_ == basis; }
  /// Something happened that only a look at everything can tell about.
  void forget() { basis_.reset(); }
  /// Begins anew with these pods, which the set controls and `selector` matches. All nodes are open.
  void build(Basis basis, model::Selector selector, const std::vector<PodRef>& pods, const NodeFactsMap& nodes,
             model::PodView template_view);
  /// A pod that the set controls, or did, came (`before` null), changed or went (`after` null). One that the set must let go of makes it
  /// forget.
  void take_pod(const PodRef& before, const PodRef& after);
  /// A node came, changed or went (`facts` null).
  void take_node(const std::string& name, const NodeFacts* facts);

  /// Counts again what changed, and what became available by now.
  void refresh(const Wish& wish, TimePoint now);
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Some pod that is not on its way out has another template.
  [[nodiscard]] bool is_outdated() const { return !outdated_.empty(); }
  /// controller-revision-hash of the pods there are.
  [[nodiscard]] const std::map<std::string, int>& hashes() const { return hashes_; }
  /// When the next pod becomes available by minReadySeconds.
  [[nodiscard]] std::optional<TimePoint> next_due() const;
  [[nodiscard]] std::vector<NodePods> open_nodes() const;
  [[nodiscard]] std::vector<NodePods> all_nodes() const;
  /// From now on only these nodes, and what changes, are open.
  void settle(std::set<std::string> open) { open_ = std::move(open); }

 private:
  struct NodeState {
    NodePods node;
    Counts counted;
    std::optional<TimePoint> due;
  };
  NodeState& state_of(const std::string& node);
  void count_hash(const PodInfo& pod, int sign);
  void look(const std::string& node, const Wish& wish, TimePoint now);

  void add_pod(const PodRef& pod);
  void remove_pod(const std::string& name);

  std::optional<Basis> basis_;
  model::Selector selector_;
  model::PodView view_;
  std::map<std::string, NodeState> nodes_;
  std::map<std::string, std::string> node_of_;  ///< By the pod's name.
  std::map<std::string, int> hashes_;
  std::set<std::string> open_, changed_, outdated_;  ///< Nodes.
  std::set<std::pair<TimePoint, std::string>> due_;
  Counts counts_;
};

}  // namespace berth::controllers::daemon
