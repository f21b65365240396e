// What-if: every single node lost in turn, on a cluster as an API server lists it. Reading the objects is counted by itself.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "bench/bench.h"
#include "placement/framework.h"
#include "whatif/whatif.h"

namespace berth::bench {
namespace {

constexpr std::size_t kPodsOfLostNode = 30;

/// What workloads the pods are of.
struct Workloads {
  std::size_t count = 40;
  bool is_varied = false;  ///< Requests differ, and a third each has preferred anti-affinity and soft spread; else a tenth has hard spread.
};

double what_if_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

json::Value listed_node(std::size_t i) {
  const std::string name = fmt::format("node-{:05}", i);
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"metadata", json::Object{{"name", name},
                                                {"uid", name},
                                                {"labels", json::Object{{"kubernetes.io/hostname", name},
                                                                        {"topology.kubernetes.io/zone", fmt::format("zone-{}", i % 3)}}}}},
                      {"status", json::Object{{"allocatable", json::Object{{"cpu", "4"}, {"memory", "32Gi"}, {"pods", "110"}}},
                                              {"conditions", json::Array{json::Object{{"type", "Ready"}, {"status", "True"}}}}}}};
}

json::Value listed_set(std::size_t app) {
  return json::Object{
      {"apiVersion", "apps/v1"},
      {"kind", "ReplicaSet"},
      {"metadata",
       json::Object{{"name", fmt::format("app-{}-6d5f7c9b8", app)}, {"namespace", "default"}, {"uid", fmt::format("set-{}", app)}}},
      {"spec", json::Object{{"selector", json::Object{{"matchLabels", json::Object{{"app", fmt::format("app-{}", app)},
                                                                                   {"pod-template-hash", "6d5f7c9b8"}}}}}}}};
}

json::Value listed_budget(std::size_t app) {
  return json::Object{
      {"apiVersion", "policy/v1"},
      {"kind", "PodDisruptionBudget"},
      {"metadata", json::Object{{"name", fmt::format("app-{}", app)}, {"namespace", "default"}}},
      {"spec",
       json::Object{{"minAvailable", 1}, {"selector", json::Object{{"matchLabels", json::Object{{"app", fmt::format("app-{}", app)}}}}}}}};
}

json::Object requests_of(const Workloads& workloads, std::size_t app) {
  if (!workloads.is_varied) return {{"cpu", "100m"}, {"memory", "500Mi"}};
  return {{"cpu", fmt::format("{}m", 50 + app % 10 * 10)}, {"memory", fmt::format("{}Mi", 100 + app % 17 * 50)}};
}

json::Value selector_of(const std::string& label) { return json::Object{{"matchLabels", json::Object{{"app", label}}}}; }

/// As charts write them.
void add_wishes(json::Value& pod, std::size_t app, const std::string& label) {
  if (app % 3 == 0) {
    const json::Object term{{"labelSelector", selector_of(label)}, {"topologyKey", "kubernetes.io/hostname"}};
    json::set(pod, {"spec", "affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"},
              json::Array{json::Object{{"weight", 100}, {"podAffinityTerm", term}}});
  }
  if (app % 3 != 1) return;
  json::Array constraints;
  for (const char* key : {"topology.kubernetes.io/zone", "kubernetes.io/hostname"})
    constraints.push_back(
        json::Object{{"maxSkew", 1}, {"topologyKey", key}, {"whenUnsatisfiable", "ScheduleAnyway"}, {"labelSelector", selector_of(label)}});
  json::set(pod, {"spec", "topologySpreadConstraints"}, std::move(constraints));
}

