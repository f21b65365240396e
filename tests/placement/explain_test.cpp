// What explain says of placed and pending pods (SPEC I3).
#include "placement/explain.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::placement {
namespace {

FrameworkPtr framework() { return *Framework::create(default_profile(Era::k136)); }

json::Value node_document(const std::string& name, const std::string& cpu, json::Object labels = {}, json::Array taints = {}) {
  return {{"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", std::move(labels)}}},
          {"spec", {{"taints", std::move(taints)}}},
          {"status", {{"allocatable", {{"cpu", cpu}, {"memory", "8Gi"}, {"pods", "10"}}}}}};
}

json::Value pod_document(const std::string& name, const std::string& cpu, const std::string& node = "") {
  json::Value out = {{"kind", "Pod"},
                     {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}},
                     {"spec", {{"containers", json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}}}}}};
  if (!node.empty()) json::set(out, {"spec", "nodeName"}, json::Value(node));
  return out;
}

PodInfoPtr pod_of(const json::Value& document) {
  return PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document)), Era::k136);
}

TEST(Explain, APlacedPodSaysWhyItsNodeWon) {
  Cluster cluster;
  cluster.upsert(node_document("busy", "4"));
  cluster.upsert(node_document("idle", "4"));
  cluster.upsert(pod_document("other", "3", "busy"));
  const auto out = explain(framework(), cluster, pod_of(pod_document("web", "500m")));
  EXPECT_EQ(out.verdict, Explanation::Verdict::kFits);
  EXPECT_EQ(out.best_nodes, std::vector<std::string>{"idle"});
  ASSERT_EQ(out.nodes.size(), 2u);
  EXPECT_EQ(out.nodes[0].name, "idle");
  ASSERT_FALSE(out.why_winner.empty());
  EXPECT_NE(out.why_winner.back().find("idle beats busy by"), std::string::npos) << out.why_winner.back();
  EXPECT_NE(out.why_winner.back().find("NodeResourcesFit +"), std::string::npos) << out.why_winner.back();
}

TEST(Explain, ARunningPodIsExplainedAsIfItWereNotThere) {
  Cluster cluster;
  cluster.upsert(node_document("a", "4"));
  cluster.upsert(pod_document("web", "4", "a"));
  const auto out = explain(framework(), cluster, cluster.find_pod("default/web"));
  EXPECT_EQ(out.verdict, Explanation::Verdict::kRuns);
  EXPECT_EQ(out.current_node, "a");
  EXPECT_EQ(out.best_nodes, std::vector<std::string>{"a"});
  EXPECT_TRUE(cluster.pod_node("default/web").is_valid()) << "the cluster itself is not changed";
}

TEST(Explain, APendingPodNamesTheNearestNodeAndWhatItLacks) {
  Cluster cluster;
  cluster.upsert(node_document("small", "1"));
  cluster.upsert(node_document("near", "4"));
  cluster.upsert(pod_document("other", "2500m", "near"));
  const auto out = explain(framework(), cluster, pod_of(pod_document("web", "2")));
  EXPECT_EQ(out.verdict, Explanation::Verdict::kPending);
  EXPECT_EQ(out.nearest_node, "near");
  ASSERT_FALSE(out.nodes.empty());
  EXPECT_EQ(out.nodes[0].lacks, std::vector<std::string>{"cpu: 500m more (asks 2, free 1500m of 4)"});
  ASSERT_EQ(out.relaxations.size(), 1u);
  EXPECT_EQ(out.relaxations[0].changes, std::vector<std::string>{"lower the cpu request from 2 to 1500m"});
  EXPECT_EQ(out.relaxations[0].nodes, std::vector<std::string>{"near"});
  EXPECT_TRUE(out.message.starts_with("0/2 nodes are available: 2 Insufficient cpu.")) << out.message;
}

TEST(Explain, EveryRelaxationThatItNamesWorks) {
  Cluster cluster;
  cluster.upsert(
      node_document("gpu", "4", {{"disk", "ssd"}}, {json::Object{{"key", "dedicated"}, {"value", "gpu"}, {"effect", "NoSchedule"}}}));
  cluster.upsert(node_document("plain", "4", {{"disk", "hdd"}}));
  json::Value document = pod_document("web", "1");
  json::set(document, {"spec", "nodeSelector", "disk"}, "ssd");
  const auto out = explain(framework(), cluster, pod_of(document));
  std::set<std::string> changes;
  for (const auto& one : out.relaxations) {
    EXPECT_EQ(one.changes.size(), 1u);
    changes.insert(one.changes[0] + " -> " + one.nodes[0]);
  }
  EXPECT_EQ(changes,
            (std::set<std::string>{"drop the node selector disk=ssd -> plain", "tolerate the taint dedicated=gpu:NoSchedule -> gpu"}));
}

