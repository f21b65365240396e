#include "node/admission.h"

#include "placement/node_match.h"

namespace berth::node {
namespace {

/// An amount as the message shows it: thousandths of CPU, whole units of everything else.
std::int64_t amount_of(std::string_view resource, const model::Quantity& quantity) {
  return resource == "cpu" ? quantity.milli_value() : quantity.value();
}

std::int64_t demand_for(const PodDemand& demand, std::string_view resource) {
  if (resource == "cpu") return demand.cpu_milli;
  if (resource == "memory") return demand.memory_bytes;
  if (resource == "ephemeral-storage") return demand.ephemeral_bytes;
  for (const auto& [name, amount] : demand.others)
    if (name == resource) return amount;
  return 0;
}

std::vector<HostPort> host_ports(const json::Value& pod) {
  std::vector<HostPort> out;
  for (const std::string_view list : {"containers", "initContainers"})
    for (const json::Value& container : json::get_array(pod, {"spec", list})) {
      if (list == "initContainers" && json::get_string(container, {"restartPolicy"}) != "Always") continue;
      for (const json::Value& port : json::get_array(container, {"ports"}))
        if (const std::int64_t number = json::get_int(port, {"hostPort"}); number > 0)
          out.push_back(
              {std::string(json::get_string(port, {"protocol"}, "TCP")), std::string(json::get_string(port, {"hostIP"})), number});
    }
  for (HostPort& port : out)
    if (port.ip.empty()) port.ip = "0.0.0.0";
  return out;
}

bool conflict(const HostPort& a, const HostPort& b) {
  const auto as_view = [](const HostPort& one) { return model::HostPort{static_cast<std::int32_t>(one.port), one.protocol, one.ip}; };
  const model::HostPort x = as_view(a), y = as_view(b);
  return placement::ports_conflict({&x, 1}, {&y, 1});
}

/// Devices were claimed for what the pod asks for by the resource's name.
bool comes_by_devices(const json::Value& pod, std::string_view resource) {
  return std::ranges::any_of(json::get_array(pod, {"status", "extendedResourceClaimStatus", "requestMappings"}),
                             [&](const json::Value& one) { return json::get_string(one, {"resourceName"}) == resource; });
}

Refusal predicate(std::string_view name, std::string_view why) {
  return {std::string(name), fmt::format("Predicate {} failed: {}", name, why)};
}

bool is_static(const json::Value& pod) {
  const std::string_view source = json::get_string(pod, {"metadata", "annotations", "kubernetes.io/config.source"});
  return !source.empty() && source != "api";
}

bool tolerates_all(const std::vector<model::Taint>& taints, const json::Value& pod) {
  const std::vector<model::Toleration> tolerations = model::parse_tolerations(json::get_array(pod, {"spec", "tolerations"}));
  constexpr std::string_view kEffects[] = {"NoExecute"};
  return placement::find_untolerated_taint(taints, tolerations, kEffects) == nullptr;
}

}  // namespace

PodDemand PodDemand::of(const json::Value& pod) {
  const eviction::PodFacts facts = eviction::read_pod_facts(pod);
  PodDemand demand;
  demand.cpu_milli = eviction::pod_request(facts, "cpu").milli_value();
  demand.memory_bytes = eviction::pod_request(facts, "memory").value();
  demand.ephemeral_bytes = eviction::pod_request(facts, "ephemeral-storage").value();
  for (const eviction::ContainerFacts& container : facts.containers)
    for (const auto& [name, quantity] : container.requests) {
      if (name == "cpu" || name == "memory" || name == "ephemeral-storage" || comes_by_devices(pod, name)) continue;
      if (std::ranges::none_of(demand.others, [&](const auto& known) { return known.first == name; }))
        demand.others.emplace_back(name, eviction::pod_request(facts, name).value());
    }
  demand.ports = host_ports(pod);
  return demand;
}

std::optional<Refusal> refuse_resources(const AdmissionNode& node, const PodDemand& demand, const std::vector<const PodDemand*>& active) {
  const auto refuse = [](std::string_view resource, std::int64_t requested, std::int64_t used, std::int64_t capacity) {
    return Refusal{
        fmt::format("OutOf{}", resource),
        fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}", resource, requested, used, capacity)};
  };
  const auto count = static_cast<std::int64_t>(active.size());
  if (const auto pods = node.allocatable.find("pods"); pods != node.allocatable.end() && count + 1 > pods->second.value())
    return refuse("pods", 1, count, pods->second.value());
  std::vector<std::string_view> resources = {"cpu", "memory", "ephemeral-storage"};
  for (const auto& [name, amount] : demand.others) resources.push_back(name);
  for (const std::string_view resource : resources) {
    const std::int64_t requested = demand_for(demand, resource);
    const auto found = node.allocatable.find(resource);
    if (requested <= 0 || found == node.allocatable.end()) continue;
    std::int64_t used = 0;
    for (const PodDemand* other : active) used += demand_for(*other, resource);
    const std::int64_t capacity = amount_of(resource, found->second);
    if (requested > capacity - used) return refuse(resource, requested, used, capacity);
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_pod(const AdmissionNode& node, const json::Value& pod, const PodDemand& demand,
                                  const std::vector<const PodDemand*>& active) {
  if (const std::string_view os = json::get_string(pod, {"metadata", "labels", "kubernetes.io/os"}, "linux"); os != "linux")
    return Refusal{"PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"};
  if (const std::string_view os = json::get_string(pod, {"spec", "os", "name"}, "linux"); os != "linux")
    return Refusal{"PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"};
  if (auto refusal = refuse_resources(node, demand, active)) return refusal;
  if ((json::find(pod, {"spec", "nodeSelector"}) || json::find(pod, {"spec", "affinity", "nodeAffinity"})) &&
      !model::PodView::parse(pod).matches_node_selector(node.labels, node.name))
    return predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
  for (const PodDemand* other : active)
    for (const HostPort& taken : other->ports)
      for (const HostPort& port : demand.ports)
        if (conflict(port, taken)) return predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports");
  if (!is_static(pod) && !tolerates_all(node.taints, pod))
    return predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate");
  return std::nullopt;
}

std::optional<Refusal> refuse_pod(const AdmissionNode& node, const json::Value& pod, const std::vector<json::Value>& active) {
  std::vector<PodDemand> demands;
  demands.reserve(active.size());
  for (const json::Value& other : active) demands.push_back(PodDemand::of(other));
  std::vector<const PodDemand*> pointers;
  for (const PodDemand& demand : demands) pointers.push_back(&demand);
  return refuse_pod(node, pod, PodDemand::of(pod), pointers);
}

bool needs_admission(const json::Value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return (phase.empty() || phase == "Pending") && json::get_array(pod, {"status", "containerStatuses"}).empty() &&
         !json::find(pod, {"metadata", "deletionTimestamp"});
}

}  // namespace berth::node
