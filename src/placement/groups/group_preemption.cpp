#include "placement/groups/group_preemption.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "placement/attempt.h"
#include "placement/groups/group_levels.h"
#include "placement/groups/in_order.h"
#include "placement/groups/victim_sums.h"
#include "placement/preemption_words.h"

namespace berth::placement {
namespace {

constexpr std::string_view kNoVictims = "No preemption victims found for incoming preemptor";
constexpr std::string_view kNotWithConstraints = "workload aware preemption is not supported for pod groups with scheduling constraints";

/// "": it may preempt.
std::string_view why_not(const Cluster& cluster, const GroupQuestion& question) {
  if (question.as_kubernetes && question.by_topology && !question.group->topology_key.empty()) return kNotWithConstraints;
  std::set<std::string> promised;
  for (const PodInfoPtr& pod : question.members) {
    if (pod->view().preemption_never) return words::kNever;
    if (!pod->view().nominated_node_name.empty()) promised.insert(pod->view().nominated_node_name);
  }
  for (const std::string& name : promised) {
    const NodeInfo* node = cluster.find_node(name);
    const auto is_going = [&](const PodInfoPtr& pod) {
      return pod->view().priority < question.group->priority && pod->view().meta.is_deleting && pod->view().terminating_by_preemption;
    };
    if (node != nullptr && std::ranges::any_of(node->pods, is_going)) return words::kTerminating;
  }
  return {};
}

/// Of some victims, in the order in which they are given back: who would break a budget first.
struct Order {
  std::vector<const Victim*> victims;
  std::size_t violating = 0;          ///< So many at the front.
  std::vector<const Victim*> kept{};  ///< Nobody may ask them to go.
};

Order violating_first(const Cluster& cluster, const Victims& victims, std::vector<const Victim*> some, bool budgets_are_hard) {
  if (cluster.disruption_budgets().empty()) return {std::move(some)};
  std::vector<PodInfoPtr> pods;
  for (const Victim* one : some)
    for (const Victims::Row& row : victims.rows_of(*one)) pods.push_back(row.pod->shared_from_this());
  const std::vector<bool> breaks = budget_violations(cluster, pods);
  Order out;
  std::vector<const Victim*> rest;
  std::size_t at = 0;
  for (const Victim* one : some) {
    bool any = false;
    for (std::uint32_t i = 0; i < one->count; ++i) any = breaks[at++] || any;
    (any ? out.victims : rest).push_back(one);
  }
  if (budgets_are_hard) out.kept = std::exchange(out.victims, {});
  out.violating = out.victims.size();
  out.victims.insert(out.victims.end(), rest.begin(), rest.end());
  return out;
}

/// Who goes in one domain; ordered by how little is lost.
struct Plan {
  std::size_t domain = 0;
  std::vector<const Victim*> victims;  ///< The most important first.
  std::size_t violations = 0, pods = 0;
  [[nodiscard]] auto rank() const {
    __int128 sum = 0;  // Each counts for itself: more victims are more, whatever the sign of their priority.
    std::int64_t start = INT64_MAX;
    for (const Victim* one : victims) {
      sum += (static_cast<__int128>(one->priority) + INT64_MAX + 1) * one->count;
      if (one->priority == victims.front()->priority) start = std::min(start, one->start_time_ns);
    }
    return std::tuple(violations, victims.empty() ? INT64_MIN : victims.front()->priority, sum, pods, -start);
  }
};

Plan plan_of(std::size_t domain, const Order& order, const std::vector<bool>& is_away) {
  Plan out{domain, {}, 0, 0};
  for (std::size_t i = 0; i < order.victims.size(); ++i) {
    if (!is_away[i]) continue;
    out.victims.push_back(order.victims[i]);
    out.pods += order.victims[i]->count;
    out.violations += i < order.violating ? 1 : 0;
  }
  std::ranges::stable_sort(out.victims, [](const Victim* a, const Victim* b) { return comes_before(*a, *b); });
  return out;
}

/// Gives victims back in their order, unless the group fits no more then.
class Reprieve {
 public:
  /// `there` has the domain's nodes; `sums` may be null: the engine is asked about every step.
  Reprieve(Trial& there, const GroupQuestion& question, const Victims& victims, VictimSums* sums, std::size_t domain, const Order& order)
      : there_(there),
        question_(question),
        victims_(victims),
        sums_(sums),
        domain_(domain),
        order_(order),
        is_away_(order.victims.size(), true) {}

