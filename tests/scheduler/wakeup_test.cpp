// Which events wake a pod that a plugin rejected (kube-scheduler's EventsToRegister and queueing hints).
#include "scheduler/wakeup.h"

#include <gtest/gtest.h>

#include "placement/plugin_of.h"

namespace berth::scheduler {
namespace {

using enum ClusterEvent;
using placement::PodInfo;
using placement::PodInfoPtr;

constexpr unsigned kEvents = static_cast<unsigned>(kCount);

std::set<ClusterEvent> woken_by(std::string_view plugin) {
  static const auto framework = *placement::Framework::create(placement::default_profile(placement::Era::k136));
  PluginBits bits;
  const PluginSet mine = bits.set_of(std::array{plugin}, *framework);
  std::set<ClusterEvent> out;
  for (unsigned i = 0; i < kEvents; ++i)
    if ((bits.cured_by(static_cast<ClusterEvent>(i)) & mine) != 0) out.insert(static_cast<ClusterEvent>(i));
  return out;
}

TEST(Wakeup, EachPluginNamesTheEventsThatCouldHelp) {
  using Set = std::set<ClusterEvent>;
  EXPECT_EQ(woken_by("NodeResourcesFit"),
            (Set{kNodeAdded, kNodeTaints, kNodeAllocatable, kAssignedPodResized, kAssignedPodDeleted, kOwnScaledDown, kDevices}));
  EXPECT_EQ(woken_by("NodePorts"), (Set{kNodeAdded, kNodeTaints, kAssignedPodDeleted}));
  EXPECT_EQ(woken_by("NodeName"), (Set{kNodeAdded, kNodeTaints}));
  EXPECT_EQ(woken_by("NodeAffinity"), (Set{kNodeAdded, kNodeTaints, kNodeLabels}));
  EXPECT_EQ(woken_by("NodeUnschedulable"), (Set{kNodeAdded, kNodeTaints, kOwnTolerations}));
  EXPECT_EQ(woken_by("TaintToleration"), (Set{kNodeAdded, kNodeTaints, kOwnTolerations}));
  EXPECT_EQ(woken_by("NodeDeclaredFeatures"), (Set{kNodeAdded, kNodeTaints, kNodeFeatures}));
  EXPECT_EQ(woken_by("InterPodAffinity"), (Set{kNodeAdded, kNodeTaints, kNodeLabels, kAssignedPodAdded, kAssignedPodLabels,
                                               kAssignedPodDeleted, kOwnLabels, kNamespaces}));
  EXPECT_EQ(woken_by("PodTopologySpread"), (Set{kNodeAdded, kNodeLabels, kNodeTaints, kNodeDeleted, kAssignedPodAdded, kAssignedPodLabels,
                                                kAssignedPodDeleted, kOwnLabels, kOwnTolerations}));
  EXPECT_EQ(woken_by("VolumeBinding"), (Set{kNodeAdded, kNodeTaints, kNodeLabels, kPersistentVolume, kClaim, kStorageClass, kCsiNode,
                                            kCsiDriver, kCsiStorageCapacity}));
  EXPECT_EQ(woken_by("VolumeZone"), (Set{kNodeAdded, kNodeTaints, kNodeLabels, kPersistentVolume, kClaim, kStorageClass}));
  EXPECT_EQ(woken_by("VolumeRestrictions"), (Set{kNodeAdded, kNodeTaints, kAssignedPodDeleted, kClaim}));
  EXPECT_EQ(woken_by("NodeVolumeLimits"), (Set{kAssignedPodDeleted, kClaim, kCsiNode, kVolumeAttachmentDeleted}));
  EXPECT_EQ(woken_by("DisruptionBudgets"), (Set{kDisruptionBudget}));
}

TEST(Wakeup, APluginNobodyKnowsIsWokenByEverythingButBudgets) {
  EXPECT_EQ(woken_by("SomebodysOwn").size(), kEvents - 2);
  EXPECT_FALSE(woken_by("SomebodysOwn").contains(kNodeCordoned));
  EXPECT_FALSE(woken_by("SomebodysOwn").contains(kDisruptionBudget));
}

TEST(Wakeup, ANodesHeartbeatIsNoChange) {
  const auto node = [](std::string_view extra) {
    auto document = json::parse_yaml(
        fmt::format("metadata: {{name: node-n, labels: {{a: b}}}}\nspec: {{}}\nstatus: {{allocatable: {{cpu: 4}}, conditions: "
                    "[{{type: Ready, status: \"True\", lastHeartbeatTime: {}}}]}}",
                    extra));
    return model::NodeView::parse(*document);
  };
  EXPECT_TRUE(node_changes(node("\"2026-01-01T00:00:00Z\""), node("\"2026-01-01T00:00:10Z\"")).empty());
  auto cordoned = node("x");
  cordoned.unschedulable = true;
  EXPECT_FALSE(node_changes(node("x"), cordoned).has(kNodeTaints));
  EXPECT_TRUE(node_changes(node("x"), cordoned).has(kNodeCordoned));
  EXPECT_TRUE(node_changes(cordoned, node("x")).has(kNodeTaints));
  EXPECT_FALSE(node_changes(node("x"), cordoned).has(kNodeLabels));
  auto bigger = node("x");
  bigger.allocatable = {};
  EXPECT_TRUE(node_changes(node("x"), bigger).has(kNodeAllocatable));
}

PodInfoPtr pod(const std::string& name, const std::string& app, const std::string& spec = "containers: [{name: c}]",
               const std::string& ns = "default") {
  auto document = json::parse_yaml(
      fmt::format("metadata: {{name: {}, namespace: {}, uid: {}, labels: {{app: {}}}}}\nspec: {{{}}}", name, ns, name, app, spec));
  return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*document)), placement::Era::k136);
}
TEST(Wakeup, OfThePodsOwnChangesOnlySomeMatter) {
  const auto before = pod("p", "web");
  EXPECT_TRUE(own_changes(*before, *pod("p", "web")).empty());
  EXPECT_TRUE(own_changes(*before, *pod("p", "api")).has(kOwnLabels));
  EXPECT_TRUE(own_changes(*before, *pod("p", "web", "tolerations: [{operator: Exists}]")).has(kOwnTolerations));
  auto view = std::make_shared<model::PodView>(before->view());
  view->meta.annotations = {{"a", "b"}};
  EXPECT_TRUE(own_changes(*before, *PodInfo::make(view, placement::Era::k136)).has(kOwnOther));
  view = std::make_shared<model::PodView>(before->view());
  view->meta.owner_references = {{"apps/v1", "ReplicaSet", "rs", "u", true}};
  EXPECT_TRUE(own_changes(*before, *PodInfo::make(view, placement::Era::k136)).has(kOwnOther));
}

