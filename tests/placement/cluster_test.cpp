// The cluster's sums, forks, and what it makes of bad input.
#include "placement/cluster.h"

#include <gtest/gtest.h>

#include <limits>

#include "placement/trial.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

using model::Quantity;

/// The sums of every node equal a recount over its pods.
void expect_recount(const Cluster& cluster) {
  std::size_t pods = 0;
  for (std::uint32_t i = 0; i < cluster.slot_count(); ++i) {
    const NodeInfo* node = cluster.node(NodeIndex{i});
    if (node == nullptr) continue;
    NodeInfo recount;
    for (const auto& pod : node->pods) {
      recount.add_pod(pod);
      EXPECT_EQ(cluster.pod_node(pod->key), node->index);
      EXPECT_EQ(cluster.find_pod(pod->key), pod);
    }
    pods += node->pods.size();
    EXPECT_EQ(node->requested.cpu_milli, recount.requested.cpu_milli);
    EXPECT_EQ(node->requested.memory_bytes, recount.requested.memory_bytes);
    EXPECT_EQ(node->requested.scalar("example.com/gpu"), recount.requested.scalar("example.com/gpu"));
    EXPECT_EQ(node->nonzero_cpu_milli, recount.nonzero_cpu_milli);
    EXPECT_EQ(node->nonzero_memory_bytes, recount.nonzero_memory_bytes);
    EXPECT_EQ(node->pods_with_affinity, recount.pods_with_affinity);
    EXPECT_EQ(node->pods_with_required_anti_affinity, recount.pods_with_required_anti_affinity);
    EXPECT_EQ(node->claim_references, recount.claim_references);
  }
  EXPECT_EQ(cluster.pod_count(), pods);
}

model::PodViewPtr bound_pod(RandomWorld& world, const std::string& name, const std::string& node) {
  auto out = std::make_shared<model::PodView>(*world.pod(name));
  out->node_name = node;
  return out;
}

TEST(Cluster, SumsEqualARecount) {
  RandomWorld world(7);
  Cluster cluster;
  for (int i = 0; i < 6; ++i) cluster.upsert_node(world.node("n" + std::to_string(i)));
  for (int step = 0; step < 400; ++step) {
    const std::string name = "p" + std::to_string(world.below(60));
    const std::string node = "n" + std::to_string(world.below(8));  // Two of them nobody knows.
    switch (world.below(5)) {
      case 0:
        cluster.remove("Pod", "default", name);
        break;
      case 1:
        cluster.remove_node(node);
        break;
      case 2:
        cluster.upsert_node(world.node(node));
        break;
      default:
        cluster.upsert_pod(bound_pod(world, name, node));
        break;
    }
    if (step % 20 == 0) expect_recount(cluster);
  }
  expect_recount(cluster);
}

TEST(Cluster, AForkAndItsOriginGoTheirOwnWays) {
  RandomWorld world(11);
  Cluster cluster;
  for (int i = 0; i < 3; ++i) cluster.upsert_node(world.node("n" + std::to_string(i)));
  for (int i = 0; i < 9; ++i) cluster.upsert_pod(bound_pod(world, "p" + std::to_string(i), "n" + std::to_string(i % 3)));
  Trial trial = Trial::on_fork(cluster, {});
  Cluster& fork = trial.cluster();
  const auto before = cluster.find_node("n1")->pods.size();
  while (!fork.find_node("n1")->pods.empty()) fork.remove_pod(std::string(fork.find_node("n1")->pods.front()->key));
  fork.remove_node("n2");
  EXPECT_EQ(cluster.find_node("n1")->pods.size(), before);
  EXPECT_EQ(cluster.node_count(), 3U);
  EXPECT_EQ(fork.node_count(), 2U);
  cluster.upsert_pod(bound_pod(world, "late", "n0"));
  EXPECT_EQ(fork.find_node("n0")->pods.size() + 1, cluster.find_node("n0")->pods.size());
  expect_recount(cluster);
  expect_recount(fork);
}

TEST(Cluster, APodIsOnOneNodeAtMost) {
  RandomWorld world(13);
  Cluster cluster;
  cluster.upsert_node(world.node("a"));
  cluster.upsert_node(world.node("b"));
  const auto pod = bound_pod(world, "p", "a");
  cluster.upsert_pod(pod);
  auto moved = std::make_shared<model::PodView>(*pod);
  moved->node_name = "b";
  cluster.upsert_pod(moved);
  EXPECT_TRUE(cluster.find_node("a")->pods.empty());
  EXPECT_EQ(cluster.find_node("b")->pods.size(), 1U);
  moved = std::make_shared<model::PodView>(*moved);
  moved->phase = "Succeeded";
  cluster.upsert_pod(moved);
  EXPECT_EQ(cluster.pod_count(), 0U);
}

