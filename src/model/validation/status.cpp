// What a status may say. Kubernetes: pkg/apis/{core,apps,batch,policy}/validation, Validate*Status and Validate*StatusUpdate.
#include <fmt/format.h>

#include <set>

#include "model/flow_control.h"
#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_int;
using json::get_object;
using json::get_string;

/// Counters of a kind's status: none is negative; those in `within_replicas` count some of the replicas.
struct StatusCounters {
  std::string_view kind;
  std::vector<std::string_view> counters, within_replicas;
  bool available_within_ready = false;
};

const StatusCounters* counters_of(const KindInfo& kind) {
  static const std::vector<StatusCounters> kAll = {
      {"Deployment",
       {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "collisionCount",
        "terminatingReplicas"},
       {"updatedReplicas", "readyReplicas", "availableReplicas"},
       true},
      {"ReplicaSet",
       {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration", "terminatingReplicas"},
       {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
       true},
      {"ReplicationController",
       {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"},
       {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
       true},
      {"StatefulSet",
       {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration", "collisionCount"},
       {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"},
       true},
      {"DaemonSet",
       {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"},
       {}},
      {"PodDisruptionBudget", {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}, {}},
  };
  const auto found = std::ranges::find(kAll, kind.kind, &StatusCounters::kind);
  return found == kAll.end() || kind.group.ends_with(".openshift.io") ? nullptr : &*found;
}

void counters(const StatusCounters& known, const Value& old, const Value& doc, Errors& errors) {
  const Path at("status");
  const auto count = [&](std::string_view key) { return get_int(doc, {"status", key}); };
  for (const auto key : known.counters)
    if (count(key) < 0) errors.invalid(at / key, Value(count(key)), kNegative);
  for (const auto key : known.within_replicas)
    if (count(key) > count("replicas")) errors.invalid(at / key, Value(count(key)), "cannot be greater than status.replicas");
  if (known.available_within_ready && count("availableReplicas") > count("readyReplicas"))
    errors.invalid(at / "availableReplicas", Value(count("availableReplicas")),
                   known.kind == "StatefulSet" ? "cannot be greater than status.readyReplicas" : "cannot be greater than readyReplicas");
  if (count("collisionCount") < get_int(old, {"status", "collisionCount"}))
    errors.invalid(at / "collisionCount", Value(count("collisionCount")), "cannot be decremented");
}

/// metav1.Conditions (apimachinery, ValidateConditions).
void conditions(const Value& doc, Errors& errors) {
  constexpr std::size_t kLongestReason = 1024, kLongestMessage = 32 * 1024;
  const Path status("status");
  const Path at = status / "conditions";
  std::set<std::string_view> types;
  std::size_t i = 0;
  for (const Value& condition : get_array(doc, {"status", "conditions"})) {
    const Path one = at[i++];
    const std::string_view type = get_string(condition, {"type"}), state = get_string(condition, {"status"}),
                           reason = get_string(condition, {"reason"});
    if (!types.insert(type).second) errors.duplicate(one / "type", Value(type));
    if (const std::string why = check_qualified_name(type); !why.empty()) errors.invalid(one / "type", type, why);
    if (state != "True" && state != "False" && state != "Unknown")
      errors.not_supported(one / "status", state, {"False", "True", "Unknown"});
    if (const std::int64_t seen = get_int(condition, {"observedGeneration"}); seen < 0)
      errors.invalid(one / "observedGeneration", Value(seen), "must be greater than or equal to zero");
    if (get_string(condition, {"lastTransitionTime"}).empty()) errors.required(one / "lastTransitionTime");
    if (reason.empty()) {
      errors.required(one / "reason");
    } else {
      const auto in_reason = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ',' || c == ':'; };
      const bool is_word = std::isalpha(static_cast<unsigned char>(reason.front())) != 0 && std::ranges::all_of(reason, in_reason) &&
                           reason.back() != ',' && reason.back() != ':';
      if (!is_word)
        errors.invalid(one / "reason", reason,
                       "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
                       "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
                       "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
                       "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
      if (reason.size() > kLongestReason) errors.too_long(one / "reason", kLongestReason);
    }
    if (get_string(condition, {"message"}).size() > kLongestMessage) errors.too_long(one / "message", kLongestMessage);
  }
}

/// status.loadBalancer of a Service or an Ingress.
void load_balancer(const Value& old, const Value& doc, bool is_service, Errors& errors) {
  const Path status("status");
  const Path balancer = status / "loadBalancer";
  const Path at = balancer / "ingress";
  const json::Array &before = get_array(old, {"status", "loadBalancer", "ingress"}),
                    &now = get_array(doc, {"status", "loadBalancer", "ingress"});
  if (is_service && get_string(doc, {"spec", "type"}) != "LoadBalancer" && !now.empty())
    return errors.forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'");
  std::size_t i = 0;
  for (const Value& ingress : now) {
    const Path one = at[i++];
    const std::string_view ip = get_string(ingress, {"ip"}), host = get_string(ingress, {"hostname"});
    const bool was_there = std::ranges::any_of(before, [&](const Value& other) { return get_string(other, {"ip"}) == ip; });
    if (!ip.empty() && !is_ip(ip) && !was_there)
      errors.invalid(one / "ip", ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    if (const Value* mode = json::find(ingress, "ipMode"); is_service && mode == nullptr) {
      if (!ip.empty()) errors.required(one / "ipMode", "must be specified when `ip` is set");
    } else if (is_service && ip.empty()) {
      errors.forbidden(one / "ipMode", "may not be specified when `ip` is not set");
    } else if (is_service) {
      supported_value(ingress, "ipMode", one, {"Proxy", "VIP"}, errors, true);
    }
    if (host.empty()) continue;
    if (const std::string why = check_dns1123_subdomain(host); !why.empty()) errors.invalid(one / "hostname", host, why);
    if (is_ip(host)) errors.invalid(one / "hostname", host, "must be a DNS name, not an IP address");
  }
}

/// What a claim's status may count: its storage, and what has a domain of its own.
bool claim_resource_name(std::string_view name, const Path& at, Errors& errors) {
  if (const std::string why = check_qualified_name(name); !why.empty()) {
    errors.invalid(at, name, why);
    return false;
  }
  const bool is_native = name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
  if (is_native && name != "storage") errors.not_supported(at, name, {"storage"});
  return !is_native || name == "storage";
}

void claim_status(const Value& doc, Errors& errors) {
  static const std::vector<std::string_view> kStates = {"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
                                                        "NodeResizeInfeasible", "NodeResizePending"};
  const Path status("status");
  const Path capacity = status / "capacity", states = status / "allocatedResourceStatuses", allocated = status / "allocatedResources";
  const auto amount = [&](const Value& value, const Path& at) {
    const auto quantity = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    if (quantity && quantity->value() < 0) errors.invalid(at, Value(quantity->value()), "must be a valid resource quantity");
  };
  for (const auto& [key, value] : get_object(doc, {"status", "capacity"})) amount(value, Path::map_key(capacity, {key.data(), key.size()}));
  for (const auto& [key, value] : get_object(doc, {"status", "allocatedResourceStatuses"})) {
    const std::string_view name(key.data(), key.size());
    claim_resource_name(name, states, errors);
    const std::string_view state = value.is_string() ? json::as_view(value) : "";
    if (std::ranges::find(kStates, state) == kStates.end()) errors.not_supported(states, name, kStates);
  }
  for (const auto& [key, value] : get_object(doc, {"status", "allocatedResources"})) {
    const std::string_view name(key.data(), key.size());
    if (claim_resource_name(name, allocated, errors)) amount(value, Path::map_key(allocated, name));
  }
}

void autoscaler_status(const Value& doc, Errors& errors) {
  const Path at("status");
  for (const char* key : {"currentReplicas", "desiredReplicas"})
    if (const std::int64_t count = get_int(doc, {"status", key}); count < 0) errors.invalid(at / key, Value(count), kNegative);
}

void service_registration_status(const Value& doc, Errors& errors) {
  const Path status("status");
  const Path at = status / "conditions";
  std::size_t i = 0;
  for (const Value& condition : get_array(doc, {"status", "conditions"})) {
    const Path one = at[i++];
    const std::string_view state = get_string(condition, {"status"});
    if (state != "True" && state != "False" && state != "Unknown")
      errors.not_supported(one / "status", state, {"True", "False", "Unknown"});
  }
}

}  // namespace

void status_update(const KindInfo& kind, const Value& old, const Value& doc, Errors& errors) {
  if (kind.kind == "PodDisruptionBudget") conditions(doc, errors);
  if (const auto* known = counters_of(kind)) counters(*known, old, doc, errors);
  if (kind.group == "resource.k8s.io") resource_claim_status(old, doc, errors);
  if (kind.group == "batch" && kind.kind == "Job") job_status(old, doc, errors);
  if (kind.kind == "HorizontalPodAutoscaler") autoscaler_status(doc, errors);
  if (kind.kind == "Ingress") load_balancer(old, doc, false, errors);
  if (kind.kind == "APIService") service_registration_status(doc, errors);
  if (kind.group == flow_control::kGroup) flow_control_status(doc, errors);
  if (!kind.group.empty()) return;
  if (kind.kind == "Pod") pod_status(old, doc, errors);
  if (kind.kind == "Node") node_update(old, doc, errors);
  if (kind.kind == "Service") load_balancer(old, doc, true, errors);
  if (kind.kind == "PersistentVolumeClaim") claim_status(doc, errors);
  if (kind.kind == "ResourceQuota") {
    const Path at("status");
    for (const char* list : {"hard", "used"}) quota_amounts(doc, {"status", list}, at / list, errors);
  }
  if (kind.kind == "Namespace") {
    const Path status("status");
    const bool is_going = json::find(doc, {"metadata", "deletionTimestamp"}) != nullptr;
    const std::string_view phase = get_string(doc, {"status", "phase"});
    if (!is_going && phase != "Active") errors.invalid(status / "Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
    if (is_going && phase != "Terminating")
      errors.invalid(status / "Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
  }
}

}  // namespace berth::model::validation
