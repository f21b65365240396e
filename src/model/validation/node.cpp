// Nodes and their taints (ValidateNode, ValidateNodeUpdate, validateNodeTaints).
#include <fmt/format.h>

#include <set>

#include "base/split.h"
#include "model/quantity.h"
#include "model/validation/ip_range.h"
#include "model/validation/validation.h"

namespace berth::model::validation {

using json::get_array;
using json::get_string;

namespace {

/// A taint with its fields' Go names, as Kubernetes shows it.
Value shown(const Value& taint) {
  const Value* added = json::find(taint, "timeAdded");
  return json::Object{{"Key", get_string(taint, {"key"})},
                      {"Value", get_string(taint, {"value"})},
                      {"Effect", get_string(taint, {"effect"})},
                      {"TimeAdded", added == nullptr ? Value(nullptr) : *added}};
}

void taints(const Value& doc, Errors& errors) {
  const Path metadata("metadata");
  const Path at = metadata / "taints";  // So Kubernetes calls the place.
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::size_t i = 0;
  for (const Value& taint : get_array(doc, {"spec", "taints"})) {
    const Path one = at[i++];
    const std::string_view key = get_string(taint, {"key"}), value = get_string(taint, {"value"}), effect = get_string(taint, {"effect"});
    if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(one / "key", key, why);
    if (const std::string why = check_label_value(value); !why.empty()) errors.invalid(one / "value", value, why);
    static const std::vector<std::string_view> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
    if (effect.empty())
      errors.required(one / "effect");
    else if (std::find(kEffects.begin(), kEffects.end(), effect) == kEffects.end())
      errors.not_supported(one / "effect", effect, kEffects);
    if (!seen.emplace(key, effect).second) errors.duplicate(one, shown(taint), "taints must be unique by key and effect pair");
  }
}

/// Counted whole (IsIntegerResourceName).
bool is_whole(std::string_view name) {
  static constexpr std::string_view kWhole[] = {"pods",
                                                "services",
                                                "replicationcontrollers",
                                                "resourcequotas",
                                                "secrets",
                                                "configmaps",
                                                "persistentvolumeclaims",
                                                "services.nodeports",
                                                "services.loadbalancers"};
  return is_extended_resource(name) || std::ranges::find(kWhole, name) != std::end(kWhole);
}

void amounts(const Value& doc, Errors& errors) {
  const Path status("status");
  for (const char* list : {"capacity", "allocatable"}) {
    const Path list_at = status / list;
    for (const auto& [key, value] : json::get_object(doc, {"status", list})) {
      const auto quantity = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
      const std::string_view name(key.data(), key.size());
      if (quantity && quantity->sign() < 0) errors.invalid(list_at / name, value, kNegative);
      if (quantity && is_whole(name) && quantity->milli_value() % 1000 != 0) errors.invalid(list_at / name, value, "must be an integer");
    }
  }
}

/// "Feature" or "Feature/part": a word with a capital first, parts of letters and digits behind it.
bool is_feature_name(std::string_view name) {
  const auto is_plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (name.empty() || name.front() < 'A' || name.front() > 'Z') return false;
  for (const auto part : split(name, '/'))
    if (part.empty() || !std::ranges::all_of(part, is_plain)) return false;
  return true;
}

void declared_features(const Value& doc, Errors& errors) {
  const Path status("status");
  const Path at = status / "declaredFeatures";
  const json::Array& features = get_array(doc, {"status", "declaredFeatures"});
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::string_view name = features[i].is_string() ? json::as_view(features[i]) : "";
    if (name.size() > 253)
      errors.invalid(at[i], name, fmt::format("invalid feature name \"{}\": must be no more than 253 characters", name));
    else if (!is_feature_name(name))
      errors.invalid(
          at[i], name,
          fmt::format("invalid feature name \"{}\": must start with an UpperCamelCase segment, with subsequent segments separated "
                      "by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
                      name));
    if (i + 1 == features.size() || !features[i + 1].is_string()) continue;
    const std::string_view next = json::as_view(features[i + 1]);
    if (name == next) errors.duplicate(at[i + 1], features[i + 1]);
    if (name > next) errors.invalid(at[i + 1], next, "list must be sorted alphabetically");
  }
}

constexpr std::string_view kKeepsRange = "node updates may not change podCIDR except from \"\" to valid";

}  // namespace

void node(const Value& doc, Errors& errors) {
  const Path spec("spec"), metadata("metadata");
  taints(doc, errors);
  amounts(doc, errors);
  const Path swap = metadata / "nodeSwapStatus";  // So Kubernetes calls the place.
  if (const Value* capacity = json::find(doc, {"status", "nodeInfo", "swap", "capacity"});
      capacity != nullptr && capacity->is_int64() && capacity->get_int64() <= 0)
    errors.invalid(swap / "capacity", *capacity, "must be greater than zero");
  declared_features(doc, errors);
  const Path cidrs = spec / "podCIDRs";
  std::vector<std::string_view> texts;
  for (const Value& cidr : get_array(doc, {"spec", "podCIDRs"})) {
    texts.push_back(cidr.is_string() ? json::as_view(cidr) : "");
    if (!parse_cidr(texts.back()))
      errors.invalid(cidrs[texts.size() - 1], texts.back(), "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
  }
  if (texts.size() < 2) return;
  const DualStack pair = check_dual_stack(texts, true);
  if (!pair.problem.empty()) errors.internal(cidrs, "invalid PodCIDRs. failed to check with dual stack with error:" + pair.problem);
  if (!pair.has_both || texts.size() > 2)
    errors.invalid(cidrs, *json::find(doc, {"spec", "podCIDRs"}), "may specify no more than one CIDR for each IP family");
}

void node_update(const Value& old, const Value& doc, Errors& errors) {
  const Path spec("spec"), status("status");
  amounts(doc, errors);
  declared_features(doc, errors);
  const Path addresses = status / "addresses";
  const json::Array& all = get_array(doc, {"status", "addresses"});
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Value& other) { return json::equal(other, all[i]); }))
      errors.duplicate(addresses[i], json::Object{{"Type", get_string(all[i], {"type"})}, {"Address", get_string(all[i], {"address"})}});
  if (const json::Array& before = get_array(old, {"spec", "podCIDRs"}), &now = get_array(doc, {"spec", "podCIDRs"}); !before.empty()) {
    if (before.size() != now.size()) errors.forbidden(spec / "podCIDRs", kKeepsRange);
    for (std::size_t i = 0; before.size() == now.size() && i < now.size(); ++i)
      if (before[i] != now[i]) errors.forbidden(spec / "podCIDRs", kKeepsRange);
  }
  const std::string_view provider = get_string(old, {"spec", "providerID"});
  if (!provider.empty() && provider != get_string(doc, {"spec", "providerID"}))
    errors.forbidden(spec / "providerID", "node updates may not change providerID except from \"\" to valid");
  taints(doc, errors);
  if (get_string(old, {"spec", "externalID"}) != get_string(doc, {"spec", "externalID"}))
    errors.forbidden(spec / "externalID", "may not be updated");
}

}  // namespace berth::model::validation