  /// Nullopt: the group does not fit however many go; `why` says what the engine said then.
  std::optional<Plan> run(GroupDecision& why) {
    Attempt attempt(there_);
    if (ask_first(why))
      give_back_what_fits();
    else
      return std::nullopt;
    return plan_of(domain_, order_, is_away_);
  }

 private:
  using Answer = VictimSums::Answer;

  bool ask_first(GroupDecision& why) {
    const Answer known = sums_ != nullptr ? sums_->answer(domain_) : Answer::kOpen;
    if (known == Answer::kFits) return true;
    why = {GroupDecision::Outcome::kUnschedulable, {}, std::string(kGroupUnschedulable)};
    if (known == Answer::kDoesNot) return false;
    why = ask(question_.search_steps);
    return why.outcome == GroupDecision::Outcome::kScheduled;
  }

  /// Each in its turn. Where only the engine knows, of very many whole stretches at once: where the group fits beside all of a stretch, it
  /// fits beside each.
  void give_back_what_fits() {
    constexpr std::size_t kFew = 64;
    const std::size_t count = order_.victims.size();
    const bool is_one_by_one = count <= kFew;
    std::size_t stretch = is_one_by_one ? 1 : count;
    for (std::size_t at = 0; at < count;) {
      const std::size_t end = std::min(at + stretch, count);
      if (still_fits_beside(at, end)) {
        at = end;
        if (!is_one_by_one) stretch *= 2;
        continue;
      }
      if (end - at == 1) at = end;
      stretch = std::max<std::size_t>((end - at) / 2, 1);
    }
  }

  bool still_fits_beside(std::size_t at, std::size_t end) {
    for (std::size_t i = at; i < end; ++i) set_away(i, false);
    Answer answer = sums_ != nullptr ? sums_->answer(domain_) : Answer::kOpen;
    constexpr std::size_t kStepsOfMany = 2000;  // A search each time, but a short one.
    if (answer == Answer::kOpen)
      answer = ask(std::min(question_.search_steps, kStepsOfMany)).outcome == GroupDecision::Outcome::kScheduled ? Answer::kFits
                                                                                                                 : Answer::kDoesNot;
    if (answer == Answer::kFits) return true;
    for (std::size_t i = at; i < end; ++i) set_away(i, true);
    return false;
  }

  void set_away(std::size_t i, bool is_away) {
    is_away_[i] = is_away;
    if (sums_ != nullptr) is_away ? sums_->take_away(*order_.victims[i]) : sums_->give_back(*order_.victims[i]);
    if (!gone_.empty()) stale_.push_back(i);
  }

  /// The trial is brought in line, and asked.
  GroupDecision ask(std::size_t steps) {
    if (gone_.empty()) {
      gone_.resize(order_.victims.size());
      for (std::size_t i = 0; i < gone_.size(); ++i) bring_in_line(i);
    }
    for (const std::size_t i : stale_) bring_in_line(i);
    stale_.clear();
    return question_.as_kubernetes ? decide_in_order(there_, question_) : decide_in_domain(there_, question_, steps);
  }

  void bring_in_line(std::size_t i) {
    if (is_away_[i] == !gone_[i].empty()) return;
    if (is_away_[i]) {
      for (const Victims::Row& row : victims_.rows_of(*order_.victims[i]))
        if (there_.cluster().pod_node(row.pod->key).is_valid()) gone_[i].push_back(there_.evict(row.pod->shared_from_this()));
    } else {
      for (const EvictedPod& one : gone_[i]) there_.undo(one);
      gone_[i].clear();
    }
  }

  Trial& there_;
  const GroupQuestion& question_;
  const Victims& victims_;
  VictimSums* sums_;
  std::size_t domain_;
  const Order& order_;
  std::vector<bool> is_away_;
  std::vector<std::vector<EvictedPod>> gone_;  ///< Those that are away in the trial; empty until it is first asked.
  std::vector<std::size_t> stale_;             ///< Perhaps otherwise in the trial than in `is_away_`.
};

/// One question: all domains, and the victims of each.
class Search {
 public:
  Search(Trial& trial, const GroupQuestion& question, const Victims& victims, std::vector<GroupDomain> domains, bool is_whole,
         bool asks_sums)
      : trial_(trial),
        question_(question),
        victims_(victims),
        domains_(std::move(domains)),
        is_whole_(is_whole),
        room_(trial, question.members),
        sums_(trial.cluster(), room_, victims, domains_by_slot(), domains_.size(),
              std::max<std::int64_t>(question.group->min_count - std::ssize(question.standing), 1)),
        trusts_sums_(asks_sums && room_.is_plain()),
        is_exact_(trusts_sums_ && room_.kinds().size() == 1) {
    sort_by_domain();
  }

