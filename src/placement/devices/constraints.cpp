#include "placement/devices/constraints.h"

#include <algorithm>

namespace berth::placement::devices {

using model::DeviceAttribute;

const DeviceAttribute* find_attribute(const model::DeviceView& device, const std::string& driver, std::string_view full_name) {
  if (const auto at = device.attributes.find(full_name); at != device.attributes.end()) return &at->second;
  const auto slash = full_name.find('/');
  if (slash == std::string_view::npos || full_name.substr(0, slash) != driver) return nullptr;
  const auto at = device.attributes.find(full_name.substr(slash + 1));
  return at == device.attributes.end() ? nullptr : &at->second;
}

bool Constraint::concerns(const std::string& request, const std::string& sub) const {
  const auto& names = definition_->requests;
  if (names.empty()) return true;
  const auto has = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  return has(request) || (!sub.empty() && has(request + "/" + sub));
}

bool Constraint::add(const std::string& request, const std::string& sub, const model::DeviceView& device, const std::string& driver) {
  if (!concerns(request, sub)) return true;
  const bool is_match = !definition_->match_attribute.empty();
  const auto* attribute = find_attribute(device, driver, is_match ? definition_->match_attribute : definition_->distinct_attribute);
  if (attribute == nullptr) return false;
  if (devices_ > 0) {
    if (attribute->kind == DeviceAttribute::Kind::kNone) return false;
    if (is_match && *attribute != *common_) return false;
    if (!is_match && std::ranges::any_of(distinct_, [&](const auto& one) { return *one.second == *attribute; })) return false;
  }
  if (is_match && devices_ == 0) common_ = attribute;
  if (!is_match) distinct_[request] = attribute;
  ++devices_;
  return true;
}

void Constraint::remove(const std::string& request, const std::string& sub) {
  if (!concerns(request, sub)) return;
  distinct_.erase(request);
  --devices_;
}

}  // namespace berth::placement::devices
