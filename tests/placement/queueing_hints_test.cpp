// What a plugin's hint says to an event (kube-scheduler's queueing hints).
#include <gtest/gtest.h>

#include "placement/events.h"
#include "placement/framework.h"

namespace berth::placement {
namespace {

using enum ClusterEvent;
using model::NodeView;

class Hints : public ::testing::Test {
 protected:
  bool says(std::string_view plugin, const PodInfoPtr& pending, const EventChange& change) {
    const auto made = find_plugin(plugin)->make(profile_);
    EXPECT_TRUE(made && (*made)->events_to_register().has(change.event))
        << plugin << " is not told of event " << static_cast<int>(change.event);
    return made && (*made)->queueing_hint(cluster_, *pending, change);
  }
  static PodInfoPtr pod(const std::string& name, const std::string& app, const std::string& spec = "", const std::string& ns = "default",
                        const std::string& cpu = "1") {
    auto document = json::parse_yaml(fmt::format(
        "metadata: {{name: {0}, namespace: {1}, uid: {0}, labels: {{app: {2}}}}}\nspec: {{containers: [{{name: c, resources: {{requests: "
        "{{cpu: \"{3}\"}}}}}}]{4}}}",
        name, ns, app, cpu, spec));
    return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*document)), Era::k136);
  }
  static NodeView node(const std::string& labels = "", const std::string& spec = "", const std::string& allocatable = "cpu: 4, pods: 110") {
    return NodeView::parse(*json::parse_yaml(fmt::format(
        "metadata: {{name: node-1, labels: {{{}}}}}\nspec: {{{}}}\nstatus: {{allocatable: {{{}}}}}", labels, spec, allocatable)));
  }
  static std::string affinity(const char* kind, const char* app) {
    return fmt::format(
        ", affinity: {{{}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: zone, labelSelector: {{matchLabels: {{app: "
        "{}}}}}}}]}}}}",
        kind, app);
  }
  static std::string spread(const char* app, const char* more = "") {
    return fmt::format(
        ", topologySpreadConstraints: [{{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: "
        "{{app: {}}}}}{}}}]",
        app, more);
  }
  static json::Value object(const std::string& yaml) { return *json::parse_yaml(yaml); }

  Cluster cluster_;
  Profile profile_ = default_profile(Era::k136);
};

TEST_F(Hints, ResourcesWaitForANodeThatIsBigEnough) {
  const auto pending = pod("p", "x", "", "default", "2");
  const NodeView small = node("", "", "cpu: 1, pods: 110"), big = node(), memory = node("", "", "cpu: 4, memory: 1Gi, pods: 110");
  EXPECT_FALSE(says("NodeResourcesFit", pending, {.event = kNodeAdded, .node = &small}));
  EXPECT_TRUE(says("NodeResourcesFit", pending, {.event = kNodeAdded, .node = &big}));
  EXPECT_TRUE(says("NodeResourcesFit", pending, {.event = kNodeAllocatable, .node_before = &small, .node = &big}));
  EXPECT_FALSE(says("NodeResourcesFit", pending, {.event = kNodeAllocatable, .node_before = &big, .node = &memory}));
  const NodeView more_pods = node("", "", "cpu: 4, pods: 111");
  EXPECT_TRUE(says("NodeResourcesFit", pending, {.event = kNodeAllocatable, .node_before = &big, .node = &more_pods}));
}

TEST_F(Hints, WhatSomebodyElseCountsNoNodeNeedsToHave) {
  profile_.args.fit.ignored_resources = {"example.com/licence"};
  profile_.args.fit.ignored_resource_groups = {"fpga.example.com"};
  const auto asks = [](const char* resource) {
    auto document =
        json::parse_yaml(fmt::format("metadata: {{name: p, namespace: default, uid: p}}\nspec: {{containers: [{{name: c, resources: "
                                     "{{requests: {{cpu: 2, {}: 1}}}}}}]}}",
                                     resource));
    return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*document)), Era::k136);
  };
  const NodeView big = node();
  EXPECT_TRUE(says("NodeResourcesFit", asks("example.com/licence"), {.event = kNodeAdded, .node = &big}));
  EXPECT_TRUE(says("NodeResourcesFit", asks("fpga.example.com/board"), {.event = kNodeAdded, .node = &big}));
  EXPECT_FALSE(says("NodeResourcesFit", asks("example.com/gpu"), {.event = kNodeAdded, .node = &big}));
}

