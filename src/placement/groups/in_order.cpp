#include "placement/groups/in_order.h"

#include <algorithm>
#include <numeric>

#include "placement/attempt.h"

namespace berth::placement {

std::int64_t GroupDecision::placed_count() const {
  return std::ranges::count_if(members, [](const MemberDecision& one) { return one.has_place(); });
}

bool place_member(Trial& trial, const PodInfoPtr& pod, MemberDecision& out) {
  out.decision = trial.decide(pod);
  out.decision.node_name = {};
  if (out.decision.outcome == Decision::Outcome::kError && trial.cluster().node_count() == 0) {
    out.decision.outcome = Decision::Outcome::kUnschedulable;  // Nobody is to blame, and nodes may come.
    return true;
  }
  if (out.has_place()) {
    const auto reserved = trial.reserve(pod, out.decision.node);
    if (!reserved) {
      out.decision.outcome = Decision::Outcome::kError;
      out.decision.error = reserved.error().message();
    }
  }
  return out.decision.outcome != Decision::Outcome::kError;
}

void fail_by(const MemberDecision& member, GroupDecision& out) {
  out.outcome = GroupDecision::Outcome::kError;
  out.message = "failed to schedule other pod from a pod group: " + member.decision.error;
}

void note_rejections(const GroupDecision& decision, std::set<std::string_view>& rejected_by) {
  for (const MemberDecision& one : decision.members)
    if (one.decision.diagnosis != nullptr)
      rejected_by.insert(one.decision.diagnosis->plugins.begin(), one.decision.diagnosis->plugins.end());
}

void settle_outcome(const GroupQuestion& question, GroupDecision& out) {
  const std::int64_t placed = out.placed_count();
  const bool enough = placed > 0 && placed + std::ssize(question.standing) >= question.group->min_count;
  out.outcome = enough ? GroupDecision::Outcome::kScheduled : GroupDecision::Outcome::kUnschedulable;
  out.message = enough ? std::string() : std::string(kGroupUnschedulable);
}

GroupDecision decide_in_order(Trial& trial, const GroupQuestion& question, std::span<const std::size_t> order) {
  GroupDecision out;
  out.members.resize(question.members.size());
  Attempt attempt(trial);
  for (const std::size_t at : order) {
    if (place_member(trial, question.members[at], out.members[at])) continue;
    fail_by(out.members[at], out);
    return out;
  }
  settle_outcome(question, out);
  return out;
}

GroupDecision decide_in_order(Trial& trial, const GroupQuestion& question) {
  std::vector<std::size_t> order(question.members.size());
  std::iota(order.begin(), order.end(), 0);
  return decide_in_order(trial, question, order);
}

}  // namespace berth::placement
