#include "parity/autoscaling_decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "placement/disruption_ledger.h"

namespace berth::autoscaler {
namespace {

using Names = Decision::Names;
using Reasons = Decision::Reasons;

std::string to_text(std::int64_t number) { return std::to_string(number); }
std::string to_text(const std::string& text) { return text; }
template <typename A, typename B>
std::string to_text(const std::pair<A, B>& pair) {
  return fmt::format("{} nodes for {} pods", pair.first, pair.second);
}
template <typename List>
requires requires(const List& list) { list.begin()->size(); }
std::string to_text(const List& list) { return fmt::format("[{}]", fmt::join(list, ", ")); }
template <typename V>
std::string to_text(const std::map<std::string, V>& map) {
  std::vector<std::string> words;
  for (const auto& [key, value] : map) words.push_back(fmt::format("{}: {}", key, to_text(value)));
  return fmt::format("{{{}}}", fmt::join(words, "; "));
}

std::int64_t sum(const std::map<std::string, std::int64_t>& map) {
  std::int64_t out = 0;
  for (const auto& [key, value] : map) out += value;
  return out;
}

/// "2 node(s) had untolerated taint {a: b}" of 1.31 and "… taint(s)" of 1.36 say the same: counts of the same words, added.
std::map<std::string, int> normal(const std::vector<std::string>& reasons) {
  constexpr std::string_view kTaint = "node(s) had untolerated taint";
  std::map<std::string, int> out;
  for (const std::string& reason : reasons) {
    const std::size_t space = reason.find(' ');
    std::string words = reason.substr(std::min(space, reason.size() - 1) + 1);
    if (words.starts_with(kTaint)) words = kTaint;
    out[words] += std::atoi(reason.c_str());
  }
  return out;
}

bool has_hard_spread(const Pod& pod) {
  return !pod.info->required_anti_affinity.empty() || !pod.info->required_affinity.empty() ||
         std::ranges::any_of(pod.view().spread_constraints, [](const auto& constraint) { return constraint.is_hard; });
}

class Comparison {
 public:
  Comparison(const Decision& recorded, const Decision& got, const PassFacts& facts) : recorded_(recorded), got_(got), facts_(facts) {
    waiting_in_thought_ = static_cast<std::int64_t>(facts.actions->status.placed_in_thought);
    for (const auto& [key, pod] : facts.snapshot->pod_sets->unplaced)
      some_spread_ |= has_hard_spread(*pod) && (recorded.triggered.contains(key) || got.triggered.contains(key));
  }

  std::vector<std::string> differences() {
    compare_growth();
    // What limits count differs on purpose: then only what they are for is asked.
    if (!out_.empty() && counts_more() && keeps_limits()) return {};
    // The real one looks at nodes to remove only when nothing grew.
    if (recorded_.grow.empty() && got_.grow.empty()) compare_shrinking();
    return std::move(out_);
  }

 private:
  template <typename V>
  void differ(std::string_view what, const V& recorded, const V& got) {
    out_.push_back(fmt::format("{}: expected {}, got {}", what, to_text(recorded), to_text(got)));
  }
  template <typename V>
  void equal(std::string_view what, const V& recorded, const V& got) {
    if (recorded != got) differ(what, recorded, got);
  }

  // --- growing ---

  void compare_growth() {
    equal("result", recorded_.result, got_.result);
    if (!options_agree()) differ("options", recorded_.options, got_.options);
    if (!best_agree()) differ("bestGroups", recorded_.best, got_.best);
    if (!grow_agrees()) differ("grow", recorded_.grow, got_.grow);
    if (recorded_.grow == got_.grow) {
      if (!pods_agree(recorded_.triggered, got_.triggered)) differ("triggered", recorded_.triggered, got_.triggered);
      if (!pods_agree(recorded_.awaiting, got_.awaiting)) differ("awaiting", recorded_.awaiting, got_.awaiting);
    }
    if (!refusals_agree()) differ("notTriggered", recorded_.not_triggered, got_.not_triggered);
  }

