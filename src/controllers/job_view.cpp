// What a Job's step reads of the Job and its pods (pkg/controller/job: getNewFinishedPods, calculateSucceededIndexes,
// calculateFailedIndexes, getPodsWithDelayedDeletionPerIndex).
#include "controllers/job_model.h"

namespace berth::controllers::job {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> number_in(const json::Value& pod, const char* annotation) {
  return number_of(json::get_string(pod, {"metadata", "annotations", annotation}));
}

/// The latest end of the pod's containers (sidecars too); nothing while one runs.
TimePoint containers_ended(const json::Value& pod) {
  std::set<std::string_view> sidecars;
  for (const json::Value& container : json::get_array(pod, {"spec", "initContainers"}))
    if (json::get_string(container, {"restartPolicy"}) == "Always") sidecars.insert(json::get_string(container, {"name"}));
  TimePoint latest{};
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& status : json::get_array(pod, {"status", list})) {
      if (std::string_view(list) == "initContainerStatuses" && !sidecars.contains(json::get_string(status, {"name"}))) continue;
      const TimePoint ended = read_time(status, {"state", "terminated", "finishedAt"});
      if (ended == TimePoint{}) return TimePoint{};
      latest = std::max(latest, ended);
    }
  }
  return latest;
}

TimePoint ended_at(const PodInfo& pod, const json::Value& document) {
  if (const TimePoint ended = containers_ended(document); ended != TimePoint{}) return ended;
  if (const json::Value* ready = find_condition(document, "Ready"); ready != nullptr && json::get_string(*ready, {"status"}) == "False")
    if (const TimePoint since = read_time(*ready, {"lastTransitionTime"}); since != TimePoint{}) return since;
  if (const TimePoint deleted = read_time(document, {"metadata", "deletionTimestamp"}); deleted != TimePoint{})
    return deleted - seconds_at(document, {"metadata", "deletionGracePeriodSeconds"});
  return pod.created;
}

JobPod read_pod(const View& view, const PodRef& info) {
  JobPod pod{.info = info};
  pod.is_failed = info->phase == PodPhase::kFailed || (!view.only_failed && info->deleting && info->phase != PodPhase::kSucceeded);
  // What is counted for good is of no more interest: a Job may have thousands of such pods. Of what runs the label tells enough.
  if (info->is_finished() && !info->has_job_finalizer) return pod;
  const std::string* label = info->labels().get(kIndexKey);
  if (view.indexed && label != nullptr) pod.index = number_of(*label).value_or(kNoIndex);
  const bool is_unlabelled = view.indexed && label == nullptr;
  if (!pod.is_failed && info->phase != PodPhase::kSucceeded && !is_unlabelled) return pod;
  const auto parsed = info->object->parsed();
  const json::Value& document = *parsed;
  if (is_unlabelled) pod.index = number_in(document, kIndexKey).value_or(kNoIndex);
  if (pod.is_failed || info->phase == PodPhase::kSucceeded) pod.finished = ended_at(*info, document);
  if (pod.is_failed) pod.verdict = judge_failure(view.document, document);
  if (view.per_index) {
    pod.index_failures = number_in(document, "batch.kubernetes.io/job-index-failure-count").value_or(0);
    pod.ignored_index_failures = number_in(document, "batch.kubernetes.io/job-index-ignored-failure-count").value_or(0);
  }
  return pod;
}

std::int64_t restarts_of(const json::Value& pod) {
  std::int64_t sum = 0;
  for (const char* list : {"containerStatuses", "initContainerStatuses"})
    for (const json::Value& status : json::get_array(pod, {"status", list})) sum += json::get_int(status, {"restartCount"});
  return sum;
}

