// Everything that is neither a pod, a node nor a workload.
#include <map>

#include <fmt/format.h>

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

void one_of(const Value& object, std::string_view key, const Path& at, const Strings& supported, Errors& errors) {
  const std::string_view value = get_string(object, {key});
  if (!value.empty() && std::find(supported.begin(), supported.end(), value) == supported.end()) errors.not_supported(at / key, value, supported);
}

void priority_class(const Value& doc, Errors& errors) {
  const std::string_view name = get_string(doc, {"metadata", "name"});
  const std::int64_t value = get_int(doc, {"value"});
  static const std::map<std::string_view, std::int64_t> kSystem = {{"system-node-critical", 2000001000}, {"system-cluster-critical", 2000000000}};
  if (name.starts_with("system-")) {
    const auto found = kSystem.find(name);
    const Path meta("metadata");
    if (found == kSystem.end()) errors.forbidden(meta / "name", "priority class names with 'system-' prefix are reserved for system use only. error: " + std::string(name) + " is not a known system priority class");
    else if (value != found->second || get_bool(doc, {"globalDefault"})) errors.forbidden(meta / "name", "priority class names with 'system-' prefix are reserved for system use only. error: value of " + std::string(name) + " PriorityClass must be " + fmt::format("{}", found->second));
  } else if (value > kHighestUserPriority) {
    errors.forbidden(Path("value"), fmt::format("maximum allowed value of a user defined priority is {}", kHighestUserPriority));
  }
  const std::string_view policy = get_string(doc, {"preemptionPolicy"});
  if (!policy.empty() && policy != "Never" && policy != "PreemptLowerPriority") errors.not_supported(Path("preemptionPolicy"), policy, {"Never", "PreemptLowerPriority"});
}

void disruption_budget(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* minimum = json::find(doc, {"spec", "minAvailable"});
  const Value* maximum = json::find(doc, {"spec", "maxUnavailable"});
  if (minimum != nullptr && maximum != nullptr) errors.invalid(at, *json::find(doc, "spec"), "minAvailable and maxUnavailable cannot be both set");
  for (const auto& [key, value] : {std::pair("minAvailable", minimum), std::pair("maxUnavailable", maximum)}) {
    if (value == nullptr) continue;
    int_or_percent(*value, at / key, errors);
    if (value->is_string() && std::atoi(value->get_string().c_str()) > 100) errors.invalid(at / key, *value, "must not be greater than 100%");
  }
  if (const Value* selector = json::find(doc, {"spec", "selector"})) label_selector(*selector, at / "selector", errors);
  if (const Value* spec = json::find(doc, "spec")) one_of(*spec, "unhealthyPodEvictionPolicy", at, {"AlwaysAllow", "IfHealthyBudget"}, errors);
}

