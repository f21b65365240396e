#include "placement/groups/group_decision.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/groups/group_levels.h"
#include "placement/groups/in_order.h"

namespace berth::placement {
namespace {

/// In the domain alone; places are told as nodes of the whole cluster.
GroupDecision decide_within(Trial& trial, const GroupQuestion& question, const GroupDomain& domain) {
  Trial there = trial.within(domain.nodes);
  GroupDecision out = decide_in_order(there, question);
  tell_as_nodes_of(trial.cluster(), there.cluster(), out);
  out.domain = domain.name;
  return out;
}

struct Tried {
  GroupDecision decision;
  std::int64_t count = 0, fullness = 0;
};

/// The best by PodGroupPodsCount and NodeResourcesFit, each of 100 with weight 1.
std::size_t best_of(const std::vector<Tried>& tried, const GroupQuestion& question) {
  std::int64_t most = 1;
  for (const Tried& one : tried) most = std::max(most, one.count);
  const auto score = [&](const Tried& one) { return one.count * 100 / most + one.fullness; };
  std::vector<std::size_t> best = {0};
  for (std::size_t i = 1; i < tried.size(); ++i) {
    if (score(tried[i]) < score(tried[best.front()])) continue;
    if (score(tried[i]) > score(tried[best.front()])) best.clear();
    best.push_back(i);
  }
  return best[best.size() > 1 && question.pick ? question.pick(best.size()) : 0];
}

/// Nobody that is still to be tried can be better: one took all members, and is better than any other promises to be; as good is enough
/// where the first of equals is taken.
bool is_settled(const std::vector<Tried>& tried, std::int64_t all, std::int64_t promise, bool takes_first) {
  return std::ranges::any_of(tried, [&](const Tried& one) {
    return one.count == all && (takes_first ? 100 + one.fullness >= promise : 100 + one.fullness > promise);
  });
}

GroupDecision decide_as_kubernetes(Trial& trial, const GroupQuestion& question) {
  const Cluster& cluster = trial.cluster();
  const TopologyLevel level{question.group->topology_key, true};
  auto domains = group_domains(cluster, question, {&level, 1});
  if (!domains) return {GroupDecision::Outcome::kError, {}, domains.error()};
  if (domains->empty())
    return {GroupDecision::Outcome::kUnschedulable,
            {},
            fmt::format("0/0 placements are available: no node has the label \"{}\"", question.group->topology_key)};
  const auto standing = static_cast<std::int64_t>(question.standing.size()), all = static_cast<std::int64_t>(question.members.size());
  GroupAmounts asked;
  for (const PodInfoPtr& pod : question.members) asked.add(*pod);
  for (GroupDomain& domain : *domains)
    domain.promise =
        (standing + domain.most) * 100 / std::max<std::int64_t>(standing + all, 1) + (domain.most == all ? fullness(domain, asked) : 100);
  const GroupDomain first = (*domains)[question.pick ? question.pick(domains->size()) : 0];
  const std::size_t count = domains->size();
  std::ranges::stable_sort(*domains, std::greater(), &GroupDomain::promise);
  std::vector<Tried> tried;
  std::set<std::string_view> rejected_by;
  for (const GroupDomain& domain : *domains) {
    if (standing + domain.most < question.group->min_count || domain.most == 0) {
      rejected_by.insert(kTooSmall);
      continue;
    }
    if (is_settled(tried, standing + all, domain.promise, !question.pick)) break;
    GroupDecision decision = decide_within(trial, question, domain);
    if (decision.outcome == GroupDecision::Outcome::kError) return decision;
    if (decision.outcome != GroupDecision::Outcome::kScheduled) {
      note_rejections(decision, rejected_by);
      continue;
    }
    GroupAmounts added;
    for (std::size_t i = 0; i < decision.members.size(); ++i)
      if (decision.members[i].has_place()) added.add(*question.members[i]);
    const std::int64_t here = standing + decision.placed_count();
    tried.push_back({std::move(decision), here, fullness(domain, added)});
  }
  if (!tried.empty()) return std::move(tried[best_of(tried, question)].decision);
  GroupDecision out = decide_within(trial, question, first);
  out.rejected_by = std::move(rejected_by);
  if (out.outcome == GroupDecision::Outcome::kUnschedulable)
    out.message = fmt::format("0/{} placements are available, first placement status: {}", count, kGroupUnschedulable);
  return out;
}

}  // namespace

GroupDecision decide_group(Trial& trial, const GroupQuestion& question) {
  const bool has_levels = !question.group->topology_key.empty() || (!question.as_kubernetes && !question.group->levels.empty());
  if (question.by_topology && has_levels)
    return question.as_kubernetes ? decide_as_kubernetes(trial, question) : decide_by_levels(trial, question);
  std::size_t steps = question.search_steps;
  GroupDecision out = question.as_kubernetes ? decide_in_order(trial, question) : decide_in_domain(trial, question, steps);
  if (question.by_topology && out.outcome == GroupDecision::Outcome::kUnschedulable)
    out.message = fmt::format("0/1 placements are available, first placement status: {}", kGroupUnschedulable);
  return out;
}

}  // namespace berth::placement