  /// The same groups for as many pods with as many nodes. Fewer where pods keep apart: the real one adds nodes that take none of them.
  /// Which pods wait for nodes that are there or coming is the scheduler's choice here, a rotation there: the rest may be others.
  [[nodiscard]] bool options_agree() {
    if (recorded_.options.size() != got_.options.size()) return false;
    return std::ranges::all_of(got_.options, [&](const auto& entry) {
      const auto recorded = recorded_.options.find(entry.first);
      if (recorded == recorded_.options.end()) return false;
      const auto& [nodes, pods] = entry.second;
      const bool is_thrifty = some_spread_ && nodes < recorded->second.first;
      thrifty_ |= is_thrifty;
      return (nodes == recorded->second.first || is_thrifty) && std::abs(pods - recorded->second.second) <= waiting_in_thought_;
    });
  }

  [[nodiscard]] bool best_agree() const { return recorded_.best == got_.best || thrifty_; }

  /// As recorded, or one of the best groups with its own nodes, or fewer where pods keep apart.
  [[nodiscard]] bool grow_agrees() const {
    if (recorded_.grow == got_.grow) return true;
    const auto is_option = [&](const auto& entry) {
      return recorded_.options.contains(entry.first) || recorded_.grow.contains(entry.first);
    };
    const bool helps_as_many = facts_.actions->status.plan.helped.size() >= recorded_.triggered.size();
    if (some_spread_ && helps_as_many)
      return !got_.grow.empty() && sum(got_.grow) <= sum(recorded_.grow) && std::ranges::all_of(got_.grow, is_option);
    if (got_.grow.size() != 1 || recorded_.best.size() < 2) return false;
    const auto& [group, nodes] = *got_.grow.begin();
    const auto option = recorded_.options.find(group);
    return recorded_.best.contains(group) && option != recorded_.options.end() && option->second.first == nodes;
  }

  /// Pods of one controller that are alike stand for each other: the real one takes them in the order of a map.
  [[nodiscard]] std::map<std::string, int> by_controller(const Names& pods) const {
    std::map<std::string, int> out;
    for (const std::string& key : pods) {
      const auto pod = facts_.snapshot->pods().find(key);
      const auto* owner = pod == facts_.snapshot->pods().end() ? nullptr : pod->second->view().meta.controller();
      ++out[owner == nullptr ? key : owner->uid];
    }
    return out;
  }
  [[nodiscard]] bool pods_agree(const Names& recorded, const Names& got) const {
    if (thrifty_) return recorded.empty() == got.empty();
    const auto one = by_controller(recorded), other = by_controller(got);
    std::int64_t differing = 0;
    for (const auto* counts : {&one, &other})
      for (const auto& [controller, count] : *counts) {
        const auto there = (counts == &one ? other : one).find(controller);
        const int in_both = there == (counts == &one ? other : one).end() ? 0 : std::min(count, there->second);
        differing += count - in_both;
      }
    return differing <= 2 * waiting_in_thought_;
  }

  /// With the reasons that belong to them. Of a full cluster nobody is told anything there; here its pods are.
  [[nodiscard]] bool refusals_agree() const {
    if (facts_.actions->status.plan.result == ScaleUpPlan::Result::kLimitedByMaxNodesTotal) return recorded_.not_triggered.empty();
    const auto counted = [&](const Reasons& reasons) {
      std::map<std::pair<std::string, std::map<std::string, int>>, int> out;
      for (const auto& [key, list] : reasons) ++out[{by_controller({key}).begin()->first, normal(list)}];
      return out;
    };
    return counted(recorded_.not_triggered) == counted(got_.not_triggered);
  }

