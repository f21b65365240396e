// When a plugin's socket is asked, taken and given up, over time.
#include "node/plugins/plugin_registry.h"

#include <gtest/gtest.h>

namespace berth::node::plugins {
namespace {

using Effect = PluginRegistry::Effect;
using Effects = PluginRegistry::Effects;
constexpr auto kRegister = Effect::Kind::kRegister, kDeregister = Effect::Kind::kDeregister;
const TimePoint kNow{std::chrono::hours(1)};
const PluginRegistry::Sockets kNone, kFirst{{"/a", {1, 10, 5}}}, kSecond{{"/a", {1, 11, 5}}}, kTouched{{"/a", {1, 10, 6}}};

void expect_registered(PluginRegistry& registry) {
  ASSERT_EQ(registry.look(kFirst, kNow), (Effects{{kRegister, "/a", 1}}));
  ASSERT_EQ(registry.done({kRegister, "/a", 1}, true, kNow), Effects{});
  ASSERT_TRUE(registry.is_registered("/a"));
}

TEST(PluginRegistry, ASocketIsTakenOnce) {
  PluginRegistry registry;
  expect_registered(registry);
  EXPECT_EQ(registry.look(kFirst, kNow + std::chrono::hours(9)), Effects{});
}

TEST(PluginRegistry, OneThatGoesIsGivenUpAndOneThatComesAgainIsNew) {
  PluginRegistry registry;
  expect_registered(registry);
  EXPECT_EQ(registry.look(kNone, kNow), (Effects{{kDeregister, "/a", 1}}));
  EXPECT_EQ(registry.look(kNone, kNow), Effects{}) << "it is under way";
  EXPECT_EQ(registry.done({kDeregister, "/a", 1}, true, kNow), Effects{});
  EXPECT_EQ(registry.look(kNone, kNow), Effects{});
  EXPECT_EQ(registry.look(kFirst, kNow).size(), 1U) << "the same file again";
}

TEST(PluginRegistry, AnotherInItsPlaceIsTakenAfterTheFirstWasGivenUp) {
  for (const auto& other : {kSecond, kTouched}) {
    PluginRegistry registry;
    expect_registered(registry);
    EXPECT_EQ(registry.look(other, kNow), (Effects{{kDeregister, "/a", 1}}));
    EXPECT_EQ(registry.done({kDeregister, "/a", 1}, true, kNow), (Effects{{kRegister, "/a", 2}}));
  }
}

TEST(PluginRegistry, WhatDoesNotAnswerIsAskedAgainLaterAndLater) {
  PluginRegistry registry;
  ASSERT_EQ(registry.look(kFirst, kNow).size(), 1U);
  TimePoint now = kNow;
  Duration pause = kFirstRetry;
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(registry.done({kRegister, "/a", 1}, false, now), Effects{});
    EXPECT_EQ(registry.look(kFirst, now + pause - Duration(1)), Effects{}) << i;
    now += pause;
    EXPECT_EQ(registry.look(kFirst, now), (Effects{{kRegister, "/a", 1}})) << i;
    pause = std::min<Duration>(pause * 2, kMostRetry);
  }
}

TEST(PluginRegistry, ANewOneDoesNotWaitForTheOldOnesPatience) {
  PluginRegistry registry;
  ASSERT_EQ(registry.look(kFirst, kNow).size(), 1U);
  EXPECT_EQ(registry.done({kRegister, "/a", 1}, false, kNow), Effects{});
  EXPECT_EQ(registry.look(kSecond, kNow), (Effects{{kRegister, "/a", 2}}));
}

TEST(PluginRegistry, WhatHappensWhileOneIsAskedIsSeenToAfterwards) {
  PluginRegistry gone;
  ASSERT_EQ(gone.look(kFirst, kNow).size(), 1U);
  EXPECT_EQ(gone.look(kNone, kNow), Effects{});
  EXPECT_EQ(gone.done({kRegister, "/a", 1}, true, kNow), (Effects{{kDeregister, "/a", 1}})) << "it was taken, and is not there";
  PluginRegistry replaced;
  ASSERT_EQ(replaced.look(kFirst, kNow).size(), 1U);
  EXPECT_EQ(replaced.look(kSecond, kNow), Effects{});
  EXPECT_EQ(replaced.done({kRegister, "/a", 1}, false, kNow), (Effects{{kRegister, "/a", 2}})) << "that one never failed";
  PluginRegistry back;
  expect_registered(back);
  EXPECT_EQ(back.look(kNone, kNow).size(), 1U);
  EXPECT_EQ(back.look(kSecond, kNow), Effects{});
  EXPECT_EQ(back.done({kDeregister, "/a", 1}, true, kNow), (Effects{{kRegister, "/a", 2}}));
}

TEST(PluginRegistry, OnesTroubleIsNotAnothers) {
  PluginRegistry registry;
  EXPECT_EQ(registry.look({{"/a", {1, 10, 5}}, {"/b", {1, 12, 5}}}, kNow), (Effects{{kRegister, "/a", 1}, {kRegister, "/b", 1}}));
  EXPECT_EQ(registry.done({kRegister, "/b", 1}, true, kNow), Effects{}) << "the first is still being asked";
  EXPECT_TRUE(registry.is_registered("/b"));
  EXPECT_FALSE(registry.is_registered("/a"));
}

}  // namespace
}  // namespace berth::node::plugins
