// One pass of the autoscaler: pods waiting by the ten thousand, nodes that could go by the thousand, and nothing to do at all.
#include <fmt/format.h>

#include <cstdint>
#include <ctime>

#include "autoscaler/autoscaler.h"
#include "bench/bench.h"

namespace berth::bench {
namespace {

using namespace autoscaler;

const TimePoint kNow = *parse_rfc3339("2026-11-22T12:00:00Z");

model::NodeViewPtr make_node(const std::string& name, std::int64_t cpu, std::int64_t memory_gib) {
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = name;
  out->capacity = out->allocatable = {{"cpu", model::Quantity::from_value(cpu)},
                                      {"memory", model::Quantity::from_value(memory_gib << 30)},
                                      {"pods", model::Quantity::from_value(110)}};
  out->meta.labels = model::Labels({{"kubernetes.io/hostname", name}});
  return out;
}

/// As an API server stores the pod of a ReplicaSet: hash labels, a controller, the token's volume of a name of its own, tolerations.
PodPtr make_pod(const std::string& app, std::size_t number, std::int64_t cpu_milli, std::int64_t memory_mib, const std::string& node) {
  auto view = std::make_shared<model::PodView>();
  view->meta.ns = "default";
  view->meta.name = fmt::format("{}-7d4b9c{:05x}", app, number);
  view->meta.uid = view->meta.name;
  view->meta.labels = model::Labels({{"app", app}, {"pod-template-hash", fmt::format("7d4b9c-{}", app)}});
  view->meta.owner_references = {{.api_version = "apps/v1", .kind = "ReplicaSet", .name = app, .uid = "rs-" + app, .controller = true}};
  view->node_name = node;
  view->phase = node.empty() ? "Pending" : "Running";
  view->scheduler_name = "default-scheduler";
  model::VolumeView token;
  token.name = fmt::format("kube-api-access-{:05x}", number);
  view->volumes.push_back(std::move(token));
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    view->tolerations.push_back({.key = key, .op = "Exists", .value = "", .effect = "NoExecute", .toleration_seconds = 300});
  model::ContainerView container;
  container.requests = {{"cpu", model::Quantity::from_milli(cpu_milli)}, {"memory", model::Quantity::from_value(memory_mib << 20)}};
  view->containers.push_back(std::move(container));
  auto out = std::make_shared<Pod>();
  out->info = placement::PodInfo::make(std::move(view), placement::Era::k136);
  out->facts.is_unschedulable = node.empty();
  return out;
}

/// A cluster built in memory: what the objects are read from is not measured.
struct BenchCluster {
  placement::Cluster cluster;
  PodSets pods;
  NodeFactsMap nodes;
  std::vector<NodeGroup> groups;

