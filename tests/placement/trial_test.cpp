// What everyone who places or moves a pod relies on: what was reserved is gone for the next, what is undone is there again, and forks do
// not see each other.
#include "placement/trial.h"

#include <gtest/gtest.h>

#include "placement/attempt.h"
#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

/// Nodes a and b; devices and volumes as a test says.
struct Stock : PluginWorld {
  Stock() : PluginWorld(Era::k136) {
    for (const char* name : {"a", "b"}) add(fmt::format("{{kind: Node, metadata: {{name: {}}}}}", name));
    add("{kind: DeviceClass, metadata: {name: gpu}, spec: {}}");
    add("{kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: "
        "WaitForFirstConsumer}");
  }
  Stock& devices(const std::string& node, const std::string& list) {
    add(fmt::format(
        "{{kind: ResourceSlice, metadata: {{name: s-{0}}}, spec: {{driver: d.example.com, nodeName: {0}, pool: {{name: {0}, generation: 1, "
        "resourceSliceCount: 1}}, devices: {1}}}}}",
        node, list));
    return *this;
  }
  /// `more` goes into the metadata.
  Stock& claim(const std::string& name, const std::string& more = "") {
    add(
        fmt::format("{{kind: ResourceClaim, metadata: {{name: {0}, namespace: default, uid: u-{0}{1}}}, spec: {{devices: {{requests: "
                    "[{{name: r, exactly: "
                    "{{deviceClassName: gpu, allocationMode: ExactCount, count: 1}}}}]}}}}}}",
                    name, more));
    return *this;
  }
  Stock& volume(const std::string& name, const std::string& node) {
    add(fmt::format(
        "{{kind: PersistentVolume, metadata: {{name: {0}}}, spec: {{storageClassName: local, accessModes: [ReadWriteOnce], capacity: "
        "{{storage: 1Gi}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: "
        "In, "
        "values: [{1}]}}]}}]}}}}}}, status: {{phase: Available}}}}",
        name, node));
    return *this;
  }
  Stock& volume_claim(const std::string& name, const std::string& more = "") {
    add(fmt::format(
        "{{kind: PersistentVolumeClaim, metadata: {{name: {0}, namespace: default, uid: u-{0}{1}}}, spec: {{storageClassName: local, "
        "accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}}}",
        name, more));
    return *this;
  }
  [[nodiscard]] PodInfoPtr user(const std::string& name, const std::string& claim, const std::string& volume_claim = "") const {
    std::string spec = "{";
    if (!claim.empty()) spec += fmt::format("resourceClaims: [{{name: c, resourceClaimName: {}}}], ", claim);
    if (!volume_claim.empty()) spec += fmt::format("volumes: [{{name: v, persistentVolumeClaim: {{claimName: {}}}}}], ", volume_claim);
    return pod(spec + "priority: 0}", "{}", name);
  }
  /// A pod on a node whose claim was made from its template and has a device.
  PodInfoPtr run_with_own_claim(const std::string& name, const std::string& node, const std::string& device) {
    auto view = std::make_shared<model::PodView>(pod("{}", "{}", name)->view());
    view->node_name = node;
    view->meta.uid = "uid-" + name;
    view->resource_claims = {{"c", "", "template", true, "made-" + name}};
    add(fmt::format(
        "{{kind: ResourceClaim, metadata: {{name: made-{0}, namespace: default, uid: u-made-{0}, ownerReferences: [{{apiVersion: v1, kind: "
        "Pod, "
        "name: {0}, uid: uid-{0}, controller: true}}]}}, spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu, "
        "allocationMode: ExactCount, count: 1}}}}]}}}}, status: {{reservedFor: [{{resource: pods, name: {0}, uid: uid-{0}}}], allocation: "
        "{{devices: {{results: [{{request: r, driver: d.example.com, pool: {1}, device: {2}}}]}}, nodeSelector: {{nodeSelectorTerms: "
        "[{{matchFields: [{{key: metadata.name, operator: In, values: [{1}]}}]}}]}}}}}}}}",
        name, node, device));
    cluster.upsert_pod(view);
    return cluster.find_pod("default/" + name);
  }

