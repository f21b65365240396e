#include "placement/groups/group_placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/attempt.h"

namespace berth::placement {
namespace {

/// `successor_of` appends to the uid, once for each time.
bool is_or_succeeds(std::string_view uid, std::string_view member) {
  return uid.starts_with(member) && (uid.size() == member.size() || uid.substr(member.size()).starts_with("-next"));
}

}  // namespace

std::vector<NodeIndex> standing_of(const PodGroups& groups, const Cluster& cluster, std::string_view key) {
  std::vector<NodeIndex> out;
  for (const auto& member : groups.members(std::string(key))) {
    const NodeIndex node = cluster.pod_node(member.pod_key);
    if (node.is_valid() && is_or_succeeds(cluster.find_pod(member.pod_key)->view().meta.uid, member.uid)) out.push_back(node);
  }
  return out;
}

std::size_t count_placed(const GroupDecision& decision) {
  return static_cast<std::size_t>(std::ranges::count_if(decision.members, [](const MemberDecision& one) { return one.has_place(); }));
}

GroupDecision place_group(Trial& trial, const GroupQuestion& question) {
  GroupDecision out = decide_group(trial, question);
  if (out.outcome != GroupDecision::Outcome::kScheduled) return out;
  Attempt attempt(trial);
  for (std::size_t i = 0; i < out.members.size(); ++i) {
    if (!out.members[i].has_place()) continue;
    const Status status = trial.place_on(question.members[i], out.members[i].decision.node);
    if (status.is_success()) continue;
    out.outcome = GroupDecision::Outcome::kError;
    out.message = fmt::format("{} could not be given its place: {}", question.members[i]->key, status.message());
    return out;
  }
  attempt.keep();
  return out;
}

PodGroup one_by_one(const PodGroup& group) {
  PodGroup out = group;
  out.is_gang = false;
  out.min_count = 1;
  out.topology_key.clear();
  out.levels.clear();
  out.mistake.clear();
  return out;
}

}  // namespace berth::placement