TEST_F(Hints, APluginThatWaitsForNodesIsWokenByTheirTaintsToo) {
  const auto pending = pod("p", "x", "", "default", "2");
  const NodeView tainted = node("", "taints: [{key: k, effect: NoSchedule}]"), open = node();
  for (const auto* plugin : {"NodeResourcesFit", "NodeAffinity", "NodePorts", "InterPodAffinity", "VolumeBinding", "NodeName"})
    EXPECT_TRUE(says(plugin, pending, {.event = kNodeTaints, .node_before = &tainted, .node = &open})) << plugin;
}

TEST_F(Hints, ResourcesWaitForPodsThatLeaveOrShrinkInWhatIsAskedFor) {
  const auto pending = pod("p", "x"), big = pod("q", "x", "", "default", "3"), small = pod("q", "x", "", "default", "2");
  EXPECT_TRUE(says("NodeResourcesFit", pending, {.event = kAssignedPodDeleted, .pod_before = big.get()}));
  EXPECT_TRUE(says("NodeResourcesFit", pending, {.event = kAssignedPodResized, .pod_before = big.get(), .pod = small.get()}));
  EXPECT_FALSE(says("NodeResourcesFit", pending, {.event = kAssignedPodResized, .pod_before = small.get(), .pod = big.get()}));
}

TEST_F(Hints, NodeAffinityWaitsForANodeThatBeginsToMatch) {
  const auto pending = pod("p", "x", ", nodeSelector: {disk: ssd}");
  const NodeView none = node("disk: hdd"), ssd = node("disk: ssd"), other = node("disk: ssd, rack: r");
  EXPECT_FALSE(says("NodeAffinity", pending, {.event = kNodeAdded, .node = &none}));
  EXPECT_TRUE(says("NodeAffinity", pending, {.event = kNodeAdded, .node = &ssd}));
  EXPECT_TRUE(says("NodeAffinity", pending, {.event = kNodeLabels, .node_before = &none, .node = &ssd}));
  EXPECT_FALSE(says("NodeAffinity", pending, {.event = kNodeLabels, .node_before = &ssd, .node = &other}));
}

TEST_F(Hints, TaintsAndCordonsWaitForThemToGo) {
  const auto pending = pod("p", "x");
  const NodeView tainted = node("", "taints: [{key: k, effect: NoSchedule}]"),
                 soft = node("", "taints: [{key: k, effect: PreferNoSchedule}]");
  const NodeView cordoned = node("", "unschedulable: true"), open = node();
  EXPECT_TRUE(says("TaintToleration", pending, {.event = kNodeTaints, .node_before = &tainted, .node = &soft}));
  EXPECT_FALSE(says("TaintToleration", pending, {.event = kNodeTaints, .node_before = &soft, .node = &tainted}));
  EXPECT_FALSE(says("TaintToleration", pending, {.event = kNodeTaints, .node_before = &cordoned, .node = &open}));
  EXPECT_TRUE(says("NodeUnschedulable", pending, {.event = kNodeTaints, .node_before = &cordoned, .node = &open}));
  EXPECT_FALSE(says("NodeUnschedulable", pending, {.event = kNodeTaints, .node_before = &tainted, .node = &open}));
  EXPECT_TRUE(says("TaintToleration", pending, {.event = kOwnTolerations, .pod_before = pending.get(), .pod = pending.get()}));
  EXPECT_FALSE(says("NodeUnschedulable", pending, {.event = kOwnTolerations, .pod_before = pending.get(), .pod = pending.get()}));
  const auto tolerant = pod("p", "x", ", tolerations: [{operator: Exists}]");
  EXPECT_TRUE(says("NodeUnschedulable", tolerant, {.event = kOwnTolerations, .pod_before = pending.get(), .pod = tolerant.get()}));
}

TEST_F(Hints, PortsWaitForThePodThatHasThem) {
  const auto with_port = [](const std::string& name, int port) {
    auto document = json::parse_yaml(fmt::format(
        "metadata: {{name: {0}, namespace: default, uid: {0}}}\nspec: {{containers: [{{name: c, ports: [{{hostPort: {1}}}]}}]}}", name,
        port));
    return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*document)), Era::k136);
  };
  const auto pending = with_port("p", 80), same = with_port("q", 80), other = with_port("r", 81);
  EXPECT_TRUE(says("NodePorts", pending, {.event = kAssignedPodDeleted, .pod_before = same.get()}));
  EXPECT_FALSE(says("NodePorts", pending, {.event = kAssignedPodDeleted, .pod_before = other.get()}));
}

