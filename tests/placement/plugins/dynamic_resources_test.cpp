// DynamicResources: which nodes can give a pod the devices of its claims, and what it says of those that cannot.
#include <gtest/gtest.h>

#include <random>

#include "placement/lacks.h"
#include "placement/preemption.h"
#include "placement/preemptor.h"
#include "placement/trial.h"
#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

struct Devices : PluginWorld {
  Devices() : PluginWorld(Era::k136) {
    for (const char* name : {"a", "b"}) add(fmt::format("{{kind: Node, metadata: {{name: {}}}}}", name));
    add("{kind: DeviceClass, metadata: {name: gpu}, spec: {}}");
  }
  /// A slice of one node: the devices in YAML.
  Devices& slice(const std::string& node, const std::string& devices, int slices = 1, int generation = 0) {
    add(fmt::format(
        "{{kind: ResourceSlice, metadata: {{name: s-{0}-{3}}}, spec: {{driver: d.example.com, nodeName: {0}, pool: {{name: {0}, "
        "generation: {3}, resourceSliceCount: {2}}}, devices: {1}}}}}",
        node, devices, slices, generation));
    return *this;
  }
  Devices& claim(const std::string& name, const std::string& requests, const std::string& more = "") {
    add(fmt::format(
        "{{kind: ResourceClaim, metadata: {{name: {0}, namespace: default, uid: u-{0}}}, spec: {{devices: {{requests: {1}{2}}}}}}}", name,
        requests, more));
    return *this;
  }
  [[nodiscard]] PodInfoPtr user(const std::string& claim, const std::string& name = "pod") const {
    return pod(fmt::format("{{resourceClaims: [{{name: c, resourceClaimName: {}}}]}}", claim), "{}", name);
  }
  /// Reserves for the pod on the node and says which devices each claim got: "claim=device,device …"
  std::string reserve(const PodInfoPtr& of, const std::string& node) {
    const auto framework = *Framework::create(profile);
    auto state = framework->new_cycle(cluster);
    const NodeInfo& on = *cluster.find_node(node);
    if (!framework->run_pre_filter(state, *of).status.is_success()) return "prefilter";
    if (!framework->run_filter(state, *of, on).is_success()) return "filter";
    if (!framework->run_reserve(state, *of, on, cluster).is_success()) return "reserve";
    std::string out;
    const auto writes = framework->run_pre_bind(state, *of, on);
    for (const auto& write : *writes) {
      out += (out.empty() ? "" : " ") + write.name + "=";
      for (std::size_t i = 0; write.allocation != nullptr && i < write.allocation->devices.size(); ++i)
        out += (i == 0 ? "" : ",") + write.allocation->devices[i].device;
    }
    if (fails_later) framework->run_unreserve(state, *of, on, cluster);
    return out;
  }
  bool fails_later = false;
};

constexpr const char* kOne = "[{name: r, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]";
constexpr const char* kTwo = "[{name: r, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 2}}]";
constexpr const char* kAll = "[{name: r, exactly: {deviceClassName: gpu, allocationMode: All}}]";
constexpr std::string_view kNo = "DynamicResources UnschedulableAndUnresolvable: cannot allocate all claims";

TEST(DynamicResources, DevicesAreWhereTheyAre) {
  Devices world;
  world.slice("a", "[{name: g0}]").claim("one", kOne).claim("two", kTwo);
  EXPECT_EQ(world.verdict("a", world.user("one")), "fits");
  EXPECT_EQ(world.verdict("b", world.user("one")), kNo);
  EXPECT_EQ(world.verdict("a", world.user("two")), kNo);
}

TEST(DynamicResources, WhatIsWrongWithClaimsIsSaid) {
  Devices world;
  world.claim("odd", "[{name: r, exactly: {deviceClassName: none, allocationMode: ExactCount, count: 1}}]");
  EXPECT_EQ(world.verdict("a", world.user("odd")),
            "prefilter DynamicResources UnschedulableAndUnresolvable: request r: device class none does not exist");
  const auto framework = *Framework::create(world.profile);
  EXPECT_EQ(framework->run_pre_enqueue(world.user("nowhere")->view(), &world.cluster).message(),
            "resourceclaim.resource.k8s.io \"nowhere\" not found");
  const auto templated = world.pod("{resourceClaims: [{name: c, resourceClaimTemplateName: t}]}");
  EXPECT_EQ(framework->run_pre_enqueue(templated->view(), &world.cluster).message(), "pod \"default/pod\": ResourceClaim not created yet");
}

