// Shares of a device's capacity: what a policy makes of what is asked for, and what is left for others.
#include <gtest/gtest.h>

#include "placement/devices/capacity.h"

namespace berth::placement::devices {
namespace {

using model::Quantity;

Quantity quantity(const char* text) { return *Quantity::parse(text); }

/// A device with 40Gi of memory and such a policy.
model::DeviceView device(std::optional<model::CapacityPolicy> policy = {}) {
  model::DeviceView out;
  out.capacity["memory"] = {quantity("40Gi"), std::move(policy)};
  return out;
}

/// What is taken of the device's memory; "refused" where the policy or the size does not allow it.
std::string taken(const model::DeviceView& device, const char* asked, const char* already = nullptr, const char* meanwhile = nullptr) {
  Shares shares, there, taking;
  if (asked != nullptr) shares["memory"] = quantity(asked);
  if (already != nullptr) there["memory"] = quantity(already);
  if (meanwhile != nullptr) taking["memory"] = quantity(meanwhile);
  if (!has_capacity(device, shares, already == nullptr ? nullptr : &there, meanwhile == nullptr ? nullptr : &taking)) return "refused";
  return shares_of(device, shares).at("memory").to_string();
}

TEST(DeviceCapacity, WithoutAPolicyWhatIsAskedForElseAllOfIt) {
  EXPECT_EQ(taken(device(), "7Gi"), "7Gi");
  EXPECT_EQ(taken(device(), nullptr), "40Gi");
  EXPECT_EQ(taken(device(), "40Gi"), "40Gi");
  EXPECT_EQ(taken(device(), "41Gi"), "refused");
  EXPECT_EQ(taken(device(), "10Gi", "30Gi"), "10Gi");
  EXPECT_EQ(taken(device(), "11Gi", "30Gi"), "refused");
  EXPECT_EQ(taken(device(), "10Gi", "20Gi", "10Gi"), "10Gi");
  EXPECT_EQ(taken(device(), "10Gi", "20Gi", "11Gi"), "refused") << "what this attempt has taken counts, too";
  EXPECT_EQ(taken(device(), nullptr, "1Gi"), "refused") << "all of it is not there any more";
  EXPECT_FALSE(has_capacity(device(), {{"cores", quantity("1")}}, nullptr, nullptr)) << "the device has no such capacity";
}

TEST(DeviceCapacity, OfSomeValuesTheNextLarger) {
  model::CapacityPolicy policy;
  policy.has_values = true;
  policy.values = {quantity("5Gi"), quantity("10Gi"), quantity("20Gi")};
  const auto plain = device(policy);
  EXPECT_EQ(taken(plain, "1Gi"), "5Gi");
  EXPECT_EQ(taken(plain, "5Gi"), "5Gi");
  EXPECT_EQ(taken(plain, "6Gi"), "10Gi");
  EXPECT_EQ(taken(plain, "21Gi"), "refused");
  EXPECT_EQ(taken(plain, nullptr), "refused") << "all of it is none of them, and there is no default";
  policy.fallback = quantity("10Gi");
  EXPECT_EQ(taken(device(policy), nullptr), "10Gi");
  policy.fallback = quantity("7Gi");
  EXPECT_EQ(taken(device(policy), nullptr), "7Gi") << "a default needs to be no value";
}

TEST(DeviceCapacity, OfARangeTheNextStep) {
  model::CapacityPolicy policy;
  policy.has_range = true;
  policy.min = quantity("2Gi");
  policy.max = quantity("16Gi");
  EXPECT_EQ(taken(device(policy), "3Gi"), "3Gi") << "without steps any amount";
  EXPECT_EQ(taken(device(policy), "2147483648"), "2147483648") << "the least itself is taken as it is written";
  EXPECT_EQ(taken(device(policy), "2147483647"), "2Gi");
  EXPECT_EQ(taken(device(policy), "16Gi"), "16Gi");
  EXPECT_EQ(taken(device(policy), "17179869185"), "refused");
  policy.step = quantity("4Gi");
  const auto stepped = device(policy);
  EXPECT_EQ(taken(stepped, "1Gi"), "2Gi");
  EXPECT_EQ(taken(stepped, "2Gi"), "2Gi");
  EXPECT_EQ(taken(stepped, "3Gi"), "6Gi") << "steps are counted from the least";
  EXPECT_EQ(taken(stepped, "6Gi"), "6Gi");
  EXPECT_EQ(taken(stepped, "14Gi"), "14Gi");
  EXPECT_EQ(taken(stepped, "15Gi"), "refused") << "the next would be above the most";
  EXPECT_EQ(taken(stepped, "6Gi", "34Gi"), "6Gi");
  EXPECT_EQ(taken(stepped, "5Gi", "35Gi"), "refused") << "what is taken is what it is rounded up to";
  policy.step = quantity("0");
  EXPECT_EQ(taken(device(policy), "3Gi"), "3Gi") << "a step of nothing is none";
}

TEST(DeviceCapacity, SharesAreAddedAndGivenBack) {
  Shares held;
  add(held, {{"memory", quantity("3Gi")}});
  add(held, {{"memory", quantity("2Gi")}, {"cores", quantity("1")}});
  EXPECT_EQ(held.at("memory").to_string(), "5Gi");
  EXPECT_FALSE(is_empty(held));
  subtract(held, {{"memory", quantity("5Gi")}, {"bandwidth", quantity("1")}});
  EXPECT_FALSE(held.contains("bandwidth"));
  EXPECT_FALSE(is_empty(held));
  subtract(held, {{"cores", quantity("1")}});
  EXPECT_TRUE(is_empty(held));
}

}  // namespace
}  // namespace berth::placement::devices
