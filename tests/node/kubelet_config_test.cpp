// The node's configuration in its three forms, and every way in which it refuses to start.
#include "node/eviction/kubelet_config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "node/eviction/allocatable.h"
#include "node/eviction/policies.h"
#include "tests/support/source_dir.h"

namespace berth::node::eviction {
namespace {

TEST(KubeletConfig, TheDocumentsNodeConfigIsReadVerbatim) {
  const auto settings = load_config_text(R"(kubeletArguments:
  eviction-hard: 
    - "memory.available<500Mi"
  system-reserved:
    - "memory=1.5Gi"
)",
                                         "node-config.yaml");
  ASSERT_TRUE(settings) << settings.error();
  EXPECT_EQ(*settings->eviction_hard, (StatementMap{{"memory.available", "500Mi"}}));
  EXPECT_EQ(settings->system_reserved, (StatementMap{{"memory", "1.5Gi"}}));
  EXPECT_FALSE(validate(*settings));
}

TEST(KubeletConfig, TheExamplesLoad) {
  for (const char* name : {"node-config.yaml", "node-config-soft.yaml", "kubelet-configuration.yaml"}) {
    std::ifstream in(berth::testing::source_dir() + "/examples/node/" + name);
    ASSERT_TRUE(in) << name;
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto settings = load_config_text(text, name);
    ASSERT_TRUE(settings) << name << ": " << settings.error();
    EXPECT_EQ(validate(*settings), std::nullopt) << name;
  }
}

TEST(KubeletConfig, EveryDocumentedFlagIsRead) {
  KubeletSettings s;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"eviction-soft", "memory.available<1.5Gi"},
                                                        {"eviction-soft-grace-period", "memory.available=1m30s"},
                                                        {"eviction-max-pod-grace-period", "30"},
                                                        {"eviction-pressure-transition-period", "2m"},
                                                        {"eviction-minimum-reclaim", "nodefs.available=500Mi,imagefs.available=2Gi"},
                                                        {"eviction-hard", "memory.available<1Gi,nodefs.available<10%"}})
    EXPECT_FALSE(apply_kubelet_argument(s, name, {value})) << name;
  EXPECT_FALSE(validate(s));
  const auto thresholds = parse_thresholds(s.eviction());
  ASSERT_TRUE(thresholds);
  EXPECT_EQ(thresholds->size(), 4u) << "two hard, one soft, and the allocatable memory's";
  EXPECT_EQ(s.eviction_pressure_transition_period_ns, 120'000'000'000);
  EXPECT_EQ(s.eviction_max_pod_grace_period_seconds, 30);
}

TEST(KubeletConfig, StartUpErrorsSayWhatIsWrong) {
  const auto error = [](const std::vector<std::pair<std::string, std::string>>& flags) {
    KubeletSettings s;
    for (const auto& [name, value] : flags)
      if (const auto wrong = apply_kubelet_argument(s, name, {value})) return *wrong;
    return validate(s).value_or("");
  };
  EXPECT_EQ(error({{"eviction-soft", "memory.available<1Gi"}}),
            "failed to parse eviction configuration: grace period must be specified for the soft eviction threshold memory.available");
  EXPECT_EQ(error({{"eviction-hard", "memory.free<1Gi"}}),
            "failed to parse eviction configuration: unsupported eviction signal memory.free");
  EXPECT_EQ(error({{"eviction-hard", "memory.available<-1Gi"}}),
            "failed to parse eviction configuration: eviction threshold memory.available must be positive: -1Gi");
  EXPECT_EQ(error({{"eviction-hard", "memory.available<150%"}}),
            "failed to parse eviction configuration: eviction percentage threshold memory.available must be <= 100%: 150%");
  EXPECT_NE(error({{"eviction-hard", "memory.available<x"}}).find("quantities must match the regular expression"), std::string::npos);
  EXPECT_NE(error({{"eviction-hard", "memory.available>1Gi"}}).find("must be <eviction signal><<value>"), std::string::npos);
  EXPECT_NE(
      error({{"eviction-soft-grace-period", "memory.available=1x"}, {"eviction-soft", "memory.available<1Gi"}}).find("unknown unit \"x\""),
      std::string::npos);
  EXPECT_EQ(error({{"eviction-harder", "x"}}), "unknown flag: --eviction-harder; did you mean \"eviction-hard\"?");
  EXPECT_NE(error({{"eviction-max-pod-grace-period", "soon"}}).find("\"soon\""), std::string::npos);
}

