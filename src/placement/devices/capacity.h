// Shares of a device's capacity: what a request takes, and whether it is there (structured allocator, consumable_capacity.go).
#pragma once
#include <map>
#include <string>

#include "model/views/device_views.h"

namespace berth::placement::devices {

/// Name to amount, of one device.
using Shares = std::map<std::string, model::Quantity, std::less<>>;

void add(Shares& to, const Shares& amounts);
/// Names that are not there are ignored.
void subtract(Shares& from, const Shares& amounts);
[[nodiscard]] bool is_empty(const Shares& shares);

/// What the request takes of each capacity of the device: as asked, rounded up to what the device's policy offers; the policy's default, or
/// all of it, where nothing is asked.
[[nodiscard]] Shares shares_of(const model::DeviceView& device, const Shares& asked);
/// Whether the request fits into the device beside what is `taken` and what this attempt has taken (`taking`). False also when a capacity
/// is asked for that the device has not, or that its policy does not offer.
[[nodiscard]] bool has_capacity(const model::DeviceView& device, const Shares& asked, const Shares* taken, const Shares* taking);

}  // namespace berth::placement::devices