/// Devices that are reached from everywhere, from the nodes of a selector, from one node.
TEST(DynamicResources, AllocatedClaimsAreUsedWhereTheirDevicesAreReached) {
  Devices world;
  world.add("{kind: Node, metadata: {name: c, labels: {rack: r1}}}");
  const auto allocated = [&](const std::string& name, const std::string& selector) {
    world.add(fmt::format(
        "{{kind: ResourceClaim, metadata: {{name: {0}, namespace: default, uid: u-{0}}}, spec: {{devices: {{requests: {1}}}}}, status: "
        "{{allocation: {{devices: {{results: [{{request: r, driver: d.example.com, pool: p, device: g0}}]}}{2}}}}}}}",
        name, kOne, selector));
  };
  allocated("everywhere", "");
  allocated("rack", ", nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [r1]}]}]}");
  allocated("node", ", nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}");
  allocated("nowhere", ", nodeSelector: {nodeSelectorTerms: []}");
  const auto reached_from = [&](const char* claim) {
    std::string out;
    for (const char* node : {"a", "b", "c"}) out += world.verdict(node, world.user(claim)) == "fits" ? node : "-";
    return out;
  };
  EXPECT_EQ(reached_from("everywhere"), "abc");
  EXPECT_EQ(reached_from("rack"), "--c");
  EXPECT_EQ(reached_from("node"), "a--");
  EXPECT_EQ(reached_from("nowhere"), "---");
}

TEST(DynamicResources, ADeviceIsGivenOnce) {
  Devices world;
  world.slice("a", "[{name: g0}, {name: g1}, {name: g2}]").claim("one", kOne).claim("two", kTwo).claim("more", kOne);
  EXPECT_EQ(world.reserve(world.user("one"), "a"), "one=g0");
  EXPECT_EQ(world.reserve(world.user("two"), "a"), "two=g1,g2");
  EXPECT_EQ(world.verdict("a", world.user("more")), kNo);
  EXPECT_EQ(world.verdict("a", world.user("one")),
            "prefilter DynamicResources UnschedulableAndUnresolvable: resource claim default/one is in the process of being allocated");
}

TEST(DynamicResources, AFailedBindingGivesTheDevicesBack) {
  Devices world;
  world.slice("a", "[{name: g0}]").claim("one", kOne).claim("other", kOne);
  world.fails_later = true;
  EXPECT_EQ(world.reserve(world.user("one"), "a"), "one=g0");
  EXPECT_EQ(world.verdict("a", world.user("other")), "fits");
}

TEST(DynamicResources, PodsOfAGroupShareWhatOneOfThemIsAboutToGet) {
  Devices world;
  world.slice("a", "[{name: g0}]").slice("b", "[{name: g0}]").claim("one", kOne).claim("other", kTwo);
  const auto member = [&](const char* name, const char* group) {
    return world.pod(fmt::format("{{schedulingGroup: {{podGroupName: {}}}, resourceClaims: [{{name: c, resourceClaimName: one}}]}}", group),
                     "{}", name);
  };
  const auto framework = *Framework::create(world.profile);
  const NodeInfo& node = *world.cluster.find_node("a");
  const auto hold = [&](const PodInfoPtr& of) {
    auto state = framework->new_cycle(world.cluster);
    EXPECT_TRUE(framework->run_pre_filter(state, *of).status.is_success());
    EXPECT_TRUE(framework->run_filter(state, *of, node).is_success());
    EXPECT_TRUE(framework->run_reserve(state, *of, node, world.cluster).is_success());
    return state;
  };
  const auto first = member("first", "g"), second = member("second", "g");
  auto of_first = hold(first);
  EXPECT_EQ(world.verdict("b", second), "DynamicResources UnschedulableAndUnresolvable: resourceclaim not available on the node");
  EXPECT_EQ(world.verdict("a", member("stranger", "h")),
            "prefilter DynamicResources UnschedulableAndUnresolvable: resource claim default/one is in the process of being allocated");
  auto of_second = hold(second);
  const auto writes = *framework->run_pre_bind(of_second, *second, node);
  ASSERT_EQ(writes.size(), 1U);
  ASSERT_NE(writes[0].allocation, nullptr) << "whoever is first writes it";
  EXPECT_EQ(writes[0].allocation->devices.at(0).device, "g0");
  // The one that it was decided for fails: the other one still counts on it.
  framework->run_unreserve(of_first, *first, node, world.cluster);
  EXPECT_EQ(world.cluster.pending_allocations().size(), 1U);
  framework->run_unreserve(of_second, *second, node, world.cluster);
  EXPECT_TRUE(world.cluster.pending_allocations().empty());
}