  [[nodiscard]] Trial trial() {
    return {cluster, framework(), {.engine = {.tie_break = EngineOptions::TieBreak::kFirstByName}, .preemption = {}}};
  }
  [[nodiscard]] FrameworkPtr framework() const { return *Framework::create(profile); }
};

std::string place(Trial& trial, const PodInfoPtr& pod) {
  const Placement placement = trial.place(pod);
  return placement.is_placed() ? trial.cluster().node(placement.node)->name : placement.status.message();
}

TEST(Trial, ADeviceIsGivenAwayOnce) {
  Stock stock;
  stock.devices("b", "[{name: g0}]").claim("one").claim("two");
  Trial trial = stock.trial();
  EXPECT_EQ(place(trial, stock.user("p", "one")), "b");
  EXPECT_EQ(place(trial, stock.user("q", "two")), "0/2 nodes are available: 2 cannot allocate all claims.");
  EXPECT_FALSE(trial.place_on(stock.user("q", "two"), stock.cluster.find_node("b")->index).is_success());
}

TEST(Trial, AVolumeIsGivenAwayOnce) {
  Stock stock;
  stock.volume("v", "a").volume_claim("one").volume_claim("two");
  Trial trial = stock.trial();
  EXPECT_EQ(place(trial, stock.user("p", "", "one")), "a");
  EXPECT_NE(place(trial, stock.user("q", "", "two")).find("didn't find available persistent volumes to bind"), std::string::npos);
}

TEST(Trial, PodsMayShareAClaimThatWasReservedForTheFirst) {
  Stock stock;
  stock.devices("b", "[{name: g0}]").claim("shared");
  Trial trial = stock.trial();
  EXPECT_EQ(place(trial, stock.user("p", "shared")), "b");
  EXPECT_EQ(place(trial, stock.user("q", "shared")), "b");
  EXPECT_EQ(stock.cluster.find_claim("default", "shared")->reserved_for.size(), 2U);
}

TEST(Trial, AReservationThatIsUndoneLeavesNothing) {
  Stock stock;
  stock.devices("a", "[{name: g0}]").volume("v", "a").claim("c").volume_claim("vc");
  Trial trial = stock.trial();
  const PodInfoPtr pod = stock.user("p", "c", "vc");
  auto reserved = trial.reserve(pod, stock.cluster.find_node("a")->index);
  ASSERT_TRUE(reserved) << reserved.error().message();
  EXPECT_TRUE(stock.cluster.persistent_volumes().find("v")->second->has_claim_ref);
  EXPECT_EQ(stock.cluster.pending_allocations().size(), 1U);
  EXPECT_EQ(reserved->pre_bind(stock.cluster)->size(), 3U);
  trial.undo(*reserved);
  EXPECT_FALSE(stock.cluster.persistent_volumes().find("v")->second->has_claim_ref);
  EXPECT_TRUE(stock.cluster.pending_allocations().empty());
  EXPECT_EQ(stock.cluster.pod_count(), 0U);
  EXPECT_EQ(place(trial, pod), "a");
}

TEST(Trial, ANewerVersionOfThePodStaysWhenItsReservationIsUndone) {
  Stock stock;
  Trial trial = stock.trial();
  auto reserved = trial.reserve(stock.user("p", ""), stock.cluster.find_node("a")->index);
  ASSERT_TRUE(reserved);
  stock.run("p", "b", "{}");
  trial.undo(*reserved);
  EXPECT_EQ(stock.cluster.node(stock.cluster.pod_node("default/p"))->name, "b");
}

TEST(Trial, WhatOnePluginReservedIsGivenBackWhenAnotherRefuses) {
  Stock stock;
  stock.devices("b", "[{name: g0}]").volume("v", "a").claim("c").volume_claim("vc");
  Trial trial = stock.trial();
  // The volume is on a, the device on b: on a the volumes' plugin reserves first.
  EXPECT_FALSE(trial.reserve(stock.user("p", "c", "vc"), stock.cluster.find_node("a")->index));
  EXPECT_FALSE(stock.cluster.persistent_volumes().find("v")->second->has_claim_ref);
  EXPECT_EQ(stock.cluster.pod_count(), 0U);
}

