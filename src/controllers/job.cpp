// Jobs (pkg/controller/job). Every finished pod is counted exactly once, through three visible states: its uid in
// status.uncountedTerminatedPods while it holds the tracking finalizer, the finalizer removed, then the number raised and the uid dropped.
// The end of a Job shows twice: FailureTarget or SuccessCriteriaMet when it is decided, Failed or Complete when its pods are gone and
// counted.
#include "controllers/job_groups.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

using namespace job;

/// The order of a plan: no finalizer goes before its pod is in the status, and a pod that a finished Job deletes is counted as it was
/// before.
enum Stage : std::int64_t { kLetGo, kDelete, kCreate, kStatus, kFinalizers, kDeleteLast, kCreateLast };

/// Why and how a Job ends.
struct Ending {
  bool success = false;
  std::string reason, message;
  bool is_announced = false;  ///< Its condition stands in the status already.
};

/// Keys are "ns/name" of Jobs, and "orphan/ns/name" of pods that the Job controller's finalizer may hold for nobody.
constexpr std::string_view kOrphanKey = "orphan/";
/// A server without Workloads is asked for one again no sooner.
constexpr Duration kUnservedPause = std::chrono::seconds(30);

/// The controlling Job that a pod names; null: none.
const OwnerReference* controlling_job(const PodInfo& pod) {
  const auto owner = std::ranges::find_if(pod.owners, [](const OwnerReference& one) { return one.is_controller && one.kind == "Job"; });
  return owner == pod.owners.end() ? nullptr : &*owner;
}

bool is_orphan(const PodInfo& pod, const Cache& cache) {
  if (!pod.has_job_finalizer) return false;
  const OwnerReference* owner = controlling_job(pod);
  if (owner == nullptr) return std::ranges::none_of(pod.owners, &OwnerReference::is_controller);
  const ObjectRef job = cache.get(kinds().job, pod.ns(), owner->name);
  return !job || job->uid() != owner->uid;
}

class JobController final : public Controller {
 public:
  explicit JobController(JobOptions options) : options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "job-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return options_.makes_groups ? std::vector{kinds().job, kinds().pod, kinds().workload, kinds().pod_group}
                                 : std::vector{kinds().job, kinds().pod};
  }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    const auto add_orphan = [&](const PodRef& pod) {
      if (pod->has_job_finalizer) sink.add(fmt::format("{}{}/{}", kOrphanKey, pod->ns(), pod->name()));
    };
    if (event.kind == kinds().workload || event.kind == kinds().pod_group) return groups_.on_event(event);
    if (event.kind == kinds().pod) {
      enqueue_pod_owners(kinds().job, event, cache, sink);
      if (event.pod_after && is_orphan(*event.pod_after, cache)) add_orphan(event.pod_after);
      return;
    }
    sink.add(event.object().key());
    if (!event.after)
      for (const PodRef& pod : cache.pods_controlled(event.object().uid())) add_orphan(pod);
  }
  [[nodiscard]] Duration retry_base() const override { return std::chrono::seconds(1); }
  [[nodiscard]] Duration retry_most() const override { return std::chrono::minutes(1); }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint now) override {
    if (write.kind == kinds().workload && !result && result.error().code == 404) groups_unserved_until_ = now + kUnservedPause;
    if (key.starts_with(kOrphanKey)) return;  // Of a Job that is gone nothing is remembered.
    Record& record = records_[key];
    if (write.verb == Write::Verb::kCreate && write.kind == kinds().pod) record.create_failed = !result;
    if (write.subresource == "status" && result) record.backoff = record.next_backoff;
  }

 private:
  /// What is remembered of a Job between its steps.
  struct Record {
    Backoff backoff, next_backoff;  ///< The second counts once the pods it is about stand in the status.
    bool create_failed = false;
  };
  /// What a step makes of a Job's pods before it writes the status.
  struct Managed {
    std::int64_t active = 0;
    std::set<std::string> let_go;  ///< Uids of pods whose finalizer goes uncounted.
  };
  Plan sync(job::View& view, Record& record, TimePoint now);
  static Managed manage(Plan& plan, job::View& view, const Record& record, TimePoint now);

  const JobOptions options_;
  job::GroupIndex groups_;
  TimePoint groups_unserved_until_{};  ///< The server knows no Workloads; Jobs go on without meanwhile.
  std::map<std::string, Record> records_;
};