  GroupVictims find() {
    std::optional<Plan> best;
    std::size_t asked = 0;
    for (const std::size_t domain : by_estimate()) {
      // Sums of one kind of members are no estimate: then the first that holds is the best. Else a few more may be better.
      if (best && (is_exact_ || ++asked >= kMostAsked)) break;
      auto plan = ask(domain);
      if (plan && (!best || plan->rank() < best->rank())) best = std::move(plan);
    }
    GroupVictims out;
    if (!best) {
      out.status = why_.outcome == GroupDecision::Outcome::kError ? Status::error(why_.message) : Status::unschedulable(why_.message);
      return out;
    }
    out.decision = std::move(decisions_[best->domain]);
    out.budget_violations = best->violations;
    for (const Victim* one : best->victims)
      for (const Victims::Row& row : victims_.rows_of(*one)) out.victims.push_back(row.pod->shared_from_this());
    return out;
  }

 private:
  static constexpr std::size_t kMostAsked = 8;

  std::vector<std::int32_t> domains_by_slot() const {
    std::vector<std::int32_t> out(trial_.cluster().slot_count(), -1);
    for (std::size_t i = 0; i < domains_.size(); ++i)
      for (const NodeIndex node : domains_[i].nodes) out[node.value] = static_cast<std::int32_t>(i);
    return out;
  }

  void sort_by_domain() {
    orders_.resize(domains_.size());
    decisions_.resize(domains_.size());
    std::vector<std::vector<const Victim*>> of(domains_.size());
    std::vector<std::int32_t> mine;
    for (const Victim& one : victims_.all) {
      mine.clear();
      for (const Victims::Row& row : victims_.rows_of(one))
        if (const std::int32_t domain = sums_.domain_of()[row.node.value];
            domain >= 0 && (mine.empty() || std::ranges::find(mine, domain) == mine.end()))
          mine.push_back(domain);
      for (const std::int32_t domain : mine) of[static_cast<std::size_t>(domain)].push_back(&one);
    }
    for (std::size_t i = 0; i < domains_.size(); ++i)
      orders_[i] = violating_first(trial_.cluster(), victims_, std::move(of[i]), question_.budgets_are_hard);
    why_ = {GroupDecision::Outcome::kUnschedulable, {}, std::string(kGroupUnschedulable)};
  }

