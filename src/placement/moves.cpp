#include "placement/moves.h"

#include <algorithm>
#include <functional>
#include <ranges>

#include "placement/relabelled.h"

namespace berth::placement {
namespace {

constexpr std::string_view kLeaving = "ToBeDeletedByClusterAutoscaler";
/// The same of nodes of NodePools, and what these put on theirs.
constexpr std::string_view kDisrupted = "karpenter.sh/disrupted", kPools = "karpenter.sh/", kPool = "karpenter.sh/nodepool";
constexpr std::string_view kCandidate = "DeletionCandidateOfClusterAutoscaler";

class Mark {
 public:
  void add(std::string_view text) { value_ = value_ * 1099511628211U ^ std::hash<std::string_view>()(text); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037U;
};

bool is_ready(const model::NodeView& node) {
  return std::ranges::any_of(node.conditions, [](const auto& one) { return one.type == "Ready" && one.status == "True"; });
}

/// Put on by the node controller for what is counted below, some time after it.
bool says_how_it_is(std::string_view taint) {
  return taint == "node.kubernetes.io/not-ready" || taint == "node.kubernetes.io/unreachable" ||
         taint == "node.kubernetes.io/unschedulable";
}

/// Of what decides who may be on the node and who should be: not its heartbeats, images and the autoscaler's own marks.
std::uint64_t mark_of(const model::NodeView& node) {
  Mark mark;
  for (const auto& [key, value] : node.labels().pairs()) {
    if (key.starts_with(kPools)) continue;
    mark.add(key);
    mark.add(value);
  }
  for (const model::Taint& taint : node.taints) {
    if (taint.key == kLeaving || taint.key == kCandidate || taint.key.starts_with(kPools) || says_how_it_is(taint.key)) continue;
    for (const std::string* part : {&taint.key, &taint.value, &taint.effect}) mark.add(*part);
  }
  for (const auto& [resource, amount] : node.allocatable) {
    mark.add(resource);
    mark.add(std::to_string(amount.milli_value()));
  }
  // The autoscaler may cordon what it takes away.
  const bool is_leaving = std::ranges::any_of(node.taints, [](const auto& taint) { return taint.key == kLeaving; });
  mark.add(node.unschedulable && !is_leaving ? "cordoned" : "open");
  mark.add(is_ready(node) ? "ready" : "not ready");
  return mark.value();
}

}  // namespace

bool is_relabelled(const LabelPairs& before, const LabelPairs& after) {
  const auto counts = [](const auto& label) { return !label.first.starts_with("topology.kubernetes.io/"); };
  return !std::ranges::equal(before | std::views::filter(counts), after | std::views::filter(counts));
}

void Moves::evicted(const std::string& controller_uid) {
  if (!controller_uid.empty()) ++homeless_[controller_uid];
}

bool Moves::came(const std::string& uid, const std::string& controller_uid, TimePoint when) {
  const auto lost = controller_uid.empty() ? homeless_.end() : homeless_.find(controller_uid);
  if (lost == homeless_.end()) return false;
  if (--lost->second == 0) homeless_.erase(lost);
  moved_[uid] = when;
  return true;
}

bool Moves::wait_only_for(const std::set<std::string>& controller_uids) {
  return std::erase_if(homeless_, [&](const auto& entry) { return !controller_uids.contains(entry.first); }) > 0;
}

void Moves::changed(TimePoint when) {
  std::erase_if(moved_, [&](const auto& entry) { return entry.second < when; });
}

bool Moves::see_node(const model::NodeView& node) {
  const auto [found, is_new] = nodes_.try_emplace(node.name());
  Node& known = found->second;
  const std::uint64_t mark = mark_of(node);
  const bool is_changed = !is_new && mark != known.mark, was_ready = known.was_ready;
  known.mark = mark;
  known.was_ready |= is_ready(node);
  known.is_machine = node.meta.annotation("machine.openshift.io/machine") != nullptr ||
                     node.meta.annotation("cluster.x-k8s.io/machine") != nullptr || node.labels().get(kPool) != nullptr;
  known.is_leaving = std::ranges::any_of(node.taints, [](const auto& taint) { return taint.key == kLeaving || taint.key == kDisrupted; });
  if (is_new) return !known.is_machine;
  return is_changed && (was_ready || !known.is_machine);
}

bool Moves::node_gone(const std::string& name, bool knows_all) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return false;
  const Node known = found->second;
  nodes_.erase(found);
  return known.is_machine ? knows_all && !known.is_leaving : !known.is_leaving;
}

}  // namespace berth::placement
