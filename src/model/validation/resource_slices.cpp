// ResourceSlices and DeviceTaintRules: pools of devices, and what is wrong with some (pkg/apis/resource/validation).
#include <fmt/format.h>

#include "base/split.h"
#include "model/quantity.h"
#include "model/validation/resource_parts.h"

namespace berth::model::validation::devices {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;

namespace {

constexpr std::size_t kMaxDevices = 128, kMaxDevicesAdvanced = 64, kMaxCounterSets = 8, kMaxCounters = 32, kMaxConsumptions = 2,
                      kMaxAttributesAndCapacities = 32, kMaxAttributeValues = 48, kMaxTaints = 16, kMaxKey = 63 + 1 + 32,
                      kMaxAttributeText = 64, kMaxDiscreteValues = 10;

/// The members of a map in the order of their names.
std::vector<std::pair<std::string_view, const Value*>> sorted(const Value& holder, std::string_view key) {
  std::vector<std::pair<std::string_view, const Value*>> out;
  for (const auto& [name, value] : get_object(holder, {key})) out.emplace_back(std::string_view(name.data(), name.size()), &value);
  std::ranges::sort(out, {}, [](const auto& pair) { return pair.first; });
  return out;
}

bool is_semantic_version(std::string_view text) {
  const auto is_number = [](std::string_view part) {
    return !part.empty() && (part == "0" || part[0] != '0') && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  };
  const auto is_word = [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; });
  };
  const auto parts_are = [](std::string_view list, const auto& is_good) { return std::ranges::all_of(split(list, '.').list(), is_good); };
  if (const auto plus = text.find('+'); plus != std::string_view::npos) {
    if (!parts_are(text.substr(plus + 1), is_word)) return false;
    text = text.substr(0, plus);
  }
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto is_identifier = [&](std::string_view part) {
      const bool all_digits = std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
      return is_word(part) && (!all_digits || is_number(part));
    };
    if (!parts_are(text.substr(dash + 1), is_identifier)) return false;
    text = text.substr(0, dash);
  }
  return std::ranges::count(text, '.') == 2 && parts_are(text, is_number);
}

void attribute(const Value& value, const Path& at, Errors& errors) {
  std::size_t set = 0;
  for (const char* key : {"bool", "int", "string", "version", "bools", "ints", "strings", "versions"})
    if (json::find(value, key) != nullptr) ++set;
  if (get_string(value, {"string"}).size() > kMaxAttributeText) errors.too_long(at / "string", kMaxAttributeText);
  if (const Value* version = json::find(value, "version")) {
    const std::string_view text = get_string(value, {"version"});
    if (!is_semantic_version(text)) errors.invalid(at / "version", *version, "must be a string compatible with semver.org spec 2.0.0");
    if (text.size() > kMaxAttributeText) errors.too_long(at / "version", kMaxAttributeText);
  }
  if (set == 0)
    errors.invalid(at, "", "exactly one value must be specified");
  else if (set > 1)
    errors.invalid(at, value, "exactly one value must be specified");
}

std::optional<Quantity> amount(const Value& holder, std::string_view key) { return Quantity::parse(get_string(holder, {key})); }

void valid_values(const Value& policy, const Quantity& fallback, const Quantity& most, const Path& at, Errors& errors) {
  const json::Array& list = get_array(policy, {"validValues"});
  std::vector<Quantity> values;
  for (const Value& one : list) values.push_back(Quantity::parse(one.is_string() ? json::as_view(one) : "0").value_or(Quantity()));
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i - 1] > values[i]) errors.invalid(at[i], list[i], "values must be sorted in ascending order");
  if (list.size() > kMaxDiscreteValues) {
    errors.too_many(at, list.size(), kMaxDiscreteValues);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] > most) errors.invalid(at[i], list[i], fmt::format("option is larger than capacity value: {}", most.to_string()));
    std::set<std::int64_t> seen;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!seen.insert(values[i].value()).second) errors.duplicate(at[i], Value(std::to_string(values[i].value())));
  }
  if (std::ranges::find(values, fallback) == values.end())
    errors.invalid(at, fallback.to_string(), "default value is not valid according to the requestPolicy");
}

