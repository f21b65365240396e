// batch Jobs that name a queue: suspended until their Workload is admitted (Kueue: pkg/controller/jobframework, jobs/job).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "queues/core_impl.h"

namespace berth::queues {
namespace {

using json::Array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;

constexpr std::string_view kMainPodSet = "main";

bool is_suspended(const Value& job) { return get_bool(job, {"spec", "suspend"}); }
std::int64_t active_pods(const Value& job) { return get_int(job, {"status", "active"}); }

/// The pods that run at once.
std::int64_t pod_count(const Value& job) {
  const std::int64_t parallelism = get_int(job, {"spec", "parallelism"}, 1);
  return std::min(parallelism, get_int(job, {"spec", "completions"}, parallelism));
}

/// Complete or Failed.
const Value* end_of(const Value& job) {
  for (const Value& condition : json::get_array(job, {"status", "conditions"}))
    if (const auto type = get_string(condition, {"type"});
        (type == "Complete" || type == "Failed") && get_string(condition, {"status"}) == "True")
      return &condition;
  return nullptr;
}

/// The template as its author wrote it: without the labels that name the Job.
Value own_template(const Value& job) {
  Object labels = get_object(job, {"spec", "template", "metadata", "labels"});
  for (const char* managed : {"job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"})
    labels.erase(managed);
  Object meta;
  if (!labels.empty()) meta["labels"] = std::move(labels);
  if (Object annotations = get_object(job, {"spec", "template", "metadata", "annotations"}); !annotations.empty())
    meta["annotations"] = std::move(annotations);
  return Object{{"metadata", std::move(meta)}, {"spec", get_object(job, {"spec", "template", "spec"})}};
}

void forget_placement(Value& pod_template) {
  json::erase(pod_template, {"spec", "nodeSelector"});
  json::erase(pod_template, {"spec", "tolerations"});
  json::erase(pod_template, {"metadata", "labels", kPodSetLabel});
  if (get_object(pod_template, {"metadata", "labels"}).empty()) json::erase(pod_template, {"metadata", "labels"});
}

std::optional<std::int64_t> most_seconds(const Value& job) {
  const std::string text = label_of(job, kMostSecondsLabel);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 1) return std::nullopt;
  return out;
}

/// Whether the Workload still describes the Job. While it has quota, where the pods may be is admission's matter.
bool is_match(const Value& job, const Workload& workload) {
  if (workload.pod_sets.size() != 1 || workload.most_execution_seconds != most_seconds(job)) return false;
  if (workload.pod_sets.front().count != pod_count(job)) return false;
  Value wanted = own_template(job), known = workload.pod_sets.front().pod_template;
  if (!json::find(known, "metadata")) json::set(known, {"metadata"}, Object{});
  if (workload.has_reservation()) {
    forget_placement(wanted);
    forget_placement(known);
  }
  return json::equal(wanted, known);
}

bool has_started(const Value& job, const Value& original) {
  return json::find(job, {"spec", "template", "metadata", "labels", kPodSetLabel}) != nullptr &&
         json::find(original, {"metadata", "labels", kPodSetLabel}) == nullptr;
}

/// False: it is so already.
bool restore_template(Value& job, const Value& original) {
  Value now_is = own_template(job), was = original;
  if (!json::find(was, "metadata")) json::set(was, {"metadata"}, Object{});
  if (json::equal(now_is, was)) return false;
  Value& pod_template = *json::find(job, {"spec", "template"});
  for (const char* field : {"nodeSelector", "tolerations"}) {
    json::erase(pod_template, {"spec", field});
    if (const Value* kept = json::find(original, {"spec", field})) json::set(pod_template, {"spec", field}, *kept);
  }
  if (json::find(original, {"metadata", "labels", kPodSetLabel}) == nullptr)
    json::erase(pod_template, {"metadata", "labels", kPodSetLabel});
  return true;
}

json::Array owner_references(const Value& job) {
  return {Object{{"apiVersion", "batch/v1"},
                 {"kind", "Job"},
                 {"name", get_string(job, {"metadata", "name"})},
                 {"uid", get_string(job, {"metadata", "uid"})},
                 {"controller", true},
                 {"blockOwnerDeletion", true}}};
}

/// One Job's turn: what is wrong first is put right, a write at a time.
class JobTurn {
 public:
  JobTurn(CoreState& impl, ObjectKey key, const Value& job)
      : impl_(impl), key_(std::move(key)), job_(job), uid_(get_string(job, {"metadata", "uid"})) {}