TEST(DynamicResources, AClaimThatWasMadeForItsGroupIsAPodsOwn) {
  Devices world;
  world.slice("a", "[{name: g0}]");
  world.add(
      "{kind: ResourceClaim, metadata: {name: made, namespace: default, uid: u, ownerReferences: [{apiVersion: scheduling.k8s.io/v1alpha2, "
      "kind: PodGroup, name: g, uid: group, controller: true}]}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, "
      "allocationMode: ExactCount, count: 1}}]}}}");
  const auto user = [&](const char* group) {
    const auto plain = world.pod(
        fmt::format("{{schedulingGroup: {{podGroupName: {}}}, resourceClaims: [{{name: c, resourceClaimTemplateName: t}}]}}", group));
    auto view = std::make_shared<model::PodView>(plain->view());
    view->resource_claims.change_at(0, [](model::PodResourceClaim& claim) {
      claim.has_status = true;
      claim.made_name = "made";
    });
    return PodInfo::make(std::move(view), world.cluster.era());
  };
  EXPECT_EQ(world.verdict("a", user("g")), "fits");
  EXPECT_EQ(
      world.verdict("a", user("h")),
      "prefilter DynamicResources UnschedulableAndUnresolvable: ResourceClaim default/made was not created for Pod default/pod (Pod is "
      "not owner)");
}

TEST(DynamicResources, AnAllocatedClaimBindsItsUsersToItsNode) {
  Devices world;
  world.slice("a", "[{name: g0}]");
  world.add(
      "{kind: ResourceClaim, metadata: {name: one, namespace: default, uid: u}, spec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: gpu}}]}}, status: {allocation: {devices: {results: [{request: r, driver: d.example.com, pool: a, device: "
      "g0}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}}}}");
  EXPECT_EQ(world.verdict("a", world.user("one")), "fits");
  EXPECT_EQ(world.verdict("b", world.user("one")),
            "DynamicResources UnschedulableAndUnresolvable: resourceclaim not available on the node");
}

TEST(DynamicResources, APoolThatIsBeingPublishedWaits) {
  Devices world;
  world.slice("a", "[{name: g0}]", 2).claim("one", kOne).claim("all", kAll);
  EXPECT_EQ(world.verdict("a", world.user("one")), kNo);
  EXPECT_EQ(world.verdict("a", world.user("all")),
            "error: running \"DynamicResources\" filter plugin: claim default/all, request r: asks for all devices, but resource pool "
            "d.example.com/a is currently being updated");
  world.slice("a", "[{name: g0}]", 1, 1);  // A newer generation, and it is whole.
  EXPECT_EQ(world.verdict("a", world.user("one")), "fits");
}

TEST(DynamicResources, ConstraintsHoldOverAllDevices) {
  Devices world;
  world
      .slice("a",
             "[{name: g0, attributes: {numa: {int: 0}}}, {name: g1, attributes: {numa: {int: 1}}}, {name: g2, attributes: {numa: "
             "{int: 1}}}]")
      .claim("near", kTwo, ", constraints: [{matchAttribute: d.example.com/numa}]");
  EXPECT_EQ(world.reserve(world.user("near"), "a"), "near=g1,g2");
}

TEST(DynamicResources, TaintedDevicesAreForWhoToleratesThem) {
  Devices world;
  world.slice("a", "[{name: g0, taints: [{key: broken, effect: NoSchedule}]}]")
      .claim("one", kOne)
      .claim("brave",
             "[{name: r, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1, tolerations: [{operator: Exists}]}}]");
  EXPECT_EQ(world.verdict("a", world.user("one")), kNo);
  EXPECT_EQ(world.verdict("a", world.user("brave")), "fits");
}

