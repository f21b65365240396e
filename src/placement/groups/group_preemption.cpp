#include "placement/groups/group_preemption.h"

#include <algorithm>
#include <set>

#include "placement/attempt.h"
#include "placement/preemption_words.h"

namespace berth::placement {
namespace {

struct Victim {
  std::int64_t priority = 0;
  bool is_grouped = false;  ///< Its pods are of a PodGroup, whatever its disruption mode.
  std::vector<PodInfoPtr> pods;
  std::int64_t start_time_ns = INT64_MAX;  ///< The earliest.
  std::vector<Eviction> gone;              ///< While it is away.
};

bool comes_before(const Victim& a, const Victim& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.is_grouped != b.is_grouped) return a.is_grouped;
  if (a.is_grouped && a.pods.size() != b.pods.size()) return a.pods.size() > b.pods.size();
  return a.start_time_ns < b.start_time_ns;
}

/// In the order of nodes and of the pods there, which is what equals go by: a pod without a start time counts as started when it is seen.
std::vector<Victim> possible_victims(const Cluster& cluster, const PodGroup& preemptor, const PodGroups& groups) {
  std::vector<Victim> all;
  std::map<std::string, std::size_t, std::less<>> of_group;
  for (const NodeInfo* node : cluster.nodes())
    for (const PodInfoPtr& pod : node->pods) {
      const std::string& key = groups.group_of(pod->view().meta.uid);
      const PodGroupPtr group = key.empty() ? nullptr : groups.find(key);
      if (key == preemptor.key()) continue;
      const bool as_one = group != nullptr && group->goes_as_one;
      const auto [known, is_new] = as_one ? of_group.try_emplace(key, all.size()) : std::pair(of_group.end(), true);
      Victim& victim = is_new ? all.emplace_back() : all[known->second];
      if (is_new) victim.priority = as_one ? group->priority : pod->view().priority;
      victim.is_grouped = !key.empty();
      victim.pods.push_back(pod);
      victim.start_time_ns = std::min(victim.start_time_ns, pod->start_time_ns);
    }
  std::erase_if(all, [&](const Victim& one) { return one.priority >= preemptor.priority; });
  return all;
}

void take_away(Trial& trial, Victim& victim) {
  for (const PodInfoPtr& pod : victim.pods) victim.gone.push_back(trial.evict(pod));
}

void give_back(Trial& trial, Victim& victim) {
  for (const Eviction& one : victim.gone) trial.undo(one);
  victim.gone.clear();
}

/// "": it may preempt.
std::string_view why_not(const Cluster& cluster, const GroupQuestion& question) {
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

/// Victims that would break a disruption budget, in the order given: they are given back first.
std::vector<Victim*> violating_first(const Cluster& cluster, std::vector<Victim>& victims, std::size_t& violating) {
  std::vector<PodInfoPtr> pods;
  for (const Victim& one : victims) pods.insert(pods.end(), one.pods.begin(), one.pods.end());
  const std::vector<bool> breaks = budget_violations(cluster, pods);
  std::vector<Victim*> first, rest;
  std::size_t at = 0;
  for (Victim& one : victims) {
    bool any = false;
    for (std::size_t i = 0; i < one.pods.size(); ++i) any = breaks[at++] || any;
    (any ? first : rest).push_back(&one);
  }
  violating = first.size();
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

/// Each in its turn, unless the group fits no more then. Of very many, whole stretches at once: where the group fits beside all of a
/// stretch, it fits beside each.
void give_back_what_fits(Trial& trial, const GroupQuestion& question, const std::vector<Victim*>& order) {
  constexpr std::size_t kFew = 64;
  std::size_t stretch = order.size() > kFew ? order.size() : 1;
  for (std::size_t at = 0; at < order.size();) {
    const std::size_t end = std::min(at + stretch, order.size());
    for (std::size_t i = at; i < end; ++i) give_back(trial, *order[i]);
    const bool still_fits = decide_group(trial, question).outcome == GroupDecision::Outcome::kScheduled;
    if (still_fits) {
      at = end;
      if (order.size() > kFew) stretch *= 2;
      continue;
    }
    for (std::size_t i = at; i < end; ++i) take_away(trial, *order[i]);
    if (end - at == 1) at = end;
    stretch = std::max<std::size_t>((end - at) / 2, 1);
  }
}

}  // namespace

GroupVictims find_group_victims(Trial& trial, const GroupQuestion& question, const PodGroups& groups) {
  GroupVictims out;
  if (const std::string_view why = why_not(trial.cluster(), question); !why.empty()) {
    out.status = Status::unschedulable(std::string(why));
    return out;
  }
  std::vector<Victim> victims = possible_victims(trial.cluster(), *question.group, groups);
  if (victims.empty()) {
    out.status = Status::unschedulable("No preemption victims found for incoming preemptor");
    return out;
  }
  std::ranges::stable_sort(victims, comes_before);
  std::size_t violating = 0;
  const std::vector<Victim*> order = violating_first(trial.cluster(), victims, violating);
  Attempt attempt(trial);
  for (Victim& one : victims) take_away(trial, one);
  if (GroupDecision without = decide_group(trial, question); without.outcome != GroupDecision::Outcome::kScheduled) {
    out.status =
        without.outcome == GroupDecision::Outcome::kError ? Status::error(without.message) : Status::unschedulable(without.message);
    return out;
  }
  give_back_what_fits(trial, question, order);
  for (std::size_t i = 0; i < violating; ++i) out.budget_violations += order[i]->gone.empty() ? 0 : 1;
  for (const Victim& one : victims)
    if (!one.gone.empty()) out.victims.insert(out.victims.end(), one.pods.begin(), one.pods.end());
  return out;
}

}  // namespace berth::placement
