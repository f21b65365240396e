// DeschedulerPolicy, both versions: the documents' examples verbatim, and what is refused with which words (SPEC G1).
#include "descheduler/policy.h"

#include <gtest/gtest.h>

namespace berth::descheduler {
namespace {

constexpr std::string_view kSample = R"(apiVersion: "descheduler/v1alpha1"
kind: "DeschedulerPolicy"
strategies:
  "RemoveDuplicates":
     enabled: false
  "LowNodeUtilization":
     enabled: true
     params:
       nodeResourceUtilizationThresholds:
         thresholds:
           "cpu" : 20
           "memory": 20
           "pods": 20
         targetThresholds:
           "cpu" : 50
           "memory": 50
           "pods": 50
         numberOfNodes: 3
  "RemovePodsViolatingInterPodAntiAffinity":
     enabled: true
  "RemovePodsViolatingNodeAffinity":
    enabled: true
    params:
      nodeAffinityType:
      - "requiredDuringSchedulingIgnoredDuringExecution"
)";

Policy read(std::string_view text) {
  auto policy = parse_policy(text, "policy.yaml");
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().message);
  return policy ? *policy : Policy{};
}
std::string error_of(std::string_view text) {
  const auto policy = parse_policy(text, "policy.yaml");
  EXPECT_FALSE(policy);
  return policy ? "" : policy.error().message;
}
std::string version_1(std::string_view strategies) {
  return "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies:\n" + std::string(strategies);
}
std::string version_2(std::string_view profile) {
  return "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n" + std::string(profile);
}

TEST(DeschedulerPolicy, WhatTheRealOneTakesInSilenceIsRefused) {
  const std::string affinity =
      "  RemovePodsViolatingNodeAffinity: {enabled: true, params: {nodeAffinityType: [requiredDuringScheduling]}}\n";
  EXPECT_NE(error_of(version_1(affinity)).find("did you mean \"requiredDuringSchedulingIgnoredDuringExecution\"?"), std::string::npos);
  EXPECT_NE(error_of(version_2("- name: a\n") + "maxNoOfPodsToEvictPerNod: 3\n").find("policy.yaml:5: "), std::string::npos);
  EXPECT_NE(error_of(version_1("  PodLifeTime: {enabled: true, enabled: false}\n")).find("a second time"), std::string::npos);
  EXPECT_NE(error_of(version_1("  LowNodeUtilization: {enabled: true, params: {nodeResourceUtilizationThresholds: {thresholds: {cup: 20}, "
                               "targetThresholds: {cup: 50}}}}\n"))
                .find("did you mean \"cpu\"?"),
            std::string::npos);
  EXPECT_TRUE(parse_policy(version_1(affinity), "policy.yaml", true)) << "a replay takes it";
}

TEST(DeschedulerPolicy, WhatHasNoEffectIsTold) {
  const Policy policy = read(version_2("- name: a\n  pluginConfig:\n  - name: RemoveDuplicates\n    args: {}\n"));
  ASSERT_EQ(policy.warnings.size(), 1u);
  EXPECT_NE(policy.warnings[0].find("RemoveDuplicates has arguments and is not enabled"), std::string::npos);
}

TEST(DeschedulerPolicy, ReadsTheDocumentsSample) {
  const Policy policy = read(kSample);
  ASSERT_EQ(policy.profiles.size(), 3u);
  const Plugin& low = policy.profiles[0].balance.at(0);
  EXPECT_EQ(low.strategy, Strategy::kLowNodeUtilization);
  EXPECT_EQ(low.utilization.thresholds, (Thresholds{{"cpu", 20}, {"memory", 20}, {"pods", 20}}));
  EXPECT_EQ(low.utilization.target_thresholds, (Thresholds{{"cpu", 50}, {"memory", 50}, {"pods", 50}}));
  EXPECT_EQ(low.utilization.number_of_nodes, 3);
  EXPECT_EQ(policy.profiles[1].deschedule.at(0).strategy, Strategy::kRemovePodsViolatingInterPodAntiAffinity);
  EXPECT_EQ(policy.profiles[2].deschedule.at(0).node_affinity_types,
            (std::vector<std::string>{"requiredDuringSchedulingIgnoredDuringExecution"}));
  EXPECT_TRUE(policy.profiles[0].evictor.protects_local_storage);
}

