// Selectors that cannot be answered of some device there is.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "model/views/device_views.h"
#include "placement/devices/matcher.h"

namespace berth::placement::devices {

/// Whether an expression fails on a device follows from the two, and slices do not change: each slice is asked once for each list of
/// selectors. Any thread.
class SelectorFailures {
 public:
  using Slices = std::map<std::string, std::shared_ptr<const model::ResourceSliceView>, std::less<>>;
  /// Whether those of a class, and where they all match those of a request, fail on some device of the slices.
  [[nodiscard]] bool any(const std::vector<std::string>& of_class, const std::vector<std::string>& of_request, const Slices& slices);

 private:
  /// Lists beyond this are asked anew.
  static constexpr std::size_t kMostLists = 256;
  struct Known {
    std::weak_ptr<const model::ResourceSliceView> slice;
    bool fails = false;
  };
  using BySlice = std::unordered_map<const model::ResourceSliceView*, Known>;

  Mutex mutex_;
  std::unique_ptr<Matcher> matcher_ BERTH_GUARDED_BY(mutex_) = std::make_unique<Matcher>();
  std::map<std::string, BySlice, std::less<>> lists_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::placement::devices