TEST(DynamicResources, RulesTaintDevicesUntilTheyGo) {
  Devices world;
  const auto rule = [&](const char* selector, const char* effect) {
    world.add(fmt::format("{{kind: DeviceTaintRule, metadata: {{name: rule}}, spec: {{{} taint: {{key: broken, effect: {}}}}}}}", selector,
                          effect));
  };
  world.slice("a", "[{name: g0}]").slice("b", "[{name: g1}]").claim("one", kOne);
  world.claim("brave",
              "[{name: r, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1, tolerations: [{key: broken, operator: "
              "Exists, effect: NoSchedule}]}}]");
  const auto one = world.user("one"), brave = world.user("brave");
  rule("deviceSelector: {pool: a},", "NoSchedule");
  EXPECT_EQ(world.verdict("a", one), kNo);
  EXPECT_EQ(world.verdict("b", one), "fits");
  EXPECT_EQ(world.verdict("a", brave), "fits");
  rule("deviceSelector: {pool: a, device: other},", "NoSchedule");
  EXPECT_EQ(world.verdict("a", one), "fits");
  rule("deviceSelector: {driver: d.example.com},", "NoExecute");
  EXPECT_EQ(world.verdict("b", one), kNo);
  EXPECT_EQ(world.verdict("b", brave), kNo);
  rule("", "NoExecute");  // Without a selector no device is meant.
  EXPECT_EQ(world.verdict("b", one), "fits");
  rule("deviceSelector: {},", "None");
  EXPECT_EQ(world.verdict("b", one), "fits");
  rule("deviceSelector: {},", "NoSchedule");
  EXPECT_EQ(world.verdict("b", one), kNo);
  EXPECT_TRUE(world.cluster.remove("DeviceTaintRule", "", "rule"));
  EXPECT_EQ(world.verdict("b", one), "fits");
}

TEST(DynamicResources, TaintsInTheWayAreNamedWithTheirOrigin) {
  Devices world;
  world.add(
      "{kind: DeviceTaintRule, metadata: {name: maintenance}, spec: {deviceSelector: {pool: a}, taint: {key: worn, value: fan, "
      "effect: NoExecute}}}");
  world.slice("a", "[{name: g0, taints: [{key: broken, effect: NoSchedule}]}, {name: g1}]").slice("b", "[{name: g0}]").claim("one", kOne);
  const auto one = world.user("one");
  const auto framework = *Framework::create(world.profile);
  Lacks lacks(*framework, world.cluster, *one);
  EXPECT_EQ(lacks.of(*world.cluster.find_node("a"), "DynamicResources"),
            (std::vector<std::string>{"a toleration for broken:NoSchedule on 1 device (its driver)",
                                      "a toleration for worn=fan:NoExecute on 2 devices (DeviceTaintRule maintenance)"}));
  EXPECT_TRUE(lacks.of(*world.cluster.find_node("b"), "DynamicResources").empty());
}

TEST(DynamicResources, PartsOfADeviceShareItsCounters) {
  Devices world;
  world.add(
      "{kind: ResourceSlice, metadata: {name: counters}, spec: {driver: d.example.com, nodeName: a, pool: {name: a, "
      "resourceSliceCount: 2}, sharedCounters: [{name: gpu, counters: {memory: {value: 40Gi}}}]}}");
  const auto part = [](int i, const char* memory) {
    return fmt::format("{{name: part-{}, consumesCounters: [{{counterSet: gpu, counters: {{memory: {{value: {}}}}}}}]}}", i, memory);
  };
  world.slice("a", fmt::format("[{}, {}, {}]", part(0, "30Gi"), part(1, "20Gi"), part(2, "10Gi")), 2);
  world.claim("two", kTwo).claim("more", kOne);
  EXPECT_EQ(world.reserve(world.user("two"), "a"), "two=part-0,part-2");
  EXPECT_EQ(world.verdict("a", world.user("more")), kNo);
}

TEST(DynamicResources, SharesOfADeviceAddUp) {
  Devices world;
  world.slice("a", "[{name: nic, allowMultipleAllocations: true, capacity: {bandwidth: {value: 10}}}]");
  const auto request = [](int amount) {
    return fmt::format(
        "[{{name: r, exactly: {{deviceClassName: gpu, allocationMode: ExactCount, count: 1, capacity: {{requests: {{bandwidth: {}}}}}}}}}]",
        amount);
  };
  world.claim("six", request(6)).claim("four", request(4)).claim("one", request(1));
  EXPECT_EQ(world.reserve(world.user("six"), "a"), "six=nic");
  EXPECT_EQ(world.reserve(world.user("four"), "a"), "four=nic");
  EXPECT_EQ(world.verdict("a", world.user("one")), kNo);
}