TEST(Framework, AFailingReserveUnreservesThePluginsBeforeIt) {
  Stock stock;
  stock.devices("b", "[{name: g0}]").volume("v", "a").claim("c").volume_claim("vc");
  const FrameworkPtr framework = stock.framework();
  const PodInfoPtr pod = stock.user("p", "c", "vc");
  CycleState state = framework->new_cycle(stock.cluster);
  ASSERT_TRUE(framework->run_pre_filter(state, *pod).status.is_success());
  // Nobody asked DynamicResources what the node can give: its Reserve has nothing to go by, after that of VolumeBinding.
  const Status status = framework->run_reserve(state, *pod, *stock.cluster.find_node("a"), stock.cluster);
  EXPECT_EQ(status.message(), "claim allocation not found for node");
  EXPECT_FALSE(stock.cluster.persistent_volumes().find("v")->second->has_claim_ref);
}

TEST(Trial, AnEvictedPodsDeviceIsFreeAndItsSuccessorGetsAClaimOfItsOwn) {
  Stock stock;
  stock.devices("a", "[{name: g0}]").devices("b", "[{name: g1}]");
  const PodInfoPtr pod = stock.run_with_own_claim("p", "a", "g0");
  stock.claim("other");
  Trial base = stock.trial();
  Trial trial = base.fork();
  EvictedPod eviction = trial.evict(pod);
  EXPECT_EQ(place(trial, stock.user("q", "other")), "a");
  EXPECT_EQ(place(trial, trial.renew(eviction)), "b");
  // The base knows nothing of it; undone, the fork neither.
  EXPECT_EQ(stock.cluster.find_claim("default", "made-p")->allocation->devices[0].device, "g0");
  trial.undo(eviction);
  EXPECT_EQ(trial.cluster().find_claim("default", "made-p")->meta.uid, "u-made-p");
  EXPECT_EQ(trial.cluster().find_claim("default", "made-p")->allocation->devices[0].device, "g0");
  EXPECT_EQ(trial.cluster().find_pod(pod->key), pod);
  EXPECT_EQ(trial.cluster().node(trial.cluster().pod_node(pod->key))->name, "a");
}

/// What a reservation is about to give is free while the pod is gone in thought, and given once when that is undone.
void expect_back_after_undo(Stock& stock, const PodInfoPtr& pod) {
  Trial trial = stock.trial();
  auto reserved = trial.reserve(pod, stock.cluster.find_node("a")->index);
  ASSERT_TRUE(reserved) << reserved.error().message();
  const auto held = stock.cluster.pending_allocations();
  ASSERT_EQ(held.size(), 1U);
  const EvictedPod eviction = trial.evict(pod);
  EXPECT_TRUE(stock.cluster.pending_allocations().empty());
  EXPECT_TRUE(trial.fits(stock.user("q", "other"), stock.cluster.find_node("a")->index).is_success());
  trial.undo(eviction);
  EXPECT_EQ(stock.cluster.pending_allocations(), held);
  EXPECT_FALSE(trial.fits(stock.user("q", "other"), stock.cluster.find_node("a")->index).is_success());
}

TEST(Trial, DevicesOnTheirWayToAnEvictedPodsOwnClaimComeBackWithIt) {
  Stock stock;
  stock.devices("a", "[{name: g0}]").claim("other");
  stock.claim("made-p", ", ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: uid-p, controller: true}]");
  auto view = std::make_shared<model::PodView>(stock.pod("{}", "{}", "p")->view());
  view->meta.uid = "uid-p";
  view->resource_claims = {{"c", "", "template", true, "made-p"}};
  expect_back_after_undo(stock, PodInfo::make(view, Era::k136));
}

