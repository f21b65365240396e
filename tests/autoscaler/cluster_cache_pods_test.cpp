// Pods that are read late are the pods that are read at once.
#include <random>

#include "autoscaler/cluster_cache.h"
#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

/// What anybody can see of a cache's pods, in a text.
std::string seen_of(ClusterCache& cache, const std::vector<std::string>& uids) {
  const Snapshot snapshot = cache.snapshot();
  std::string out;
  for (const auto& [key, pod] : cache.pods())
    out += fmt::format("{} {} {} {} {}{}{}; ", key, pod->view().meta.uid, pod->view().phase, pod->view().node_name, pod->facts.is_evicted,
                       pod->facts.is_disrupted, pod->facts.deletion_time.has_value());
  for (const auto& [key, pod] : cache.unplaced_pods()) out += "waits " + key + "; ";
  for (const placement::NodeInfo* node : cache.cluster().nodes()) {
    out += node->name + ":";
    for (const placement::PodInfoPtr& pod : node->pods) out += fmt::format(" {}/{}", pod->key, pod->view().phase);
    out += fmt::format(" {}m; ", node->requested.cpu_milli);
  }
  for (const std::string& uid : uids)
    if (snapshot.moves->is_moved(uid)) out += "moved " + uid + "; ";
  return out;
}

/// One pod's life, in whatever order chance has it.
struct Life {
  std::string name, uid, node, phase, label = "web", reason;
  bool is_deleting = false;
  int revision = 0;

  [[nodiscard]] std::string text(int number) const {
    std::string conditions;
    if (!reason.empty()) conditions = fmt::format(R"({{"type":"DisruptionTarget","status":"True","reason":"{}"}})", reason);
    return fmt::format(
        R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"namespace":"default","name":"{}","uid":"{}","resourceVersion":"{}",)"
        R"("creationTimestamp":"2026-01-01T00:00:0{}Z"{},"labels":{{"app":"{}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"{}",)"
        R"("name":"web","uid":"web","controller":true}}]}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":)"
        R"({{"cpu":"1"}}}}}}],"restartPolicy":"{}"{}}},"status":{{"phase":"{}","conditions":[{}]}}}})",
        name, uid, revision, number % 10, is_deleting ? R"(,"deletionTimestamp":"2026-01-01T00:01:00Z")" : "", label,
        number % 7 == 0 ? "DaemonSet" : "ReplicaSet", number % 3 == 0 ? "Always" : "Never",
        node.empty() ? "" : fmt::format(R"(,"nodeName":"{}")", node), phase, conditions);
  }
};

class BothWays : public ::testing::TestWithParam<unsigned> {};

/// One cache reads every revision when it comes, the other when it is asked: whoever asks them both, whenever, hears the same.
TEST_P(BothWays, EndInTheSame) {
  std::mt19937 random(GetParam());
  const auto one_of = [&](unsigned count) { return random() % count; };
  ClusterCache at_once, late;
  for (const char* name : {"n1", "n2"})
    for (ClusterCache* cache : {&at_once, &late}) cache->upsert(yaml(fmt::format("kind: Node\nmetadata: {{name: {}}}", name)));
  std::vector<std::optional<Life>> lives(6);
  std::vector<std::string> uids;
  int revision = 0;
  for (int step = 0; step < 400; ++step) {
    const unsigned number = one_of(6);
    auto& life = lives[number];
    if (life && one_of(8) == 0) {
      at_once.remove("Pod", "default", life->name);
      late.remove("Pod", "default", life->name);
      life.reset();
    } else {
      if (!life || one_of(20) == 0) {  // Perhaps made again without its end being seen.
        uids.push_back(fmt::format("u{}", revision));
        life = Life{.name = fmt::format("p{}", number), .uid = uids.back(), .phase = "Pending"};
      } else if (life->node.empty() && one_of(2) == 0) {
        life->node = one_of(2) == 0 ? "n1" : "n2";
      } else {
        const unsigned what = one_of(8);
        if (what < 3) life->phase = "Running";
        if (what == 3) life->phase = one_of(2) == 0 ? "Succeeded" : "Failed";
        if (what == 4) life->label = one_of(2) == 0 ? "web" : "shop";
        if (what == 5) life->reason = one_of(2) == 0 ? "EvictionByEvictionAPI" : "PreemptionByScheduler";
        if (what == 6) life->is_deleting = true;
      }
      life->revision = ++revision;
      const std::string text = life->text(static_cast<int>(number));
      at_once.upsert(*json::parse(text));
      late.upsert_pod(std::make_shared<const client::Object>(text));
    }
    if (one_of(10) != 0) continue;
    ASSERT_EQ(seen_of(late, uids), seen_of(at_once, uids)) << "after " << step << " changes";
  }
  EXPECT_EQ(seen_of(late, uids), seen_of(at_once, uids));
}

INSTANTIATE_TEST_SUITE_P(Seeds, BothWays, ::testing::Range(0U, 20U));

/// A cache that nobody asks (of who stands by) keeps no more than the pods that are there.
TEST(ClusterCachePods, WhatCameAndWentUnreadIsNotKept) {
  ClusterCache cache;
  for (int i = 0; i < 5000; ++i) {
    const Life life{.name = fmt::format("p{}", i), .uid = fmt::format("u{}", i), .phase = "Pending"};
    cache.upsert_pod(std::make_shared<const client::Object>(life.text(1)));
    cache.remove("Pod", "default", life.name);
  }
  EXPECT_LE(cache.unread_pods(), 1000U);
  EXPECT_TRUE(cache.pods().empty());
  EXPECT_EQ(cache.unread_pods(), 0U);
}

}  // namespace
}  // namespace berth::autoscaler::testing
