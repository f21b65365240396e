#include "node/agent/admission.h"

#include "model/views/pod_view.h"

namespace berth::node::agent {
namespace {

/// An amount as the message shows it: thousandths of CPU, whole units of everything else.
std::int64_t amount_of(std::string_view resource, const model::Quantity& quantity) {
  return resource == "cpu" ? quantity.milli_value() : quantity.value();
}

std::optional<Refusal> refuse_resources(const AdmissionNode& node, const eviction::PodFacts& facts,
                                        const std::vector<eviction::PodFacts>& active) {
  const auto refuse = [](std::string_view resource, std::int64_t requested, std::int64_t used, std::int64_t capacity) {
    return Refusal{
        fmt::format("OutOf{}", resource),
        fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}", resource, requested, used, capacity)};
  };
  if (const auto pods = node.allocatable.find("pods");
      pods != node.allocatable.end() && static_cast<std::int64_t>(active.size()) + 1 > pods->second.value())
    return refuse("pods", 1, static_cast<std::int64_t>(active.size()), pods->second.value());
  for (const std::string_view resource : {"cpu", "memory", "ephemeral-storage"}) {
    const std::int64_t requested = amount_of(resource, eviction::pod_request(facts, resource));
    const auto found = node.allocatable.find(resource);
    if (requested <= 0 || found == node.allocatable.end()) continue;
    std::int64_t used = 0;
    for (const eviction::PodFacts& other : active) used += amount_of(resource, eviction::pod_request(other, resource));
    const std::int64_t capacity = amount_of(resource, found->second);
    if (requested > capacity - used) return refuse(resource, requested, used, capacity);
  }
  return std::nullopt;
}

struct HostPort {
  std::string protocol, ip;
  std::int64_t port = 0;
};

std::vector<HostPort> host_ports(const json::Value& pod) {
  std::vector<HostPort> out;
  for (const json::Value& container : json::get_array(pod, {"spec", "containers"}))
    for (const json::Value& port : json::get_array(container, {"ports"}))
      if (const std::int64_t number = json::get_int(port, {"hostPort"}); number > 0)
        out.push_back(
            {std::string(json::get_string(port, {"protocol"}, "TCP")), std::string(json::get_string(port, {"hostIP"}, "0.0.0.0")), number});
  return out;
}

bool conflict(const HostPort& a, const HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol && (a.ip == b.ip || a.ip == "0.0.0.0" || b.ip == "0.0.0.0");
}

Refusal predicate(std::string_view name, std::string_view why) {
  return {std::string(name), fmt::format("Predicate {} failed: {}", name, why)};
}

}  // namespace

std::optional<Refusal> refuse_pod(const AdmissionNode& node, const json::Value& pod, const std::vector<json::Value>& active) {
  if (const std::string_view os = json::get_string(pod, {"spec", "os", "name"}, "linux"); os != "linux")
    return Refusal{"PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"};
  std::vector<eviction::PodFacts> others;
  for (const json::Value& other : active) others.push_back(eviction::read_pod_facts(other));
  if (auto refusal = refuse_resources(node, eviction::read_pod_facts(pod), others)) return refusal;
  if (!model::PodView::parse(pod).matches_node_selector(node.labels, node.name))
    return predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
  const std::vector<HostPort> wanted = host_ports(pod);
  for (const json::Value& other : active)
    for (const HostPort& taken : host_ports(other))
      for (const HostPort& port : wanted)
        if (conflict(port, taken)) return predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports");
  return std::nullopt;
}

}  // namespace berth::node::agent
