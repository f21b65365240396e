#include "pools/consolidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "model/views/pod_facts.h"
#include "placement/attempt.h"
#include "placement/disruption_ledger.h"

namespace berth::pools {

using placement::PodInfoPtr;

bool is_consolidatable(const OwnedNode& node, const NodePool& pool, TimePoint now) {
  return node.is_initialized && pool.consolidate_after && node.quiet && *node.quiet + *pool.consolidate_after <= now;
}

namespace {

/// Less than this share of what goes is not worth the moves; so that a plan that is as good by a hair never follows on another.
constexpr double kWorthwhile = 0.01;
/// As Karpenter: a spot node gives way to another one only where so many cheaper types would do, so that the market is not chased.
constexpr std::size_t kSpotTypes = 15;

struct Candidate {
  std::size_t node = 0;
  std::vector<PodInfoPtr> pods;  ///< That would have to move.
  double waste = 0;              ///< What of its price nobody uses.
};

class Consolidation {
 public:
  Consolidation(const ConsolidationInput& input, bool replaces_first)
      : input_(input),
        replaces_first_(replaces_first),
        trial_(input.provision.trial->fork()),
        ledger_(input.provision.trial->cluster(), placement::BudgetRule::kEviction),
        leaving_(pools().size(), 0),
        all_(pools().size(), 0) {
    for (const OwnedNode& node : input.nodes) {
      ++all_[node.pool];
      leaving_[node.pool] += node.is_leaving ? 1 : 0;
      out_.cost += node.price;
    }
  }

  ConsolidationPlan run() {
    std::vector<Candidate> drifted, full;
    Disruption empty{Reason::kEmpty, {}, {}, {}, 0};
    for (std::size_t i = 0; i < input_.nodes.size(); ++i) {
      const OwnedNode& node = input_.nodes[i];
      if (node.is_leaving) continue;
      Candidate candidate{i, pods_of(node), 0};
      if (const std::string why = kept_by(node, candidate); !why.empty()) {
        out_.staying.emplace_back(i, why);
      } else if (!node.drifted.empty() && !candidate.pods.empty()) {
        drifted.push_back(std::move(candidate));
      } else if (!node.drifted.empty() || (candidate.pods.empty() && is_consolidatable(node, pool(node), now()))) {
        take_empty(empty, i);
      } else if (const std::string not_now = not_consolidated(node); !not_now.empty()) {
        out_.staying.emplace_back(i, not_now);
      } else {
        full.push_back(std::move(candidate));
      }
    }
    if (!empty.nodes.empty()) out_.steps.push_back(std::move(empty));
    replace_drifted(drifted);
    for (Candidate& candidate : full) candidate.waste = waste_of(candidate);
    std::ranges::stable_sort(full, std::greater{}, [](const Candidate& one) { return one.waste; });
    if (replaces_first_) replace_by_cheaper(full);
    remove_needless(full);
    if (!replaces_first_) replace_by_cheaper(full);
    for (const Candidate& candidate : full) out_.staying.emplace_back(candidate.node, "its pods have no cheaper place");
    for (const Disruption& step : out_.steps) out_.savings += step.savings;
    return std::move(out_);
  }

  Disruption replace(const std::vector<std::size_t>& nodes, Reason reason) {
    std::vector<Candidate> all;
    for (const std::size_t i : nodes) all.push_back({i, pods_of(input_.nodes[i]), 0});
    std::vector<const Candidate*> going;
    for (Candidate& one : all) {
      // Nobody makes these again.
      std::erase_if(one.pods, [](const PodInfoPtr& pod) { return pod->view().meta.controller() == nullptr; });
      going.push_back(&one);
    }
    commit(reason, going, plan_for(empty_out(going), 20, true).claims);
    return std::move(out_.steps.back());
  }

 private:
  [[nodiscard]] const std::vector<NodePool>& pools() const { return *input_.provision.pools; }
  [[nodiscard]] const NodePool& pool(const OwnedNode& node) const { return pools()[node.pool]; }
  [[nodiscard]] TimePoint now() const { return input_.provision.now; }
  [[nodiscard]] bool is_over() const { return input_.provision.is_over && input_.provision.is_over(); }