void remove_tracking(Plan& plan, const PodInfo& pod, std::int64_t stage) {
  if (!pod.has_job_finalizer) return;
  Write write = remove_finalizer(kinds().pod, *pod.object, pod.object->document(), kTracking);
  write.stage = stage;
  plan.writes.push_back(std::move(write));
}

void delete_pod(Plan& plan, const job::View& view, const PodInfo& pod, std::int64_t stage) {
  Write write = delete_object(kinds().pod, *pod.object);
  write.stage = stage;
  write.on_success = note_about(kinds().job, *view.object, "Normal", "SuccessfulDelete", "Deleted pod: " + pod.name());
  plan.writes.push_back(std::move(write));
}

/// A pod that is adopted is tracked from then on; one that is let go is tracked no more.
void track_claimed(Claim& claim, const Cache& cache, const std::string& ns) {
  for (Write& write : claim.writes) {
    const PodRef pod = cache.pod(ns, write.name);
    if (!pod) continue;
    const bool is_adopted = std::ranges::find(claim.pods, pod) != claim.pods.end();
    if (is_adopted == pod->has_job_finalizer) continue;
    const auto parsed = pod->object->parsed();
    const json::Value& document = *parsed;
    const Write change = is_adopted ? add_finalizer(kinds().pod, *pod->object, document, kTracking)
                                    : remove_finalizer(kinds().pod, *pod->object, document, kTracking);
    json::set(write.body, {"metadata", "finalizers"}, json::Value(change.body.at("metadata").at("finalizers")));
  }
}

/// Whether the Job has to end, and how. Order matters: a Job may meet several conditions at once.
std::optional<Ending> ending_of(const job::View& view, TimePoint now) {
  const auto announced = [&](const char* type, bool success) -> std::optional<Ending> {
    const json::Value* condition = find_condition(view.document, type);
    if (condition == nullptr || json::get_string(*condition, {"status"}) != "True") return std::nullopt;
    return Ending{success, std::string(json::get_string(*condition, {"reason"})), std::string(json::get_string(*condition, {"message"})),
                  true};
  };
  if (auto ending = announced("SuccessCriteriaMet", true)) return ending;
  if (auto ending = announced("FailureTarget", false)) return ending;
  for (const JobPod& pod : view.pods)
    if (pod.verdict.action == Verdict::Action::kFailJob) return Ending{false, "PodFailurePolicy", pod.verdict.message};
  const std::int64_t limit = json::get_int(view.document, {"spec", "backoffLimit"}, 6);
  if (view.failed > limit || (limit > 0 && view.restarts >= limit) || (limit == 0 && view.restarts > 0))
    return Ending{false, "BackoffLimitExceeded", "Job has reached the specified backoff limit"};
  const TimePoint started = read_time(view.document, {"status", "startTime"});
  if (json::find(view.document, {"spec", "activeDeadlineSeconds"}) != nullptr && started != TimePoint{} && !view.suspended)
    if (now >= started + seconds_at(view.document, {"spec", "activeDeadlineSeconds"}))
      return Ending{false, "DeadlineExceeded", "Job was active longer than specified deadline"};
  if (view.per_index) {
    const auto failed = std::ssize(view.failed_indexes);
    if (json::find(view.document, {"spec", "maxFailedIndexes"}) != nullptr &&
        failed > json::get_int(view.document, {"spec", "maxFailedIndexes"}))
      return Ending{false, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"};
    if (failed > 0 && failed + std::ssize(view.done) >= view.completions.value_or(0))
      return Ending{false, "FailedIndexes", "Job has failed indexes"};
  }
  if (view.indexed)
    if (const std::int64_t rule = matched_success_rule(view.document, view.done); rule >= 0)
      return Ending{true, "SuccessPolicy", fmt::format("Matched rules at index {}", rule)};
  return std::nullopt;
}

Plan JobController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  if (key.starts_with(kOrphanKey)) {
    Plan plan;
    const auto [ns, name] = split_key(std::string_view(key).substr(kOrphanKey.size()));
    if (const PodRef pod = cache.pod(ns, name); pod && is_orphan(*pod, cache)) remove_tracking(plan, *pod, 0);
    return plan;
  }
  const auto [ns, name] = split_key(key);
  const ObjectRef object = cache.get(kinds().job, ns, name);
  if (!object) {
    records_.erase(key);
    return {};
  }
  json::Value document = object->document();
  const std::string_view manager = json::get_string(document, {"spec", "managedBy"});
  if (!manager.empty() && manager != "kubernetes.io/job-controller") return {};
  const model::Selector selector = label_selector_of(document);
  if (selector.is_nothing()) return {};
  Claim claim = claim_pods(kinds().job, *object, selector, cache, any_pod);
  if (condition_status(document, "Complete") == "True" || condition_status(document, "Failed") == "True") {
    Plan plan;
    for (const PodRef& pod : claim.pods)
      if (pod->object->controller_uid() == object->uid() && !plan.is_full()) remove_tracking(plan, *pod, 0);
    records_.erase(key);
    return plan;
  }
  track_claimed(claim, cache, ns);
  job::View view = view_of(object, std::move(document), claim.pods);
  if (options_.makes_groups && now >= groups_unserved_until_ && !object->is_deleting() && !ending_of(view, now)) {
    job::Grouping grouping = job::grouping_of(view, groups_, cache);
    if (grouping.next) {
      // Nothing else, not even a status: the Job counts as new until its Workload is there.
      Plan plan;
      plan.writes.push_back(std::move(*grouping.next));
      plan.requeue_after = Duration{1};  // Once it is made; what is refused waits longer each time.
      return plan;
    }
    view.pod_group = std::move(grouping.pod_group);
  }
  Plan plan = sync(view, records_[key], now);
  plan.writes.insert(plan.writes.end(), claim.writes.begin(), claim.writes.end());
  return plan;
}