TEST(Trial, DevicesOnTheirWayToWhatAnEvictedPodAskedForByNameComeBackWithIt) {
  Stock stock;
  stock.devices("a", "[{name: g0}]").claim("other");
  stock.add("{kind: DeviceClass, metadata: {name: named}, spec: {extendedResourceName: example.com/gpu}}");
  expect_back_after_undo(stock, stock.pod("{containers: [{name: c, resources: {requests: {example.com/gpu: '1'}, limits: {example.com/gpu: "
                                          "'1'}}}]}",
                                          "{}", "p"));
}

TEST(Trial, AnEphemeralVolumeOfASuccessorIsMadeWhereItGoes) {
  Stock stock;
  stock.volume("va", "a").volume("vb", "b");
  auto view = std::make_shared<model::PodView>(
      stock.pod("{volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}]}", "{}", "p")->view());
  view->node_name = "a";
  stock.volume_claim("p-v",
                     fmt::format(", ownerReferences: [{{apiVersion: v1, kind: Pod, name: p, uid: {}, controller: true}}]", view->meta.uid));
  auto bound = std::make_shared<model::PersistentVolumeClaimView>(*stock.cluster.claims().find("default/p-v")->second);
  bound->volume_name = "va";
  bound->meta.annotations = {{"pv.kubernetes.io/bind-completed", "yes"}};
  stock.cluster.upsert(std::shared_ptr<const model::PersistentVolumeClaimView>(bound));
  stock.cluster.upsert_pod(view);
  stock.cluster.upsert(
      *json::parse_yaml("kind: Node\nmetadata: {name: a, labels: {kubernetes.io/hostname: a}}\nspec: {unschedulable: true}"));
  Trial base = stock.trial();
  Trial trial = base.fork();
  const EvictedPod eviction = trial.evict(stock.cluster.find_pod("default/p"));
  EXPECT_EQ(place(trial, trial.renew(eviction)), "b");
}

TEST(Trial, ASuccessorIsAnotherPodThatHasRunNowhere) {
  PluginWorld world(Era::k136);
  auto view = std::make_shared<model::PodView>(world.pod("{nodeName: a}", "{app: web}", "old")->view());
  view->meta.is_deleting = true;
  view->nominated_node_name = "b";
  view->phase = "Running";
  view->start_time = "2026-01-01T00:00:00Z";
  view->resize_infeasible = true;
  view->terminating_by_preemption = true;
  const PodInfoPtr old = PodInfo::make(view, Era::k136);
  const model::PodView next = successor_of(*old, Era::k136)->view();
  EXPECT_NE(next.meta.uid, view->meta.uid);
  EXPECT_FALSE(next.meta.is_deleting || next.resize_infeasible || next.terminating_by_preemption);
  EXPECT_EQ(next.node_name + next.nominated_node_name + next.start_time, "");
  EXPECT_EQ(next.phase, "Pending");
  EXPECT_EQ(next.meta.labels, view->meta.labels);
  const model::Labels given(std::vector<std::pair<std::string, std::string>>{{"app", "other"}});
  EXPECT_EQ(successor_of(*old, Era::k136, &given)->view().meta.labels, given);
}

TEST(Trial, EachPodIsAskedWithItsOwnProfile) {
  Stock stock;
  stock.run("here", "a", "{containers: [{name: c, resources: {requests: {cpu: '2'}}}]}");
  Profile packing = default_profile(Era::k136);
  packing.scheduler_name = "packing";
  packing.args.fit.strategy = ScoringStrategyType::kMostAllocated;
  std::erase_if(packing.score, [](const auto& use) { return use.name != "NodeResourcesFit"; });
  auto profiles = Profiles::create({default_profile(Era::k136), packing});
  ASSERT_TRUE(profiles) << profiles.error().message;
  Trial trial(stock.cluster, *profiles, {});
  const auto where = [&](const std::string& scheduler) {
    return place(
        trial, stock.pod(fmt::format("{{schedulerName: {}, containers: [{{name: c, resources: {{requests: {{cpu: 100m}}}}}}]}}", scheduler),
                         "{}", "p-" + scheduler));
  };
  EXPECT_EQ(where("default-scheduler"), "b");
  EXPECT_EQ(where("packing"), "a");
  EXPECT_NE(where("nobody").find("no profile is known of its scheduler \"nobody\""), std::string::npos);
  EXPECT_FALSE(trial.fits(stock.pod("{schedulerName: nobody}"), stock.cluster.find_node("a")->index).is_success());
}

