// The API server's defaulting, kind by kind (Kubernetes: pkg/apis/*/v1/defaults.go).
#include "model/defaults.h"

#include <fmt/format.h>

#include "model/devices.h"
#include "model/kind_hooks.h"
#include "model/flow_control.h"
#include "model/quantity.h"
#include "model/schema.h"

namespace berth::model {
namespace defaults {

void put(Object& object, std::string_view key, Value value) {
  const auto found = object.find(key);
  if (found == object.end() || found->value().is_null()) object[key] = std::move(value);
}

void put_string(Object& object, std::string_view key, std::string_view value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->value().is_string() || found->value().get_string().empty()) object[key] = value;
}

Object* child(Object& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->value().if_object();
}

Array* list(Object& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->value().if_array();
}

Object& make_child(Object& object, std::string_view key) {
  Value& value = object[key];
  if (!value.is_object()) value.emplace_object();
  return value.get_object();
}

std::string_view string_at(Object& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->value().is_string() ? json::as_view(found->value()) : std::string_view();
}

namespace {

void pod_template(Object& owner) {
  if (Object* pod_template = child(owner, "template"))
    if (Object* spec = child(*pod_template, "spec")) pod_spec(*spec);
}

void labels_from_template(Object& doc, bool with_selector) {
  Object* spec = child(doc, "spec");
  Object* pod_template = spec == nullptr ? nullptr : child(*spec, "template");
  Object* meta = pod_template == nullptr ? nullptr : child(*pod_template, "metadata");
  Object* labels = meta == nullptr ? nullptr : child(*meta, "labels");
  if (labels == nullptr || labels->empty()) return;
  if (with_selector && (child(*spec, "selector") == nullptr || child(*spec, "selector")->empty())) (*spec)["selector"] = Object(*labels);
  Object& own = make_child(doc, "metadata");
  if (child(own, "labels") == nullptr || child(own, "labels")->empty()) own["labels"] = Object(*labels);
}

void deployment(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "replicas", 1);
  Object& strategy = make_child(spec, "strategy");
  put_string(strategy, "type", "RollingUpdate");
  if (string_at(strategy, "type") == "RollingUpdate") {
    Object& rolling = make_child(strategy, "rollingUpdate");
    put(rolling, "maxUnavailable", "25%");
    put(rolling, "maxSurge", "25%");
  }
  put(spec, "revisionHistoryLimit", 10);
  put(spec, "progressDeadlineSeconds", 600);
  pod_template(spec);
}

void replica_set(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "replicas", 1);
  pod_template(spec);
}

void replication_controller(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "replicas", 1);
  labels_from_template(doc, true);
  pod_template(spec);
}

void persistent_volume_claim(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "volumeMode", "Filesystem");
  put_string(make_child(doc, "status"), "phase", "Pending");
}

void stateful_set(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "replicas", 1);
  put_string(spec, "podManagementPolicy", "OrderedReady");
  Object& strategy = make_child(spec, "updateStrategy");
  put_string(strategy, "type", "RollingUpdate");
  if (string_at(strategy, "type") == "RollingUpdate") put(make_child(strategy, "rollingUpdate"), "partition", 0);
  put(spec, "revisionHistoryLimit", 10);
  Object& retention = make_child(spec, "persistentVolumeClaimRetentionPolicy");
  put_string(retention, "whenDeleted", "Retain");
  put_string(retention, "whenScaled", "Retain");
  each(spec, "volumeClaimTemplates", [](Object& claim) {
    claim["apiVersion"] = "v1";
    claim["kind"] = "PersistentVolumeClaim";
    persistent_volume_claim(claim);
  });
  pod_template(spec);
}

void daemon_set(Object& doc) {
  Object& spec = make_child(doc, "spec");
  Object& strategy = make_child(spec, "updateStrategy");
  put_string(strategy, "type", "RollingUpdate");
  if (string_at(strategy, "type") == "RollingUpdate") {
    Object& rolling = make_child(strategy, "rollingUpdate");
    put(rolling, "maxUnavailable", 1);
    put(rolling, "maxSurge", 0);
  }
  put(spec, "revisionHistoryLimit", 10);
  pod_template(spec);
}