JobController::Managed JobController::manage(Plan& plan, job::View& view, const Record& record, TimePoint now) {
  Managed managed{.active = std::ssize(view.active), .let_go = {}};
  std::int64_t wanted = view.parallelism;
  if (view.suspended)
    wanted = 0;
  else if (view.completions)
    wanted = std::min(wanted, std::max<std::int64_t>(0, *view.completions - view.succeeded));
  else if (view.succeeded > 0)
    wanted = managed.active;
  const auto victims = victims_of(view, static_cast<std::size_t>(std::max<std::int64_t>(0, managed.active - wanted)));
  for (const JobPod* victim : victims) {
    remove_tracking(plan, *victim->info, kLetGo);
    delete_pod(plan, view, *victim->info, kDelete);
    managed.let_go.insert(victim->info->uid());
    --managed.active;
    ++view.terminating;
    view.ready -= victim->info->ready;
  }
  // Either fewer or more in one step.
  if (!victims.empty() || view.suspended) return managed;
  const std::int64_t missing = wanted - managed.active - (view.only_failed ? view.terminating : 0);
  if (missing <= 0) return managed;
  Creation creation = create_pods(view, missing, record.next_backoff, now);
  if (creation.pause > Duration{0}) {
    plan.requeue_after = creation.pause + std::chrono::milliseconds(1);
    // As Kubernetes tells while pods wait for their next try; beside ready ones its own API server refuses that, and the truth is told.
    if (view.ready == 0) managed.active = 0;
    return managed;
  }
  for (Write& write : creation.writes) {
    // What the server refuses must not hold up the counting.
    write.stage = record.create_failed ? kCreateLast : kCreate;
    plan.add(std::move(write), view.object->text_bytes());
    managed.active += !record.create_failed;
  }
  return managed;
}

/// Which finished pods enter the status and which let go of their finalizer.
struct Tracking {
  json::Array succeeded, failed;  ///< status.uncountedTerminatedPods
  std::int64_t newly_counted_succeeded = 0, newly_counted_failed = 0;
  bool is_settled = true;  ///< Nothing is left to count or to let go of.
};