  [[nodiscard]] std::vector<PodInfoPtr> pods_of(const OwnedNode& node) const {
    std::vector<PodInfoPtr> out;
    const placement::NodeInfo* info = trial_.cluster().find_node(node.node);
    if (info == nullptr) return out;
    for (const PodInfoPtr& pod : info->pods)
      if (!model::goes_with_its_node(pod->view().meta) && !pod->view().is_terminal()) out.push_back(pod);
    return out;
  }

  /// What forbids to touch the node at all.
  [[nodiscard]] std::string kept_by(const OwnedNode& node, const Candidate& candidate) const {
    if (!node.is_initialized) return "it has not started yet";
    if (!node.blocked.empty()) return node.blocked;
    if (trial_.cluster().find_node(node.node) == nullptr) return "its node is not there";
    for (const PodInfoPtr& pod : candidate.pods) {
      if (const std::string* mark = pod->view().meta.annotation(kDoNotDisrupt); mark != nullptr && *mark == "true")
        return fmt::format("pod {} has the annotation {}", pod->key, kDoNotDisrupt);
      if (pod->view().meta.controller() == nullptr) return fmt::format("nobody would make pod {} again: it has no controller", pod->key);
      const auto leave = ledger_.ask(pod->view());
      if (leave.answer == placement::DisruptionLedger::Answer::kSeveral) return fmt::format("pod {} has several budgets", pod->key);
      if (leave.answer == placement::DisruptionLedger::Answer::kNothingLeft)
        return fmt::format("the PodDisruptionBudget {} allows nothing for pod {}", leave.budget->meta.key(), pod->key);
    }
    return "";
  }
  /// What of its pool, or of time, keeps it from being consolidated.
  [[nodiscard]] std::string not_consolidated(const OwnedNode& node) const {
    const NodePool& own = pool(node);
    if (!own.consolidate_after) return fmt::format("NodePool \"{}\" has consolidation disabled", own.name);
    if (own.only_when_empty) return fmt::format("NodePool \"{}\" has non-empty consolidation disabled", own.name);
    if (!is_consolidatable(node, own, now())) return "its pods have not been quiet for consolidateAfter";
    if (node.price <= 0) return fmt::format("the catalogue knows no price of {} {} in {}", node.capacity_type, node.type, node.zone);
    return "";
  }

  // Budgets.

  [[nodiscard]] bool may_leave(const std::vector<std::size_t>& nodes, Reason reason) const {
    std::vector<std::int64_t> more(pools().size(), 0);
    for (const std::size_t i : nodes) ++more[input_.nodes[i].pool];
    for (std::size_t p = 0; p < more.size(); ++p)
      if (more[p] > 0 && leaving_[p] + more[p] > pools()[p].allowed(reason, all_[p], now())) return false;
    return true;
  }
  void note_leaving(const std::vector<std::size_t>& nodes) {
    for (const std::size_t i : nodes) ++leaving_[input_.nodes[i].pool];
  }
  void take_empty(Disruption& empty, std::size_t i) {
    const Reason reason = input_.nodes[i].drifted.empty() ? Reason::kEmpty : Reason::kDrifted;
    if (!may_leave({i}, reason)) return out_.staying.emplace_back(i, "the disruption budgets of its pool are used up"), void();
    note_leaving({i});
    empty.nodes.push_back(i);
    empty.savings += input_.nodes[i].price;
    (void)trial_.cluster().remove_node(input_.nodes[i].node);
  }

  // In thought.