void count(View& view) {
  const bool counts_restarts = json::get_string(view.document, {"spec", "template", "spec", "restartPolicy"}) == "OnFailure";
  for (const JobPod& pod : view.pods) {
    const PodInfo& info = *pod.info;
    if (info.is_active()) view.active.push_back(&pod), view.ready += info.ready;
    if (!info.is_finished() && info.deleting) ++view.terminating;
    if (counts_restarts && (info.phase == PodPhase::kRunning || info.phase == PodPhase::kPending))
      view.restarts += restarts_of(*info.object->parsed());
    if (!info.has_job_finalizer || (view.indexed && (pod.index == kNoIndex || pod.index >= view.completions.value_or(0)))) continue;
    // One that was told to go is counted as failed, and may succeed all the same: that changes nothing.
    const bool is_counted = view.uncounted_succeeded.contains(info.uid()) || view.uncounted_failed.contains(info.uid());
    if (info.phase == PodPhase::kSucceeded && !is_counted) view.newly_succeeded.push_back(&pod);
    if (pod.is_failed && !view.uncounted_failed.contains(info.uid())) view.newly_failed.push_back(&pod);
    if (!view.indexed) continue;
    if (info.phase == PodPhase::kSucceeded) view.done.insert(pod.index);
    const bool fails_index = pod.verdict.action == Verdict::Action::kFailIndex ||
                             (pod.verdict.action != Verdict::Action::kIgnore &&
                              pod.index_failures >= json::get_int(view.document, {"spec", "backoffLimitPerIndex"}));
    if (view.per_index && pod.is_failed && fails_index) view.failed_indexes.insert(pod.index);
  }
  view.succeeded = json::get_int(view.document, {"status", "succeeded"}) +
                   static_cast<std::int64_t>(view.newly_succeeded.size() + view.uncounted_succeeded.size());
  if (view.indexed) view.succeeded = static_cast<std::int64_t>(view.done.size());
  view.failed = json::get_int(view.document, {"status", "failed"}) + static_cast<std::int64_t>(view.uncounted_failed.size()) +
                std::ranges::count_if(view.newly_failed, [](const JobPod* pod) { return pod->verdict.action != Verdict::Action::kIgnore; });
}

/// Failed pods keep their finalizer, and so their counts, until the index has its next pod.
void find_awaiting(View& view) {
  Indexes running;
  for (const JobPod* pod : view.active) running.insert(pod->index);
  for (const JobPod& pod : view.pods) {
    if (!pod.is_failed || !pod.info->has_job_finalizer || pod.index == kNoIndex || pod.index >= view.completions.value_or(0)) continue;
    if (view.done.contains(pod.index) || view.failed_indexes.contains(pod.index) || running.contains(pod.index)) continue;
    const auto [it, is_first] = view.awaiting_successor.emplace(pod.index, &pod);
    const auto failures = [](const JobPod& one) { return one.index_failures + one.ignored_index_failures; };
    if (!is_first && failures(*it->second) <= failures(pod) && pod.finished >= it->second->finished) it->second = &pod;
  }
}

}  // namespace

View view_of(ObjectRef job, json::Value document, const std::vector<PodRef>& pods) {
  View view;
  view.object = std::move(job);
  view.document = std::move(document);
  const json::Value& doc = view.document;
  view.indexed = json::get_string(doc, {"spec", "completionMode"}) == "Indexed";
  view.per_index = view.indexed && json::find(doc, {"spec", "backoffLimitPerIndex"}) != nullptr;
  view.only_failed =
      json::get_string(doc, {"spec", "podReplacementPolicy"}) == "Failed" || json::find(doc, {"spec", "podFailurePolicy"}) != nullptr;
  view.suspended = json::get_bool(doc, {"spec", "suspend"});
  view.parallelism = json::get_int(doc, {"spec", "parallelism"}, 1);
  if (json::find(doc, {"spec", "completions"}) != nullptr) view.completions = json::get_int(doc, {"spec", "completions"});
  for (const json::Value& uid : json::get_array(doc, {"status", "uncountedTerminatedPods", "succeeded"}))
    if (uid.is_string()) view.uncounted_succeeded.insert(std::string(json::as_view(uid)));
  for (const json::Value& uid : json::get_array(doc, {"status", "uncountedTerminatedPods", "failed"}))
    if (uid.is_string()) view.uncounted_failed.insert(std::string(json::as_view(uid)));
  if (view.indexed) {
    // What is beyond the completions of a Job that was made smaller is forgotten.
    view.done = parse_indexes(json::get_string(doc, {"status", "completedIndexes"}), view.completions.value_or(0));
    view.failed_indexes = parse_indexes(json::get_string(doc, {"status", "failedIndexes"}), view.completions.value_or(0));
  }
  view.pods.reserve(pods.size());
  for (const PodRef& pod : pods) view.pods.push_back(read_pod(view, pod));
  if (view.indexed) std::ranges::stable_sort(view.pods, {}, &JobPod::index);
  count(view);
  if (view.per_index) find_awaiting(view);
  return view;
}

}  // namespace berth::controllers::job
