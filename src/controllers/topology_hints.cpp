#include "controllers/topology_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/quantity.h"

namespace berth::controllers {
namespace {

using json::get_string;
constexpr double kOverload = 0.2;  ///< How much more than its share an endpoint may get.

struct Allocation {
  int minimum = 0, maximum = 0;
  double desired = 0;
};
using Allocations = std::map<std::string, Allocation>;

std::string address_of(const json::Object& endpoint) {
  const auto found = endpoint.find("addresses");
  return found == endpoint.end() || found->value().as_array().empty() ? "" : std::string(json::as_view(found->value().as_array()[0]));
}
std::string zone_of(const json::Object& endpoint) {
  const auto found = endpoint.find("zone");
  return found == endpoint.end() ? "" : std::string(json::as_view(found->value()));
}
bool is_ready(const json::Object& endpoint) {
  const auto found = endpoint.find("conditions");
  return found != endpoint.end() && json::get_bool(found->value(), {"ready"});
}
void hint(json::Object& endpoint, const std::string& zone) {
  endpoint["hints"] = json::Object{{"forZones", json::Array{json::Object{{"name", zone}}}}};
}

/// How many endpoints each zone should have; empty, with the reason: it cannot be done without overload.
Allocations allocate(int endpoints, const ZoneShares& shares, std::string& why) {
  const auto counts = [&] { return fmt::format("({} endpoints, {} zones)", endpoints, shares.size()); };
  Allocations out;
  if (shares.empty())
    why = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
  else if (static_cast<int>(shares.size()) > endpoints)
    why = "Insufficient number of endpoints " + counts();
  if (!why.empty()) return {};
  int minimums = 0;
  for (const auto& [zone, share] : shares) {
    const double desired = share * endpoints;
    const int minimum = static_cast<int>(std::ceil(desired / (1 + kOverload)));
    out[zone] = {.minimum = minimum, .desired = std::max(desired, static_cast<double>(minimum))};
    minimums += minimum;
  }
  if (minimums > endpoints) {
    why = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold " + counts();
    return {};
  }
  for (auto& [zone, allocation] : out) allocation.maximum = allocation.minimum + endpoints - minimums;
  return out;
}

/// The hints of before, if they still do.
bool keep(const std::vector<json::Object*>& ready, const std::map<std::string, std::string>& had, const Allocations& allocations) {
  if (ready.size() != had.size()) return false;
  std::map<std::string, int> counts;
  for (const json::Object* endpoint : ready) {
    const auto before = had.find(address_of(*endpoint));
    if (before == had.end()) return false;
    const auto allocation = allocations.find(before->second);
    if (allocation == allocations.end() || ++counts[before->second] > allocation->second.maximum) return false;
  }
  for (json::Object* endpoint : ready) hint(*endpoint, had.at(address_of(*endpoint)));
  return true;
}

using Most = std::pair<std::string, double>;
Most most(const std::map<std::string, double>& zones) {
  Most out{"", 0};
  for (const auto& [zone, number] : zones)
    if (number > out.second) out = {zone, number};
  return out;
}

/// Who gives an endpoint to whom, one pair an endpoint.
std::vector<std::pair<std::string, std::string>> moves(const Allocations& allocations, const std::map<std::string, int>& counts) {
  std::map<std::string, double> giving, receiving;
  for (const auto& [zone, allocation] : allocations) {
    const auto found = counts.find(zone);
    const double over = (found == counts.end() ? 0 : found->second) - allocation.desired;
    if (over > 0) giving[zone] = over;
    if (over < 0) receiving[zone] = -over;
  }
  std::vector<std::pair<std::string, std::string>> out;
  while (true) {
    const auto [giver, gives] = most(giving);
    const auto [receiver, receives] = most(receiving);
    if (giver.empty() || receiver.empty() || (gives < 1 && receives < 1) || gives < 0.5 || receives < 0.5) return out;
    out.emplace_back(giver, receiver);
    --giving[giver];
    --receiving[receiver];
  }
}

}  // namespace

bool wants_topology_hints(const json::Value& service) {
  const json::Value* value = json::find(service, {"metadata", "annotations", "service.kubernetes.io/topology-aware-hints"});
  if (value == nullptr) value = json::find(service, {"metadata", "annotations", "service.kubernetes.io/topology-mode"});
  return value != nullptr && value->is_string() && (json::as_view(*value) == "Auto" || json::as_view(*value) == "auto");
}

std::optional<ZonePart> zone_part(const json::Value& node) {
  for (const char* excluded : {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"})
    if (json::find(node, {"metadata", "labels", excluded}) != nullptr) return std::nullopt;
  const auto& conditions = json::get_array(node, {"status", "conditions"});
  const auto ready = std::ranges::find_if(conditions, [](const json::Value& one) { return get_string(one, {"type"}) == "Ready"; });
  if (ready == conditions.end() || get_string(*ready, {"status"}) != "True") return std::nullopt;
  return ZonePart{std::string(get_string(node, {"metadata", "labels", "topology.kubernetes.io/zone"})),
                  model::Quantity::parse(get_string(node, {"status", "allocatable", "cpu"})).value_or(model::Quantity()).milli_value()};
}

ZoneShares zone_shares(const std::vector<ZonePart>& nodes) {
  ZoneShares out;
  double all = 0;
  for (const ZonePart& node : nodes) {
    if (node.zone.empty() || node.milli_cpu <= 0) return {};
    out[node.zone] += static_cast<double>(node.milli_cpu);
    all += static_cast<double>(node.milli_cpu);
  }
  if (out.size() < 2) return {};
  for (auto& [zone, cpu] : out) cpu /= all;
  return out;
}

std::string add_topology_hints(std::vector<json::Object*> endpoints, const std::map<std::string, std::string>& had,
                               const ZoneShares& shares) {
  std::erase_if(endpoints, [](const json::Object* endpoint) { return !is_ready(*endpoint); });
  std::string why;
  const Allocations allocations = allocate(static_cast<int>(endpoints.size()), shares, why);
  if (!why.empty()) return why;
  if (std::ranges::any_of(endpoints, [](const json::Object* endpoint) { return zone_of(*endpoint).empty(); }))
    return "One or more endpoints do not have a zone specified";
  if (keep(endpoints, had, allocations)) return {};
  std::ranges::sort(endpoints, {}, [](const json::Object* endpoint) { return address_of(*endpoint); });
  std::map<std::string, int> counts;
  for (json::Object* endpoint : endpoints) {
    hint(*endpoint, zone_of(*endpoint));
    ++counts[zone_of(*endpoint)];
  }
  auto given = endpoints.begin();
  for (const auto& [giver, receiver] : moves(allocations, counts)) {
    // Each is given once: those of one zone go in their order.
    const auto next =
        std::find_if(given, endpoints.end(), [&, giver = giver](const json::Object* endpoint) { return zone_of(*endpoint) == giver; });
    if (next == endpoints.end()) continue;
    hint(**next, receiver);
    std::rotate(given, next, next + 1);
    ++given;
  }
  return {};
}

}  // namespace berth::controllers
