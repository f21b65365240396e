// What explain says of placed and pending pods (SPEC I3).
#include "placement/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

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
  EXPECT_EQ(out.nodes[0].lacks, std::vector<std::string>{"cpu: 500m more (asks 2, free 1.5 of 4)"});
  ASSERT_EQ(out.relaxations.size(), 1u);
  EXPECT_EQ(out.relaxations[0].changes, std::vector<std::string>{"lower the cpu request from 2 to 1.5"});
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

/// The table's row of a node: from its name to the next node's.
std::string row_of(const Explanation& explanation, const std::string& node) {
  const auto report = std::ranges::find(explanation.nodes, node, &NodeReport::name);
  std::string out;
  for (const auto& rejection : report->rejections) out += fmt::format("{}: {}\n", rejection.plugin, fmt::join(rejection.lacks, ", "));
  return out;
}

TEST(Explain, TheTableNamesTheTaintTheLabelAndTheValuesThereAre) {
  Cluster cluster;
  cluster.upsert(
      node_document("tainted", "4", {{"zone", "emea"}}, {json::Object{{"key", "gpu"}, {"value", "a100"}, {"effect", "NoSchedule"}}}));
  cluster.upsert(node_document("bare", "4"));
  json::Value pod = pod_document("web", "1");
  json::set(pod, {"spec", "nodeSelector"}, json::Object{{"zone", "emeea"}});
  const auto out = explain(framework(), cluster, pod_of(pod));
  EXPECT_EQ(row_of(out, "tainted"),
            "TaintToleration: a toleration for gpu=a100:NoSchedule\nNodeAffinity: the label zone=emeea (has emea)\n");
  EXPECT_EQ(row_of(out, "bare"), "NodeAffinity: the label zone=emeea (the nodes have emea)\n");
  const std::string text = to_text(out, false);
  EXPECT_NE(text.find("bare     NodeAffinity: would need the label zone=emeea (the nodes have emea)"), std::string::npos) << text;
}

