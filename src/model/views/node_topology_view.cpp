#include "model/views/node_topology_view.h"

#include <algorithm>
#include <charconv>

namespace berth::model {
namespace {

constexpr int kMostZones = 64;

std::optional<int> number_of_zone(std::string_view name) {
  constexpr std::string_view kBegin = "node-";
  if (!name.starts_with(kBegin)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  int out = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), out);
  if (error != std::errc() || end != name.data() + name.size() || out < 0 || out >= kMostZones) return std::nullopt;
  return out;
}

Quantity amount_in(const json::Value& resource, std::string_view field) {
  const json::Value* amount = json::find(resource, field);
  if (amount != nullptr && amount->is_int64()) return Quantity::from_value(amount->get_int64());
  if (amount == nullptr || !amount->is_string()) return {};
  return Quantity::parse(json::as_view(*amount)).value_or(Quantity());
}

/// The field topologyPolicies, which attributes have taken the place of: policy and scope in one word.
void read_old_policy(std::string_view word, NodeTopologyView& out) {
  constexpr std::pair<std::string_view, std::string_view> kPolicies[] = {
      {"SingleNUMANode", "single-numa-node"}, {"Restricted", "restricted"}, {"BestEffort", "best-effort"}};
  for (const auto& [begin, policy] : kPolicies)
    for (const auto& [end, scope] : {std::pair<std::string_view, std::string_view>("ContainerLevel", "container"), {"PodLevel", "pod"}})
      if (word.starts_with(begin) && word.substr(begin.size()) == end) {
        out.policy = policy;
        out.scope = scope;
      }
}

void read_policy(const json::Value& object, NodeTopologyView& out) {
  if (const auto& old = json::get_array(object, {"topologyPolicies"}); !old.empty() && old[0].is_string())
    read_old_policy(json::as_view(old[0]), out);
  constexpr std::string_view kPolicies[] = {"none", "best-effort", "restricted", "single-numa-node"}, kScopes[] = {"container", "pod"};
  if (const auto said = out.attribute("topologyManagerPolicy"); std::ranges::find(kPolicies, said) != std::end(kPolicies))
    out.policy = said;
  if (const auto said = out.attribute("topologyManagerScope"); std::ranges::find(kScopes, said) != std::end(kScopes)) out.scope = said;
}

NumaZone read_zone(const json::Value& zone, int number) {
  NumaZone out{.number = number, .costs = {}, .resources = {}};
  for (const json::Value& cost : json::get_array(zone, {"costs"}))
    if (const auto to = number_of_zone(json::get_string(cost, {"name"}))) out.costs[*to] = json::get_int(cost, {"value"});
  for (const json::Value& resource : json::get_array(zone, {"resources"}))
    if (const auto name = json::get_string(resource, {"name"}); !name.empty())
      out.resources.push_back(
          {std::string(name), amount_in(resource, "capacity"), amount_in(resource, "allocatable"), amount_in(resource, "available")});
  return out;
}

}  // namespace

NodeTopologyView NodeTopologyView::parse(const json::Value& object) {
  NodeTopologyView out;
  out.meta = ObjectMeta::parse(object);
  for (const json::Value& one : json::get_array(object, {"attributes"}))
    out.attributes.insert_or_assign(std::string(json::get_string(one, {"name"})), std::string(json::get_string(one, {"value"})));
  read_policy(object, out);
  for (const json::Value& zone : json::get_array(object, {"zones"})) {
    const auto number = number_of_zone(json::get_string(zone, {"name"}));
    if (json::get_string(zone, {"type"}) != "Node" || !number) continue;
    if (std::ranges::find(out.zones, *number, &NumaZone::number) == out.zones.end()) out.zones.push_back(read_zone(zone, *number));
  }
  std::ranges::sort(out.zones, {}, &NumaZone::number);
  return out;
}

std::string_view NodeTopologyView::attribute(std::string_view name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? std::string_view() : found->second;
}

}  // namespace berth::model