TEST_F(Hints, AffinityWaitsForThePodItWantsToBeNear) {
  const auto pending = pod("p", "x", affinity("podAffinity", "web"));
  const auto web = pod("w", "web"), other = pod("w", "other"), elsewhere = pod("w2", "web", "", "another-namespace");
  EXPECT_TRUE(says("InterPodAffinity", pending, {.event = kAssignedPodAdded, .pod = web.get()}));
  EXPECT_FALSE(says("InterPodAffinity", pending, {.event = kAssignedPodAdded, .pod = other.get()}));
  EXPECT_FALSE(says("InterPodAffinity", pending, {.event = kAssignedPodAdded, .pod = elsewhere.get()}));
  EXPECT_FALSE(says("InterPodAffinity", pending, {.event = kAssignedPodDeleted, .pod_before = other.get()}));
  EXPECT_TRUE(says("InterPodAffinity", pending, {.event = kAssignedPodLabels, .pod_before = other.get(), .pod = web.get()}));
  const NodeView nowhere = node(), here = node("zone: a"), there = node("zone: b");
  EXPECT_FALSE(says("InterPodAffinity", pending, {.event = kNodeAdded, .node = &nowhere}));
  EXPECT_TRUE(says("InterPodAffinity", pending, {.event = kNodeAdded, .node = &here}));
  EXPECT_TRUE(says("InterPodAffinity", pending, {.event = kNodeLabels, .node_before = &here, .node = &there}));
  EXPECT_FALSE(says("InterPodAffinity", pending, {.event = kNodeLabels, .node_before = &here, .node = &nowhere}));
}

TEST_F(Hints, AntiAffinityWaitsForTheOtherToGoOnEitherSide) {
  const auto pending = pod("p", "x", affinity("podAntiAffinity", "web"));
  const auto web = pod("w", "web"), other = pod("w", "other");
  EXPECT_TRUE(says("InterPodAffinity", pending, {.event = kAssignedPodDeleted, .pod_before = web.get()}));
  EXPECT_TRUE(says("InterPodAffinity", pending, {.event = kAssignedPodLabels, .pod_before = web.get(), .pod = other.get()}));
  EXPECT_FALSE(says("InterPodAffinity", pending, {.event = kAssignedPodAdded, .pod = web.get()}));
  EXPECT_FALSE(says("InterPodAffinity", pending, {.event = kAssignedPodDeleted, .pod_before = other.get()}));
  const auto shunned = pod("s", "web"), shunning = pod("h", "y", affinity("podAntiAffinity", "web"));
  EXPECT_TRUE(says("InterPodAffinity", shunned, {.event = kAssignedPodDeleted, .pod_before = shunning.get()}));
}

TEST_F(Hints, ANodeThatMovesFreesThoseWhomPodsThereKeepOff) {
  const auto shunned = pod("s", "web"), shunning = pod("h", "y", affinity("podAntiAffinity", "web") + ", nodeName: node-1");
  const NodeView here = node("zone: a"), there = node("zone: b");
  EXPECT_FALSE(says("InterPodAffinity", shunned, {.event = kNodeLabels, .node_before = &here, .node = &there}));
  cluster_.upsert_node(std::make_shared<NodeView>(here));
  cluster_.upsert_pod(shunning);
  EXPECT_TRUE(says("InterPodAffinity", shunned, {.event = kNodeLabels, .node_before = &here, .node = &there}));
}