  void add_empty_groups(int count) {
    for (int i = 0; i < count; ++i) {
      NodeGroup group{.id = fmt::format("MachineSet/m/g{:02}", i), .min = 0, .max = 5000, .target = 0};
      group.template_node = make_node(group.id, 4 << (i % 4), 16LL << (i % 4));
      groups.push_back(std::move(group));
    }
  }
  /// One group of `count` nodes of 16 CPUs, above its minimum.
  void add_nodes(std::size_t count) {
    NodeGroup group{.id = "MachineSet/m/all", .min = 1, .max = 10'000, .target = static_cast<std::int64_t>(count)};
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = fmt::format("node-{:05}", i);
      cluster.upsert_node(make_node(name, 16, 64));
      nodes[name] = {.is_ready = true};
      group.instances.push_back({"m/" + name, name, false});
    }
    groups.push_back(std::move(group));
  }
  void add_pod(const PodPtr& pod) {
    cluster.upsert_pod(pod->info);
    pods.put(pod);
  }
  [[nodiscard]] Snapshot snapshot() const { return {.cluster = &cluster, .pod_sets = &pods, .nodes = &nodes, .groups = groups}; }
};

/// The fastest of three passes by fresh autoscalers, and what it decided.
json::Object measure(const BenchCluster& cluster, std::size_t pods) {
  placement::Profiles profiles = *placement::Framework::create(placement::default_profile(placement::Era::k136));
  autoscaler::Options options;
  options.skip_nodes_with_local_storage = false;
  const Snapshot snapshot = cluster.snapshot();
  double best = 1e9, best_cpu = 1e9;
  Actions actions;
  for (int i = 0; i < 3; ++i) {
    Autoscaler core(profiles, 1);
    const double start = now_seconds();
    const std::clock_t cpu_start = std::clock();
    actions = core.step(snapshot, options, kNow);
    best = std::min(best, now_seconds() - start);
    // What the pass took of the processor is the same on a busy machine.
    best_cpu = std::min(best_cpu, static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC);
  }
  std::int64_t grown = 0;
  for (const Resize& resize : actions.grow) grown += resize.to - resize.from;
  return {{"seconds", best},
          {"cpu_seconds", best_cpu},
          {"waiting", static_cast<std::int64_t>(pods)},
          {"grown", grown},
          {"helped", static_cast<std::int64_t>(actions.status.plan.helped.size())},
          {"unneeded", static_cast<std::int64_t>(actions.status.unneeded.size())}};
}

json::Object waiting(const Options& options, std::size_t pods, std::size_t kinds, int groups) {
  BenchCluster cluster;
  cluster.add_empty_groups(groups);
  const auto count = static_cast<std::size_t>(static_cast<double>(pods) * options.scale);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t kind = i % kinds;
    const auto size = static_cast<std::int64_t>(kind % 40);
    cluster.add_pod(make_pod(fmt::format("app{}", kind), i, 100 + size * 50, 128 + size * 96, ""));
  }
  return measure(cluster, count);
}

/// 5,000 nodes with 30 pods each; `idle` of them use 40% of their CPU, the others 80%.
json::Object full_cluster(const Options& options, std::size_t idle) {
  BenchCluster cluster;
  const auto nodes = static_cast<std::size_t>(5000 * options.scale);
  cluster.add_nodes(nodes);
  for (int app = 0; app < 200; ++app)
    (void)cluster.cluster.upsert(json::Object{{"apiVersion", "apps/v1"},
                                              {"kind", "ReplicaSet"},
                                              {"metadata", json::Object{{"namespace", "default"}, {"name", fmt::format("app{}", app)}}}});
  for (std::size_t i = 0; i < nodes * 30; ++i) {
    const std::size_t node = i / 30;
    const bool is_idle = node * idle / nodes != (node + 1) * idle / nodes;
    cluster.add_pod(make_pod(fmt::format("app{}", i % 200), i, is_idle ? 210 : 430, 500, fmt::format("node-{:05}", node)));
  }
  return measure(cluster, 0);
}

const Register kToken10k({"AutoscaleTokenPods10k",
                          "a pass: 10,000 waiting pods of one ReplicaSet with token volumes, 12 groups without nodes",
                          [](const Options& options) { return waiting(options, 10'000, 1, 12); }});
const Register kToken30k({"AutoscaleTokenPods30k", "the same with 30,000",
                          [](const Options& options) { return waiting(options, 30'000, 1, 12); }});
const Register kMixed50k({"AutoscaleMixed50k", "a pass: 50,000 waiting pods of 200 ReplicaSets, 12 groups without nodes",
                          [](const Options& options) { return waiting(options, 50'000, 200, 12); }});
const Register kKinds51k({"AutoscaleKinds51k", "a pass: 51,000 waiting pods of 2,000 kinds, 4 groups without nodes",
                          [](const Options& options) { return waiting(options, 51'000, 2'000, 4); }});
const Register kDrain1000({"AutoscaleDrain1000", "a pass: 5,000 nodes, 150,000 pods, 1,000 nodes below the threshold drained in thought",
                           [](const Options& options) { return full_cluster(options, static_cast<std::size_t>(1000 * options.scale)); }});
const Register kSteady({"AutoscaleSteady", "a pass: 5,000 nodes, 150,000 pods, nothing to do",
                        [](const Options& options) { return full_cluster(options, 0); }});

}  // namespace
}  // namespace berth::bench
