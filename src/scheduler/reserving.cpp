// Room that is kept for a gang, so that small pods do not overtake it for ever.
//
//   waits since reservation_after, no victim helps --> where does it come to its places soonest? --> stand-ins of its members are nominated
//       ^                                                                                            there: pods of no higher priority pass
//       |                                                                                            by, as they pass by a promised node
//       +-- given back: the gang has its places, is deleted, changed, or lost members; reservation_for is over; leadership is lost
//
// Who came before the gang, or ends before it could start (activeDeadlineSeconds), is decided about again without the stand-ins.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json_scan.h"
#include "placement/attempt.h"
#include "placement/groups/group_reservation.h"
#include "scheduler/core.h"

namespace berth::scheduler {

using placement::Decision;
using placement::GroupDecision;
using placement::PodInfo;
using placement::PodInfoPtr;

namespace {

/// Of a stand-in; no pod of the API has such a uid.
constexpr std::string_view kStandIn = "stand-in/";

PodInfoPtr stand_in_of(const PodInfo& member, std::int64_t priority) {
  auto view = std::make_shared<model::PodView>(member.view());
  view->meta.uid = fmt::format("{}{}", kStandIn, view->meta.uid);
  view->meta.name = fmt::format("{}/{}", view->meta.name, kStandIn);
  view->priority = priority;
  view->nominated_node_name.clear();
  return PodInfo::make(std::move(view), placement::Era::k136);
}

std::string shown(TimePoint at) { return format_rfc3339(at); }

}  // namespace

bool Core::is_stand_in(const PodInfo& pod) { return pod.view().meta.uid.starts_with(kStandIn); }

std::optional<Duration> Core::deadline_of(const PodInfo& pod) const {
  static const json::PathScanner scanner({"spec.activeDeadlineSeconds"});
  const client::ObjectRef object = known(kPods, pod.view().meta.ns, pod.view().meta.name);
  std::array<std::string_view, 1> raw;
  std::int64_t seconds = 0;
  const HeldText text = object != nullptr ? object->text() : HeldText();
  if (!text || !scanner.scan(*text, raw) || raw[0].empty()) return std::nullopt;
  if (std::from_chars(raw[0].data(), raw[0].data() + raw[0].size(), seconds).ec != std::errc()) return std::nullopt;
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, 1'000'000'000));
}

std::optional<TimePoint> Core::end_of(const PodInfo& pod) const {
  const auto deadline = deadline_of(pod);
  if (!deadline) return std::nullopt;
  if (pod.start_time_ns == INT64_MAX || pod.start_time_ns <= 0) return now + *deadline;  // It has just been placed.
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(pod.start_time_ns))) + *deadline;
}

std::string Core::wait_longer(const GroupTurn& turn, const placement::GroupQuestion& question) {
  if (group_options.as_kubernetes || group_options.reservation_after == Duration(0) || !turn.group->is_gang) return {};
  if (std::ssize(question.standing) >= turn.group->min_count) return {};  // It runs; who comes on top of it waits as any pod.
  const std::string key = turn.group->key();
  const auto kept = reservations.find(key);
  if (kept != reservations.end()) return kept->second.told;
  GroupWait& wait = group_waits.try_emplace(key, GroupWait{now}).first->second;
  const TimePoint due = wait.since + group_options.reservation_after;
  if (now < due) {
    if (wait.alarm == 0)
      wait.alarm = out.at(due, [this, key] {
        group_waits.at(key).alarm = 0;
        for (const auto& member : groups.members(key)) wake_pod(member.uid);
      });
    return {};
  }
  if (reservations.size() >= group_options.most_reservations) return {};
  const auto plan = placement::plan_reservation(trial, question, [this](const PodInfo& pod) { return end_of(pod); });
  wait.since = now;  // Asked again after as long a wait.
  return plan ? keep_room(turn, *plan) : std::string();
}

std::string Core::keep_room(const GroupTurn& turn, const placement::GroupReservation& plan) {
  const std::string key = turn.group->key();
  GroupRoomKept kept{.group = turn.group, .starts_at = plan.starts_at, .until = now + group_options.reservation_for};
  std::set<std::string> nodes;
  for (const auto& [member, node] : plan.places) {
    kept.stand_ins.emplace_back(stand_in_of(*turn.members[member], turn.group->priority), cluster.node(node)->name);
    nodes.insert(kept.stand_ins.back().second);
  }
  kept.alarm = out.at(kept.until, [this, key] {
    reservations.at(key).alarm = 0;
    give_room_back(key, "the gang did not come to its places in time");
  });
  const std::string where = plan.domain.empty() ? std::string() : fmt::format(" in {}", plan.domain);
  kept.told = fmt::format("room is kept for it on {} node(s){} until {}", nodes.size(), where, shown(kept.until));
  const std::string start = plan.starts_at
                                ? fmt::format("the last pod in the way ends at {}", shown(*plan.starts_at))
                                : fmt::format("{} pod(s) are in the way, and when the last of them ends is not known", plan.in_the_way);
  out.report(turn.members.front()->view().scheduler_name, reference(*turn.group), "Normal", "RoomKept",
             fmt::format("{} from pods of priority {} and lower that came later: {}", kept.told, turn.group->priority, start),
             "Scheduling");
  const std::string told = kept.told;
  put_stand_ins(reservations.insert_or_assign(key, std::move(kept)).first->second);
  return told;
}

