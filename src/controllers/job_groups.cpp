#include "controllers/job_groups.h"

#include "controllers/pod_template_hash.h"

namespace berth::controllers::job {
namespace {

constexpr std::size_t kLongestName = 253;  ///< Of an object: a DNS subdomain.
constexpr std::size_t kLongestLabel = 63;  ///< Of a template: a DNS label.

/// "ns/name" of the Job that the Workload says it is of, of the Workload that the group was made of; empty: none.
std::string target_of(Kind kind, const Object& object) {
  const auto document = object.parsed();
  std::string_view name;
  if (kind == kinds().pod_group) {
    name = json::get_string(*document, {"spec", "podGroupTemplateRef", "workload", "workloadName"});
  } else if (const json::Value* ref = json::find(*document, {"spec", "controllerRef"})) {
    if (json::get_string(*ref, {"apiGroup"}) == "batch" && json::get_string(*ref, {"kind"}) == "Job")
      name = json::get_string(*ref, {"name"});
  }
  return name.empty() ? std::string() : fmt::format("{}/{}", object.ns(), name);
}

std::vector<ObjectRef> named(const std::map<std::string, std::set<std::string>, std::less<>>& names, const std::string& key, Kind kind,
                             std::string_view ns, const Cache& cache) {
  std::vector<ObjectRef> out;
  const auto found = names.find(key);
  if (found == names.end()) return out;
  for (const std::string& name : found->second)
    if (ObjectRef object = cache.get(kind, ns, name)) out.push_back(std::move(object));
  return out;
}

bool wants_a_group(const View& view) {
  return view.indexed && view.parallelism > 1 && view.completions == view.parallelism &&
         json::find(view.document, {"spec", "template", "spec", "schedulingGroup"}) == nullptr;
}

/// Every sign of an earlier start that outlives the others: pods may be collected, a start time goes with a suspension, numbers stay.
bool is_new(const View& view) {
  return view.pods.empty() && json::find(view.document, {"status", "startTime"}) == nullptr &&
         json::get_int(view.document, {"status", "succeeded"}) == 0 && json::get_int(view.document, {"status", "failed"}) == 0 &&
         find_condition(view.document, "Suspended") == nullptr;
}

/// A name in a Workload is a label: that of a long Job is shortened, where Kubernetes 1.36 has its Workload refused.
std::string template_name(std::string_view job) {
  constexpr std::string_view kEnd = "-pgt-0";
  job = job.substr(0, kLongestLabel - kEnd.size());
  while (job.ends_with('-')) job.remove_suffix(1);
  return fmt::format("{}{}", job, kEnd);
}

Write create_workload(const View& view) {
  const Object& job = *view.object;
  json::Object group_template{{"name", template_name(job.name())},
                              {"schedulingPolicy", json::Object{{"gang", json::Object{{"minCount", view.parallelism}}}}}};
  // The group is preempted, and preempts, by its own priority: without this a Job with a class would lose it by becoming a gang.
  if (const auto priority = json::get_string(view.document, {"spec", "template", "spec", "priorityClassName"}); !priority.empty())
    group_template["priorityClassName"] = priority;
  Write write = create_object(
      kinds().workload, job.ns(),
      json::Object{{"apiVersion", kinds().workload->api_version()},
                   {"kind", "Workload"},
                   {"metadata", json::Object{{"name", workload_name(job.name(), job.uid())},
                                             {"namespace", job.ns()},
                                             {"ownerReferences", json::Array{owner_reference(kinds().job, job)}}}},
                   {"spec", json::Object{{"controllerRef", json::Object{{"apiGroup", "batch"}, {"kind", "Job"}, {"name", job.name()}}},
                                         {"podGroupTemplates", json::Array{std::move(group_template)}}}}});
  write.on_success = note_about(kinds().job, job, "Normal", "WorkloadCreated", fmt::format("Created Workload {{}} for Job {}", job.name()));
  write.on_failure = note_about(kinds().job, job, "Warning", "FailedWorkloadCreate",
                                fmt::format("Failed to create Workload for Job {}: {{}}", job.name()));
  return write;
}

Write create_group(const View& view, const Object& workload, const json::Value& group_template) {
  const Object& job = *view.object;
  const std::string_view name = json::get_string(group_template, {"name"});
  // The Workload may go while the group is kept by its pods.
  json::Object of_workload{
      {"apiVersion", kinds().workload->api_version()}, {"kind", "Workload"}, {"name", workload.name()}, {"uid", workload.uid()}};
  json::Object spec{
      {"podGroupTemplateRef", json::Object{{"workload", json::Object{{"workloadName", workload.name()}, {"podGroupTemplateName", name}}}}}};
  for (const auto& field : group_template.get_object())
    if (field.key() != "name") spec[field.key()] = field.value();
  spec.erase("priority");  // Admission fills it in, and takes it from nobody else.
  Write write = create_object(
      kinds().pod_group, job.ns(),
      json::Object{{"apiVersion", kinds().pod_group->api_version()},
                   {"kind", "PodGroup"},
                   {"metadata", json::Object{{"name", pod_group_name(workload.name(), name)},
                                             {"namespace", job.ns()},
                                             {"ownerReferences", json::Array{owner_reference(kinds().job, job), std::move(of_workload)}}}},
                   {"spec", std::move(spec)}});
  write.on_failure = note_about(kinds().job, job, "Warning", "FailedPodGroupCreate",
                                fmt::format("Failed to create PodGroup for Job {}: {{}}", job.name()));
  return write;
}

}  // namespace

void GroupIndex::on_event(const Event& event) {
  Names& names = event.kind == kinds().pod_group ? groups_ : workloads_;
  const std::string before = event.before ? target_of(event.kind, *event.before) : std::string(),
                    after = event.after ? target_of(event.kind, *event.after) : std::string();
  if (const auto found = names.find(before); found != names.end() && before != after) {
    found->second.erase(event.object().name());
    if (found->second.empty()) names.erase(found);
  }
  if (!after.empty()) names[after].insert(event.object().name());
}

std::vector<ObjectRef> GroupIndex::workloads_of(const Object& job, const Cache& cache) const {
  return named(workloads_, job.key(), kinds().workload, job.ns(), cache);
}

std::vector<ObjectRef> GroupIndex::groups_of(const Object& workload, const Cache& cache) const {
  return named(groups_, workload.key(), kinds().pod_group, workload.ns(), cache);
}

Grouping grouping_of(const View& view, const GroupIndex& index, const Cache& cache) {
  if (!wants_a_group(view)) return {};
  const Object& job = *view.object;
  const auto workloads = index.workloads_of(job, cache);
  if (workloads.empty()) return is_new(view) ? Grouping{create_workload(view), {}} : Grouping{};
  if (workloads.size() > 1 || workloads.front()->controller_uid() != job.uid()) return {};
  const Object& workload = *workloads.front();
  const auto document = workload.parsed();
  const json::Array& templates = json::get_array(*document, {"spec", "podGroupTemplates"});
  if (templates.size() != 1) return {};
  const auto groups = index.groups_of(workload, cache);
  if (groups.empty()) return {create_group(view, workload, templates[0]), {}};
  if (groups.size() > 1 || groups.front()->controller_uid() != job.uid()) return {};
  return {std::nullopt, groups.front()->name()};
}

std::string workload_name(std::string_view job, std::string_view uid) {
  // As Go's spew prints a types.UID.
  const std::string hash = text_hash(fmt::format("(types.UID){}", uid));
  return fmt::format("{}-{}", job.substr(0, kLongestName - hash.size() - 1), hash);
}

std::string pod_group_name(std::string_view workload, std::string_view pod_group_template) {
  const std::string hash = text_hash(fmt::format("{}{}", workload, pod_group_template));
  const std::size_t room = kLongestName - hash.size() - 2, half = room / 2;
  // Each has half of the room, and what the other one leaves of its half.
  if (workload.size() + pod_group_template.size() > room) {
    const std::size_t of_workload = pod_group_template.size() <= half ? room - pod_group_template.size() : room - half;
    workload = workload.substr(0, of_workload);
    pod_group_template = pod_group_template.substr(0, room - workload.size());
  }
  return fmt::format("{}-{}-{}", workload, pod_group_template, hash);
}

}  // namespace berth::controllers::job