  void run() {
    const auto mine = impl_.workloads_of(uid_);
    for (const WorkloadKey& one : mine)
      if (!impl_.may_write(object_of(one))) return;
    const auto match = std::ranges::find_if(mine, [&](const WorkloadKey& one) { return is_match(job_, impl_.workloads[one].workload); });
    const Value* end = end_of(job_);
    if (match == mine.end()) {
      if (end == nullptr) without_match(mine);
      return;
    }
    for (const WorkloadKey& other : mine)
      if (other != *match) drop(other);
    if (end != nullptr)
      impl_.finish(*match, get_string(*end, {"type"}) == "Complete", "", std::string(get_string(*end, {"message"})), key_);
    else
      with(*match, impl_.workloads[*match].workload);
  }

 private:
  void without_match(const std::vector<WorkloadKey>& mine) {
    if (mine.empty()) {
      const auto lost = impl_.lost_templates.find(key_);
      if (stop(lost == impl_.lost_templates.end() ? nullptr : &lost->second, "Missing Workload; unable to restore pod templates")) return;
      if (active_pods(job_) == 0) create();
      return;
    }
    const Workload& first = impl_.workloads[mine.front()].workload;
    if (first.is("Finished")) return;
    if (is_suspended(job_) && !first.has_reservation()) {
      rewrite(mine.front(), "Updated not matching Workload for suspended job: " + text_of(mine.front()));
      return;
    }
    const Value original = first.pod_sets.empty() ? Value() : first.pod_sets.front().pod_template;
    if (stop(is_suspended(job_) ? nullptr : &original, "No matching Workload; restoring pod templates according to existent Workload"))
      return;
    for (const WorkloadKey& one : mine) drop(one);
  }

  void with(const WorkloadKey& name, const Workload& workload) {
    if (workload.is("Finished") || workload.is_deleting) return;
    const Value& original = workload.pod_sets.front().pod_template;
    if (!is_suspended(job_) && !workload.is_active && resume_after_user(name)) return;
    if (const Condition* evicted = workload.condition("Evicted"); evicted != nullptr && evicted->is_true) {
      if (stop(&original, evicted->message)) return;
      if (workload.has_reservation() && active_pods(job_) == 0)
        impl_.clear_admission(name);
      else if (!workload.has_reservation())
        follow_labels(name, workload);
      return;
    }
    if (!is_suspended(job_)) {
      if (!workload.is("Admitted"))
        stop(&original, "Not admitted by cluster queue");
      else
        tell_progress(name, workload);
      return;
    }
    if (!workload.is("Admitted")) return follow_labels(name, workload);
    if (has_started(job_, original)) return suspended_by_user(name);
    start(name, workload);
  }

  void start(const WorkloadKey& name, const Workload& workload) {
    if (clear_start_time()) return;
    Value changed = job_;
    Value& pod_template = *json::find(changed, {"spec", "template"});
    const PodSetAdmission assignment =
        workload.assignments.empty() ? PodSetAdmission{.name = std::string(kMainPodSet)} : workload.assignments.front();
    for (const auto& [resource, flavor] : assignment.flavors)
      if (!impl_.flavors.contains(flavor)) return;  // Its finalizer holds it; it is only not seen yet.
    if (const std::string key = place(json::ensure_object(pod_template, {"spec"}), assignment); !key.empty()) {
      impl_.finish(name, false, "FailedToStart", fmt::format("conflict for nodeSelector: {}", key), key_);
      return;
    }
    json::set(pod_template, {"metadata", "labels", kPodSetLabel}, Value(assignment.name));
    json::set(changed, {"spec", "suspend"}, Value(false));  // The template may move by that.
    impl_.update(key_, std::move(changed), false,
                 {impl_.note(key_, "Normal", "Started", fmt::format("Admitted by clusterQueue {}", *workload.admitted_by))});
  }
  std::string place(Object& spec, const PodSetAdmission& assignment) {
    Value value = spec;
    std::string out = queues::place(value, placement_of(assignment, impl_.flavors));
    spec = value.get_object();
    return out;
  }