TEST(KubeletConfig, NumbersOutOfRangeAreRefusedInTheKubeletsWords) {
  const auto error = [](std::string_view fields) {
    const auto settings =
        load_config_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + std::string(fields), "f");
    return settings ? validate(*settings).value_or("") : settings.error();
  };
  const std::string start = "failed to validate kubelet configuration, error: invalid configuration: ";
  EXPECT_EQ(error("imageGCHighThresholdPercent: 101\n"),
            start + "imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive");
  EXPECT_EQ(error("imageGCLowThresholdPercent: 85\n"), start +
                                                           "imageGCLowThresholdPercent (--image-gc-low-threshold) 85 must be less than "
                                                           "imageGCHighThresholdPercent (--image-gc-high-threshold) 85");
  EXPECT_EQ(error("imageMinimumGCAge: 10m\nimageMaximumGCAge: 5m\n"),
            start + "imageMaximumGCAge 5m0s must be greater than imageMinimumGCAge 10m0s");
  EXPECT_EQ(error("imageMaximumGCAge: -1s\n"), start + "imageMaximumGCAge -1s must not be negative");
  EXPECT_EQ(error("maxPods: -1\n"), start + "maxPods (--max-pods) -1 must not be a negative number");
  EXPECT_EQ(error("memorySwap: {swapBehavior: Endless}\n"),
            start + "memorySwap.swapBehavior \"Endless\" must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"");
  EXPECT_EQ(
      error("enforceNodeAllocatable: [none, pods]\n"),
      start + "enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when \"none\" is specified");
  EXPECT_EQ(error("enforceNodeAllocatable: [pods, pods]\n"),
            start + "duplicated enforcements \"pods\" in enforceNodeAllocatable (--enforce-node-allocatable)");
  EXPECT_NE(error("enforceNodeAllocatable: [all]\n").find("Valid options are"), std::string::npos);
  EXPECT_EQ(
      error("maxPods: -1\npodsPerCore: -2\n"),
      "failed to validate kubelet configuration, error: [invalid configuration: maxPods (--max-pods) -1 must not be a negative number, "
      "invalid configuration: podsPerCore (--pods-per-core) -2 must not be a negative number]");
  EXPECT_EQ(error("imageMaximumGCAge: 48h\nmemorySwap: {swapBehavior: NoSwap}\nenforceNodeAllocatable: [pods]\n"), "");
}

/// What the kubelet says of these fields, taken from one.
TEST(KubeletConfig, FieldsWithoutEffectAreRefusedAllTheSame) {
  const auto refusal = [](std::string_view fields) {
    if (fields.starts_with('{')) fields = fields.substr(1, fields.size() - 2);
    // The comment keeps a text that starts with a brace from being read as JSON.
    const auto settings = load_config_text(
        fmt::format("# flow\n{{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, {}}}\n", fields), "kubelet.yaml");
    if (!settings) return settings.error();
    const std::string words = validate(*settings).value_or("");
    static constexpr std::string_view kStart = "failed to validate kubelet configuration, error: ";
    return words.starts_with(kStart) ? words.substr(kStart.size()) : words;
  };
  EXPECT_EQ(
      refusal("{eventBurst: -1, eventRecordQPS: -2, healthzPort: 70000, cpuCFSQuotaPeriod: 2s, systemCgroups: /x}"),
      "[invalid configuration: systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified, invalid "
      "configuration: eventBurst (--event-burst) -1 must not be a negative number, invalid configuration: eventRecordQPS (--event-qps) "
      "-2 must not be a negative number, invalid configuration: healthzPort (--healthz-port) 70000 must be between 1 and 65535, "
      "inclusive, invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {2s} must be between 1ms and 1sec, inclusive]");
  EXPECT_EQ(refusal("{iptablesDropBit: 32, nodeStatusMaxImages: -2, oomScoreAdj: 1001, port: 70000, readOnlyPort: -5, registryBurst: -1}"),
            "[invalid configuration: iptablesDropBit (--iptables-drop-bit) 32 must be between 0 and 31, inclusive, invalid configuration: "
            "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater, invalid configuration: oomScoreAdj (--oom-score-adj) "
            "1001 must be between -1000 and 1000, inclusive, invalid configuration: port (--port) 70000 must be between 1 and 65535, "
            "inclusive, invalid configuration: readOnlyPort (--read-only-port) -5 must be between 0 and 65535, inclusive, invalid "
            "configuration: registryBurst (--registry-burst) -1 must not be a negative number]");
  EXPECT_EQ(refusal("maxParallelImagePulls: 0"), "invalid configuration: maxParallelImagePulls 0 must be a positive number");
  EXPECT_EQ(
      refusal("{maxParallelImagePulls: 3, serializeImagePulls: true}"),
      "invalid configuration: maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set "
      "to false");
  EXPECT_EQ(refusal("maxParallelImagePulls: 3"), "");
  EXPECT_EQ(refusal("{shutdownGracePeriod: 500ms, shutdownGracePeriodCriticalPods: 2s}"),
            "[invalid configuration: shutdownGracePeriodCriticalPods {2s} must be <= shutdownGracePeriod {500ms}, invalid configuration: "
            "shutdownGracePeriod {500ms} must be either zero or otherwise >= 1 sec]");
  EXPECT_EQ(refusal("{shutdownGracePeriod: 5s, shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 3}]}"),
            "invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time");
  EXPECT_EQ(refusal("crashLoopBackOff: {maxContainerRestartPeriod: 500ms}"),
            "invalid configuration: CrashLoopBackOff.MaxContainerRestartPeriod (got: 0.5 seconds) must be set between 1s and 300s");
  EXPECT_EQ(
      refusal("{containerLogMaxWorkers: -1, containerLogMonitorInterval: 2s, enableSystemLogQuery: true, enableSystemLogHandler: false, "
              "memoryThrottlingFactor: 1.5, runOnce: true}"),
      "[invalid configuration: runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set, invalid configuration: "
      "memoryThrottlingFactor 1.5 must be greater than 0 and less than or equal to 1.0, invalid configuration: enableSystemLogHandler is "
      "required for enableSystemLogQuery, invalid configuration: containerLogMaxWorkers must be greater than or equal to 1, invalid "
      "configuration: containerLogMonitorInterval must be a positive time duration greater than or equal to 3s]");
  EXPECT_EQ(
      refusal("{enforceNodeAllocatable: [system-reserved, system-reserved-compressible], systemReservedCgroup: /a, cgroupsPerQOS: false}"),
      "[invalid configuration: both \"system-reserved\" and \"system-reserved-compressible\" cannot be specified together in "
      "enforceNodeAllocatable (--enforce-node-allocatable), invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true "
      "when \"system-reserved\" contained in enforceNodeAllocatable (--enforce-node-allocatable), invalid configuration: cgroupsPerQOS "
      "(--cgroups-per-qos) must be set to true when \"system-reserved-compressible\" contained in enforceNodeAllocatable "
      "(--enforce-node-allocatable)]");
}

