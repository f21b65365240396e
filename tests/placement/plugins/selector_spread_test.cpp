// SelectorSpread of 1.20: spreads the pods of a service or workload over nodes and zones.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

PluginWorld spreading(const std::string& zone_label) {
  PluginWorld world(Era::k120);
  world.score_by("SelectorSpread").profile.pre_score.push_back({"SelectorSpread", 0});
  for (const char* node : {"a1", "a2", "b1"})
    world.add(fmt::format("{{kind: Node, metadata: {{name: {}, labels: {{{}: {}}}}}}}", node, zone_label, node[0]));
  return world;
}

TEST(SelectorSpread, CountsTheServicesPodsOnEachNode) {
  auto world = spreading("no-zone");
  world.add("{kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}");
  world.run("1", "a1", "{}", "{app: web}").run("2", "a1", "{}", "{app: web}").run("3", "a2", "{}", "{app: web}");
  EXPECT_EQ(world.scores("SelectorSpread", world.pod("{}", "{app: web}")), (Scores{{"a1", 0}, {"a2", 50}, {"b1", 100}}));
  EXPECT_EQ(world.scores("SelectorSpread", world.pod("{}", "{app: x}")), (Scores{{"a1", 100}, {"a2", 100}, {"b1", 100}}))
      << "nothing selects it";
}

TEST(SelectorSpread, ZonesWeighTwoThirds) {
  auto world = spreading("topology.kubernetes.io/zone");
  world.add("{kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}").run("1", "a1", "{}", "{app: web}");
  EXPECT_EQ(world.scores("SelectorSpread", world.pod("{}", "{app: web}")), (Scores{{"a1", 0}, {"a2", 33}, {"b1", 100}}));
}

TEST(SelectorSpread, WorkloadsSelectTooAndOwnConstraintsSwitchItOff) {
  auto world = spreading("no-zone");
  world.add("{kind: ReplicaSet, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}}}").run("1", "a1", "{}", "{app: web}");
  EXPECT_EQ(world.scores("SelectorSpread", world.pod("{}", "{app: web}")), (Scores{{"a1", 0}, {"a2", 100}, {"b1", 100}}));
  const auto own =
      world.pod("{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 1}]}", "{app: web}");
  EXPECT_EQ(world.scores("SelectorSpread", own), (Scores{{"a1", 0}, {"a2", 0}, {"b1", 0}}));
}

TEST(SelectorSpread, EnabledAtScoreAloneItIsAnError) {
  PluginWorld world(Era::k120);
  world.score_by("SelectorSpread").add("{kind: Node, metadata: {name: a}}").add("{kind: Node, metadata: {name: b}}");
  EXPECT_EQ(
      world.evaluate(world.pod("{}")).errors,
      std::vector<std::string>{
          "running Score plugins: plugin \"SelectorSpread\" failed with: reading \"PreScoreSelectorSpread\" from cycleState: not found"});
}

}  // namespace
}  // namespace berth::placement::testing
