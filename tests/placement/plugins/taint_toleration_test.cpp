// TaintToleration: untolerated taints reject, PreferNoSchedule ones cost score.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(TaintToleration, NamesTheTaintIn120) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add(
        "{kind: Node, metadata: {name: node}, spec: {taints: [{key: dedicated, value: a, effect: NoExecute}, {key: spot, effect: "
        "NoSchedule}]}}");
    const std::string first =
        era == Era::k120 ? "TaintToleration UnschedulableAndUnresolvable: node(s) had taint {dedicated: a}, that the pod didn't tolerate"
                         : "TaintToleration UnschedulableAndUnresolvable: node(s) had untolerated taint(s)";
    EXPECT_EQ(world.verdict("node", world.pod("{}")), first);
    // All of them must be tolerated.
    const std::string second =
        era == Era::k120 ? "TaintToleration UnschedulableAndUnresolvable: node(s) had taint {spot: }, that the pod didn't tolerate" : first;
    EXPECT_EQ(world.verdict("node", world.pod("{tolerations: [{key: dedicated, value: a}]}")), second);
    EXPECT_EQ(world.verdict("node", world.pod("{tolerations: [{key: dedicated, value: a}, {key: spot, operator: Exists}]}")), "fits");
    EXPECT_EQ(world.verdict("node", world.pod("{tolerations: [{key: dedicated, value: b}, {key: spot, operator: Exists}]}")), first);
    EXPECT_EQ(world.verdict("node", world.pod("{tolerations: [{operator: Exists}]}")), "fits");
  }
}

TEST(TaintToleration, SoftTaintsCostScore) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: clean}}");
    world.add("{kind: Node, metadata: {name: one}, spec: {taints: [{key: a, effect: PreferNoSchedule}]}}");
    world.add(
        "{kind: Node, metadata: {name: two}, spec: {taints: [{key: a, effect: PreferNoSchedule}, {key: b, effect: PreferNoSchedule}]}}");
    const std::int64_t weight = era == Era::k120 ? 1 : 3;
    EXPECT_EQ(world.scores("TaintToleration", world.pod("{}")), (Scores{{"clean", 100 * weight}, {"one", 50 * weight}, {"two", 0}}));
    // A toleration for another effect does not count.
    EXPECT_EQ(
        world.scores(
            "TaintToleration",
            world.pod(
                "{tolerations: [{key: b, operator: Exists, effect: PreferNoSchedule}, {key: a, operator: Exists, effect: NoSchedule}]}")),
        (Scores{{"clean", 100 * weight}, {"one", 0}, {"two", 0}}));
  }
}

}  // namespace
}  // namespace berth::placement::testing
