#include "autoscaler/options.h"

#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

TEST(Options, TheDocumentsExampleIsReadWhole) {
  const Options options = options_of(R"(
  podPriorityThreshold: -10
  resourceLimits:
    maxNodesTotal: 24
    cores: {min: 8, max: 128}
    memory: {min: 4, max: 256}
    gpus:
      - {type: nvidia.com/gpu, min: 0, max: 16}
      - {type: amd.com/gpu, min: 0, max: 4}
  scaleDown:
    enabled: true
    delayAfterAdd: 10m
    delayAfterDelete: 5m
    delayAfterFailure: 30s
    unneededTime: 5m
)");
  EXPECT_EQ(options.pod_priority_threshold, -10);
  EXPECT_EQ(options.max_nodes_total, 24);
  EXPECT_EQ(options.cores.min, 8);
  EXPECT_EQ(options.cores.max, 128);
  EXPECT_EQ(options.memory_bytes.min, 4LL << 30);
  EXPECT_EQ(options.memory_bytes.max, 256LL << 30);
  ASSERT_EQ(options.gpus.size(), 2U);
  EXPECT_EQ(options.gpus[1].type, "amd.com/gpu");
  EXPECT_EQ(options.gpus[1].bounds.max, 4);
  EXPECT_TRUE(options.scale_down_enabled);
  EXPECT_EQ(options.delay_after_add, 10min);
  EXPECT_EQ(options.delay_after_delete, 5min);
  EXPECT_EQ(options.delay_after_failure, 30s);
  EXPECT_EQ(options.unneeded_time, 5min);
}

TEST(Options, DefaultsAreTheDocuments) {
  const Options options = options_of("{scaleDown: {enabled: true}}");
  EXPECT_EQ(options.delay_after_add, 10min);
  EXPECT_EQ(options.delay_after_delete, 10s);
  EXPECT_EQ(options.delay_after_failure, 3min);
  EXPECT_EQ(options.unneeded_time, 10min);
  EXPECT_EQ(options.utilization_threshold, 0.5);
  EXPECT_EQ(options.scan_interval, 10s);
  EXPECT_EQ(options.max_nodes_total, 0);
  EXPECT_TRUE(options.skip_nodes_with_local_storage);
  EXPECT_FALSE(options.balance_similar_node_groups);
}

TEST(Options, AGpuOfAnotherKindThanTheDocumentsIsRefused) {
  const auto gpu = [](const std::string& type) {
    return Options::parse(yaml("spec: {resourceLimits: {gpus: [{type: " + type + ", min: 0, max: 2}]}}"));
  };
  EXPECT_TRUE(gpu("nvidia.com/gpu"));
  const auto wrong = gpu("nvidia.com/gpus");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(
      wrong.error().message,
      "ClusterAutoscaler: spec.resourceLimits.gpus[0].type: \"nvidia.com/gpus\" is not allowed: nvidia.com/gpu or amd.com/gpu; did you "
      "mean \"nvidia.com/gpu\"?");
  std::vector<std::string> notes;
  EXPECT_TRUE(Options::parse(yaml("spec: {resourceLimits: {gpus: [{type: tesla-t4, min: 0, max: 2}]}}"), &notes));
  EXPECT_EQ(notes.size(), 1u);
}

TEST(Options, FieldsThatAreNoneOrDoNothingAreTold) {
  std::vector<std::string> notes;
  ASSERT_TRUE(Options::parse(yaml("spec: {scaleDwon: {}, logVerbosity: 4}"), &notes));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("did you mean \"scaleDown\"?"), std::string::npos);
  EXPECT_FALSE(Options::parse(yaml("spec: {scaleDown: {enabled: true, delayAfterAd: 1m}}")))
      << "within a section there are no later fields";
  EXPECT_FALSE(Options::parse(yaml("spec: {resourceLimits: {maxNodesTotal: '24'}}")));
}

TEST(Options, WrongValuesNameTheirField) {
  for (const auto& [spec, field] :
       {std::pair("{scaleDown: {enabled: true, unneededTime: soon}}", "scaleDown.unneededTime"),
        std::pair("{scaleDown: {enabled: true, utilizationThreshold: '7'}}", "utilizationThreshold"),
        std::pair("{scaleDown: {enabled: true, utilizationThreshold: nan}}", "scaleDown.utilizationThreshold"),
        std::pair("{scaleDown: {enabled: true, utilizationThreshold: '-0.1'}}", "scaleDown.utilizationThreshold"),
        std::pair("{resourceLimits: {memory: {min: 0, max: 9000000000000000000}}}", "resourceLimits.memory.max"),
        std::pair("{resourceLimits: {cores: {min: 9, max: 3}}}", "cores"), std::pair("{expanders: [Cheapest]}", "expanders"),
        std::pair("{maxNodeProvisionTime: 3}", "maxNodeProvisionTime"),
        std::pair("{resourceLimits: {gpus: [{min: 1, max: 2}]}}", "gpus")}) {
    const auto parsed = Options::parse(yaml(std::string("spec: ") + spec));
    ASSERT_FALSE(parsed) << spec;
    EXPECT_NE(parsed.error().message.find(field), std::string::npos) << parsed.error().message;
  }
}

}  // namespace
}  // namespace berth::autoscaler::testing