TEST(Wakeup, LessOfAnyResourceIsScaledDown) {
  const auto asking = [](const std::string& requests) {
    return pod("p", "web", "containers: [{name: c, resources: {requests: {" + requests + "}}}]");
  };
  const auto before = asking("cpu: '2', memory: 2Gi, ephemeral-storage: 2Gi, example.com/gpu: '2'");
  EXPECT_FALSE(is_scaled_down(*before, *before));
  for (const char* less : {"cpu: '1', memory: 2Gi, ephemeral-storage: 2Gi, example.com/gpu: '2'",
                           "cpu: '2', memory: 1Gi, ephemeral-storage: 2Gi, example.com/gpu: '2'",
                           "cpu: '2', memory: 2Gi, ephemeral-storage: 1Gi, example.com/gpu: '2'",
                           "cpu: '2', memory: 2Gi, ephemeral-storage: 2Gi, example.com/gpu: '1'"}) {
    EXPECT_TRUE(is_scaled_down(*before, *asking(less))) << less;
    EXPECT_FALSE(is_scaled_down(*asking(less), *before)) << less;
  }
}

/// Registers for what its arguments say.
class Choosy final : public placement::PluginOf<Choosy> {
 public:
  explicit Choosy(placement::EventSet events) : events_(events) {}
  std::string_view name() const override { return "Choosy"; }
  placement::Status filter(const placement::CycleState&, const PodInfo&, const placement::NodeInfo&) const override {
    return placement::Status::unschedulable("no");
  }
  [[nodiscard]] placement::EventSet events_to_register() const override { return events_; }

 private:
  placement::EventSet events_;
};

TEST(Wakeup, EachProfilesPluginRegistersForItself) {
  const placement::PluginRegistration choosy = {"Choosy", [](const placement::Profile& profile) -> Result<placement::PluginPtr> {
                                                  const bool is_first = profile.scheduler_name == "first";
                                                  return std::make_unique<Choosy>(is_first ? kNodeAdded : kServices);
                                                }};
  const auto framework = [&](const std::string& name) {
    placement::Profile profile = placement::default_profile(placement::Era::k136);
    profile.scheduler_name = name;
    profile.filter.push_back({"Choosy", 0});
    return *placement::Framework::create(profile, std::span(&choosy, 1));
  };
  const auto first = framework("first"), second = framework("second");
  PluginBits bits;
  const PluginSet mine = bits.set_of(std::array<std::string_view, 1>{"Choosy"}, *first);
  ASSERT_EQ(bits.set_of(std::array<std::string_view, 1>{"Choosy"}, *second), mine);
  EXPECT_EQ(bits.cured_by(kServices) & mine, mine) << "of the second profile's";
  const placement::Cluster cluster;
  const auto waits = pod("p", "web");
  const auto helps = [&](const auto& of, ClusterEvent event) { return bits.any_hint(mine, *of, cluster, *waits, {.event = event}); };
  EXPECT_TRUE(helps(first, kNodeAdded));
  EXPECT_FALSE(helps(first, kServices));
  EXPECT_TRUE(helps(second, kServices));
  EXPECT_FALSE(helps(second, kNodeAdded));
}

TEST(Wakeup, EventsAreNamedAsInKubeSchedulersMetrics) {
  EXPECT_EQ(event_label(kNodeTaints), "NodeUpdateNodeTaint");
  EXPECT_EQ(event_label(kAssignedPodDeleted), "AssignedPodDelete");
  EXPECT_EQ(event_label(kOwnLabels), "UnschedulablePodUpdatePodLabel");
  EXPECT_EQ(event_label(kClaim, "PersistentVolumeClaim", ObjectVerb::kAdded), "PersistentVolumeClaimAdd");
  EXPECT_EQ(event_label(kCsiNode, "CSINode", ObjectVerb::kUpdated), "storage.k8s.io/CSINodeUpdate");
}

}  // namespace
}  // namespace berth::scheduler