  /// True: it is not there yet.
  bool stop(const Value* original, const std::string& message) {
    if (!is_suspended(job_)) {
      Value changed = job_;
      json::set(changed, {"spec", "suspend"}, Value(true));
      impl_.update(key_, std::move(changed), false, {impl_.note(key_, "Normal", "Stopped", message)});
      return true;
    }
    if (active_pods(job_) > 0) return true;
    if (clear_start_time()) return true;
    if (original == nullptr || original->is_null()) return false;
    Value changed = job_;
    if (!restore_template(changed, *original)) return false;
    impl_.update(key_, std::move(changed), false);
    return true;
  }
  /// A Job that has been running has its template fixed until then, before Kubernetes 1.35.
  bool clear_start_time() {
    if (json::find(job_, {"status", "startTime"}) == nullptr) return false;
    Value changed = job_;
    json::erase(changed, {"status", "startTime"});
    impl_.update(key_, std::move(changed), true);
    return true;
  }

  void suspended_by_user(const WorkloadKey& name) {
    Value changed = *impl_.document(object_of(name));
    json::set(changed, {"spec", "active"}, Value(false));
    json::set(changed, {"metadata", "annotations", kSuspendedByUserAnnotation}, Value("true"));
    impl_.update(object_of(name), std::move(changed), false,
                 {impl_.note(key_, "Normal", "Deactivated",
                             fmt::format("The Job was suspended: Workload {} is deactivated and gives its quota back; it is queued again "
                                         "when the Job is resumed",
                                         name.second))});
  }
  bool resume_after_user(const WorkloadKey& name) {
    Value changed = *impl_.document(object_of(name));
    if (annotation_of(changed, kSuspendedByUserAnnotation).empty()) return false;
    json::set(changed, {"spec", "active"}, Value(true));
    json::erase(changed, {"metadata", "annotations", kSuspendedByUserAnnotation});
    impl_.update(object_of(name), std::move(changed), false);
    return true;
  }

  /// The queue and the priority class may be changed while it waits.
  void follow_labels(const WorkloadKey& name, const Workload& workload) {
    if (workload.has_reservation()) return;
    const std::string priority_class = label_of(job_, kPriorityClassLabel);
    if (workload.queue == label_of(job_, kQueueLabel) && (priority_class.empty() || priority_class == workload.priority_class)) return;
    rewrite(name, "");
  }

  void tell_progress(const WorkloadKey& name, const Workload& workload) {
    Value changed = *impl_.document(object_of(name));
    bool is_changed = false;
    const std::int64_t parallelism = get_int(job_, {"spec", "parallelism"}, 1), succeeded = get_int(job_, {"status", "succeeded"});
    const std::int64_t left = get_int(job_, {"spec", "completions"}, parallelism) - succeeded;
    if (parallelism > 1 && succeeded > 0 && left < parallelism && left >= 0) {
      const auto known = workload.reclaimable.find(kMainPodSet);
      if (known == workload.reclaimable.end() || known->second < parallelism - left) {
        json::set(changed, {"status", "reclaimablePods"}, Array{Object{{"name", kMainPodSet}, {"count", parallelism - left}}});
        is_changed = true;
      }
    }
    if (impl_.settings.pods_ready_timeout) {
      const bool is_ready = get_int(job_, {"status", "ready"}) + succeeded >= pod_count(job_);
      is_changed |= is_ready ? set_condition(changed, "PodsReady", true, "Started",
                                             "All pods reached readiness and the workload is running", impl_.now)
                             : set_condition(changed, "PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded", impl_.now);
    }
    if (is_changed) impl_.update(object_of(name), std::move(changed), true);
  }

  void drop(const WorkloadKey& name) {
    impl_.remove(object_of(name), {impl_.note(key_, "Normal", "DeletedWorkload", "Deleted not matching Workload: " + text_of(name))});
  }

