// NodeAffinity: nodeSelector, required and preferred affinity, the profile's addedAffinity.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(NodeAffinity, SelectorAndRequiredTermsMustBothHold) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node, labels: {disk: ssd, gen: '7'}}}");
    const std::string refused = era == Era::k120
                                    ? "NodeAffinity UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity"
                                    : "NodeAffinity UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector";
    const auto required = [&](const std::string& terms) {
      return world.verdict(
          "node",
          world.pod("{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}}"));
    };
    EXPECT_EQ(world.verdict("node", world.pod("{nodeSelector: {disk: hdd}}")), refused);
    EXPECT_EQ(world.verdict("node", world.pod("{nodeSelector: {disk: ssd}}")), "fits");
    EXPECT_EQ(required("{matchExpressions: [{key: disk, operator: In, values: [ssd, nvme]}]}"), "fits");
    EXPECT_EQ(required("{matchExpressions: [{key: gen, operator: Gt, values: ['6']}, {key: gen, operator: Lt, values: ['8']}]}"), "fits");
    EXPECT_EQ(required("{matchExpressions: [{key: gen, operator: Gt, values: ['7']}]}"), refused);
    EXPECT_EQ(required("{matchExpressions: [{key: disk, operator: Gt, values: ['1']}]}"), refused) << "not a number";
    EXPECT_EQ(required("{matchExpressions: [{key: none, operator: NotIn, values: [x]}]}"), "fits");
    EXPECT_EQ(required("{matchExpressions: [{key: none, operator: Exists}]}, {matchExpressions: [{key: gen, operator: Exists}]}"), "fits")
        << "terms are ORed";
    EXPECT_EQ(required("{}"), refused) << "an empty term selects nothing";
  }
}

TEST(NodeAffinity, FieldsNarrowTheNodesIn136) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}}").add("{kind: Node, metadata: {name: m}}");
  const auto named = [&](const std::string& fields) {
    return world.pod("{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [" +
                     fields + "]}]}}}}");
  };
  EXPECT_EQ(world.verdict("node", named("{key: metadata.name, operator: In, values: [elsewhere]}")),
            " UnschedulableAndUnresolvable: node(s) didn't satisfy plugin(s) [NodeAffinity]");
  EXPECT_EQ(
      world.verdict("node",
                    named("{key: metadata.name, operator: In, values: [elsewhere]}, {key: metadata.name, operator: In, values: [node]}")),
      "prefilter NodeAffinity UnschedulableAndUnresolvable: pod affinity terms conflict");
  EXPECT_EQ(world.verdict("m", named("{key: metadata.name, operator: In, values: [m]}")), "fits");
  EXPECT_EQ(world.verdict("node", named("{key: metadata.name, operator: In, values: [m]}")), "not asked");
}

TEST(NodeAffinity, PreferencesAddUpByWeight) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: both, labels: {disk: ssd, zone: a}}}")
        .add("{kind: Node, metadata: {name: one, labels: {disk: ssd}}}")
        .add("{kind: Node, metadata: {name: none}}");
    const auto pod = world.pod(
        "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 10, preference: {matchExpressions: [{key: "
        "disk, operator: In, values: [ssd]}]}},"
        " {weight: 30, preference: {matchExpressions: [{key: zone, operator: Exists}]}}]}}}");
    const std::int64_t weight = era == Era::k120 ? 1 : 2;
    EXPECT_EQ(world.scores("NodeAffinity", pod), (Scores{{"both", 100 * weight}, {"one", 25 * weight}, {"none", 0}}));
  }
}

TEST(NodeAffinity, AddedAffinityIsEnforcedOnAllPods) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}}");
  model::NodeSelectorTerm term;
  term.expressions.push_back({"pool", model::Requirement::Op::kIn, {"web"}});
  world.profile.args.added_affinity = model::NodeAffinity{};
  world.profile.args.added_affinity->required = model::NodeSelector{{term}};
  EXPECT_EQ(world.verdict("node", world.pod("{}")),
            "NodeAffinity UnschedulableAndUnresolvable: node(s) didn't match scheduler-enforced node affinity");
  world.add("{kind: Node, metadata: {name: node, labels: {pool: web}}}");
  EXPECT_EQ(world.verdict("node", world.pod("{}")), "fits");
}

TEST(NodeAffinity, APreferenceThatCannotBeParsedIsAnErrorInTheReleasesWords) {
  const std::string spec =
      "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: "
      "[{key: disk, operator: Exists}]}}, {weight: 2, preference: {matchExpressions: [{key: a, operator: Gt, values: [x]}, {key: b, "
      "operator: Lt, values: ['1', '2']}]}}]}}}";
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: m}}").add("{kind: Node, metadata: {name: node}}");
    const auto errors = world.evaluate(world.pod(spec)).errors;
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors.front(),
              era == Era::k120
                  ? "running Score plugins: plugin \"NodeAffinity\" failed with: for 'Gt', 'Lt' operators, the value must be an integer"
                  : "running PreScore plugin \"NodeAffinity\": [[1].matchExpressions[0].values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
                    "operators, the value must be an integer, [1].matchExpressions[1].values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' "
                    "operators, exactly one value is required]");
  }
}

}  // namespace
}  // namespace berth::placement::testing