TEST(Trial, TheBestNodesAreThoseThatTheSchedulerChoosesAmong) {
  Stock stock;
  stock.add("{kind: Node, metadata: {name: c}}")
      .run("busy", "b", "{containers: [{name: c, resources: {requests: {cpu: '3', memory: 3Gi}}}]}");
  Trial trial = stock.trial();
  const PodInfoPtr pod = stock.pod("{containers: [{name: c, resources: {requests: {cpu: 100m, memory: 100Mi}}}]}");
  const BestNodes best = trial.best(pod);
  ASSERT_EQ(best.nodes.size(), 2U);
  EXPECT_EQ(stock.cluster.node(best.nodes[0])->name, "a");
  EXPECT_EQ(stock.cluster.node(best.nodes[1])->name, "c");
  EXPECT_TRUE(trial.is_best(pod, best.nodes[1]));
  EXPECT_FALSE(trial.is_best(pod, stock.cluster.find_node("b")->index));
}

TEST(Trial, ForksGoTheirOwnWaysAndOutliveTheirBase) {
  Stock stock;
  auto base = std::make_unique<Trial>(
      Trial::on_fork(stock.cluster, stock.framework(), {.engine = {.tie_break = EngineOptions::TieBreak::kFirstByName}, .preemption = {}}));
  const PodInfoPtr half = stock.pod("{containers: [{name: c, resources: {requests: {cpu: '2'}}}]}", "{}", "half");
  EXPECT_EQ(place(*base, half), "a");
  Trial one = base->fork(), other = base->fork();
  one.cluster().remove_node("b");
  const auto again = [&](const std::string& name) {
    return stock.pod("{containers: [{name: c, resources: {requests: {cpu: '2'}}}]}", "{}", name);
  };
  EXPECT_EQ(place(one, again("p")), "a");
  EXPECT_EQ(place(other, again("p")), "b");
  Trial of_other = other.fork();
  base.reset();
  EXPECT_EQ(place(of_other, again("q")), "a");
  EXPECT_EQ(place(other, again("q")), "a");
  EXPECT_EQ(place(one, again("q")), "0/1 nodes are available: 1 Insufficient cpu.");
  EXPECT_EQ(stock.cluster.pod_count(), 0U);
}

/// A gate that is closed yet is no reason why evicting would not help, in the fast form and in the plain one.
TEST(Trial, VictimsOfAPodWithAGateAreThoseOfOneWithout) {
  Stock stock;
  stock.run("low", "a", "{containers: [{name: c, resources: {requests: {cpu: '4'}}}], priority: 0}")
      .run("high", "b", "{containers: [{name: c, resources: {requests: {cpu: '4'}}}], priority: 9}");
  Trial trial = stock.trial();
  for (const std::string gate : {"", ", schedulingGates: [{name: example.com/wait}]"}) {
    const PodInfoPtr pod = stock.pod("{containers: [{name: c, resources: {requests: {cpu: '2'}}}], priority: 5" + gate + "}");
    const Evaluation evaluation = trial.evaluate(*pod);
    for (const PostFilterResult& result : {trial.victims_for(pod), trial.victims_for(pod, &evaluation)}) {
      ASSERT_NE(result.choice(), nullptr) << gate << ": " << result.status.message();
      ASSERT_EQ(result.choice()->victims.size(), 1U);
      EXPECT_EQ(result.choice()->victims[0]->view().meta.name, "low");
    }
  }
}

