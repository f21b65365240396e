#include "model/quota_usage.h"

#include "model/schema.h"

namespace berth::model {
namespace {

bool is_terminal(const json::Value& pod) {
  const auto phase = json::get_string(pod, {"status", "phase"});
  return phase == "Failed" || phase == "Succeeded";
}

bool is_standard(std::string_view resource) { return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage"; }

void add_pod(const json::Value& pod, ResourceAmounts& usage) {
  if (is_terminal(pod)) return;
  usage["pods"] = Quantity::from_value(1);
  for (const auto& [resource, amount] : pod_total(pod, "requests")) {
    if (is_standard(resource) || resource.starts_with("hugepages-")) {
      usage[resource] = amount;
      usage["requests." + resource] = amount;
    } else if (resource.find('/') != std::string::npos) {
      usage["requests." + resource] = amount;
    }
  }
  for (const auto& [resource, amount] : pod_total(pod, "limits"))
    if (is_standard(resource)) usage["limits." + resource] = amount;
}

void add_service(const json::Value& service, ResourceAmounts& usage) {
  usage["services"] = Quantity::from_value(1);
  const auto type = json::get_string(service, {"spec", "type"}, "ClusterIP");
  const auto ports = static_cast<std::int64_t>(json::get_array(service, {"spec", "ports"}).size());
  if (type == "NodePort") usage["services.nodeports"] = Quantity::from_value(ports);
  if (type == "LoadBalancer") {
    usage["services.loadbalancers"] = Quantity::from_value(1);
    usage["services.nodeports"] =
        Quantity::from_value(json::get_bool(service, {"spec", "allocateLoadBalancerNodePorts"}, true) ? ports : 0);
  }
}

void add_claim(const json::Value& claim, ResourceAmounts& usage) {
  usage["persistentvolumeclaims"] = Quantity::from_value(1);
  const auto storage = Quantity::parse(json::get_string(claim, {"spec", "resources", "requests", "storage"}));
  if (storage) usage["requests.storage"] = *storage;
  std::string storage_class(json::get_string(claim, {"spec", "storageClassName"}));
  if (storage_class.empty()) return;
  storage_class += ".storageclass.storage.k8s.io/";
  usage[storage_class + "persistentvolumeclaims"] = Quantity::from_value(1);
  if (storage) usage[storage_class + "requests.storage"] = *storage;
}

/// Devices by class: those of alternatives as many as the dearest of them asks for; all of them as many as a claim can hold.
void add_devices(const json::Value& claim, ResourceAmounts& usage) {
  constexpr std::int64_t kMostResults = 32;
  const auto count = [](const json::Value& request) {
    const auto mode = json::get_string(request, {"allocationMode"});
    return mode == "All" ? kMostResults : mode == "ExactCount" ? json::get_int(request, {"count"}) : 0;
  };
  std::map<std::string, std::int64_t> total;
  for (const auto& request : json::get_array(claim, {"spec", "devices", "requests"})) {
    std::map<std::string, std::int64_t> most;
    for (const auto& sub : json::get_array(request, {"firstAvailable"})) {
      auto& devices = most[std::string(json::get_string(sub, {"deviceClassName"}))];
      devices = std::max(devices, count(sub));
    }
    if (const auto* exactly = json::find(request, "exactly"); exactly != nullptr && most.empty())
      most[std::string(json::get_string(*exactly, {"deviceClassName"}))] = count(*exactly);
    for (const auto& [name, devices] : most) total[name] += devices;
  }
  for (const auto& [name, devices] : total) usage[name + ".deviceclass.resource.k8s.io/devices"] = Quantity::from_value(devices);
}

bool matches_priority(const json::Value& pod, std::string_view op, const json::Array& values) {
  const auto name = json::get_string(pod, {"spec", "priorityClassName"});
  const auto listed = std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.is_string() && json::as_view(v) == name; });
  if (op == "Exists") return !name.empty();
  if (op == "DoesNotExist") return name.empty();
  if (op == "In") return !name.empty() && listed;
  return op == "NotIn" && !listed;
}

bool uses_cross_namespace_affinity(const json::Value& pod) {
  const auto crosses = [](const json::Value& term) {
    return !json::get_array(term, {"namespaces"}).empty() || json::find(term, "namespaceSelector") != nullptr;
  };
  for (std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    for (const auto& term : json::get_array(pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"}))
      if (crosses(term)) return true;
    for (const auto& weighted : json::get_array(pod, {"spec", "affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution"}))
      if (const auto* term = json::find(weighted, "podAffinityTerm"); term != nullptr && crosses(*term)) return true;
  }
  return false;
}

/// The classes that a claim has, has had until now, or is on its way to (pkg/quota/v1/evaluator/core/persistent_volume_claims.go).
bool matches_attributes_class(const json::Value& claim, std::string_view op, const json::Array& values) {
  std::set<std::string_view> names = {json::get_string(claim, {"spec", "volumeAttributesClassName"}),
                                      json::get_string(claim, {"status", "currentVolumeAttributesClassName"}),
                                      json::get_string(claim, {"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"})};
  names.erase("");
  const auto is_listed = [&](std::string_view name) {
    return std::ranges::any_of(values, [&](const auto& v) { return v.is_string() && json::as_view(v) == name; });
  };
  if (op == "DoesNotExist") return names.empty();
  if (op == "In") return std::ranges::any_of(names, is_listed);
  if (op == "NotIn") return names.empty() || !std::ranges::all_of(names, is_listed);
  return !names.empty();
}

bool scope_matches(std::string_view scope, std::string_view op, const json::Array& values, const json::Value& pod) {
  const bool negated = op == "DoesNotExist";
  bool matches = false;
  if (scope == "Terminating" || scope == "NotTerminating") {
    const auto* deadline = json::find(pod, {"spec", "activeDeadlineSeconds"});
    matches = (deadline != nullptr) == (scope == "Terminating");
  } else if (scope == "BestEffort" || scope == "NotBestEffort") {
    matches = (pod_qos_class(pod) == "BestEffort") == (scope == "BestEffort");
  } else if (scope == "PriorityClass") {
    return matches_priority(pod, op, values);
  } else if (scope == "CrossNamespacePodAffinity") {
    matches = uses_cross_namespace_affinity(pod);
  } else {
    return false;
  }
  return matches != negated;
}

}  // namespace

ResourceAmounts quota_usage(const KindInfo& kind, const json::Value& object) {
  ResourceAmounts usage;
  usage[kind.group.empty() ? "count/" + kind.plural : "count/" + kind.plural + "." + kind.group] = Quantity::from_value(1);
  if (kind.group == "resource.k8s.io" && kind.plural == "resourceclaims") add_devices(object, usage);
  if (!kind.group.empty()) return usage;
  if (kind.plural == "pods") add_pod(object, usage);
  if (kind.plural == "services") add_service(object, usage);
  if (kind.plural == "persistentvolumeclaims") add_claim(object, usage);
  for (std::string_view counted : {"replicationcontrollers", "secrets", "configmaps", "resourcequotas"})
    if (kind.plural == counted) usage[kind.plural] = Quantity::from_value(1);
  return usage;
}

bool quota_selects(const json::Value& quota, const KindInfo& kind, const json::Value& object) {
  const auto& scopes = json::get_array(quota, {"spec", "scopes"});
  const auto& selectors = json::get_array(quota, {"spec", "scopeSelector", "matchExpressions"});
  if (scopes.empty() && selectors.empty()) return true;
  if (!kind.group.empty()) return false;
  if (kind.plural == "persistentvolumeclaims") {
    constexpr std::string_view kScope = "VolumeAttributesClass";
    return std::ranges::all_of(scopes,
                               [&](const auto& scope) {
                                 return scope.is_string() && json::as_view(scope) == kScope &&
                                        matches_attributes_class(object, "Exists", {});
                               }) &&
           std::ranges::all_of(selectors, [&](const auto& selector) {
             return json::get_string(selector, {"scopeName"}) == kScope &&
                    matches_attributes_class(object, json::get_string(selector, {"operator"}), json::get_array(selector, {"values"}));
           });
  }
  if (kind.plural != "pods") return false;
  for (const auto& scope : scopes)
    if (!scope.is_string() || !scope_matches(json::as_view(scope), "Exists", json::Array(), object)) return false;
  for (const auto& selector : selectors)
    if (!scope_matches(json::get_string(selector, {"scopeName"}), json::get_string(selector, {"operator"}),
                       json::get_array(selector, {"values"}), object))
      return false;
  return true;
}

std::vector<std::string> missing_requirements(const std::set<std::string>& hard_resources, const json::Value& pod) {
  std::vector<std::string> missing;
  // A pod that says as a whole what it asks for need not say it of its containers.
  for (std::string_view field : {"requests", "limits"})
    for (const auto& [name, amount] : json::get_object(pod, {"spec", "resources", field}))
      if (name == "cpu" || name == "memory" || name.starts_with("hugepages-")) return missing;
  for (const auto& resource : hard_resources) {
    std::string_view name = resource;
    std::string_view field = "requests";
    if (name.starts_with("requests.")) {
      name.remove_prefix(9);
    } else if (name.starts_with("limits.")) {
      name.remove_prefix(7);
      field = "limits";
    }
    if (name != "cpu" && name != "memory") continue;
    std::string containers;
    for (std::string_view list : {"initContainers", "containers"})
      for (const auto& container : json::get_array(pod, {"spec", list}))
        if (json::find(container, {"resources", field, name}) == nullptr)
          containers += (containers.empty() ? "" : ",") + std::string(json::get_string(container, {"name"}));
    if (!containers.empty()) missing.push_back(fmt::format("{} for: {}", resource, containers));
  }
  return missing;
}

}  // namespace berth::model
