// Who counts as moved already, and what lifts that.
#include "placement/moves.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "placement/relabelled.h"

namespace berth::placement {
namespace {

using namespace std::chrono_literals;

model::NodeView node(std::string_view extra) {
  auto parsed = json::parse_yaml(
      "kind: Node\nmetadata: {name: worker, labels: {pool: a}, annotations: {machine.openshift.io/machine: m/n}}\n" + std::string(extra));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return model::NodeView::parse(*parsed);
}
constexpr std::string_view kReady = "status: {conditions: [{type: Ready, status: 'True'}]}";
constexpr std::string_view kNotReady = "status: {conditions: [{type: Ready, status: 'Unknown'}]}";

TEST(Moves, ThePodThatComesForAnEvictedOneIsMovedUntilSomethingChanges) {
  Moves moves;
  EXPECT_FALSE(moves.came("first", "rs", TimePoint(1s))) << "nobody was evicted: it is news";
  moves.evicted("rs");
  EXPECT_TRUE(moves.came("second", "rs", TimePoint(5s)));
  EXPECT_FALSE(moves.came("third", "rs", TimePoint(6s))) << "one place was free";
  EXPECT_TRUE(moves.is_moved("second"));
  moves.changed(TimePoint(5s));
  EXPECT_TRUE(moves.is_moved("second")) << "what is not later than it is no news to it";
  moves.changed(TimePoint(6s));
  EXPECT_FALSE(moves.is_moved("second"));
}

TEST(Moves, WhatBindingCopiesFromTheNodeIsNoRelabelling) {
  const LabelPairs waits = {{"app", "web"}}, bound = {{"app", "web"}, {"topology.kubernetes.io/zone", "a"}}, other = {{"app", "api"}};
  EXPECT_FALSE(is_relabelled(waits, bound));
  EXPECT_TRUE(is_relabelled(bound, other));
}

TEST(Moves, OnlyAwaitedSuccessorsTakeAPlace) {
  Moves moves;
  moves.evicted("rs");
  EXPECT_TRUE(moves.wait_only_for({}));
  EXPECT_FALSE(moves.came("later", "rs", TimePoint(1s))) << "the controller was scaled down meanwhile";
}

TEST(Moves, NobodyComesForAPodWithoutAController) {
  Moves moves;
  moves.evicted("");
  EXPECT_FALSE(moves.wait_only_for({})) << "nobody was waited for";
  EXPECT_FALSE(moves.came("bare", "", TimePoint(1s)));
  moves.evicted("rs");
  moves.evicted("rs");
  moves.evicted("other");
  EXPECT_FALSE(moves.wait_only_for({"rs", "other"}));
  EXPECT_TRUE(moves.came("one", "rs", TimePoint(1s)));
  EXPECT_TRUE(moves.came("two", "rs", TimePoint(1s))) << "two were evicted";
  EXPECT_FALSE(moves.came("three", "rs", TimePoint(1s)));
  EXPECT_FALSE(moves.is_moved("three"));
  EXPECT_TRUE(moves.came("four", "other", TimePoint(1s)));
}

TEST(Moves, ANodeThatFailsOrIsRelabelledIsNews) {
  Moves moves;
  EXPECT_FALSE(moves.see_node(node(kReady))) << "the autoscaler's machines bring nodes";
  EXPECT_FALSE(moves.see_node(node(kReady)));
  EXPECT_TRUE(moves.see_node(node(kNotReady)));
  EXPECT_TRUE(moves.see_node(node(kReady)));
  EXPECT_TRUE(moves.see_node(node("spec: {taints: [{key: storm, effect: NoSchedule}]}\n" + std::string(kReady))));
  EXPECT_TRUE(moves.see_node(node("spec: {unschedulable: true}\n" + std::string(kReady))));
}

TEST(Moves, TaintsThatSayHowANodeIsAreNoSecondNews) {
  Moves moves;
  const auto tainted = [](const char* key, std::string_view status) {
    return node(std::string("spec: {taints: [{key: node.kubernetes.io/") + key + ", effect: NoExecute}]}\n" + std::string(status));
  };
  moves.see_node(node(kReady));
  EXPECT_TRUE(moves.see_node(node(kNotReady)));
  EXPECT_FALSE(moves.see_node(tainted("unreachable", kNotReady))) << "the node controller says it again, later";
  EXPECT_TRUE(moves.see_node(tainted("unreachable", kReady)));
  EXPECT_FALSE(moves.see_node(node(kReady)));
}

TEST(Moves, WhatTheAutoscalerDoesToItsNodesIsNot) {
  Moves moves;
  EXPECT_FALSE(moves.see_node(node(kNotReady)));
  EXPECT_FALSE(moves.see_node(node(kReady))) << "a new machine's node is ready for the first time";
  const std::string candidate = "spec: {taints: [{key: DeletionCandidateOfClusterAutoscaler, effect: PreferNoSchedule}]}\n";
  EXPECT_FALSE(moves.see_node(node(candidate + std::string(kReady))));
  const std::string leaving = "spec: {unschedulable: true, taints: [{key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule}]}\n";
  EXPECT_FALSE(moves.see_node(node(leaving + std::string(kReady))));
  EXPECT_FALSE(moves.node_gone("worker", true));
}

TEST(Moves, WhatNodePoolsDoToTheirNodesIsNoNews) {
  const auto of_pool = [](std::string_view more_labels, std::string_view extra) {
    auto parsed = json::parse_yaml("kind: Node\nmetadata: {name: bought, labels: {karpenter.sh/nodepool: general" +
                                   std::string(more_labels) + "}}\n" + std::string(extra));
    EXPECT_TRUE(parsed) << parsed.error().message;
    return model::NodeView::parse(*parsed);
  };
  Moves moves;
  EXPECT_FALSE(
      moves.see_node(of_pool("", "spec: {taints: [{key: karpenter.sh/unregistered, effect: NoExecute}]}\n" + std::string(kReady))));
  EXPECT_FALSE(moves.see_node(of_pool(", karpenter.sh/registered: 'true', karpenter.sh/initialized: 'true'", kReady)));
  EXPECT_TRUE(moves.see_node(of_pool(", karpenter.sh/registered: 'true', team: mine", kReady))) << "what somebody else does is";
  EXPECT_FALSE(moves.see_node(of_pool(", karpenter.sh/registered: 'true', team: mine",
                                      "spec: {taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]}\n" + std::string(kReady))));
  EXPECT_FALSE(moves.node_gone("bought", true)) << "it was on its way out";
}

TEST(Moves, AMachineThatIsTakenAwayIsNewsToWhoeverSeesEverything) {
  Moves moves;
  moves.see_node(node(kReady));
  EXPECT_TRUE(moves.node_gone("worker", true));
  moves.see_node(node(kReady));
  EXPECT_FALSE(moves.node_gone("worker", false)) << "the autoscaler may have drained it unseen";
  EXPECT_FALSE(moves.node_gone("other", true));
}

}  // namespace
}  // namespace berth::placement