TEST(Explain, TwoChangesAreTriedWhenOneIsNotEnough) {
  Cluster cluster;
  cluster.upsert(
      node_document("gpu", "1", {{"disk", "hdd"}}, {json::Object{{"key", "dedicated"}, {"value", "gpu"}, {"effect", "NoSchedule"}}}));
  json::Value document = pod_document("web", "1");
  json::set(document, {"spec", "nodeSelector", "disk"}, "ssd");
  const auto out = explain(framework(), cluster, pod_of(document));
  ASSERT_EQ(out.relaxations.size(), 1u);
  EXPECT_EQ(out.relaxations[0].changes.size(), 2u);
}

TEST(Explain, EvictionsAndWhatTheyBreak) {
  Cluster cluster;
  cluster.upsert(node_document("n", "2"));
  json::Value low = pod_document("low", "2", "n");
  json::set(low, {"metadata", "labels", "app"}, "a");
  cluster.upsert(low);
  cluster.upsert(json::Value{{"kind", "PodDisruptionBudget"},
                             {"metadata", {{"name", "keep"}, {"namespace", "default"}}},
                             {"spec", {{"selector", {{"matchLabels", {{"app", "a"}}}}}}},
                             {"status", {{"disruptionsAllowed", 0}}}});
  json::Value high = pod_document("high", "2");
  json::set(high, {"spec", "priority"}, 10);
  auto out = explain(framework(), cluster, pod_of(high));
  ASSERT_TRUE(out.eviction);
  EXPECT_TRUE(out.eviction->is_allowed);
  EXPECT_EQ(out.eviction->victims, std::vector<std::string>{"default/low (priority 0)"});
  EXPECT_EQ(out.eviction->broken_budgets, std::vector<std::string>{"default/keep"});
  EXPECT_EQ(out.eviction->orphans, std::vector<std::string>{"default/low"});

  json::set(high, {"spec", "preemptionPolicy"}, "Never");
  out = explain(framework(), cluster, pod_of(high));
  ASSERT_TRUE(out.eviction);
  EXPECT_FALSE(out.eviction->is_allowed);
}

TEST(Explain, GatesErrorsAndEmptyClusters) {
  Cluster cluster;
  EXPECT_EQ(explain(framework(), cluster, pod_of(pod_document("web", "1"))).verdict, Explanation::Verdict::kError);
  cluster.upsert(node_document("n", "2"));
  json::Value gated = pod_document("web", "1");
  json::set(gated, {"spec", "schedulingGates"}, json::Array{{{"name", "wait"}}});
  const auto out = explain(framework(), cluster, pod_of(gated));
  EXPECT_EQ(out.verdict, Explanation::Verdict::kGated);
  EXPECT_NE(to_text(out, false).find("wait"), std::string::npos);
  EXPECT_EQ(json::get_string(to_json(out), {"verdict"}), "Gated");
}

TEST(Explain, ATopologyKeyThatNoNodeHasIsNamedWithThoseThatAreThere) {
  Cluster cluster;
  cluster.upsert(node_document("a", "4", {{"rack", "r1"}, {"kubernetes.io/hostname", "a"}}));
  cluster.upsert(node_document("b", "4", {{"kubernetes.io/hostname", "b"}}));
  json::Value other = pod_document("s1", "1", "a");
  json::set(other, {"metadata", "labels"}, json::Object{{"security", "S1"}});
  cluster.upsert(other);
  const auto notes_for = [&](const char* key) {
    json::Value pod = pod_document("near", "1");
    json::set(pod, {"spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
              json::Array{{{"topologyKey", key}, {"labelSelector", {{"matchLabels", {{"security", "S1"}}}}}}});
    return explain(framework(), cluster, pod_of(pod)).notes;
  };
  EXPECT_EQ(notes_for("failure-domain.beta.kubernetes.io/zone"),
            std::vector<std::string>{"No node has the label failure-domain.beta.kubernetes.io/zone, which the pod's podAffinity names as "
                                     "topologyKey; nodes have kubernetes.io/hostname, rack"});
  EXPECT_TRUE(notes_for("rack").empty()) << "one node with it is enough";
}

}  // namespace
}  // namespace berth::placement
