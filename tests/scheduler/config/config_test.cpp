// The scheduler's configuration files: what they mean, and what is said about wrong ones (SPEC B2–B5, C5).
#include "scheduler/config/config.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "placement/framework.h"
#include "tests/support/source_dir.h"

namespace berth::scheduler::config {
namespace {

using placement::Era;
using placement::PluginUse;

std::vector<std::string> names(const std::vector<PluginUse>& uses) {
  std::vector<std::string> out;
  for (const auto& use : uses) out.push_back(use.name);
  return out;
}

std::int64_t weight(const placement::Profile& profile, std::string_view plugin) {
  for (const auto& use : profile.score)
    if (use.name == plugin) return use.weight;
  return 0;
}

std::string error_of(std::string_view text) {
  const auto result = parse(text, {.file = "f.yaml"});
  return result ? std::string("(accepted)") : result.error().message;
}

SchedulerConfig config_of(std::string_view text) {
  auto result = parse(text, {.file = "f.yaml"});
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? std::move(*result) : default_config(Era::k136);
}

std::string example(const std::string& name) { return berth::testing::source_dir() + "/examples/scheduler/" + name; }

TEST(Policy, EveryExampleOfTheDocumentsLoads) {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(example(""))) {
    const auto result = load(file.path().string(), {});
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    ++count;
  }
  EXPECT_GE(count, 9u);
}

TEST(Policy, DefaultOfTheDocuments) {
  const auto config = load(example("policy-default.json"), {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->era, Era::k120);
  const auto& profile = config->profiles[0];
  EXPECT_EQ(profile.args.service_affinity.affinity_labels, std::vector<std::string>{"region"});
  EXPECT_EQ(profile.args.service_affinity.anti_affinity_labels_preference, std::vector<std::string>{"zone"});
  EXPECT_EQ(weight(profile, "ServiceAffinity"), 2);
  EXPECT_EQ(weight(profile, "NodePreferAvoidPods"), 10000);
  // It replaces the whole default: nothing that it does not name, beyond the mandatory checks.
  EXPECT_FALSE(profile.has(profile.filter, "PodTopologySpread"));
  EXPECT_FALSE(profile.has(profile.score, "ImageLocality"));
  EXPECT_TRUE(profile.has(profile.filter, "NodeUnschedulable"));
}

TEST(Policy, ANameThatStandsTwiceIsRefused) {
  EXPECT_NE(error_of("kind: Policy\npredicates:\n- {name: NoDiskConflict}\n- {name: NoDiskConflict}\n")
                .find("f.yaml:4: predicates[1].name: Duplicate value: predicate \"NoDiskConflict\" is there already"),
            std::string::npos);
  EXPECT_NE(error_of("kind: Policy\npriorities:\n- {name: EqualPriority, weight: 1}\n- {name: EqualPriority, weight: 2}\n")
                .find("priority \"EqualPriority\" is there already"),
            std::string::npos);
  const auto replayed =
      from_json(*json::parse(R"({"kind":"Policy","predicates":[{"name":"NoDiskConflict"},{"name":"NoDiskConflict"}]})"), {});
  EXPECT_TRUE(replayed) << "kube-scheduler takes it, and so does a replay of what it did";
}

TEST(Component, SlipsThatKubernetesTakesInSilenceAreRefused) {
  const auto with = [](std::string_view profile) {
    return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- " + std::string(profile);
  };
  EXPECT_NE(error_of(with("pluginConfig: [{name: NodeResourceFit, args: {}}]\n")).find("did you mean \"NodeResourcesFit\"?"),
            std::string::npos);
  EXPECT_NE(error_of(with("plugins: {postFilter: {disabled: [{name: DefaultPreemtion}]}}\n")).find("did you mean \"DefaultPreemption\"?"),
            std::string::npos);
  EXPECT_EQ(error_of(with("plugins: {score: {disabled: [{name: SelectorSpread}, {name: Coscheduling}]}}\n")), "(accepted)");
  EXPECT_NE(error_of(with("schedulerName: a\n  schedulerName: b\n")).find("a second time"), std::string::npos);
}

TEST(Component, WhatHasNoEffectIsTold) {
  const auto config = config_of(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 4\n"
      "percentageOfNodesToScore: 30\nbindTimeoutSeconds: 3\nprofiles:\n- pluginConfig:\n  - {name: NodeName, args: {a: 1}}\n");
  ASSERT_EQ(config.notes.size(), 4u) << fmt::format("{}", fmt::join(config.notes, "\n"));
  EXPECT_EQ(config.notes[0], "f.yaml:3: parallelism: has no effect here: decisions are made one after the other");
}

TEST(Policy, CalloutsAndEllipsesOfTheDocumentsAreRead) {
  const auto config = load(example("policy-region-zone-rack-annotated.yaml"), {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->profiles[0].args.service_affinity.affinity_labels, (std::vector<std::string>{"region", "zone"}));
  EXPECT_EQ(weight(config->profiles[0], "ServiceAffinity"), 1);
  const auto modified = load(example("policy-modified.yaml"), {});
  ASSERT_TRUE(modified) << modified.error().message;
  EXPECT_TRUE(modified->profiles[0].has(modified->profiles[0].filter, "NodeResourcesFit"));
  EXPECT_EQ(weight(modified->profiles[0], "ServiceAffinity"), 2);
}

// The configurable predicates and priorities of the documents' chapters 16.2.5.3 and 16.2.6.2, callouts and left-out commas included.
TEST(Policy, ConfigurableExamplesOfTheDocuments) {
  const auto config = load(example("policy-configurable.json"), {});
  ASSERT_TRUE(config) << config.error().message;
  const auto& profile = config->profiles[0];
  EXPECT_EQ(profile.args.service_affinity.affinity_labels, (std::vector<std::string>{"<label>", "rack"}));
  EXPECT_EQ(profile.args.node_label.present_labels, (std::vector<std::string>{"<label>", "rack", "region"}));
  EXPECT_EQ(profile.args.service_affinity.anti_affinity_labels_preference, (std::vector<std::string>{"<label>", "rack"}));
  EXPECT_EQ(profile.args.node_label.present_labels_preference, std::vector<std::string>{"<label>"});
}

TEST(Component, EveryPluginsArgumentsAreRead) {
  const auto config = load(example("kubescheduler-v1-all-args.yaml"), {});
  ASSERT_TRUE(config) << config.error().message;
  const auto& args = config->profiles[0].args;
  EXPECT_EQ(args.fit.strategy, placement::ScoringStrategyType::kRequestedToCapacityRatio);
  EXPECT_EQ(args.fit.shape.size(), 2u);
  EXPECT_EQ(args.fit.ignored_resources, std::vector<std::string>{"example.com/licence"});
  EXPECT_EQ(args.balanced.resources.size(), 3u);
  ASSERT_TRUE(args.added_affinity);
  EXPECT_TRUE(args.added_affinity->required);
  EXPECT_FALSE(args.spread.system_defaulting);
  EXPECT_EQ(args.spread.default_constraints.size(), 1u);
  EXPECT_EQ(args.inter_pod_affinity.hard_pod_affinity_weight, 7);
  EXPECT_TRUE(args.inter_pod_affinity.ignore_preferred_terms_of_existing_pods);
  EXPECT_EQ(args.volume_binding.bind_timeout_seconds, 120);
  EXPECT_TRUE(args.preemption.budgets_are_hard);
  EXPECT_EQ(config->extenders.size(), 1u);
  EXPECT_EQ(config->pod_max_backoff_seconds, 20);
}

TEST(Component, BudgetsAreALastResortUnlessSaidOtherwise) {
  EXPECT_FALSE(default_config(placement::Era::k136).profiles[0].args.preemption.budgets_are_hard);
  const auto wrong = parse(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- pluginConfig:\n  - name: "
      "DefaultPreemption\n    args: {disruptionBudgets: soft}\n",
      {});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("config:6: profiles[0].pluginConfig[0].args.disruptionBudgets: Unsupported value: \"soft\""),
            std::string::npos)
      << wrong.error().message;
}

// 16.2.5.1.2 and 16.2.6.2.
TEST(Policy, NamesAndPreferencesWithoutALabelAreTakenAndTold) {
  const auto bare = config_of("kind: Policy\npredicates:\n- name: CheckNodeLabelPresence\n- name: checkServiceAffinity\npriorities: []\n");
  ASSERT_EQ(bare.notes.size(), 2u) << fmt::format("{}", fmt::join(bare.notes, "\n"));
  EXPECT_TRUE(bare.notes[0].contains("f.yaml:3: predicates[0].name: CheckNodeLabelPresence alone names no label")) << bare.notes[0];
  EXPECT_TRUE(bare.notes[1].contains("the argument serviceAffinity")) << bare.notes[1];
  const auto liked =
      config_of("kind: Policy\npredicates: []\npriorities:\n- name: x\n  weight: 3\n  argument: {labelPreference: {presence: true}}\n");
  EXPECT_EQ(liked.profiles[0].args.node_label.absent_labels_preference, std::vector<std::string>{""});
  EXPECT_TRUE(liked.profiles[0].args.node_label.present_labels_preference.empty());
  EXPECT_EQ(weight(liked.profiles[0], "NodeLabel"), 3);
  EXPECT_EQ(liked.notes.size(), 1u);
  EXPECT_NE(
      error_of("kind: Policy\npriorities:\n- {name: x, weight: 1, argument: {serviceAntiAffinity: {}}}\n").find("a label key is missing"),
      std::string::npos);
}

TEST(Policy, CombinedExample) {
  const auto config = load(example("policy-combined.yaml"), {});
  ASSERT_TRUE(config) << config.error().message;
  const auto& args = config->profiles[0].args;
  EXPECT_EQ(args.node_label.present_labels, std::vector<std::string>{"region"});
  EXPECT_EQ(args.node_label.absent_labels, std::vector<std::string>{"building"});
  EXPECT_EQ(args.node_label.present_labels_preference, std::vector<std::string>{"zone"});
  EXPECT_TRUE(config->profiles[0].has(config->profiles[0].filter, "NodePorts"));
}

TEST(Policy, AllDocumentedNamesAreKnown) {
  for (const char* predicate :
       {"NoVolumeZoneConflict",  "MaxEBSVolumeCount",    "MaxGCEPDVolumeCount",    "MaxAzureDiskVolumeCount",
        "MaxCSIVolumeCountPred", "MaxCinderVolumeCount", "MatchInterPodAffinity",  "NoDiskConflict",
        "GeneralPredicates",     "PodFitsResources",     "PodFitsHostPorts",       "HostName",
        "MatchNodeSelector",     "PodFitsPorts",         "PodToleratesNodeTaints", "PodToleratesNodeNoExecuteTaints",
        "CheckVolumeBinding",    "CheckNodeCondition",   "CheckNodeUnschedulable", "CheckNodeMemoryPressure",
        "CheckNodeDiskPressure", "CheckNodePIDPressure", "CheckNodeLabelPresence", "checkServiceAffinity",
        "EvenPodsSpread"})
    EXPECT_EQ(error_of(fmt::format(R"({{"kind": "Policy", "apiVersion": "v1", "predicates": [{{"name": "{}"}}]}})", predicate)),
              "(accepted)")
        << predicate;
  for (const char* priority : {"SelectorSpreadPriority", "InterPodAffinityPriority", "LeastRequestedPriority", "BalancedResourceAllocation",
                               "NodePreferAvoidPodsPriority", "NodeAffinityPriority", "TaintTolerationPriority", "EqualPriority",
                               "MostRequestedPriority", "ImageLocalityPriority", "ServiceSpreadingPriority", "EvenPodsSpreadPriority"})
    EXPECT_EQ(error_of(fmt::format(R"({{"kind": "Policy", "apiVersion": "v1", "priorities": [{{"name": "{}", "weight": 1}}]}})", priority)),
              "(accepted)")
        << priority;
}

TEST(Policy, ProblemsNameFileLineFieldAndTheNearestName) {
  const std::string text =
      "kind: Policy\napiVersion: v1\npredicates:\n- name: PodFitsResorces\npriorities:\n- name: LeastRequestedPriority\n  weight: 0\n"
      "- name: Zone\n  weight: 2\n  argument:\n    serviceAntiAffinity: {}\n";
  const std::string error = error_of(text);
  EXPECT_NE(
      error.find("f.yaml:4: predicates[0].name: predicate type not found for \"PodFitsResorces\"; did you mean \"PodFitsResources\"?"),
      std::string::npos)
      << error;
  EXPECT_NE(error.find("f.yaml:7: priorities[0].weight: Invalid value: 0: Priority LeastRequestedPriority should have a positive weight"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("priorities[1].argument.serviceAntiAffinity.label: Required value"), std::string::npos) << error;
  EXPECT_NE(error_of("kind: Policy\npriorities:\n- {name: X, weight: -1}\n").find("Invalid value: -1"), std::string::npos);
}

TEST(Component, MultiPointExpandsToTheDefaults) {
  const auto config = config_of("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins: {}\n");
  const auto expected = placement::default_profile(Era::k136);
  const auto& got = config.profiles[0];
  EXPECT_EQ(names(got.pre_filter), names(expected.pre_filter));
  EXPECT_EQ(names(got.filter), names(expected.filter));
  EXPECT_EQ(names(got.pre_score), names(expected.pre_score));
  EXPECT_EQ(got.score, expected.score);
  EXPECT_EQ(names(got.post_filter), names(expected.post_filter));
  EXPECT_EQ(names(got.reserve), names(expected.reserve));
}

TEST(Component, PointsOverrideMultiPoint) {
  const auto config = config_of(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: a\n  plugins:\n"
      "    multiPoint: {enabled: [{name: ImageLocality, weight: 7}], disabled: [{name: NodePorts}]}\n"
      "    score: {enabled: [{name: TaintToleration, weight: 9}], disabled: [{name: PodTopologySpread}]}\n"
      "- schedulerName: b\n  plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity}]}}\n");
  const auto& a = *config.profile("a");
  EXPECT_EQ(a.score[0], (PluginUse{"TaintToleration", 9}));
  EXPECT_EQ(weight(a, "ImageLocality"), 7);
  EXPECT_FALSE(a.has(a.score, "PodTopologySpread"));
  EXPECT_TRUE(a.has(a.filter, "PodTopologySpread"));
  EXPECT_FALSE(a.has(a.filter, "NodePorts"));
  EXPECT_EQ(config.profile("b")->score, (std::vector<PluginUse>{{"NodeAffinity", 1}}));
  EXPECT_EQ(config.profile("c"), nullptr);
}

TEST(Component, V1Beta1MeansTheOldRelease) {
  const auto config = load(example("kubescheduler-v1beta1.yaml"), {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->era, Era::k120);
  EXPECT_FALSE(config->leader_election.leader_elect);
  EXPECT_EQ(weight(config->profiles[0], "NodeResourcesMostAllocated"), 2);
  EXPECT_EQ(weight(config->profiles[0], "NodeResourcesLeastAllocated"), 0);
}

TEST(Component, PreemptionCanBeDisabledForAllOrOneProfile) {
  const std::string head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
  const auto all = config_of(head + "disablePreemption: true\n");
  EXPECT_FALSE(all.profiles[0].has(all.profiles[0].post_filter, "DefaultPreemption"));
  const auto one = config_of(head + "profiles: [{schedulerName: a, disablePreemption: true}, {schedulerName: b}]\n");
  EXPECT_FALSE(one.profile("a")->has(one.profile("a")->post_filter, "DefaultPreemption"));
  EXPECT_TRUE(one.profile("b")->has(one.profile("b")->post_filter, "DefaultPreemption"));
}

TEST(Component, ProblemsAreAllReported) {
  const std::string error = error_of(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: 200\npodMaxBackoffSeconds: "
      "0\n"
      "profiles:\n- schedulerName: a\n  plugins: {filter: {enabled: [{name: NodeResorcesFit}]}}\n  pluginConfig:\n"
      "  - name: PodTopologySpread\n    args: {defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: "
      "Never}]}\n"
      "- schedulerName: a\n  plugins: {filter: {enabled: [{name: ImageLocality}]}}\n  pluginsConfig: []\n");
  for (const char* part :
       {"f.yaml:3: percentageOfNodesToScore: Invalid value: 200: not in valid range [0-100]", "podMaxBackoffSeconds",
        "f.yaml:7: profiles[0].plugins.filter.enabled[0].name: plugin \"NodeResorcesFit\" does not exist; did you mean "
        "\"NodeResourcesFit\"?",
        "maxSkew: Invalid value: 0", "whenUnsatisfiable: Unsupported value: \"Never\"", "schedulerName: Duplicate value: \"a\"",
        "plugin \"ImageLocality\" does not extend FilterPlugin plugin", "unknown field \"pluginsConfig\"; did you mean \"pluginConfig\"?"})
    EXPECT_NE(error.find(part), std::string::npos) << part << "\nin\n" << error;
}

TEST(Component, WhatKubernetesTakesIsTaken) {
  const std::string head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
  for (const char* fine :
       {"profiles: []\n", "profiles: [{plugins: {score: {disabled: [{name: SelectorSpread}, {name: ''}]}}}]\n",
        "profiles: [{pluginConfig: [{name: OfAnotherBinary, args: {a: 1}}]}]\n", "leaderElection: {leaseDuration: 0s, resourceLock: ''}\n",
        "profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: "
        "0, "
        "preference: {}}]}}}]}]\n"})
    EXPECT_EQ(error_of(head + fine), "(accepted)") << fine;
}

TEST(Component, WhatKubernetesRefusesIsRefused) {
  const std::string head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
  const auto args = [&](const std::string& plugin, const std::string& text) {
    return head + "profiles: [{pluginConfig: [{name: " + plugin + ", args: {" + text + "}}]}]\n";
  };
  const std::pair<std::string, const char*> cases[] = {
      {head + "profiles: [{schedulerName: a}, {}]\n", "profiles[1].schedulerName: Required value"},
      {head + "profiles: [{plugins: {filter: {enabled: [{name: NodeLabel}]}}}]\n", "plugin \"NodeLabel\" does not exist"},
      {args("EBSLimits", ""), "was invalid in version \"kubescheduler.config.k8s.io/v1\""},
      {args("NodeResourcesFit", "scoringStrategy: {resources: [{name: cpu}]}"), "scoringStrategy.type: Unsupported value: \"\""},
      {args("NodeResourcesFit", "scoringStrategy: {type: RequestedToCapacityRatio}"), "requestedToCapacityRatio: Required value"},
      {args("NodeResourcesFit", "scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}"),
       "requestedToCapacityRatio: Forbidden"},
      {args("NodeResourcesFit", "ignoredResources: [a b]"), "ignoredResources[0]: Invalid value: \"a b\""},
      {args("NodeResourcesBalancedAllocation", "resources: [{name: cpu}, {name: cpu}]"), "resources[1].name: Duplicate value: \"cpu\""},
      {args("VolumeBinding", "shape: [{utilization: 0, score: 0}]"), "shape: Invalid value: unexpected field `shape`"},
      {args("DynamicResources", "filterTimeout: -1s"), "filterTimeout: Invalid value"},
      {args("PodTopologySpread",
            "defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a b, whenUnsatisfiable: DoNotSchedule}]"),
       "topologyKey: Invalid value: \"a b\""},
  };
  for (const auto& [text, part] : cases) EXPECT_NE(error_of(text).find(part), std::string::npos) << text << error_of(text);
}

TEST(Component, V1Beta1HasItsOwnRulesForWeightsShapesAndSpreading) {
  const std::string head = "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n";
  const auto with = [&](const std::string& profile) { return head + "profiles: [{" + profile + "}]\n"; };
  const std::string most = "pluginConfig: [{name: NodeResourcesMostAllocated, args: {resources: [{name: cpu";
  EXPECT_EQ(error_of(with(most + ", weight: 1}]}}]")), "(accepted)");
  EXPECT_NE(error_of(with(most + "}]}}]")).find("resources[0].weight: Invalid value: 0"), std::string::npos);
  EXPECT_NE(error_of(with("plugins: {score: {enabled: [{name: RequestedToCapacityRatio}]}}")).find("needs a shape"), std::string::npos);
  const auto listed = config_of(
      with("pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: "
           "ScheduleAnyway}]}}]"));
  EXPECT_FALSE(listed.profiles[0].args.spread.system_defaulting);
}

TEST(Policy, ALabelCannotBeAskedToBePresentAndAbsent) {
  EXPECT_NE(
      error_of(
          "--- {kind: Policy, apiVersion: v1, predicates: [{name: A, argument: {labelsPresence: {labels: [x], presence: true}}}, {name: B, "
          "argument: {labelsPresence: {labels: [x]}}}]}")
          .find("predicates: Invalid value: \"x\""),
      std::string::npos);
}

TEST(Policy, AKnownPredicateIsThatPredicateWhateverItsArgument) {
  const auto config = config_of(
      "--- {kind: Policy, apiVersion: v1, predicates: [{name: PodFitsPorts, argument: {serviceAffinity: {labels: [zone]}}}, {name: Mine, "
      "argument: "
      "{labelsPresence: {labels: [a], presence: true}}}, {name: MineToo, argument: {labelsPresence: {labels: [b], presence: true}}}]}");
  EXPECT_TRUE(config.profiles[0].has(config.profiles[0].filter, "NodePorts"));
  EXPECT_FALSE(config.profiles[0].has(config.profiles[0].filter, "ServiceAffinity"));
  EXPECT_EQ(config.profiles[0].args.node_label.present_labels, (std::vector<std::string>{"a", "b"}));
}

TEST(Component, ExtendersAreReadAndChecked) {
  const std::string head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n";
  const auto config =
      config_of(head +
                "- {urlPrefix: 'http://127.0.0.1:1/x', filterVerb: filter, prioritizeVerb: rank, weight: 3, httpTimeout: 2s, "
                "managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}\n");
  ASSERT_EQ(config.extenders.size(), 1u);
  EXPECT_EQ(config.extenders[0].http_timeout_ms, 2000);
  EXPECT_TRUE(config.extenders[0].managed_resources[0].ignored_by_scheduler);
  EXPECT_NE(error_of(head + "- {urlPrefix: 'http://x', prioritizeVerb: rank}\n").find("must have a positive weight applied to it"),
            std::string::npos);
  EXPECT_NE(error_of(head + "- {urlPrefix: a, bindVerb: b}\n- {urlPrefix: a, bindVerb: b}\n").find("found 2 extenders implementing bind"),
            std::string::npos);
}

TEST(Component, GarbageIsRefusedNotCrashedOn) {
  for (const char* text : {"", "[]", "kind: Policy\npredicates: 7\npriorities: {a: b}\n", "{", "kind: Polcy",
                           "kind: Policy\npredicates: [null, 3, {}]\n", "kind: KubeSchedulerConfiguration\napiVersion: x\nprofiles: [1]\n"})
    EXPECT_NE(error_of(text), "(accepted)") << text;
}

}  // namespace
}  // namespace berth::scheduler::config
