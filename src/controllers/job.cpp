// Jobs (pkg/controller/job). Every finished pod is counted exactly once, through three visible states: its uid in
// status.uncountedTerminatedPods while it holds the tracking finalizer, the finalizer removed, then the number raised and the uid dropped.
#include "controllers/job_model.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

using namespace job;

bool any_pod(const PodInfo&) { return true; }

/// One Job as a step sees it.
struct View {
  ObjectRef object;
  json::Value document;
  std::vector<PodRef> pods;
  std::vector<PodRef> active;
  std::int64_t succeeded = 0, failed = 0, terminating = 0, ready = 0;
  std::set<std::int64_t> done, failed_indexes;
  bool indexed = false;
  std::optional<std::int64_t> completions;
  std::int64_t parallelism = 1;
};

struct Ending {
  bool success = false;
  std::string reason, message;
};

std::optional<std::int64_t> index_of(const PodInfo& pod) {
  std::string text(json::get_string(pod.object->document(), {"metadata", "annotations", kIndexKey}));
  if (text.empty()) return std::nullopt;
  std::int64_t index = 0;
  return std::from_chars(text.data(), text.data() + text.size(), index).ec == std::errc{} ? std::optional(index) : std::nullopt;
}

/// Keys are "ns/name" of Jobs, and "orphan/ns/name" of pods that the Job controller's finalizer may hold for nobody.
constexpr std::string_view kOrphan = "orphan/";

/// The controlling Job that a pod names; null: none.
const OwnerReference* controlling_job(const PodInfo& pod) {
  const auto owner = std::ranges::find_if(pod.owners, [](const OwnerReference& one) { return one.is_controller && one.kind == "Job"; });
  return owner == pod.owners.end() ? nullptr : &*owner;
}

bool is_orphan(const PodInfo& pod, const Cache& cache) {
  if (!pod.has_job_finalizer) return false;
  const OwnerReference* owner = controlling_job(pod);
  if (owner == nullptr) return true;
  const ObjectRef job = cache.get(kinds().job, pod.ns(), owner->name);
  return !job || job->uid() != owner->uid;
}

class JobController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "job-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().job, kinds().pod}; }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    const auto add_orphan = [&](const PodRef& pod) {
      if (pod->has_job_finalizer) sink.add(fmt::format("{}{}/{}", kOrphan, pod->ns(), pod->name()));
    };
    if (event.kind == kinds().pod) {
      enqueue_pod_owners(kinds().job, event, cache, sink, label_selector_of);
      if (event.pod_after && is_orphan(*event.pod_after, cache)) add_orphan(event.pod_after);
      return;
    }
    sink.add(event.object().key());
    if (!event.after)
      for (const auto& [name, pod] : cache.pods_controlled(event.object().uid())) add_orphan(pod);
  }
  [[nodiscard]] Duration retry_base() const override { return std::chrono::seconds(1); }
  [[nodiscard]] Duration retry_most() const override { return std::chrono::minutes(1); }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;

 private:
  struct Backoff {
    int failures = 0;
    TimePoint last{};
  };
  void count_finished(Plan& plan, View& view, json::Object& status, std::optional<Ending>& ending, TimePoint now);
  void create_pods(Plan& plan, const View& view, std::int64_t count) const;
  Plan sync(View& view, const std::string& key, TimePoint now);

  std::map<std::string, Backoff> backoffs_;  ///< Consecutive failures by key: delays new pods 10 s, 20 s, … 10 min.
};

void release_tracking(Plan& plan, const PodInfo& pod, std::int64_t stage) {
  if (!pod.has_job_finalizer) return;
  Write write = remove_finalizer(kinds().pod, *pod.object, pod.object->document(), kTracking);
  write.stage = stage;
  plan.writes.push_back(std::move(write));
}

/// Pods that gave least go first (Kubernetes' ActivePods).
bool goes_before(const PodRef& a, const PodRef& b) {
  const auto early = [](const PodInfo& pod) { return pod.phase == PodPhase::kPending ? 0 : pod.phase == PodPhase::kUnknown ? 1 : 2; };
  if (a->node.empty() != b->node.empty()) return a->node.empty();
  if (early(*a) != early(*b)) return early(*a) < early(*b);
  if (a->ready != b->ready) return !a->ready;
  if (a->ready && a->ready_since != b->ready_since) return a->ready_since > b->ready_since;
  if (a->restarts != b->restarts) return a->restarts > b->restarts;
  if (a->created != b->created) return a->created > b->created;
  return a->name() < b->name();
}

