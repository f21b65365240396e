#include "placement/devices/selector_failures.h"

#include <span>

#include "base/mutex.h"

namespace berth::placement::devices {
namespace {

/// As the allocator asks: in order, until one does not match.
bool fails_on(Matcher& matcher, const model::ResourceSliceView& slice, std::span<const std::string* const> selectors) {
  for (const model::DeviceView& device : slice.devices)
    for (const std::string* selector : selectors) {
      const auto matched = matcher.matches(*selector, slice.driver, device);
      if (!matched) return true;
      if (!*matched) break;
    }
  return false;
}

}  // namespace

bool SelectorFailures::any(const std::vector<std::string>& of_class, const std::vector<std::string>& of_request, const Slices& slices) {
  std::vector<const std::string*> selectors;
  std::string key;
  for (const auto* list : {&of_class, &of_request})
    for (const std::string& selector : *list) {
      selectors.push_back(&selector);
      key.append(selector).push_back('\0');
    }
  if (selectors.empty()) return false;
  const MutexLock lock(mutex_);
  if (lists_.size() > kMostLists) {
    lists_.clear();
    matcher_ = std::make_unique<Matcher>();
  }
  BySlice& known = lists_[key];
  if (known.size() > 2 * slices.size() + 64) known.clear();  // Most of them are gone.
  bool out = false;
  for (const auto& [name, slice] : slices) {
    Known& one = known[slice.get()];
    // An address may have been another slice's.
    const bool is_same = !one.slice.owner_before(slice) && !slice.owner_before(one.slice);
    if (!is_same) one = {slice, fails_on(*matcher_, *slice, selectors)};
    out |= one.fails;
  }
  return out;
}

}  // namespace berth::placement::devices