TEST(KubeletConfig, FlagsWithoutAMeaningHereAreTakenWithAWarning) {
  KubeletSettings s;
  EXPECT_FALSE(apply_kubelet_argument(s, "feature-gates", {"X=true"}));
  EXPECT_EQ(s.warnings, (std::vector<std::string>{"--feature-gates has no effect here"}));
  EXPECT_FALSE(apply_kubelet_argument(s, "maximum-dead-containers-per-container", {"2"}));
  EXPECT_FALSE(apply_kubelet_argument(s, "minimum-container-ttl-duration", {"1m"}));
  EXPECT_FALSE(apply_kubelet_argument(s, "fail-swap-on", {"false"}));
  EXPECT_FALSE(s.fail_swap_on);
  const ContainerGcPolicy policy = container_gc_policy(s);
  EXPECT_EQ(policy.most_per_container, 2);
  EXPECT_EQ(policy.minimum_age, std::chrono::minutes(1));
}

TEST(KubeletConfig, ANegativeMaximumLeavesPodsTheirGracePeriod) {
  KubeletSettings s;
  ASSERT_FALSE(apply_kubelet_argument(s, "eviction-max-pod-grace-period", {"-1"}));
  ASSERT_FALSE(validate(s));
  EXPECT_GT(manager_config(s)->max_pod_grace_period_seconds, 86400);
}

TEST(KubeletConfig, TheDecodersWordsAndItsOrder) {
  const auto error = [](std::string_view fields) {
    const auto settings =
        load_config_text(fmt::format("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{}", fields), "FILE");
    return settings ? std::string() : settings.error().substr(settings.error().find("decode: ") + 8);
  };
  EXPECT_EQ(error("evictionPressureTransitionPeriod: 5\n"),
            "json: cannot unmarshal number into Go struct field KubeletConfiguration.evictionPressureTransitionPeriod of type string");
  EXPECT_EQ(error("syncFrequency:\n"), "time: invalid duration \"\"") << "durations do not take null";
  EXPECT_EQ(error("maxPods: x\nsyncFrequency: z\n"), "time: invalid duration \"z\"") << "a duration's error before an earlier wrong type";
  EXPECT_EQ(error("podsPerCore: x\nmaxPods: z\n"),
            "json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32")
      << "keys of YAML in byte order";
  EXPECT_EQ(error("rotateCertificates: 1\n"),
            "json: cannot unmarshal number into Go struct field KubeletConfiguration.rotateCertificates of type bool");
  EXPECT_EQ(load_config_text("", "FILE").error(), "failed to load Kubelet config file FILE, error kubelet config file \"FILE\" was empty");
  EXPECT_TRUE(load_config_text("kind: KubeletConfiguration\napiVersion: a/b/c\n", "FILE")
                  .error()
                  .ends_with("unexpected GroupVersion string: a/b/c"));
  EXPECT_EQ(error("featureGates: {a: x}\n"),
            "json: cannot unmarshal string into Go struct field KubeletConfiguration.featureGates of type bool");
  EXPECT_EQ(error("evictionMaxPodGracePeriod: 1e3\n---\nkind: Pod\n"), "") << "a whole number; the first document alone counts";
}