TEST(DeschedulerPolicy, ReadsTheDocumentsExamplesWithTheirCalloutNumbers) {
  EXPECT_TRUE(read(version_1("  \"RemoveDuplicates\":\n     enabled: false 1\n")).profiles.empty());
  const Policy low = read(version_1(R"(  "LowNodeUtilization":
     enabled: true
     params:
       nodeResourceUtilizationThresholds:
         thresholds: 1
           "cpu" : 20
           "memory": 20
           "pods": 20
         targetThresholds: 2
           "cpu" : 50
           "memory": 50
           "pods": 50
         numberOfNodes: 3 3
)"));
  EXPECT_EQ(low.profiles.at(0).balance.at(0).utilization.number_of_nodes, 3);
  const Policy anti = read(version_1("  \"RemovePodsViolatingInterPodAntiAffinity\": 1\n     enabled: true\n"));
  EXPECT_EQ(anti.profiles.at(0).deschedule.size(), 1u);
  const Policy affinity = read(version_1(R"(  "RemovePodsViolatingNodeAffinity": 1
    enabled: true
    params:
      nodeAffinityType:
      - "requiredDuringSchedulingIgnoredDuringExecution" 2
)"));
  EXPECT_EQ(affinity.profiles.at(0).deschedule.at(0).node_affinity_types.at(0), "requiredDuringSchedulingIgnoredDuringExecution");
}

TEST(DeschedulerPolicy, ReadsTheLaterFieldsOfTheFirstVersion) {
  const Policy policy = read(R"(apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
nodeSelector: "pool=a"
evictLocalStoragePods: true
evictSystemCriticalPods: true
ignorePvcPods: true
maxNoOfPodsToEvictPerNode: 40
maxNoOfPodsToEvictPerNamespace: 10
strategies:
  PodLifeTime:
    enabled: true
    params:
      podLifeTime: {maxPodLifeTimeSeconds: 86400, podStatusPhases: [Pending]}
      namespaces: {include: [a, b]}
      labelSelector: {matchLabels: {app: x}}
      thresholdPriority: 10000
  RemovePodsHavingTooManyRestarts:
    enabled: true
    params:
      podsHavingTooManyRestarts: {podRestartThreshold: 100, includingInitContainers: true}
      nodeFit: true
      thresholdPriorityClassName: high
)");
  EXPECT_EQ(policy.max_evictions_per_node, 40u);
  EXPECT_EQ(policy.max_evictions_per_namespace, 10u);
  EXPECT_EQ(policy.node_selector.to_string(), "pool=a");
  const Profile& life = policy.profiles.at(0);
  EXPECT_FALSE(life.evictor.protects_local_storage || life.evictor.protects_system_critical);
  EXPECT_TRUE(life.evictor.protects_pvc);
  EXPECT_EQ(life.evictor.priority_threshold, 10000);
  EXPECT_TRUE(life.deschedule.at(0).namespaces.admits("b") && !life.deschedule.at(0).namespaces.admits("c"));
  EXPECT_EQ(life.deschedule.at(0).states, (std::set<std::string, std::less<>>{"Pending"}));
  const Profile& restarts = policy.profiles.at(1);
  EXPECT_TRUE(restarts.evictor.node_fit);
  EXPECT_EQ(restarts.evictor.priority_threshold_class, "high");
  EXPECT_EQ(restarts.deschedule.at(0).restart_threshold, 100);
}

TEST(DeschedulerPolicy, ReadsProfilesOfTheSecondVersion) {
  const Policy policy = read(R"(apiVersion: "descheduler/v1alpha2"
kind: "DeschedulerPolicy"
maxNoOfPodsToEvictTotal: 7
gracePeriodSeconds: 60
evictionFailureEventNotification: true
metricsProviders: [{source: KubernetesMetrics}]
profiles:
  - name: ProfileName
    pluginConfig:
    - name: "DefaultEvictor"
      args:
        nodeFit: true
        minReplicas: 2
        minPodAge: "1h"
        priorityThreshold: {value: 5000}
        podProtections:
          defaultDisabled: ["PodsWithLocalStorage"]
          extraEnabled: ["PodsWithPVC"]
          config: {PodsWithPVC: {protectedStorageClasses: [{name: fast}]}}
    - name: "RemoveDuplicates"
    - name: "LowNodeUtilization"
      args:
        thresholds: {"cpu" : 20.5}
        targetThresholds: {"cpu" : 50}
        metricsUtilization: {source: KubernetesMetrics}
        evictionLimits: {node: 2}
        evictableNamespaces: {exclude: [kube-system]}
    - name: "RemovePodsViolatingTopologySpreadConstraint"
      args:
        constraints: [DoNotSchedule, ScheduleAnyway]
    - name: "RemovePodsHavingTooManyRestarts"
      args: {podRestartThreshold: 100, includingInitContainers: true, states: [CrashLoopBackOff]}
    plugins:
      deschedule: {enabled: ["RemovePodsHavingTooManyRestarts"]}
      balance:
        enabled: ["RemovePodsViolatingTopologySpreadConstraint", "LowNodeUtilization", "RemoveDuplicates"]
)");
  EXPECT_EQ(policy.max_evictions_total, 7u);
  EXPECT_EQ(policy.grace_period_seconds, 60);
  EXPECT_TRUE(policy.eviction_failure_events && policy.needs_metrics());
  const Profile& profile = policy.profiles.at(0);
  EXPECT_TRUE(profile.evictor.node_fit && profile.evictor.protects_pvc && !profile.evictor.protects_local_storage);
  EXPECT_EQ(profile.evictor.min_replicas, 2u);
  EXPECT_EQ(profile.evictor.min_pod_age, std::chrono::hours(1));
  EXPECT_TRUE(profile.evictor.protected_storage_classes.contains("fast"));
  ASSERT_EQ(profile.balance.size(), 3u);  // In the order of `enabled`.
  EXPECT_EQ(profile.balance[0].strategy, Strategy::kRemovePodsViolatingTopologySpreadConstraint);
  EXPECT_TRUE(profile.balance[0].hard_constraints && profile.balance[0].soft_constraints);
  EXPECT_EQ(profile.balance[1].utilization.max_evictions_per_node, 2u);
  EXPECT_EQ(profile.balance[1].utilization.thresholds[0].second, 20.5);
  EXPECT_EQ(profile.balance[2].strategy, Strategy::kRemoveDuplicates);
}

TEST(DeschedulerPolicy, NamesLineFieldAndNearestWord) {
  EXPECT_EQ(error_of(version_1("  RemoveDuplicate:\n    enabled: true\n")),
            "policy.yaml:4: strategies.RemoveDuplicate: unknown strategy name: RemoveDuplicate; did you mean \"RemoveDuplicates\"?");
  EXPECT_EQ(error_of(version_1("  RemoveDuplicates:\n    enable: true\n")),
            "policy.yaml:5: strategies.RemoveDuplicates.enable: unknown field \"enable\"; did you mean \"enabled\"?");
  EXPECT_EQ(error_of("apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nmaxNoOfPodsToEvictPerNode: -1\n"),
            "policy.yaml:3: maxNoOfPodsToEvictPerNode: must not be negative, it is -1");
  EXPECT_EQ(error_of("apiVersion: descheduler/v1\nkind: DeschedulerPolicy\n"),
            "policy.yaml:1: apiVersion: must be \"descheduler/v1alpha1\" or \"descheduler/v1alpha2\", not \"descheduler/v1\"");
  EXPECT_EQ(error_of("kind: Policy\napiVersion: descheduler/v1alpha2\n"),
            "policy.yaml:1: kind: must be \"DeschedulerPolicy\", not \"Policy\"");
}

TEST(DeschedulerPolicy, ChecksThresholds) {
  const auto low = [](std::string_view args) {
    return error_of(version_1(
        "  LowNodeUtilization:\n    enabled: true\n    params: {nodeResourceUtilizationThresholds: " + std::string(args) + "}\n"));
  };
  EXPECT_NE(low("{thresholds: {cpu: 120}, targetThresholds: {cpu: 50}}").find("cpu threshold not in [0, 100] range"), std::string::npos);
  EXPECT_NE(low("{thresholds: {cpu: -1}, targetThresholds: {cpu: 50}}").find("cpu threshold not in [0, 100] range"), std::string::npos);
  EXPECT_NE(
      low("{thresholds: {cpu: 60}, targetThresholds: {cpu: 50}}").find("thresholds' cpu percentage is greater than targetThresholds'"),
      std::string::npos);
  EXPECT_NE(
      low("{thresholds: {cpu: 20}, targetThresholds: {memory: 50}}").find("thresholds and targetThresholds configured different resources"),
      std::string::npos);
  EXPECT_NE(low("{thresholds: {cpu: 20}}").find("no resource threshold is configured"), std::string::npos);
  EXPECT_NE(low("{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, numberOfNodes: -2}").find("must not be negative"), std::string::npos);
  // Deviations need not be in order.
  read(
      version_1("  LowNodeUtilization:\n    enabled: true\n    params: {nodeResourceUtilizationThresholds: {useDeviationThresholds: true, "
                "thresholds: {cpu: 60}, targetThresholds: {cpu: 50}}}\n"));
}

TEST(DeschedulerPolicy, ChecksPluginsAndTheirPoints) {
  EXPECT_NE(
      error_of(version_2("- name: p\n  pluginConfig: [{name: RemoveDuplicates}]\n  plugins: {deschedule: {enabled: [RemoveDuplicates]}}\n"))
          .find("profile \"p\" configures deschedule extension point of non-existing plugins: RemoveDuplicates; RemoveDuplicates belongs "
                "to balance"),
      std::string::npos);
  EXPECT_NE(error_of(version_2("- name: p\n  plugins: {balance: {enabled: [RemoveDuplicates]}}\n"))
                .find("unable to find \"RemoveDuplicates\" plugin config"),
            std::string::npos);
  EXPECT_NE(
      error_of(version_2("- name: p\n  pluginConfig: [{name: Foo}]\n")).find("in profile p: plugin Foo in pluginConfig not registered"),
      std::string::npos);
  EXPECT_NE(error_of(version_2("- name: p\n  pluginConfig: [{name: PodLifeTime, args: {}}]\n")).find("at least one filtering criterion"),
            std::string::npos);
  EXPECT_NE(error_of(version_2("- name: p\n  pluginConfig: [{name: RemovePodsHavingTooManyRestarts, args: {podRestartThreshold: 0}}]\n"))
                .find("invalid PodsHavingTooManyRestarts threshold"),
            std::string::npos);
  EXPECT_NE(error_of(version_2("- name: p\n  pluginConfig: [{name: RemoveDuplicates, args: {namespaces: {include: [a], exclude: [b]}}}]\n"))
                .find("only one of Include/Exclude namespaces can be set"),
            std::string::npos);
  EXPECT_NE(error_of(version_2("- name: p\n  pluginConfig: [{name: DefaultEvictor, args: {evictLocalStoragePods: true, podProtections: "
                               "{extraEnabled: [PodsWithPVC]}}}]\n"))
                .find("cannot use Deprecated fields alongside"),
            std::string::npos);
  EXPECT_NE(
      error_of(version_2("- name: p\n  pluginConfig: [{name: DefaultEvictor, args: {podProtections: {extraEnabled: [PodsWithPVCs]}}}]\n"))
          .find("invalid pod protection policy \"PodsWithPVCs\""),
      std::string::npos);
  EXPECT_NE(
      error_of(version_2("- name: p\n  pluginConfig: [{name: LowNodeUtilization, args: {thresholds: {cpu: 1}, targetThresholds: {cpu: 2}, "
                         "metricsUtilization: {source: KubernetesMetrics}}}]\n  plugins: {balance: {enabled: [LowNodeUtilization]}}\n"))
          .find("metricsProviders"),
      std::string::npos);
}

TEST(DeschedulerPolicy, BadInputIsAnErrorNotACrash) {
  for (const char* text :
       {"", "[]", "3", "apiVersion: [", "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: [null, 3, {}]\n",
        "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies: [a]\n",
        "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies: {PodLifeTime: {enabled: true, params: 7}}\n"})
    error_of(text);
}

}  // namespace
}  // namespace berth::descheduler