void job_spec(Object& spec) {
  if (!spec.contains("completions") && !spec.contains("parallelism")) {
    spec["completions"] = 1;
    spec["parallelism"] = 1;
  }
  put(spec, "parallelism", 1);
  const bool per_index = spec.contains("backoffLimitPerIndex");
  put(spec, "backoffLimit", per_index ? std::int64_t{INT32_MAX} : std::int64_t{6});
  put(spec, "completionMode", "NonIndexed");
  put(spec, "suspend", false);
  put(spec, "manualSelector", false);
  if (Object* policy = child(spec, "podFailurePolicy"))
    each(*policy, "rules",
         [](Object& rule) { each(rule, "onPodConditions", [](Object& pattern) { put_string(pattern, "status", "True"); }); });
  if (!spec.contains("podReplacementPolicy"))
    spec["podReplacementPolicy"] = spec.contains("podFailurePolicy") ? "Failed" : "TerminatingOrFailed";
  pod_template(spec);
}

void job(Object& doc) {
  Object& spec = make_child(doc, "spec");
  labels_from_template(doc, false);
  job_spec(spec);
}

void cron_job(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put_string(spec, "concurrencyPolicy", "Allow");
  put(spec, "suspend", false);
  put(spec, "successfulJobsHistoryLimit", 3);
  put(spec, "failedJobsHistoryLimit", 1);
  if (Object* job_template = child(spec, "jobTemplate"))
    if (Object* inner = child(*job_template, "spec")) {
      // A template gets only what the pod template needs and what a JobSpec always has; counts are defaulted when the Job is made.
      pod_template(*inner);
    }
}

void service(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put_string(spec, "sessionAffinity", "None");
  if (string_at(spec, "sessionAffinity") == "ClientIP")
    put(make_child(make_child(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800);
  else if (string_at(spec, "sessionAffinity") == "None")
    spec.erase("sessionAffinityConfig");
  put_string(spec, "type", "ClusterIP");
  const std::string type(string_at(spec, "type"));
  each(spec, "ports", [](Object& port) {
    put_string(port, "protocol", "TCP");
    const auto target = port.find("targetPort");
    const bool unset = target == port.end() || (target->value().is_int64() && target->value().get_int64() == 0) ||
                       (target->value().is_string() && target->value().get_string().empty());
    if (unset && port.contains("port")) port["targetPort"] = Value(port.at("port"));
  });
  const Value* external = spec.if_contains("externalIPs");
  const bool has_external = external != nullptr && external->is_array() && !external->get_array().empty();
  if (type == "NodePort" || type == "LoadBalancer" || (type == "ClusterIP" && has_external))
    put_string(spec, "externalTrafficPolicy", "Cluster");
  if (type != "ExternalName") put(spec, "internalTrafficPolicy", "Cluster");
  if (type != "LoadBalancer") return;
  put(spec, "allocateLoadBalancerNodePorts", true);
  if (Object* status = child(doc, "status"))
    if (Object* balancer = child(*status, "loadBalancer"))
      each(*balancer, "ingress", [](Object& ingress) {
        if (!string_at(ingress, "ip").empty()) put_string(ingress, "ipMode", "VIP");
      });
}

/// Version 1 knows one metric by itself; all others travel in an annotation.
void horizontal_pod_autoscaler_v1(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "minReplicas", 1);
  Object* meta = child(doc, "metadata");
  Object* annotations = meta == nullptr ? nullptr : child(*meta, "annotations");
  if (annotations == nullptr || !annotations->contains("autoscaling.alpha.kubernetes.io/metrics"))
    put(spec, "targetCPUUtilizationPercentage", 80);
}

void horizontal_pod_autoscaler(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "minReplicas", 1);
  if (list(spec, "metrics") == nullptr || list(spec, "metrics")->empty())
    spec["metrics"] =
        Array{Object{{"type", "Resource"},
                     {"resource", Object{{"name", "cpu"}, {"target", Object{{"type", "Utilization"}, {"averageUtilization", 80}}}}}}};
  Object* behavior = child(spec, "behavior");
  if (behavior == nullptr) return;
  const auto rules = [&](std::string_view key, bool up) {
    Object& one = make_child(*behavior, key);
    if (up) put(one, "stabilizationWindowSeconds", 0);
    put(one, "selectPolicy", "Max");
    if (list(one, "policies") == nullptr || list(one, "policies")->empty()) {
      Array policies{Object{{"type", "Percent"}, {"value", 100}, {"periodSeconds", 15}}};
      if (up) policies.insert(policies.begin(), Object{{"type", "Pods"}, {"value", 4}, {"periodSeconds", 15}});
      one["policies"] = std::move(policies);
    }
  };
  rules("scaleUp", true);
  rules("scaleDown", false);
}

void webhooks(Object& doc, bool mutating) {
  each(doc, "webhooks", [&](Object& hook) {
    put(hook, "failurePolicy", "Fail");
    put(hook, "matchPolicy", "Equivalent");
    put(hook, "namespaceSelector", Object());
    put(hook, "objectSelector", Object());
    put(hook, "timeoutSeconds", 10);
    if (mutating) put(hook, "reinvocationPolicy", "Never");
    if (Object* config = child(hook, "clientConfig"))
      if (Object* target = child(*config, "service")) put(*target, "port", 443);
    each(hook, "rules", [](Object& rule) { put(rule, "scope", "*"); });
  });
}

