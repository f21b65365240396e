// A group with members that an HTTP extender has a say about: as kube-scheduler's pod group cycle asks, one member after the other, each as
// if those before it stood already.
//
//   decided by the engine --> member after member: asked about (or where the engine puts it) --> holds its place --> all are through
//                                    | gone, changed, its node too, leadership lost: all give back, try again | enough hold one: all bound
//                                    | the extenders fail: all give back, with the error                   | too few: all give back
//
// Nobody is bound before all are through. Meanwhile nobody else is asked about: whoever is of a group, or of interest, stands aside.
#include <algorithm>

#include "base/check.h"
#include "placement/groups/group_decision.h"
#include "scheduler/core.h"

namespace berth::scheduler {

using placement::Decision;
using placement::GroupDecision;
using placement::Status;

struct Core::AskedGroup {
  GroupTurn turn;
  GroupDecision plan;  ///< The engine's; of members that have no place after all it says so.
  std::vector<HeldPtr> held;
  std::set<std::string> through;  ///< Uids of those whose place was tried to be held.
  std::size_t next = 0;
  std::string domain = {};  ///< Of the group's topology key, that the engine chose; empty: any.
};

bool Core::has_say_about(const GroupTurn& turn) const {
  return extenders != nullptr &&
         std::ranges::any_of(turn.members, [this](const placement::PodInfoPtr& pod) { return extenders->are_interested(pod->view()); });
}

void Core::ask_about_group(GroupTurn turn, GroupDecision plan) {
  BERTH_CHECK(asked.empty() && asked_group == nullptr, "group {} is asked about while {} is", turn.group->key(), asked);
  auto group = std::make_shared<AskedGroup>(AskedGroup{std::move(turn), std::move(plan), {}, {}, 0});
  const std::string& key = group->turn.group->topology_key;
  for (const placement::MemberDecision& one : group->plan.members)
    if (const std::string* domain = key.empty() || !one.has_place() ? nullptr : cluster.node(one.decision.node)->label(key))
      group->domain = *domain;
  // What happens to one of them meanwhile is news to who asks.
  for (const Turn& one : group->turn.turns) pods.at(one.entry.pod.uid).enter(Asking{one, node_changes_seen});
  asked_group = std::move(group);
  go_on_with_group();
}

/// Where members of the group may still be put: in the domain that the engine chose.
bool Core::is_in_domain(placement::NodeIndex node) const {
  if (asked_group->domain.empty()) return true;
  const placement::NodeInfo* info = cluster.node(node);
  const std::string* domain = info != nullptr && info->node != nullptr ? info->label(asked_group->turn.group->topology_key) : nullptr;
  return domain != nullptr && *domain == asked_group->domain;
}

void Core::go_on_with_group() {
  AskedGroup& group = *asked_group;
  for (; group.next < group.turn.turns.size(); ++group.next) {
    const Turn& turn = group.turn.turns[group.next];
    placement::MemberDecision& mine = group.plan.members[group.next];
    Tracked* pod = wanting(turn.entry.pod.uid);
    if (pod == nullptr || pod->as<Asking>() == nullptr || pod->info != turn.info) return abandon_group(true);
    // Also who has no place in the plan: extenders may have refused another, whose room is left.
    auto evaluation = std::make_shared<placement::Evaluation>(trial.evaluate(*turn.info));
    std::erase_if(evaluation->feasible, [this](const auto& one) { return !is_in_domain(one.node); });
    if (evaluation->feasible.empty()) {
      mine.decision.outcome = Decision::Outcome::kUnschedulable;  // Others of it took what there was.
      continue;
    }
    if (extenders->are_interested(turn.info->view())) {
      asked = turn.entry.pod.uid;
      out.ask<AskForNode>(
          [this, uid = asked](Answer& answer) {
            auto& chosen = std::get<Chosen>(answer);
            group_answered(uid, chosen.decision, chosen.node_name);
          },
          turn.info, pod->object, evaluation);
      return;
    }
    const bool is_kept = mine.has_place() && is_in_domain(mine.decision.node) && trial.fits(turn.info, mine.decision.node).is_success();
    const auto best = std::ranges::max_element(evaluation->feasible, {}, [](const auto& one) { return one.total; });
    hold_member(is_kept ? mine.decision.node : best->node);
  }
  finish_group();
}

void Core::hold_member(placement::NodeIndex node) {
  const Turn turn = asked_group->turn.turns[asked_group->next];
  pods.at(turn.entry.pod.uid).enter(Queued{});
  asked_group->through.insert(turn.entry.pod.uid);
  if (HeldPtr held = hold_place(turn, node)) asked_group->held.push_back(std::move(held));
}

void Core::group_answered(const std::string& uid, const Decision& decision, const std::string& node_name) {
  BERTH_CHECK(asked == uid && asked_group != nullptr, "extenders answered about the pod {}, and were asked about \"{}\"", uid, asked);
  asked.clear();
  post_turn();
  AskedGroup& group = *asked_group;
  Tracked* pod = wanting(uid);
  const Turn& turn = group.turn.turns[group.next];
  if (!is_leader || pod == nullptr || pod->as<Asking>() == nullptr || pod->info != turn.info) return abandon_group(is_leader);
  if (decision.outcome == Decision::Outcome::kError) {
    const std::string error = decision.error;
    const std::string about = turn.info->key;
    return fail_asked_group(about, error);
  }
  placement::MemberDecision& mine = group.plan.members[group.next];
  const placement::NodeInfo* node = decision.outcome == Decision::Outcome::kScheduled ? cluster.find_node(node_name) : nullptr;
  if (node != nullptr && node->node != nullptr && is_in_domain(node->index) && trial.fits(turn.info, node->index).is_success()) {
    hold_member(node->index);
  } else if (decision.outcome == Decision::Outcome::kScheduled) {
    return abandon_group(false);  // The node went, or is full by now: an extender may name it again.
  } else {
    mine.decision.outcome = Decision::Outcome::kUnschedulable;
    mine.decision.diagnosis = decision.diagnosis;
  }
  ++group.next;
  go_on_with_group();
}

/// All are through: enough of them hold a place, or nobody keeps one.
void Core::finish_group() {
  const auto group = std::exchange(asked_group, nullptr);
  const GroupTurn& turn = group->turn;
  for (std::size_t i = 0; i < turn.turns.size(); ++i) {
    const std::string& uid = turn.turns[i].entry.pod.uid;
    Tracked* pod = wanting(uid);
    if (group->through.contains(uid) || pod == nullptr || pod->as<Asking>() == nullptr) continue;
    pod->enter(Queued{});
    reject_member(turn.turns[i], *turn.group, group->plan.members[i].decision.diagnosis);
  }
  if (count_standing(turn.group->key()) >= turn.group->min_count) {
    for (const HeldPtr& one : group->held)
      if (holder(one) != nullptr) permit(one);
    set_group_condition(*turn.group, {"True", "Scheduled", ""});
    return meters.group_attempt("scheduled", turn.members.front()->view().scheduler_name, meters.since(turn.started));
  }
  for (const HeldPtr& one : group->held) not_permitted(one, Status::unschedulable(std::string(placement::kWaitsForOthers)));
  set_group_condition(*turn.group, {"False", "Unschedulable", "pod group is unschedulable"});
  meters.group_attempt("unschedulable", turn.members.front()->view().scheduler_name, meters.since(turn.started));
}

/// What was decided is of another state of things: everybody gives back, and tries again; `at_once`: without a pause.
void Core::abandon_group(bool at_once) {
  const auto group = std::exchange(asked_group, nullptr);
  for (const HeldPtr& one : group->held)
    if (take_place_from(one) != nullptr) queue.failed(one->entry.pod.uid, now);
  for (const Turn& one : group->turn.turns) {
    const std::string& uid = one.entry.pod.uid;
    Tracked* pod = wanting(uid);
    if (pod == nullptr) continue;
    if (!group->through.contains(uid) && pod->as<Asking>() != nullptr) {
      pod->enter(Queued{});
      queue.failed(uid, now);
    }
    if (at_once) queue.activate(uid);
  }
}

void Core::fail_asked_group(const std::string& about, const std::string& error) {
  const auto group = std::exchange(asked_group, nullptr);
  for (const HeldPtr& one : group->held) not_permitted(one, Status::unschedulable(std::string(placement::kWaitsForOthers)));
  for (const Turn& one : group->turn.turns) {
    const std::string& uid = one.entry.pod.uid;
    Tracked* pod = wanting(uid);
    if (group->through.contains(uid) || pod == nullptr || pod->as<Asking>() == nullptr) continue;
    pod->enter(Queued{});
    meters.attempt("error", *one.info, meters.since(one.started));
    report_error(one.info, one.info->key == about ? error : "failed to schedule other pod from a pod group: " + error);
    queue.failed(uid, now);
  }
  set_group_condition(*group->turn.group, {"False", "SchedulerError", "failed to schedule other pod from a pod group: " + error});
  meters.group_attempt("error", group->turn.members.front()->view().scheduler_name, meters.since(group->turn.started));
}

}  // namespace berth::scheduler