void service(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* spec = json::find(doc, "spec");
  if (spec == nullptr) return errors.required(at);
  const std::string_view type = get_string(*spec, {"type"});
  one_of(*spec, "type", at, {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}, errors);
  one_of(*spec, "sessionAffinity", at, {"ClientIP", "None"}, errors);
  const json::Array& ports = get_array(*spec, {"ports"});
  const std::string_view cluster_ip = get_string(*spec, {"clusterIP"});
  if (ports.empty() && cluster_ip != "None" && type != "ExternalName") errors.required(at / "ports");
  if (!cluster_ip.empty() && cluster_ip != "None" && !is_ip(cluster_ip)) errors.invalid(at / "clusterIPs", cluster_ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  if (type == "ExternalName" && get_string(*spec, {"externalName"}).empty()) errors.required(at / "externalName");
  if (const Value* selector = json::find(*spec, "selector")) labels(*selector, at / "selector", errors);
  const Path ports_at = at / "ports";
  std::size_t i = 0;
  std::vector<std::string_view> names;
  for (const Value& port : ports) {
    const Path one = ports_at[i++];
    const std::string_view name = get_string(port, {"name"});
    if (name.empty() && ports.size() > 1) errors.required(one / "name");
    else if (!name.empty()) {
      if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(one / "name", name, why);
      if (std::find(names.begin(), names.end(), name) != names.end()) errors.duplicate(one / "name", Value(name));
      names.push_back(name);
    }
    const Value* number = json::find(port, "port");
    if (const std::string why = check_port_number(get_int(port, {"port"})); !why.empty()) errors.invalid(one / "port", number == nullptr ? Value(0) : *number, why);
    one_of(port, "protocol", one, {"SCTP", "TCP", "UDP"}, errors);
    if (const Value* target = json::find(port, "targetPort")) {
      const std::string why = target->is_int64() ? check_port_number(target->get_int64()) : target->is_string() ? check_port_name(json::as_view(*target)) : "";
      if (!why.empty()) errors.invalid(one / "targetPort", *target, why);
    }
  }
}

void config_map(const Value& doc, bool secret, Errors& errors) {
  std::size_t bytes = 0;
  for (const char* field : {"data", "binaryData"}) {
    const Path at(field);
    for (const auto& [key, value] : get_object(doc, {field})) {
      const std::string_view name(key.data(), key.size());
      if (const std::string why = check_config_map_key(name); !why.empty()) errors.invalid(Path::map_key(at, name), name, why);
      bytes += value.is_string() ? value.get_string().size() : 0;
      if (std::string_view(field) == "binaryData" && get_object(doc, {"data"}).contains(name)) errors.invalid(Path::map_key(at, name), name, "duplicate of key present in data");
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
  if (type == "kubernetes.io/ssh-auth") need("ssh-privatekey");
  if (type == "kubernetes.io/service-account-token" && get_string(doc, {"metadata", "annotations", "kubernetes.io/service-account.name"}).empty()) {
    const Path meta("metadata");
    const Path annotations = meta / "annotations";
    errors.required(Path::map_key(annotations, "kubernetes.io/service-account.name"));
  }
}

void access_modes(const Value& spec, const Path& at, Errors& errors) {
  static const Strings kModes = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"};
  const json::Array& modes = get_array(spec, {"accessModes"});
  if (modes.empty()) errors.required(at / "accessModes", "at least 1 access mode is required");
  for (const Value& mode : modes) {
    const std::string_view text = mode.is_string() ? json::as_view(mode) : "";
    if (std::find(kModes.begin(), kModes.end(), text) == kModes.end()) errors.not_supported(at / "accessModes", text, kModes);
  }
}

void volume(const Value& doc, Errors& errors) {
  const Path at("spec");
  static const Value kEmpty = json::Object();
  const Value* found = json::find(doc, "spec");
  const Value& spec = found == nullptr ? kEmpty : *found;
  access_modes(spec, at, errors);
  if (get_object(spec, {"capacity"}).empty()) errors.required(at / "capacity");
  else if (const Value* capacity = json::find(spec, "capacity")) resource_list(*capacity, at / "capacity", errors);
  one_of(spec, "persistentVolumeReclaimPolicy", at, {"Delete", "Recycle", "Retain"}, errors);
  static constexpr std::string_view kSources[] = {"hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "iscsi", "rbd", "quobyte", "cephfs", "cinder", "fc", "flocker", "flexVolume",
      "azureFile", "vsphereVolume", "azureDisk", "portworxVolume", "scaleIO", "local", "storageos", "csi", "photonPersistentDisk"};
  int count = 0;
  for (const std::string_view source : kSources) {
    if (json::find(spec, source) == nullptr) continue;
    if (++count > 1) errors.forbidden(at / source, "may not specify more than 1 volume type");
  }
  if (count == 0) errors.required(at, "must specify a volume type");
  if (json::find(spec, "local") != nullptr && json::find(spec, {"nodeAffinity", "required"}) == nullptr) errors.required(at / "nodeAffinity", "Local volume requires node affinity");
  if (const Value* required = json::find(spec, {"nodeAffinity", "required"})) {
    const Path here = at / "nodeAffinity";
    node_selector(*required, here / "required", errors);
  }
}

void storage_class(const Value& doc, Errors& errors) {
  if (get_string(doc, {"provisioner"}).empty()) errors.required(Path("provisioner"));
  const auto check = [&](const char* key, const Strings& supported) {
    const std::string_view value = get_string(doc, {key});
    if (!value.empty() && std::find(supported.begin(), supported.end(), value) == supported.end()) errors.not_supported(Path(key), value, supported);
  };
  check("reclaimPolicy", {"Delete", "Retain"});
  check("volumeBindingMode", {"Immediate", "WaitForFirstConsumer"});
}

bool is_quota_resource(std::string_view name) {
  static const Strings kNames = {"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage", "limits.cpu", "limits.memory",
      "limits.ephemeral-storage", "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
}

void quota(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path hard_at = at / "hard";
  for (const auto& [key, value] : get_object(doc, {"spec", "hard"})) {
    const std::string_view name(key.data(), key.size());
    const Path one = Path::map_key(hard_at, name);
    if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(one, name, why);
    else if (name.find('/') == std::string_view::npos && !is_quota_resource(name)) errors.invalid(one, name, "must be a standard resource for quota");
    const auto quantity = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    if (quantity && quantity->sign() < 0) errors.invalid(one, value, kNegative);
  }
  static const Strings kScopes = {"BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating", "VolumeAttributesClass"};
  for (const Value& scope : get_array(doc, {"spec", "scopes"})) {
    const std::string_view text = scope.is_string() ? json::as_view(scope) : "";
    if (std::find(kScopes.begin(), kScopes.end(), text) == kScopes.end()) errors.invalid(at / "scopes", text, "unsupported scope");
  }
}

void limit_range(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path limits_at = at / "limits";
  std::size_t i = 0;
  for (const Value& item : get_array(doc, {"spec", "limits"})) {
    const Path one = limits_at[i++];
    if (get_string(item, {"type"}).empty()) errors.required(one / "type");
    const auto compare = [&](const char* low, const char* high, const char* words) {
      for (const auto& [key, value] : get_object(item, {low})) {
        const std::string_view name(key.data(), key.size()), other = get_string(item, {high, name});
        const auto a = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt, b = other.empty() ? std::nullopt : Quantity::parse(other);
        const Path list_at = one / low;
        if (a && b && *a > *b) errors.invalid(Path::map_key(list_at, name), value, fmt::format("{} value {} is greater than {} value {}", low, json::as_view(value), words, other));
      }
    };
    compare("min", "max", "max");
    compare("min", "defaultRequest", "default request");
    compare("defaultRequest", "max", "max");
    compare("defaultRequest", "default", "default limit");
    compare("default", "max", "max");
  }
}

void rules(const Value& doc, Errors& errors) {
  const Path at("rules");
  std::size_t i = 0;
  for (const Value& rule : get_array(doc, {"rules"})) {
    const Path one = at[i++];
    if (get_array(rule, {"verbs"}).empty()) errors.required(one / "verbs", "verbs must contain at least one value");
    if (!get_array(rule, {"nonResourceURLs"}).empty()) continue;
    if (get_array(rule, {"apiGroups"}).empty()) errors.required(one / "apiGroups", "resource rules must supply at least one api group");
    if (get_array(rule, {"resources"}).empty()) errors.required(one / "resources", "resource rules must supply at least one resource");
  }
}

void role_binding(const Value& doc, bool cluster, Errors& errors) {
  const Path ref("roleRef");
  const std::string_view kind = get_string(doc, {"roleRef", "kind"});
  if (get_string(doc, {"roleRef", "apiGroup"}) != "rbac.authorization.k8s.io") errors.not_supported(ref / "apiGroup", get_string(doc, {"roleRef", "apiGroup"}), {"rbac.authorization.k8s.io"});
  if (kind != "ClusterRole" && (cluster || kind != "Role")) errors.not_supported(ref / "kind", kind, cluster ? Strings{"ClusterRole"} : Strings{"ClusterRole", "Role"});
  if (get_string(doc, {"roleRef", "name"}).empty()) errors.required(ref / "name");
  const Path at("subjects");
  std::size_t i = 0;
  for (const Value& subject : get_array(doc, {"subjects"})) {
    const Path one = at[i++];
    const std::string_view subject_kind = get_string(subject, {"kind"});
    if (get_string(subject, {"name"}).empty()) errors.required(one / "name");
    if (subject_kind == "ServiceAccount") {
      if (get_string(subject, {"namespace"}).empty() && cluster) errors.required(one / "namespace");
    } else if (subject_kind != "User" && subject_kind != "Group") {
      errors.not_supported(one / "kind", subject_kind, {"Group", "ServiceAccount", "User"});
    }
  }
}

void webhooks(const Value& doc, Errors& errors) {
  const Path at("webhooks");
  std::vector<std::string_view> names;
  std::size_t i = 0;
  for (const Value& hook : get_array(doc, {"webhooks"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(hook, {"name"});
    if (name.empty()) errors.required(one / "name");
    else if (std::count(name.begin(), name.end(), '.') < 2) errors.invalid(one / "name", name, "should be a domain with at least three segments separated by dots");
    if (std::find(names.begin(), names.end(), name) != names.end()) errors.duplicate(one / "name", Value(name));
    names.push_back(name);
    const std::int64_t timeout = get_int(hook, {"timeoutSeconds"}, 10);
    if (timeout < 1 || timeout > 30) errors.invalid(one / "timeoutSeconds", Value(timeout), "the timeout value must be between 1 and 30 seconds");
    one_of(hook, "failurePolicy", one, {"Fail", "Ignore"}, errors);
    const std::string_view effects = get_string(hook, {"sideEffects"});
    if (effects.empty()) errors.required(one / "sideEffects", "must specify one of None, NoneOnDryRun");
    else if (effects != "None" && effects != "NoneOnDryRun") errors.not_supported(one / "sideEffects", effects, {"None", "NoneOnDryRun"});
    if (get_array(hook, {"admissionReviewVersions"}).empty()) errors.required(one / "admissionReviewVersions", "must specify one of v1, v1beta1");
    const bool has_url = !get_string(hook, {"clientConfig", "url"}).empty(), has_service = json::find(hook, {"clientConfig", "service"}) != nullptr;
    if (has_url == has_service) errors.required(one / "clientConfig", "exactly one of url or service is required");
    if (has_url && !get_string(hook, {"clientConfig", "url"}).starts_with("https://")) errors.invalid(one / "clientConfig" / "url", get_string(hook, {"clientConfig", "url"}), "'https' is the only allowed URL scheme");
    if (const Value* selector = json::find(hook, "namespaceSelector")) label_selector(*selector, one / "namespaceSelector", errors);
    if (const Value* selector = json::find(hook, "objectSelector")) label_selector(*selector, one / "objectSelector", errors);
  }
}

void lease(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* duration = json::find(doc, {"spec", "leaseDurationSeconds"});
  if (duration != nullptr && get_int(doc, {"spec", "leaseDurationSeconds"}) <= 0) errors.invalid(at / "leaseDurationSeconds", *duration, "must be greater than 0");
  const Value* transitions = json::find(doc, {"spec", "leaseTransitions"});
  if (transitions != nullptr && get_int(doc, {"spec", "leaseTransitions"}) < 0) errors.invalid(at / "leaseTransitions", *transitions, "must be greater than or equal to 0");
}

void event(const Value& doc, Errors& errors) {
  const std::string_view involved = get_string(doc, {"involvedObject", "namespace"}), ns = get_string(doc, {"metadata", "namespace"});
  const Path at("involvedObject");
  if (!involved.empty() && involved != ns) errors.invalid(at / "namespace", involved, "does not match event.namespace");
}

void cluster_autoscaler(const Value& doc, Errors& errors) {
  const Path meta("metadata");
  if (get_string(doc, {"metadata", "name"}) != "default") errors.invalid(meta / "name", get_string(doc, {"metadata", "name"}), "the ClusterAutoscaler must be named \"default\"");
  const Path at("spec");
  const Path limits = at / "resourceLimits";
  for (const char* key : {"cores", "memory"}) {
    const std::int64_t low = get_int(doc, {"spec", "resourceLimits", key, "min"}), high = get_int(doc, {"spec", "resourceLimits", key, "max"}, INT64_MAX);
    if (low < 0) errors.invalid(limits / key / "min", Value(low), kNegative);
    if (high < low) errors.invalid(limits / key / "max", Value(high), "must be greater than or equal to min");
  }
}

/// Plugins of nodes are named, and name the node in their own words.
void csi_node(const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Path at = spec / "drivers";
  std::vector<std::string_view> names;
  std::size_t i = 0;
  for (const Value& driver : get_array(doc, {"spec", "drivers"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(driver, {"name"});
    if (name.empty()) errors.required(one / "name");
    if (std::find(names.begin(), names.end(), name) != names.end()) errors.duplicate(one / "name", Value(name));
    names.push_back(name);
    if (get_string(driver, {"nodeID"}).empty()) errors.required(one / "nodeID");
    if (const Value* count = json::find(driver, {"allocatable", "count"}); count != nullptr && get_int(driver, {"allocatable", "count"}) < 0) errors.invalid(one / "allocatable" / "count", *count, kNegative);
  }
}

}  // namespace

void claim_spec(const Value& holder, const Path& at, Errors& errors) {
  static const Value kEmpty = json::Object();
  const Value* found = json::find(holder, "spec");
  const Value& spec = found == nullptr ? kEmpty : *found;
  access_modes(spec, at, errors);
  const Path storage_at = at / "resources";
  const Path storage = Path::map_key(storage_at, "storage");
  const std::string_view text = get_string(spec, {"resources", "requests", "storage"});
  if (text.empty()) errors.required(storage);
  else if (const auto quantity = Quantity::parse(text); quantity && quantity->sign() <= 0) errors.invalid(storage, text, "must be greater than zero");
  if (const Value* selector = json::find(spec, "selector")) label_selector(*selector, at / "selector", errors);
  if (const std::string_view name = get_string(spec, {"storageClassName"}); !name.empty())
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "storageClassName", name, why);
  one_of(spec, "volumeMode", at, {"Block", "Filesystem"}, errors);
}

void other(const KindInfo& kind, const Value& doc, Errors& errors) {
  const std::string_view name = kind.kind;
  if (name == "PriorityClass") priority_class(doc, errors);
  else if (name == "PodDisruptionBudget") disruption_budget(doc, errors);
  else if (name == "Service") service(doc, errors);
  else if (name == "ConfigMap") config_map(doc, false, errors);
  else if (name == "Secret") config_map(doc, true, errors);
  else if (name == "PersistentVolumeClaim") claim_spec(doc, Path("spec"), errors);
  else if (name == "PersistentVolume") volume(doc, errors);
  else if (name == "StorageClass") storage_class(doc, errors);
  else if (name == "ResourceQuota") quota(doc, errors);
  else if (name == "LimitRange") limit_range(doc, errors);
  else if (name == "Role" || name == "ClusterRole") rules(doc, errors);
  else if (name == "RoleBinding" || name == "ClusterRoleBinding") role_binding(doc, name == "ClusterRoleBinding", errors);
  else if (name == "HorizontalPodAutoscaler") horizontal_pod_autoscaler(doc, errors);
  else if (name == "CSINode") csi_node(doc, errors);
  else if (name == "MutatingWebhookConfiguration" || name == "ValidatingWebhookConfiguration") webhooks(doc, errors);
  else if (name == "Lease") lease(doc, errors);
  else if (name == "Event" && kind.group.empty()) event(doc, errors);
  else if (name == "ClusterAutoscaler") cluster_autoscaler(doc, errors);
  else if (name == "PodTemplate") pod_template(doc, Path(""), errors);
}

void other_update(const KindInfo& kind, const Value& old, const Value& doc, Errors& errors) {
  const std::string_view name = kind.kind;
  if (name == "ConfigMap" || name == "Secret") {
    if (get_bool(old, {"immutable"})) {
      if (!get_bool(doc, {"immutable"})) errors.forbidden(Path("immutable"), "field is immutable when `immutable` is set");
      for (const char* key : {"data", "binaryData"}) {
        const Value* before = json::find(old, key);
        const Value* after = json::find(doc, key);
        if ((before == nullptr) != (after == nullptr) || (before != nullptr && !json::equal(*before, *after))) errors.forbidden(Path(key), "field is immutable when `immutable` is set");
      }
    }
    if (name == "Secret") immutable(old, doc, {"type"}, Path("type"), errors);
  } else if (name == "PriorityClass") {
    if (get_int(old, {"value"}) != get_int(doc, {"value"})) errors.forbidden(Path("value"), "may not be changed in an update.");
    if (get_string(old, {"preemptionPolicy"}) != get_string(doc, {"preemptionPolicy"})) errors.forbidden(Path("preemptionPolicy"), "may not be changed in an update.");
  } else if (name == "StorageClass") {
    for (const char* key : {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}) {
      const Value* before = json::find(old, key);
      const Value* after = json::find(doc, key);
      if ((before == nullptr) != (after == nullptr) || (before != nullptr && !json::equal(*before, *after))) errors.forbidden(Path(key), fmt::format("updates to {} are forbidden.", key));
    }
  } else if (name == "RoleBinding" || name == "ClusterRoleBinding") {
    const Value* before = json::find(old, "roleRef");
    const Value* after = json::find(doc, "roleRef");
    if (before != nullptr && after != nullptr && !json::equal(*before, *after)) errors.invalid(Path("roleRef"), *after, "cannot change roleRef");
  } else if (name == "PersistentVolumeClaim") {
    Value a = get_object(old, {"spec"}), b = get_object(doc, {"spec"});
    for (Value* spec : {&a, &b}) {
      json::erase(*spec, {"resources"});
      json::erase(*spec, {"volumeAttributesClassName"});
    }
    if (get_string(old, {"spec", "volumeName"}).empty()) json::erase(b, {"volumeName"});
    if (get_string(old, {"spec", "storageClassName"}).empty()) json::erase(b, {"storageClassName"}), json::erase(a, {"storageClassName"});
    const Path at("spec");
    if (!json::equal(a, b)) errors.forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims");
  } else if (name == "Service") {
    const Path at("spec");
    const std::string_view before = get_string(old, {"spec", "clusterIP"}), after = get_string(doc, {"spec", "clusterIP"});
    if (!before.empty() && before != after && get_string(old, {"spec", "type"}) != "ExternalName" && get_string(doc, {"spec", "type"}) != "ExternalName")
      errors.invalid(at / "clusterIPs[0]", after, kImmutable);
  }
}

}  // namespace berth::model::validation
