// Consolidation: which nodes could be empty.
//
// All nodes without a pod that must stay are candidates, in order of how full they are, and cordoned, but for as many of the fullest as the
// others' pods need by amounts. Then they are drained from the emptiest on. When a pod of one finds no place, the fullest candidate that is
// left becomes a place for pods to go to, and the drain is tried again, until the two ends meet.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "descheduler/packing.h"
#include "model/views/pod_facts.h"
#include "placement/attempt.h"
#include "placement/disruption_ledger.h"

namespace berth::descheduler {
namespace {

using placement::DisruptionLedger;
using placement::NodeInfo;
using placement::PodInfoPtr;

struct Drainable {
  std::string name;
  model::NodeViewPtr view;  ///< As it was.
  std::vector<PodInfoPtr> pods;
  double share = 0;
};

double share_of(std::int64_t part, std::int64_t all) { return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0; }

class Consolidator {
 public:
  Consolidator(placement::Trial& trial, const PackingRules& rules) : trial_(trial), rules_(rules) {}

  ConsolidationPlan run(const std::function<bool(const NodeInfo&)>& may_be_emptied) {
    find_candidates(may_be_emptied);
    for (const Drainable& one : candidates_) cordon(one, true);
    std::size_t end = first_receiver();
    for (std::size_t at = end; at < candidates_.size(); ++at) give_back(at, "its room is needed for pods of others");
    for (std::size_t at = 0; at < end;) {
      std::string homeless;
      if (drain(candidates_[at], homeless)) {
        ++at;
      } else if (--end > at) {
        give_back(end, "its room is needed for pods of others");
      } else {
        give_back(at, homeless);
      }
    }
    std::ranges::sort(plan_.stays, {}, &ConsolidationPlan::Stays::node);
    return std::move(plan_);
  }

 private:
  void find_candidates(const std::function<bool(const NodeInfo&)>& may_be_emptied) {
    const DisruptionLedger budgets(trial_.cluster(), placement::BudgetRule::kEviction);
    for (const NodeInfo* node : trial_.cluster().nodes()) {
      if (may_be_emptied && !may_be_emptied(*node)) continue;
      Drainable one{.name = node->name, .view = node->node};
      one.share = std::max(share_of(node->requested.cpu_milli, node->allocatable.cpu_milli),
                           share_of(node->requested.memory_bytes, node->allocatable.memory_bytes));
      std::string why;
      for (const PodInfoPtr& pod : node->pods) {
        if (model::goes_with_its_node(pod->view().meta)) continue;
        std::string held = rules_.why_it_stays(*pod);
        if (held.empty()) held = why_budgets_hold(budgets, *pod);
        if (!held.empty() && why.empty()) why = fmt::format("{}: {}", pod->key, held);
        one.pods.push_back(pod);
      }
      if (!why.empty()) {
        plan_.stays.push_back({one.name, std::move(why)});
        continue;
      }
      // What is hard to place goes first.
      std::ranges::stable_sort(one.pods, std::greater{}, [&](const PodInfoPtr& pod) {
        return std::max(share_of(pod->request.total.cpu_milli, node->allocatable.cpu_milli),
                        share_of(pod->request.total.memory_bytes, node->allocatable.memory_bytes));
      });
      candidates_.push_back(std::move(one));
    }
    std::ranges::stable_sort(candidates_, [](const Drainable& a, const Drainable& b) {
      if (a.pods.empty() != b.pods.empty()) return a.pods.empty();
      return a.share != b.share ? a.share < b.share : a.name < b.name;
    });
  }

  /// From here on the fullest candidates are kept: by CPU, memory and number of pods no fewer would do.
  std::size_t first_receiver() const {
    std::int64_t cpu = 0, memory = 0, pods = 0;  // Room of those that take pods, less what is to move.
    std::set<std::string_view> drained;
    for (const Drainable& one : candidates_) drained.insert(one.name);
    for (const NodeInfo* node : trial_.cluster().nodes()) {
      if (drained.contains(node->name) || node->node->unschedulable) continue;
      cpu += node->allocatable.cpu_milli - node->requested.cpu_milli;
      memory += node->allocatable.memory_bytes - node->requested.memory_bytes;
      pods += node->allocatable.allowed_pods - std::ssize(node->pods);
    }
    const auto count = [&](const Drainable& one, std::int64_t sign) {
      for (const PodInfoPtr& pod : one.pods) {
        cpu += sign * pod->request.total.cpu_milli;
        memory += sign * pod->request.total.memory_bytes;
        pods += sign;
      }
    };
    for (const Drainable& one : candidates_) count(one, -1);
    std::size_t at = candidates_.size();
    while (at > 0 && (cpu < 0 || memory < 0 || pods < 0)) {
      const Drainable& one = candidates_[--at];
      const NodeInfo& node = *trial_.cluster().find_node(one.name);
      count(one, 1);
      if (one.view->unschedulable) continue;
      cpu += node.allocatable.cpu_milli - node.requested.cpu_milli;
      memory += node.allocatable.memory_bytes - node.requested.memory_bytes;
      pods += node.allocatable.allowed_pods - std::ssize(node.pods);
    }
    return at;
  }

  void cordon(const Drainable& one, bool is_cordoned) {
    auto view = std::make_shared<model::NodeView>(*one.view);
    view->unschedulable |= is_cordoned;
    trial_.cluster().upsert_node(std::move(view));
  }
  void give_back(std::size_t at, std::string why) {
    cordon(candidates_[at], false);
    plan_.stays.push_back({candidates_[at].name, std::move(why)});
  }

  bool drain(const Drainable& one, std::string& homeless) {
    placement::Attempt attempt(trial_);
    DisruptionLedger budgets(trial_.cluster(), placement::BudgetRule::kEviction);
    ConsolidationPlan::Step step{.node = one.name};
    std::vector<placement::EvictedPod> evicted;
    for (const PodInfoPtr& pod : one.pods) {
      step.waits_for_budgets |= !why_budgets_hold(budgets, *pod).empty();
      budgets.take(pod->view());
      evicted.push_back(trial_.evict(pod));
    }
    for (const placement::EvictedPod& eviction : evicted) {
      const auto placement = trial_.place(trial_.renew(eviction));
      const std::string to = placement.is_placed() ? trial_.cluster().node(placement.node)->name : "";
      // A pod that tolerates the cordon would come back, or go from one to the other.
      if (to.empty() || emptied_.contains(to) || to == one.name) {
        homeless = fmt::format("{} fits on no node that stays", eviction.pod->key);
        return false;
      }
      step.moves.push_back({eviction.pod, one.name, to});
    }
    attempt.keep();
    emptied_.insert(one.name);
    plan_.emptied.push_back(std::move(step));
    return true;
  }

  placement::Trial& trial_;
  const PackingRules& rules_;
  std::vector<Drainable> candidates_;
  std::set<std::string, std::less<>> emptied_;
  ConsolidationPlan plan_;
};

}  // namespace

ConsolidationPlan consolidate(placement::Trial& trial, const PackingRules& rules,
                              const std::function<bool(const NodeInfo&)>& may_be_emptied) {
  return Consolidator(trial, rules).run(may_be_emptied);
}

}  // namespace berth::descheduler
