// Nodes and their taints (ValidateNode, ValidateNodeUpdate, validateNodeTaints).
#include <fmt/format.h>

#include <set>

#include "model/quantity.h"
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

}  // namespace

void node(const Value& doc, Errors& errors) {
  const Path spec("spec");
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
    if (!seen.emplace(key, effect).second) {
      errors.duplicate(one, shown(taint), "taints must be unique by key and effect pair");
    }
  }
  const Path status("status");
  for (const char* list : {"capacity", "allocatable"}) {
    const Path list_at = status / list;
    for (const auto& [key, value] : json::get_object(doc, {"status", list})) {
      const auto quantity = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
      const std::string_view name(key.data(), key.size());
      if (quantity && quantity->sign() < 0) errors.invalid(list_at / name, value, kNegative);
    }
  }
  const Path cidrs = spec / "podCIDRs";
  std::size_t k = 0;
  for (const Value& cidr : get_array(doc, {"spec", "podCIDRs"})) {
    ++k;
    const std::string_view text = cidr.is_string() ? json::as_view(cidr) : "";
    if (!is_ip(text.substr(0, text.find('/'))) || text.find('/') == std::string_view::npos)
      errors.invalid(cidrs[k - 1], text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
  }
}

void node_update(const Value& old, const Value& doc, Errors& errors) {
  const Path spec("spec");
  const std::string_view before = get_string(old, {"spec", "providerID"});
  if (!before.empty() && before != get_string(doc, {"spec", "providerID"}))
    errors.forbidden(spec / "providerID", "node updates may not change providerID except from \"\" to valid");
  if (json::find(old, {"spec", "podCIDR"}) != nullptr && get_string(old, {"spec", "podCIDR"}) != get_string(doc, {"spec", "podCIDR"}))
    errors.forbidden(spec / "podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
}

}  // namespace berth::model::validation