TEST(DynamicResources, TheFirstAlternativeThatCanBeHadScoresHighest) {
  Devices world;
  world.add("{kind: DeviceClass, metadata: {name: big}, spec: {}}");
  world.slice("a", "[{name: g0}]").slice("b", "[{name: g0}, {name: g1}]");
  world.claim("any",
              "[{name: r, firstAvailable: [{name: two, deviceClassName: gpu, allocationMode: ExactCount, count: 2}, {name: one, "
              "deviceClassName: gpu, allocationMode: ExactCount, count: 1}]}]");
  world.score_by("DynamicResources");
  EXPECT_EQ(world.scores("DynamicResources", world.user("any")), (Scores{{"a", 87}, {"b", 100}}));
  EXPECT_EQ(world.reserve(world.user("any"), "a"), "any=g0");
}

TEST(DynamicResources, AdministratorsSeeDevicesInUse) {
  Devices world;
  world.slice("a", "[{name: g0}]")
      .claim("one", kOne)
      .claim("look", "[{name: r, exactly: {deviceClassName: gpu, allocationMode: All, adminAccess: true}}]");
  EXPECT_EQ(world.reserve(world.user("one"), "a"), "one=g0");
  EXPECT_EQ(world.reserve(world.user("look"), "a"), "look=g0");
}

TEST(DynamicResources, TheFastPathChoosesTheSameNode) {
  Devices world;
  world.slice("b", "[{name: g0}]").claim("one", kOne);
  const auto framework = *Framework::create(world.profile);
  Engine engine(world.cluster);
  EXPECT_EQ(engine.schedule(framework, world.user("one")).node_name, "b");
  EXPECT_EQ(engine.schedule(framework, world.pod("{}")).outcome, Decision::Outcome::kScheduled);
}

TEST(DynamicResources, DevicesThatKeepThePodFromItsNodesAreGivenBack) {
  Devices world;
  world.add(
      "{kind: ResourceClaim, metadata: {name: one, namespace: default, uid: u}, spec: {devices: {requests: []}}, status: "
      "{allocation: {devices: {results: []}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, "
      "values: [gone]}]}]}}}}");
  const auto framework = *Framework::create(world.profile);
  const auto pod = world.user("one");
  const auto result = run_post_filter(framework, world.cluster, pod, world.evaluate(pod));
  ASSERT_TRUE(result.release.has_value());
  EXPECT_EQ(result.release->name, "one");
  EXPECT_TRUE(result.status.message().starts_with("deallocation of ResourceClaim completed, preemption: "));
}

/// Full nodes, devices on some of them: who goes where is the same whether the best nodes are asked for devices or all in full.
TEST(DynamicResources, PreemptionFindsTheSameByTheBestNodesAlone) {
  std::mt19937_64 random(7);
  std::size_t fast = 0, found = 0;
  for (int round = 0; round < 40; ++round) {
    Devices world;
    for (int i = 0; i < 24; ++i) {
      const std::string node = fmt::format("n{}", i);
      world.add(fmt::format("{{kind: Node, metadata: {{name: {}}}}}", node));
      for (int k = 0; k < 4; ++k)
        world.run(fmt::format("p{}-{}", i, k), node,
                  fmt::format("{{priority: {}, containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}", random() % 5));
      if (random() % (round < 20 ? 4 : 40) == 0)
        world.slice(node, random() % 3 == 0 ? "[{name: g0, taints: [{key: k, effect: NoSchedule}]}]" : "[{name: g0}]");
    }
    for (const char* node : {"a", "b"}) world.run(node, node, "{priority: 200, containers: [{name: c, resources: {requests: {cpu: 4}}}]}");
    world.claim("one", kOne);
    const auto pod = world.pod(
        "{priority: 100, resourceClaims: [{name: c, resourceClaimName: one}], containers: [{name: c, resources: {requests: {cpu: 2}}}]}");
    const auto framework = *Framework::create(world.profile);
    const auto in_full = run_post_filter(framework, world.cluster, pod, world.evaluate(pod));
    Preemptor preemptor(world.cluster);
    const auto answer = preemptor.find(framework, pod);
    fast += preemptor.was_fast();
    ASSERT_EQ(answer.choice() == nullptr, in_full.choice() == nullptr) << "round " << round;
    EXPECT_EQ(answer.status.message(), in_full.status.message());
    if (answer.choice() == nullptr) continue;
    ++found;
    EXPECT_EQ(answer.choice()->node, in_full.choice()->node) << "round " << round;
    EXPECT_EQ(answer.tied, in_full.tied) << "round " << round;
  }
  EXPECT_GT(found, 20U);
  EXPECT_GE(fast, found);
  EXPECT_LT(found, 40U) << "some find no device";
}