  /// The most promising domains first, by sums of amounts as if they were all that counts; without those in which they say no.
  std::vector<std::size_t> by_estimate() {
    std::vector<std::size_t> out(domains_.size());
    std::iota(out.begin(), out.end(), 0);
    if (domains_.size() == 1) return out;
    using Rank = decltype(std::declval<Plan>().rank());
    std::vector<std::pair<bool, Rank>> ranks(domains_.size());
    std::erase_if(out, [&](std::size_t i) {
      for (const Victim* one : orders_[i].kept) sums_.give_back(*one);
      const VictimSums::Answer answer = sums_.answer(i);
      const bool is_known = answer == VictimSums::Answer::kFits;
      ranks[i] = {!is_known, is_known ? estimate(i).rank() : Rank()};
      for (const Victim* one : orders_[i].kept) sums_.take_away(*one);
      return answer == VictimSums::Answer::kDoesNot;
    });
    std::ranges::stable_sort(out, [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
    return out;
  }

  Plan estimate(std::size_t domain) {
    const Order& order = orders_[domain];
    std::vector<bool> is_away(order.victims.size(), false);
    for (std::size_t i = 0; i < order.victims.size(); ++i) {
      sums_.give_back(*order.victims[i]);
      if (sums_.answer(domain) == VictimSums::Answer::kFits) continue;
      is_away[i] = true;
      sums_.take_away(*order.victims[i]);
    }
    for (std::size_t i = 0; i < order.victims.size(); ++i)
      if (!is_away[i]) sums_.take_away(*order.victims[i]);
    return plan_of(domain, order, is_away);
  }

  std::optional<Plan> ask(std::size_t domain) {
    if (is_whole_) return ask_in(trial_, domain);
    Trial there = trial_.within(domains_[domain].nodes);
    auto out = ask_in(there, domain);
    tell_as_nodes_of(trial_.cluster(), there.cluster(), decisions_[domain]);
    decisions_[domain].domain = domains_[domain].name;
    return out;
  }

  std::optional<Plan> ask_in(Trial& there, std::size_t domain) {
    for (VictimSums* sums : {trusts_sums_ ? &sums_ : nullptr, static_cast<VictimSums*>(nullptr)}) {
      GroupDecision why;
      auto plan = reprieve(there, domain, sums, why);
      if (plan && confirm(there, *plan)) return plan;
      if (!plan) {
        if (why_.members.empty()) why_ = std::move(why);
        return std::nullopt;
      }
      if (sums == nullptr) return std::nullopt;  // Never seen: the engine took back what it said.
    }
    return std::nullopt;
  }

  std::optional<Plan> reprieve(Trial& there, std::size_t domain, VictimSums* sums, GroupDecision& why) {
    const auto& kept = orders_[domain].kept;
    for (const Victim* one : kept)
      if (sums != nullptr) sums->give_back(*one);
    auto plan = Reprieve(there, question_, victims_, sums, domain, orders_[domain]).run(why);
    // The sums go back to all being away, for who asks next.
    for (const Victim* one : kept)
      if (sums != nullptr) sums->take_away(*one);
    if (sums == nullptr || !plan || domains_.size() == 1) return plan;
    std::vector<const Victim*> stay = orders_[domain].victims;
    std::vector<const Victim*> gone = plan->victims;
    std::ranges::sort(stay);
    std::ranges::sort(gone);
    std::vector<const Victim*> back;
    std::ranges::set_difference(stay, gone, std::back_inserter(back));
    for (const Victim* one : back) sums->take_away(*one);
    return plan;
  }

  /// Nobody goes before the whole decision was made without them.
  bool confirm(Trial& there, const Plan& plan) {
    Attempt attempt(there);
    for (const Victim* one : plan.victims)
      for (const Victims::Row& row : victims_.rows_of(*one))
        if (there.cluster().pod_node(row.pod->key).is_valid()) (void)there.evict(row.pod->shared_from_this());
    std::size_t steps = question_.search_steps;
    decisions_[plan.domain] = question_.as_kubernetes ? decide_in_order(there, question_) : decide_in_domain(there, question_, steps);
    return decisions_[plan.domain].outcome == GroupDecision::Outcome::kScheduled;
  }

  Trial& trial_;
  const GroupQuestion& question_;
  const Victims& victims_;
  std::vector<GroupDomain> domains_;
  bool is_whole_;
  GroupRoom room_;
  VictimSums sums_;
  bool trusts_sums_, is_exact_;
  std::vector<Order> orders_;             ///< By domain.
  std::vector<GroupDecision> decisions_;  ///< Likewise, once it was confirmed.
  GroupDecision why_;                     ///< Of the first domain that does not help.
};

GroupVictims find_victims(Trial& trial, const GroupQuestion& question, const PodGroups& groups, bool asks_sums) {
  GroupVictims out;
  const Cluster& cluster = trial.cluster();
  if (const std::string_view why = why_not(cluster, question); !why.empty()) {
    out.status = Status::unschedulable(std::string(why));
    out.is_waiting = why == words::kTerminating;
    return out;
  }
  const Victims victims(cluster, *question.group, groups);
  if (victims.all.empty()) {
    out.status = Status::unschedulable(std::string(kNoVictims));
    return out;
  }
  const std::vector<TopologyLevel> levels = question.by_topology ? question.group->all_levels() : std::vector<TopologyLevel>();
  const auto required = required_of(levels);
  auto domains = group_domains(cluster, question, required);  // Without any level, one of all nodes.
  if (!domains || domains->empty()) {
    out.status = domains ? Status::unschedulable(std::string(kGroupUnschedulable)) : Status::error(domains.error());
    return out;
  }
  return Search(trial, question, victims, std::move(*domains), required.empty(), asks_sums).find();
}

}  // namespace

GroupVictims find_group_victims(Trial& trial, const GroupQuestion& question, const PodGroups& groups) {
  return find_victims(trial, question, groups, true);
}

GroupVictims find_group_victims_plainly(Trial& trial, const GroupQuestion& question, const PodGroups& groups) {
  return find_victims(trial, question, groups, false);
}

}  // namespace berth::placement