  /// Takes the nodes away; their pods as their owners make them anew.
  std::vector<PodInfoPtr> empty_out(const std::vector<const Candidate*>& candidates) {
    std::vector<placement::EvictedPod> gone;
    for (const Candidate* candidate : candidates)
      for (const PodInfoPtr& pod : candidate->pods) gone.push_back(trial_.evict(pod));
    for (const Candidate* candidate : candidates) {
      // The pods of daemons go with the node.
      const placement::NodeInfo* info = trial_.cluster().find_node(input_.nodes[candidate->node].node);
      const std::vector<PodInfoPtr> rest = info == nullptr ? std::vector<PodInfoPtr>() : info->pods;
      for (const PodInfoPtr& pod : rest) (void)trial_.cluster().remove_pod(pod->key);
      (void)trial_.cluster().remove_node(input_.nodes[candidate->node].node);
    }
    std::vector<PodInfoPtr> out;
    for (const placement::EvictedPod& eviction : gone) out.push_back(trial_.renew(eviction));
    std::ranges::stable_sort(out, std::greater{}, [](const PodInfoPtr& pod) { return pod->view().priority; });
    return out;
  }
  bool take_leave(const std::vector<const Candidate*>& candidates, bool in_earnest) {
    placement::DisruptionLedger trying = ledger_;
    for (const Candidate* candidate : candidates)
      for (const PodInfoPtr& pod : candidate->pods)
        if (trying.ask(pod->view()).answer != placement::DisruptionLedger::Answer::kAllowed || !trying.take(pod->view())) return false;
    if (in_earnest) ledger_ = std::move(trying);
    return true;
  }
  void commit(Reason reason, const std::vector<const Candidate*>& candidates, std::vector<NewClaim> replacements) {
    Disruption step{reason, {}, std::move(replacements), {}, 0};
    for (const Candidate* candidate : candidates) {
      step.nodes.push_back(candidate->node);
      step.savings += input_.nodes[candidate->node].price;
      step.evicted.insert(step.evicted.end(), candidate->pods.begin(), candidate->pods.end());
    }
    for (const NewClaim& claim : step.replacements) step.savings -= claim.price;
    note_leaving(step.nodes);
    (void)take_leave(candidates, true);
    out_.steps.push_back(std::move(step));
  }

  /// `keeps_wishes` only where it will be done: that takes several plans.
  ProvisionPlan plan_for(const std::vector<PodInfoPtr>& pods, int rounds, bool keeps_wishes = false) {
    ProvisionInput input = input_.provision;
    input.keeps_wishes = keeps_wishes;
    input.trial = &trial_;
    input.waiting = pods;
    input.rounds = rounds;
    return plan_provisioning(input);
  }
  /// Into the trial with what was planned: what is decided next counts on it.
  void stand(const ProvisionPlan& plan) {
    for (const auto& [pod, node] : plan.on_existing) receivers_.insert(node);
    for (const auto& [pod, node] : plan.on_existing)
      if (const placement::NodeInfo* info = trial_.cluster().find_node(node)) (void)trial_.place_on(pod, info->index);
    for (const NewClaim& claim : plan.claims) {
      const InstanceType* type = input_.provision.catalogue->find(claim.type);
      const NodeShape shape{claim.pool, 0, nullptr, claim.labels, claim.price, {}, {}};
      const auto index = trial_.cluster().upsert_node(node_of(shape, pools()[claim.pool], *type, fmt::format("replacement-{}", ++made_)));
      for (const PodInfoPtr& pod : claim.pods) trial_.hold(pod, index);
    }
  }

  void replace_drifted(std::vector<Candidate>& drifted) {
    for (const Candidate& candidate : drifted) {
      if (!may_leave({candidate.node}, Reason::kDrifted)) {
        out_.staying.emplace_back(candidate.node, "the disruption budgets of its pool are used up");
        continue;
      }
      placement::Attempt attempt(trial_);
      if (!take_leave({&candidate}, false)) continue;
      const ProvisionPlan plan = plan_for(empty_out({&candidate}), 20, true);
      if (!plan.refused.empty()) {
        out_.staying.emplace_back(candidate.node, "it has drifted, and its pods have no other place: " + plan.refused.front().why);
        continue;
      }
      stand(plan);
      attempt.keep();
      commit(Reason::kDrifted, {&candidate}, plan.claims);
    }
  }

  /// Price times the part that no pod asks for, of cpu and memory alike.
  [[nodiscard]] double waste_of(const Candidate& candidate) const {
    const OwnedNode& node = input_.nodes[candidate.node];
    const placement::NodeInfo* info = trial_.cluster().find_node(node.node);
    if (info == nullptr) return 0;
    const auto share = [](std::int64_t used, std::int64_t all) {
      return all <= 0 ? 1.0 : std::min(1.0, static_cast<double>(used) / static_cast<double>(all));
    };
    return node.price * (1 - (share(info->requested.cpu_milli, info->allocatable.cpu_milli) +
                              share(info->requested.memory_bytes, info->allocatable.memory_bytes)) /
                                 2);
  }

