#include "model/quota_usage.h"

#include "model/kind_hooks.h"

namespace berth::model {

namespace {

/// What counts as requests of a class counts as requests of the resource that the class stands for.
void add_extended_resources(ResourceAmounts& usage, const ExtendedResourceOf& extended) {
  constexpr std::string_view kOfClass = "requests.deviceclass.resource.kubernetes.io/";
  ResourceAmounts more;
  for (auto one = usage.lower_bound(std::string(kOfClass)); one != usage.end() && one->first.starts_with(kOfClass); ++one)
    if (const std::string name = extended(one->first.substr(kOfClass.size())); !name.empty()) more["requests." + name] += one->second;
  for (const auto& [name, amount] : more) usage[name] += amount;
}

}  // namespace

ResourceAmounts quota_usage(const KindInfo& kind, const json::Value& object, const ExtendedResourceOf& extended, bool has_stopped) {
  const Counted& own = *hooks_of(kind).counted;
  ResourceAmounts usage;
  usage[kind.group.empty() ? "count/" + kind.plural : "count/" + kind.plural + "." + kind.group] = Quantity::from_value(1);
  if (has_stopped) return usage;
  if (own.by_plural) usage[kind.plural] = Quantity::from_value(1);
  if (own.usage) own.usage(object, usage);
  if (own.is_of_devices) add_extended_resources(usage, extended);
  return usage;
}

std::optional<TimePoint> quota_stops_counting(const KindInfo& kind, const json::Value& object) {
  const auto& stops = hooks_of(kind).counted->stops_counting;
  return stops ? stops(object) : std::nullopt;
}

bool quota_selects(const json::Value& quota, const KindInfo& kind, const json::Value& object) {
  const auto& scopes = json::get_array(quota, {"spec", "scopes"});
  const auto& selectors = json::get_array(quota, {"spec", "scopeSelector", "matchExpressions"});
  if (scopes.empty() && selectors.empty()) return true;
  const auto& is_in_scope = hooks_of(kind).counted->is_in_scope;
  if (!is_in_scope) return false;
  for (const auto& scope : scopes)
    if (!scope.is_string() || !is_in_scope(json::as_view(scope), "Exists", json::Array(), object)) return false;
  for (const auto& selector : selectors)
    if (!is_in_scope(json::get_string(selector, {"scopeName"}), json::get_string(selector, {"operator"}),
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