TEST_F(Hints, SpreadLooksAtThePodsAndNodesThatItCounts) {
  const auto pending = pod("p", "web", spread("web"));
  const auto web = pod("w", "web"), other = pod("w", "other"), elsewhere = pod("e", "web", "", "another-namespace");
  EXPECT_TRUE(says("PodTopologySpread", pending, {.event = kAssignedPodDeleted, .pod_before = web.get()}));
  EXPECT_FALSE(says("PodTopologySpread", pending, {.event = kAssignedPodDeleted, .pod_before = other.get()}));
  EXPECT_FALSE(says("PodTopologySpread", pending, {.event = kAssignedPodDeleted, .pod_before = elsewhere.get()}));
  EXPECT_TRUE(says("PodTopologySpread", pending, {.event = kAssignedPodLabels, .pod_before = web.get(), .pod = other.get()}));
  EXPECT_FALSE(says("PodTopologySpread", pending, {.event = kAssignedPodLabels, .pod_before = web.get(), .pod = web.get()}));
  const NodeView nowhere = node(), here = node("zone: a"), there = node("zone: b"),
                 tainted = node("zone: a", "taints: [{key: k, effect: NoSchedule}]");
  EXPECT_FALSE(says("PodTopologySpread", pending, {.event = kNodeAdded, .node = &nowhere}));
  EXPECT_TRUE(says("PodTopologySpread", pending, {.event = kNodeAdded, .node = &here}));
  EXPECT_TRUE(says("PodTopologySpread", pending, {.event = kNodeDeleted, .node_before = &here}));
  EXPECT_FALSE(says("PodTopologySpread", pending, {.event = kNodeDeleted, .node_before = &nowhere}));
  EXPECT_TRUE(says("PodTopologySpread", pending, {.event = kNodeLabels, .node_before = &here, .node = &there}));
  EXPECT_FALSE(says("PodTopologySpread", pending, {.event = kNodeLabels, .node_before = &here, .node = &here}));
  EXPECT_TRUE(says("PodTopologySpread", pending, {.event = kNodeTaints, .node_before = &here, .node = &tainted}));
}

TEST_F(Hints, SpreadCountsTheNodesThatThePodSelects) {
  const std::string selects = ", nodeSelector: {disk: ssd}";
  const auto pending = pod("p", "web", spread("web") + selects),
             ignores = pod("p", "web", spread("web", ", nodeAffinityPolicy: Ignore") + selects);
  const NodeView ssd = node("zone: a, disk: ssd"), hdd = node("zone: a, disk: hdd"), other = node("zone: a, disk: hdd, rack: r");
  const auto wakes = [&](const PodInfoPtr& waiting, const NodeView& before, const NodeView& now) {
    return says("PodTopologySpread", waiting, {.event = kNodeLabels, .node_before = &before, .node = &now});
  };
  EXPECT_TRUE(wakes(pending, ssd, hdd)) << "a zone with none of it may count no longer";
  EXPECT_TRUE(wakes(pending, hdd, ssd));
  EXPECT_FALSE(wakes(pending, hdd, other));
  EXPECT_FALSE(wakes(ignores, ssd, hdd));
}

TEST_F(Hints, SpreadIsCuredByATolerationOnlyWhereItHonorsTaints) {
  const auto ignores = pod("p", "web", spread("web")), honors = pod("p", "web", spread("web", ", nodeTaintsPolicy: Honor"));
  EXPECT_FALSE(says("PodTopologySpread", ignores, {.event = kOwnTolerations, .pod_before = ignores.get(), .pod = ignores.get()}));
  EXPECT_TRUE(says("PodTopologySpread", honors, {.event = kOwnTolerations, .pod_before = honors.get(), .pod = honors.get()}));
}

TEST_F(Hints, VolumesWaitForTheirOwnClaims) {
  const auto pending = pod("p", "x", ", volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}]");
  const auto mine = object("metadata: {name: mine, namespace: default}"), other = object("metadata: {name: other, namespace: default}");
  const auto elsewhere = object("metadata: {name: mine, namespace: another}");
  for (const auto* plugin : {"VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"}) {
    EXPECT_TRUE(says(plugin, pending, {.event = kClaim, .object = &mine})) << plugin;
    EXPECT_FALSE(says(plugin, pending, {.event = kClaim, .object = &other})) << plugin;
    EXPECT_FALSE(says(plugin, pending, {.event = kClaim, .object = &elsewhere})) << plugin;
  }
  EXPECT_TRUE(says("VolumeBinding", pending, {.event = kClaim, .object_before = &mine, .object = &mine}));
  EXPECT_FALSE(says("VolumeRestrictions", pending, {.event = kClaim, .object_before = &mine, .object = &mine}));
  EXPECT_FALSE(says("NodeVolumeLimits", pending, {.event = kClaim, .object_before = &mine, .object = &mine}));
  EXPECT_TRUE(says("NodeVolumeLimits", pending, {.event = kVolumeAttachmentDeleted, .object_before = &other}));
  EXPECT_FALSE(says("NodeVolumeLimits", pod("q", "x"), {.event = kVolumeAttachmentDeleted, .object_before = &other}));
}