  /// Nodes whose pods have room on the others.
  void remove_needless(std::vector<Candidate>& candidates) {
    std::vector<Candidate> left;
    for (Candidate& candidate : candidates) {
      if (is_over() || receives(candidate) || !may_leave({candidate.node}, Reason::kUnderutilized) || !take_leave({&candidate}, false) ||
          !has_room(candidate)) {
        left.push_back(std::move(candidate));
        continue;
      }
      placement::Attempt attempt(trial_);
      const std::vector<PodInfoPtr> pods = empty_out({&candidate});
      std::set<std::string> taken_by;
      const bool all_placed = std::ranges::all_of(pods, [&](const PodInfoPtr& pod) {
        const placement::Placement placed = trial_.place(pod);
        if (placed.is_placed()) taken_by.insert(trial_.cluster().node(placed.node)->name);
        return placed.is_placed();
      });
      if (!all_placed) {
        left.push_back(std::move(candidate));
        continue;
      }
      attempt.keep();
      receivers_.merge(taken_by);
      commit(Reason::kUnderutilized, {&candidate}, {});
    }
    candidates = std::move(left);
  }
  /// A look at numbers alone: whether the others together have as much as these pods ask for.
  [[nodiscard]] bool has_room(const Candidate& candidate) {
    if (version_ != out_.steps.size() || !counted_) {
      counted_ = true;
      version_ = out_.steps.size();
      free_cpu_ = free_memory_ = 0;
      for (const placement::NodeInfo* node : trial_.cluster().nodes()) {
        free_cpu_ += std::max<std::int64_t>(0, node->allocatable.cpu_milli - node->requested.cpu_milli);
        free_memory_ += std::max<std::int64_t>(0, node->allocatable.memory_bytes - node->requested.memory_bytes);
      }
    }
    std::int64_t cpu = 0, memory = 0;
    for (const PodInfoPtr& pod : candidate.pods) cpu += pod->wanted().cpu_milli, memory += pod->wanted().memory_bytes;
    const placement::NodeInfo* own = trial_.cluster().find_node(input_.nodes[candidate.node].node);
    const std::int64_t own_cpu = own == nullptr ? 0 : std::max<std::int64_t>(0, own->allocatable.cpu_milli - own->requested.cpu_milli);
    return cpu <= free_cpu_ - own_cpu && memory <= free_memory_;
  }