void match_resources(Object& spec, std::string_view field) {
  Object* match = child(spec, field);
  if (match == nullptr) return;
  put_string(*match, "matchPolicy", "Equivalent");
  put(*match, "namespaceSelector", Object());
  put(*match, "objectSelector", Object());
  each(*match, "resourceRules", [](Object& rule) { put_string(rule, "scope", "*"); });
  each(*match, "excludeResourceRules", [](Object& rule) { put_string(rule, "scope", "*"); });
}

void validating_policy(Object& doc) {
  Object* spec = child(doc, "spec");
  if (spec == nullptr) return;
  put_string(*spec, "failurePolicy", "Fail");
  match_resources(*spec, "matchConstraints");
}

void policy_binding(Object& doc) {
  if (Object* spec = child(doc, "spec")) match_resources(*spec, "matchResources");
}

void storage_class(Object& doc) {
  put(doc, "reclaimPolicy", "Delete");
  put(doc, "volumeBindingMode", "Immediate");
}

void persistent_volume(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put_string(spec, "persistentVolumeReclaimPolicy", "Retain");
  put(spec, "volumeMode", "Filesystem");
  if (Object* host = child(spec, "hostPath")) put(*host, "type", "");
  disks(spec);
  put_string(make_child(doc, "status"), "phase", "Pending");
}

void limit_range(Object& doc) {
  Object* spec = child(doc, "spec");
  if (spec == nullptr) return;
  each(*spec, "limits", [](Object& item) {
    if (string_at(item, "type") != "Container") return;
    // Each default falls back on the next stricter bound.
    const auto fill = [&](std::string_view to, std::string_view from) {
      Object* source = child(item, from);
      if (source == nullptr) return;
      const Object copy = *source;
      Object& target = make_child(item, to);
      for (const auto& [name, quantity] : copy) put(target, name, quantity);
    };
    fill("default", "max");
    fill("defaultRequest", "default");
    fill("defaultRequest", "min");
  });
}

void role_binding(Object& doc) {
  if (Object* ref = child(doc, "roleRef")) put_string(*ref, "apiGroup", "rbac.authorization.k8s.io");
  each(doc, "subjects", [](Object& subject) {
    const std::string_view kind = string_at(subject, "kind");
    if (kind == "User" || kind == "Group") put_string(subject, "apiGroup", "rbac.authorization.k8s.io");
  });
}

void csi_driver(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "attachRequired", true);
  put(spec, "podInfoOnMount", false);
  put(spec, "storageCapacity", false);
  put(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
  put(spec, "requiresRepublish", false);
  put(spec, "seLinuxMount", false);
  if (list(spec, "volumeLifecycleModes") == nullptr) spec["volumeLifecycleModes"] = Array{"Persistent"};
}

void priority_class(Object& doc) { put(doc, "preemptionPolicy", "PreemptLowerPriority"); }

void endpoint_slice(Object& doc) {
  each(doc, "ports", [](Object& port) {
    put(port, "name", "");
    put(port, "protocol", "TCP");
  });
}

void endpoints(Object& doc) {
  each(doc, "subsets", [](Object& subset) { each(subset, "ports", [](Object& port) { put_string(port, "protocol", "TCP"); }); });
}

void network_policy(Object& doc) {
  Object& spec = make_child(doc, "spec");
  if (list(spec, "policyTypes") == nullptr || list(spec, "policyTypes")->empty()) {
    Array types{"Ingress"};
    if (list(spec, "egress") != nullptr && !list(spec, "egress")->empty()) types.push_back("Egress");
    spec["policyTypes"] = std::move(types);
  }
  for (const char* direction : {"ingress", "egress"})
    each(spec, direction, [](Object& rule) { each(rule, "ports", [](Object& port) { put(port, "protocol", "TCP"); }); });
}

void namespace_object(Object& doc) {
  put_string(make_child(doc, "status"), "phase", "Active");
  // The label that selectors of namespaces rely on is the server's, whatever the client says.
  Object& meta = make_child(doc, "metadata");
  if (const std::string name(string_at(meta, "name")); !name.empty()) make_child(meta, "labels")["kubernetes.io/metadata.name"] = name;
}