/// A class that backs the resource, and a pod that asks for so many in one container.
struct NamedDevices : Devices {
  NamedDevices() {
    add("{kind: DeviceClass, metadata: {name: gpu, creationTimestamp: \"2026-01-01T00:00:00Z\"}, spec: {extendedResourceName: "
        "d.example.com/gpu}}");
  }
  [[nodiscard]] PodInfoPtr asks(int count, const std::string& name = "pod", const std::string& resource = "d.example.com/gpu") const {
    return pod(fmt::format("{{containers: [{{name: c, resources: {{requests: {{{}: {}}}}}}}]}}", resource, count), "{}", name);
  }
  /// The requests of the claim that would be made on the node, and the mappings: "container-0-request-0=2; c d.example.com/gpu container-…"
  std::string claim_on(const PodInfoPtr& of, const std::string& node) {
    const auto framework = *Framework::create(profile);
    auto state = framework->new_cycle(cluster);
    const NodeInfo& on = *cluster.find_node(node);
    if (!framework->run_pre_filter(state, *of).status.is_success() || !framework->run_filter(state, *of, on).is_success() ||
        !framework->run_reserve(state, *of, on, cluster).is_success())
      return "nowhere";
    std::string out;
    const auto writes = framework->run_pre_bind(state, *of, on);
    if (writes->empty()) return "none";
    const PreBindWrite& write = writes->back();
    for (const auto& one : json::get_array(write.to_create, {"spec", "devices", "requests"}))
      out += fmt::format("{}={}:{} ", json::get_string(one, {"name"}), json::get_string(one, {"exactly", "deviceClassName"}),
                         json::get_int(one, {"exactly", "count"}));
    const json::Value status(write.pod_status);
    for (const auto& one : json::get_array(status, {"extendedResourceClaimStatus", "requestMappings"}))
      out += fmt::format("; {} {}", json::get_string(one, {"containerName"}), json::get_string(one, {"requestName"}));
    framework->run_unreserve(state, *of, on, cluster);
    return out;
  }
};

TEST(ExtendedResourcesOfDevices, AreGivenWhereTheNodeHasNoneOfItsOwn) {
  NamedDevices world;
  world.slice("a", "[{name: g0}, {name: g1}]");
  EXPECT_EQ(world.verdict("a", world.asks(2)), "fits");
  EXPECT_EQ(world.verdict("b", world.asks(2)), kNo);
  EXPECT_EQ(world.verdict("a", world.asks(3)), kNo);
  EXPECT_EQ(world.verdict("a", world.asks(1, "pod", "d.example.com/other")),
            "NodeResourcesFit UnschedulableAndUnresolvable: Insufficient d.example.com/other");
  EXPECT_EQ(world.claim_on(world.asks(2), "a"), "container-0-request-0=gpu:2 ; c container-0-request-0");
  // What has no such name is asked for by the class's own.
  EXPECT_EQ(world.verdict("a", world.asks(2, "pod", "deviceclass.resource.kubernetes.io/gpu")), "fits");
}

