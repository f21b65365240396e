// Amounts of resources as quotas count them: integers, and sums that do not wrap.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "model/quantity.h"

namespace berth::queues {

/// Thousandths of a processor for cpu, whole units (bytes, devices, pods) for everything else.
using Amount = std::int64_t;
using Requests = std::map<std::string, Amount, std::less<>>;

struct FlavorResource {
  std::string flavor, resource;
  friend auto operator<=>(const FlavorResource&, const FlavorResource&) = default;
};
using FlavorAmounts = std::map<FlavorResource, Amount>;

/// Rounded up, as Kueue counts (pkg/resources); at most 2^55.
Amount amount_of(std::string_view resource, const model::Quantity& quantity);
/// The same as a quantity: memory, storage and huge pages in powers of two.
model::Quantity quantity_of(std::string_view resource, Amount amount);
std::string amount_text(std::string_view resource, Amount amount);
/// Stay at the limits of 64 bits.
Amount plus(Amount a, Amount b);
Amount times(Amount a, std::int64_t b);

}  // namespace berth::queues