  /// Limits count here what they do not there: nodes that are not ready, and GPUs by their resource's name on nodes without the label.
  [[nodiscard]] bool counts_more() const {
    const Options& options = *facts_.options;
    const bool counts_nodes = options.max_nodes_total > 0 && std::ranges::any_of(*facts_.snapshot->nodes, [](const auto& entry) {
                                return !entry.second.is_working() || entry.second.is_cordoned;
                              });
    return counts_nodes || std::ranges::any_of(options.gpus, [](const GpuLimit& limit) { return limit.type.contains('/'); });
  }
  [[nodiscard]] bool keeps_limits() const {
    const Status& status = facts_.actions->status;
    const std::int64_t grown = sum(got_.grow);
    if (grown >= sum(recorded_.grow) && !misses_what_is_over_limits()) return false;  // Then no limit was the reason.
    const GroupStatus& whole = status.whole;
    const std::int64_t nodes = whole.ready + whole.unready + whole.not_started;
    if (facts_.options->max_nodes_total > 0 && grown > 0 && nodes + grown > facts_.options->max_nodes_total) return false;
    for (const GpuLimit& limit : facts_.options->gpus)
      if (const auto total = status.totals.find(limit.type); total != status.totals.end() && grown > 0 && total->second > limit.bounds.max)
        return false;
    return true;
  }
  /// Groups are not offered here, each for a limit that counts its GPUs.
  [[nodiscard]] bool misses_what_is_over_limits() const {
    bool misses = false;
    for (const auto& [group, option] : recorded_.options) {
      if (got_.options.contains(group)) continue;
      misses = true;
      const auto found = std::ranges::find(facts_.snapshot->groups, group, &NodeGroup::id);
      if (found == facts_.snapshot->groups.end() || found->template_node == nullptr) return false;
      const Amounts more = amounts_of(*found->template_node, *facts_.options);
      const auto is_over = [&](const GpuLimit& limit) {
        const auto total = facts_.actions->status.totals.find(limit.type);
        const auto one = more.find(limit.type);
        return one != more.end() && one->second + (total == facts_.actions->status.totals.end() ? 0 : total->second) > limit.bounds.max;
      };
      if (std::ranges::none_of(facts_.options->gpus, is_over)) return false;
    }
    return misses;
  }

  // --- shrinking ---

  struct Verdict {
    bool is_unneeded = false;
    std::vector<std::string> reason;
    [[nodiscard]] bool is(std::string_view word) const { return !reason.empty() && reason.front() == word; }
    /// It could go, or could but for where pods are thought to be: that depends on the order of looking.
    [[nodiscard]] bool is_of_order() const { return is_unneeded || is("NoPlaceToMovePods"); }
  };
  static Verdict verdict_of(const Decision& decision, const std::string& node) {
    Verdict out{decision.unneeded.contains(node), {}};
    if (const auto found = decision.staying.find(node); found != decision.staying.end() && !out.is_unneeded) out.reason = found->second;
    return out;
  }

  void compare_shrinking() {
    Names all = recorded_.unneeded;
    all.insert(got_.unneeded.begin(), got_.unneeded.end());
    for (const Decision* one : {&recorded_, &got_})
      for (const auto& [node, reason] : one->staying) all.insert(node);
    bool is_odd = false;
    for (const std::string& node : all) is_odd |= !verdicts_agree(node);
    if (is_odd) differ("staying", recorded_.staying, got_.staying);
    // With waiting pods on them in thought, more or fewer nodes are needed.
    if (waiting_in_thought_ == 0 || recorded_.unneeded == got_.unneeded) {
      if (recorded_.unneeded.size() != got_.unneeded.size()) differ("unneeded", recorded_.unneeded, got_.unneeded);
      if (!holds_agree()) differ("staying", recorded_.staying, got_.staying);
      if (recorded_.removed.size() != got_.removed.size()) differ("removed", recorded_.removed, got_.removed);
    }
    if (!std::ranges::includes(got_.unneeded, got_.removed)) differ("removed", got_.unneeded, got_.removed);
  }

