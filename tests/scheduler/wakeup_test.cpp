// Which events wake a pod that a plugin rejected (kube-scheduler's EventsToRegister and queueing hints).
#include "scheduler/wakeup.h"

#include <gtest/gtest.h>

namespace berth::scheduler {
namespace {

using enum ClusterEvent;
using placement::PodInfo;
using placement::PodInfoPtr;

constexpr unsigned kEvents = static_cast<unsigned>(kCount);

std::set<ClusterEvent> woken_by(std::string_view plugin) {
  PluginBits bits;
  const PluginSet mine = bits.set_of(std::array{plugin});
  std::set<ClusterEvent> out;
  for (unsigned i = 0; i < kEvents; ++i)
    if ((bits.cured_by(static_cast<ClusterEvent>(i)) & mine) != 0) out.insert(static_cast<ClusterEvent>(i));
  return out;
}

TEST(Wakeup, EachPluginNamesTheEventsThatCouldHelp) {
  using Set = std::set<ClusterEvent>;
  EXPECT_EQ(woken_by("NodeResourcesFit"), (Set{kNodeAdded, kNodeAllocatable, kAssignedPodResized, kAssignedPodDeleted, kOwnScaledDown}));
  EXPECT_EQ(woken_by("NodePorts"), (Set{kNodeAdded, kAssignedPodDeleted}));
  EXPECT_EQ(woken_by("NodeName"), (Set{kNodeAdded}));
  EXPECT_EQ(woken_by("NodeAffinity"), (Set{kNodeAdded, kNodeLabels}));
  EXPECT_EQ(woken_by("NodeUnschedulable"), (Set{kNodeAdded, kNodeTaints, kOwnTolerations}));
  EXPECT_EQ(woken_by("TaintToleration"), (Set{kNodeAdded, kNodeTaints, kOwnTolerations}));
  EXPECT_EQ(woken_by("InterPodAffinity"),
            (Set{kNodeAdded, kNodeLabels, kAssignedPodAdded, kAssignedPodLabels, kAssignedPodDeleted, kOwnLabels, kNamespaces}));
  EXPECT_EQ(woken_by("PodTopologySpread"), (Set{kNodeAdded, kNodeLabels, kNodeTaints, kNodeDeleted, kAssignedPodAdded, kAssignedPodLabels,
                                                kAssignedPodDeleted, kOwnLabels}));
  EXPECT_EQ(woken_by("VolumeBinding"),
            (Set{kNodeAdded, kNodeLabels, kPersistentVolume, kClaim, kStorageClass, kCsiNode, kCsiDriver, kCsiStorageCapacity}));
  EXPECT_EQ(woken_by("VolumeZone"), (Set{kNodeAdded, kNodeLabels, kPersistentVolume, kClaim, kStorageClass}));
  EXPECT_EQ(woken_by("VolumeRestrictions"), (Set{kNodeAdded, kAssignedPodDeleted, kClaim}));
  EXPECT_EQ(woken_by("NodeVolumeLimits"), (Set{kNodeAdded, kAssignedPodDeleted, kClaim, kCsiNode}));
  EXPECT_EQ(woken_by("DisruptionBudgets"), (Set{kDisruptionBudget}));
}

TEST(Wakeup, APluginNobodyKnowsIsWokenByEverythingButBudgets) {
  EXPECT_EQ(woken_by("SomebodysOwn").size(), kEvents - 1);
  EXPECT_FALSE(woken_by("SomebodysOwn").contains(kDisruptionBudget));
}

TEST(Wakeup, ANodesHeartbeatIsNoChange) {
  const auto node = [](std::string_view extra) {
    auto document =
        json::parse_yaml(fmt::format("metadata: {{name: n, labels: {{a: b}}}}\nspec: {{}}\nstatus: {{allocatable: {{cpu: 4}}, conditions: "
                                     "[{{type: Ready, status: \"True\", lastHeartbeatTime: {}}}]}}",
                                     extra));
    return model::NodeView::parse(*document);
  };
  EXPECT_TRUE(node_changes(node("\"2026-01-01T00:00:00Z\""), node("\"2026-01-01T00:00:10Z\"")).empty());
  auto cordoned = node("x");
  cordoned.unschedulable = true;
  EXPECT_TRUE(node_changes(node("x"), cordoned).has(kNodeTaints));
  EXPECT_FALSE(node_changes(node("x"), cordoned).has(kNodeLabels));
  auto bigger = node("x");
  bigger.allocatable = {};
  EXPECT_TRUE(node_changes(node("x"), bigger).has(kNodeAllocatable));
}

PodInfoPtr pod(const std::string& name, const std::string& app, const std::string& spec = "", const std::string& ns = "default") {
  auto document = json::parse_yaml(
      fmt::format("metadata: {{name: {}, namespace: {}, uid: {}, labels: {{app: {}}}}}\nspec: {{containers: [{{name: c}}]{}}}", name, ns,
                  name, app, spec));
  return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*document)), placement::Era::k136);
}
std::string affinity(const char* kind, const char* app) {
  return fmt::format(
      ", affinity: {{{}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: zone, labelSelector: {{matchLabels: {{app: "
      "{}}}}}}}]}}}}",
      kind, app);
}