Tracking track(Plan& plan, job::View& view, const std::optional<Ending>& ending, const std::set<std::string>& let_go) {
  Tracking out;
  std::set<std::string_view> held;
  for (const JobPod& pod : view.pods)
    if (pod.info->has_job_finalizer) held.insert(pod.info->uid());
  const auto keep = [&](const std::set<std::string>& uids, json::Array& kept, std::int64_t& counted) {
    for (const std::string& uid : uids)
      if (held.contains(uid))
        kept.push_back(json::Value(uid));
      else
        ++counted;
  };
  keep(view.uncounted_succeeded, out.succeeded, out.newly_counted_succeeded);
  keep(view.uncounted_failed, out.failed, out.newly_counted_failed);
  std::size_t tracked = 0;
  for (const JobPod& pod : view.pods) {
    const PodInfo& info = *pod.info;
    if (!info.has_job_finalizer || let_go.contains(info.uid())) continue;
    const bool ok = info.phase == PodPhase::kSucceeded, was_failed = view.uncounted_failed.contains(info.uid());
    if (!view.object->is_deleting() && !ending && !ok) {
      if (!pod.is_failed) continue;
      const auto awaiting = view.awaiting_successor.find(pod.index);
      if (view.per_index && awaiting != view.awaiting_successor.end() && awaiting->second == &pod) continue;
    }
    out.is_settled = false;
    if (++tracked > kMostPodsAStep) break;
    remove_tracking(plan, info, kFinalizers);
    const bool has_index = !view.indexed || (pod.index != kNoIndex && pod.index < view.completions.value_or(0));
    if (ok && !was_failed) {
      if (!view.indexed && !view.uncounted_succeeded.contains(info.uid())) out.succeeded.push_back(json::Value(info.uid()));
    } else if ((pod.is_failed || (ending && !ending->success)) && !was_failed && has_index &&
               pod.verdict.action != Verdict::Action::kIgnore) {
      // Of a Job that fails every pod that has not ended has failed.
      out.failed.push_back(json::Value(info.uid()));
    }
  }
  if (!out.succeeded.empty() || !out.failed.empty()) out.is_settled = false;
  return out;
}

json::Object job_condition(const char* type, const char* status, std::string_view reason, std::string_view message, TimePoint now) {
  const std::string time = format_rfc3339(now);
  return {{"type", type},     {"status", status},  {"lastProbeTime", time}, {"lastTransitionTime", time},
          {"reason", reason}, {"message", message}};
}

/// Sets a condition as Jobs do: every change is a transition, and nothing begins as false. True when it changed.
bool ensure_condition(json::Array& conditions, json::Object wanted) {
  for (json::Value& condition : conditions) {
    if (json::get_string(condition, {"type"}) != json::as_view(wanted["type"])) continue;
    for (const char* part : {"status", "reason", "message"}) {
      if (json::get_string(condition, {part}) == json::as_view(wanted[part])) continue;
      condition = std::move(wanted);
      return true;
    }
    return false;
  }
  if (wanted["status"] == "False") return false;
  conditions.push_back(std::move(wanted));
  return true;
}

void put_count(json::Object& status, std::string_view field, std::int64_t value) {
  if (value != 0)
    status[field] = value;
  else
    status.erase(field);
}

void put_counts(json::Object& status, const job::View& view, const Tracking& tracking, std::int64_t active) {
  put_count(status, "active", active);
  status["ready"] = view.ready;
  status["terminating"] = view.terminating;
  put_count(status, "succeeded",
            view.indexed ? view.succeeded : json::get_int(view.document, {"status", "succeeded"}) + tracking.newly_counted_succeeded);
  put_count(status, "failed", json::get_int(view.document, {"status", "failed"}) + tracking.newly_counted_failed);
  if (view.done.empty())
    status.erase("completedIndexes");
  else
    status["completedIndexes"] = format_indexes(view.done);
  if (view.per_index) status["failedIndexes"] = format_indexes(view.failed_indexes);
  json::Object uncounted;
  if (!tracking.succeeded.empty()) uncounted["succeeded"] = tracking.succeeded;
  if (!tracking.failed.empty()) uncounted["failed"] = tracking.failed;
  status["uncountedTerminatedPods"] = std::move(uncounted);
}

