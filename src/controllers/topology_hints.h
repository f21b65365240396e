// Hints that spread a Service's endpoints over zones as the zones' processors are spread (annotation service.kubernetes.io/topology-mode:
// Auto; staging/src/k8s.io/endpointslice/topologycache). Pure.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::controllers {

/// Whether the Service asks for it: "Auto" or "auto" in service.kubernetes.io/topology-aware-hints (which goes first) or topology-mode.
[[nodiscard]] bool wants_topology_hints(const json::Value& service);

/// What one node brings: its zone and processors; nullopt: it counts for nothing (control plane, not ready).
struct ZonePart {
  std::string zone;
  std::int64_t milli_cpu = 0;
  friend bool operator==(const ZonePart&, const ZonePart&) = default;
};
[[nodiscard]] std::optional<ZonePart> zone_part(const json::Value& node);

/// Zones' shares of all processors, by name. Empty: a node has no zone or no processors, or there are less than two zones.
using ZoneShares = std::map<std::string, double>;
[[nodiscard]] ZoneShares zone_shares(const std::vector<ZonePart>& nodes);

/// Why a Service has no hints, as its event says it behind "TopologyAwareHintsDisabled"; empty: it has them.
///
/// `endpoints` are those of one address family and get their hints; `had`: the hints of before by address. They stay as long as the ready
/// endpoints are the same and no zone has more than its most; else each endpoint is for its own zone at first, and zones that have too many
/// give some away.
[[nodiscard]] std::string add_topology_hints(std::vector<json::Object*> endpoints, const std::map<std::string, std::string>& had,
                                             const ZoneShares& shares);

}  // namespace berth::controllers