void valid_range(const Value& range, const Quantity& fallback, const Quantity& most, const Path& at, Errors& errors) {
  const auto low = amount(range, "min"), high = amount(range, "max"), step = amount(range, "step");
  if (!low) return errors.required(at / "min", "required when validRange is defined");
  const std::string least = low->to_string();
  if (*low > most) errors.invalid(at / "min", least, fmt::format("min is larger than capacity value: {}", most.to_string()));
  if (fallback < *low) errors.invalid(at / "min", fallback.to_string(), fmt::format("default is less than min: {}", least));
  if (high) {
    if (*low > *high) errors.invalid(at / "max", least, fmt::format("min is larger than max: {}", high->to_string()));
    if (*high > most) errors.invalid(at / "max", high->to_string(), fmt::format("max is larger than capacity value: {}", most.to_string()));
    if (fallback > *high) errors.invalid(at / "max", fallback.to_string(), fmt::format("default is more than max: {}", high->to_string()));
  }
  if (!step) return;
  if (*low + *step > most)
    errors.invalid(at / "step", step->to_string(),
                   fmt::format("one step {} is larger than capacity value: {}", (*low + *step).to_string(), most.to_string()));
  const auto stepped = [&](const Quantity& value) {
    if (step->value() != 0 && (value.value() - low->value()) % step->value() != 0)
      errors.invalid(at / "step", value.to_string(),
                     fmt::format("value is not a multiple of a given step ({}) from ({})", step->to_string(), least));
  };
  stepped(fallback);
  if (high) stepped(*high);
}

void capacity(const Value& value, bool is_shared, const Path& at, Errors& errors) {
  const Value* policy = json::find(value, "requestPolicy");
  if (policy == nullptr) return;
  const Path here = at / "requestPolicy";
  if (!is_shared) return errors.forbidden(here, "allowMultipleAllocations must be true");
  const auto most = amount(value, "value").value_or(Quantity());
  const bool has_values = !get_array(*policy, {"validValues"}).empty();
  const Value* range = json::find(*policy, "validRange");
  if (has_values && range != nullptr)
    return errors.forbidden(here,
                            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time");
  if (!has_values && range == nullptr) return;
  const auto fallback = amount(*policy, "default");
  if (!fallback)
    return errors.required(here / "default", has_values ? "required when validValues is defined" : "required when validRange is defined");
  if (has_values)
    valid_values(*policy, *fallback, most, here / "validValues", errors);
  else
    valid_range(*range, *fallback, most, here / "validRange", errors);
}

void taint(const Value& one, const Path& at, bool effect_is_known, Errors& errors) {
  const std::string_view value = get_string(one, {"value"}), effect = get_string(one, {"effect"});
  label_name(get_string(one, {"key"}), at / "key", errors);
  if (const std::string why = check_label_value(value); !why.empty()) errors.invalid(at / "value", value, why);
  if (effect_is_known) return;
  if (effect.empty())
    errors.required(at / "effect");
  else if (effect != "NoSchedule" && effect != "NoExecute" && effect != "None")
    errors.not_supported(at / "effect", effect, {"NoExecute", "NoSchedule", "None"});
}

void taints(const Value& device, const Path& at, Errors& errors) {
  const json::Array& list = get_array(device, {"taints"});
  const Path here = at / "taints";
  if (list.size() > kMaxTaints) return errors.too_many(here, list.size(), kMaxTaints);
  for (std::size_t i = 0; i < list.size(); ++i) taint(list[i], here[i], false, errors);
}

/// A map of counters: named, and not too many.
void counters(const Value& holder, const Path& at, Errors& errors) {
  const Path here = at / "counters";
  const auto list = sorted(holder, "counters");
  if (list.empty()) return errors.required(here);
  if (list.size() > kMaxCounters) return errors.too_many(here, list.size(), kMaxCounters);
  for (const auto& [name, value] : list) device_name(name, here, errors);
}

void counter_name(std::string_view name, const Path& at, Errors& errors) {
  if (name.empty())
    errors.required(at);
  else
    device_name(name, at, errors);
}

/// Which of the fields say where devices are reached from; `where` is a slice's spec or a device.
std::vector<std::string> placements(const Value& where, bool is_slice, const Path& at, Errors& errors) {
  std::vector<std::string> out;
  if (json::find(where, "nodeName") != nullptr) {
    const std::string_view name = get_string(where, {"nodeName"});
    if (name.empty()) {
      errors.invalid(at / "nodeName", "", is_slice ? "must be either unset or set to a non-empty string" : "must not be empty");
    } else {
      out.emplace_back("`nodeName`");
      if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "nodeName", name, why);
    }
  }
  if (const Value* selector = json::find(where, "nodeSelector")) {
    out.emplace_back("`nodeSelector`");
    const Path here = at / "nodeSelector";
    node_selector(*selector, here, errors);
    const json::Array& terms = get_array(*selector, {"nodeSelectorTerms"});
    if (is_slice && terms.size() != 1) errors.invalid(here / "nodeSelectorTerms", Value(terms), "must have exactly one node selector term");
  }
  for (const char* key : {"allNodes", "perDeviceNodeSelection"}) {
    if (!is_slice && std::string_view(key) == "perDeviceNodeSelection") continue;
    if (json::find(where, key) == nullptr) continue;
    if (get_bool(where, {key}))
      out.push_back(fmt::format("`{}`", key));
    else
      errors.invalid(at / key, Value(false), "must be either unset or set to true");
  }
  return out;
}

