#include "node/numa/topology_report.h"

#include <fmt/format.h>

#include "model/views/node_topology_view.h"

namespace berth::node::numa {
namespace {

constexpr const char* kApiVersion = "topology.node.k8s.io/v1alpha2";

std::string_view policy_name(Align align) {
  switch (align) {
    case Align::kNone:
      return "none";
    case Align::kBestEffort:
      return "best-effort";
    case Align::kRestricted:
      return "restricted";
    case Align::kSingleNumaNode:
      return "single-numa-node";
  }
  return "";
}

/// The word that policy and scope had before there were attributes; schedulers of that time read it.
std::string old_policy(const AlignmentPolicy& policy) {
  constexpr std::string_view kNames[] = {"None", "BestEffort", "Restricted", "SingleNUMANode"};
  const std::string name(kNames[static_cast<std::size_t>(policy.align)]);
  return policy.align == Align::kNone ? name : name + (policy.is_by_pod ? "PodLevel" : "ContainerLevel");
}

json::Value pair_of(std::string_view name, std::string_view value) { return json::Object{{"name", name}, {"value", value}}; }

json::Array attributes_of(const TopologyReport& report) {
  json::Array out{pair_of("topologyManagerPolicy", policy_name(report.policy.align)),
                  pair_of("topologyManagerScope", report.policy.is_by_pod ? "pod" : "container"),
                  pair_of(model::kCpuManagerPolicy, report.gives_cpus ? "static" : "none"),
                  pair_of(model::kMemoryManagerPolicy, report.gives_memory ? "Static" : "None"), pair_of(model::kTellsHolders, "true")};
  if (report.policy.prefers_closest) out.push_back(pair_of(model::kPrefersClosest, "true"));
  if (report.threads_of_whole_cores > 1) out.push_back(pair_of(model::kThreadsOfWholeCores, std::to_string(report.threads_of_whole_cores)));
  if (!report.sockets.empty()) out.push_back(pair_of(model::kSockets, text_of(report.sockets)));
  for (const auto& [uid, holdings] : report.offer.holders)
    out.push_back(pair_of(std::string(model::kHoldsPrefix) + uid, text_of(holdings)));
  return out;
}

json::Value zone_of(const TopologyReport& report, int number) {
  json::Array costs, resources;
  const auto distances = report.machine.distances.find(number);
  const auto numbers = numbers_of(report.machine.nodes);
  for (std::size_t i = 0; distances != report.machine.distances.end() && i < numbers.size() && i < distances->second.size(); ++i)
    costs.push_back(json::Object{{"name", fmt::format("node-{}", numbers[i])}, {"value", distances->second[i]}});
  for (const auto& [resource, by_node] : report.offer.amounts)
    if (const auto found = by_node.find(number); found != by_node.end())
      resources.push_back(json::Object{{"name", resource},
                                       {"capacity", std::to_string(found->second.capacity)},
                                       {"allocatable", std::to_string(found->second.allocatable)},
                                       {"available", std::to_string(found->second.available)}});
  json::Object out{{"name", fmt::format("node-{}", number)}, {"type", "Node"}, {"resources", std::move(resources)}};
  if (!costs.empty()) out["costs"] = std::move(costs);
  return out;
}

}  // namespace

json::Value topology_document(const TopologyReport& report) {
  json::Object metadata{{"name", report.node_name}};
  if (!report.node_uid.empty())
    metadata["ownerReferences"] =
        json::Array{json::Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", report.node_name}, {"uid", report.node_uid}}};
  json::Array zones;
  for (const int number : numbers_of(report.machine.nodes)) zones.push_back(zone_of(report, number));
  return json::Object{{"apiVersion", kApiVersion},           {"kind", "NodeResourceTopology"},
                      {"metadata", std::move(metadata)},     {"topologyPolicies", json::Array{json::Value(old_policy(report.policy))}},
                      {"attributes", attributes_of(report)}, {"zones", std::move(zones)}};
}

}  // namespace berth::node::numa