/// The condition Suspended, its events, and the start time, which runs from the last resumption.
void note_suspension(Plan& plan, const job::View& view, json::Object& status, json::Array& conditions, TimePoint now) {
  if (view.suspended) {
    if (!ensure_condition(conditions, job_condition("Suspended", "True", "JobSuspended", "Job suspended", now))) return;
    plan.events.push_back(note_about(kinds().job, *view.object, "Normal", "Suspended", "Job suspended"));
    status.erase("startTime");
  } else if (ensure_condition(conditions, job_condition("Suspended", "False", "JobResumed", "Job resumed", now))) {
    plan.events.push_back(note_about(kinds().job, *view.object, "Normal", "Resumed", "Job resumed"));
    status["startTime"] = format_rfc3339(now);
  }
}

void wait_for_deadline(Plan& plan, const job::View& view, const json::Object& status, TimePoint now) {
  if (json::find(view.document, {"spec", "activeDeadlineSeconds"}) == nullptr || view.suspended) return;
  const TimePoint started = read_time(json::Value(status), {"startTime"});
  const Duration left = std::max<Duration>(started + seconds_at(view.document, {"spec", "activeDeadlineSeconds"}) - now, Duration{0}) +
                        std::chrono::milliseconds(1);
  plan.requeue_after = std::min(left, plan.requeue_after.value_or(left));
}

Plan JobController::sync(job::View& view, Record& record, TimePoint now) {
  Plan plan;
  json::Object status = json::get_object(view.document, {"status"});
  json::Array conditions = json::get_array(view.document, {"status", "conditions"});
  record.next_backoff = next_backoff(record.backoff, view.newly_succeeded, view.newly_failed);
  if (!status.contains("startTime") && !view.suspended) status["startTime"] = format_rfc3339(now);
  std::optional<Ending> ending = ending_of(view, now);
  Managed managed{.active = std::ssize(view.active), .let_go = {}};
  if (ending) {
    for (const JobPod* pod : view.active)
      if (!plan.is_full()) delete_pod(plan, view, *pod->info, kDeleteLast);
    view.terminating += managed.active;
    managed.active = view.ready = 0;
  } else {
    if (!view.object->is_deleting()) managed = manage(plan, view, record, now);
    const bool is_complete = managed.active == 0 && (view.completions ? view.succeeded >= *view.completions : view.succeeded > 0);
    if (is_complete)
      ending = Ending{true, "CompletionsReached", "Reached expected number of succeeded pods"};
    else if (!view.object->is_deleting())
      note_suspension(plan, view, status, conditions, now);
  }
  const Tracking tracking = track(plan, view, ending, managed.let_go);
  put_counts(status, view, tracking, managed.active);
  std::optional<EventNote> finished;
  if (ending && !ending->is_announced) {
    conditions.push_back(
        job_condition(ending->success ? "SuccessCriteriaMet" : "FailureTarget", "True", ending->reason, ending->message, now));
  } else if (ending && tracking.is_settled && view.terminating == 0) {
    ensure_condition(conditions, job_condition(ending->success ? "Complete" : "Failed", "True", ending->reason, ending->message, now));
    if (ending->success) status["completionTime"] = format_rfc3339(now);
    finished = ending->success ? note_about(kinds().job, *view.object, "Normal", "Completed", "Job completed")
                               : note_about(kinds().job, *view.object, "Warning", ending->reason, ending->message);
    if (ending->success && view.completions && view.succeeded > *view.completions)
      plan.events.push_back(note_about(kinds().job, *view.object, "Warning", "TooManySucceededPods",
                                       "Too many succeeded pods running after completion count reached"));
  }
  if (!ending) wait_for_deadline(plan, view, status, now);
  if (!conditions.empty()) status["conditions"] = std::move(conditions);
  if (auto write = patch_status(kinds().job, *view.object, view.document, status, true)) {
    write->stage = kStatus;
    write->on_success = std::move(finished);
    plan.writes.push_back(std::move(*write));
  }
  return plan;
}

}  // namespace

ControllerPtr make_job_controller(JobOptions options) { return std::make_unique<JobController>(options); }

}  // namespace berth::controllers
