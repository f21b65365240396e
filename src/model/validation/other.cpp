// Everything that is neither a pod, a node nor a workload.
#include <fmt/format.h>

#include <map>

#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

constexpr std::int64_t kHighestUserPriority = 1'000'000'000;

void priority_class(const Value& doc, Errors& errors) {
  const std::string_view name = get_string(doc, {"metadata", "name"});
  const std::int64_t value = get_int(doc, {"value"});
  static const std::map<std::string_view, std::int64_t> kSystem = {{"system-node-critical", 2000001000},
                                                                   {"system-cluster-critical", 2000000000}};
  if (name.starts_with("system-")) {
    const auto found = kSystem.find(name);
    const Path meta("metadata");
    if (found == kSystem.end())
      errors.forbidden(meta / "name", "priority class names with 'system-' prefix are reserved for system use only. error: " +
                                          std::string(name) + " is not a known system priority class");
    else if (value != found->second || get_bool(doc, {"globalDefault"}))
      errors.forbidden(meta / "name", "priority class names with 'system-' prefix are reserved for system use only. error: value of " +
                                          std::string(name) + " PriorityClass must be " + fmt::format("{}", found->second));
  } else if (value > kHighestUserPriority) {
    errors.forbidden(Path("value"), fmt::format("maximum allowed value of a user defined priority is {}", kHighestUserPriority));
  }
  const std::string_view policy = get_string(doc, {"preemptionPolicy"}, "PreemptLowerPriority");
  if (policy.empty())
    errors.required(Path("preemptionPolicy"));
  else if (policy != "Never" && policy != "PreemptLowerPriority")
    errors.not_supported(Path("preemptionPolicy"), policy, {"Never", "PreemptLowerPriority"});
}

void disruption_budget(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* minimum = json::find(doc, {"spec", "minAvailable"});
  const Value* maximum = json::find(doc, {"spec", "maxUnavailable"});
  if (minimum != nullptr && maximum != nullptr)
    errors.invalid(at, *json::find(doc, "spec"), "minAvailable and maxUnavailable cannot be both set");
  for (const auto& [key, value] : {std::pair("minAvailable", minimum), std::pair("maxUnavailable", maximum)}) {
    if (value == nullptr) continue;
    int_or_percent(*value, at / key, errors);
    if (value->is_string() && std::atoi(value->get_string().c_str()) > 100)
      errors.invalid(at / key, *value, "must not be greater than 100%");
  }
  if (const Value* selector = json::find(doc, {"spec", "selector"})) label_selector(*selector, at / "selector", errors);
  if (const Value* spec = json::find(doc, "spec"))
    supported_value(*spec, "unhealthyPodEvictionPolicy", at, {"AlwaysAllow", "IfHealthyBudget"}, errors);
}

void config_map(const Value& doc, bool secret, Errors& errors) {
  std::size_t bytes = 0;
  for (const char* field : {"data", "binaryData"}) {
    const Path at(field);
    for (const auto& [key, value] : get_object(doc, {field})) {
      const std::string_view name(key.data(), key.size());
      if (const std::string why = check_config_map_key(name); !why.empty()) errors.invalid(Path::map_key(at, name), name, why);
      bytes += value.is_string() ? value.get_string().size() : 0;
      if (std::string_view(field) == "binaryData" && get_object(doc, {"data"}).contains(name))
        errors.invalid(Path::map_key(at, name), name, "duplicate of key present in data");
    }
  }
  const std::size_t limit = 1024 * 1024;
  if (bytes > (secret ? limit * 4 / 3 : limit)) errors.too_long(secret ? Path("data") : Path(""), limit);
  if (!secret) return;
  const std::string_view type = get_string(doc, {"type"});
  const Path data("data");
  const auto need = [&](std::string_view key) {
    if (json::find(doc, {"data", key}) == nullptr) errors.required(Path::map_key(data, key));
  };
  if (type == "kubernetes.io/tls") need("tls.crt"), need("tls.key");
  if (type == "kubernetes.io/dockerconfigjson") need(".dockerconfigjson");
  if (type == "kubernetes.io/dockercfg") need(".dockercfg");
  if (type == "kubernetes.io/ssh-auth" && get_string(doc, {"data", "ssh-privatekey"}).empty())
    errors.required(Path::map_key(data, "ssh-privatekey"));
  if (type == "kubernetes.io/basic-auth" && json::find(doc, {"data", "username"}) == nullptr &&
      json::find(doc, {"data", "password"}) == nullptr)
    need("username"), need("password");
  if (type == "kubernetes.io/service-account-token" &&
      get_string(doc, {"metadata", "annotations", "kubernetes.io/service-account.name"}).empty()) {
    const Path meta("metadata");
    const Path annotations = meta / "annotations";
    errors.required(Path::map_key(annotations, "kubernetes.io/service-account.name"));
  }
}

