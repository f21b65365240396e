#include "queues/objects.h"

#include <algorithm>

#include "model/pods/pod_resources.h"

namespace berth::queues {
namespace {

using json::Array;
using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Value;

std::optional<model::Quantity> quantity(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return model::Quantity::parse(json::as_view(*value));
  return model::Quantity::parse(json::serialize(*value));
}

std::optional<Amount> amount_at(const Value& quota, std::string_view field, std::string_view resource) {
  const auto found = quantity(json::find(quota, field));
  if (!found) return std::nullopt;
  return std::max<Amount>(0, amount_of(resource, *found));
}

Quotas read_quotas(const Value& document, std::vector<ResourceGroup>* groups) {
  Quotas out;
  for (const Value& group : get_array(document, {"spec", "resourceGroups"})) {
    ResourceGroup read;
    for (const Value& resource : get_array(group, {"coveredResources"}))
      if (resource.is_string()) read.resources.emplace_back(json::as_view(resource));
    for (const Value& flavor : get_array(group, {"flavors"})) {
      read.flavors.emplace_back(get_string(flavor, {"name"}));
      for (const Value& quota : get_array(flavor, {"resources"})) {
        const std::string resource(get_string(quota, {"name"}));
        out[{read.flavors.back(), resource}] = {.nominal = amount_at(quota, "nominalQuota", resource).value_or(0),
                                                .borrowing_limit = amount_at(quota, "borrowingLimit", resource),
                                                .lending_limit = amount_at(quota, "lendingLimit", resource)};
      }
    }
    if (groups != nullptr) groups->push_back(std::move(read));
  }
  return out;
}

StopPolicy stop_policy(const Value& document) {
  const std::string_view word = get_string(document, {"spec", "stopPolicy"});
  return word == "Hold" ? StopPolicy::kHold : word == "HoldAndDrain" ? StopPolicy::kHoldAndDrain : StopPolicy::kNone;
}

PreemptionPolicy policy_of(std::string_view word) {
  return word == "LowerPriority"               ? PreemptionPolicy::kLowerPriority
         : word == "LowerOrNewerEqualPriority" ? PreemptionPolicy::kLowerOrNewerEqualPriority
         : word == "Any"                       ? PreemptionPolicy::kAny
                                               : PreemptionPolicy::kNever;
}

std::int64_t weight_of(const Value& document) {
  const auto weight = quantity(json::find(document, {"spec", "fairSharing", "weight"}));
  return weight ? std::max<std::int64_t>(0, weight->milli_value()) : 1000;
}

bool is_deleting(const Value& document) { return json::find(document, {"metadata", "deletionTimestamp"}) != nullptr; }
std::string name_of(const Value& document) { return std::string(get_string(document, {"metadata", "name"})); }
std::string ns_of(const Value& document) { return std::string(get_string(document, {"metadata", "namespace"})); }
TimePoint time_at(const Value& root, json::Path path) { return parse_rfc3339(get_string(root, path)).value_or(TimePoint{}); }

void read_owner(const Value& document, Workload& out) {
  for (const Value& owner : get_array(document, {"metadata", "ownerReferences"})) {
    const bool controls = get_bool(owner, {"controller"});
    if (!out.owner_uid.empty() && !controls) continue;
    out.owner_kind = get_string(owner, {"kind"});
    out.owner_name = get_string(owner, {"name"});
    out.owner_uid = get_string(owner, {"uid"});
    if (controls) return;
  }
}

void read_admission(const Value& document, Workload& out) {
  const Value* admission = json::find(document, {"status", "admission"});
  if (admission == nullptr) return;
  out.admitted_by = get_string(*admission, {"clusterQueue"});
  for (const Value& assignment : get_array(*admission, {"podSetAssignments"})) {
    PodSetAdmission read{.name = std::string(get_string(assignment, {"name"}, "main"))};
    for (const auto& [resource, flavor] : get_object(assignment, {"flavors"}))
      if (flavor.is_string()) read.flavors.emplace(resource, json::as_view(flavor));
    for (const auto& [resource, amount] : model::amounts_of(json::find(assignment, "resourceUsage")))
      read.usage.emplace(resource, amount_of(resource, amount));
    const auto same = std::ranges::find(out.pod_sets, read.name, &PodSet::name);
    read.count = get_int(assignment, {"count"}, same == out.pod_sets.end() ? 0 : same->count);
    out.assignments.push_back(std::move(read));
  }
}

void read_status(const Value& document, Workload& out) {
  for (const Value& condition : get_array(document, {"status", "conditions"}))
    out.conditions.push_back({.type = std::string(get_string(condition, {"type"})),
                              .reason = std::string(get_string(condition, {"reason"})),
                              .message = std::string(get_string(condition, {"message"})),
                              .is_true = get_string(condition, {"status"}) == "True",
                              .since = time_at(condition, {"lastTransitionTime"})});
  read_admission(document, out);
  for (const Value& pods : get_array(document, {"status", "reclaimablePods"}))
    out.reclaimable[std::string(get_string(pods, {"name"}))] = get_int(pods, {"count"});
  out.requeue_count = get_int(document, {"status", "requeueState", "count"});
  out.requeue_at = parse_rfc3339(get_string(document, {"status", "requeueState", "requeueAt"}));
  // The word is misspelt in the API.
  out.past_execution_seconds = get_int(document, {"status", "accumulatedPastExexcutionTimeSeconds"});
}

}  // namespace

ClusterQueue ClusterQueue::parse(const Value& document) {
  ClusterQueue out;
  out.name = name_of(document);
  out.cohort = get_string(document, {"spec", "cohort"});
  out.quotas = read_quotas(document, &out.groups);
  out.is_strict = get_string(document, {"spec", "queueingStrategy"}) == "StrictFIFO";
  if (auto selector = model::Selector::from_label_selector(json::find(document, {"spec", "namespaceSelector"})))
    out.namespaces = std::move(*selector);
  out.tries_next_before_borrowing = get_string(document, {"spec", "flavorFungibility", "whenCanBorrow"}) == "TryNextFlavor";
  out.tries_next_before_preempting = get_string(document, {"spec", "flavorFungibility", "whenCanPreempt"}) != "Preempt";
  out.within_queue = policy_of(get_string(document, {"spec", "preemption", "withinClusterQueue"}));
  out.reclaim = policy_of(get_string(document, {"spec", "preemption", "reclaimWithinCohort"}));
  out.may_borrow_and_preempt = get_string(document, {"spec", "preemption", "borrowWithinCohort", "policy"}) == "LowerPriority";
  if (json::find(document, {"spec", "preemption", "borrowWithinCohort", "maxPriorityThreshold"}) != nullptr)
    out.borrow_threshold = get_int(document, {"spec", "preemption", "borrowWithinCohort", "maxPriorityThreshold"});
  out.stop = stop_policy(document);
  out.weight_milli = weight_of(document);
  for (const Value& check : get_array(document, {"spec", "admissionChecks"}))
    if (check.is_string()) out.admission_checks.emplace_back(json::as_view(check));
  for (const Value& check : get_array(document, {"spec", "admissionChecksStrategy", "admissionChecks"}))
    out.admission_checks.emplace_back(get_string(check, {"name"}));
  out.is_deleting = queues::is_deleting(document);
  return out;
}

const ResourceGroup* ClusterQueue::group_of(std::string_view resource) const {
  const auto found = std::ranges::find_if(
      groups, [&](const ResourceGroup& group) { return std::ranges::find(group.resources, resource) != group.resources.end(); });
  return found == groups.end() ? nullptr : &*found;
}

Cohort Cohort::parse(const Value& document) {
  Cohort out;
  out.name = name_of(document);
  out.parent = get_string(document, {"spec", "parentName"});
  out.quotas = read_quotas(document, nullptr);
  out.weight_milli = weight_of(document);
  return out;
}

LocalQueue LocalQueue::parse(const Value& document) {
  return {.ns = ns_of(document),
          .name = name_of(document),
          .cluster_queue = std::string(get_string(document, {"spec", "clusterQueue"})),
          .stop = stop_policy(document),
          .is_deleting = queues::is_deleting(document)};
}

Flavor Flavor::parse(const Value& document) {
  Flavor out;
  out.name = name_of(document);
  out.topology = get_string(document, {"spec", "topologyName"});
  for (const auto& [key, value] : get_object(document, {"spec", "nodeLabels"}))
    if (value.is_string()) out.node_labels.emplace_back(key, json::as_view(value));
  std::ranges::sort(out.node_labels);
  for (const Value& taint : get_array(document, {"spec", "nodeTaints"})) out.taints.push_back(model::parse_taint(taint));
  out.toleration_documents = get_array(document, {"spec", "tolerations"});
  out.tolerations = model::parse_tolerations(out.toleration_documents);
  out.is_deleting = queues::is_deleting(document);
  return out;
}

Workload Workload::parse(const Value& document) {
  Workload out;
  out.ns = ns_of(document);
  out.name = name_of(document);
  out.uid = get_string(document, {"metadata", "uid"});
  out.created = time_at(document, {"metadata", "creationTimestamp"});
  out.generation = get_int(document, {"metadata", "generation"});
  out.is_deleting = queues::is_deleting(document);
  read_owner(document, out);
  out.job_uid = get_string(document, {"metadata", "labels", "kueue.x-k8s.io/job-uid"});
  out.queue = get_string(document, {"spec", "queueName"});
  out.priority_class = get_string(document, {"spec", "priorityClassName"});
  out.priority = get_int(document, {"spec", "priority"});
  out.is_active = get_bool(document, {"spec", "active"}, true);
  if (json::find(document, {"spec", "maximumExecutionTimeSeconds"}) != nullptr)
    out.most_execution_seconds = get_int(document, {"spec", "maximumExecutionTimeSeconds"});
  for (const Value& pod_set : get_array(document, {"spec", "podSets"})) {
    PodSet read{.name = std::string(get_string(pod_set, {"name"}, "main")),
                .count = std::max<std::int64_t>(0, get_int(pod_set, {"count"}, 1))};
    if (const Value* found = json::find(pod_set, "template")) read.pod_template = *found;
    read.per_pod = requests_of_template(read.pod_template);
    out.pod_sets.push_back(std::move(read));
  }
  read_status(document, out);
  return out;
}

const Condition* Workload::condition(std::string_view type) const {
  const auto found = std::ranges::find(conditions, type, &Condition::type);
  return found == conditions.end() ? nullptr : &*found;
}

bool Workload::is(std::string_view type) const {
  const Condition* found = condition(type);
  return found != nullptr && found->is_true;
}

std::int64_t Workload::count_of(const PodSet& pod_set) const {
  const auto gone = reclaimable.find(pod_set.name);
  return std::max<std::int64_t>(0, pod_set.count - (gone == reclaimable.end() ? 0 : gone->second));
}

std::vector<Requests> Workload::totals() const {
  std::vector<Requests> out;
  for (const PodSet& pod_set : pod_sets) {
    Requests total;
    for (const auto& [resource, amount] : pod_set.per_pod) total.emplace(resource, times(amount, count_of(pod_set)));
    out.push_back(std::move(total));
  }
  return out;
}

FlavorAmounts Workload::usage() const {
  FlavorAmounts out;
  if (!has_reservation()) return out;
  for (const PodSetAdmission& assignment : assignments) {
    const auto gone = reclaimable.find(assignment.name);
    const std::int64_t left = std::max<std::int64_t>(0, assignment.count - (gone == reclaimable.end() ? 0 : gone->second));
    for (const auto& [resource, amount] : assignment.usage) {
      const auto flavor = assignment.flavors.find(resource);
      if (flavor == assignment.flavors.end()) continue;
      const Amount held = assignment.count > 0 && left < assignment.count ? times(amount / assignment.count, left) : amount;
      Amount& sum = out[{flavor->second, resource}];
      sum = plus(sum, held);
    }
  }
  return out;
}

Requests requests_of_template(const Value& pod_template) {
  Value pod = pod_template;
  for (const char* list : {"containers", "initContainers"}) {
    Value* containers = json::find(pod, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (Value& container : containers->get_array()) {
      const json::Object limits = get_object(container, {"resources", "limits"});
      if (limits.empty()) continue;
      json::Object& requests = json::ensure_object(container, {"resources", "requests"});
      for (const auto& [resource, amount] : limits)
        if (!requests.contains(resource)) requests[resource] = amount;
    }
  }
  Requests out;
  for (const auto& [resource, amount] : model::pod_total(pod, "requests")) out.emplace(resource, amount_of(resource, amount));
  return out;
}

}  // namespace berth::queues