TEST(KubeletConfig, WhatHasNoEffectIsSaid) {
  const auto settings = load_config_text(
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nshowHiddenMetricsForVersion: restricted\nevictionHrad: {}\n",
      "FILE");
  ASSERT_TRUE(settings) << settings.error();
  EXPECT_EQ(settings->warnings, (std::vector<std::string>{"the configuration's unknown field \"evictionHrad\" is ignored",
                                                          "the configuration's field \"showHiddenMetricsForVersion\" has no effect here"}));
}

TEST(PodFacts, QuantitiesPrintAsGoKeepsThem) {
  const PodFacts pod = read_pod_facts(*json::parse(
      R"({"spec":{"containers":[{"name":"c","resources":{"limits":{"ephemeral-storage":"9E6","memory":"1.500G","cpu":"0.5"}}}]}})"));
  EXPECT_EQ(pod.containers[0].limits.at("memory").to_string(), "1.500G");
  EXPECT_EQ(pod.containers[0].limits.at("cpu").to_string(), "500m");
  EXPECT_EQ(pod_limit(pod, "ephemeral-storage")->to_string(), "9E6");
  const PodFacts two = read_pod_facts(*json::parse(
      R"({"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"9E6"}}},{"name":"d","resources":{"limits":{"memory":"1E6"}}}]}})"));
  EXPECT_EQ(pod_limit(two, "memory")->to_string(), "10e6") << "a sum has no text of its own";
}

TEST(PodFacts, ResourcesOfThePodAloneMakeItsQosClass) {
  const auto read = [](std::string_view pod_level) {
    return read_pod_facts(*json::parse(fmt::format(
        R"({{"spec":{{{}"containers":[{{"name":"c","resources":{{"requests":{{"memory":"1Gi","ephemeral-storage":"1Gi"}}}}}}]}}}})",
        pod_level)));
  };
  EXPECT_EQ(read("").qos, QosClass::kBurstable);
  EXPECT_EQ(read(R"("resources":{},)").qos, QosClass::kBestEffort);
  const PodFacts disk = read(R"("resources":{"requests":{"memory":"1Gi","ephemeral-storage":"5Gi"}},)");
  EXPECT_TRUE(pod_request(disk, "ephemeral-storage").is_zero()) << "a pod as a whole cannot ask for disk, and its containers do not count";
}

TEST(KubeletFile, SlipsAreToldWithTheirLines) {
  const auto error_of = [](std::string_view text) {
    const auto read = read_kubelet_file(text, "n.yaml");
    return read ? std::string("(accepted)") : read.error().message;
  };
  const std::string head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  EXPECT_EQ(error_of(head + "evictionHrad: {}\n"),
            "n.yaml:3: evictionHrad: unknown field \"evictionHrad\"; did you mean \"evictionHard\"?");
  EXPECT_EQ(error_of(head + "\nmaxPods: many\n"),
            "n.yaml:4: maxPods: json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32");
  EXPECT_NE(error_of(head + "maxPods: 1\nmaxPods: 2\n").find("n.yaml:4: maxPods: stands here a second time"), std::string::npos);
  EXPECT_NE(
      error_of("kind: KubeletConfiguraton\napiVersion: kubelet.config.k8s.io/v1beta1\n").find("did you mean \"KubeletConfiguration\"?"),
      std::string::npos);
  EXPECT_EQ(error_of("kubeletArguments:\n  eviction-hrad:\n  - memory.available<1Gi\n"),
            "n.yaml:2: kubeletArguments.eviction-hrad: unknown flag: --eviction-hrad; did you mean \"eviction-hard\"?");
  EXPECT_EQ(error_of("kubeletArgument: {}\n").find("(accepted)"), std::string::npos);
  EXPECT_NE(error_of("kind: NodeConfig\napiVersion: v1\nkubeletArgument: {}\n").find("did you mean \"kubeletArguments\"?"),
            std::string::npos);
}