/// Names are put in order once they have been compared often, in the middle of an attempt as well. A node that was not there then comes
/// back.
TEST(Trial, WhatAnAttemptLearnsOfNamesEndsWithIt) {
  Stock stock;
  for (const char* name : {"c", "d", "e"}) stock.add(fmt::format("{{kind: Node, metadata: {{name: {}}}}}", name));
  Trial trial(stock.cluster, stock.framework(), {.engine = {.tie_break = EngineOptions::TieBreak::kFirstByName}, .preemption = {}});
  const PodInfoPtr pod = stock.pod("{containers: [{name: c, resources: {requests: {cpu: 1m}}}]}");
  const auto first = [&] { return trial.decide(pod).node_name; };
  for (int round = 0; round < 3; ++round) {
    {
      const Attempt attempt(trial);
      stock.cluster.remove_node("a");
      for (int i = 0; i < 20; ++i) EXPECT_EQ(first(), "b");
      const Attempt within(trial);
      stock.cluster.remove_node("b");
      for (int i = 0; i < 20; ++i) EXPECT_EQ(first(), "c");
    }
    EXPECT_EQ(first(), "a") << "in round " << round;
    EXPECT_EQ(trial.best(pod).nodes.size(), 5U);
  }
}

TEST(Trial, WhatAnInnerAttemptLearnsOfNamesEndsWithIt) {
  Stock stock;
  for (const char* name : {"c", "d", "e"}) stock.add(fmt::format("{{kind: Node, metadata: {{name: {}}}}}", name));
  Trial trial(stock.cluster, stock.framework(), {.engine = {.tie_break = EngineOptions::TieBreak::kFirstByName}, .preemption = {}});
  const PodInfoPtr pod = stock.pod("{containers: [{name: c, resources: {requests: {cpu: 1m}}}]}");
  const auto first = [&] { return trial.decide(pod).node_name; };
  const Attempt outer(trial);
  {
    const Attempt inner(trial);
    stock.cluster.remove_node("a");
    for (int i = 0; i < 20; ++i) EXPECT_EQ(first(), "b");
  }
  EXPECT_EQ(first(), "a");
}

/// What was asked while something was tried says nothing once that is taken back.
TEST(TrialAttempts, AnswersOfAnAttemptEndWithIt) {
  Cluster cluster(Era::k136);
  for (const char* name : {"a", "b"})
    cluster.upsert(json::Value{{"kind", "Node"},
                               {"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}},
                               {"status", {{"allocatable", {{"cpu", "2"}, {"memory", "4Gi"}, {"pods", "9"}}}}}});
  const auto running = [&](const char* name, const char* node) {
    return json::Value{
        {"kind", "Pod"},
        {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}, {"labels", {{"app", name}}}}},
        {"spec", {{"nodeName", node}, {"containers", json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1500m"}}}}}}}}}}};
  };
  cluster.upsert(running("one", "a"));
  cluster.upsert(running("two", "b"));
  const auto space = [](const char* team) {
    return json::Value{{"kind", "Namespace"}, {"metadata", {{"name", "default"}, {"labels", {{"team", team}}}}}};
  };
  const auto budget = [](int allowed) {
    return json::Value{{"kind", "PodDisruptionBudget"},
                       {"metadata", {{"name", "b"}, {"namespace", "default"}}},
                       {"spec", {{"selector", {{"matchLabels", {{"app", "one"}}}}}}},
                       {"status", {{"disruptionsAllowed", allowed}}}};
  };
  cluster.upsert(space("red"));
  cluster.upsert(budget(1));
  const auto make = [](json::Object spec, const char* cpu) {
    spec["containers"] = json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}};
    const json::Value pod{{"kind", "Pod"}, {"metadata", {{"name", "p"}, {"namespace", "other"}, {"uid", "p"}}}, {"spec", std::move(spec)}};
    return PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod)), Era::k136);
  };
  const PodInfoPtr shy = make({{"affinity",
                                {{"podAntiAffinity",
                                  {{"requiredDuringSchedulingIgnoredDuringExecution",
                                    json::Array{{{"topologyKey", "kubernetes.io/hostname"},
                                                 {"labelSelector", {{"matchLabels", {{"app", "one"}}}}},
                                                 {"namespaceSelector", {{"matchLabels", {{"team", "blue"}}}}}}}}}}}}},
                              "100m");
  const PodInfoPtr high = make({{"priority", 9}}, "2");
  Trial trial(cluster, *Profiles::create({default_profile(Era::k136)}), {.engine = {.tie_break = EngineOptions::TieBreak::kFirstByName}});
  const auto answers = [&] {
    const Decision placed = trial.decide(shy);
    const PostFilterResult found = trial.victims_for(high);
    return fmt::format("{} {}", placed.outcome == Decision::Outcome::kScheduled ? placed.node_name : "nowhere",
                       found.choice() == nullptr ? "nobody" : found.choice()->victims[0]->key);
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(answers(), "a default/one") << round;
    Attempt attempt(trial);
    trial.cluster().upsert(space("blue"));
    trial.cluster().upsert(budget(0));
    EXPECT_EQ(answers(), "b default/two") << round;
  }
  EXPECT_EQ(answers(), "a default/one");
}

