// Pods that fit nowhere: preemption, the nomination, the condition and the event.
//
// The nomination is written first, then every victim gets its condition and its deletion, all without waiting. The preemptor is not tried
// again before the watch shows all victims going (or an eviction failed): another plan made in between could evict others in vain.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "placement/topology_keys.h"
#include "scheduler/core.h"

namespace berth::scheduler {

using client::ObjectRef;
using placement::FrameworkPtr;
using placement::PodInfoPtr;

namespace {

/// A pod condition as a strategic merge patch of this very pod's status; `since` is when its status last changed.
json::Value condition_patch(const client::Object& pod, std::string_view type, std::string_view status, std::string_view reason,
                            const std::string& message, const std::string& since) {
  const PodGlance glance(pod.text());
  const std::string_view generation = glance.generation;
  json::Object condition = {{"type", type},     {"status", status},  {"lastProbeTime", nullptr}, {"lastTransitionTime", since},
                            {"reason", reason}, {"message", message}};
  std::int64_t number = 0;
  if (std::from_chars(generation.data(), generation.data() + generation.size(), number).ec == std::errc())
    condition["observedGeneration"] = number;
  return {{"metadata", {{"uid", pod.uid()}}}, {"status", {{"conditions", json::Array{std::move(condition)}}}}};
}

}  // namespace

void Core::give_up_for_now(Turn turn) {
  if (turn.framework->profile().post_filter.empty()) return rejected(turn, "", std::nullopt);
  const TimePoint start = meters.start();
  placement::PostFilterResult result = find_room(turn);
  meters.point("PostFilter", turn.info->view().scheduler_name, meters.since(start),
               result.status.is_success() ? "Success"
               : result.status.is_error() ? "Error"
                                          : "Unschedulable");
  const bool extenders_have_a_say = extenders != nullptr && extenders->preempt_for(turn.info->view()) && !result.candidates.empty();
  if (extenders_have_a_say)
    ask_about_preemption(std::move(turn), std::move(result));
  else
    give_up_after(std::move(turn), result);
}

void Core::give_up_after(Turn turn, const placement::PostFilterResult& result) {
  const std::string message = result.status.message();
  if (result.release) release_claim(*result.release);
  Tracked& mine = pods.at(turn.entry.pod.uid);
  // After a PreFilter that rejected the pod for good, the plugins before DefaultPreemption fail already.
  const bool was_asked = result.status.code != placement::Code::kError || turn.diagnosis->pre_filter.is_success();
  if (was_asked)
    meters.registry().counter("scheduler_preemption_attempts_total", "Total preemption attempts in the cluster till now").add();
  std::optional<std::string> nominate;
  if (const placement::Candidate* choice = result.choice()) {
    nominate = preempt(turn.info, *choice);
  } else if (!result.waits_for_victims && (!mine.nominated().empty() || !PodGlance(mine.object->text()).nominated.empty())) {
    nominate = "";  // The room that was promised will not come, whoever promised it.
  }
  if (nominate) set_nominated(mine, *nominate);
  rejected(turn, message, nominate);
}

void Core::rejected(const Turn& turn, const std::string& post_filter_message, const std::optional<std::string>& nominate) {
  const placement::Framework& framework = *turn.framework;
  const std::string& uid = turn.entry.pod.uid;
  PluginSet rejected_by = bits.set_of(turn.diagnosis->plugins, framework);
  if (rejected_by != 0) rejected_by |= bits.set_of(turn.mates_rejected_by, framework);
  if (has_hard_budgets(framework) && rejected_by != 0 && !framework.profile().post_filter.empty())
    rejected_by |= bits.set_of(std::array{kDisruptionBudgets}, framework);
  const Tracked& mine = pods.at(uid);
  queue.unschedulable(uid, rejected_by, now, kinds_of_pods.of(framework, *mine.info, mine.nominated()));
  std::string message = placement::fit_error_message(*turn.diagnosis, framework.profile().era, post_filter_message);
  if (!turn.held_back.empty()) message += " It would fit, but " + turn.held_back + ".";
  report_failure(turn.info, "Unschedulable", message, nominate);
  // What happened while extenders were asked could have helped.
  if (!turn.missed.empty() && (rejected_by == 0 || (rejected_by & bits.cured_by(turn.missed)) != 0)) wake_pod(uid);
}

placement::PostFilterResult Core::find_room(const Turn& turn) {
  const bool every_candidate_counts = turn.refused || (extenders != nullptr && extenders->preempt_for(turn.info->view()));
  if (!every_candidate_counts) return trial.victims_for(turn.info);
  const placement::Evaluation evaluation = turn.refused ? *turn.refused : trial.evaluate(*turn.info);
  return trial.victims_for(turn.info, &evaluation);
}

Core::Preemptor Core::as_preemptor(const PodInfoPtr& pod, const std::string& node_name) const {
  const bool is_old = cluster.era() == placement::Era::k120;
  return {pod->view().scheduler_name, "pod", is_old ? pod->key : "pod " + pod->view().meta.uid, reference(*pod), node_name};
}

void Core::evict_all(const Preemptor& preemptor, const std::string& waiter, const std::vector<PodInfoPtr>& victims) {
  Preempting open;
  std::vector<std::pair<PodInfoPtr, ObjectRef>> going;
  std::vector<HeldPtr> called_off;
  std::vector<std::string> names;
  for (const PodInfoPtr& victim : victims) {
    names.push_back(victim->key);
    if (const auto known = pods.find(victim->view().meta.uid); known != pods.end() && can_be_called_off(known->second)) {
      called_off.push_back(known->second.held());
      continue;
    }
    const ObjectRef object = known(kPods, victim->view().meta.ns, victim->view().meta.name);
    if (object == nullptr || object->uid() != victim->view().meta.uid || object->is_deleting()) continue;
    open.victims.insert(object->uid());
    preempted_by[object->uid()].push_back(waiter);
    going.emplace_back(victim, object);
  }
  if (!open.victims.empty()) pods.at(waiter).enter(std::move(open));
  if (going.empty() && called_off.empty()) return;  // All of them go already: nothing is to be done, and nobody loses anything by it.
  meters.registry()
      .histogram("scheduler_preemption_victims", "Number of selected preemption victims", metrics::exponential_buckets(1, 2, 7))
      .observe(static_cast<double>(victims.size()));
  for (const auto& [victim, object] : going) evict(preemptor, victim, object);
  for (const HeldPtr& held : called_off) {
    report_eviction(preemptor, reference(*held->object), " (in kube-scheduler memory).");
    // Later: the preemptor, which is being decided, must be where a freed node wakes it.
    out.later([this, held, preemptor] { call_off(held, preemptor); });
  }
  // With a victim as the related object a second preemption is an event of its own: folded into the first, it would tell of the first's
  // node and pods.
  const client::ObjectReference victim = reference(*victims.front());
  out.report(preemptor.profile, preemptor.by, "Normal", "Preempting",
             fmt::format("Preempting {} pod(s) on {}{}: {}", names.size(), preemptor.type == "pod" ? "node " : "the ", preemptor.where,
                         fmt::join(names, ", ")),
             "Preempting", &victim);
}

std::string Core::preempt(const PodInfoPtr& info, placement::Candidate choice) {
  const model::PodView& preemptor_pod = info->view();
  if (options.on_preemption) options.on_preemption(cluster, info, choice);
  const std::string node_name = cluster.node(choice.node)->name;
  evict_all(as_preemptor(info, node_name), preemptor_pod.meta.uid, choice.victims);

  std::vector<PodInfoPtr> losing;
  for (const PodInfoPtr& other : cluster.nominated(choice.node))
    if (other->view().priority < preemptor_pod.priority && !is_stand_in(*other)) losing.push_back(other);
  for (const PodInfoPtr& other : losing) {
    const std::string& uid = other->view().meta.uid;
    Tracked* loser = wanting(uid);
    if (loser != nullptr)
      set_nominated(*loser, "");
    else
      cluster.nominate(other, "");
    out.patch(kPods, other->view().meta.ns, other->view().meta.name, client::PatchType::kMerge,
              {{"metadata", {{"uid", uid}}}, {"status", {{"nominatedNodeName", nullptr}}}}, {}, "status");
    if (!waits_for_victims(uid)) queue.activate(uid);
  }
  return node_name;
}

bool Core::can_be_called_off(const Tracked& pod) const {
  if (pod.as<AtPermit>() != nullptr) return true;
  return cluster.era() != placement::Era::k120 && pod.held() != nullptr && pod.as<Binding>() == nullptr;
}

/// Its place is for another. Who asked for its node meanwhile has to be evicted.
void Core::call_off(const HeldPtr& held, const Preemptor& preemptor) {
  const Tracked* pod = holder(held);
  if (pod == nullptr) return;
  if (can_be_called_off(*pod)) return binding_failed(held, {"PreBind", "VolumeBinding"}, "preempted by DefaultPreemption");
  evict(preemptor, held->info, held->object);
}

/// Condition DisruptionTarget, then the deletion, then the event.
void Core::evict(const Preemptor& preemptor, const PodInfoPtr& victim, const ObjectRef& object) {
  const std::string message = fmt::format("{}: preempting to accommodate a higher priority {}", preemptor.profile, preemptor.type);
  const json::Value patch = condition_patch(*object, "DisruptionTarget", "True", "PreemptionByScheduler", message, format_rfc3339(now));
  const model::PodView& pod = victim->view();
  out.patch(
      kPods, pod.meta.ns, pod.meta.name, client::PatchType::kStrategicMerge, patch,
      [this, preemptor, victim, object](const client::ApiResult<json::Value>& marked) {
        const model::PodView& pod = victim->view();
        if (!marked && marked.error().code != 404) return eviction_failed(pod.meta.uid, marked.error().message);
        out.remove(kPods, pod.meta.ns, pod.meta.name, pod.meta.uid, [this, preemptor, victim, object](const Answered& deleted) {
          if (!deleted && deleted.error().code != 404) return eviction_failed(victim->view().meta.uid, deleted.error().message);
          if (deleted) report_eviction(preemptor, reference(*object));  // Or it went by itself.
        });
      },
      "status");
}

void Core::report_eviction(const Preemptor& preemptor, const client::ObjectReference& victim, std::string_view how) {
  out.report(preemptor.profile, victim, "Normal", "Preempted",
             fmt::format("Preempted by {} on node {}{}", preemptor.name, preemptor.where, how), "Preempting", &preemptor.by);
}

void Core::eviction_failed(const std::string& victim_uid, const std::string& why) {
  const auto found = preempted_by.find(victim_uid);
  if (found == preempted_by.end()) return;
  log::warning("scheduler", "preempting pod {}: {}", victim_uid, why);
  for (const std::string& preemptor : found->second) pods.at(preemptor).as<Preempting>()->has_failed = true;
  victim_seen(victim_uid);
}

void Core::victim_seen(const std::string& victim_uid) {
  const auto found = preempted_by.find(victim_uid);
  if (found == preempted_by.end()) return;
  const std::vector<std::string> preemptors = std::move(found->second);
  preempted_by.erase(found);
  for (const std::string& preemptor : preemptors) victim_seen_by(preemptor, victim_uid);
}

void Core::victim_seen_by(const std::string& preemptor_uid, const std::string& victim_uid) {
  Tracked& pod = pods.at(preemptor_uid);
  Preempting& open = *pod.as<Preempting>();
  open.victims.erase(victim_uid);
  if (!open.victims.empty()) return;
  const bool has_failed = open.has_failed, try_again = has_failed || open.missed_event;
  pod.enter(Queued{});
  std::erase_if(group_preempting, [&](const auto& one) { return one.second == preemptor_uid; });
  if (!try_again) return;
  if (has_failed)
    queue.retry_after_backoff(preemptor_uid, now);  // What is refused now is likely refused in a moment.
  else
    queue.wake_one(preemptor_uid, now);
  post_turn();
}

void Core::stop_preempting(Tracked& pod) {
  const Preempting* open = pod.as<Preempting>();
  if (open == nullptr) return;
  for (const std::string& victim : open->victims) {
    const auto found = preempted_by.find(victim);
    BERTH_CHECK(found != preempted_by.end() && std::erase(found->second, pod.info->view().meta.uid) == 1,
                "{} waits for the victim {}, which does not know it", pod.info->key, victim);
    if (found->second.empty()) preempted_by.erase(found);
  }
  pod.enter(Queued{});
  std::erase_if(group_preempting, [&](const auto& one) { return one.second == pod.info->view().meta.uid; });
}

void Core::report_error(const PodInfoPtr& info, const std::string& message, bool may_lag) {
  if (Tracked* pod = wanting(info->view().meta.uid)) set_nominated(*pod, "");
  report_failure(info, "SchedulerError", message, "", may_lag);
}

void Core::report_failure(const PodInfoPtr& info, std::string_view reason, const std::string& message,
                          const std::optional<std::string>& nominate, bool may_lag) {
  Tracked* pod = wanting(info->view().meta.uid);
  if (pod == nullptr) return;
  out.report(info->view().scheduler_name, reference(*pod->object), "Warning", "FailedScheduling", message, "Scheduling");
  if (reason == "Unschedulable" && !std::exchange(pod->has_topology_note, true)) {
    // An event of its own: FailedScheduling keeps kube-scheduler's words, which name no key.
    for (const std::string& note : placement::missing_topology_keys(cluster, info->view()))
      out.report(info->view().scheduler_name, reference(*pod->object), "Warning", "TopologyKeyNotFound", note, "Scheduling");
  }
  std::string since = format_rfc3339(now);
  std::string last_message = pod->message;
  const json::Value document = pod->object->document();
  for (const json::Value& one : json::get_array(document, {"status", "conditions"})) {
    if (json::get_string(one, {"type"}) != "PodScheduled" || json::get_string(one, {"status"}) != "False") continue;
    if (const auto then = json::get_string(one, {"lastTransitionTime"}); !then.empty()) since = then;
    if (last_message.empty() && json::get_string(one, {"reason"}) == reason) last_message = json::get_string(one, {"message"});
  }
  const bool nomination_differs = nominate && (may_lag || json::get_string(document, {"status", "nominatedNodeName"}) != *nominate);
  if (last_message == message && !nomination_differs) return;
  pod->message = message;
  json::Value patch = condition_patch(*pod->object, "PodScheduled", "False", reason, message, since);
  if (nominate) json::set(patch, {"status", "nominatedNodeName"}, nominate->empty() ? json::Value(nullptr) : json::Value(*nominate));
  out.patch(
      kPods, info->view().meta.ns, info->view().meta.name, client::PatchType::kStrategicMerge, patch,
      [this, uid = info->view().meta.uid, message](const client::ApiResult<json::Value>& written) {
        if (written) return;
        // Not there: the next attempt writes it again.
        if (Tracked* mine = wanting(uid); mine != nullptr && mine->message == message) mine->message = "?";
      },
      "status");
}

}  // namespace berth::scheduler