/// The active pods to remove: at least so many, and all whose index is not wanted or has another pod.
std::vector<PodRef> victims_of(const View& view, std::size_t at_least) {
  std::vector<PodRef> sorted = view.active, victims, left;
  std::sort(sorted.begin(), sorted.end(), goes_before);
  std::set<std::int64_t> kept;
  for (auto it = sorted.rbegin(); view.indexed && it != sorted.rend(); ++it) {
    const auto index = index_of(**it);
    const bool is_wanted = index && *index < view.completions.value_or(0) && kept.insert(*index).second;
    (is_wanted ? left : victims).push_back(*it);
  }
  if (view.indexed)
    std::ranges::reverse(left);
  else
    left = std::move(sorted);
  for (const PodRef& pod : left) {
    if (victims.size() >= at_least) break;
    victims.push_back(pod);
  }
  return victims;
}

/// `counted`: they keep the finalizer and so count as failures, as the rest of a Job that has failed does; otherwise they are forgotten.
void delete_active(Plan& plan, const View& view, const std::vector<PodRef>& victims, bool counted) {
  for (const PodRef& victim : victims) {
    if (!counted) release_tracking(plan, *victim, 2);
    Write write = delete_object(kinds().pod, *victim->object);
    write.stage = 3;
    write.on_success = note_about(kinds().job, *view.object, "Normal", "SuccessfulDelete", "Deleted pod: " + victim->name());
    plan.writes.push_back(std::move(write));
  }
}

void JobController::count_finished(Plan& plan, View& view, json::Object& status, std::optional<Ending>& ending, TimePoint now) {
  std::set<std::string> present, was_succeeded, was_failed;
  for (const json::Value& uid : json::get_array(view.document, {"status", "uncountedTerminatedPods", "succeeded"}))
    if (uid.is_string()) was_succeeded.insert(std::string(json::as_view(uid)));
  for (const json::Value& uid : json::get_array(view.document, {"status", "uncountedTerminatedPods", "failed"}))
    if (uid.is_string()) was_failed.insert(std::string(json::as_view(uid)));
  json::Array succeeded, failed;
  const std::int64_t limit_per_index = json::get_int(view.document, {"spec", "backoffLimitPerIndex"}, -1);
  Backoff& backoff = backoffs_[view.object->key()];
  const bool only_failed = json::get_string(view.document, {"spec", "podReplacementPolicy"}) == "Failed";
  for (const PodRef& pod : view.pods) {
    const bool ok = pod->phase == PodPhase::kSucceeded;
    const bool bad = pod->phase == PodPhase::kFailed || (!ok && pod->deleting && !only_failed);
    if (!pod->is_finished() && pod->deleting) ++view.terminating;
    if (!ok && !bad) {
      if (!pod->deleting) view.active.push_back(pod), view.ready += pod->ready;
      continue;
    }
    if (!pod->has_job_finalizer) continue;
    present.insert(pod->uid());
    const bool listed = was_succeeded.contains(pod->uid()) || was_failed.contains(pod->uid());
    Verdict verdict;
    if (bad && !listed) verdict = judge_failure(view.document, pod->object->document());
    if (verdict.action == Verdict::Action::kFailJob && !ending) ending = Ending{false, "PodFailurePolicy", verdict.message};
    release_tracking(plan, *pod, 1);
    if (verdict.action == Verdict::Action::kIgnore) continue;
    if (const auto index = view.indexed ? index_of(*pod) : std::nullopt) {
      if (ok) {
        // A second success of one index counts once.
        if (!view.done.insert(*index).second && !listed) continue;
      } else if (limit_per_index >= 0 && !listed) {
        const std::string earlier(
            json::get_string(pod->object->document(), {"metadata", "annotations", "batch.kubernetes.io/job-index-failure-count"}));
        std::int64_t before = 0;
        std::from_chars(earlier.data(), earlier.data() + earlier.size(), before);
        if (verdict.action == Verdict::Action::kFailIndex || before >= limit_per_index) view.failed_indexes.insert(*index);
      }
    }
    (ok ? succeeded : failed).push_back(json::Value(pod->uid()));
    if (listed) continue;
    backoff = ok ? Backoff{} : Backoff{backoff.failures + 1, now};
  }
  // Those whose finalizer is gone may be counted for good.
  std::int64_t total_succeeded = json::get_int(view.document, {"status", "succeeded"}),
               total_failed = json::get_int(view.document, {"status", "failed"});
  for (const std::string& uid : was_succeeded) total_succeeded += !present.contains(uid);
  for (const std::string& uid : was_failed) total_failed += !present.contains(uid);
  view.succeeded = total_succeeded + static_cast<std::int64_t>(succeeded.size());
  view.failed = total_failed + static_cast<std::int64_t>(failed.size());
  if (view.indexed) {
    view.succeeded = static_cast<std::int64_t>(view.done.size());
    total_succeeded = view.succeeded;
  }
  const auto put = [&status](std::string_view field, std::int64_t value) {
    if (value != 0)
      status[field] = value;
    else
      status.erase(field);
  };
  put("succeeded", total_succeeded);
  put("failed", total_failed);
  put("active", static_cast<std::int64_t>(view.active.size()));
  status["ready"] = view.ready;
  status["terminating"] = view.terminating;
  if (!view.done.empty()) status["completedIndexes"] = format_indexes(view.done);
  if (limit_per_index >= 0) status["failedIndexes"] = format_indexes(view.failed_indexes);
  json::Object uncounted;
  if (!succeeded.empty()) uncounted["succeeded"] = std::move(succeeded);
  if (!failed.empty()) uncounted["failed"] = std::move(failed);
  status["uncountedTerminatedPods"] = std::move(uncounted);
}

