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

/// A status speaks only when it says what runs; of two for one container the last counts.
const json::Value* status_of(const json::Value& pod, const char* list, std::string_view name) {
  const json::Value* found = nullptr;
  for (const auto& status : json::get_array(pod, {"status", list}))
    if (json::get_string(status, {"name"}) == name) found = &status;
  return found;
}

bool is_infeasible(const json::Value& pod) {
  for (const auto& condition : json::get_array(pod, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "PodResizePending") return json::get_string(condition, {"reason"}) == "Infeasible";
  return false;
}

ResourceAmounts held(const json::Value& pod, const json::Value* asked, const json::Value* status, std::string_view field) {
  if (status == nullptr || json::find(*status, "resources") == nullptr) return amounts_of(asked);
  ResourceAmounts out;
  if (!is_infeasible(pod)) out = amounts_of(asked);
  raise(out, amounts_of(json::find(*status, {"resources", field})));
  if (field == "requests") raise(out, amounts_of(json::find(*status, "allocatedResources")));
  return out;
}

}  // namespace

ResourceAmounts containers_total(const json::Value& pod, std::string_view field, PodAmounts which) {
  const auto amounts = [&](const json::Value& container, const char* statuses) {
    const json::Value* asked = json::find(container, {"resources", field});
    if (which == PodAmounts::kAsked) return amounts_of(asked);
    return held(pod, asked, status_of(pod, statuses, json::get_string(container, {"name"})), field);
  };
  ResourceAmounts total;
  for (const auto& container : json::get_array(pod, {"spec", "containers"})) add(total, amounts(container, "containerStatuses"));
  ResourceAmounts sidecars, init;
  for (const auto& container : json::get_array(pod, {"spec", "initContainers"})) {
    if (json::get_string(container, {"restartPolicy"}) == "Always") {
      const auto own = amounts(container, "initContainerStatuses");
      add(sidecars, own);
      add(total, own);
      raise(init, sidecars);
    } else {
      auto own = amounts_of(json::find(container, {"resources", field}));
      add(own, sidecars);
      raise(init, own);
    }
  }
  raise(total, init);
  return total;
}

ResourceAmounts pod_total(const json::Value& pod, std::string_view field, PodAmounts which) {
  ResourceAmounts total = containers_total(pod, field, which);
  const json::Value* own = json::find(pod, {"spec", "resources", field});
  const bool has_own = !json::get_object(pod, {"spec", "resources", field}).empty();
  const auto pod_level = which == PodAmounts::kHeld && has_own ? held(pod, own, json::find(pod, "status"), field) : amounts_of(own);
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
