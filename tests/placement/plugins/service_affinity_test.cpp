// ServiceAffinity of 1.20: pods of one service in one place by label, or spread over the values of a label.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

PluginWorld racks() {
  PluginWorld world(Era::k120);
  world.profile.pre_filter.push_back({"ServiceAffinity", 0});
  world.profile.filter.push_back({"ServiceAffinity", 0});
  world.score_by("ServiceAffinity");
  for (const char* node : {"a1", "a2", "b1"})
    world.add(fmt::format("{{kind: Node, metadata: {{name: {}, labels: {{rack: {}}}}}}}", node, node[0]));
  world.add("{kind: Node, metadata: {name: lone}}").add("{kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}");
  return world;
}

TEST(ServiceAffinity, FollowsTheFirstPodOfTheService) {
  auto world = racks();
  world.profile.args.service_affinity.affinity_labels = {"rack"};
  const auto pod = world.pod("{}", "{app: web}");
  EXPECT_EQ(world.verdict("b1", pod), "fits") << "nobody is there yet";
  world.run("first", "a1", "{}", "{app: web}");
  const std::string refused = "ServiceAffinity Unschedulable: node(s) didn't match service affinity";
  EXPECT_EQ(world.verdict("a2", pod), "fits");
  EXPECT_EQ(world.verdict("b1", pod), refused);
  EXPECT_EQ(world.verdict("lone", pod), refused);
  // Its own selector goes before the example of others.
  EXPECT_EQ(world.verdict("b1", world.pod("{nodeSelector: {rack: b}}", "{app: web}")), "fits");
  EXPECT_EQ(world.verdict("b1", world.pod("{}", "{app: x}")), "fits") << "of no service";
}

TEST(ServiceAffinity, AntiAffinityPrefersValuesWithFewPods) {
  auto world = racks();
  world.profile.args.service_affinity.anti_affinity_labels_preference = {"rack"};
  world.run("1", "a1", "{}", "{app: web}")
      .run("2", "a2", "{}", "{app: web}")
      .run("3", "a2", "{}", "{app: web}")
      .run("4", "b1", "{}", "{app: web}");
  EXPECT_EQ(world.scores("ServiceAffinity", world.pod("{}", "{app: web}")), (Scores{{"a1", 25}, {"a2", 25}, {"b1", 75}, {"lone", 0}}));
}

TEST(ServiceAffinity, ANominatedPodThatComesFirstHasNoNodeYet) {
  auto world = racks();
  world.profile.args.service_affinity.affinity_labels = {"rack"};
  world.cluster.nominate(world.pod("{priority: 9}", "{app: web}", "nominated"), "a1");
  EXPECT_EQ(world.evaluate(world.pod("{}", "{app: web}")).errors,
            std::vector<std::string>{"running \"ServiceAffinity\" filter plugin for pod \"pod\": node not found"});
  EXPECT_EQ(world.verdict("a1", world.pod("{nodeSelector: {rack: a}}", "{app: web}")), "fits") << "who says all itself asks nobody";
  world.profile.args.service_affinity.affinity_labels = {"rack", "row"};
  EXPECT_FALSE(world.evaluate(world.pod("{nodeSelector: {rack: a}}", "{app: web}")).errors.empty()) << "of the row it says nothing";
}

TEST(ServiceAffinity, WhatAPodDoesNotSayIsTakenFromTheFirst) {
  auto world = racks();
  world.add("{kind: Node, metadata: {name: c1, labels: {rack: c, row: one}}}")
      .add("{kind: Node, metadata: {name: c2, labels: {rack: c, row: two}}}");
  world.profile.args.service_affinity.affinity_labels = {"rack", "row"};
  world.run("first", "c1", "{}", "{app: web}");
  const std::string refused = "ServiceAffinity Unschedulable: node(s) didn't match service affinity";
  EXPECT_EQ(world.verdict("c1", world.pod("{}", "{app: web}")), "fits");
  EXPECT_EQ(world.verdict("c2", world.pod("{}", "{app: web}")), refused);
  EXPECT_EQ(world.verdict("c2", world.pod("{nodeSelector: {row: two}}", "{app: web}")), "fits") << "its own row, the first one's rack";
  EXPECT_EQ(world.verdict("a1", world.pod("{nodeSelector: {row: two}}", "{app: web}")).substr(0, 12), "NodeAffinity");
  EXPECT_EQ(world.verdict("a1", world.pod("{}", "{app: web}")), refused);
}

}  // namespace
}  // namespace berth::placement::testing