TEST_F(Hints, OfStorageOnlyWhatBecameMoreHelps) {
  const auto pending = pod("p", "x", ", volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}]");
  const auto little = object("metadata: {name: k}\ncapacity: 1Gi"), much = object("metadata: {name: k}\ncapacity: 2Gi");
  EXPECT_TRUE(says("VolumeBinding", pending, {.event = kCsiStorageCapacity, .object_before = &little, .object = &much}));
  EXPECT_FALSE(says("VolumeBinding", pending, {.event = kCsiStorageCapacity, .object_before = &much, .object = &little}));
  const auto one = object("spec: {drivers: [{name: d, allocatable: {count: 1}}]}"),
             two = object("spec: {drivers: [{name: d, allocatable: {count: 2}}]}");
  EXPECT_TRUE(says("NodeVolumeLimits", pending, {.event = kCsiNode, .object_before = &one, .object = &two}));
  EXPECT_FALSE(says("NodeVolumeLimits", pending, {.event = kCsiNode, .object_before = &two, .object = &one}));
  const auto unlimited = object("spec: {drivers: [{name: d}]}"), gone = object("spec: {drivers: []}");
  EXPECT_TRUE(says("NodeVolumeLimits", pending, {.event = kCsiNode, .object_before = &one, .object = &unlimited}));
  EXPECT_TRUE(says("NodeVolumeLimits", pending, {.event = kCsiNode, .object_before = &one, .object = &gone}));
  EXPECT_FALSE(says("NodeVolumeLimits", pending, {.event = kCsiNode, .object_before = &unlimited, .object = &one}));
  const auto tracks = object("spec: {storageCapacity: true}"), does_not = object("spec: {storageCapacity: false}");
  EXPECT_TRUE(says("VolumeBinding", pending, {.event = kCsiDriver, .object_before = &tracks, .object = &does_not}));
  EXPECT_TRUE(says("VolumeBinding", pending, {.event = kCsiDriver, .object_before = &tracks}));
  EXPECT_FALSE(says("VolumeBinding", pending, {.event = kCsiDriver, .object_before = &does_not, .object = &tracks}));
  EXPECT_FALSE(says("VolumeBinding", pending, {.event = kCsiDriver, .object = &does_not}));
  const auto plain = object("metadata: {name: c}"), late = object("metadata: {name: c}\nvolumeBindingMode: WaitForFirstConsumer");
  EXPECT_FALSE(says("VolumeZone", pending, {.event = kStorageClass, .object = &plain}));
  EXPECT_TRUE(says("VolumeZone", pending, {.event = kStorageClass, .object = &late}));
  EXPECT_TRUE(says("VolumeBinding", pending, {.event = kStorageClass, .object = &plain}));
  EXPECT_FALSE(says("VolumeBinding", pending, {.event = kStorageClass, .object_before = &plain, .object = &late}));
  const json::Value elsewhere =
      object("volumeBindingMode: Immediate\nallowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a]}]}]");
  EXPECT_TRUE(says("VolumeBinding", pending, {.event = kStorageClass, .object_before = &plain, .object = &elsewhere}))
      << "volumes may be made in other places now";
  const auto zone_a = object("metadata: {labels: {topology.kubernetes.io/zone: a}}"),
             zone_b = object("metadata: {labels: {topology.kubernetes.io/zone: b}}");
  EXPECT_TRUE(says("VolumeZone", pending, {.event = kPersistentVolume, .object_before = &zone_a, .object = &zone_b}));
  EXPECT_FALSE(says("VolumeZone", pending, {.event = kPersistentVolume, .object_before = &zone_a, .object = &zone_a}));
}

