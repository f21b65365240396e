// PodTopologySpread: keeps matching pods evenly over topology domains.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

/// Nodes a1, a2 in zone a, b1 in zone b, and one without a zone.
PluginWorld zones(Era era) {
  PluginWorld world(era);
  for (const char* node : {"a1", "a2", "b1"})
    world.add(fmt::format("{{kind: Node, metadata: {{name: {}, labels: {{zone: {}}}}}}}", node, node[0]));
  world.add("{kind: Node, metadata: {name: lone}}");
  return world;
}

std::string spread(const std::string& fields, const std::string& rest = "") {
  return "{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}, " +
         fields + "}]" + rest + "}";
}

constexpr const char* kSkewed = "PodTopologySpread Unschedulable: node(s) didn't match pod topology spread constraints";
constexpr const char* kNoLabel =
    "PodTopologySpread UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)";

TEST(PodTopologySpread, SkewAndMissingLabel) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    world.run("one", "a1", "{}", "{app: web}");
    const auto pod = world.pod(spread("maxSkew: 1"), "{app: web}");
    EXPECT_EQ(world.verdict("a1", pod), kSkewed);
    EXPECT_EQ(world.verdict("a2", pod), kSkewed) << "the zone counts, not the node";
    EXPECT_EQ(world.verdict("b1", pod), "fits");
    EXPECT_EQ(world.verdict("lone", pod), kNoLabel);
    EXPECT_EQ(world.verdict("a2", world.pod(spread("maxSkew: 2"), "{app: web}")), "fits");
    // A pod that its own constraint does not select adds nothing.
    EXPECT_EQ(world.verdict("a2", world.pod(spread("maxSkew: 1"), "{app: other}")), "fits");
  }
}

TEST(PodTopologySpread, TerminatingPodsAndOtherNamespacesDoNotCount) {
  auto world = zones(Era::k136);
  world.add(
      "{kind: Pod, metadata: {name: gone, labels: {app: web}, deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {nodeName: a1, containers: "
      "[]}}");
  world.add("{kind: Pod, metadata: {name: far, namespace: other, labels: {app: web}}, spec: {nodeName: a1, containers: []}}");
  EXPECT_EQ(world.verdict("a1", world.pod(spread("maxSkew: 1"), "{app: web}")), "fits");
}

TEST(PodTopologySpread, MinDomainsTakesTheMinimumAsZeroIn136) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    world.run("one", "a1", "{}", "{app: web}").run("two", "b1", "{}", "{app: web}");
    EXPECT_EQ(world.verdict("a1", world.pod(spread("maxSkew: 1, minDomains: 3"), "{app: web}")), era == Era::k120 ? "fits" : kSkewed);
    EXPECT_EQ(world.verdict("a1", world.pod(spread("maxSkew: 1, minDomains: 2"), "{app: web}")), "fits");
  }
}

TEST(PodTopologySpread, PoliciesSayWhichNodesCount) {
  auto world = zones(Era::k136);
  world.run("one", "a1", "{}", "{app: web}");
  // Zone b is not for this pod: by default it is no domain to be even with.
  const std::string only_a = ", nodeSelector: {zone: a}";
  EXPECT_EQ(world.verdict("a1", world.pod(spread("maxSkew: 1", only_a), "{app: web}")), "fits");
  EXPECT_EQ(world.verdict("a1", world.pod(spread("maxSkew: 1, nodeAffinityPolicy: Ignore", only_a), "{app: web}")), kSkewed);
  world.add("{kind: Node, metadata: {name: b1, labels: {zone: b}}, spec: {taints: [{key: t, effect: NoSchedule}]}}");
  EXPECT_EQ(world.verdict("a1", world.pod(spread("maxSkew: 1"), "{app: web}")), kSkewed) << "taints are ignored by default";
  EXPECT_EQ(world.verdict("a1", world.pod(spread("maxSkew: 1, nodeTaintsPolicy: Honor"), "{app: web}")), "fits");
}

TEST(PodTopologySpread, MatchLabelKeysCountsThePodsOwnRevisionIn136) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    world.run("old", "a1", "{}", "{app: web, revision: '1'}");
    const auto pod = world.pod(spread("maxSkew: 1, matchLabelKeys: [revision]"), "{app: web, revision: '2'}");
    EXPECT_EQ(world.verdict("a1", pod), era == Era::k120 ? kSkewed : "fits");
  }
}

TEST(PodTopologySpread, SoftConstraintsPreferTheEmptierZone) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    world.run("one", "a1", "{}", "{app: web}").run("two", "a2", "{}", "{app: web}");
    const auto pod = world.pod(
        "{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 1, labelSelector: {matchLabels: "
        "{app: web}}}]}",
        "{app: web}");
    EXPECT_EQ(world.scores("PodTopologySpread", pod), (Scores{{"a1", 0}, {"a2", 0}, {"b1", 200}, {"lone", 0}}));
  }
}

TEST(PodTopologySpread, SystemDefaultsSpreadWhatAServiceSelects) {
  auto world = zones(Era::k136);
  world.run("one", "a1", "{}", "{app: web}").add("{kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}");
  const auto scores = world.scores("PodTopologySpread", world.pod("{}", "{app: web}"));
  EXPECT_LT(scores.at("a1"), scores.at("a2")) << "the hostname counts as well";
  EXPECT_EQ(world.scores("PodTopologySpread", world.pod("{}", "{app: other}")), Scores()) << "nothing selects it";
  world.profile.args.spread.system_defaulting = false;
  EXPECT_EQ(world.scores("PodTopologySpread", world.pod("{}", "{app: web}")), Scores());
}

TEST(PodTopologySpread, AnEmptySelectorCountsNoPodIn136) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    world.run("one", "a1", "{}", "{app: web}").run("two", "a2", "{}", "{app: web}");
    const auto pod =
        world.pod("{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 1, labelSelector: {}}]}");
    EXPECT_EQ(world.verdict("a1", pod), era == Era::k120 ? kSkewed : "fits");
    EXPECT_EQ(world.verdict("b1", pod), "fits");
  }
}

}  // namespace
}  // namespace berth::placement::testing
