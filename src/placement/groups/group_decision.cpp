#include "placement/groups/group_decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "placement/attempt.h"

namespace berth::placement {
namespace {

constexpr std::string_view kUnschedulable = "pod group is unschedulable";

/// All members in one set of nodes.
GroupDecision decide_in(Trial& trial, const GroupQuestion& question) {
  GroupDecision out;
  out.message = kUnschedulable;
  out.members.reserve(question.members.size());
  auto have_place = static_cast<std::int64_t>(question.standing.size());
  Attempt attempt(trial);
  for (const PodInfoPtr& pod : question.members) {
    MemberDecision& mine = out.members.emplace_back();
    mine.decision = trial.decide(pod);
    mine.decision.node_name = {};
    if (mine.decision.outcome == Decision::Outcome::kError && trial.cluster().node_count() == 0) {
      mine.decision.outcome = Decision::Outcome::kUnschedulable;  // Nobody is to blame, and nodes may come.
      continue;
    }
    if (mine.decision.outcome == Decision::Outcome::kUnschedulable) continue;
    if (mine.has_place()) {
      const auto reserved = trial.reserve(pod, mine.decision.node);
      if (!reserved) {
        mine.decision.outcome = Decision::Outcome::kError;
        mine.decision.error = reserved.error().message();
      }
    }
    if (!mine.has_place()) {
      out.outcome = GroupDecision::Outcome::kError;
      out.message = "failed to schedule other pod from a pod group: " + mine.decision.error;
      return out;
    }
    if (++have_place >= question.group->min_count) out.outcome = GroupDecision::Outcome::kScheduled;
  }
  if (out.outcome == GroupDecision::Outcome::kScheduled) out.message.clear();
  return out;
}

std::int64_t placed(const GroupDecision& decision) {
  return std::ranges::count_if(decision.members, [](const MemberDecision& one) { return one.has_place(); });
}

/// Amounts by which domains are compared: what pods ask for, with defaults, and what nodes have.
struct Amounts {
  std::int64_t cpu_milli = 0, memory_bytes = 0;
  void add(const PodInfo& pod) {
    cpu_milli += pod.scoring_request.cpu_milli;
    memory_bytes += pod.scoring_request.memory_bytes;
  }
};

struct Domain {
  std::string name;
  std::vector<NodeIndex> nodes;
  Amounts used, all;         ///< Of its nodes.
  std::int64_t most = 0;     ///< At most so many members have room there.
  std::int64_t promise = 0;  ///< At most so good is it.
};

/// The smallest request of any member, and what each node has room for at most: no filter is asked.
void count_room(const Cluster& cluster, std::span<const PodInfoPtr> members, Domain& domain) {
  std::int64_t cpu = INT64_MAX, memory = INT64_MAX;
  for (const PodInfoPtr& pod : members) {
    cpu = std::min(cpu, pod->wanted().cpu_milli);
    memory = std::min(memory, pod->wanted().memory_bytes);
  }
  for (const NodeIndex index : domain.nodes) {
    const NodeInfo& node = *cluster.node(index);
    domain.used.cpu_milli += node.nonzero_cpu_milli;
    domain.used.memory_bytes += node.nonzero_memory_bytes;
    domain.all.cpu_milli += node.allocatable.cpu_milli;
    domain.all.memory_bytes += node.allocatable.memory_bytes;
    std::int64_t room = static_cast<std::int64_t>(members.size());
    if (cpu > 0) room = std::min(room, (node.allocatable.cpu_milli - node.requested.cpu_milli) / cpu);
    if (memory > 0) room = std::min(room, (node.allocatable.memory_bytes - node.requested.memory_bytes) / memory);
    domain.most += std::max<std::int64_t>(room, 0);
  }
  domain.most = std::min(domain.most, static_cast<std::int64_t>(members.size()));
}

/// NodeResourcesFit of a placement: how full the domain will be (MostAllocated over cpu and memory).
std::int64_t fullness(const Domain& domain, const Amounts& added) {
  const auto part = [](std::int64_t asked, std::int64_t there) { return there <= 0 ? 0 : std::min(asked, there) * 100 / there; };
  return (part(domain.used.cpu_milli + added.cpu_milli, domain.all.cpu_milli) +
          part((domain.used.memory_bytes + added.memory_bytes) >> 10, domain.all.memory_bytes >> 10)) /
         2;
}

Expected<std::vector<Domain>, std::string> domains_of(const Cluster& cluster, const GroupQuestion& question) {
  const std::string& key = question.group->topology_key;
  const std::string* required = nullptr;
  for (const NodeIndex index : question.standing) {
    const NodeInfo* node = cluster.node(index);
    const std::string* domain = node != nullptr && node->node != nullptr ? node->label(key) : nullptr;
    if (domain == nullptr) return std::unexpected("cannot determine domain for already scheduled pods: no topology domain found for a pod");
    if (required != nullptr && *required != *domain)
      return std::unexpected(fmt::format(
          "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: {}, {}", *required, *domain));
    required = domain;
  }
  std::map<std::string, Domain> by_name;
  for (const NodeInfo* node : cluster.nodes()) {
    const std::string* domain = node->label(key);
    if (domain == nullptr || (required != nullptr && *required != *domain)) continue;
    Domain& one = by_name[*domain];
    one.name = *domain;
    one.nodes.push_back(node->index);
  }
  std::vector<Domain> out;
  for (auto& [name, domain] : by_name) out.push_back(std::move(domain));
  return out;
}

/// In the domain alone; places are told as nodes of the whole cluster.
GroupDecision decide_within(Trial& trial, const GroupQuestion& question, const Domain& domain) {
  Trial there = trial.within(domain.nodes);
  GroupDecision out = decide_in(there, question);
  for (MemberDecision& one : out.members)
    if (one.has_place()) one.decision.node = trial.cluster().find_node(there.cluster().node(one.decision.node)->name)->index;
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

GroupDecision decide_by_topology(Trial& trial, const GroupQuestion& question) {
  const Cluster& cluster = trial.cluster();
  auto domains = domains_of(cluster, question);
  if (!domains) return {GroupDecision::Outcome::kError, {}, domains.error()};
  if (domains->empty())
    return {GroupDecision::Outcome::kUnschedulable,
            {},
            fmt::format("0/0 placements are available: no node has the label \"{}\"", question.group->topology_key)};
  const auto standing = static_cast<std::int64_t>(question.standing.size()), all = static_cast<std::int64_t>(question.members.size());
  Amounts asked;
  for (const PodInfoPtr& pod : question.members) asked.add(*pod);
  for (Domain& domain : *domains) {
    count_room(cluster, question.members, domain);
    domain.promise =
        (standing + domain.most) * 100 / std::max<std::int64_t>(standing + all, 1) + (domain.most == all ? fullness(domain, asked) : 100);
  }
  const Domain first = (*domains)[question.pick ? question.pick(domains->size()) : 0];
  const std::size_t count = domains->size();
  std::ranges::stable_sort(*domains, std::greater(), &Domain::promise);
  std::vector<Tried> tried;
  for (const Domain& domain : *domains) {
    if (standing + domain.most < question.group->min_count || domain.most == 0) continue;
    if (is_settled(tried, standing + all, domain.promise, !question.pick)) break;
    GroupDecision decision = decide_within(trial, question, domain);
    if (decision.outcome == GroupDecision::Outcome::kError) return decision;
    if (decision.outcome != GroupDecision::Outcome::kScheduled) continue;
    Amounts added;
    for (std::size_t i = 0; i < decision.members.size(); ++i)
      if (decision.members[i].has_place()) added.add(*question.members[i]);
    const std::int64_t here = standing + placed(decision);
    tried.push_back({std::move(decision), here, fullness(domain, added)});
  }
  if (!tried.empty()) return std::move(tried[best_of(tried, question)].decision);
  GroupDecision out = decide_within(trial, question, first);
  if (out.outcome == GroupDecision::Outcome::kUnschedulable)
    out.message = fmt::format("0/{} placements are available, first placement status: {}", count, kUnschedulable);
  return out;
}

}  // namespace

GroupDecision decide_group(Trial& trial, const GroupQuestion& question) {
  if (question.by_topology && !question.group->topology_key.empty()) return decide_by_topology(trial, question);
  GroupDecision out = decide_in(trial, question);
  if (question.by_topology && out.outcome == GroupDecision::Outcome::kUnschedulable)
    out.message = fmt::format("0/1 placements are available, first placement status: {}", kUnschedulable);
  return out;
}

}  // namespace berth::placement
