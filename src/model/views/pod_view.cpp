#include "model/views/pod_view.h"

#include <algorithm>

#include "model/schema.h"
#include "model/views/json_text.h"

namespace berth::model {
namespace {

std::vector<ContainerView> parse_containers(const json::Array& items) {
  std::vector<ContainerView> out;
  out.reserve(items.size());
  for (const auto& item : items) {
    ContainerView one;
    one.name = string_at(item, {"name"});
    one.image = string_at(item, {"image"});
    one.requests = parse_resource_list(json::find(item, {"resources", "requests"}));
    one.limits = parse_resource_list(json::find(item, {"resources", "limits"}));
    one.restarts_always = json::get_string(item, {"restartPolicy"}) == "Always";
    for (const auto& port : json::get_array(item, {"ports"})) {
      const auto number = json::get_int(port, {"hostPort"});
      if (number != 0)
        one.host_ports.push_back({static_cast<std::int32_t>(number), string_at(port, {"protocol"}), string_at(port, {"hostIP"})});
    }
    out.push_back(std::move(one));
  }
  return out;
}

void parse_statuses(const json::Array& items, bool is_init, std::vector<ContainerResourceStatus>& out) {
  for (const auto& item : items) {
    const auto* requests = json::find(item, {"resources", "requests"});
    const auto* allocated = json::find(item, "allocatedResources");
    if (json::find(item, "resources") == nullptr && allocated == nullptr) continue;
    ContainerResourceStatus one;
    one.name = string_at(item, {"name"});
    if (json::find(item, "resources") != nullptr) one.requests = parse_resource_list(requests);
    one.allocated = parse_resource_list(allocated);
    one.is_init = is_init;
    out.push_back(std::move(one));
  }
}

bool restarts_all_containers(const json::Array& containers) {
  for (const auto& container : containers)
    for (const auto& rule : json::get_array(container, {"restartPolicyRules"}))
      if (json::get_string(rule, {"action"}) == "RestartAllContainers") return true;
  return false;
}

std::vector<std::string> infer_features(const json::Value& spec) {
  std::vector<std::string> out;
  if (restarts_all_containers(json::get_array(spec, {"containers"})) || restarts_all_containers(json::get_array(spec, {"initContainers"})))
    out.emplace_back("RestartAllContainersOnContainerExits");
  const auto* host_users = json::find(spec, "hostUsers");
  const bool has_own_users = host_users != nullptr && host_users->is_bool() && !host_users->as_bool();
  if (json::get_bool(spec, {"hostNetwork"}) && has_own_users) out.emplace_back("UserNamespacesHostNetworkSupport");
  return out;
}

PodAffinityTerm parse_affinity_term(const json::Value& item) {
  PodAffinityTerm out;
  if (auto selector = Selector::from_label_selector(json::find(item, "labelSelector"))) {
    out.selector = std::move(*selector);
  } else {
    out.selector = Selector::nothing();
    out.selector_error = selector.error().message;
  }
  out.namespaces = parse_strings(json::get_array(item, {"namespaces"}));
  std::ranges::sort(out.namespaces);
  if (const auto* selector = json::find(item, "namespaceSelector")) {
    if (auto parsed = Selector::from_label_selector(selector)) {
      out.namespace_selector = std::move(*parsed);
    } else {
      out.namespace_selector = Selector::nothing();
      out.selector_error = parsed.error().message;
    }
  }
  out.topology_key = string_at(item, {"topologyKey"});
  return out;
}

std::vector<PodAffinityTerm> parse_required(const json::Value& affinity) {
  std::vector<PodAffinityTerm> out;
  for (const auto& item : json::get_array(affinity, {"requiredDuringSchedulingIgnoredDuringExecution"}))
    out.push_back(parse_affinity_term(item));
  return out;
}

std::vector<WeightedPodAffinityTerm> parse_preferred(const json::Value& affinity) {
  std::vector<WeightedPodAffinityTerm> out;
  for (const auto& item : json::get_array(affinity, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
    const auto* term = json::find(item, "podAffinityTerm");
    static const json::Value kNothing = nullptr;
    out.push_back({json::get_int(item, {"weight"}), parse_affinity_term(term == nullptr ? kNothing : *term)});
  }
  return out;
}

VolumeView parse_volume(const json::Value& item, std::string_view pod_name) {
  using Kind = VolumeView::Kind;
  VolumeView out;
  out.name = string_at(item, {"name"});
  if (const auto* v = json::find(item, "persistentVolumeClaim")) {
    out.kind = Kind::kPersistentVolumeClaim;
    out.id = string_at(*v, {"claimName"});
    out.read_only = json::get_bool(*v, {"readOnly"});
  } else if (json::find(item, "ephemeral") != nullptr) {
    out.kind = Kind::kEphemeral;
    out.id = std::string(pod_name) + "-" + out.name;
  } else if (const auto* gce = json::find(item, "gcePersistentDisk")) {
    out.kind = Kind::kGcePersistentDisk;
    out.id = string_at(*gce, {"pdName"});
    out.read_only = json::get_bool(*gce, {"readOnly"});
  } else if (const auto* aws = json::find(item, "awsElasticBlockStore")) {
    out.kind = Kind::kAwsElasticBlockStore;
    out.id = string_at(*aws, {"volumeID"});
    out.read_only = json::get_bool(*aws, {"readOnly"});
  } else if (const auto* azure = json::find(item, "azureDisk")) {
    out.kind = Kind::kAzureDisk;
    out.id = string_at(*azure, {"diskName"});
    out.disk_uri = string_at(*azure, {"diskURI"});
    out.read_only = json::get_bool(*azure, {"readOnly"});
  } else if (const auto* cinder = json::find(item, "cinder")) {
    out.kind = Kind::kCinder;
    out.id = string_at(*cinder, {"volumeID"});
    out.read_only = json::get_bool(*cinder, {"readOnly"});
  } else if (const auto* iscsi = json::find(item, "iscsi")) {
    out.kind = Kind::kIscsi;
    out.id = string_at(*iscsi, {"iqn"});
    out.target_portal = string_at(*iscsi, {"targetPortal"});
    out.lun = json::get_int(*iscsi, {"lun"});
    out.read_only = json::get_bool(*iscsi, {"readOnly"});
  } else if (const auto* rbd = json::find(item, "rbd")) {
    out.kind = Kind::kRbd;
    out.id = string_at(*rbd, {"image"});
    out.pool = string_at(*rbd, {"pool"});
    out.monitors = parse_strings(json::get_array(*rbd, {"monitors"}));
    out.read_only = json::get_bool(*rbd, {"readOnly"});
  } else if (const auto* csi = json::find(item, "csi")) {
    out.kind = Kind::kCsi;
    out.id = string_at(*csi, {"driver"});
    out.read_only = json::get_bool(*csi, {"readOnly"});
  } else if (const auto* image = json::find(item, "image")) {
    out.kind = Kind::kImage;
    out.id = string_at(*image, {"reference"});
  } else {
    out.name.clear();
  }
  return out;
}

void parse_affinity(const json::Value& spec, PodView& out) {
  if (const auto* node = json::find(spec, {"affinity", "nodeAffinity"})) out.node_affinity = NodeAffinity::parse(*node);
  if (const auto* pod = json::find(spec, {"affinity", "podAffinity"})) {
    out.required_affinity = parse_required(*pod);
    out.preferred_affinity = parse_preferred(*pod);
  }
  if (const auto* anti = json::find(spec, {"affinity", "podAntiAffinity"})) {
    out.required_anti_affinity = parse_required(*anti);
    out.preferred_anti_affinity = parse_preferred(*anti);
  }
}

template <typename Parse>
auto parse_each(const json::Value& at, std::string_view list, const Parse& parse) {
  std::vector<decltype(parse(at))> out;
  for (const auto& item : json::get_array(at, {list})) out.push_back(parse(item));
  return out;
}

/// The entries of spec.resourceClaims, with what the status says of them.
std::vector<PodResourceClaim> parse_claims(const json::Value& pod) {
  std::vector<PodResourceClaim> out;
  for (const auto& item : json::get_array(pod, {"spec", "resourceClaims"}))
    out.push_back({string_at(item, {"name"}),
                   string_at(item, {"resourceClaimName"}),
                   string_at(item, {"resourceClaimTemplateName"}),
                   false,
                   {},
                   string_at(pod, {"spec", "schedulingGroup", "podGroupName"})});
  for (const auto& item : json::get_array(pod, {"status", "resourceClaimStatuses"}))
    for (auto& claim : out)
      if (claim.name == json::get_string(item, {"name"})) {
        claim.has_status = true;
        claim.made_name = string_at(item, {"resourceClaimName"});
      }
  return out;
}

void parse_spec(const json::Value& spec, PodView& out) {
  out.node_name = string_at(spec, {"nodeName"});
  out.scheduler_name = string_at(spec, {"schedulerName"});
  out.priority_class_name = string_at(spec, {"priorityClassName"});
  out.priority = json::get_int(spec, {"priority"});
  out.preemption_never = json::get_string(spec, {"preemptionPolicy"}) == "Never";
  out.scheduling_gates = parse_each(spec, "schedulingGates", [](const json::Value& gate) { return string_at(gate, {"name"}); });
  out.host_network = json::get_bool(spec, {"hostNetwork"});
  out.termination_grace_period_seconds = json::get_int(spec, {"terminationGracePeriodSeconds"}, 30);
  out.containers = parse_containers(json::get_array(spec, {"containers"}));
  out.init_containers = parse_containers(json::get_array(spec, {"initContainers"}));
  out.overhead = parse_resource_list(json::find(spec, "overhead"));
  out.required_features = infer_features(spec);
  out.pod_requests = parse_resource_list(json::find(spec, {"resources", "requests"}));
  out.pod_limits = parse_resource_list(json::find(spec, {"resources", "limits"}));
  out.node_selector = Labels::from_json(json::find(spec, "nodeSelector")).pairs();
  parse_affinity(spec, out);
  out.tolerations = parse_tolerations(json::get_array(spec, {"tolerations"}));
  out.spread_constraints = parse_each(spec, "topologySpreadConstraints", TopologySpreadConstraint::parse);
  out.volumes = parse_each(spec, "volumes", [&](const json::Value& item) { return parse_volume(item, out.meta.name); });
}

}  // namespace

TopologySpreadConstraint TopologySpreadConstraint::parse(const json::Value& item) {
  TopologySpreadConstraint out;
  out.max_skew = json::get_int(item, {"maxSkew"});
  out.topology_key = string_at(item, {"topologyKey"});
  out.is_hard = json::get_string(item, {"whenUnsatisfiable"}) == "DoNotSchedule";
  if (auto selector = Selector::from_label_selector(json::find(item, "labelSelector"))) {
    out.selector = std::move(*selector);
  } else {
    out.selector = Selector::nothing();
    out.selector_error = selector.error().message;
  }
  if (json::find(item, "minDomains") != nullptr) out.min_domains = json::get_int(item, {"minDomains"});
  out.honor_affinity = json::get_string(item, {"nodeAffinityPolicy"}) != "Ignore";
  out.honor_taints = json::get_string(item, {"nodeTaintsPolicy"}) == "Honor";
  out.match_label_keys = parse_strings(json::get_array(item, {"matchLabelKeys"}));
  return out;
}

PodView PodView::parse(const json::Value& pod) {
  PodView out;
  out.meta = ObjectMeta::parse(pod);
  if (const auto* spec = json::find(pod, "spec")) parse_spec(*spec, out);
  out.resource_claims = parse_claims(pod);
  const auto qos = json::get_string(pod, {"status", "qosClass"});
  out.is_guaranteed = (qos.empty() ? pod_qos_class(pod) : qos) == "Guaranteed";
  if (const auto* status = json::find(pod, "status")) {
    out.phase = string_at(*status, {"phase"});
    out.start_time = string_at(*status, {"startTime"});
    out.nominated_node_name = string_at(*status, {"nominatedNodeName"});
    std::vector<ContainerResourceStatus> statuses;
    parse_statuses(json::get_array(*status, {"containerStatuses"}), false, statuses);
    parse_statuses(json::get_array(*status, {"initContainerStatuses"}), true, statuses);
    out.container_statuses = std::move(statuses);
    if (const auto* resources = json::find(*status, "resources"); resources != nullptr && resources->is_object()) {
      ContainerResourceStatus whole;
      whole.requests = parse_resource_list(json::find(*resources, "requests"));
      whole.allocated = parse_resource_list(json::find(*status, "allocatedResources"));
      out.pod_level_status = std::make_shared<const ContainerResourceStatus>(std::move(whole));
    }
    bool resize_seen = false, disruption_seen = false;
    for (const auto& condition : json::get_array(*status, {"conditions"})) {
      const auto type = json::get_string(condition, {"type"}), reason = json::get_string(condition, {"reason"});
      if (type == "Ready") out.is_unready = json::get_string(condition, {"status"}) != "True";
      if (type == "PodResizePending" && !std::exchange(resize_seen, true)) out.resize_infeasible = reason == "Infeasible";
      if (type == "DisruptionTarget" && !std::exchange(disruption_seen, true))
        out.terminating_by_preemption = json::get_string(condition, {"status"}) == "True" && reason == "PreemptionByScheduler";
    }
  }
  return out;
}

bool PodView::matches_node_selector(const Labels& node_labels, std::string_view node_name) const {
  for (const auto& [key, value] : node_selector) {
    const std::string* actual = node_labels.get(key);
    if (actual == nullptr || *actual != value) return false;
  }
  return !node_affinity.required || node_affinity.required->matches(node_labels, node_name);
}

}  // namespace berth::model