TEST(Explain, AKeyThatNoNodeHasIsNamedWithTheOneThatWasMeant) {
  Cluster cluster;
  cluster.upsert(node_document("a", "4", {{"topology.kubernetes.io/zone", "z1"}}));
  json::Value pod = pod_document("web", "1");
  json::set(
      pod, {"spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
      json::Array{{{"topologyKey", "failure-domain.beta.kubernetes.io/zone"}, {"labelSelector", {{"matchLabels", {{"security", "S1"}}}}}}});
  const auto out = explain(framework(), cluster, pod_of(pod));
  EXPECT_EQ(
      row_of(out, "a"),
      "InterPodAffinity: the label failure-domain.beta.kubernetes.io/zone (no node has that key; there is topology.kubernetes.io/zone)\n");
}

TEST(Explain, TheHolderOfAPortIsNamed) {
  Cluster cluster;
  cluster.upsert(node_document("a", "4"));
  const auto with_port = [](json::Value pod) {
    json::find(pod, {"spec", "containers"})->get_array()[0].get_object()["ports"] =
        json::Array{json::Object{{"containerPort", 80}, {"hostPort", 8080}, {"protocol", "TCP"}}};
    return pod;
  };
  cluster.upsert(with_port(pod_document("holder", "1", "a")));
  const auto out = explain(framework(), cluster, pod_of(with_port(pod_document("web", "1"))));
  EXPECT_EQ(row_of(out, "a"), "NodePorts: the host port 8080/TCP (held by default/holder)\n");
}

TEST(Explain, AntiAffinityNamesThePodInTheWay) {
  Cluster cluster;
  cluster.upsert(node_document("a", "4", {{"kubernetes.io/hostname", "a"}}));
  json::Value first = pod_document("pod-s1", "1", "a");
  json::set(first, {"metadata", "labels"}, json::Object{{"security", "s1"}});
  cluster.upsert(first);
  json::Value pod = pod_document("pod-s2", "1");
  json::set(pod, {"spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
            json::Array{{{"topologyKey", "kubernetes.io/hostname"}, {"labelSelector", {{"matchLabels", {{"security", "s1"}}}}}}});
  const auto out = explain(framework(), cluster, pod_of(pod));
  EXPECT_EQ(row_of(out, "a"), "InterPodAffinity: to be without default/pod-s1 in kubernetes.io/hostname=a, which matches security=s1\n");
}

TEST(Explain, TheNearestNodeOfAPinnedPodIsItsNode) {
  Cluster cluster;
  cluster.upsert(node_document("nearly", "4", {{"kubernetes.io/hostname", "nearly"}}));
  cluster.upsert(node_document("its-own", "1", {{"kubernetes.io/hostname", "its-own"}},
                               {json::Object{{"key", "a"}, {"value", "b"}, {"effect", "NoSchedule"}}}));
  for (const char* how : {"nodeName", "hostname", "matchFields"}) {
    json::Value pod = pod_document("web", "3");
    if (how == std::string("nodeName")) json::set(pod, {"spec", "nodeName"}, json::Value("its-own"));
    if (how == std::string("hostname")) json::set(pod, {"spec", "nodeSelector"}, json::Object{{"kubernetes.io/hostname", "its-own"}});
    if (how == std::string("matchFields"))
      json::set(
          pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"},
          json::Array{{{"matchFields", json::Array{{{"key", "metadata.name"}, {"operator", "In"}, {"values", json::Array{"its-own"}}}}}}});
    EXPECT_EQ(explain(framework(), cluster, pod_of(pod)).nearest_node, "its-own") << how;
  }
}

TEST(Explain, APodPinnedToANodeThatIsNotThereSaysSo) {
  Cluster cluster;
  cluster.upsert(node_document("a", "4"));
  json::Value pod = pod_document("web", "1");
  json::set(pod, {"spec", "nodeSelector"}, json::Object{{"kubernetes.io/hostname", "gone"}});
  EXPECT_NE(explain(framework(), cluster, pod_of(pod)).summary.find("it is pinned to gone, which is not there"), std::string::npos);
}

TEST(Explain, ChangesOfNodesAreProposedAndFewest) {
  Cluster cluster;
  cluster.upsert(node_document("node1", "4", {{"zone", "emea"}},
                               {json::Object{{"key", "dedicated"}, {"value", "x"}, {"effect", "NoSchedule"}},
                                json::Object{{"key", "soft"}, {"effect", "PreferNoSchedule"}}}));
  json::Value pod = pod_document("web", "1");
  json::set(pod, {"spec", "nodeSelector"}, json::Object{{"zone", "us"}});
  const auto out = explain(framework(), cluster, pod_of(pod));
  ASSERT_EQ(out.node_changes.size(), 1u);
  EXPECT_EQ(out.node_changes[0].commands,
            (std::vector<std::string>{"kubectl taint node node1 dedicated=x:NoSchedule-", "kubectl label node node1 zone=us --overwrite"}));
}

TEST(Explain, AFullNodeIsNotRelabelledButAnotherLikeItWouldDo) {
  Cluster cluster;
  cluster.upsert(node_document("node1", "4"));
  cluster.upsert(pod_document("big", "4", "node1"));
  const auto out = explain(framework(), cluster, pod_of(pod_document("web", "2")));
  ASSERT_EQ(out.node_changes.size(), 1u);
  EXPECT_TRUE(out.node_changes[0].is_new_node);
  EXPECT_EQ(out.node_changes[0].node, "node1");
  EXPECT_TRUE(explain(framework(), cluster, pod_of(pod_document("huge", "8"))).node_changes.empty());
}

TEST(Explain, TaintsOfConditionsAreNoChangeToPropose) {
  Cluster cluster;
  cluster.upsert(node_document("node1", "4", {}, {json::Object{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoSchedule"}}}));
  EXPECT_TRUE(explain(framework(), cluster, pod_of(pod_document("web", "1"))).node_changes.empty());
}

TEST(Explain, ARunningPodThatWouldFitNowhereTodayIsSaidToRun) {
  Cluster cluster;
  cluster.upsert(node_document("a", "4", {}, {json::Object{{"key", "k"}, {"value", "v"}, {"effect", "NoSchedule"}}}));
  cluster.upsert(pod_document("web", "1", "a"));
  const auto out = explain(framework(), cluster, cluster.find_pod("default/web"));
  EXPECT_NE(out.summary.find("default/web runs on a, but today it would fit on none of 1 nodes"), std::string::npos) << out.summary;
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

TEST(Explain, ItsTextIsATable) {
  Cluster cluster;
  cluster.upsert(node_document("small", "1"));
  cluster.upsert(node_document("a-longer-name", "2"));
  cluster.upsert(pod_document("low", "2", "a-longer-name"));
  json::Value high = pod_document("high", "2");
  json::set(high, {"spec", "priority"}, 10);
  EXPECT_EQ(to_text(explain(framework(), cluster, pod_of(high)), false), R"(default/high fits on none of 2 nodes.
  0/2 nodes are available: 2 Insufficient cpu.

Nearest node: a-longer-name; it would need
  - cpu: 2 more (asks 2, free 0 of 2)

The smallest change of the pod that would place it, any one of:
  - lower the cpu request from 2 to 1 -> small

Or a change of the nodes, any one of:
  - one more node like a-longer-name

Preemption would evict on a-longer-name:
  - default/low (priority 0)
  Nothing would make these anew: default/low.

NODE           VERDICT
a-longer-name  NodeResourcesFit: would need cpu: 2 more (asks 2, free 0 of 2)
small          NodeResourcesFit: would need cpu: 1 more (asks 2, free 1 of 1)
)");
  EXPECT_EQ(to_text(explain(framework(), cluster, pod_of(high)), true), R"(default/high fits on none of 2 nodes.
  0/2 nodes are available: 2 Insufficient cpu.

Nearest node: a-longer-name; it would need
  - cpu: 2 more (asks 2, free 0 of 2)

The smallest change of the pod that would place it, any one of:
  - lower the cpu request from 2 to 1 -> small

Or a change of the nodes, any one of:
  - one more node like a-longer-name

Preemption would evict on a-longer-name:
  - default/low (priority 0)
  Nothing would make these anew: default/low.

NODE           VERDICT
a-longer-name  NodeResourcesFit: would need cpu: 2 more (asks 2, free 0 of 2)
                 Insufficient cpu
                 (evicting pods could help)
small          NodeResourcesFit: would need cpu: 1 more (asks 2, free 1 of 1)
                 Insufficient cpu
                 (evicting pods cannot help)
)");
  Cluster large;
  for (int i = 0; i < 12; ++i) large.upsert(node_document(fmt::format("n{:02}", i), "4"));
  const Explanation fits = explain(framework(), large, pod_of(pod_document("web", "1")));
  const std::string text = to_text(fits, false), wide = to_text(fits, true);
  EXPECT_NE(text.find("\n... and 2 more nodes (-o wide shows all)\n"), std::string::npos) << text;
  EXPECT_EQ(wide.find("more nodes"), std::string::npos);
  EXPECT_EQ(std::ranges::count(wide, '\n') - std::ranges::count(text, '\n'), 1);
  EXPECT_EQ(text.find(" = "), std::string::npos);
  EXPECT_NE(wide.find(" = "), std::string::npos) << "with the score's parts";
}

TEST(Explain, ItsDocumentSaysOfEachNodeWhatItsTextSays) {
  Cluster cluster;
  cluster.upsert(node_document("fits", "4"));
  cluster.upsert(node_document("small", "1"));
  cluster.upsert(node_document("busy", "4"));
  cluster.upsert(pod_document("other", "3", "busy"));
  cluster.upsert(node_document("tainted", "4", {}, {{{"key", "k"}, {"value", "v"}, {"effect", "NoSchedule"}}}));
  const json::Value out = to_json(explain(framework(), cluster, pod_of(pod_document("web", "2"))));
  std::map<std::string, json::Value> nodes;
  for (const json::Value& one : json::get_array(out, {"nodes"})) nodes[std::string(json::get_string(one, {"name"}))] = one;
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_TRUE(json::get_bool(nodes["fits"], {"feasible"}));
  EXPECT_FALSE(json::get_object(nodes["fits"], {"scores"}).empty());
  EXPECT_EQ(json::find(nodes["fits"], "rejections"), nullptr);
  const json::Array& small = json::get_array(nodes["small"], {"rejections"});
  ASSERT_EQ(small.size(), 1u);
  EXPECT_EQ(json::get_string(small[0], {"plugin"}), "NodeResourcesFit");
  EXPECT_EQ(json::get_string(small[0], {"code"}), "UnschedulableAndUnresolvable") << "whoever leaves, it is too small";
  ASSERT_EQ(json::get_array(nodes["busy"], {"rejections"}).size(), 1u);
  EXPECT_EQ(json::get_string(json::get_array(nodes["busy"], {"rejections"})[0], {"code"}), "Unschedulable");
  EXPECT_EQ(json::serialize(*json::find(small[0], "reasons")), R"(["Insufficient cpu"])");
  const json::Array& tainted = json::get_array(nodes["tainted"], {"rejections"});
  ASSERT_EQ(tainted.size(), 1u);
  EXPECT_EQ(json::get_string(tainted[0], {"plugin"}), "TaintToleration");
  EXPECT_EQ(json::get_string(tainted[0], {"code"}), "UnschedulableAndUnresolvable");
  EXPECT_FALSE(json::get_bool(nodes["tainted"], {"feasible"}, true));
  EXPECT_EQ(json::serialize(*json::find(out, "bestNodes")), R"(["fits"])");
  EXPECT_EQ(json::get_string(out, {"verdict"}), "Fits");
}

}  // namespace
}  // namespace berth::placement