TEST(Wakeup, AffinityWaitsForThePodItWantsToBeNear) {
  placement::Cluster cluster;
  const auto pending = pod("p", "x", affinity("podAffinity", "web"));
  const auto web = pod("w", "web"), other = pod("o", "other");
  EXPECT_TRUE(affinity_may_help(cluster, *pending, {kAssignedPodAdded, web.get()}));
  EXPECT_FALSE(affinity_may_help(cluster, *pending, {kAssignedPodAdded, other.get()}));
  EXPECT_FALSE(affinity_may_help(cluster, *pending, {kAssignedPodDeleted, other.get()}));
  EXPECT_TRUE(affinity_may_help(cluster, *pending, {kAssignedPodLabels, web.get(), other.get()}));
  const auto elsewhere = pod("w2", "web", "", "another-namespace");
  EXPECT_FALSE(affinity_may_help(cluster, *pending, {kAssignedPodAdded, elsewhere.get()}));
}

TEST(Wakeup, AntiAffinityWaitsForTheOtherToGoOnEitherSide) {
  placement::Cluster cluster;
  const auto pending = pod("p", "x", affinity("podAntiAffinity", "web"));
  const auto web = pod("w", "web"), other = pod("o", "other");
  EXPECT_TRUE(affinity_may_help(cluster, *pending, {kAssignedPodDeleted, web.get()}));
  EXPECT_FALSE(affinity_may_help(cluster, *pending, {kAssignedPodAdded, web.get()}));
  EXPECT_FALSE(affinity_may_help(cluster, *pending, {kAssignedPodDeleted, other.get()}));
  const auto shunned = pod("s", "web"), shunning = pod("h", "y", affinity("podAntiAffinity", "web"));
  EXPECT_TRUE(affinity_may_help(cluster, *shunned, {kAssignedPodDeleted, shunning.get()}));
}

TEST(Wakeup, SpreadLooksAtThePodsThatItCounts) {
  const auto pending = pod("p", "web",
                           ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: "
                           "{matchLabels: {app: web}}}]");
  const auto web = pod("w", "web"), other = pod("o", "other"), elsewhere = pod("e", "web", "", "another-namespace");
  EXPECT_TRUE(spread_may_help(*pending, {kAssignedPodDeleted, web.get()}));
  EXPECT_FALSE(spread_may_help(*pending, {kAssignedPodDeleted, other.get()}));
  EXPECT_FALSE(spread_may_help(*pending, {kAssignedPodDeleted, elsewhere.get()}));
  EXPECT_TRUE(spread_may_help(*pending, {kAssignedPodLabels, other.get(), web.get()}));
  const auto by_default = pod("d", "web");
  EXPECT_TRUE(spread_may_help(*by_default, {kAssignedPodDeleted, web.get()}));
}

TEST(Wakeup, OfThePodsOwnChangesOnlySomeMatter) {
  const auto before = pod("p", "web");
  EXPECT_TRUE(own_changes(*before, *pod("p", "web")).empty());
  EXPECT_TRUE(own_changes(*before, *pod("p", "api")).has(kOwnLabels));
  EXPECT_TRUE(own_changes(*before, *pod("p", "web", ", tolerations: [{operator: Exists}]")).has(kOwnTolerations));
}

}  // namespace
}  // namespace berth::scheduler
