// What a running descheduler remembers: no pod is moved twice unless something has changed from outside.
#include "descheduler/memory.h"

#include <fmt/format.h>

#include "world.h"

namespace berth::descheduler::test {
namespace {

using namespace std::chrono_literals;
const TimePoint kNoon = *parse_rfc3339("2026-01-02T12:00:00Z");

std::string at(Duration after) { return format_rfc3339(kNoon + after); }
std::string created(Duration after) { return fmt::format("{{metadata: {{creationTimestamp: '{}'}}}}", at(after)); }
bool is_moved(const Memory& memory, World& world, const std::string& pod) {
  return memory.is_moved(*world.snapshot().pods.find("default/" + pod)->second);
}
void look(Memory& memory, World& world, Duration after) {
  world.snapshot().finish();
  memory.look_at(world.snapshot(), kNoon + after);
}

/// At noon two copies run on a; whatever the function makes of the cluster is there ten minutes later.
struct TwoLooks {
  template <typename F>
  explicit TwoLooks(F change) {
    World first;
    first.node("a").node("b").pod("one", "a").pod("two", "a");
    look(memory, first, 0min);
    change(second);
    look(memory, second, 10min);
  }
  bool moved(const std::string& pod) { return is_moved(memory, second, pod); }
  Memory memory;
  World second;
};

TEST(DeschedulerMemory, WhoCameForALostPodIsMoved) {
  TwoLooks looks([](World& w) { w.node("a").node("b").pod("one", "a").pod("three", "b", created(5min)); });
  EXPECT_TRUE(looks.moved("three"));
  EXPECT_FALSE(looks.moved("one"));
}

TEST(DeschedulerMemory, APodMoreIsNews) {
  TwoLooks looks([](World& w) { w.node("a").node("b").pod("one", "a").pod("two", "a").pod("three", "b", created(5min)); });
  EXPECT_FALSE(looks.moved("three"));
}

TEST(DeschedulerMemory, NewsAfterItLiftIt) {
  TwoLooks looks([](World& w) {
    w.node("a").node("b").pod("one", "a").pod("three", "b", created(5min));
    w.pod("alone", "b", fmt::format("{{metadata: {{creationTimestamp: '{}', ownerReferences: []}}}}", at(6min)));
  });
  EXPECT_FALSE(looks.moved("three"));
}

TEST(DeschedulerMemory, NewsBeforeItDoNot) {
  TwoLooks looks([](World& w) {
    w.node("a").node("b").pod("one", "a").pod("three", "b", created(5min));
    w.pod("alone", "b", fmt::format("{{metadata: {{creationTimestamp: '{}', ownerReferences: []}}}}", at(4min)));
  });
  EXPECT_TRUE(looks.moved("three"));
}

TEST(DeschedulerMemory, ItLastsWhileNothingChanges) {
  TwoLooks looks([](World& w) { w.node("a").node("b").pod("one", "a").pod("three", "b", created(5min)); });
  look(looks.memory, looks.second, 20min);
  EXPECT_TRUE(looks.moved("three"));
  World later;
  later.node("a").node("b", "{spec: {taints: [{key: storm, effect: NoSchedule}]}}").pod("one", "a").pod("three", "b", created(5min));
  look(looks.memory, later, 30min);
  EXPECT_FALSE(is_moved(looks.memory, later, "three")) << "a node has another taint";
}

TEST(DeschedulerMemory, WhatBindingWritesIsNoNews) {
  const auto alone = [](const char* labels) {
    return fmt::format("{{metadata: {{creationTimestamp: '{}', ownerReferences: [], labels: {{{}}}}}}}", at(2min), labels);
  };
  TwoLooks looks([&](World& w) { w.node("a").node("b").pod("one", "a").pod("three", "b", created(5min)).pod("bound", "", alone("")); });
  EXPECT_TRUE(looks.moved("three"));
  for (const auto& [labels, is_moved_still] : {std::pair("topology.kubernetes.io/zone: z", true), std::pair("tier: gold", false)}) {
    World later;
    later.node("a").node("b").pod("one", "a").pod("three", "b", created(5min)).pod("bound", "b", alone(labels));
    look(looks.memory, later, 20min);
    EXPECT_EQ(is_moved(looks.memory, later, "three"), is_moved_still) << labels;
  }
}

TEST(DeschedulerMemory, AScaledDownControllerIsNews) {
  TwoLooks looks([](World& w) { w.node("a").node("b").pod("one", "a").pod("three", "b", created(5min)); });
  World later;
  later.node("a").node("b").pod("three", "b", created(5min));
  look(looks.memory, later, 20min);
  EXPECT_FALSE(is_moved(looks.memory, later, "three"));
}

TEST(DeschedulerMemory, WhoLeftAFailedNodeWasNotMoved) {
  TwoLooks looks([](World& w) {
    w.node("a", "{status: {conditions: [{type: Ready, status: Unknown}]}}").node("b").pod("one", "a").pod("three", "b", created(5min));
  });
  EXPECT_FALSE(looks.moved("three"));
}

TEST(DeschedulerMemory, ANodeThatIsBackLiftsIt) {
  TwoLooks looks([](World& w) {
    w.node("a", fmt::format("{{status: {{conditions: [{{type: Ready, status: 'True', lastTransitionTime: '{}'}}]}}}}", at(8min)))
        .node("b")
        .pod("one", "b")
        .pod("three", "b", created(5min));
  });
  EXPECT_FALSE(looks.moved("three"));
}

constexpr std::string_view kCrowded = "RemoveDuplicates";

TEST(DeschedulerMemory, AMovedPodStays) {
  World w;
  w.node("a").node("b").pods("p", 4, "a");
  EXPECT_EQ(evicted(w.run(one_plugin(std::string(kCrowded), "{}"))).size(), 2U);
  for (int i = 0; i < 4; ++i) w.options.moved.insert(fmt::format("p-{}-uid", i));
  const CycleResult result = w.run(one_plugin(std::string(kCrowded), "{}"));
  EXPECT_EQ(evicted(result), Names{});
  EXPECT_EQ(kept_because(result, "p-3"), "it was moved already, and nothing has changed from outside since");
}

TEST(DeschedulerMemory, AsTheOriginalItRemembersNothing) {
  World w;
  w.node("a").node("b").pods("p", 4, "a");
  for (int i = 0; i < 4; ++i) w.options.moved.insert(fmt::format("p-{}-uid", i));
  w.options.check = PlacementCheck::kOff;
  EXPECT_EQ(evicted(w.run(one_plugin(std::string(kCrowded), "{}"))).size(), 2U);
}

TEST(DeschedulerMemory, NobodyIsMovedToANodeThatTheAutoscalerWouldRemove) {
  World w;
  w.node("a", "{spec: {taints: [{key: away, effect: NoSchedule}]}}")
      .pods("p", 4, "a")
      .node("b", "{spec: {taints: [{key: DeletionCandidateOfClusterAutoscaler, value: '1', effect: PreferNoSchedule}]}}");
  const CycleResult result = w.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"));
  EXPECT_EQ(evicted(result), Names{});
  EXPECT_EQ(kept_because(result, "p-3"), "it would go to b, which the autoscaler wants to remove");
}

}  // namespace
}  // namespace berth::descheduler::test
