// A descheduling cycle on a big cluster: nodes above their target give up pods, each eviction checked by the engine; a pod that fits
// nowhere gets room by moves; nodes that could be empty are found.
#include <fmt/format.h>

#include <ctime>

#include "bench/bench.h"
#include "descheduler/cycle.h"
#include "descheduler/packing.h"
#include "placement/attempt.h"

namespace berth::bench {
namespace {

using namespace descheduler;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

json::Value node_document(const std::string& name) {
  const json::Object amounts = {{"cpu", "16"}, {"memory", "64Gi"}, {"pods", "110"}};
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"metadata", json::Object{{"name", name}, {"labels", json::Object{{"kubernetes.io/hostname", name}}}}},
                      {"status", json::Object{{"capacity", amounts},
                                              {"allocatable", amounts},
                                              {"conditions", json::Array{json::Object{{"type", "Ready"}, {"status", "True"}}}}}}};
}

/// As an API server stores the pod of a ReplicaSet.
json::Value pod_document(std::size_t number, const std::string& node, const std::string& cpu) {
  const std::string app = fmt::format("app{}", number % 200), name = fmt::format("{}-7d4b9c-{:06}", app, number);
  json::Array tolerations;
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    tolerations.push_back(json::Object{{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
  const json::Object requests = {{"cpu", cpu}, {"memory", "500Mi"}};
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       json::Object{{"namespace", "default"},
                    {"name", name},
                    {"uid", name},
                    {"creationTimestamp", "2026-01-02T11:00:00Z"},
                    {"labels", json::Object{{"app", app}, {"pod-template-hash", "7d4b9c"}}},
                    {"ownerReferences",
                     json::Array{json::Object{
                         {"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", app}, {"uid", "rs-" + app}, {"controller", true}}}}}},
      {"spec", json::Object{{"nodeName", node},
                            {"schedulerName", "default-scheduler"},
                            {"priority", 0},
                            {"tolerations", std::move(tolerations)},
                            {"volumes", json::Array{json::Object{{"name", fmt::format("kube-api-access-{:05}", number % 100'000)},
                                                                 {"projected", json::Object{}}}}},
                            {"containers", json::Array{json::Object{{"name", "main"},
                                                                    {"image", "registry.k8s.io/pause:3.10"},
                                                                    {"resources", json::Object{{"requests", requests}}}}}}}},
      {"status", json::Object{{"phase", "Running"},
                              {"qosClass", "Burstable"},
                              {"startTime", "2026-01-02T11:00:00Z"},
                              {"conditions", json::Array{json::Object{{"type", "Ready"}, {"status", "True"}}}}}}};
}

/// An eighth of the nodes use 81% of their CPU, the others a third.
void fill(Snapshot& snapshot, const Options& options) {
  const auto nodes = static_cast<std::size_t>(5000 * options.scale);
  std::size_t number = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::string name = fmt::format("node-{:05}", i);
    const bool is_full = i % 25 < 3;
    snapshot.add(node_document(name));
    for (int pod = 0; pod < (is_full ? 52 : 27); ++pod) snapshot.add(pod_document(number++, name, is_full ? "250m" : "200m"));
  }
  snapshot.finish();
}

placement::Profiles bench_profiles() {
  placement::Profiles out;
  out.add(*placement::Framework::create(placement::default_profile(placement::Era::k136)));
  return out;
}

json::Object plan_of_2000(const Options& options) {
  Snapshot snapshot;
  fill(snapshot, options);
  const auto policy = parse_policy(
      "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmaxNoOfPodsToEvictTotal: 2000\nprofiles:\n- name: p\n  pluginConfig:\n"
      "  - {name: DefaultEvictor, args: {}}\n  - name: LowNodeUtilization\n    args: {thresholds: {cpu: 40, memory: 40, pods: 40}, "
      "targetThresholds: {cpu: 70, memory: 90, pods: 90}}\n  plugins: {balance: {enabled: [LowNodeUtilization]}}\n",
      "bench");
  if (!policy) return {{"error", policy.error().message}};
  const double start = cpu_seconds();
  const auto plan = plan_cycle(*policy, snapshot, bench_profiles(), {.now = *parse_rfc3339("2026-01-02T12:00:00Z")});
  const double seconds = cpu_seconds() - start;
  if (!plan) return {{"error", plan.error().message}};
  return {{"cpu_seconds", seconds},
          {"nodes", static_cast<std::int64_t>(snapshot.cluster.node_count())},
          {"standing_pods", static_cast<std::int64_t>(snapshot.pods.size())},
          {"evictions", static_cast<std::int64_t>(plan->result.evicted())}};
}

json::Object packing(const Options& options) {
  Snapshot snapshot;
  fill(snapshot, options);
  placement::Trial trial(snapshot.cluster, bench_profiles(),
                         {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}});
  json::Value wanting = pod_document(999'999, "", "12");
  json::set(wanting, {"status", "phase"}, json::Value("Pending"));
  const auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(wanting)), placement::Era::k136);
  double start = cpu_seconds();
  std::size_t moves = 0;
  {
    const placement::Attempt attempt(trial);
    moves = make_room(trial, std::span(&pod, 1)).moves.size();
  }
  const double room = cpu_seconds() - start;
  start = cpu_seconds();
  const placement::Attempt attempt(trial);
  const ConsolidationPlan plan = consolidate(trial);
  return {{"make_room_cpu_seconds", room},
          {"moves", static_cast<std::int64_t>(moves)},
          {"consolidate_cpu_seconds", cpu_seconds() - start},
          {"emptied", static_cast<std::int64_t>(plan.emptied.size())}};
}

const Register kPlan2000({"Deschedule2000", "a cycle: 5,000 nodes, 150,000 pods, 2,000 evictions each checked by the engine",
                          plan_of_2000});
const Register kPacking({"Packing", "5,000 nodes, 150,000 pods: room for a pod of 12 CPUs, then which nodes could be empty", packing});

}  // namespace
}  // namespace berth::bench