TEST(ExtendedResourcesOfDevices, CountInScoresAsTheNodesAmounts) {
  NamedDevices world;
  world.add("{kind: Node, metadata: {name: old}, status: {allocatable: {pods: 10, d.example.com/gpu: 10}}}");
  world.profile.args.fit.resources = {{"d.example.com/gpu", 1}};
  world.score_by("NodeResourcesFit");
  world.slice("a", "[{name: g0}, {name: g1}]").slice("b", "[{name: h0}, {name: h1}, {name: h2}, {name: h3}]").claim("one", kOne);
  EXPECT_EQ(world.scores("NodeResourcesFit", world.asks(1)), (Scores{{"a", 50}, {"b", 75}, {"old", 90}}));
  EXPECT_EQ(world.reserve(world.user("one"), "a"), "one=g0");
  EXPECT_EQ(world.scores("NodeResourcesFit", world.asks(1)), (Scores{{"a", 0}, {"b", 75}, {"old", 90}}));
  // A selector that fails says nothing of the node's amounts.
  world.add(
      "{kind: DeviceClass, metadata: {name: gpu}, spec: {extendedResourceName: d.example.com/gpu, selectors: [{cel: {expression: "
      "'device.driver == \"d.example.com\"'}}]}}");
  EXPECT_EQ(world.scores("NodeResourcesFit", world.asks(1)), (Scores{{"a", 0}, {"b", 75}, {"old", 90}}));
}

TEST(ExtendedResourcesOfDevices, AreCountedAnewForEachPod) {
  NamedDevices world;
  world.profile.args.fit.resources = {{"d.example.com/gpu", 1}};
  world.score_by("NodeResourcesFit");
  world.slice("a", "[{name: g0}, {name: g1}, {name: g2}]").slice("b", "[{name: h0}, {name: h1}, {name: h2}, {name: h3}]");
  Trial trial(world.cluster, Profiles(*Framework::create(world.profile)));
  std::string nodes;
  for (int i = 0; i < 4; ++i) nodes += trial.place(world.asks(1, fmt::format("pod-{}", i))).decision.node_name;
  EXPECT_EQ(nodes, "baba");
}

TEST(ExtendedResourcesOfDevices, ComeFromTheNodeWhereItHasThem) {
  NamedDevices world;
  world.add("{kind: Node, metadata: {name: old}, status: {allocatable: {pods: 10, d.example.com/gpu: 2}}}");
  EXPECT_EQ(world.verdict("old", world.asks(2)), "fits");
  EXPECT_EQ(world.claim_on(world.asks(2), "old"), "none");
  EXPECT_EQ(world.verdict("old", world.asks(3)), "NodeResourcesFit UnschedulableAndUnresolvable: Insufficient d.example.com/gpu");
}

TEST(ExtendedResourcesOfDevices, AreTakenOnce) {
  NamedDevices world;
  world.slice("a", "[{name: g0}, {name: g1}]").claim("one", kOne);
  EXPECT_EQ(world.reserve(world.asks(1, "first"), "a"), "=g0");
  EXPECT_EQ(world.reserve(world.user("one"), "a"), "one=g1");
  EXPECT_EQ(world.verdict("a", world.asks(1, "second")), kNo);
}

TEST(ExtendedResourcesOfDevices, TheNewestClassOfTheNameCounts) {
  NamedDevices world;
  world.slice("a", "[{name: g0}]");
  world.add(
      "{kind: DeviceClass, metadata: {name: newer, creationTimestamp: \"2026-02-01T00:00:00Z\"}, spec: {extendedResourceName: "
      "d.example.com/gpu}}");
  EXPECT_EQ(world.claim_on(world.asks(1), "a"), "container-0-request-0=newer:1 ; c container-0-request-0");
}

TEST(ExtendedResourcesOfDevices, InitContainersUseWhatLaterOnesAskFor) {
  NamedDevices world;
  world.slice("a", "[{name: g0}, {name: g1}, {name: g2}, {name: g3}]");
  const auto pod = world.pod(
      "{initContainers: [{name: small, resources: {requests: {d.example.com/gpu: 1}}}, {name: large, resources: {requests: "
      "{cpu: 1m, d.example.com/gpu: 3}}}, {name: side, restartPolicy: Always, resources: {requests: {d.example.com/gpu: 1}}}], "
      "containers: [{name: main, resources: {requests: {d.example.com/gpu: 1}}}]}");
  EXPECT_EQ(world.claim_on(pod, "a"),
            "container-1-request-1=gpu:1 container-2-request-0=gpu:1 container-3-request-0=gpu:1 "
            "; side container-2-request-0; main container-3-request-0; small container-2-request-0"
            "; large container-2-request-0; large container-3-request-0; large container-1-request-1");
}

