#include "model/pods/pod_resources.h"

namespace berth::model {

ResourceAmounts amounts_of(const json::Value* resource_list) {
  ResourceAmounts out;
  if (resource_list == nullptr || !resource_list->is_object()) return out;
  for (const auto& [key, value] : resource_list->get_object()) {
    std::optional<Quantity> amount;
    if (value.is_string()) amount = Quantity::parse(json::as_view(value));
    if (value.is_int64()) amount = Quantity::from_value(value.get_int64());
    if (value.is_uint64() || value.is_double()) amount = Quantity::parse(json::serialize(value));
    if (amount) out[std::string(key)] = *amount;
  }
  return out;
}

namespace {

void add(ResourceAmounts& to, const ResourceAmounts& from) {
  for (const auto& [name, amount] : from) {
    const auto [at, is_new] = to.try_emplace(name, amount);
    if (!is_new) at->second += amount;
  }
}

void raise(ResourceAmounts& to, const ResourceAmounts& from) {
  for (const auto& [name, amount] : from) {
    const auto [at, is_new] = to.try_emplace(name, amount);
    if (!is_new && at->second < amount) at->second = amount;
  }
}

}  // namespace

ResourceAmounts containers_total(const json::Value& pod, std::string_view field) {
  ResourceAmounts total;
  for (const auto& container : json::get_array(pod, {"spec", "containers"}))
    add(total, amounts_of(json::find(container, {"resources", field})));
  ResourceAmounts sidecars, init;
  for (const auto& container : json::get_array(pod, {"spec", "initContainers"})) {
    auto own = amounts_of(json::find(container, {"resources", field}));
    if (json::get_string(container, {"restartPolicy"}) == "Always") {
      add(sidecars, own);
      add(total, own);
      raise(init, sidecars);
    } else {
      add(own, sidecars);
      raise(init, own);
    }
  }
  raise(total, init);
  return total;
}

ResourceAmounts pod_total(const json::Value& pod, std::string_view field) {
  ResourceAmounts total = containers_total(pod, field);
  const auto pod_level = amounts_of(json::find(pod, {"spec", "resources", field}));
  for (const auto& [name, amount] : pod_level) total[name] = amount;
  const auto overhead = amounts_of(json::find(pod, {"spec", "overhead"}));
  for (const auto& [name, amount] : overhead) {
    // A limit that is not set stays unset.
    if (field == "limits" && !total.contains(name)) continue;
    const auto [at, is_new] = total.try_emplace(name, amount);
    if (!is_new) at->second += amount;
  }
  return total;
}

}  // namespace berth::model
