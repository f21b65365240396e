#include "placement/devices/capacity.h"

#include <algorithm>

namespace berth::placement::devices {
namespace {

using model::CapacityPolicy;
using model::Quantity;

Quantity rounded_up(const Quantity& asked, const CapacityPolicy& policy) {
  if (policy.has_range && policy.min) {
    if (asked < *policy.min) return *policy.min;
    if (!policy.step || policy.step->value() == 0) return asked;
    const std::int64_t step = policy.step->value(), least = policy.min->value();
    const std::int64_t above = asked.value() - least;
    const std::int64_t steps = above / step + (above % step != 0 ? 1 : 0);
    return Quantity::from_value(least + step * steps, Quantity::Format::kBinarySI);
  }
  if (policy.has_values) {
    const auto at = std::ranges::find_if(policy.values, [&](const Quantity& one) { return asked <= one; });
    return at == policy.values.end() ? asked : *at;
  }
  return asked;
}

Quantity taken_by(const Quantity* asked, const model::DeviceCapacity& capacity) {
  if (asked == nullptr) return capacity.policy && capacity.policy->fallback ? *capacity.policy->fallback : capacity.value;
  return capacity.policy ? rounded_up(*asked, *capacity.policy) : *asked;
}

bool violates(const Quantity& amount, const CapacityPolicy& policy) {
  if (policy.fallback && amount == *policy.fallback) return false;
  if (policy.has_range) {
    if (policy.max && amount > *policy.max) return true;
    if (!policy.step || policy.step->value() == 0) return false;
    return (amount.value() - policy.min.value_or(Quantity()).value()) % policy.step->value() != 0;
  }
  return !policy.values.empty() && std::ranges::find(policy.values, amount) == policy.values.end();
}

const Quantity* find(const Shares& shares, const std::string& name) {
  const auto at = shares.find(name);
  return at == shares.end() ? nullptr : &at->second;
}

}  // namespace

void add(Shares& to, const Shares& amounts) {
  for (const auto& [name, amount] : amounts) to[name] += amount;
}

void subtract(Shares& from, const Shares& amounts) {
  for (const auto& [name, amount] : amounts)
    if (const auto at = from.find(name); at != from.end()) at->second -= amount;
}

bool is_empty(const Shares& shares) {
  return std::ranges::all_of(shares, [](const auto& one) { return one.second.is_zero(); });
}

Shares shares_of(const model::DeviceView& device, const Shares& asked) {
  Shares out;
  for (const auto& [name, capacity] : device.capacity) out.emplace(name, taken_by(find(asked, name), capacity));
  return out;
}

bool has_capacity(const model::DeviceView& device, const Shares& asked, const Shares* taken, const Shares* taking) {
  for (const auto& [name, amount] : asked)
    if (!device.capacity.contains(name)) return false;
  for (const auto& [name, capacity] : device.capacity) {
    Quantity amount = taken_by(find(asked, name), capacity);
    if (capacity.policy && violates(amount, *capacity.policy)) return false;
    for (const Shares* other : {taken, taking})
      if (const Quantity* more = other == nullptr ? nullptr : find(*other, name)) amount += *more;
    if (amount > capacity.value) return false;
  }
  return true;
}

}  // namespace berth::placement::devices
