// The metrics that dashboards of the cluster autoscaler read: they are there from the first pass on, and mean what they mean there.
#include "autoscaler/pass_metrics.h"

#include "cluster_builder.h"

namespace berth::autoscaler::testing {
namespace {

struct Watched : TestCluster {
  Actions pass() {
    Actions actions = step();
    metrics.pass(actions, options, cache.nodes(), cache.totals(), now, 1500ms);
    return actions;
  }
  /// The value of the series, as it is exposed; empty: there is none.
  [[nodiscard]] std::string value(const std::string& series) const {
    const std::string text = "\n" + registry.expose(), wanted = "\ncluster_autoscaler_" + series + " ";
    const std::size_t found = text.find(wanted);
    if (found == std::string::npos) return "";
    const std::size_t begin = found + wanted.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  metrics::Registry registry;
  PassMetrics metrics{registry};
};

// kubernetes/autoscaler 1.36, cluster-autoscaler/metrics/metrics.go; those of one cloud alone and of alpha features are left out.
TEST(PassMetrics, EverySeriesOfDashboardsIsThereAfterTheFirstPass) {
  Watched cluster;
  cluster.set("a", {.min = 1, .max = 5, .replicas = 1});
  cluster.machine("a", "a-1");
  (void)cluster.pass();
  const std::string text = cluster.registry.expose();
  for (const char* name : {"cluster_safe_to_autoscale",
                           "nodes_count",
                           "node_groups_count",
                           "unschedulable_pods_count",
                           "max_nodes_count",
                           "cluster_cpu_current_cores",
                           "cpu_limits_cores",
                           "cluster_memory_current_bytes",
                           "memory_limits_bytes",
                           "node_group_min_count",
                           "node_group_max_count",
                           "node_group_target_count",
                           "node_group_healthiness",
                           "node_group_backoff_status",
                           "last_activity",
                           "function_duration_seconds_bucket",
                           "function_duration_quantile_seconds_sum",
                           "pending_node_deletions",
                           "errors_total",
                           "scaled_up_nodes_total",
                           "failed_scale_ups_total",
                           "failed_node_creations_total",
                           "scaled_down_nodes_total",
                           "evicted_pods_total",
                           "unneeded_nodes_count",
                           "unremovable_nodes_count",
                           "scale_down_in_cooldown",
                           "old_unregistered_nodes_removed_count",
                           "overflowing_controllers_count",
                           "skipped_scale_events_count",
                           "created_node_groups_total",
                           "deleted_node_groups_total",
                           "node_removal_latency_seconds_bucket"})
    EXPECT_NE(text.find(std::string("\ncluster_autoscaler_") + name), std::string::npos) << name;
}

TEST(PassMetrics, TheyCountWhatIsThere) {
  Watched cluster;
  cluster.set("a", {.min = 1, .max = 5, .replicas = 2});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2");
  cluster.pod("busy", {.cpu = "6", .node = "a-2"});
  cluster.pod("giant", {.cpu = "64"});
  (void)cluster.pass();
  EXPECT_EQ(cluster.value("nodes_count{state=\"ready\"}"), "2");
  EXPECT_EQ(cluster.value("node_group_target_count{node_group=\"MachineSet/m/a\"}"), "2");
  EXPECT_EQ(cluster.value("node_group_max_count{node_group=\"MachineSet/m/a\"}"), "5");
  EXPECT_EQ(cluster.value("cluster_cpu_current_cores"), "16");
  EXPECT_EQ(cluster.value("unschedulable_pods_count{type=\"unschedulable\"}"), "1");
  EXPECT_EQ(cluster.value("unneeded_nodes_count"), "1");
  EXPECT_EQ(cluster.value("unremovable_nodes_count{reason=\"NotUnderutilized\"}"), "1");
  EXPECT_EQ(cluster.value("function_duration_quantile_seconds_sum{function=\"main\"}"), "1.5");
}

TEST(PassMetrics, GroupsThatALimitKeptFromGrowingAreCountedByItsResource) {
  Watched cluster;
  cluster.options = options_of("{resourceLimits: {cores: {min: 0, max: 4}}}");
  cluster.set("a", {});
  cluster.set("b", {});
  cluster.pod("p", {.cpu = "7"});
  (void)cluster.pass();
  EXPECT_EQ(cluster.value("skipped_scale_events_count{direction=\"up\",reason=\"CpuResourceLimit\"}"), "2");
  EXPECT_EQ(cluster.value("skipped_scale_events_count{direction=\"up\",reason=\"MemoryResourceLimit\"}"), "0");
}

TEST(PassMetrics, TaintsAreCountedByKindAndAKindThatIsGoneIsNought) {
  Watched cluster;
  const auto node = [&](std::string_view name, std::string_view taints) {
    cluster.put(fmt::format("kind: Node\nmetadata: {{name: {}}}\nspec: {{taints: [{}]}}", name, taints));
  };
  node("a", "{key: node.kubernetes.io/not-ready, effect: NoExecute}, {key: mine, effect: NoSchedule}");
  node("b", "{key: yours, effect: NoSchedule}, {key: startup-taint.cluster-autoscaler.kubernetes.io/x, effect: NoSchedule}");
  (void)cluster.pass();
  EXPECT_EQ(cluster.value("node_taints_count{type=\"node.kubernetes.io/not-ready\"}"), "1");
  EXPECT_EQ(cluster.value("node_taints_count{type=\"other\"}"), "2");
  EXPECT_EQ(cluster.value("node_taints_count{type=\"startup-taint\"}"), "1");
  node("a", "{key: mine, effect: NoSchedule}");
  cluster.cache.remove("Node", "", "b");
  (void)cluster.pass();
  EXPECT_EQ(cluster.value("node_taints_count{type=\"node.kubernetes.io/not-ready\"}"), "0");
  EXPECT_EQ(cluster.value("node_taints_count{type=\"other\"}"), "1");
  EXPECT_EQ(cluster.value("node_taints_count{type=\"startup-taint\"}"), "0");
}

TEST(PassMetrics, TheLatencyOfARemovalBeginsWhenTheNodeMayGo) {
  Watched cluster;
  cluster.set("a", {.replicas = 2});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2");
  cluster.pod("busy", {.cpu = "6", .node = "a-2"});
  for (int i = 0; i < 62 && cluster.pass().remove.empty(); ++i) cluster.now += 10s;
  cluster.metrics.removed("a-1", cluster.now + 40s);
  EXPECT_EQ(cluster.value("node_removal_latency_seconds_count{deleted=\"true\"}"), "1");
  const double latency = std::stod(cluster.value("node_removal_latency_seconds_sum{deleted=\"true\"}"));
  EXPECT_GE(latency, 40);
  EXPECT_LE(latency, 60);
  EXPECT_EQ(cluster.value("scaled_down_nodes_total{reason=\"empty\"}"), "1");
}

TEST(PassMetrics, ANodeThatIsNeededAgainIsCountedAsNotRemoved) {
  Watched cluster;
  // The cluster's minimum keeps it.
  cluster.options = options_of("{resourceLimits: {cores: {min: 16, max: 100}}, scaleDown: {enabled: true, unneededTime: 1m}}");
  cluster.set("a", {.replicas = 2});
  cluster.machine("a", "a-1");
  cluster.machine("a", "a-2");
  cluster.pod("busy", {.cpu = "6", .node = "a-2"});
  for (int i = 0; i < 12; ++i, cluster.now += 10s) EXPECT_TRUE(cluster.pass().remove.empty());
  EXPECT_EQ(cluster.value("node_removal_latency_seconds_count{deleted=\"false\"}"), "0");
  cluster.pod("more", {.cpu = "6", .node = "a-1"});
  (void)cluster.pass();
  EXPECT_EQ(cluster.value("node_removal_latency_seconds_count{deleted=\"false\"}"), "1");
  EXPECT_EQ(cluster.value("node_removal_latency_seconds_count{deleted=\"true\"}"), "0");
}

TEST(PassMetrics, GpuNodesAreTold) {
  Watched cluster;
  cluster.set("g", {.annotations = ", capacity.cluster-autoscaler.kubernetes.io/gpu-count: '2', "
                                   "capacity.cluster-autoscaler.kubernetes.io/gpu-type: nvidia.com/gpu"});
  (void)cluster.pass();
  cluster.metrics.grown("MachineSet/m/g", 3);
  EXPECT_EQ(cluster.value("scaled_up_nodes_total{gpu_resource_name=\"nvidia.com/gpu\",gpu_name=\"generic\"}"), "3");
  EXPECT_EQ(cluster.value("scaled_up_gpu_nodes_total{gpu_resource_name=\"nvidia.com/gpu\",gpu_name=\"generic\"}"), "3");
}

}  // namespace
}  // namespace berth::autoscaler::testing