void node(Object& doc) {
  // podCIDR is the first of podCIDRs: who sets one of them has set the other, and where they differ the older one holds (core/v1
  // conversion).
  if (Object* spec = child(doc, "spec")) {
    const std::string one(string_at(*spec, "podCIDR"));
    const Array* all = list(*spec, "podCIDRs");
    if (!one.empty() && (all == nullptr || all->empty() || all->front() != Value(one)))
      (*spec)["podCIDRs"] = Array{Value(one)};
    else if (one.empty() && all != nullptr && !all->empty())
      (*spec)["podCIDR"] = Value(all->front());
  }
  // A kubelet that reports only its capacity can give all of it.
  Object* status = child(doc, "status");
  if (status != nullptr && child(*status, "capacity") != nullptr && !status->contains("allocatable"))
    (*status)["allocatable"] = Value(status->at("capacity"));
}

/// secret.stringData is write-only: it ends up in data, encoded, before anything else looks at the Secret.
void fold_string_data(Object& doc) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const json::Value* found = doc.if_contains("stringData");
  if (found == nullptr || !found->is_object()) return;
  const Object copy = found->get_object();
  Object& data = make_child(doc, "data");
  for (const auto& [key, value] : copy) {
    if (!value.is_string()) continue;
    const std::string_view text = json::as_view(value);
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += 3) {
      std::uint32_t bits = 0;
      for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U);
      for (std::size_t k = 0; k < 4; ++k) out += i + k <= text.size() ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
    data[key] = out;
  }
  doc.erase("stringData");
}

void api_service(Object& doc) {
  if (Object* spec = child(doc, "spec"))
    if (Object* service = child(*spec, "service")) put(*service, "port", 443);
}

void ingress_class(Object& doc) {
  if (Object* spec = child(doc, "spec"))
    if (Object* parameters = child(*spec, "parameters")) put(*parameters, "scope", "Cluster");
}

void token_request(Object& doc) { put(make_child(doc, "spec"), "expirationSeconds", 3600); }

}  // namespace

}  // namespace defaults

void apply_defaults(const KindInfo& kind, json::Value& doc) {
  if (kind.hooks != nullptr) {
    if (const auto& own = kind.hooks->form->defaults; own && doc.is_object()) own(doc.get_object());
    return;
  }
  using namespace defaults;
  using Function = void (*)(json::Object&);
  static const std::map<std::string_view, Function> kCore = {{"Pod", pod},
                                                             {"Node", node},
                                                             {"Namespace", namespace_object},
                                                             {"Service", service},
                                                             {"ReplicationController", replication_controller},
                                                             {"PersistentVolumeClaim", persistent_volume_claim},
                                                             {"PersistentVolume", persistent_volume},
                                                             {"LimitRange", limit_range},
                                                             {"Endpoints", endpoints},
                                                             {"Secret",
                                                              [](json::Object& o) {
                                                                put_string(o, "type", "Opaque");
                                                                fold_string_data(o);
                                                              }},
                                                             {"PodTemplate", [](json::Object& o) { pod_template(o); }}};
  static const std::map<std::string_view, Function> kOthers = {
      {"Deployment", deployment},
      {"ReplicaSet", replica_set},
      {"StatefulSet", stateful_set},
      {"DaemonSet", daemon_set},
      {"Job", job},
      {"CronJob", cron_job},
      {"HorizontalPodAutoscaler", horizontal_pod_autoscaler},
      {"MutatingWebhookConfiguration", [](json::Object& o) { webhooks(o, true); }},
      {"ValidatingWebhookConfiguration", [](json::Object& o) { webhooks(o, false); }},
      {"ValidatingAdmissionPolicy", validating_policy},
      {"ValidatingAdmissionPolicyBinding", policy_binding},
      {"StorageClass", storage_class},
      {"RoleBinding", role_binding},
      {"ClusterRoleBinding", role_binding},
      {"CSIDriver", csi_driver},
      {"PriorityClass", priority_class},
      {"EndpointSlice", endpoint_slice},
      {"NetworkPolicy", network_policy},
      {"IngressClass", ingress_class},
      {"ResourceClaim", devices::default_claim},
      {"ResourceSlice", devices::default_slice},
      {"ResourceClaimTemplate", devices::default_claim_template},
      {"APIService", api_service},
      {"FlowSchema", flow_control::default_schema},
      {"PriorityLevelConfiguration", flow_control::default_level},
      {"IngressClass", ingress_class},
      {"TokenRequest", token_request}};
  if (kind.kind == "HorizontalPodAutoscaler" && kind.version == "v1" && doc.is_object())
    return horizontal_pod_autoscaler_v1(doc.get_object());
  const auto& table = kind.group.empty() ? kCore : kOthers;
  const auto found = table.find(kind.kind);
  if (found != table.end() && doc.is_object()) found->second(doc.get_object());
}

}  // namespace berth::model
