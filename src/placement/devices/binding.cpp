#include "placement/devices/binding.h"

#include <fmt/format.h>

namespace berth::placement::devices {
namespace {

/// The condition in the driver's report on the device; null when there is none.
const json::Value* find_condition(const json::Value& report, std::string_view type) {
  for (const auto& one : json::get_array(report, {"conditions"}))
    if (json::get_string(one, {"type"}) == type) return &one;
  return nullptr;
}

bool holds(const json::Value* condition) { return condition != nullptr && json::get_string(*condition, {"status"}) == "True"; }

}  // namespace

BindingState binding_state(const model::ResourceClaimView& claim) {
  BindingState out;
  if (claim.allocation == nullptr) return {false, false, {}};
  for (const auto& device : claim.allocation->devices) {
    if (device.binding_conditions.empty()) continue;
    out.has_conditions = true;
    const json::Value* report = nullptr;
    for (const auto& one : claim.device_statuses)
      if (json::get_string(one, {"device"}) == device.device && json::get_string(one, {"driver"}) == device.driver &&
          json::get_string(one, {"pool"}) == device.pool) {
        report = &one;
        break;
      }
    if (report == nullptr) {
      out.is_ready = false;
      return out;
    }
    for (const auto& type : device.binding_failure_conditions)
      if (const auto* failed = find_condition(*report, type); holds(failed)) {
        out.is_ready = false;
        out.failure = fmt::format("device binding failed: claim={}, reason={}, message=\"{}\"", claim.meta.name,
                                  json::get_string(*failed, {"reason"}), json::get_string(*failed, {"message"}));
        return out;
      }
    for (const auto& type : device.binding_conditions)
      if (!holds(find_condition(*report, type))) {
        out.is_ready = false;
        return out;
      }
  }
  return out;
}

}  // namespace berth::placement::devices
