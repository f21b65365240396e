// Device selectors: expressions over one device (dynamic-resource-allocation/cel).
#pragma once
#include <memory>
#include <string>

#include "base/expected.h"
#include "model/views/device_views.h"

namespace berth::placement::devices {

/// Compiles each expression once and remembers it. Owner: one thread.
class Matcher {
 public:
  Matcher();
  ~Matcher();
  /// Whether the device is one of those that the expression selects; or why that cannot be said ("CEL runtime error: …", "CEL compile
  /// error: …").
  [[nodiscard]] Expected<bool, std::string> matches(const std::string& expression, const std::string& driver,
                                                    const model::DeviceView& device);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::placement::devices