TEST(KubeletFile, AStatementThatMakesNoSenseHasItsPlaceAndWhatWasMeant) {
  const auto said_of = [](std::string_view text) {
    const auto read = read_kubelet_file(text, "n.yaml");
    return !read ? read.error().message : read->warnings.empty() ? std::string() : read->warnings.front();
  };
  const std::string head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard:\n  ";
  EXPECT_EQ(said_of(head + "memory.availible: 1Gi\n"),
            "n.yaml:4: evictionHard.memory.availible: unsupported eviction signal memory.availible; did you mean \"memory.available\"?");
  EXPECT_TRUE(said_of(head + "memory.available: 500MB\n").ends_with("; did you mean \"500Mi\" (units of 1024) or \"500M\" (of 1000)?"))
      << said_of(head + "memory.available: 500MB\n");
  EXPECT_EQ(said_of(head + "memory.available: \"500\"\n"),
            "n.yaml:4: evictionHard.memory.available: 500 of memory.available is 500 bytes; did you mean \"500Mi\"?");
  EXPECT_EQ(said_of(head + "pid.available: \"500\"\n"), "");
  EXPECT_EQ(said_of("kubeletArguments:\n  eviction-hard:\n  - \"nodefs.available<10%\"\n  - \"memory.available<500\"\n"),
            "n.yaml:4: kubeletArguments.eviction-hard[1]: 500 of memory.available is 500 bytes; did you mean \"500Mi\"?");
  EXPECT_TRUE(
      said_of("kubeletArguments:\n  system-reserved:\n  - \"memry=1Gi\"\n").starts_with("n.yaml:3: kubeletArguments.system-reserved[0]: "));
  EXPECT_EQ(said_of("kubeletArguments:\n  eviction-soft-grace-period:\n  - \"memory.available=1m\"\n"), "");
  EXPECT_EQ(said_of("kubeletArgument:\n  max-pods: ['9']\n"),
            "n.yaml:1: kubeletArgument: unknown field \"kubeletArgument\"; did you mean \"kubeletArguments\"?");
  EXPECT_EQ(said_of("eviction-hard:\n- memory.available<1Gi\n"),
            "n.yaml:1: eviction-hard: unknown field \"eviction-hard\" here; it belongs below kubeletArguments");
}