TEST(ExtendedResourcesOfDevices, TheFastPathSeesClassesComeAndGo) {
  NamedDevices world;
  world.slice("b", "[{name: g0}]");
  const auto framework = *Framework::create(world.profile);
  Engine engine(world.cluster);
  EXPECT_EQ(engine.schedule(framework, world.asks(1)).node_name, "b");
  world.cluster.remove("DeviceClass", "", "gpu");
  EXPECT_NE(engine.schedule(framework, world.asks(1)).outcome, Decision::Outcome::kScheduled);
  world.add("{kind: DeviceClass, metadata: {name: again}, spec: {extendedResourceName: d.example.com/gpu}}");
  EXPECT_EQ(engine.schedule(framework, world.asks(1)).node_name, "b");
}

TEST(ExtendedResourcesOfDevices, WhatAnEarlierAttemptLeftIsDeletedFirst) {
  NamedDevices world;
  world.slice("a", "[{name: g0}]");
  const auto pod = world.asks(1);
  world.add(
      fmt::format("{{kind: ResourceClaim, metadata: {{name: left, namespace: default, uid: u, annotations: "
                  "{{resource.kubernetes.io/extended-resource-claim: \"true\"}}, ownerReferences: [{{apiVersion: v1, kind: Pod, name: "
                  "pod, uid: {}, controller: true}}]}}, spec: {{devices: {{requests: []}}}}}}",
                  pod->view().meta.uid));
  EXPECT_EQ(world.verdict("a", pod), "DynamicResources UnschedulableAndUnresolvable: cannot schedule extended resource claim");
  const auto framework = *Framework::create(world.profile);
  const auto result = run_post_filter(framework, world.cluster, pod, world.evaluate(pod));
  ASSERT_TRUE(result.release.has_value());
  EXPECT_TRUE(result.release->is_deleted);
  EXPECT_TRUE(result.status.message().starts_with("deletion of ResourceClaim completed, preemption: "));
}

/// Devices of many kinds on six nodes, pods whose selectors fail on some of them: the engine's columns end in an error exactly where the
/// plain form does.
TEST(DynamicResources, AnErrorOnOneNodeKeepsThePodPendingInBothForms) {
  std::mt19937_64 random(3);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::size_t errors = 0, placed = 0;
  for (int round = 0; round < 60; ++round) {
    Devices world;
    for (const char* name : {"c", "d", "e", "f"}) world.add(fmt::format("{{kind: Node, metadata: {{name: {}}}}}", name));
    world.add(
        "{kind: DeviceClass, metadata: {name: picky}, spec: {selectors: [{cel: {expression: 'device.attributes[\"d.example.com\"].a < "
        "2'}}]}}");
    for (const char* node : {"a", "b", "c", "d", "e", "f"})
      if (below(4) != 0)
        world.slice(node, below(3) == 0 ? "[{name: g0}]" : fmt::format("[{{name: g0, attributes: {{a: {{int: {}}}}}}}]", below(3)));
    for (int i = 0; i < 6; ++i) {
      const char* class_name = below(2) == 0 ? "gpu" : "picky";
      const char* selector = below(2) == 0 ? ", selectors: [{cel: {expression: 'device.attributes[\"d.example.com\"].a == 1'}}]" : "";
      world.claim(
          fmt::format("claim-{}", i),
          fmt::format("[{{name: r, exactly: {{deviceClassName: {}, allocationMode: ExactCount, count: 1{}}}}}]", class_name, selector));
      const PodInfoPtr pod = world.user(fmt::format("claim-{}", i), fmt::format("pod-{}", i));
      Trial trial(world.cluster, Profiles(*Framework::create(world.profile)));
      const Evaluation plain = trial.evaluate(*pod);
      const Placement found = trial.place(pod);
      ASSERT_EQ(found.decision.outcome == Decision::Outcome::kError, !plain.errors.empty()) << found.status.message();
      ASSERT_EQ(found.is_placed(), plain.errors.empty() && !plain.feasible.empty());
      errors += plain.errors.empty() ? 0 : 1;
      placed += found.is_placed() ? 1 : 0;
    }
  }
  EXPECT_GT(errors, 30U);
  EXPECT_GT(placed, 30U);
}

}  // namespace
}  // namespace berth::placement::testing
