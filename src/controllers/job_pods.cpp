// Which pods of a Job go and which are made (pkg/controller/job: activePodsForRemoval, firstPendingIndexes, backoff_utils).
#include "controllers/job_model.h"

namespace berth::controllers::job {
namespace {

constexpr Duration kBackoff = std::chrono::seconds(10), kMaxBackoff = std::chrono::minutes(10);
/// The server makes names of at most 63 characters out of a prefix and five of its own.
constexpr std::size_t kLongestPrefix = 58;

/// Pods that gave least go first (Kubernetes' ActivePods).
bool goes_before(const JobPod* left, const JobPod* right) {
  const PodInfo &a = *left->info, &b = *right->info;
  const auto early = [](const PodInfo& pod) { return pod.phase == PodPhase::kPending ? 0 : pod.phase == PodPhase::kUnknown ? 1 : 2; };
  if (a.node.empty() != b.node.empty()) return a.node.empty();
  if (early(a) != early(b)) return early(a) < early(b);
  if (a.ready != b.ready) return !a.ready;
  if (a.ready && a.ready_since != b.ready_since) return a.ready_since > b.ready_since;
  if (a.restarts != b.restarts) return a.restarts > b.restarts;
  if (a.created != b.created) return a.created > b.created;
  return a.name() < b.name();
}

/// The lowest indexes that neither run, nor are done, nor have failed.
std::vector<std::int64_t> pending_indexes(const View& view, std::int64_t count) {
  Indexes taken = view.done;
  taken.insert(view.failed_indexes.begin(), view.failed_indexes.end());
  for (const JobPod& pod : view.pods)
    if (pod.info->is_active() || (view.only_failed && pod.info->deleting && !pod.info->is_finished())) taken.insert(pod.index);
  std::vector<std::int64_t> pending;
  for (std::int64_t index = 0; index < view.completions.value_or(0) && std::ssize(pending) < count; ++index)
    if (!taken.contains(index)) pending.push_back(index);
  return pending;
}

void add_index_variable(json::Value& pod) {
  for (const char* list : {"containers", "initContainers"}) {
    json::Value* containers = json::find(pod, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (json::Value& container : containers->get_array()) {
      json::Array env = json::get_array(container, {"env"});
      if (std::ranges::any_of(env, [](const json::Value& one) { return json::get_string(one, {"name"}) == "JOB_COMPLETION_INDEX"; }))
        continue;
      env.push_back(json::Object{
          {"name", "JOB_COMPLETION_INDEX"},
          {"valueFrom", json::Object{{"fieldRef", json::Object{{"fieldPath", fmt::format("metadata.labels['{}']", kIndexKey)}}}}}});
      json::set(container, {"env"}, std::move(env));
    }
  }
}

void give_index(json::Value& pod, const View& view, std::int64_t index) {
  const std::string text = std::to_string(index), suffix = fmt::format("-{}-", text);
  std::string prefix = view.object->name();
  if (prefix.size() + suffix.size() > kLongestPrefix) prefix.resize(kLongestPrefix - suffix.size());
  json::set(pod, {"metadata", "generateName"}, json::Value(prefix + suffix));
  json::set(pod, {"metadata", "annotations", kIndexKey}, json::Value(text));
  json::set(pod, {"metadata", "labels", kIndexKey}, json::Value(text));
  json::set(pod, {"spec", "hostname"}, json::Value(fmt::format("{}-{}", view.object->name(), text)));
  if (!view.per_index) return;
  std::int64_t failures = 0, ignored = 0;
  if (const auto before = view.awaiting_successor.find(index); before != view.awaiting_successor.end()) {
    const bool is_ignored = before->second->verdict.action == Verdict::Action::kIgnore;
    failures = before->second->index_failures + !is_ignored;
    ignored = before->second->ignored_index_failures + is_ignored;
  }
  json::set(pod, {"metadata", "annotations", "batch.kubernetes.io/job-index-failure-count"}, json::Value(std::to_string(failures)));
  if (ignored > 0)
    json::set(pod, {"metadata", "annotations", "batch.kubernetes.io/job-index-ignored-failure-count"},
              json::Value(std::to_string(ignored)));
}

Write create_pod(const View& view, const json::Value& pod_template, std::int64_t index) {
  json::Value pod = pod_from_template(pod_template, kinds().job, *view.object, view.object->name() + "-");
  if (!has_finalizer(pod, kTracking)) {
    json::Array finalizers = json::get_array(pod, {"metadata", "finalizers"});
    finalizers.push_back(json::Value(kTracking));
    json::set(pod, {"metadata", "finalizers"}, std::move(finalizers));
  }
  if (!view.pod_group.empty()) json::set(pod, {"spec", "schedulingGroup", "podGroupName"}, json::Value(view.pod_group));
  if (index != kNoIndex) {
    add_index_variable(pod);
    give_index(pod, view, index);
  }
  Write write = create_object(kinds().pod, view.object->ns(), std::move(pod));
  write.slow_start = true;
  write.on_success = note_about(kinds().job, *view.object, "Normal", "SuccessfulCreate", "Created pod: {}");
  write.on_failure = note_about(kinds().job, *view.object, "Warning", "FailedCreate", "Error creating: {}");
  return write;
}

}  // namespace

std::vector<const JobPod*> victims_of(const View& view, std::size_t at_least) {
  std::vector<const JobPod*> sorted = view.active, victims, left;
  std::sort(sorted.begin(), sorted.end(), goes_before);
  Indexes kept;
  for (auto it = sorted.rbegin(); view.indexed && it != sorted.rend(); ++it) {
    const std::int64_t index = (*it)->index;
    const bool is_wanted = index != kNoIndex && index < view.completions.value_or(0) && kept.insert(index).second;
    (is_wanted ? left : victims).push_back(*it);
  }
  if (view.indexed)
    std::ranges::reverse(left);
  else
    left = std::move(sorted);
  for (const JobPod* pod : left) {
    if (victims.size() >= at_least) break;
    victims.push_back(pod);
  }
  if (victims.size() > kMostPodsAStep) victims.resize(kMostPodsAStep);
  return victims;
}

Duration backoff_left(std::int64_t failures, TimePoint last, TimePoint now) {
  if (failures <= 0) return Duration{0};
  const Duration pause = failures > 7 ? kMaxBackoff : std::min<Duration>(kBackoff * (1LL << (failures - 1)), kMaxBackoff);
  return std::max<Duration>(last + pause - now, Duration{0});
}

Backoff next_backoff(Backoff before, std::vector<const JobPod*> succeeded, std::vector<const JobPod*> failed) {
  const auto by_end = [](const JobPod* pod) { return pod->finished; };
  if (succeeded.empty()) {
    if (failed.empty()) return before;
    before.failures += std::ssize(failed);
    before.last = std::ranges::max(failed, {}, by_end)->finished;
    return before;
  }
  // Only what failed after the last success counts.
  const TimePoint last_success = std::ranges::max(succeeded, {}, by_end)->finished;
  Backoff after;
  for (const JobPod* pod : failed) {
    if (pod->finished <= last_success) continue;
    ++after.failures;
    after.last = std::max(after.last, pod->finished);
  }
  return after;
}

Creation create_pods(const View& view, std::int64_t count, const Backoff& backoff, TimePoint now) {
  Creation creation;
  if (!view.per_index) creation.pause = backoff_left(backoff.failures, backoff.last, now);
  if (creation.pause > Duration{0}) return creation;
  count = std::min(count, burst_of(*view.object, kMostPodsAStep));
  std::vector<std::int64_t> indexes(static_cast<std::size_t>(count), kNoIndex);
  if (view.indexed) indexes = pending_indexes(view, count);
  if (view.per_index) {
    // Each index waits for itself.
    std::vector<std::int64_t> due;
    std::optional<Duration> least;
    for (const std::int64_t index : indexes) {
      const auto before = view.awaiting_successor.find(index);
      const Duration left =
          before == view.awaiting_successor.end()
              ? Duration{0}
              : backoff_left(before->second->index_failures + before->second->ignored_index_failures + 1, before->second->finished, now);
      if (left == Duration{0})
        due.push_back(index);
      else
        least = std::min(left, least.value_or(left));
    }
    if (due.empty() && least) creation.pause = *least;
    indexes = std::move(due);
  }
  const json::Value pod_template = json::get_object(view.document, {"spec", "template"});
  for (const std::int64_t index : indexes) creation.writes.push_back(create_pod(view, pod_template, index));
  return creation;
}

}  // namespace berth::controllers::job