void JobController::create_pods(Plan& plan, const View& view, std::int64_t count) const {
  const json::Value pod_template = json::get_object(view.document, {"spec", "template"});
  std::set<std::int64_t> taken = view.done;
  taken.insert(view.failed_indexes.begin(), view.failed_indexes.end());
  std::map<std::int64_t, std::int64_t> failures;
  if (view.indexed) {
    for (const PodRef& pod : view.active)
      if (const auto index = index_of(*pod)) taken.insert(*index);
    for (const PodRef& pod : view.pods)
      if (const auto index = index_of(*pod); index && pod->phase == PodPhase::kFailed) ++failures[*index];
  }
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::string prefix = view.object->name() + "-";
    while (view.indexed && taken.contains(next)) ++next;
    if (view.indexed && next >= view.completions.value_or(0)) return;
    json::Value pod = pod_from_template(pod_template, kinds().job, *view.object, prefix);
    json::Array finalizers = json::get_array(pod, {"metadata", "finalizers"});
    finalizers.push_back(json::Value(kTracking));
    json::set(pod, {"metadata", "finalizers"}, std::move(finalizers));
    if (view.indexed) {
      const std::string text = std::to_string(next);
      json::set(pod, {"metadata", "generateName"}, json::Value(fmt::format("{}{}-", prefix, text)));
      json::set(pod, {"metadata", "annotations", kIndexKey}, json::Value(text));
      json::set(pod, {"metadata", "labels", kIndexKey}, json::Value(text));
      if (json::find(view.document, {"spec", "backoffLimitPerIndex"}) != nullptr)
        json::set(pod, {"metadata", "annotations", "batch.kubernetes.io/job-index-failure-count"},
                  json::Value(std::to_string(failures[next])));
      json::set(pod, {"spec", "hostname"}, json::Value(prefix + text));
      for (const char* list : {"containers", "initContainers"}) {
        json::Value* containers = json::find(pod, {"spec", list});
        if (containers == nullptr || !containers->is_array()) continue;
        for (json::Value& container : containers->get_array()) {
          json::Array env = json::get_array(container, {"env"});
          env.push_back(json::Object{
              {"name", "JOB_COMPLETION_INDEX"},
              {"valueFrom", json::Object{{"fieldRef", json::Object{{"fieldPath", fmt::format("metadata.labels['{}']", kIndexKey)}}}}}});
          json::set(container, {"env"}, std::move(env));
        }
      }
      taken.insert(next);
    }
    Write write = create_object(kinds().pod, view.object->ns(), std::move(pod));
    write.slow_start = true;
    write.stage = 4;
    write.on_success = note_about(kinds().job, *view.object, "Normal", "SuccessfulCreate", "Created pod: {}");
    write.on_failure = note_about(kinds().job, *view.object, "Warning", "FailedCreate", "Error creating: {}");
    plan.writes.push_back(std::move(write));
  }
}

