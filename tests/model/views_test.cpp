#include <gtest/gtest.h>

#include "model/views/node_view.h"
#include "model/views/pod_view.h"

namespace berth::model {
namespace {

TEST(PodView, TakesFieldsAsTheyStand) {
  const auto document =
      json::parse(R"({"metadata":{"name":"p","namespace":"n","labels":{"a":"b"},"deletionTimestamp":"2026-01-01T00:00:00Z"},
    "spec":{"priority":7,"preemptionPolicy":"Never","containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"0.5","memory":128}},
      "ports":[{"containerPort":80},{"hostPort":90,"protocol":"UDP"}]}],
      "initContainers":[{"name":"s","restartPolicy":"Always"}],
      "topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]},
    "status":{"phase":"Running","nominatedNodeName":"x"}})");
  ASSERT_TRUE(document);
  const PodView pod = PodView::parse(*document);
  EXPECT_EQ(pod.key(), "n/p");
  EXPECT_TRUE(pod.meta.is_deleting);
  EXPECT_TRUE(pod.preemption_never);
  ASSERT_EQ(pod.containers.size(), 1U);
  EXPECT_EQ(find_resource(pod.containers[0].requests, "cpu")->milli_value(), 500);
  EXPECT_EQ(find_resource(pod.containers[0].requests, "memory")->value(), 128);
  ASSERT_EQ(pod.containers[0].host_ports.size(), 1U);
  EXPECT_EQ(pod.containers[0].host_ports[0].protocol, "UDP");
  EXPECT_TRUE(pod.init_containers[0].restarts_always);
  EXPECT_TRUE(pod.spread_constraints[0].is_hard);
  EXPECT_TRUE(pod.spread_constraints[0].selector.is_everything());
  EXPECT_EQ(pod.nominated_node_name, "x");
}

TEST(Views, SurviveAnyJson) {
  for (const char* text :
       {"null", "[]", "3", R"({"metadata":[],"spec":3,"status":"x"})",
        R"({"metadata":{"labels":[1],"ownerReferences":{"a":1}},"spec":{"containers":[null,3,{"resources":{"requests":[]}}],
                              "tolerations":[[]],"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[null,{"labelSelector":4}]}},
                              "taints":[1,{}]},"status":{"allocatable":{"cpu":{},"memory":"-12Zi"},"images":[{}]}})"}) {
    const auto document = json::parse(text);
    ASSERT_TRUE(document) << text;
    (void)PodView::parse(*document);
    (void)NodeView::parse(*document);
  }
}

TEST(Toleration, MatchesAsKubernetesDoes) {
  const Taint taint{"dedicated", "a", "NoSchedule"};
  EXPECT_TRUE((Toleration{"dedicated", "Equal", "a", "NoSchedule", {}}).tolerates(taint));
  EXPECT_TRUE((Toleration{"dedicated", "", "a", "", {}}).tolerates(taint));
  EXPECT_TRUE((Toleration{"", "Exists", "", "", {}}).tolerates(taint));
  EXPECT_FALSE((Toleration{"dedicated", "Equal", "b", "", {}}).tolerates(taint));
  EXPECT_FALSE((Toleration{"dedicated", "Exists", "", "NoExecute", {}}).tolerates(taint));
}

TEST(NodeSelector, TermsAreOredAndExpressionsAnded) {
  const auto document = json::parse(R"({"nodeSelectorTerms":[
    {"matchExpressions":[{"key":"gen","operator":"Gt","values":["5"]},{"key":"disk","operator":"In","values":["ssd"]}]},
    {"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}, {}, {"matchExpressions":[{"key":"x","operator":"Near"}]}]})");
  const NodeSelector selector = NodeSelector::parse(*document);
  const Labels fast(std::vector<std::pair<std::string, std::string>>{{"disk", "ssd"}, {"gen", "6"}});
  EXPECT_TRUE(selector.matches(fast, "n2"));
  EXPECT_TRUE(selector.matches({}, "n1"));
  EXPECT_FALSE(selector.matches({}, "n2"));
}

TEST(PodView, PodsOfATemplateHaveWhatIsAlikeOnce) {
  const auto read = [](std::string_view suffix) {
    const auto document = json::parse(fmt::format(R"({{"metadata":{{"name":"web-{0}","uid":"{0}","labels":{{"app":"web"}},
      "ownerReferences":[{{"kind":"ReplicaSet","name":"web","uid":"r","controller":true}}]}},
      "spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"1"}}}}}}],"nodeSelector":{{"disk":"ssd"}},
      "tolerations":[{{"key":"k","operator":"Exists"}}],"volumes":[{{"name":"kube-api-access-{0}","projected":{{}}}}],
      "affinity":{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{{"topologyKey":"zone",
      "labelSelector":{{"matchLabels":{{"app":"web"}}}}}}]}}}}}}}})",
                                                  suffix));
    return PodView::parse(*document);
  };
  const PodView a = read("a"), b = read("b");
  EXPECT_NE(a.name(), b.name());
  EXPECT_EQ(&*a.meta.labels.pairs(), &*b.meta.labels.pairs());
  EXPECT_EQ(&*a.meta.owner_references, &*b.meta.owner_references);
  EXPECT_EQ(&*a.containers, &*b.containers);
  EXPECT_EQ(&*a.node_selector, &*b.node_selector);
  EXPECT_EQ(&*a.tolerations, &*b.tolerations);
  EXPECT_EQ(&*a.volumes, &*b.volumes);
  EXPECT_EQ(&*a.required_anti_affinity, &*b.required_anti_affinity);
}

}  // namespace
}  // namespace berth::model
