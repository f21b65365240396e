// Which drivers a node can call, whose slices go, and how healthy devices are, over time.
#include "node/devices/driver_registry.h"

#include <gtest/gtest.h>

namespace berth::node::devices {
namespace {

using std::chrono::seconds;
using Names = std::vector<std::string>;
const TimePoint kStart{std::chrono::hours(1)};
TimePoint at(int second) { return kStart + seconds(second); }

TEST(DriverRegistry, TheFirstServiceThatBothHaveIsSpoken) {
  EXPECT_EQ(*DriverRegistry::choose_service({"v1alpha1.DRAResourceHealth", "v1beta1.DRAPlugin", "v1.DRAPlugin"}), "v1beta1.DRAPlugin");
  EXPECT_EQ(DriverRegistry::choose_service({"v1alpha4.Node"}).error().message,
            "none of services supported by the plugin ([\"v1alpha4.Node\"]) are supported by the kubelet ([\"v1.DRAPlugin\" "
            "\"v1beta1.DRAPlugin\"])");
  EXPECT_FALSE(DriverRegistry::choose_service({}));
}

TEST(DriverRegistry, TheNewestThatAnswersIsAsked) {
  DriverRegistry drivers;
  EXPECT_EQ(drivers.find("gpu"), nullptr);
  ASSERT_TRUE(drivers.add("gpu", "/old", "v1.DRAPlugin"));
  ASSERT_TRUE(drivers.add("gpu", "/new", "v1.DRAPlugin"));
  EXPECT_EQ(drivers.add("gpu", "/new", "v1.DRAPlugin").error().message, "endpoint /new already registered for DRA driver plugin gpu");
  EXPECT_EQ(drivers.find("gpu")->path, "/new");
  drivers.look("gpu", "/new", false, at(0));
  EXPECT_EQ(drivers.find("gpu")->path, "/old");
  drivers.look("gpu", "/old", false, at(0));
  EXPECT_EQ(drivers.find("gpu")->path, "/new") << "one that does not answer may yet";
  drivers.remove("gpu", "/new", at(0));
  drivers.remove("gpu", "/old", at(0));
  EXPECT_EQ(drivers.find("gpu"), nullptr);
}

TEST(DriverRegistry, SlicesOfADriverGoWhenItIsGoneForLong) {
  DriverRegistry drivers;
  ASSERT_TRUE(drivers.add("gpu", "/gpu", "v1.DRAPlugin"));
  drivers.remove("gpu", "/gpu", at(0));
  EXPECT_EQ(drivers.due(at(29)), Names{});
  EXPECT_EQ(drivers.due(at(30)), Names{"gpu"});
  drivers.wiped("gpu", true, at(30));
  EXPECT_EQ(drivers.due(at(3000)), Names{}) << "once";
  ASSERT_TRUE(drivers.add("gpu", "/gpu", "v1.DRAPlugin"));
  drivers.remove("gpu", "/gpu", at(4000));
  EXPECT_EQ(drivers.due(at(4030)), Names{"gpu"}) << "and once more when it goes again";
}

TEST(DriverRegistry, ADriverThatComesBackKeepsWhatItPublished) {
  DriverRegistry drivers;
  ASSERT_TRUE(drivers.add("gpu", "/gpu", "v1.DRAPlugin"));
  drivers.look("gpu", "/gpu", false, at(0));
  drivers.look("gpu", "/gpu", false, at(20));
  EXPECT_EQ(drivers.due(at(30)), Names{"gpu"}) << "counted from when it was missed first";
  drivers.look("gpu", "/gpu", true, at(30));
  EXPECT_EQ(drivers.due(at(60)), Names{});
  drivers.look("gpu", "/gpu", false, at(60));
  EXPECT_EQ(drivers.due(at(89)), Names{});
}

TEST(DriverRegistry, ASecondEndpointIsEnough) {
  DriverRegistry drivers;
  ASSERT_TRUE(drivers.add("gpu", "/a", "v1.DRAPlugin"));
  ASSERT_TRUE(drivers.add("gpu", "/b", "v1.DRAPlugin"));
  drivers.remove("gpu", "/b", at(0));
  EXPECT_EQ(drivers.due(at(60)), Names{});
}

TEST(DriverRegistry, ARemovalThatFailsIsTriedAgainLaterEachTime) {
  DriverRegistry drivers;
  drivers.begin(at(0));
  EXPECT_EQ(drivers.due(at(0)), Names{""}) << "of all drivers, when the agent starts";
  int now = 0;
  for (const int pause : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    drivers.wiped("", false, at(now));
    EXPECT_EQ(drivers.due(at(now + pause - 1)), Names{});
    now += pause;
    EXPECT_EQ(drivers.due(at(now)), Names{""});
  }
  drivers.wiped("", true, at(now));
  EXPECT_EQ(drivers.due(at(now + 1000)), Names{});
}

using Changed = std::vector<std::pair<std::string, std::string>>;

TEST(DriverRegistry, WhatADriverSaysOfHealthHoldsForAWhile) {
  DriverRegistry drivers;
  EXPECT_EQ(drivers.report("gpu", {{"p", "a", {"Healthy", ""}}, {"p", "b", {"Unhealthy", "hot"}, seconds(100)}}, at(0)),
            (Changed{{"p", "a"}, {"p", "b"}}));
  EXPECT_EQ(drivers.report("gpu", {{"p", "a", {"Healthy", ""}}}, at(10)), Changed{}) << "nothing new";
  EXPECT_EQ(drivers.health("gpu", "p", "a", at(40)).state, "Healthy");
  EXPECT_EQ(drivers.health("gpu", "p", "a", at(41)).state, "Unknown");
  EXPECT_EQ(drivers.health("gpu", "p", "b", at(100)), (DriverRegistry::Health{"Unhealthy", "hot"}));
  EXPECT_EQ(drivers.health("gpu", "p", "b", at(101)), DriverRegistry::Health{});
  EXPECT_EQ(drivers.report("gpu", {{"p", "b", {"Unhealthy", "cold"}}}, at(102)), (Changed{{"p", "b"}}));
  drivers.forget_health("gpu");
  EXPECT_EQ(drivers.health("gpu", "p", "b", at(103)), DriverRegistry::Health{});
}

TEST(DriverRegistry, ALongMessageIsCutBetweenCharacters) {
  DriverRegistry drivers;
  std::string message(124, 'x');
  message += "ééééé";
  drivers.report("gpu", {{"p", "a", {"Unhealthy", message}}}, at(0));
  EXPECT_EQ(drivers.health("gpu", "p", "a", at(0)).message, std::string(124, 'x') + "...");
}

}  // namespace
}  // namespace berth::node::devices