/// Whether the Job has to end, and how.
std::optional<Ending> ending_of(const View& view, TimePoint now) {
  const std::int64_t limit = json::get_int(view.document, {"spec", "backoffLimit"}, 6);
  std::int64_t restarts = 0;
  if (json::get_string(view.document, {"spec", "template", "spec", "restartPolicy"}) == "OnFailure")
    for (const PodRef& pod : view.active) restarts += pod->restarts;
  if (view.failed > limit || (limit > 0 && restarts >= limit) || (limit == 0 && restarts > 0))
    return Ending{false, "BackoffLimitExceeded", "Job has reached the specified backoff limit"};
  const TimePoint started = read_time(view.document, {"status", "startTime"});
  if (const json::Value* deadline = json::find(view.document, {"spec", "activeDeadlineSeconds"});
      deadline != nullptr && started != TimePoint{} && !json::get_bool(view.document, {"spec", "suspend"}))
    if (now >= started + seconds_at(view.document, {"spec", "activeDeadlineSeconds"}))
      return Ending{false, "DeadlineExceeded", "Job was active longer than specified deadline"};
  if (view.indexed && json::find(view.document, {"spec", "backoffLimitPerIndex"}) != nullptr) {
    if (const json::Value* most = json::find(view.document, {"spec", "maxFailedIndexes"});
        most != nullptr &&
        static_cast<std::int64_t>(view.failed_indexes.size()) > json::get_int(view.document, {"spec", "maxFailedIndexes"}))
      return Ending{false, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"};
    if (!view.failed_indexes.empty() &&
        static_cast<std::int64_t>(view.failed_indexes.size() + view.done.size()) >= view.completions.value_or(0))
      return Ending{false, "FailedIndexes", "Job has failed indexes"};
  }
  if (view.indexed)
    if (const std::int64_t rule = matched_success_rule(view.document, view.done); rule >= 0)
      return Ending{true, "SuccessPolicy", fmt::format("Matched rules at index {}", rule)};
  const bool complete = view.completions ? view.succeeded >= *view.completions : view.succeeded > 0 && view.active.empty();
  if (complete) return Ending{true, "CompletionsReached", "Reached expected number of succeeded pods"};
  return std::nullopt;
}

Plan JobController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  if (key.starts_with(kOrphan)) {
    Plan plan;
    const auto [ns, name] = split_key(std::string_view(key).substr(kOrphan.size()));
    if (const PodRef pod = cache.pod(ns, name); pod && is_orphan(*pod, cache)) release_tracking(plan, *pod, 0);
    return plan;
  }
  const auto [ns, name] = split_key(key);
  View view;
  view.object = cache.get(kinds().job, ns, name);
  if (!view.object) {
    backoffs_.erase(key);
    return {};
  }
  view.document = view.object->document();
  const std::string_view manager = json::get_string(view.document, {"spec", "managedBy"});
  if (!manager.empty() && manager != "kubernetes.io/job-controller") return {};
  const model::Selector selector = label_selector_of(view.document);
  if (selector.is_nothing()) return {};
  Claim claim = claim_pods(kinds().job, *view.object, selector, cache, any_pod);
  view.pods = std::move(claim.pods);
  view.indexed = json::get_string(view.document, {"spec", "completionMode"}) == "Indexed";
  view.parallelism = json::get_int(view.document, {"spec", "parallelism"}, 1);
  if (json::find(view.document, {"spec", "completions"}) != nullptr)
    view.completions = json::get_int(view.document, {"spec", "completions"});
  view.done = parse_indexes(json::get_string(view.document, {"status", "completedIndexes"}));
  view.failed_indexes = parse_indexes(json::get_string(view.document, {"status", "failedIndexes"}));
  Plan plan = sync(view, key, now);
  plan.writes.insert(plan.writes.end(), claim.writes.begin(), claim.writes.end());
  return plan;
}

