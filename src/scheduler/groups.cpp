// Groups of pods (PodGroup, scheduling.k8s.io/v1alpha2): several pods, one decision. Members stand in the queue as themselves, and whoever
// comes up first brings all that wait.
//
//   a member's turn --> all that wait --> one decision --> enough have a place: they are held, all of them, then bound as any pod is
//                                                  |          the others wait, each for what rejected it
//                                                  +--> too few: nobody is held; victims for the whole group? --> all wait
//
// A PodGroup that is not there yet, or has too few pods, keeps its members gated; what comes opens the gate (PreEnqueue).
#include <fmt/format.h>

#include <algorithm>

#include "placement/groups/group_placement.h"
#include "placement/groups/group_preemption.h"
#include "placement/preemption_words.h"
#include "scheduler/core.h"

namespace berth::scheduler {

using client::ObjectRef;
using placement::GroupDecision;
using placement::NodeIndex;
using placement::PodGroup;
using placement::PodInfoPtr;
using placement::standing_of;
using placement::Status;

namespace {

const client::Gvr kPodGroups{"scheduling.k8s.io", "v1alpha2", "podgroups"};
constexpr std::string_view kCondition = "PodGroupScheduled";
constexpr std::string_view kOneProfile =
    "all pods in a single pod group should have the same .spec.schedulerName set, got: \"{}\" and \"{}\"";

Status too_few() {
  return Status{placement::Code::kUnschedulableAndUnresolvable,
                kGangScheduling,
                {"waiting for minCount pods from a gang to appear in scheduling queue"}};
}

}  // namespace

client::ObjectReference Core::reference(const PodGroup& group) {
  client::ObjectReference out;
  out.api_version = "scheduling.k8s.io/v1alpha2";
  out.kind = "PodGroup";
  out.ns = group.ns;
  out.name = group.name;
  out.uid = group.uid;
  return out;
}

// What the watch shows.

void Core::group_changed(const ObjectRef& before, const ObjectRef& after) {
  const client::Object& either = after != nullptr ? *after : *before;
  const std::string key = either.key();
  if (after == nullptr) {
    wait_no_longer(key);
    groups.remove(key);
    group_conditions.erase(key);
    group_preempting.erase(key);
  } else {
    const json::Value document = after->document();
    const auto group = std::make_shared<const PodGroup>(PodGroup::parse(document));
    const auto was = groups.find(key);
    const bool is_changed = was != nullptr && !was->asks_the_same(*group);
    if (is_changed) wait_no_longer(key, "the group was changed");
    groups.upsert(group);
    if (is_changed) wake_members(key);
    for (const json::Value& one : json::get_array(document, {"status", "conditions"}))
      if (json::get_string(one, {"type"}) == kCondition)
        group_conditions[key] = {std::string(json::get_string(one, {"status"})), std::string(json::get_string(one, {"reason"})),
                                 std::string(json::get_string(one, {"message"}))};
  }
  if (are_groups_on()) ask_gates_of_group(key);
  watch_completeness(key);
}

void Core::watch_completeness(const std::string& key) {
  if (!are_groups_on() || group_options.as_kubernetes || group_options.incomplete_after == Duration(0)) return;
  const placement::PodGroupPtr group = groups.find(key);
  const auto count = static_cast<std::int64_t>(groups.count(key));
  // One that was placed has fewer as its pods end.
  const auto said = group_conditions.find(key);
  const bool was_placed = said != group_conditions.end() && said->second.status == "True";
  const bool is_incomplete = group != nullptr && group->is_gang && !was_placed && count > 0 && count < group->min_count;
  const auto known = incomplete_groups.find(key);
  if (is_incomplete && known == incomplete_groups.end())
    incomplete_groups[key] = out.at(now + group_options.incomplete_after, [this, key] { tell_incomplete(key); });
  if (is_incomplete || known == incomplete_groups.end()) return;
  out.cancel(known->second);
  incomplete_groups.erase(known);
}

void Core::tell_incomplete(const std::string& key) {
  incomplete_groups.erase(key);
  if (!is_leader) return watch_completeness(key);  // Who leads says it; that may be us by then.
  const placement::PodGroupPtr group = groups.find(key);
  const auto members = groups.members(key);
  const std::string message = fmt::format("{} of the {} pods that the gang needs (minCount) are there", members.size(), group->min_count);
  const Tracked* one = wanting(members.front().uid);
  const std::string profile = one != nullptr ? one->info->view().scheduler_name : frameworks.begin()->first;
  out.report(profile, reference(*group), "Warning", "WaitingForPods", message, "Scheduling");
  set_group_condition(*group, {"False", "Unschedulable", message});
}

void Core::note_member(const client::Object& object, const PodGlance& glance, bool is_there) {
  const std::string key = fmt::format("{}/{}", object.ns(), glance.group);
  const bool counts = is_there && !glance.is_terminal();
  const bool has_changed = counts ? groups.add_member(key, {object.uid(), object.key()}) : groups.remove_member(key, object.uid());
  if (has_changed && counts && are_groups_on()) ask_gates_of_group(key);
  if (has_changed) watch_completeness(key);
  const placement::PodGroupPtr group = has_changed && group_waits.contains(key) ? groups.find(key) : nullptr;
  if (group != nullptr && static_cast<std::int64_t>(groups.count(key)) < group->min_count)
    wait_no_longer(key, "the gang has fewer pods than its minCount");
}

Status Core::gate_of(const model::PodView& pod) const {
  Status gate = frameworks.at(pod.scheduler_name)->run_pre_enqueue(pod, &cluster);
  const std::string& key = groups.group_of(pod.meta.uid);
  if (!gate.is_success() || !are_groups_on() || key.empty()) return gate;
  const placement::PodGroupPtr group = groups.find(key);
  if (group == nullptr)
    return Status{placement::Code::kUnschedulableAndUnresolvable,
                  kGangScheduling,
                  {fmt::format("waiting for pods's pod group \"{}\" to appear in scheduling queue", key.substr(pod.meta.ns.size() + 1))}};
  if (group->is_gang && static_cast<std::int64_t>(groups.count(key)) < group->min_count) return too_few();
  return gate;
}

bool Core::waits_for_group(PluginSet rejected_by) const {
  const auto names = bits.names(rejected_by);
  return std::ranges::find(names, kGangScheduling) != names.end();
}

/// Whatever rejected them: the group asks for something else, or fewer of it are missing.
void Core::wake_members(const std::string& key) {
  if (!are_groups_on()) return;
  for (const auto& member : groups.members(key))
    if (wanting(member.uid) != nullptr) wake_pod(member.uid);
}

/// Those that are gated are asked again; those that wait for others of the group are tried again.
void Core::ask_gates_of_group(const std::string& key) {
  for (const auto& member : groups.members(key)) {
    Tracked* pod = wanting(member.uid);
    if (pod == nullptr) continue;
    if (pod->gated_by == kGangScheduling) {
      ask_gate(*pod);
    } else if (const auto* queued = queue.find(member.uid); queued != nullptr && waits_for_group(queued->rejected_by)) {
      wake_pod(member.uid);
    }
  }
}

// The cycle.

std::vector<Turn> Core::gather_group(const SchedulingQueue::Entry& entry, const std::string& key) {
  std::vector<Turn> out;
  for (const auto& member : groups.members(key)) {
    Tracked* pod = wanting(member.uid);
    if (pod == nullptr || pod->as<Aside>() != nullptr || pod->as<Asking>() != nullptr) continue;
    const auto taken = member.uid == entry.pod.uid ? std::optional(entry) : queue.take(member.uid, now);
    if (!taken) continue;
    stop_preempting(*pod);
    const PodInfoPtr info = pod->info;
    if (pod->object->is_deleting()) {
      this->out.report(info->view().scheduler_name, reference(*pod->object), "Warning", "FailedScheduling",
                       fmt::format("skip schedule deleting pod: {}", info->key), "Scheduling");
      forget_waiting(member.uid);
      continue;
    }
    if (const Status gate = gate_of(info->view()); !gate.is_success()) {
      set_gate(*pod, gate.plugin);
      queue.shut_gate(member.uid);
      continue;
    }
    out.push_back({.entry = *taken, .info = info, .framework = frameworks.at(info->view().scheduler_name), .started = meters.start()});
  }
  std::ranges::stable_sort(out, std::greater(), [](const Turn& one) { return one.info->view().priority; });
  return out;
}

bool Core::agree_on_profile(const std::vector<Turn>& turns) {
  const std::string& name = turns.front().info->view().scheduler_name;
  const auto other = std::ranges::find_if(turns, [&](const Turn& one) { return one.info->view().scheduler_name != name; });
  if (other == turns.end()) return true;
  const std::string message = fmt::format(kOneProfile, other->info->view().scheduler_name, name);
  for (const Turn& one : turns) {
    report_error(one.info, message);
    queue.failed(one.entry.pod.uid, now);
  }
  return false;
}

void Core::schedule_group(const SchedulingQueue::Entry& entry, const std::string& key) {
  if (const auto waiter = group_preempting.find(key); waiter != group_preempting.end() && waiter->second != entry.pod.uid) {
    // Their room is being made: what is decided now would be decided twice.
    if (Tracked* other = wanting(waiter->second); other != nullptr && other->as<Preempting>() != nullptr) {
      other->as<Preempting>()->missed_event = true;
      const Tracked& mine = pods.at(entry.pod.uid);
      const auto& framework = frameworks.at(mine.info->view().scheduler_name);
      return queue.unschedulable(entry.pod.uid, bits.set_of(std::array{kGangScheduling}, *framework), now);
    }
  }
  GroupTurn turn{.group = groups.find(key), .turns = gather_group(entry, key), .members = {}, .started = meters.start()};
  group_preempting.erase(key);
  if (turn.turns.empty() || turn.group == nullptr || !agree_on_profile(turn.turns)) return;
  for (const Turn& one : turn.turns) turn.members.push_back(one.info);
  if (!turn.group->mistake.empty() && !group_options.as_kubernetes) return reject_for_mistake(turn);
  if (group_options.order_members) {
    group_options.order_members(turn.members);
    std::ranges::sort(turn.turns, {}, [&](const Turn& one) { return std::ranges::find(turn.members, one.info); });
  }
  placement::GroupQuestion question{.group = turn.group.get(),
                                    .members = turn.members,
                                    .standing = standing_of(groups, cluster, key),
                                    .by_topology = group_options.topology,
                                    .pick = group_options.pick_domain,
                                    .as_kubernetes = group_options.as_kubernetes,
                                    .budgets_are_hard = has_hard_budgets(*turn.turns.front().framework)};
  const auto own_room = reservations.find(key);
  if (own_room != reservations.end()) lift_stand_ins(own_room->second);
  GroupDecision decision = decide_group_beside_rooms(question);
  const std::string& profile = turn.members.front()->view().scheduler_name;
  meters.group_algorithm(meters.since(turn.started));
  const char* result = "scheduled";
  switch (decision.outcome) {
    case GroupDecision::Outcome::kScheduled:
      if (has_say_about(turn)) {
        wait_no_longer(key);  // It earns its room anew, should it not be placed.
        return ask_about_group(std::move(turn), std::move(decision));
      }
      place_group(turn, decision);
      wait_no_longer(key);
      break;
    case GroupDecision::Outcome::kUnschedulable:
      result = give_up_group_for_now(turn, question, decision) ? "waiting_on_preemption" : "unschedulable";
      break;
    case GroupDecision::Outcome::kError:
      result = "error";
      if (own_room != reservations.end()) put_stand_ins(own_room->second);
      fail_group(turn, decision);
      break;
  }
  meters.group_attempt(result, profile, meters.since(turn.started));
}

/// True: it waits for victims.
bool Core::give_up_group_for_now(const GroupTurn& turn, const placement::GroupQuestion& question, GroupDecision& decision) {
  const std::string key = turn.group->key();
  std::string message;
  if (!group_options.as_kubernetes) decision.message += others_of(turn, decision);
  const auto rejected_by = rejectors_of(*turn.group, decision);
  const GroupOutlook outlook = group_options.preemption ? preempt_for_group(turn, question, decision, message) : GroupOutlook::kNothing;
  if (!message.empty()) decision.message += ", " + message;
  if (const auto own_room = reservations.find(key); own_room != reservations.end()) put_stand_ins(own_room->second);
  const bool waits = outlook != GroupOutlook::kNothing;
  if (waits)
    wait_no_longer(key);  // The places that victims leave are promised to the members themselves.
  else if (const std::string kept = wait_longer(turn, question); !kept.empty())
    decision.message += ", " + kept;
  reject_group(turn, decision, rejected_by, outlook);
  return waits;
}

/// Members that nobody here decides about, where all others would have a place.
std::string Core::others_of(const GroupTurn& turn, const GroupDecision& decision) const {
  if (decision.placed_count() < std::ssize(turn.members)) return {};
  const auto members = groups.members(turn.group->key());
  const auto others =
      std::ranges::count_if(members, [&](const auto& one) { return !pods.contains(one.uid) && !cluster.pod_node(one.pod_key).is_valid(); });
  return others == 0 ? std::string() : fmt::format(", {} of its pods are another scheduler's (spec.schedulerName)", others);
}

/// Nothing is placed on a guess; a new revision of the group wakes its members.
void Core::reject_for_mistake(const GroupTurn& turn) {
  out.report(turn.members.front()->view().scheduler_name, reference(*turn.group), "Warning", "InvalidTopology", turn.group->mistake,
             "Scheduling");
  reject_group(turn, {GroupDecision::Outcome::kUnschedulable, {}, turn.group->mistake}, {kGangScheduling}, GroupOutlook::kNothing);
}

bool Core::has_hard_budgets(const placement::Framework& framework) const {
  return options.preemption.budgets_are_hard || framework.profile().args.preemption.budgets_are_hard;
}

std::int64_t Core::count_standing(const std::string& key) const { return std::ssize(standing_of(groups, cluster, key)); }

void Core::place_group(const GroupTurn& turn, const GroupDecision& decision) {
  std::vector<HeldPtr> held;
  for (std::size_t i = 0; i < turn.turns.size(); ++i)
    if (decision.members[i].has_place())
      if (HeldPtr one = hold_place(turn.turns[i], decision.members[i].decision.node)) held.push_back(std::move(one));
  for (std::size_t i = 0; i < turn.turns.size(); ++i)
    if (!decision.members[i].has_place()) reject_member(turn.turns[i], *turn.group, decision.members[i].decision.diagnosis);
  if (count_standing(turn.group->key()) < turn.group->min_count) {
    // What Reserve refused is missing: nobody goes on alone.
    for (const HeldPtr& one : held) not_permitted(one, Status::unschedulable(std::string(placement::kWaitsForOthers)));
    return;
  }
  for (const HeldPtr& one : held)
    if (holder(one) != nullptr) permit(one);
  set_group_condition(*turn.group, {"True", "Scheduled", ""});
}

/// What is to happen before it is worth deciding again. It is taken from the decision as it was made: in the one that victims allow, those
/// have a place who lack it now.
std::vector<std::string_view> Core::rejectors_of(const PodGroup& group, const GroupDecision& decision) const {
  std::set<std::string_view> out = decision.rejected_by;
  for (const placement::MemberDecision& one : decision.members)
    if (one.decision.diagnosis != nullptr) out.insert(one.decision.diagnosis->plugins.begin(), one.decision.diagnosis->plugins.end());
  if (out.empty()) out.insert(kGangScheduling);
  const std::vector<placement::TopologyLevel> levels = group.all_levels();
  if (group_options.topology && std::ranges::any_of(levels, &placement::TopologyLevel::is_required)) out.insert(kGroupDomains);
  return {out.begin(), out.end()};
}

void Core::reject_group(const GroupTurn& turn, const GroupDecision& decision, const std::vector<std::string_view>& rejected_by,
                        GroupOutlook outlook) {
  for (std::size_t i = 0; i < turn.turns.size(); ++i) {
    Turn one = turn.turns[i];
    one.mates_rejected_by = rejected_by;
    const placement::MemberDecision* mine = i < decision.members.size() ? &decision.members[i] : nullptr;
    if (mine != nullptr && mine->decision.diagnosis != nullptr) {
      reject_member(one, *turn.group, mine->decision.diagnosis, outlook == GroupOutlook::kPromised);
      continue;
    }
    const std::string& uid = one.entry.pod.uid;
    meters.attempt("unschedulable", *one.info, meters.since(one.started));
    const bool has_place = mine != nullptr && mine->has_place();
    Tracked& tracked = pods.at(uid);
    std::string node_name = outlook == GroupOutlook::kPromised ? tracked.nominated() : std::string();
    if (outlook == GroupOutlook::kVictims && has_place) node_name = cluster.node(mine->decision.node)->name;
    set_nominated(tracked, node_name);
    queue.unschedulable(uid, bits.set_of(rejected_by, *one.framework), now,
                        kinds_of_pods.of(*one.framework, *tracked.info, tracked.nominated()));
    const bool says_all = outlook != GroupOutlook::kNothing || !has_place;
    report_failure(one.info, "Unschedulable", says_all ? decision.message : std::string(placement::kWaitsForOthers), node_name);
  }
  set_group_condition(*turn.group, {"False", "Unschedulable", decision.message});
}

void Core::reject_member(Turn turn, const PodGroup& group, std::shared_ptr<const placement::Diagnosis> diagnosis, bool keeps_promise) {
  meters.attempt("unschedulable", *turn.info, meters.since(turn.started));
  const bool by_domains = group_options.as_kubernetes && group_options.topology && group.has_constraints;
  const std::string_view why = by_domains                 ? "not eligible due to placement-based pod group scheduling limitation"
                               : group_options.preemption ? "not eligible due to workload aware preemption enabled"
                                                          : placement::words::kNotHelpful;
  if (diagnosis == nullptr) diagnosis = std::make_shared<placement::Diagnosis>();
  turn.diagnosis = std::move(diagnosis);
  const std::string after = placement::words::refused(why, *turn.framework).message();
  Tracked& mine = pods.at(turn.entry.pod.uid);
  std::optional<std::string> nominate;
  if (!keeps_promise && !mine.nominated().empty()) set_nominated(mine, nominate.emplace());
  rejected(turn, after, nominate);
}

void Core::fail_group(const GroupTurn& turn, const GroupDecision& decision) {
  for (std::size_t i = 0; i < turn.turns.size(); ++i) {
    const Turn& one = turn.turns[i];
    meters.attempt("error", *one.info, meters.since(one.started));
    const bool is_own = i < decision.members.size() && decision.members[i].decision.outcome == placement::Decision::Outcome::kError;
    report_error(one.info, is_own ? decision.members[i].decision.error : decision.message);
    queue.failed(one.entry.pod.uid, now);
  }
  set_group_condition(*turn.group, {"False", "SchedulerError", decision.message});
}

Core::GroupOutlook Core::preempt_for_group(const GroupTurn& turn, const placement::GroupQuestion& question, GroupDecision& decision,
                                           std::string& message) {
  if (turn.turns.front().framework->profile().post_filter.empty()) {
    message = "default preemption plugin is not registered, workload aware preemption is disabled";
    return GroupOutlook::kNothing;
  }
  placement::GroupVictims found = placement::find_group_victims(trial, question, groups);
  if (!found.status.is_success()) {
    message = found.status.message();
    return found.is_waiting && !group_options.as_kubernetes ? GroupOutlook::kPromised : GroupOutlook::kNothing;
  }
  const std::string waiter = turn.turns.front().entry.pod.uid;
  const Preemptor preemptor{turn.members.front()->view().scheduler_name, "podgroup", "podgroup " + turn.group->uid, reference(*turn.group),
                            "cluster"};
  // The room that comes is theirs: each is promised the node that it was given in thought.
  if (!group_options.as_kubernetes) decision.members = std::move(found.decision.members);
  if (found.victims.empty()) return GroupOutlook::kVictims;
  evict_all(preemptor, waiter, found.victims);
  // Those that go already, or need not be deleted, are not waited for here: their room wakes the members.
  if (pods.at(waiter).as<Preempting>() != nullptr) group_preempting[turn.group->key()] = waiter;
  return GroupOutlook::kVictims;
}

void Core::set_group_condition(const PodGroup& group, GroupCondition condition) {
  const std::string key = group.key();
  if (const auto there = groups.find(key); there == nullptr || there->uid != group.uid) return;  // It went while it was decided about.
  GroupCondition& last = group_conditions[key];
  // What was scheduled once stays so, whatever becomes of pods that come later.
  if (last == condition || (last.status == "True" && condition.status != "True")) return;
  last = condition;
  const ObjectRef object = known(kPodGroups, group.ns, group.name);
  std::string since = format_rfc3339(now);
  json::Object one{{"type", kCondition},
                   {"status", condition.status},
                   {"reason", condition.reason},
                   {"message", condition.message},
                   {"lastTransitionTime", since}};
  if (object != nullptr) {
    const json::Value document = object->document();
    one["observedGeneration"] = json::get_int(document, {"metadata", "generation"});
    for (const json::Value& was : json::get_array(document, {"status", "conditions"}))
      if (json::get_string(was, {"type"}) == kCondition && json::get_string(was, {"status"}) == condition.status)
        one["lastTransitionTime"] = json::get_string(was, {"lastTransitionTime"});
  }
  out.patch(
      kPodGroups, group.ns, group.name, client::PatchType::kStrategicMerge,
      {{"metadata", {{"uid", group.uid}}}, {"status", {{"conditions", json::Array{std::move(one)}}}}},
      [this, key](const client::ApiResult<json::Value>& written) {
        if (!written) group_conditions.erase(key);  // Not there: the next attempt writes it again.
      },
      "status");
}

}  // namespace berth::scheduler
