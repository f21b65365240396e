#include "queues/amounts.h"

#include <algorithm>
#include <limits>

namespace berth::queues {
namespace {

constexpr Amount kMost = std::numeric_limits<Amount>::max(), kLeast = std::numeric_limits<Amount>::min();

bool is_binary(std::string_view resource) {
  return resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
}

}  // namespace

Amount amount_of(std::string_view resource, const model::Quantity& quantity) {
  // Sums of a hundred of the largest still fit; "1Ei" stands for "no limit" anyway.
  constexpr Amount kLargest = Amount{1} << 55;
  return std::clamp(resource == "cpu" ? quantity.milli_value() : quantity.value(), -kLargest, kLargest);
}

model::Quantity quantity_of(std::string_view resource, Amount amount) {
  if (resource == "cpu") return model::Quantity::from_milli(amount);
  return model::Quantity::from_value(amount,
                                     is_binary(resource) ? model::Quantity::Format::kBinarySI : model::Quantity::Format::kDecimalSI);
}

std::string amount_text(std::string_view resource, Amount amount) { return quantity_of(resource, amount).to_string(); }

Amount plus(Amount a, Amount b) {
  Amount sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? kMost : kLeast;
  return sum;
}

Amount times(Amount a, std::int64_t b) {
  Amount product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kMost : kLeast;
  return product;
}

}  // namespace berth::queues