TEST(KubeletFile, WhatAStartRefusesIsFoundOfFileAndFlagsTogether) {
  const auto read = read_kubelet_file(
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionSoft: {memory.available: 1Gi}\n", "n.yaml");
  ASSERT_TRUE(read) << read.error().message;
  KubeletSettings settings = *read;
  ASSERT_EQ(start_errors(settings).size(), 1u);
  EXPECT_FALSE(apply_kubelet_argument(settings, "eviction-soft-grace-period", {"memory.available=1m"}));
  EXPECT_TRUE(start_errors(settings).empty());
  settings.kube_reserved = {{"memry", "1Gi"}};
  EXPECT_EQ(start_errors(settings), std::vector<std::string>{"--kube-reserved value failed to parse: cannot reserve \"memry\" resource"});
}

TEST(KubeletFile, SectionsOfANodeConfigWithoutEffectAreTold) {
  const auto read = read_kubelet_file(
      "kind: NodeConfig\napiVersion: v1\ndnsDomain: a\nkubeletArguments: {cloud-provider: [aws], max-pods: ['9']}\n", "n.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->max_pods, 9);
  EXPECT_EQ(read->warnings, (std::vector<std::string>{"n.yaml:4: kubeletArguments.cloud-provider: --cloud-provider has no effect here",
                                                      "n.yaml: known, and without effect here: dnsDomain (line 3)"}));
}

TEST(KubeletFile, TheDocumentsCalloutsAreTaken) {
  const auto read = read_kubelet_file(
      "kubeletArguments:\n  eviction-hard: \n    - \"memory.available<500Mi\"\n  system-reserved:\n    - \"memory=1.5Gi\"- 1\n", "n.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->system_reserved.at("memory"), "1.5Gi");
}

// Every field that is said to act is read: a value of a wrong type is found.
TEST(KubeletFile, EveryFieldThatActsIsRead) {
  for (const std::string_view field : kubelet_fields().acting) {
    const auto read = read_kubelet_configuration(json::Object{{field, json::Array{json::Array{}}}});
    if (field == "crashLoopBackOff") continue;  // Of its parts one acts.
    EXPECT_FALSE(read) << field;
  }
}

TEST(KubeletConfig, MemoryThatIsReservedByNumaNode) {
  const auto read = read_kubelet_configuration(
      *json::parse(R"({"memoryManagerPolicy":"Static","topologyManagerPolicy":"restricted","topologyManagerScope":"pod",)"
                   R"("reservedMemory":[{"numaNode":1,"limits":{"memory":"1Gi","hugepages-2Mi":0}},{"limits":{"memory":"2Gi"}}]})"));
  ASSERT_TRUE(read);
  const std::map<int, StatementMap> both{{0, {{"memory", "2Gi"}}}, {1, {{"hugepages-2Mi", "0"}, {"memory", "1Gi"}}}};
  EXPECT_EQ(read->reserved_memory, both);
  EXPECT_EQ(read->topology_manager_policy, "restricted");
  EXPECT_EQ(read->topology_manager_scope, "pod");
  EXPECT_TRUE(read->warnings.empty());
  KubeletSettings flags;
  EXPECT_EQ(apply_kubelet_argument(flags, "reserved-memory", {"0:memory=2Gi;1:memory=1Gi,hugepages-2Mi=0"}), std::nullopt);
  EXPECT_EQ(flags.reserved_memory, both);
  EXPECT_NE(apply_kubelet_argument(flags, "reserved-memory", {"memory=2Gi"})->find("such as 0:memory=1Gi is wanted"), std::string::npos);
  EXPECT_NE(apply_kubelet_argument(flags, "reserved-memory", {"0:memory=2Gi;0:memory=1Gi"})->find("NUMA node 0 is named twice"),
            std::string::npos);
}

TEST(KubeletConfig, OtherKindsAndBrokenFilesAreRefused) {
  EXPECT_FALSE(load_config_text("kind: Pod\napiVersion: v1\n", "f"));
  EXPECT_FALSE(load_config_text("{", "f"));
  EXPECT_FALSE(load_config_text("kubeletArguments:\n  eviction-hard: 5\n", "f"));
  EXPECT_FALSE(load_config_text("", "f"));
}

// The document's scenario (000 §21.2.9): 10 Gi, a tenth reserved for the system, eviction at 10% soft and 5% hard: 8 Gi are left for pods.
TEST(Allocatable, TheDocumentsTenToEightGibibytes) {
  const Machine machine{.cores = 4, .memory_bytes = 10LL << 30, .root_fs_bytes = 100LL << 30, .max_pid = 0};
  const auto allocatable = [&](const std::string& file, const std::string& flag = "") {
    std::ifstream in(berth::testing::source_dir() + "/examples/node/" + file);
    auto settings = load_config_text(std::string{std::istreambuf_iterator<char>(in), {}}, file);
    EXPECT_TRUE(settings);
    if (!flag.empty()) {
      EXPECT_FALSE(apply_kubelet_argument(*settings, flag, {"true"}));
    }
    return compute_node_resources(machine, reservation_settings(*settings))->allocatable.at("memory").value();
  };
  EXPECT_EQ(allocatable("node-config-soft.yaml"), 8LL << 30);
  EXPECT_EQ(allocatable("node-config.yaml"), (10LL << 30) - (1536LL << 20) - (500LL << 20)) << "the example as the document has it";
  EXPECT_EQ(allocatable("node-config.yaml", "experimental-allocatable-ignore-eviction"), (10LL << 30) - (1536LL << 20));
}

TEST(OomScore, TheDocumentsTable) {
  const auto facts = [](const char* resources) {
    return read_pod_facts(*json::parse(fmt::format(
        R"({{"metadata":{{"name":"p","namespace":"d"}},"spec":{{"containers":[{{"name":"c","resources":{}}}]}}}})", resources)));
  };
  const auto score = [&](const char* resources) {
    const PodFacts pod = facts(resources);
    return oom_score_adjust(pod, pod.containers[0], 10LL << 30);
  };
  EXPECT_EQ(score("{}"), 1000);
  EXPECT_EQ(score(R"({"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}})"), -998);
  EXPECT_EQ(score(R"({"requests":{"memory":"5Gi"}})"), 500);
  EXPECT_EQ(score(R"({"requests":{"memory":"1"}})"), 999);
  EXPECT_EQ(score(R"({"requests":{"memory":"10Gi"}})"), 2);
}

TEST(KubeletConfig, WordsOfAWrongTypeAreNamedOneByOne) {
  const auto error = [](const json::Object& fields) {
    const auto read = read_kubelet_configuration(fields);
    return read ? std::string() : read.error();
  };
  const auto says = [&](const char* field, json::Value value, const char* given, const char* type) {
    EXPECT_NE(error({{field, std::move(value)}})
                  .find(fmt::format("cannot unmarshal {} into Go struct field KubeletConfiguration.{} of type {}", given, field, type)),
              std::string::npos)
        << error({{field, "x"}});
  };
  says("enforceNodeAllocatable", "pods", "string", "[]string");
  says("enforceNodeAllocatable", json::Array{1}, "number", "string");
  says("allowedUnsafeSysctls", json::Object{}, "object", "[]string");
  says("clusterDNS", true, "bool", "[]string");
  says("systemReserved", json::Array{}, "array", "map[string]string");
  says("systemReserved", json::Object{{"memory", 5}}, "number", "string");
  says("evictionHard", "memory", "string", "map[string]string");
  says("failSwapOn", "yes", "string", "bool");
  says("staticPodPath", 5, "number", "string");
  says("tlsCipherSuites", "x", "string", "[]string");
  says("syncFrequency", true, "bool", "string");
  EXPECT_EQ(error({{"enforceNodeAllocatable", nullptr}, {"systemReserved", nullptr}, {"failSwapOn", nullptr}, {"maxPods", nullptr}}), "")
      << "null leaves what is there";
}

TEST(KubeletConfig, AStatusThatIsLookedAtAsOftenAsSaidIsReportedAsOften) {
  const auto reported = [](const char* text) {
    const auto settings = read_kubelet_configuration(*json::parse_yaml(text));
    return settings ? settings->node_status_report_frequency_ns / 1'000'000'000 : -1;
  };
  EXPECT_EQ(reported("maxPods: 5\n"), 300);
  EXPECT_EQ(reported("nodeStatusUpdateFrequency: 10s\n"), 10);
  EXPECT_EQ(reported("nodeStatusUpdateFrequency: 10s\nnodeStatusReportFrequency: 1m\n"), 60);
  EXPECT_EQ(reported("nodeStatusReportFrequency: 1m\n"), 60);
}

/// What /configz shows is read as what it was made of.
TEST(KubeletConfig, WhatIsShownIsReadAgain) {
  const auto settings = read_kubelet_configuration(*json::parse_yaml(R"(
staticPodPath: /etc/pods
nodeStatusUpdateFrequency: 11s
nodeStatusReportFrequency: 12s
nodeLeaseDurationSeconds: 41
imageMinimumGCAge: 3m
imageMaximumGCAge: 4m
imageGCHighThresholdPercent: 77
imageGCLowThresholdPercent: 66
maxPods: 55
podsPerCore: 4
evictionHard: {memory.available: 5%}
evictionSoft: {memory.available: 1Gi}
evictionSoftGracePeriod: {memory.available: 30s}
evictionMinimumReclaim: {memory.available: 1Mi}
evictionPressureTransitionPeriod: 7m
evictionMaxPodGracePeriod: 9
mergeDefaultEvictionSettings: true
enforceNodeAllocatable: [none]
kubeReserved: {cpu: 100m}
systemReserved: {memory: 2Gi}
failSwapOn: false
memorySwap: {swapBehavior: LimitedSwap}
containerLogMaxSize: 3Mi
containerLogMaxFiles: 8
allowedUnsafeSysctls: [net.core.somaxconn]
clusterDNS: [10.96.0.10]
clusterDomain: example.org
localStorageCapacityIsolation: false
crashLoopBackOff: {maxContainerRestartPeriod: 17s}
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
memoryManagerPolicy: Static
topologyManagerPolicy: best-effort
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
reservedSystemCPUs: 0-1
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 1, limits: {memory: 2Gi}}]
)"));
  ASSERT_TRUE(settings) << settings.error();
  const json::Object shown = kubelet_configuration(*settings);
  const auto at = [&](std::string_view field) {
    const auto found = shown.find(field);
    return found == shown.end() ? std::string() : json::serialize(found->value());
  };
  for (const auto& [field, value] : std::vector<std::pair<const char*, const char*>>{
           {"staticPodPath", R"("/etc/pods")"},
           {"nodeStatusUpdateFrequency", R"("11s")"},
           {"nodeStatusReportFrequency", R"("12s")"},
           {"nodeLeaseDurationSeconds", "41"},
           {"imageMinimumGCAge", R"("3m0s")"},
           {"imageMaximumGCAge", R"("4m0s")"},
           {"imageGCHighThresholdPercent", "77"},
           {"imageGCLowThresholdPercent", "66"},
           {"maxPods", "55"},
           {"podsPerCore", "4"},
           {"evictionHard", R"({"imagefs.available":"15%","imagefs.inodesFree":"5%","memory.available":"5%","nodefs.available":"10%",)"
                            R"("nodefs.inodesFree":"5%"})"},
           {"evictionSoft", R"({"memory.available":"1Gi"})"},
           {"evictionSoftGracePeriod", R"({"memory.available":"30s"})"},
           {"evictionMinimumReclaim", R"({"memory.available":"1Mi"})"},
           {"evictionPressureTransitionPeriod", R"("7m0s")"},
           {"evictionMaxPodGracePeriod", "9"},
           {"mergeDefaultEvictionSettings", "true"},
           {"enforceNodeAllocatable", R"(["none"])"},
           {"kubeReserved", R"({"cpu":"100m"})"},
           {"systemReserved", R"({"memory":"2Gi"})"},
           {"failSwapOn", "false"},
           {"memorySwap", R"({"swapBehavior":"LimitedSwap"})"},
           {"containerLogMaxSize", R"("3Mi")"},
           {"containerLogMaxFiles", "8"},
           {"allowedUnsafeSysctls", R"(["net.core.somaxconn"])"},
           {"clusterDNS", R"(["10.96.0.10"])"},
           {"clusterDomain", R"("example.org")"},
           {"localStorageCapacityIsolation", "false"},
           {"crashLoopBackOff", R"({"maxContainerRestartPeriod":"17s"})"},
           {"cpuManagerPolicy", R"("static")"},
           {"cpuManagerPolicyOptions", R"({"full-pcpus-only":"true"})"},
           {"memoryManagerPolicy", R"("Static")"},
           {"topologyManagerPolicy", R"("best-effort")"},
           {"topologyManagerScope", R"("pod")"},
           {"topologyManagerPolicyOptions", R"({"prefer-closest-numa-nodes":"true"})"},
           {"reservedSystemCPUs", R"("0-1")"},
           {"reservedMemory", R"([{"numaNode":0,"limits":{"memory":"1Gi"}},{"numaNode":1,"limits":{"memory":"2Gi"}}])"}})
    EXPECT_EQ(at(field), value) << field;
  const json::Object plain = kubelet_configuration(*read_kubelet_configuration(json::Object{}));
  for (const char* field : {"staticPodPath", "kubeReserved", "systemReserved", "allowedUnsafeSysctls", "clusterDNS", "clusterDomain",
                            "cpuManagerPolicyOptions", "topologyManagerPolicyOptions", "reservedSystemCPUs", "reservedMemory"})
    EXPECT_FALSE(plain.contains(field)) << field << " is shown where it is set";
}

TEST(KubeletFile, WhatKindItIsMustBeSaid) {
  const auto error_of = [](std::string_view text) {
    const auto read = read_kubelet_file(text, "n.yaml");
    return read ? std::string("(accepted)") : read.error().message;
  };
  EXPECT_EQ(error_of("kind: KubeletConfiguration\nmaxPods: 5\n"), "n.yaml:1: apiVersion: required: kubelet.config.k8s.io/v1beta1");
  EXPECT_EQ(error_of("apiVersion: kubelet.config.k8s.io/v1beta1\nmaxPods: 5\n"),
            "n.yaml:1: kind: required: KubeletConfiguration or NodeConfig");
  EXPECT_NE(error_of("apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n").find("v1beta1"), std::string::npos);
  EXPECT_NE(error_of("[]\n").find("must be a map of kind KubeletConfiguration, or OpenShift's NodeConfig"), std::string::npos);
  EXPECT_EQ(error_of("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"), "(accepted)");
}

TEST(KubeletFile, ADoubtIsToldWhereThereIsOne) {
  const auto said_of = [](std::string_view amount) {
    const auto read = read_kubelet_file(
        fmt::format("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard:\n  memory.available: \"{}\"\n",
                    amount),
        "n.yaml");
    const std::string said = !read ? read.error().message : read->warnings.empty() ? std::string() : read->warnings.front();
    const auto at = said.find("did you mean");
    return at == std::string::npos ? std::string() : said.substr(at);
  };
  EXPECT_EQ(said_of("500MB"), "did you mean \"500Mi\" (units of 1024) or \"500M\" (of 1000)?");
  EXPECT_EQ(said_of("500 mb"), "did you mean \"500Mi\" (units of 1024) or \"500M\" (of 1000)?");
  EXPECT_EQ(said_of("2.5gib"), "did you mean \"2.5Gi\" (units of 1024) or \"2.5G\" (of 1000)?");
  EXPECT_EQ(said_of("7kb"), "did you mean \"7Ki\" (units of 1024) or \"7k\" (of 1000)?");
  EXPECT_EQ(said_of("MB"), "") << "no number, no guess";
  EXPECT_EQ(said_of("500xb"), "");
  EXPECT_EQ(said_of("1Mi"), "");
  EXPECT_EQ(said_of("1048575"), "did you mean \"1048575Mi\"?");
  EXPECT_EQ(said_of("1048576"), "");
  EXPECT_EQ(said_of("5%"), "");
}

TEST(PodFacts, ExponentsOfAmountsAreReadWithAndWithoutASign) {
  for (const auto& [text, value] :
       {std::pair("9e6", 9'000'000), std::pair("9E+6", 9'000'000), std::pair("9000e-3", 9), std::pair("9k", 9000),
        std::pair("9Ki", 9 << 10), std::pair("9", 9), std::pair("+9", 9), std::pair("9000m", 9)}) {
    const PodFacts pod = read_pod_facts(
        *json::parse(fmt::format(R"({{"spec":{{"containers":[{{"name":"c","resources":{{"limits":{{"memory":"{}"}}}}}}]}}}})", text)));
    ASSERT_TRUE(pod.containers[0].limits.contains("memory")) << text;
    EXPECT_EQ(pod.containers[0].limits.at("memory").value(), value) << text;
  }
}

}  // namespace
}  // namespace berth::node::eviction