void device(const Value& one, const Value* old, bool selects_per_device, const Path& at, Errors& errors) {
  device_name(get_string(one, {"name"}), at / "name", errors);
  const auto attributes = sorted(one, "attributes"), capacities = sorted(one, "capacity");
  if (attributes.size() + capacities.size() > kMaxAttributesAndCapacities)
    errors.invalid(at, Value(attributes.size() + capacities.size()),
                   fmt::format("the total number of attributes and capacities must not exceed {}", kMaxAttributesAndCapacities));
  if (attributes.size() > kMaxAttributeValues)
    errors.invalid(at, Value(attributes.size()),
                   fmt::format("the total number of attribute values must not exceed {}", kMaxAttributeValues));
  const Path attributes_at = at / "attributes", capacity_at = at / "capacity";
  for (const auto& [name, value] : attributes) {
    qualified_name(name, attributes_at, errors);
    const std::string shown = shortened(name, kMaxKey);
    attribute(*value, Path::map_key(attributes_at, shown), errors);
  }
  const bool is_shared = get_bool(one, {"allowMultipleAllocations"});
  for (const auto& [name, value] : capacities) {
    qualified_name(name, capacity_at, errors);
    const std::string shown = shortened(name, kMaxKey);
    capacity(*value, is_shared, Path::map_key(capacity_at, shown), errors);
  }
  const Value* before = old == nullptr ? nullptr : json::find(*old, "taints");
  const Value* after = json::find(one, "taints");
  if (before == nullptr || after == nullptr || !json::equal(*before, *after)) taints(one, at, errors);

  const Path consumes_at = at / "consumesCounters";
  const json::Array& consumes = get_array(one, {"consumesCounters"});
  if (consumes.size() > kMaxConsumptions) {
    errors.too_many(consumes_at, consumes.size(), kMaxConsumptions);
  } else {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < consumes.size(); ++i) {
      const Path here = consumes_at[i];
      counter_name(get_string(consumes[i], {"counterSet"}), here / "counterSet", errors);
      counters(consumes[i], here, errors);
    }
    for (std::size_t i = 0; i < consumes.size(); ++i)
      if (!seen.insert(get_string(consumes[i], {"counterSet"})).second)
        errors.duplicate(consumes_at[i], Value(get_string(consumes[i], {"counterSet"})));
  }
  if (selects_per_device) {
    const auto set = placements(one, false, at, errors);
    constexpr std::string_view kOne =
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the "
        "ResourceSlice spec";
    if (set.empty())
      errors.required(at, kOne);
    else if (set.size() > 1)
      errors.invalid(at, fmt::format("{{{}}}", fmt::join(set, ", ")), kOne);
  } else if (json::find(one, "nodeName") != nullptr || json::find(one, "nodeSelector") != nullptr ||
             json::find(one, "allNodes") != nullptr) {
    errors.invalid(at, Value(nullptr),
                   "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
                   "ResourceSlice spec");
  }
  binding_conditions(one, at, errors);
}

