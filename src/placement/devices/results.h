// The document of an allocation: what status.allocation says.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "model/views/device_views.h"
#include "placement/devices/capacity.h"
#include "placement/devices/device_id.h"

namespace berth::placement::devices {

/// One device that the search has chosen.
struct ChosenDevice {
  const model::DeviceRequest* request = nullptr;
  std::string parent;  ///< The request whose alternative was taken; empty for exact requests.
  const model::DeviceView* device = nullptr;
  const model::ResourceSliceView* slice = nullptr;
  DeviceId id;
  bool is_shared = false;
  Shares consumed;
};

/// Of each request of the claim: which alternative was taken, and its class.
struct ChosenRequest {
  std::string name, sub;
  const model::DeviceClassView* device_class = nullptr;
  [[nodiscard]] std::string text() const { return sub.empty() ? name : name + "/" + sub; }
};

/// Shares have ids that follow from the claim and their place in it.
[[nodiscard]] std::shared_ptr<const model::Allocation> make_allocation(const model::ResourceClaimView& claim,
                                                                       const std::vector<ChosenDevice>& devices,
                                                                       const std::vector<ChosenRequest>& requests,
                                                                       const std::string& node_name);

}  // namespace berth::placement::devices