/// Pods are listed before nodes, or after.
TEST(Cluster, ANominationCountsOnceItsNodeIsThere) {
  RandomWorld world(19);
  Cluster cluster;
  auto pod = std::make_shared<model::PodView>(*world.pod("waiting"));
  pod->nominated_node_name = "late";
  cluster.upsert_pod(pod);
  EXPECT_FALSE(cluster.has_nominations());
  const NodeIndex late = cluster.upsert_node(world.node("late"));
  EXPECT_EQ(cluster.nominated_node(pod->key()), late);
  ASSERT_EQ(cluster.nominated(late).size(), 1U);
  cluster.upsert_node(world.node("late"));
  EXPECT_EQ(cluster.nominated(late).size(), 1U) << "once, however often the node comes";
}

TEST(Cluster, ANominationDoesNotOutliveItsNode) {
  RandomWorld world(23);
  Cluster cluster;
  const NodeIndex slot = cluster.upsert_node(world.node("old"));
  auto pod = std::make_shared<model::PodView>(*world.pod("waiting"));
  pod->nominated_node_name = "old";
  cluster.upsert_pod(pod);
  ASSERT_TRUE(cluster.is_nominated(pod->key()));
  cluster.remove_node("old");
  EXPECT_FALSE(cluster.is_nominated(pod->key()));
  EXPECT_FALSE(cluster.has_nominations());
  EXPECT_EQ(cluster.nominated_affinity_pods(), 0U);
  // Another node takes the slot; nobody waits for room on it.
  ASSERT_EQ(cluster.upsert_node(world.node("new")), slot);
  EXPECT_TRUE(cluster.nominated(slot).empty());
  EXPECT_FALSE(cluster.has_nominations());
  const NodeIndex again = cluster.upsert_node(world.node("old"));
  EXPECT_EQ(cluster.nominated_node(pod->key()), again) << "the pod still says so";
  cluster.remove_pod(pod->key());
  cluster.remove_node("old");
  cluster.upsert_node(world.node("old"));
  EXPECT_FALSE(cluster.has_nominations());
}

Decision decide(Cluster& cluster, const model::PodView& pod) {
  Engine engine(cluster);
  return engine.schedule(default_framework(cluster.era()), PodInfo::make(std::make_shared<model::PodView>(pod), cluster.era()));
}

TEST(Cluster, AWorkloadsStatusIsNoNews) {
  Cluster cluster;
  const auto set = [](int replicas, const char* app) {
    return json::Value{{"kind", "ReplicaSet"},
                       {"metadata", {{"namespace", "default"}, {"name", "web"}}},
                       {"spec", {{"selector", {{"matchLabels", {{"app", app}}}}}}},
                       {"status", {{"replicas", replicas}}}};
  };
  cluster.upsert(set(1, "web"));
  const auto version = cluster.workloads_version();
  cluster.upsert(set(2, "web"));
  EXPECT_EQ(cluster.workloads_version(), version);
  cluster.upsert(set(2, "db"));
  EXPECT_GT(cluster.workloads_version(), version);
}

TEST(BadInput, AbsurdQuantitiesAreRefusedInWords) {
  for (const Era era : {Era::k120, Era::k136}) {
    RandomWorld world(17);
    Cluster cluster(era);
    auto node = std::make_shared<model::NodeView>();
    node->meta.name = "n";
    node->allocatable = {
        {"cpu", *Quantity::parse("9e30")}, {"memory", *Quantity::parse("-1Gi")}, {"pods", Quantity::from_value(INT64_MAX)}};
    cluster.upsert_node(node);
    model::PodView pod;
    pod.meta.name = "p";
    pod.meta.ns = "default";
    model::ContainerView container;
    container.requests = {{"cpu", *Quantity::parse("8Ei")}, {"memory", *Quantity::parse("8Ei")}};
    pod.containers = {container, container, container};
    const auto decision = decide(cluster, pod);
    EXPECT_EQ(decision.outcome, Decision::Outcome::kUnschedulable);
    for (int i = 0; i < 5; ++i) {
      pod.meta.name = "bound" + std::to_string(i);
      pod.node_name = "n";
      cluster.upsert_pod(std::make_shared<model::PodView>(pod));
    }
    EXPECT_EQ(cluster.find_node("n")->requested.memory_bytes, INT64_MAX);
    for (int i = 0; i < 5; ++i) cluster.remove("Pod", "default", "bound" + std::to_string(i));
    EXPECT_EQ(cluster.find_node("n")->requested.memory_bytes, 0);
  }
}

TEST(BadInput, TenThousandTaintsAndLabels) {
  Cluster cluster;
  auto node = std::make_shared<model::NodeView>();
  node->meta.name = "n";
  std::vector<std::pair<std::string, std::string>> labels;
  for (int i = 0; i < 10'000; ++i) {
    labels.emplace_back("key" + std::to_string(i), "v");
    node->taints.push_back({"taint" + std::to_string(i), "", "PreferNoSchedule"});
  }
  node->meta.labels = model::Labels(std::move(labels));
  node->allocatable = {{"cpu", Quantity::from_value(4)}, {"memory", Quantity::from_value(1LL << 33)}, {"pods", Quantity::from_value(10)}};
  cluster.upsert_node(node);
  model::PodView pod;
  pod.meta.name = "p";
  pod.containers.emplace_back();
  EXPECT_EQ(decide(cluster, pod).outcome, Decision::Outcome::kScheduled);
}

