// What a DaemonSet does with the pods that it has, node by node (pkg/controller/daemon: podsShouldBeOnNode, rollingUpdate,
// updateDaemonSetStatus). Pure: facts in, names out.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "controllers/pod_info.h"
#include "placement/node_match.h"

namespace berth::controllers::daemon {

/// One node and the set's pods for it.
struct NodePods {
  std::string node;
  bool exists = true;  ///< False: pods say this node, but there is no such node.
  placement::NodeMatch match;
  std::vector<PodRef> pods;  ///< Oldest first, bound ones before others; none that is both finished and being deleted.
};

struct Wish {
  std::string hash;                 ///< controller-revision-hash of the present template.
  std::string template_generation;  ///< Of the deprecated annotation; a pod with it counts as updated too. Empty: none.
  Duration min_ready{0};
  bool rolling = true;  ///< RollingUpdate, not OnDelete.
  std::int64_t max_surge = 0, max_unavailable = 1;
};

struct Steps {
  std::vector<std::string> create_on;  ///< Nodes.
  std::vector<PodRef> remove;
  std::vector<PodRef> failed, succeeded;  ///< Pods of `remove` that ended by themselves.
  [[nodiscard]] bool empty() const { return create_on.empty() && remove.empty(); }
};

struct Counts {
  std::int64_t desired = 0, current = 0, misscheduled = 0, ready = 0, updated = 0, available = 0;
  Counts& operator+=(const Counts& o) { return add(o, 1); }
  Counts& operator-=(const Counts& o) { return add(o, -1); }
  friend bool operator==(const Counts&, const Counts&) = default;

 private:
  Counts& add(const Counts& o, int sign) {
    for (auto field : {&Counts::desired, &Counts::current, &Counts::misscheduled, &Counts::ready, &Counts::updated, &Counts::available})
      this->*field += sign * o.*field;
    return *this;
  }
};

/// The pod has the present template.
[[nodiscard]] bool is_updated(const PodInfo& pod, const Wish& wish);

/// Sorts a node's pods as NodePods wants them.
void sort_oldest_first(std::vector<PodRef>& pods);
/// Missing pods are made, those too many, finished or misplaced go. `may_replace` is asked for each failed pod: false leaves it for now.
/// Each node is judged by itself, so that some of them may be given alone.
Steps keep_nodes(const std::vector<NodePods>& nodes, const Wish& wish, TimePoint now,
                 const std::function<bool(const std::string& node)>& may_replace);
/// One step of a rolling update. Only when keep_nodes had nothing to do.
Steps roll(const std::vector<NodePods>& nodes, const Wish& wish, TimePoint now);
/// A node is counted by its oldest pod, terminating or not.
Counts count(std::span<const NodePods> nodes, const Wish& wish, TimePoint now);

}  // namespace berth::controllers::daemon