TEST_F(Hints, VolumesWaitForThePodThatHasThem) {
  const auto volumes = [](const char* list) { return fmt::format(", volumes: [{}]", list); };
  const auto pending =
      pod("p", "x",
          volumes("{name: v, persistentVolumeClaim: {claimName: mine}}, {name: e, emptyDir: {}}, {name: d, gcePersistentDisk: {pdName: "
                  "disk}}"));
  const auto leaves = [&](const char* list, const std::string& ns = "default") {
    const auto gone = pod("q", "x", volumes(list), ns);
    return says("VolumeRestrictions", pending, {.event = kAssignedPodDeleted, .pod_before = gone.get()});
  };
  EXPECT_TRUE(leaves("{name: v, persistentVolumeClaim: {claimName: mine}}"));
  EXPECT_FALSE(leaves("{name: v, persistentVolumeClaim: {claimName: other}}"));
  EXPECT_FALSE(leaves("{name: v, persistentVolumeClaim: {claimName: mine}}", "another")) << "of the same name elsewhere";
  EXPECT_TRUE(leaves("{name: v, gcePersistentDisk: {pdName: disk}}"));
  EXPECT_TRUE(leaves("{name: v, gcePersistentDisk: {pdName: disk}}", "another")) << "a disk is of no namespace";
  EXPECT_FALSE(leaves("{name: v, gcePersistentDisk: {pdName: other}}"));
  EXPECT_FALSE(leaves("{name: v, configMap: {name: disk}}, {name: w, hostPath: {path: /mine}}"));
  EXPECT_FALSE(leaves(""));
}

TEST_F(Hints, LabelsThatChangeWakeWhomTheChangeConcerns) {
  const auto near = pod("p", "x", affinity("podAffinity", "web")), off = pod("q", "x", affinity("podAntiAffinity", "web"));
  const auto web = pod("w", "web"), other = pod("w", "other"), third = pod("w", "third");
  const auto wakes = [&](const PodInfoPtr& pending, const PodInfoPtr& before, const PodInfoPtr& now) {
    return says("InterPodAffinity", pending, {.event = kAssignedPodLabels, .pod_before = before.get(), .pod = now.get()});
  };
  EXPECT_TRUE(wakes(near, other, web));
  EXPECT_TRUE(wakes(near, web, other)) << "the first of its group may go anywhere once the last has left it";
  EXPECT_FALSE(wakes(near, web, web));
  EXPECT_FALSE(wakes(near, other, third));
  EXPECT_TRUE(wakes(off, web, other));
  EXPECT_FALSE(wakes(off, web, web));
  EXPECT_FALSE(wakes(off, other, web));
  EXPECT_FALSE(wakes(off, other, third));
  const auto own = pod("w", "x", affinity("podAntiAffinity", "web"));
  EXPECT_TRUE(wakes(own, third, own)) << "its own labels are news to itself";
}

TEST_F(Hints, NamespacesWakeWhoSelectsThem) {
  const auto plain = pod("p", "x", affinity("podAffinity", "web"));
  const auto selecting = [](const char* kind) {
    return pod("p", "x",
               fmt::format(", affinity: {{{}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: zone, namespaceSelector: "
                           "{{matchLabels: {{team: a}}}}, labelSelector: {{}}}}]}}}}",
                           kind));
  };
  EXPECT_FALSE(says("InterPodAffinity", plain, {.event = kNamespaces}));
  EXPECT_TRUE(says("InterPodAffinity", selecting("podAffinity"), {.event = kNamespaces}));
  EXPECT_TRUE(says("InterPodAffinity", selecting("podAntiAffinity"), {.event = kNamespaces}));
}

TEST_F(Hints, NodeAffinityAsksOfEachNodeBothOfItsOwnAndOfTheProfiles) {
  profile_.args.added_affinity =
      model::NodeAffinity::parse(*json::parse_yaml("requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                                                   "[{matchExpressions: [{key: pool, operator: In, values: [a]}]}]}"));
  const auto pending = pod("p", "x", ", nodeSelector: {disk: ssd}");
  const NodeView disk = node("disk: ssd"), pool = node("pool: a"), both = node("disk: ssd, pool: a");
  EXPECT_FALSE(says("NodeAffinity", pending, {.event = kNodeAdded, .node = &disk}));
  EXPECT_FALSE(says("NodeAffinity", pending, {.event = kNodeAdded, .node = &pool}));
  EXPECT_TRUE(says("NodeAffinity", pending, {.event = kNodeAdded, .node = &both}));
  EXPECT_TRUE(says("NodeAffinity", pending, {.event = kNodeLabels, .node_before = &disk, .node = &both})) << "what the profile adds";
  EXPECT_TRUE(says("NodeAffinity", pending, {.event = kNodeLabels, .node_before = &pool, .node = &both}));
  EXPECT_FALSE(says("NodeAffinity", pending, {.event = kNodeLabels, .node_before = &both, .node = &both}));
}

}  // namespace
}  // namespace berth::placement