void lease(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* duration = json::find(doc, {"spec", "leaseDurationSeconds"});
  if (duration != nullptr && get_int(doc, {"spec", "leaseDurationSeconds"}) <= 0)
    errors.invalid(at / "leaseDurationSeconds", *duration, "must be greater than 0");
  const Value* transitions = json::find(doc, {"spec", "leaseTransitions"});
  if (transitions != nullptr && get_int(doc, {"spec", "leaseTransitions"}) < 0)
    errors.invalid(at / "leaseTransitions", *transitions, "must be greater than or equal to 0");
}

/// legacyValidateEvent, on either group's form of an Event: events.k8s.io names the same facts anew.
void event(const KindInfo& kind, const Value& doc, Errors& errors) {
  const bool is_new = kind.group == "events.k8s.io";
  const char* object = is_new ? "regarding" : "involvedObject";
  const std::string_view involved = get_string(doc, {object, "namespace"}), ns = get_string(doc, {"metadata", "namespace"});
  const bool has_time = json::find(doc, {"eventTime"}) != nullptr;
  const auto mismatch = [&] { errors.invalid(Path("involvedObject") / "namespace", involved, "does not match event.namespace"); };
  if (!has_time) {
    if (involved.empty() ? !ns.empty() && ns != "default" : involved != ns) mismatch();
  } else {
    if (involved.empty() && ns != "default" && ns != "kube-system") mismatch();
    const char* controller = is_new ? "reportingController" : "reportingComponent";
    const std::string_view reporter = get_string(doc, {controller});
    if (reporter.empty()) errors.required(Path(controller));
    if (const std::string why = check_qualified_name(reporter); !why.empty()) errors.invalid(Path(controller), reporter, why);
    const auto bounded = [&](const char* field, const char* shown, std::size_t limit, bool is_needed) {
      const std::string_view text = get_string(doc, {field});
      if (is_needed && text.empty()) errors.required(Path(shown));
      if (text.size() > limit) errors.invalid(Path(shown), "", fmt::format("can have at most {} characters", limit));
    };
    bounded("reportingInstance", "reportingInstance", 128, true);
    bounded("action", "action", 128, true);
    bounded("reason", "reason", 128, true);
    bounded(is_new ? "note" : "message", "message", 1024, false);
  }
}

void cluster_autoscaler(const Value& doc, Errors& errors) {
  const Path meta("metadata");
  if (get_string(doc, {"metadata", "name"}) != "default")
    errors.invalid(meta / "name", get_string(doc, {"metadata", "name"}), "the ClusterAutoscaler must be named \"default\"");
  const Path at("spec");
  const Path limits = at / "resourceLimits";
  for (const char* key : {"cores", "memory"}) {
    const std::int64_t low = get_int(doc, {"spec", "resourceLimits", key, "min"}),
                       high = get_int(doc, {"spec", "resourceLimits", key, "max"}, INT64_MAX);
    if (low < 0) errors.invalid(limits / key / "min", Value(low), kNegative);
    if (high < low) errors.invalid(limits / key / "max", Value(high), "must be greater than or equal to min");
  }
}

}  // namespace

void event_create(const Value& doc, Errors& errors) {
  if (json::find(doc, {"series"}) != nullptr) {
    if (get_int(doc, {"series", "count"}) < 2) errors.invalid(Path("series") / "count", "", "should be at least 2");
    if (json::find(doc, {"series", "lastObservedTime"}) == nullptr) errors.required(Path("series") / "lastObservedTime");
  }
  if (json::find(doc, {"eventTime"}) == nullptr) errors.required(Path("eventTime"));
  const std::string_view type = get_string(doc, {"type"});
  if (type != "Normal" && type != "Warning") errors.invalid(Path("type"), "", fmt::format("has invalid value: {}", type));
  for (const auto& [field, shown] :
       {std::pair("deprecatedFirstTimestamp", "firstTimestamp"), std::pair("deprecatedLastTimestamp", "lastTimestamp")})
    if (json::find(doc, {field}) != nullptr) errors.invalid(Path(shown), "", "needs to be unset");
  if (get_int(doc, {"deprecatedCount"}) != 0) errors.invalid(Path("count"), "", "needs to be unset");
  if (!get_string(doc, {"deprecatedSource", "component"}).empty() || !get_string(doc, {"deprecatedSource", "host"}).empty())
    errors.invalid(Path("source"), "", "needs to be unset");
}