  [[nodiscard]] bool verdicts_agree(const std::string& node) const {
    const Verdict a = verdict_of(recorded_, node), b = verdict_of(got_, node);
    if (a.is_of_order() && b.is_of_order()) return true;
    // Waiting pods count for the node where they are thought to go.
    if (waiting_in_thought_ > 0 && (a.is("NotUnderutilized") || b.is("NotUnderutilized"))) return true;
    if (a.is("BlockedByPod") && b.is("BlockedByPod")) return a.reason == b.reason || may_block(a);
    // A budget goes to the nodes that are looked at first.
    if (a.is("BlockedByPod") && b.is_of_order()) return is_of_budget(a);
    if (b.is("BlockedByPod") && a.is_of_order()) return is_of_budget(b);
    return a.is_unneeded == b.is_unneeded && a.reason == b.reason;
  }

  [[nodiscard]] PodPtr blocking_pod(const Verdict& verdict) const {
    if (verdict.reason.size() < 3) return nullptr;
    const auto pod = facts_.snapshot->pods().find(verdict.reason[2]);
    return pod == facts_.snapshot->pods().end() ? nullptr : pod->second;
  }
  /// Of several pods that hold a node the real one meets any first: the recorded one holds it here too.
  [[nodiscard]] bool may_block(const Verdict& recorded) const {
    const PodPtr pod = blocking_pod(recorded);
    if (pod == nullptr) return false;
    const placement::DisruptionLedger budgets(*facts_.snapshot->cluster, placement::BudgetRule::kAutoscaler);
    const Drainability here = drainability_of(*pod, budgets, *facts_.snapshot, *facts_.options, facts_.now);
    return here.verdict == Drainability::Verdict::kBlock ? here.reason == recorded.reason[1] : is_of_budget(recorded);
  }
  [[nodiscard]] bool is_of_budget(const Verdict& verdict) const {
    const PodPtr pod = blocking_pod(verdict);
    if (pod == nullptr || verdict.reason[1] != "NotEnoughPdb") return false;
    const placement::DisruptionLedger budgets(*facts_.snapshot->cluster, placement::BudgetRule::kAutoscaler);
    return budgets.covers(pod->view()) && budgets.ask(pod->view()).answer == placement::DisruptionLedger::Answer::kAllowed;
  }

  /// Of what could go, as many are kept in each group for its minimum, and for the cluster's; which of them is a draw.
  [[nodiscard]] bool holds_agree() const {
    const auto counted = [&](const Decision& decision) {
      std::map<std::string, std::pair<int, std::map<std::string, int>>> out;
      for (const std::string& node : decision.unneeded) {
        auto& [unneeded, holds] = out[group_of(node)];
        ++unneeded;
        if (const auto why = decision.staying.find(node); why != decision.staying.end()) ++holds[why->second.front()];
      }
      return out;
    };
    const auto recorded = counted(recorded_), got = counted(got_);
    // Unlike nodes, unlike limits: only when as many of each group could go.
    for (const auto& [group, counts] : recorded)
      if (const auto other = got.find(group); other == got.end() || other->second.first != counts.first) return true;
    return recorded.size() != got.size() || recorded == got;
  }
  [[nodiscard]] std::string group_of(const std::string& node) const {
    for (const NodeGroup& group : facts_.snapshot->groups)
      if (std::ranges::find(group.instances, node, &Instance::node) != group.instances.end()) return group.id;
    return {};
  }

  const Decision& recorded_;
  const Decision& got_;
  const PassFacts& facts_;
  std::int64_t waiting_in_thought_ = 0;
  bool some_spread_ = false, thrifty_ = false;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> compare_decisions(const Decision& recorded, const Decision& got, const PassFacts& facts) {
  return Comparison(recorded, got, facts).differences();
}

}  // namespace berth::autoscaler
