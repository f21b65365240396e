// What-if: how long it takes to fork a cluster with its engine, change it, ask it once and drop it. The base has been prepared for such
// pods, as the autoscaler does it for a drain.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "bench/bench.h"
#include "model/views/node_view.h"
#include "model/views/pod_view.h"
#include "placement/trial.h"
#include "tests/support/stored_pods.h"

namespace berth::bench {
namespace {

using namespace placement;
using model::Quantity;

constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kHostname = "kubernetes.io/hostname";
constexpr std::size_t kPodsOfNode = 30;

/// As a user writes it, in the template of the Deployment `app`.
model::PodView written_pod(const std::string& app) {
  model::PodView out;
  out.meta.ns = "default";
  out.meta.labels = model::Labels({{"app", app}});
  model::ContainerView container;
  container.name = "main";
  container.image = "registry.k8s.io/pause:3.10";
  container.requests = {{"cpu", Quantity::from_milli(100)}, {"memory", Quantity::from_value(500LL << 20)}};
  out.containers.push_back(std::move(container));
  return out;
}

model::PodAffinityTerm term_for(const std::string& app, const char* key) {
  model::PodAffinityTerm out;
  out.selector = model::Selector({{"app", model::Requirement::Op::kIn, {app}}});
  out.topology_key = key;
  return out;
}

enum class Kind : std::uint8_t { kPlain, kSpread, kAffinity, kAntiAffinity };
constexpr std::array<std::pair<Kind, const char*>, 4> kKinds = {
    {{Kind::kPlain, "plain"}, {Kind::kSpread, "spread"}, {Kind::kAffinity, "affinity"}, {Kind::kAntiAffinity, "anti_affinity"}}};

/// A pod of one of twenty plain Deployments, or of that of its kind, as an API server stores it.
PodInfoPtr make_pod(testing::StoredPods& stored, Kind kind, std::size_t number) {
  const auto info = [&](model::PodView written, const std::string& app) {
    return PodInfo::make(std::make_shared<model::PodView>(stored.of_deployment(std::move(written), app)), Era::k136);
  };
  switch (kind) {
    case Kind::kPlain: {
      const std::string app = fmt::format("plain-{}", number % 20);
      return info(written_pod(app), app);
    }
    case Kind::kSpread: {
      auto out = written_pod("spread");
      model::TopologySpreadConstraint constraint;
      constraint.max_skew = 5;
      constraint.topology_key = kZone;
      constraint.is_hard = true;
      constraint.selector = model::Selector({{"app", model::Requirement::Op::kIn, {"spread"}}});
      out.spread_constraints.push_back(std::move(constraint));
      return info(std::move(out), "spread");
    }
    case Kind::kAffinity: {
      auto out = written_pod("affine");
      out.required_affinity = {term_for("affine", kZone)};
      return info(std::move(out), "affine");
    }
    case Kind::kAntiAffinity:
      break;
  }
  auto out = written_pod("lonely");
  out.required_anti_affinity = {term_for("lonely", kHostname)};
  return info(std::move(out), "lonely");
}

model::NodeViewPtr make_node(std::size_t i) {
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = fmt::format("node-{:07}", i);
  out->meta.labels = model::Labels({{kHostname, out->meta.name}, {kZone, fmt::format("zone-{}", i % 3)}});
  out->allocatable = {{"cpu", Quantity::from_value(4)}, {"memory", Quantity::from_value(32LL << 30)}, {"pods", Quantity::from_value(110)}};
  return out;
}

/// Of a node's pods two are spread and two like company; on every fourth node one keeps to itself.
Kind kind_of(std::size_t node, std::size_t place) {
  if (place < 2) return Kind::kSpread;
  if (place < 4) return Kind::kAffinity;
  return place == 4 && node % 4 == 0 ? Kind::kAntiAffinity : Kind::kPlain;
}

/// Processor time of this process: what a fork costs when the machine has other work too.
double fork_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double percentile(std::vector<double> values, double part) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * part);
  std::ranges::nth_element(values, at);
  return std::round(*at * 1e7) / 10;  // Microseconds, to a tenth.
}

json::Object forks(std::size_t nodes, std::size_t count, std::uint64_t seed) {
  auto framework = Framework::create(default_profile(Era::k136));
  if (!framework) return {{"error", framework.error().message}};
  testing::StoredPods stored(seed);
  if (!stored.error().empty()) return {{"error", stored.error()}};
  Cluster cluster;
  std::vector<std::string> keys;
  std::size_t number = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const NodeIndex index = cluster.upsert_node(make_node(i));
    for (std::size_t place = 0; place < kPodsOfNode; ++place) {
      const PodInfoPtr pod = make_pod(stored, kind_of(i, place), number++);
      cluster.assume(pod, index);
      if (number % 97 == 0) keys.push_back(pod->key);
    }
  }
  Trial base(cluster, *framework, {.engine = {.seed = seed}, .preemption = {}});
  std::mt19937_64 random(seed);
  json::Object out{{"nodes", nodes}, {"pods_there", cluster.pod_count()}, {"forks", count * kKinds.size()}};
  const double begin = now_seconds();
  std::vector<double> all;
  for (const auto& [kind, name] : kKinds) {
    const double first = fork_cpu_seconds();
    base.prepare(make_pod(stored, kind, number++));
    out[fmt::format("{}_prepare_ms", name)] = std::round((fork_cpu_seconds() - first) * 1e4) / 10;
    std::vector<double> each;
    for (std::size_t i = 0; i < count; ++i) {
      const PodInfoPtr pod = make_pod(stored, kind, number++);
      const PodInfoPtr leaving = cluster.find_pod(keys[random() % keys.size()]);
      const double start = fork_cpu_seconds();
      {
        Trial fork = base.fork();
        fork.evict(leaving);
        if (fork.decide(pod).outcome != Decision::Outcome::kScheduled) out["error"] = "a pod found no node";
      }
      each.push_back(fork_cpu_seconds() - start);
    }
    out[fmt::format("{}_p50_us", name)] = percentile(each, 0.5);
    out[fmt::format("{}_p99_us", name)] = percentile(each, 0.99);
    all.insert(all.end(), each.begin(), each.end());
  }
  out["p50_us"] = percentile(all, 0.5);
  out["p99_us"] = percentile(all, 0.99);
  out["seconds"] = now_seconds() - begin;
  return out;
}

const bool kRegistered = [] {
  const std::string what =
      "processor time to fork cluster and engine, evict a pod, decide for another, drop the fork; four kinds of pods as an API server "
      "stores them; ";
  for (const auto& [nodes, count] : {std::pair<std::size_t, std::size_t>{5000, 500}, std::pair<std::size_t, std::size_t>{100'000, 50}})
    scenarios().push_back({fmt::format("TrialFork/{}Nodes", nodes), what + fmt::format("{} pods there", nodes * kPodsOfNode),
                           [nodes, count](const Options& options) {
                             return forks(std::max<std::size_t>(100, static_cast<std::size_t>(static_cast<double>(nodes) * options.scale)),
                                          count, options.seed);
                           }});
  return true;
}();

}  // namespace
}  // namespace berth::bench