/// With what admission and the controllers leave on every pod: a token volume of a name of its own, tolerations, an owner, conditions.
json::Value listed_pod(const Workloads& workloads, std::size_t node, std::size_t number) {
  // Neighbours on a node are of different workloads, another set on each.
  const std::size_t app = workloads.is_varied ? number * 7919 % workloads.count : number % workloads.count;
  const std::string name = fmt::format("app-{}-6d5f7c9b8-{:07}", app, number), label = fmt::format("app-{}", app);
  json::Array tolerations;
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    tolerations.push_back(json::Object{{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
  json::Value out = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", json::Object{{"name", name},
                                {"namespace", "default"},
                                {"uid", name},
                                {"creationTimestamp", "2026-01-01T00:00:00Z"},
                                {"labels", json::Object{{"app", label}, {"pod-template-hash", "6d5f7c9b8"}}},
                                {"ownerReferences", json::Array{json::Object{{"apiVersion", "apps/v1"},
                                                                             {"kind", "ReplicaSet"},
                                                                             {"name", label + "-6d5f7c9b8"},
                                                                             {"uid", fmt::format("set-{}", app)},
                                                                             {"controller", true}}}}}},
      {"spec",
       json::Object{{"nodeName", fmt::format("node-{:05}", node)},
                    {"schedulerName", "default-scheduler"},
                    {"priority", 0},
                    {"tolerations", std::move(tolerations)},
                    {"volumes", json::Array{json::Object{{"name", fmt::format("kube-api-access-{:05}", number % 100'000)},
                                                         {"projected", json::Object()}}}},
                    {"containers", json::Array{json::Object{{"name", "main"},
                                                            {"image", "registry.k8s.io/pause:3.10"},
                                                            {"resources", json::Object{{"requests", requests_of(workloads, app)}}}}}}}},
      {"status",
       json::Object{{"phase", "Running"},
                    {"conditions",
                     json::Array{json::Object{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "2026-01-01T00:00:10Z"}}}}}}};
  if (workloads.is_varied) {
    add_wishes(out, app, label);
    return out;
  }
  // Every tenth workload is spread over the zones.
  if (app % 10 == 0)
    json::set(out, {"spec", "topologySpreadConstraints"},
              json::Array{json::Object{{"maxSkew", 5},
                                       {"topologyKey", "topology.kubernetes.io/zone"},
                                       {"whenUnsatisfiable", "DoNotSchedule"},
                                       {"labelSelector", json::Object{{"matchLabels", json::Object{{"app", label}}}}}}});
  return out;
}

json::Object losses_of(const Options& options, const Workloads& workloads) {
  const auto nodes = static_cast<std::size_t>(5000 * options.scale);
  auto framework = placement::Framework::create(placement::default_profile(placement::Era::k136));
  if (!framework) return {{"error", framework.error().message}};
  whatif::Options how;
  how.profiles = placement::Profiles(*framework);
  how.now = *parse_rfc3339("2026-01-02T00:00:00Z");
  const double begin = what_if_cpu_seconds();
  whatif::Present present(std::move(how));
  for (std::size_t app = 0; app < workloads.count; ++app) {
    present.add(listed_set(app));
    present.add(listed_budget(app));
  }
  std::size_t number = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    present.add(listed_node(i));
    for (std::size_t k = 0; k < kPodsOfLostNode; ++k) present.add(listed_pod(workloads, i, number++));
  }
  if (auto done = present.finish(); !done) return {{"error", done.error().message}};
  const double read = what_if_cpu_seconds() - begin;
  std::int64_t tried = 0, failing = 0;
  const double first = now_seconds(), first_cpu = what_if_cpu_seconds();
  for (const char* by : {"fail", "remove"}) {
    auto answer = present.ask(json::Object{{"each", "node"}, {"by", by}});
    if (!answer) return {{"error", answer.error().message}};
    tried += json::get_int(*answer, {"eachCount"});
    failing += json::get_int(*answer, {"eachPending"});
  }
  const double cpu = what_if_cpu_seconds() - first_cpu;
  return {{"nodes", nodes},
          {"pods_there", number},
          {"losses", tried},
          {"leave_something", failing},
          {"read_cpu_seconds", std::round(read * 100) / 100},
          {"cpu_seconds", std::round(cpu * 100) / 100},
          {"seconds", std::round((now_seconds() - first) * 100) / 100},
          {"cpu_microseconds_per_loss", std::round(cpu * 1e6 / static_cast<double>(tried))}};
}

json::Object losses(const Options& options) { return losses_of(options, {}); }

json::Object losses_of_many(const Options& options) {
  return losses_of(options, {.count = std::max<std::size_t>(30, static_cast<std::size_t>(3000 * options.scale)), .is_varied = true});
}

const Register kLosses({"WhatIfEachNode/5000Nodes/150000Pods",
                        "every node lost, then every node removed, each alone, with successors placed", losses});
const Register kLossesOfMany({"WhatIfEachNode/5000Nodes/150000Pods/3000Workloads",
                              "the same where each workload is another: requests, preferred anti-affinity, soft spread", losses_of_many});

}  // namespace
}  // namespace berth::bench
