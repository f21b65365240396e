// Constraints over all devices of a claim: one attribute is the same for all of them, or different for each (structured allocator).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "model/views/device_views.h"
#include "placement/devices/device_id.h"

namespace berth::placement::devices {

/// The attribute by its full name; its domain may be left out on the device where it is the driver's. Null when the device has it not.
[[nodiscard]] const model::DeviceAttribute* find_attribute(const model::DeviceView& device, const std::string& driver,
                                                           std::string_view full_name);

/// One constraint of one claim, and what the devices chosen so far leave open. Monotonic: what it refuses now, it refuses with more
/// devices, too. Every successful add has at most one remove, in reverse order.
class Constraint {
 public:
  explicit Constraint(const model::DeviceConstraint& definition) : definition_(&definition) {}
  /// `sub` is the alternative's name, empty for exact requests.
  bool add(const std::string& request, const std::string& sub, const model::DeviceView& device, const std::string& driver);
  void remove(const std::string& request, const std::string& sub);
  [[nodiscard]] bool is_known() const { return !definition_->match_attribute.empty() || !definition_->distinct_attribute.empty(); }

 private:
  [[nodiscard]] bool concerns(const std::string& request, const std::string& sub) const;
  const model::DeviceConstraint* definition_;
  const model::DeviceAttribute* common_ = nullptr;
  std::map<std::string, const model::DeviceAttribute*> distinct_;  ///< By request.
  std::int64_t devices_ = 0;
};

}  // namespace berth::placement::devices