TEST(BadInput, ANodeWithNothingTakesNothing) {
  Cluster cluster;
  auto node = std::make_shared<model::NodeView>();
  node->meta.name = "n";
  cluster.upsert_node(node);
  model::PodView pod;
  pod.meta.name = "p";
  const auto decision = decide(cluster, pod);
  ASSERT_EQ(decision.outcome, Decision::Outcome::kUnschedulable);
  EXPECT_EQ(fit_error_message(*decision.diagnosis, Era::k136, ""), "0/1 nodes are available: 1 Too many pods.");
}

TEST(BadInput, AClusterWithoutNodesSaysSo) {
  Cluster cluster;
  model::PodView pod;
  pod.meta.name = "p";
  pod.node_name = "";
  const auto decision = decide(cluster, pod);
  EXPECT_EQ(decision.outcome, Decision::Outcome::kError);
  EXPECT_EQ(decision.error, "no nodes available to schedule pods");
}

/// A node that goes while pods are left on it, and comes again, is what it is told to be now.
TEST(ClusterNodes, OneThatComesAgainHasNothingOfTheFormerOne) {
  Cluster cluster(Era::k136);
  const auto node = [](const char* cpu) {
    return json::Value{{"kind", "Node"}, {"metadata", {{"name", "n"}}}, {"status", {{"allocatable", {{"cpu", cpu}, {"pods", "9"}}}}}};
  };
  const json::Value topology{{"kind", "NodeResourceTopology"}, {"metadata", {{"name", "n"}}}, {"zones", json::Array{}}};
  cluster.upsert(node("4"));
  cluster.upsert(topology);
  cluster.upsert(json::Value{{"kind", "Pod"}, {"metadata", {{"name", "p"}, {"namespace", "default"}}}, {"spec", {{"nodeName", "n"}}}});
  EXPECT_NE(cluster.find_node("n")->topology, nullptr);
  cluster.remove_node("n");
  ASSERT_NE(cluster.find_node("n"), nullptr) << "its pod is there";
  EXPECT_EQ(cluster.find_node("n")->allocatable.cpu_milli, 0);
  EXPECT_EQ(cluster.find_node("n")->topology, nullptr);
  cluster.remove("NodeResourceTopology", "", "n");
  cluster.upsert(node("2"));
  EXPECT_EQ(cluster.find_node("n")->allocatable.cpu_milli, 2000);
  EXPECT_EQ(cluster.find_node("n")->topology, nullptr);
  cluster.upsert(topology);
  EXPECT_NE(cluster.find_node("n")->topology, nullptr);
}

/// What is made anew under its name is another: of an attachment its node, of a claim what was about to be given.
TEST(ClusterObjects, NamesakesReplaceWholly) {
  Cluster cluster(Era::k136);
  const auto attach = [&](const char* node) {
    cluster.upsert(json::Value{{"kind", "VolumeAttachment"},
                               {"metadata", {{"name", "a"}}},
                               {"spec", {{"attacher", "csi.x"}, {"nodeName", node}, {"source", {{"persistentVolumeName", "v"}}}}}});
  };
  attach("n1");
  attach("n2");
  ASSERT_EQ(cluster.volume_attachments().size(), 1U);
  EXPECT_EQ(cluster.volume_attachments().begin()->second->node_name, "n2");
  EXPECT_TRUE(cluster.remove("VolumeAttachment", "", "a"));
  EXPECT_TRUE(cluster.volume_attachments().empty());
  EXPECT_FALSE(cluster.remove("VolumeAttachment", "", "a"));

  const auto claim = [&](const char* uid, bool is_allocated) {
    json::Value one{{"kind", "ResourceClaim"}, {"metadata", {{"name", "c"}, {"namespace", "default"}, {"uid", uid}}}};
    if (is_allocated) json::set(one, {"status", "allocation"}, json::Object{{"devices", json::Object{{"results", json::Array{}}}}});
    cluster.upsert(one);
  };
  const auto given = std::make_shared<const model::Allocation>();
  const auto is_pending = [&](const char* uid) { return cluster.pending_allocation(uid) != nullptr; };
  claim("u1", false);
  cluster.set_pending_allocation("u1", given);
  claim("u1", false);
  EXPECT_TRUE(is_pending("u1")) << "a change that says nothing of devices";
  claim("u1", true);
  EXPECT_FALSE(is_pending("u1")) << "it has them";
  cluster.set_pending_allocation("u1", given);
  EXPECT_TRUE(cluster.remove("ResourceClaim", "default", "c"));
  EXPECT_FALSE(is_pending("u1")) << "it is gone";
  cluster.set_pending_allocation("u2", given);
  cluster.hold_pending_allocation("u2", given);
  cluster.drop_pending_allocation("u2", given);
  EXPECT_TRUE(is_pending("u2")) << "two held it";
  cluster.drop_pending_allocation("u2", std::make_shared<const model::Allocation>());
  EXPECT_TRUE(is_pending("u2")) << "another one";
  cluster.drop_pending_allocation("u2", given);
  EXPECT_FALSE(is_pending("u2"));
}

}  // namespace
}  // namespace berth::placement::testing
