// /configz: the configuration with every default filled in, as kube-scheduler 1.36 shows it.
#include "scheduler/config/shown.h"

#include <gtest/gtest.h>

namespace berth::scheduler::config {
namespace {

json::Value shown_of(const std::string& yaml) {
  const auto config = parse(yaml, {});
  EXPECT_TRUE(config) << config.error().message;
  return config ? shown(*config) : json::Value();
}

std::string names(const json::Value& profile, std::string_view point, std::string_view list) {
  std::string out;
  for (const json::Value& one : json::get_array(profile, {"plugins", point, list}))
    out += fmt::format("{}:{} ", json::get_string(one, {"name"}), json::get_int(one, {"weight"}));
  return out;
}

json::Value args(const json::Value& profile, std::string_view plugin) {
  for (const json::Value& one : json::get_array(profile, {"pluginConfig"}))
    if (json::get_string(one, {"name"}) == plugin) return *json::find(one, {"args"});
  return {};
}

TEST(ShownConfiguration, DefaultsAreFilledIn) {
  const json::Value shown = shown_of("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n");
  EXPECT_EQ(json::get_string(shown, {"apiVersion"}), "kubescheduler.config.k8s.io/v1");
  EXPECT_EQ(json::get_int(shown, {"parallelism"}), 16);
  EXPECT_EQ(json::get_string(shown, {"leaderElection", "leaseDuration"}), "12s");
  EXPECT_EQ(json::get_int(shown, {"clientConnection", "qps"}), 50);
  EXPECT_EQ(json::find(shown, {"extenders"}), nullptr);
  const json::Value& profile = json::get_array(shown, {"profiles"})[0];
  EXPECT_EQ(json::get_string(profile, {"schedulerName"}), "default-scheduler");
  EXPECT_TRUE(names(profile, "multiPoint", "enabled")
                  .starts_with("SchedulingGates:0 PrioritySort:0 NodeUnschedulable:0 NodeName:0 TaintToleration:3"));
  EXPECT_EQ(*json::find(profile, {"plugins", "score"}), json::Value(json::Object()));
  EXPECT_EQ(json::get_int(args(profile, "DefaultPreemption"), {"minCandidateNodesAbsolute"}), 100);
  EXPECT_EQ(json::get_string(args(profile, "DynamicResources"), {"bindingTimeout"}), "10m0s");
  EXPECT_EQ(json::get_string(args(profile, "NodeResourcesFit"), {"scoringStrategy", "type"}), "LeastAllocated");
  EXPECT_EQ(json::get_string(args(profile, "PodTopologySpread"), {"kind"}), "PodTopologySpreadArgs");
}

TEST(ShownConfiguration, WhatTheFileSaysIsMergedOverThem) {
  const json::Value shown = shown_of(R"(
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false, leaseDuration: 90s}
profiles:
- schedulerName: mine
  percentageOfNodesToScore: 40
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}
  plugins:
    multiPoint: {enabled: [{name: ImageLocality, weight: 7}], disabled: [{name: PodTopologySpread}]}
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 5}]}
extenders:
- {urlPrefix: "http://x/y", filterVerb: f, httpTimeout: 90s, managedResources: [{name: example.com/a, ignoredByScheduler: true}]}
)");
  EXPECT_EQ(json::get_string(shown, {"leaderElection", "leaseDuration"}), "1m30s");
  EXPECT_EQ(json::get_string(shown, {"leaderElection", "renewDeadline"}), "10s") << "who sets one of the times has Kubernetes' others";
  const json::Value& profile = json::get_array(shown, {"profiles"})[0];
  EXPECT_EQ(json::get_int(profile, {"percentageOfNodesToScore"}), 40);
  const std::string multi = names(profile, "multiPoint", "enabled");
  EXPECT_NE(multi.find("NodeResourcesBalancedAllocation:1 ImageLocality:7 DefaultBinder:0"), std::string::npos)
      << "in its place: " << multi;
  EXPECT_EQ(multi.find("PodTopologySpread"), std::string::npos);
  EXPECT_EQ(names(profile, "multiPoint", "disabled"), "PodTopologySpread:0 ");
  EXPECT_EQ(names(profile, "score", "enabled"), "NodeResourcesFit:5 ");
  EXPECT_TRUE(args(profile, "PodTopologySpread").is_null()) << "not of a plugin that is off";
  const json::Value fit = args(profile, "NodeResourcesFit");
  EXPECT_EQ(json::get_int(json::get_array(fit, {"scoringStrategy", "resources"})[0], {"weight"}), 1);
  EXPECT_EQ(json::get_array(fit, {"ignoredResources"})[0], json::Value("example.com/a"));
  const json::Value& extender = json::get_array(shown, {"extenders"})[0];
  EXPECT_EQ(json::get_string(extender, {"httpTimeout"}), "1m30s");
  EXPECT_EQ(json::find(extender, {"ignorable"}), nullptr);
}

TEST(ShownConfiguration, PoliciesShowTheirFinalLists) {
  const json::Value shown =
      shown_of(R"({"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsHostPorts"}], "priorities": []})");
  EXPECT_NE(names(json::get_array(shown, {"profiles"})[0], "filter", "enabled").find("NodePorts"), std::string::npos);
}

}  // namespace
}  // namespace berth::scheduler::config