void device_list(const Value* old, const Value& spec, const Path& at, Errors& errors) {
  const json::Array& list = get_array(spec, {"devices"});
  const bool is_advanced = std::ranges::any_of(
      list, [](const Value& one) { return !get_array(one, {"taints"}).empty() || !get_array(one, {"consumesCounters"}).empty(); });
  const std::size_t most = is_advanced ? kMaxDevicesAdvanced : kMaxDevices;
  if (list.size() > most) return errors.too_many(at, list.size(), most);
  const bool per_device = get_bool(spec, {"perDeviceNodeSelection"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value* before = nullptr;
    if (old != nullptr)
      for (const Value& was : get_array(*old, {"spec", "devices"}))
        if (get_string(was, {"name"}) == get_string(list[i], {"name"})) before = &was;
    device(list[i], before, per_device, at[i], errors);
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!seen.insert(get_string(list[i], {"name"})).second) errors.duplicate(at[i], Value(get_string(list[i], {"name"})));
}

}  // namespace

std::string shortened(std::string_view text, std::size_t limit) {
  limit = std::max<std::size_t>(limit, 16);
  if (text.size() <= limit) return std::string(text);
  const std::size_t rest = limit - 3;
  return fmt::format("{}...{}", text.substr(0, (rest + 1) / 2), text.substr(text.size() - rest / 2));
}

void resource_slice(const Value* old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path pool = at / "pool", devices_at = at / "devices", sets_at = at / "sharedCounters";
  const Value none = json::Object();
  const Value* found = json::find(doc, "spec");
  const Value& spec = found != nullptr ? *found : none;
  csi_driver_name(get_string(spec, {"driver"}), at / "driver", errors);
  pool_name(get_string(spec, {"pool", "name"}), pool / "name", errors);
  const std::int64_t count = get_int(spec, {"pool", "resourceSliceCount"}), generation = get_int(spec, {"pool", "generation"});
  if (count <= 0) errors.invalid(pool / "resourceSliceCount", Value(count), "must be greater than zero");
  if (generation < 0) errors.invalid(pool / "generation", Value(generation), "must be greater than or equal to zero");
  if (old != nullptr) {
    immutable(*old, doc, {"spec", "pool", "name"}, pool / "name", errors);
    immutable(*old, doc, {"spec", "driver"}, at / "driver", errors);
    immutable(*old, doc, {"spec", "nodeName"}, at / "nodeName", errors);
  }
  const auto set = placements(spec, true, at, errors);
  constexpr std::string_view kOne = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  if (set.empty())
    errors.required(at, kOne);
  else if (set.size() > 1)
    errors.invalid(at, fmt::format("{{{}}}", fmt::join(set, ", ")), fmt::format("{}, but multiple fields are set", kOne));
  if (json::find(spec, "sharedCounters") != nullptr && json::find(spec, "devices") != nullptr)
    errors.invalid(at, "", "only one of `sharedCounters` or `devices` is allowed");
  device_list(old, spec, devices_at, errors);
  const json::Array& sets = get_array(spec, {"sharedCounters"});
  if (sets.size() > kMaxCounterSets) return errors.too_many(sets_at, sets.size(), kMaxCounterSets);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Path one = sets_at[i];
    counter_name(get_string(sets[i], {"name"}), one / "name", errors);
    counters(sets[i], one, errors);
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < sets.size(); ++i)
    if (!seen.insert(get_string(sets[i], {"name"})).second) errors.duplicate(sets_at[i], Value(get_string(sets[i], {"name"})));
}

void device_taint_rule(const Value* old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path selector = at / "deviceSelector", taint_at = at / "taint";
  const auto named = [&](const char* key, const auto& check) {
    if (json::find(doc, {"spec", "deviceSelector", key}) != nullptr)
      check(get_string(doc, {"spec", "deviceSelector", key}), selector / key, errors);
  };
  named("driver", csi_driver_name);
  named("pool", pool_name);
  named("device", device_name);
  const Value none = json::Object();
  const Value* found = json::find(doc, {"spec", "taint"});
  const bool effect_is_known =
      old != nullptr && get_string(*old, {"spec", "taint", "effect"}) == get_string(doc, {"spec", "taint", "effect"});
  taint(found != nullptr ? *found : none, taint_at, effect_is_known, errors);
}

}  // namespace berth::model::validation::devices
