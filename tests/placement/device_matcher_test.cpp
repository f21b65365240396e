// What a selector of devices sees of a device.
#include <gtest/gtest.h>

#include "placement/devices/matcher.h"

namespace berth::placement::devices {
namespace {

using Kind = model::DeviceAttribute::Kind;

class DeviceMatcher : public ::testing::Test {
 protected:
  /// "yes", "no" or what went wrong.
  std::string says(const std::string& expression) {
    const auto matches = matcher.matches(expression, "gpu.example.com", device);
    return !matches ? matches.error() : *matches ? "yes" : "no";
  }
  void attribute(const std::string& name, Kind kind, std::int64_t number, const std::string& text = "") {
    auto& out = device.attributes[name];
    out.kind = kind;
    out.number = number;
    out.text = text;
  }
  Matcher matcher;
  model::DeviceView device;
};

TEST_F(DeviceMatcher, AttributesHaveTheirTypesAndDomains) {
  attribute("model", Kind::kString, 0, "a100");
  attribute("memory", Kind::kInt, 40);
  attribute("healthy", Kind::kBool, 1);
  attribute("broken", Kind::kBool, 0);
  attribute("driverVersion", Kind::kVersion, 0, "1.10.0");
  attribute("other.example.com/rack", Kind::kString, 0, "r1");
  const std::string own = "device.attributes['gpu.example.com'].";
  EXPECT_EQ(says(own + "model == 'a100'"), "yes");
  EXPECT_EQ(says(own + "memory == 40 && " + own + "memory > 39"), "yes");
  EXPECT_EQ(says(own + "healthy"), "yes");
  EXPECT_EQ(says(own + "broken"), "no");
  EXPECT_EQ(says(own + "driverVersion.isGreaterThan(semver('1.9.0'))"), "yes") << "as a version, not as a text";
  EXPECT_EQ(says("device.attributes['other.example.com'].rack == 'r1'"), "yes");
  EXPECT_EQ(says("'rack' in device.attributes['gpu.example.com']"), "no") << "of another domain";
  EXPECT_EQ(says("'x' in device.attributes['nobody.example.com']"), "no") << "a domain that it does not speak of is empty";
  EXPECT_EQ(says("device.driver == 'gpu.example.com'"), "yes");
}

TEST_F(DeviceMatcher, SharingAndCapacityAreSeen) {
  EXPECT_EQ(says("device.allowMultipleAllocations"), "no");
  device.allows_sharing = true;
  EXPECT_EQ(says("device.allowMultipleAllocations"), "yes");
  device.capacity["memory"] = {*model::Quantity::parse("40Gi"), {}};
  const std::string memory = "device.capacity['gpu.example.com'].memory.";
  EXPECT_EQ(says(memory + "compareTo(quantity('40Gi')) == 0"), "yes");
  EXPECT_EQ(says(memory + "isGreaterThan(quantity('40Gi'))"), "no");
}

TEST_F(DeviceMatcher, WhatCannotBeAnsweredIsTold) {
  EXPECT_TRUE(says("device.").starts_with("CEL compile error: ")) << says("device.");
  EXPECT_EQ(says("device."), says("device.")) << "the second time, too";
  EXPECT_TRUE(says("device.attributes['gpu.example.com'].missing").starts_with("CEL runtime error: "));
  EXPECT_TRUE(says("device.attributes['gpu.example.com'].missing == 1 ? true : false").starts_with("CEL runtime error: "));
  attribute("odd", Kind::kNone, 0);
  EXPECT_EQ(says("true"), "CEL runtime error: attribute odd: unsupported attribute value");
}

}  // namespace
}  // namespace berth::placement::devices
