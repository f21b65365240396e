// How many nodes of a group the pods need: first-fit decreasing on forks of the cluster (estimator/binpacking_estimator).
#include <algorithm>

#include "autoscaler/scale_up.h"

namespace berth::autoscaler {
namespace {

using placement::NodeIndex;

/// How much of the template one pod takes: the larger ones are packed first.
double size_of(const Pod& pod, const model::NodeView& node) {
  double out = 0;
  if (const auto* cpu = model::find_resource(node.allocatable, "cpu"); cpu != nullptr && cpu->milli_value() > 0)
    out += static_cast<double>(pod.info->wanted().cpu_milli) / static_cast<double>(cpu->milli_value());
  if (const auto* memory = model::find_resource(node.allocatable, "memory"); memory != nullptr && memory->value() > 0)
    out += static_cast<double>(pod.info->wanted().memory_bytes) / static_cast<double>(memory->value());
  return out;
}

bool spreads_over_hosts(const Pod& pod) {
  return std::ranges::any_of(pod.view().spread_constraints,
                             [](const auto& constraint) { return constraint.topology_key == "kubernetes.io/hostname"; });
}

/// The new nodes of one estimation.
class Packing {
 public:
  Packing(placement::Trial& base, const NodeTemplate& node_template, std::int64_t most)
      : trial_(base.fork()), template_(node_template), most_(most) {}

  void pack(const PodGroup& group) {
    std::size_t next = 0;
    while (next < group.pods.size() && on_any(group.pods[next], nodes_.size())) ++next;
    while (next < group.pods.size()) {
      const PodPtr& pod = group.pods[next];
      if (!nodes_.empty() && (put(pod, nodes_.size() - 1) || (spreads_over_hosts(*pod) && on_any(pod, nodes_.size() - 1)))) {
        ++next;
        continue;
      }
      // A pod that does not fit on an empty node does not fit on another one either.
      if (!nodes_.empty() && !nodes_.back().is_used) return;
      if (static_cast<std::int64_t>(nodes_.size()) >= most_) return;
      nodes_.push_back({add_node(trial_, template_, fmt::format("e-{}", nodes_.size())), false});
      if (!put(pod, nodes_.size() - 1)) return;
      ++next;
    }
  }
  [[nodiscard]] std::int64_t used_nodes() const { return std::ranges::count_if(nodes_, &Node::is_used); }
  std::vector<PodPtr> take_pods() { return std::move(placed_); }

 private:
  struct Node {
    NodeIndex index;
    bool is_used = false;
  };
  bool put(const PodPtr& pod, std::size_t node) {
    if (!trial_.place_on(pod->info, nodes_[node].index).is_success()) return false;
    nodes_[node].is_used = true;
    placed_.push_back(pod);
    return true;
  }
  bool on_any(const PodPtr& pod, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      if (put(pod, i)) return true;
    return false;
  }

  placement::Trial trial_;
  const NodeTemplate& template_;
  std::int64_t most_;
  std::vector<Node> nodes_;
  std::vector<PodPtr> placed_;
};

}  // namespace

std::vector<PodGroup> group_alike(const std::vector<PodPtr>& pods, placement::Trial& trial) {
  std::vector<PodGroup> out;
  std::map<std::pair<std::string, placement::Signature>, std::size_t> known;
  for (const PodPtr& pod : pods) {
    const model::OwnerReference* controller = pod->view().meta.controller();
    auto place = out.size();
    if (controller != nullptr) place = known.emplace(std::pair(controller->uid, trial.sign(*pod->info)), place).first->second;
    if (place == out.size()) out.push_back({{}, {}, {}});
    out[place].pods.push_back(pod);
  }
  return out;
}

ExpansionOption estimate(placement::Trial& base, const std::string& group, const NodeTemplate& node_template,
                         std::vector<const PodGroup*> pods, std::int64_t most) {
  std::ranges::stable_sort(pods, std::greater{}, [&](const PodGroup* one) { return size_of(*one->pods.front(), *node_template.node); });
  Packing packing(base, node_template, most);
  for (const PodGroup* one : pods) packing.pack(*one);
  ExpansionOption out{group, &node_template, packing.used_nodes(), {}};
  out.pods = packing.take_pods();
  return out;
}

std::vector<Resize> balance(std::vector<Resize> groups, std::int64_t new_nodes) {
  std::ranges::stable_sort(groups, {}, &Resize::from);
  while (new_nodes > 0) {
    Resize* smallest = nullptr;
    for (Resize& group : groups)
      if (group.to < group.max && (smallest == nullptr || group.to < smallest->to)) smallest = &group;
    if (smallest == nullptr) break;
    ++smallest->to;
    --new_nodes;
  }
  std::erase_if(groups, [](const Resize& group) { return group.to == group.from; });
  return groups;
}

}  // namespace berth::autoscaler
