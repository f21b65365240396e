// Devices that have to be made ready before their pod can be bound (binding conditions).
#pragma once
#include <string>

#include "model/views/device_views.h"

namespace berth::placement::devices {

/// What a driver has reported about the claim's devices.
struct BindingState {
  bool has_conditions = false;  ///< Of any device.
  bool is_ready = true;         ///< All of them hold.
  std::string failure;          ///< Why the devices will never be ready; empty while they may.
};
[[nodiscard]] BindingState binding_state(const model::ResourceClaimView& claim);
[[nodiscard]] inline std::string binding_failure(const model::ResourceClaimView& claim) { return binding_state(claim).failure; }

}  // namespace berth::placement::devices