  /// The first nodes of the list, wasteful before thrifty, for cheaper ones: twice as many each time as long as that pays, then one by one.
  void replace_by_cheaper(std::vector<Candidate>& candidates) {
    std::size_t best_count = 0;
    double best_savings = 0;
    for (std::size_t count = 2; count / 2 < candidates.size() && !is_over(); count *= 2) {
      const std::vector<const Candidate*> some = first(candidates, count);
      if (some.size() < 2 || some.size() == best_count) break;
      const double savings = try_replace(some, false);
      if (savings <= best_savings) {
        if (count > 64) break;
        continue;
      }
      best_savings = savings;
      best_count = some.size();
    }
    if (best_count > 0) {
      const std::vector<const Candidate*> some = first(candidates, best_count);
      if (try_replace(some, true) > 0) std::erase_if(candidates, [&](const Candidate& one) { return is_gone(one.node); });
    }
    for (const Candidate& candidate : candidates) {
      if (is_over()) break;
      if (!is_gone(candidate.node) && !receives(candidate) && may_be_cheaper(candidate)) (void)try_replace({&candidate}, true);
    }
    std::erase_if(candidates, [&](const Candidate& one) { return is_gone(one.node); });
  }
  /// Pods of others go there by this plan: it does not go itself, or they would move twice.
  [[nodiscard]] bool receives(const Candidate& candidate) const { return receivers_.contains(input_.nodes[candidate.node].node); }
  [[nodiscard]] bool is_gone(std::size_t node) const {
    return std::ranges::any_of(out_.steps, [&](const Disruption& step) { return std::ranges::find(step.nodes, node) != step.nodes.end(); });
  }
  /// As many of the first as the budgets allow, `count` at most.
  [[nodiscard]] std::vector<const Candidate*> first(const std::vector<Candidate>& candidates, std::size_t count) {
    std::vector<const Candidate*> out;
    std::vector<std::size_t> nodes;
    for (const Candidate& candidate : candidates) {
      if (out.size() == count) break;
      if (receives(candidate)) continue;
      nodes.push_back(candidate.node);
      out.push_back(&candidate);
      if (may_leave(nodes, Reason::kUnderutilized) && take_leave(out, false)) continue;
      nodes.pop_back();
      out.pop_back();
    }
    return out;
  }
  /// Some cheaper type is large enough for all of it, or a part may fit elsewhere.
  [[nodiscard]] bool may_be_cheaper(const Candidate& candidate) const {
    const OwnedNode& node = input_.nodes[candidate.node];
    placement::Resource wanted;
    for (const PodInfoPtr& pod : candidate.pods) wanted.add(pod->wanted());
    for (const InstanceType& type : input_.provision.catalogue->types) {
      const auto room = placement::Resource::from_list(type.allocatable);
      if (wanted.cpu_milli > room.cpu_milli || wanted.memory_bytes > room.memory_bytes) continue;
      for (const Offering& offering : type.offerings)
        if (offering.price < node.price * (1 - kWorthwhile)) return true;
    }
    return false;
  }
  /// What it saves; 0: nothing. With `in_earnest` the step is taken.
  double try_replace(const std::vector<const Candidate*>& some, bool in_earnest) {
    std::vector<std::size_t> nodes;
    double price = 0;
    bool all_spot = true;
    for (const Candidate* one : some) {
      nodes.push_back(one->node);
      price += input_.nodes[one->node].price;
      all_spot = all_spot && input_.nodes[one->node].capacity_type == "spot";
    }
    if (!may_leave(nodes, Reason::kUnderutilized) || !take_leave(some, false)) return 0;
    placement::Attempt attempt(trial_);
    const std::vector<PodInfoPtr> pods = empty_out(some);
    const int rounds = some.size() > 1 ? 60 : 10;
    ProvisionPlan plan = plan_for(pods, rounds);
    const double savings = price - plan.cost;
    if (!plan.refused.empty() || savings < price * kWorthwhile || savings <= 0) return 0;
    if (in_earnest)
      if (ProvisionPlan kinder = plan_for(pods, rounds, true); kinder.refused.empty() && kinder.cost <= plan.cost + 1e-9)
        plan = std::move(kinder);
    if (all_spot && some.size() == 1 && !keeps_spot_rule(plan, price)) return 0;
    if (!in_earnest) return savings;
    if (plan.claims.size() == 1) leave_dearer_out(plan.claims.front(), price);
    stand(plan);
    attempt.keep();
    commit(Reason::kUnderutilized, some, std::move(plan.claims));
    return savings;
  }
  [[nodiscard]] double price_of(const NewClaim& claim, const std::string& type_name) const {
    double out = std::numeric_limits<double>::infinity();
    const InstanceType* type = input_.provision.catalogue->find(type_name);
    for (const Offering& offering : type->offerings)
      if (std::ranges::find(claim.zones, offering.zone) != claim.zones.end() &&
          std::ranges::find(claim.capacity_types, offering.capacity_type) != claim.capacity_types.end())
        out = std::min(out, offering.price);
    return out;
  }
  /// A launch that fails for the cheapest must not end with a dearer node than before.
  void leave_dearer_out(NewClaim& claim, double price) const {
    std::erase_if(claim.types, [&](const std::string& type) { return type != claim.type && price_of(claim, type) >= price; });
  }
  [[nodiscard]] bool keeps_spot_rule(const ProvisionPlan& plan, double price) const {
    for (const NewClaim& claim : plan.claims) {
      if (claim.capacity_type != "spot") continue;
      const auto cheaper = std::ranges::count_if(claim.types, [&](const std::string& type) { return price_of(claim, type) < price; });
      if (static_cast<std::size_t>(cheaper) < kSpotTypes) return false;
    }
    return true;
  }

  const ConsolidationInput& input_;
  const bool replaces_first_;
  std::set<std::string> receivers_;
  placement::Trial trial_;
  placement::DisruptionLedger ledger_;
  std::vector<std::int64_t> leaving_, all_;  ///< By pool.
  bool counted_ = false;
  std::size_t version_ = 0, made_ = 0;
  std::int64_t free_cpu_ = 0, free_memory_ = 0;
  ConsolidationPlan out_;
};

}  // namespace

Disruption plan_replacement(const ConsolidationInput& input, const std::vector<std::size_t>& nodes, Reason reason) {
  return Consolidation(input, false).replace(nodes, reason);
}

ConsolidationPlan plan_consolidation(const ConsolidationInput& input) {
  ConsolidationPlan out = Consolidation(input, false).run();
  // What goes without a replacement is the room that a better mixture would be made of: both orders are tried.
  if (ConsolidationPlan other = Consolidation(input, true).run(); other.savings > out.savings * (1 + kWorthwhile)) return other;
  return out;
}

}  // namespace berth::pools
