#include "dashboard/rows.h"

#include "base/clock.h"
#include "model/pods/pod_resources.h"
#include "model/topology_labels.h"

namespace berth::dashboard {
namespace {

void put(json::Object& row, std::string_view key, std::string_view value) {
  if (!value.empty()) row[std::string(key)] = value;
}
void put(json::Object& row, std::string_view key, std::int64_t value) {
  if (value != 0) row[std::string(key)] = value;
}
void put_flag(json::Object& row, std::string_view key, bool value) {
  if (value) row[std::string(key)] = true;
}

double seconds_of(std::string_view time) {
  const auto parsed = parse_rfc3339(time);
  return parsed ? static_cast<double>(parsed->time_since_epoch().count()) / 1e6 : 0;
}
void put_time(json::Object& row, std::string_view key, std::string_view time) {
  put(row, key, static_cast<std::int64_t>(seconds_of(time)));
}

/// Resources of whatever maker: nvidia.com/gpu, amd.com/gpu, gpu.intel.com/i915.
bool is_gpu(std::string_view name) { return name.ends_with("/gpu") || name.starts_with("gpu."); }

void put_amounts(json::Object& row, const model::ResourceAmounts& amounts) {
  std::int64_t gpu = 0;
  for (const auto& [name, amount] : amounts) {
    if (name == "cpu")
      put(row, "cpu", amount.milli_value());
    else if (name == "memory")
      put(row, "memory", amount.value());
    else if (name == "pods")
      put(row, "pods", amount.value());
    else if (is_gpu(name))
      gpu += amount.value();
  }
  put(row, "gpu", gpu);
}

std::string_view label(const json::Value& object, const model::LabelGenerations& generations) {
  const auto present = json::get_string(object, {"metadata", "labels", generations.present});
  return present.empty() ? json::get_string(object, {"metadata", "labels", generations.old}) : present;
}

/// Of a node's condition Ready: since when it is not, and why.
void put_readiness(json::Object& row, const json::Value& condition) {
  const auto status = json::get_string(condition, {"status"});
  put_flag(row, "ready", status == "True");
  if (status == "True") return;
  put_flag(row, "unknown", status == "Unknown");
  put_time(row, "since", json::get_string(condition, {"lastTransitionTime"}));
  const auto message = json::get_string(condition, {"message"});
  put(row, "why", message.empty() ? json::get_string(condition, {"reason"}) : message);
}

/// "0.0416 USD", of an hour.
void put_price(json::Object& row, std::string_view told) {
  double price = 0;
  const auto [end, problem] = std::from_chars(told.data(), told.data() + told.size(), price);
  if (problem != std::errc{} || price <= 0) return;
  row["price"] = price;
  const std::string_view rest(end, static_cast<std::size_t>(told.data() + told.size() - end));
  put(row, "currency", rest.substr(std::min<std::size_t>(rest.size(), 1)));
}

json::Object node_row(const json::Value& node) {
  json::Object row{{"kind", "node"}, {"name", json::get_string(node, {"metadata", "name"})}};
  put(row, "zone", label(node, model::kZoneLabel));
  const json::Value* allocatable = json::find(node, {"status", "allocatable"});
  put_amounts(row, model::amounts_of(allocatable != nullptr ? allocatable : json::find(node, {"status", "capacity"})));
  json::Array pressure;
  double pressed = 0;
  for (const json::Value& condition : json::get_array(node, {"status", "conditions"})) {
    const auto type = json::get_string(condition, {"type"});
    const bool is_true = json::get_string(condition, {"status"}) == "True";
    if (type == "Ready") {
      put_readiness(row, condition);
    } else if (is_true) {
      pressure.emplace_back(type);
      const double since = seconds_of(json::get_string(condition, {"lastTransitionTime"}));
      if (since > 0) pressed = pressed > 0 ? std::min(pressed, since) : since;
    }
  }
  if (!pressure.empty()) row["pressure"] = std::move(pressure);
  put(row, "pressed", static_cast<std::int64_t>(pressed));
  json::Array taints;
  for (const json::Value& taint : json::get_array(node, {"spec", "taints"})) {
    const auto value = json::get_string(taint, {"value"});
    taints.emplace_back(
        fmt::format("{}{}{}:{}", json::get_string(taint, {"key"}), value.empty() ? "" : "=", value, json::get_string(taint, {"effect"})));
  }
  if (!taints.empty()) row["taints"] = std::move(taints);
  put_flag(row, "cordoned", json::get_bool(node, {"spec", "unschedulable"}));
  put(row, "type", json::get_string(node, {"metadata", "labels", "node.kubernetes.io/instance-type"}));
  put_price(row, json::get_string(node, {"metadata", "annotations", "berth.dev/price-per-hour"}));
  put(row, "pool", json::get_string(node, {"metadata", "labels", "karpenter.sh/nodepool"}));
  put_time(row, "created", json::get_string(node, {"metadata", "creationTimestamp"}));
  return row;
}

/// The workload as people know it: a Deployment's pods belong to a ReplicaSet whose name ends with the pods' template hash, a CronJob's Job
/// has the time in its name.
std::string workload_of(const json::Value& pod) {
  for (const json::Value& owner : json::get_array(pod, {"metadata", "ownerReferences"})) {
    if (!json::get_bool(owner, {"controller"})) continue;
    const auto kind = json::get_string(owner, {"kind"}), name = json::get_string(owner, {"name"});
    const auto hash = json::get_string(pod, {"metadata", "labels", "pod-template-hash"});
    if (kind == "ReplicaSet" && !hash.empty() && name.size() > hash.size() + 1 && name.ends_with(hash))
      return fmt::format("Deployment/{}", name.substr(0, name.size() - hash.size() - 1));
    return fmt::format("{}/{}", kind, name);
  }
  return {};
}

void put_conditions(json::Object& row, const json::Value& pod) {
  for (const json::Value& condition : json::get_array(pod, {"status", "conditions"})) {
    const auto type = json::get_string(condition, {"type"}), status = json::get_string(condition, {"status"});
    if (type == "Ready") {
      put_flag(row, "ready", status == "True");
      if (status != "True" && row.contains("node") && json::get_string(condition, {"reason"}) != "PodCompleted")
        put_time(row, "unready", json::get_string(condition, {"lastTransitionTime"}));
    } else if (type == "PodScheduled" && status == "True") {
      put_time(row, "bound", json::get_string(condition, {"lastTransitionTime"}));
    } else if (type == "PodScheduled") {
      put(row, "reason", json::get_string(condition, {"reason"}));
      put(row, "message", json::get_string(condition, {"message"}));
    } else if (type == "DisruptionTarget" && status == "True") {
      put(row, "disruption", json::get_string(condition, {"reason"}));
    }
  }
}

/// What containers wait for, beyond their ordinary start, and how one ended that was started again: of the first that says so.
void put_containers(json::Object& row, const json::Value& pod) {
  std::int64_t restarts = 0;
  std::string_view waiting;
  std::string ended;
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"})
    for (const json::Value& status : json::get_array(pod, {"status", list})) {
      if (list == "containerStatuses") restarts += json::get_int(status, {"restartCount"});
      const auto reason = json::get_string(status, {"state", "waiting", "reason"});
      if (waiting.empty() && reason != "ContainerCreating" && reason != "PodInitializing") waiting = reason;
      const json::Value* last = json::find(status, {"lastState", "terminated"});
      if (last == nullptr || !ended.empty()) continue;
      ended = json::get_string(*last, {"reason"});
      if (ended.empty() || ended == "Error") ended = fmt::format("exit code {}", json::get_int(*last, {"exitCode"}));
    }
  put(row, "restarts", restarts);
  put(row, "waiting", waiting);
  put(row, "ended", ended);
}

/// Pods of one group are placed together or not at all.
std::string_view gang_of(const json::Value& pod) {
  for (const std::string_view label : {"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"})
    if (const auto name = json::get_string(pod, {"metadata", "labels", label}); !name.empty()) return name;
  return json::get_string(pod, {"spec", "schedulingGroup", "podGroupName"});
}

json::Object pod_row(const json::Value& pod) {
  json::Object row{{"kind", "pod"}};
  put(row, "ns", json::get_string(pod, {"metadata", "namespace"}));
  put(row, "name", json::get_string(pod, {"metadata", "name"}));
  put(row, "uid", json::get_string(pod, {"metadata", "uid"}));
  put(row, "node", json::get_string(pod, {"spec", "nodeName"}));
  put(row, "phase", json::get_string(pod, {"status", "phase"}));
  put_amounts(row, model::pod_total(pod, "requests"));
  put(row, "priority", json::get_int(pod, {"spec", "priority"}));
  put(row, "workload", workload_of(pod));
  put_time(row, "created", json::get_string(pod, {"metadata", "creationTimestamp"}));
  put_conditions(row, pod);
  put(row, "nominated", json::get_string(pod, {"status", "nominatedNodeName"}));
  // Evicted pods say so in their status, too.
  if (!row.contains("reason")) put(row, "reason", json::get_string(pod, {"status", "reason"}));
  if (!row.contains("message")) put(row, "message", json::get_string(pod, {"status", "message"}));
  put_flag(row, "deleting", json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr);
  put_containers(row, pod);
  if (const auto scheduler = json::get_string(pod, {"spec", "schedulerName"}); scheduler != "default-scheduler")
    put(row, "scheduler", scheduler);
  put(row, "gang", gang_of(pod));
  return row;
}

json::Object event_row(const json::Value& event) {
  json::Object row{{"kind", "event"}};
  put(row, "ns", json::get_string(event, {"metadata", "namespace"}));
  put(row, "name", json::get_string(event, {"metadata", "name"}));
  double at = 0;
  for (const char* field : {"lastTimestamp", "eventTime", "firstTimestamp"})
    at = std::max(at, seconds_of(json::get_string(event, {field})));
  at = std::max(at, seconds_of(json::get_string(event, {"series", "lastObservedTime"})));
  row["at"] = at == 0 ? seconds_of(json::get_string(event, {"metadata", "creationTimestamp"})) : at;
  put(row, "type", json::get_string(event, {"type"}));
  put(row, "reason", json::get_string(event, {"reason"}));
  // As events.k8s.io names these.
  const bool is_new = json::find(event, {"regarding"}) != nullptr;
  put(row, "object", json::get_string(event, {is_new ? "regarding" : "involvedObject", "kind"}));
  put(row, "on", json::get_string(event, {is_new ? "regarding" : "involvedObject", "name"}));
  put(row, "message", json::get_string(event, {json::find(event, {"message"}) != nullptr ? "message" : "note"}));
  const auto reporter = json::get_string(event, {"source", "component"});
  put(row, "source", reporter.empty() ? json::get_string(event, {"reportingComponent"}) : reporter);
  put(row, "count", std::max(json::get_int(event, {"count"}), json::get_int(event, {"series", "count"})));
  return row;
}

json::Object budget_row(const json::Value& budget) {
  json::Object row{{"kind", "budget"}};
  put(row, "ns", json::get_string(budget, {"metadata", "namespace"}));
  put(row, "name", json::get_string(budget, {"metadata", "name"}));
  put(row, "allowed", json::get_int(budget, {"status", "disruptionsAllowed"}));
  put(row, "healthy", json::get_int(budget, {"status", "currentHealthy"}));
  put(row, "desired", json::get_int(budget, {"status", "desiredHealthy"}));
  put(row, "expected", json::get_int(budget, {"status", "expectedPods"}));
  for (const json::Value& condition : json::get_array(budget, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "DisruptionAllowed" && json::get_string(condition, {"status"}) == "False")
      put_time(row, "since", json::get_string(condition, {"lastTransitionTime"}));
  put_time(row, "created", json::get_string(budget, {"metadata", "creationTimestamp"}));
  return row;
}

json::Object group_row(const json::Value& group) {
  json::Object row{{"kind", "group"}};
  put(row, "ns", json::get_string(group, {"metadata", "namespace"}));
  put(row, "name", json::get_string(group, {"metadata", "name"}));
  put(row, "min", json::get_int(group, {"spec", "schedulingPolicy", "gang", "minCount"}));
  for (const json::Value& one : json::get_array(group, {"spec", "schedulingConstraints", "topology"}))
    put(row, "topology", json::get_string(one, {"key"}));
  put(row, "priority", json::get_int(group, {"spec", "priority"}));
  for (const json::Value& condition : json::get_array(group, {"status", "conditions"})) {
    if (json::get_string(condition, {"type"}) != "PodGroupScheduled") continue;
    const bool is_scheduled = json::get_string(condition, {"status"}) == "True";
    put_flag(row, "scheduled", is_scheduled);
    if (is_scheduled) continue;
    put(row, "reason", json::get_string(condition, {"reason"}));
    put(row, "message", json::get_string(condition, {"message"}));
    put_time(row, "since", json::get_string(condition, {"lastTransitionTime"}));
  }
  put_time(row, "created", json::get_string(group, {"metadata", "creationTimestamp"}));
  return row;
}

constexpr std::string_view kNames[] = {"node", "pod", "event", "budget", "group"};

}  // namespace

std::optional<RowKind> row_kind_of(const json::Value& object) {
  const auto kind = json::get_string(object, {"kind"});
  if (kind == "Node") return RowKind::kNode;
  if (kind == "Pod") return RowKind::kPod;
  if (kind == "Event") return RowKind::kEvent;
  if (kind == "PodDisruptionBudget") return RowKind::kBudget;
  // Others have a kind of that name, too.
  const auto version = json::get_string(object, {"apiVersion"});
  if (kind == "PodGroup" && (version.empty() || version.starts_with("scheduling.k8s.io/"))) return RowKind::kGroup;
  return std::nullopt;
}

json::Object row_of(RowKind kind, const json::Value& object) {
  switch (kind) {
    case RowKind::kNode:
      return node_row(object);
    case RowKind::kPod:
      return pod_row(object);
    case RowKind::kBudget:
      return budget_row(object);
    case RowKind::kGroup:
      return group_row(object);
    case RowKind::kEvent:
      break;
  }
  return event_row(object);
}

json::Object gone_row(RowKind kind, std::string_view ns, std::string_view name) {
  json::Object row{{"gone", kNames[static_cast<std::size_t>(kind)]}};
  put(row, "ns", ns);
  put(row, "name", name);
  return row;
}

}  // namespace berth::dashboard