  std::optional<Value> spec() {
    const auto priority = impl_.priority_of(key_, job_, *json::find(job_, {"spec", "template", "spec"}));
    if (!priority) return std::nullopt;
    Object out{{"queueName", label_of(job_, kQueueLabel)},
               {"active", true},
               {"priority", priority->value},
               {"priorityClassName", priority->name},
               {"priorityClassSource", priority->source},
               {"podSets", Array{Object{{"name", kMainPodSet}, {"count", pod_count(job_)}, {"template", own_template(job_)}}}}};
    if (const auto most = most_seconds(job_)) out["maximumExecutionTimeSeconds"] = *most;
    if (priority->name.empty()) out.erase("priorityClassName");
    return Value(std::move(out));
  }

  void rewrite(const WorkloadKey& name, const std::string& message) {
    auto wanted = spec();
    if (!wanted) return;
    Value changed = *impl_.document(object_of(name));
    (*wanted).get_object()["active"] = get_bool(changed, {"spec", "active"}, true);
    json::set(changed, {"spec"}, std::move(*wanted));
    std::vector<EventNote> events;
    if (!message.empty()) events.push_back(impl_.note(key_, "Normal", "UpdatedWorkload", message));
    impl_.update(object_of(name), std::move(changed), false, std::move(events));
  }

  void create() {
    const WorkloadKey name{key_.ns, workload_name("Job", "batch", key_.name, uid_)};
    if (!impl_.may_write(object_of(name)) || impl_.document(object_of(name)) != nullptr) return;
    auto wanted = spec();
    if (!wanted) return;
    impl_.lost_templates.erase(key_);
    Value made = Object{{"apiVersion", kApiVersion},
                        {"kind", "Workload"},
                        {"metadata", Object{{"name", name.second},
                                            {"namespace", name.first},
                                            {"labels", Object{{kJobUidLabel, uid_}}},
                                            {"ownerReferences", owner_references(job_)}}},
                        {"spec", std::move(*wanted)}};
    impl_.create(object_of(name), std::move(made), {impl_.note(key_, "Normal", "CreatedWorkload", "Created Workload: " + text_of(name))});
  }

  CoreState& impl_;
  const ObjectKey key_;
  const Value& job_;
  const std::string uid_;
};

}  // namespace

void CoreState::reconcile_job(const ObjectKey& key) {
  const Value* found = document(key);
  if (found == nullptr || !may_write(key) || json::find(*found, {"metadata", "deletionTimestamp"}) != nullptr) return;
  if (label_of(*found, kQueueLabel).empty() || json::find(*found, {"spec", "template", "spec"}) == nullptr) return;
  const Value job = *found;  // The turn changes what is known.
  JobTurn(*this, key, job).run();
}

std::optional<CoreState::Priority> CoreState::priority_of(const ObjectKey& about, const Value& object, const Value& pod_spec) {
  if (const std::string name = label_of(object, kPriorityClassLabel); !name.empty()) {
    const Value* found = document({Kind::kWorkloadPriorityClass, "", name});
    if (found != nullptr) return Priority{name, "kueue.x-k8s.io/workloadpriorityclass", get_int(*found, {"value"})};
    complain(about, "ErrWorkloadCompose", fmt::format("workloadpriorityclasses.kueue.x-k8s.io \"{}\" not found", name));
    return std::nullopt;
  }
  const std::string name(get_string(pod_spec, {"priorityClassName"}));
  if (!name.empty()) {
    const Value* found = document({Kind::kPriorityClass, "", name});
    if (found != nullptr) return Priority{name, "scheduling.k8s.io/priorityclass", get_int(*found, {"value"})};
    complain(about, "ErrWorkloadCompose", fmt::format("priorityclasses.scheduling.k8s.io \"{}\" not found", name));
    return std::nullopt;
  }
  for (auto one = objects.lower_bound({Kind::kPriorityClass, "", ""}); one != objects.end() && one->first.kind == Kind::kPriorityClass;
       ++one)
    if (get_bool(one->second.document, {"globalDefault"}))
      return Priority{one->first.name, "scheduling.k8s.io/priorityclass", get_int(one->second.document, {"value"})};
  return Priority{};
}

std::vector<WorkloadKey> CoreState::workloads_of(const std::string& owner_uid) const {
  const auto found = by_owner.find(owner_uid);
  return found == by_owner.end() ? std::vector<WorkloadKey>() : std::vector<WorkloadKey>(found->second.begin(), found->second.end());
}

}  // namespace berth::queues