Plan JobController::sync(View& view, const std::string& key, TimePoint now) {
  Plan plan;
  if (condition_status(view.document, "Complete") == "True" || condition_status(view.document, "Failed") == "True" ||
      view.object->is_deleting()) {
    for (const PodRef& pod : view.pods) release_tracking(plan, *pod, 1);
    return plan;
  }
  json::Object status = json::get_object(view.document, {"status"});
  json::Array conditions = json::get_array(view.document, {"status", "conditions"});
  const bool suspended = json::get_bool(view.document, {"spec", "suspend"});
  std::optional<Ending> ending;
  count_finished(plan, view, status, ending, now);
  // An ending once announced stays.
  for (const auto& [type, success] : {std::pair{"FailureTarget", false}, {"SuccessCriteriaMet", true}})
    if (const json::Value* announced = find_condition(view.document, type); announced != nullptr && !ending)
      ending =
          Ending{success, std::string(json::get_string(*announced, {"reason"})), std::string(json::get_string(*announced, {"message"}))};
  if (!ending) ending = ending_of(view, now);
  if (!status.contains("startTime") && !suspended) status["startTime"] = format_rfc3339(now);
  const auto stamp = [&](const char* type, const Ending& end) {
    if (set_condition(conditions, {type, "True", end.reason, end.message}, now))
      for (json::Value& condition : conditions)
        if (json::get_string(condition, {"type"}) == type) condition.get_object()["lastProbeTime"] = format_rfc3339(now);
  };
  if (ending) {
    stamp(ending->success ? "SuccessCriteriaMet" : "FailureTarget", *ending);
    delete_active(plan, view, view.active, !ending->success);
    const bool counted = json::get_object(json::Value(status), {"uncountedTerminatedPods"}).empty();
    if (view.active.empty() && view.terminating == 0 && counted) {
      stamp(ending->success ? "Complete" : "Failed", *ending);
      if (ending->success) {
        status["completionTime"] = format_rfc3339(now);
        plan.events.push_back(note_about(kinds().job, *view.object, "Normal", "Completed", "Job completed"));
      } else {
        plan.events.push_back(note_about(kinds().job, *view.object, "Warning", ending->reason, ending->message));
      }
      backoffs_.erase(key);
    }
  } else if (suspended) {
    delete_active(plan, view, view.active, false);
    if (set_condition(conditions, {"Suspended", "True", "JobSuspended", "Job suspended"}, now))
      plan.events.push_back(note_about(kinds().job, *view.object, "Normal", "Suspended", "Job suspended"));
  } else {
    if (condition_status(view.document, "Suspended") == "True") {
      set_condition(conditions, {"Suspended", "False", "JobResumed", "Job resumed"}, now);
      status["startTime"] = format_rfc3339(now);
      plan.events.push_back(note_about(kinds().job, *view.object, "Normal", "Resumed", "Job resumed"));
    }
    const auto active = static_cast<std::int64_t>(view.active.size());
    std::int64_t wanted = view.parallelism;
    if (view.completions)
      wanted = std::min(
          wanted, std::max<std::int64_t>(0, *view.completions - view.succeeded - static_cast<std::int64_t>(view.failed_indexes.size())));
    else if (view.succeeded > 0)
      wanted = active;
    const std::vector<PodRef> victims = victims_of(view, static_cast<std::size_t>(std::max<std::int64_t>(0, active - wanted)));
    delete_active(plan, view, victims, false);
    if (json::get_string(view.document, {"spec", "podReplacementPolicy"}) == "Failed") wanted -= view.terminating;
    if (active < wanted && victims.empty()) {
      const Backoff& backoff = backoffs_[key];
      const Duration pause = backoff.failures == 0 ? Duration{0}
                                                   : std::min<Duration>(std::chrono::seconds(10) * (1 << std::min(backoff.failures - 1, 6)),
                                                                        std::chrono::minutes(10));
      if (const Duration left = backoff.last + pause - now; backoff.failures > 0 && left > Duration{0})
        plan.requeue_after = left;
      else
        create_pods(plan, view, std::min<std::int64_t>(wanted - active, 500));
    }
    if (json::find(view.document, {"spec", "activeDeadlineSeconds"}) != nullptr) {
      const TimePoint started = read_time(json::Value(status), {"startTime"});
      const Duration left = std::max<Duration>(started + seconds_at(view.document, {"spec", "activeDeadlineSeconds"}) - now, Duration{0}) +
                            std::chrono::milliseconds(1);
      if (!plan.requeue_after || left < *plan.requeue_after) plan.requeue_after = left;
    }
  }
  if (!conditions.empty()) status["conditions"] = std::move(conditions);
  if (auto write = patch_status(kinds().job, *view.object, view.document, status, true)) plan.writes.push_back(std::move(*write));
  return plan;
}

}  // namespace

ControllerPtr make_job_controller() { return std::make_unique<JobController>(); }

namespace {

/// Finished Jobs go ttlSecondsAfterFinished after their end (pkg/controller/ttlafterfinished).
class TtlController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "ttl-after-finished-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().job}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.after) sink.add(event.after->key());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef object = cache.get(kinds().job, ns, name);
    if (!object || object->is_deleting()) return plan;
    const json::Value document = object->document();
    if (json::find(document, {"spec", "ttlSecondsAfterFinished"}) == nullptr) return plan;
    const json::Value* end = find_condition(document, "Complete");
    if (end == nullptr) end = find_condition(document, "Failed");
    if (end == nullptr || json::get_string(*end, {"status"}) != "True") return plan;
    const TimePoint when = read_time(*end, {"lastTransitionTime"}) + seconds_at(document, {"spec", "ttlSecondsAfterFinished"});
    if (when > now) {
      plan.requeue_after = when - now;
      return plan;
    }
    Write write = delete_object(kinds().job, *object);
    write.delete_options.propagation = Propagation::kForeground;
    plan.writes.push_back(std::move(write));
    return plan;
  }
};

}  // namespace

ControllerPtr make_ttl_after_finished_controller() { return std::make_unique<TtlController>(); }

}  // namespace berth::controllers