void other(const KindInfo& kind, const Value& doc, Errors& errors) {
  const std::string_view name = kind.kind;
  if (name == "PriorityClass")
    priority_class(doc, errors);
  else if (name == "PodDisruptionBudget")
    disruption_budget(doc, errors);
  else if (name == "Service")
    service(doc, errors);
  else if (name == "ConfigMap")
    config_map(doc, false, errors);
  else if (name == "Secret")
    config_map(doc, true, errors);
  else if (name == "PersistentVolumeClaim")
    claim_spec(doc, Path("spec"), errors);
  else if (name == "PersistentVolume")
    volume(doc, errors);
  else if (name == "StorageClass")
    storage_class(doc, errors);
  else if (name == "ResourceQuota")
    quota(doc, errors);
  else if (name == "LimitRange")
    limit_range(doc, errors);
  else if (name == "Role" || name == "ClusterRole")
    roles(doc, name == "ClusterRole", errors);
  else if (name == "RoleBinding" || name == "ClusterRoleBinding")
    role_binding(doc, name == "ClusterRoleBinding", errors);
  else if (name == "HorizontalPodAutoscaler")
    horizontal_pod_autoscaler(doc, errors);
  else if (name == "CSINode")
    csi_node(doc, errors);
  else if (name == "CSIDriver")
    csi_driver(doc, errors);
  else if (name == "Endpoints")
    endpoints(doc, errors);
  else if (name == "MutatingWebhookConfiguration" || name == "ValidatingWebhookConfiguration")
    webhooks(doc, errors);
  else if (name == "ValidatingAdmissionPolicy")
    validating_admission_policy(doc, errors);
  else if (name == "ValidatingAdmissionPolicyBinding")
    policy_binding(doc, errors);
  else if (name == "Lease")
    lease(doc, errors);
  else if (name == "Event" && kind.group.empty())
    event(kind, doc, errors);
  else if (name == "ClusterAutoscaler")
    cluster_autoscaler(doc, errors);
  else if (name == "PodTemplate")
    pod_template(doc, Path(""), errors);
}

void other_update(const KindInfo& kind, const Value& old, const Value& doc, Errors& errors) {
  const std::string_view name = kind.kind;
  if (name == "ConfigMap" || name == "Secret") {
    if (get_bool(old, {"immutable"})) {
      if (!get_bool(doc, {"immutable"})) errors.forbidden(Path("immutable"), "field is immutable when `immutable` is set");
      for (const char* key : {"data", "binaryData"}) {
        const Value* before = json::find(old, key);
        const Value* after = json::find(doc, key);
        if ((before == nullptr) != (after == nullptr) || (before != nullptr && !json::equal(*before, *after)))
          errors.forbidden(Path(key), "field is immutable when `immutable` is set");
      }
    }
    if (name == "Secret") immutable(old, doc, {"type"}, Path("type"), errors);
  } else if (name == "PriorityClass") {
    if (get_int(old, {"value"}) != get_int(doc, {"value"})) errors.forbidden(Path("value"), "may not be changed in an update.");
    immutable(old, doc, {"preemptionPolicy"}, Path("preemptionPolicy"), errors);
  } else if (name == "StorageClass") {
    for (const char* key : {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}) {
      const Value* before = json::find(old, key);
      const Value* after = json::find(doc, key);
      if ((before == nullptr) != (after == nullptr) || (before != nullptr && !json::equal(*before, *after)))
        errors.forbidden(Path(key), fmt::format("updates to {} are forbidden.", key));
    }
  } else if (name == "RoleBinding" || name == "ClusterRoleBinding") {
    const Value* before = json::find(old, "roleRef");
    const Value* after = json::find(doc, "roleRef");
    if (before != nullptr && after != nullptr && !json::equal(*before, *after))
      errors.invalid(Path("roleRef"), *after, "cannot change roleRef");
  } else if (name == "ResourceQuota") {
    const Path at("spec");
    immutable(old, doc, {"spec", "scopes"}, at / "scopes", errors);
  } else if (name == "PersistentVolume") {
    volume_update(old, doc, errors);
  } else if (name == "PersistentVolumeClaim") {
    claim_update(old, doc, errors);
  } else if (name == "Service") {
    service_update(old, doc, errors);
  }
}

}  // namespace berth::model::validation