/// Nodes that were only tried leave their slots to the next ones, however often that is done.
TEST(TrialAttempts, NodesThatWereTriedLeaveTheirSlots) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: stays}}");
  Trial trial(world.cluster, *Profiles::create({default_profile(Era::k136)}), {});
  for (int round = 0; round < 20; ++round) {
    Attempt attempt(trial);
    for (const char* name : {"x", "y"}) world.add(fmt::format("{{kind: Node, metadata: {{name: {}{}}}}}", name, round));
    EXPECT_EQ(trial.cluster().node_count(), 3U);
  }
  EXPECT_EQ(trial.cluster().node_count(), 1U);
  EXPECT_LE(trial.cluster().slot_count(), 3U);
}

/// What extenders left of the candidates is chosen among anew, whatever was chosen, and said, before.
TEST(TrialPreemption, WhatIsLeftOfTheCandidatesIsChosenAmongAnew) {
  Cluster cluster(Era::k136);
  for (const char* name : {"a", "b", "c"}) {
    cluster.upsert(json::Value{
        {"kind", "Node"}, {"metadata", {{"name", name}}}, {"status", {{"allocatable", {{"cpu", "2"}, {"memory", "4Gi"}, {"pods", "9"}}}}}});
  }
  const auto pod = [&](const std::string& name, int priority, const std::string& node) {
    json::Value out{
        {"kind", "Pod"},
        {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}},
        {"spec", {{"priority", priority}, {"containers", json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", "2"}}}}}}}}}}};
    if (!node.empty()) json::set(out, {"spec", "nodeName"}, json::Value(node));
    return PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(out)), Era::k136);
  };
  cluster.upsert_pod(pod("low", 1, "a"));
  cluster.upsert_pod(pod("lower", 0, "b"));
  cluster.upsert_pod(pod("lowest", 0, "c"));
  const FrameworkPtr framework = *Framework::create(default_profile(Era::k136));
  Trial trial = Trial::on_fork(cluster, framework);
  const PodInfoPtr high = pod("high", 9, "");
  const Evaluation failed = trial.evaluate(*high);
  PostFilterResult result = trial.victims_for(high, &failed);
  ASSERT_EQ(result.candidates.size(), 3U);
  ASSERT_NE(result.choice(), nullptr);
  EXPECT_EQ(result.choice()->victims[0]->key, "default/lower");
  EXPECT_EQ(result.tied.size(), 2U);

  std::erase_if(result.candidates, [](const Candidate& one) { return one.victims[0]->key != "default/low"; });
  result.status = Status::unschedulable("nothing yet");
  trial.choose_among(result, *high);
  ASSERT_NE(result.choice(), nullptr);
  EXPECT_EQ(result.choice()->victims[0]->key, "default/low");
  EXPECT_EQ(result.tied, std::vector<NodeIndex>{cluster.find_node("a")->index});
  EXPECT_TRUE(result.status.is_success());

  result.candidates.clear();
  result.status = Status::unschedulable("nobody is left");
  trial.choose_among(result, *high);
  EXPECT_EQ(result.choice(), nullptr);
  EXPECT_TRUE(result.tied.empty());
  EXPECT_EQ(result.status.message(), "nobody is left");
}

}  // namespace
}  // namespace berth::placement::testing