void Core::put_stand_ins(const GroupRoomKept& kept) {
  for (const auto& [pod, node] : kept.stand_ins) cluster.nominate(pod, node);
}

void Core::lift_stand_ins(const GroupRoomKept& kept) {
  for (const auto& [pod, node] : kept.stand_ins) cluster.nominate(pod, "");
}

void Core::give_room_back(const std::string& key, std::string_view why) {
  const auto found = reservations.find(key);
  if (found == reservations.end()) return;
  const GroupRoomKept kept = std::move(found->second);
  reservations.erase(found);
  if (kept.alarm != 0) out.cancel(kept.alarm);
  lift_stand_ins(kept);
  if (!why.empty() && is_leader)
    out.report(kept.stand_ins.front().first->view().scheduler_name, reference(*kept.group), "Normal", "RoomGivenBack",
               fmt::format("room is kept no longer: {}", why), "Scheduling");
  if (const auto wait = group_waits.find(key); wait != group_waits.end()) wait->second.since = now;
  std::set<std::string_view> woken;
  for (const auto& [pod, node] : kept.stand_ins)
    if (woken.insert(node).second) wake_for_nomination(pod, node);
}

void Core::wait_no_longer(const std::string& key, std::string_view why) {
  give_room_back(key, why);
  const auto wait = group_waits.find(key);
  if (wait == group_waits.end()) return;
  if (wait->second.alarm != 0) out.cancel(wait->second.alarm);
  group_waits.erase(wait);
}

bool Core::passes_by(const PodInfo& pod, const GroupRoomKept& kept) const {
  const std::string& created = pod.view().meta.creation_timestamp;
  if (!created.empty() && !kept.group->created.empty() && created < kept.group->created) return true;
  if (!kept.starts_at) return false;
  const auto deadline = deadline_of(pod);
  return deadline && now + *deadline <= *kept.starts_at;
}

Core::BesideRooms::BesideRooms(Core& core, std::span<const PodInfoPtr> pods, bool all) : core_(core) {
  for (const auto& [key, kept] : core.reservations) {
    const bool may_pass = all || std::ranges::all_of(pods, [&](const PodInfoPtr& pod) { return core.passes_by(*pod, kept); });
    if (!may_pass) continue;
    core.lift_stand_ins(kept);
    lifted_.push_back(&kept);
  }
}

Core::BesideRooms::~BesideRooms() {
  for (const GroupRoomKept* kept : lifted_) core_.put_stand_ins(*kept);
}

Decision Core::decide_beside_rooms(const PodInfoPtr& pod, std::string& held_back) {
  Decision decision = trial.decide(pod);
  if (reservations.empty() || decision.outcome != Decision::Outcome::kUnschedulable) return decision;
  {
    const BesideRooms beside(*this, {&pod, 1}, false);
    if (!beside.empty())
      if (Decision again = trial.decide(pod); again.outcome == Decision::Outcome::kScheduled) return again;
  }
  const BesideRooms beside(*this, {&pod, 1}, true);
  const Decision without = trial.decide(pod);
  if (without.outcome != Decision::Outcome::kScheduled) return decision;
  held_back = rooms_kept_from(pod->view().priority);
  return decision;
}

std::string Core::rooms_kept_from(std::int64_t priority) const {
  std::string out;
  for (const auto& [key, kept] : reservations)
    if (kept.group->priority >= priority)
      out += fmt::format("{}room is kept for pod group {} until {}", out.empty() ? "" : ", ", key, shown(kept.until));
  return out;
}

GroupDecision Core::decide_group_beside_rooms(const placement::GroupQuestion& question) {
  GroupDecision decision = placement::decide_group(trial, question);
  const std::size_t own = reservations.contains(question.group->key()) ? 1 : 0;
  if (decision.outcome != GroupDecision::Outcome::kUnschedulable || reservations.size() == own) return decision;
  for (const bool all : {false, true}) {
    const BesideRooms beside(*this, question.members, all);
    if (beside.empty()) continue;
    GroupDecision again = placement::decide_group(trial, question);
    if (again.outcome != GroupDecision::Outcome::kScheduled) continue;
    if (!all) return again;
    decision.message += ", " + rooms_kept_from(question.group->priority);
  }
  return decision;
}

}  // namespace berth::scheduler
