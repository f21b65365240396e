// Groups of pods: how long one decision for all members takes (docs/gangs.md). Pods and nodes as an API server stores them.
#include <fmt/format.h>

#include <algorithm>

#include "bench/bench.h"
#include "model/views/node_view.h"
#include "model/views/pod_view.h"
#include "placement/groups/group_preemption.h"
#include "tests/support/stored_pods.h"

namespace berth::bench {
namespace {

using namespace placement;
using model::Quantity;

constexpr std::size_t kNodesOfRack = 50;

model::NodeViewPtr make_node(std::size_t i) {
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = fmt::format("node-{:05}", i);
  out->meta.labels = model::Labels({{"kubernetes.io/hostname", out->meta.name}, {"rack", fmt::format("rack-{:03}", i / kNodesOfRack)}});
  out->allocatable = {
      {"cpu", Quantity::from_value(32)}, {"memory", Quantity::from_value(128LL << 30)}, {"pods", Quantity::from_value(110)}};
  return out;
}

PodInfoPtr make_pod(testing::StoredPods& stored, const std::string& app, std::int64_t cpu_milli, std::int64_t priority,
                    const std::string& node = {}) {
  model::PodView out;
  out.meta.ns = "default";
  out.meta.labels = model::Labels({{"app", app}});
  out.priority = priority;
  model::ContainerView container;
  container.name = "main";
  container.image = "registry.k8s.io/pause:3.10";
  container.requests = {{"cpu", Quantity::from_milli(cpu_milli)}, {"memory", Quantity::from_value(1LL << 30)}};
  out.containers.push_back(std::move(container));
  model::PodView view = stored.of_deployment(std::move(out), app);
  view.node_name = node;
  return PodInfo::make(std::make_shared<model::PodView>(std::move(view)), Era::k136);
}

/// A cluster with so many pods of about 3 cores on each node, and a trial over it.
struct World {
  testing::StoredPods stored;
  Cluster cluster{Era::k136};
  std::unique_ptr<Trial> trial;

  World(std::size_t nodes, std::size_t pods_of_node, std::int64_t cpu_milli = 3000) {
    for (std::size_t i = 0; i < nodes; ++i) cluster.upsert_node(make_node(i));
    for (std::size_t i = 0; i < nodes; ++i)
      for (std::size_t k = 0; k < pods_of_node; ++k)
        cluster.upsert_pod(make_pod(stored, fmt::format("old-{}", k), cpu_milli, 0, fmt::format("node-{:05}", i)));
    trial = std::make_unique<Trial>(cluster, *Profiles::create({default_profile(Era::k136)}));
  }
  std::vector<PodInfoPtr> members(const std::string& app, std::size_t count, std::int64_t cpu_milli, std::int64_t priority = 0) {
    std::vector<PodInfoPtr> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(make_pod(stored, app, cpu_milli, priority));
    return out;
  }
};

PodGroup gang(std::size_t min_count, const std::string& key = {}, std::int64_t priority = 0) {
  PodGroup out;
  out.ns = "default";
  out.name = "gang";
  out.is_gang = true;
  out.min_count = static_cast<std::int64_t>(min_count);
  out.topology_key = key;
  out.has_constraints = !key.empty();
  out.priority = priority;
  return out;
}

double milliseconds(double seconds) { return std::round(seconds * 1e5) / 100; }

json::Object one_gang(const Options& options, const std::string& key, std::size_t members, std::int64_t cpu_milli) {
  World world(static_cast<std::size_t>(5000 * options.scale), 5);
  const auto pods = world.members("gang", static_cast<std::size_t>(static_cast<double>(members) * options.scale), cpu_milli);
  const PodGroup group = gang(pods.size(), key);
  std::vector<double> runs;
  GroupDecision last;
  for (int i = 0; i < 31; ++i) {
    const double start = now_seconds();
    last = decide_group(*world.trial, {.group = &group, .members = pods, .standing = {}});
    runs.push_back(now_seconds() - start);
  }
  std::ranges::sort(runs);
  return {{"nodes", world.cluster.node_count()},
          {"members", pods.size()},
          {"placed", std::ranges::count_if(last.members, [](const auto& one) { return one.has_place(); })},
          {"median_ms", milliseconds(runs[runs.size() / 2])},
          {"slowest_ms", milliseconds(runs.back())}};
}

json::Object many_gangs(const Options& options) {
  World world(static_cast<std::size_t>(5000 * options.scale), 10, 2900);
  const auto count = static_cast<std::size_t>(1000 * options.scale);
  std::vector<std::vector<PodInfoPtr>> gangs;
  for (std::size_t i = 0; i < count; ++i)
    gangs.push_back(world.members(fmt::format("gang-{}", i), 8 + i % 57, 1000 + 500 * static_cast<std::int64_t>(i % 3)));
  std::size_t placed = 0, members = 0;
  const double start = now_seconds();
  for (const auto& pods : gangs) {
    const PodGroup group = gang(pods.size());
    const GroupDecision decision = decide_group(*world.trial, {.group = &group, .members = pods, .standing = {}});
    members += pods.size();
    if (decision.outcome != GroupDecision::Outcome::kScheduled) continue;
    ++placed;
    for (std::size_t i = 0; i < pods.size(); ++i) (void)world.trial->reserve(pods[i], decision.members[i].decision.node);
  }
  return {
      {"nodes", world.cluster.node_count()}, {"gangs", count}, {"placed", placed}, {"pods", members}, {"seconds", now_seconds() - start}};
}

json::Object preempting(const Options& options, const std::string& key) {
  World world(static_cast<std::size_t>(5000 * options.scale), 10);
  const auto pods = world.members("gang", 32, 8000, 1000);
  const PodGroup group = gang(pods.size(), key, 1000);
  const PodGroups groups;
  const double start = now_seconds();
  const GroupVictims found = find_group_victims(*world.trial, {.group = &group, .members = pods, .standing = {}}, groups);
  return {{"nodes", world.cluster.node_count()},
          {"pods_there", world.cluster.pod_count()},
          {"victims", found.victims.size()},
          {"ms", milliseconds(now_seconds() - start)}};
}

const Register kGang({"GangOf1000", "one gang of 1,000 pods on 5,000 half-full nodes: one decision, taken back",
                      [](const Options& options) { return one_gang(options, "", 1000, 2000); }});
const Register kRack({"GangInTheBestRack", "one gang of 200 pods in the best of 100 racks of 50 nodes",
                      [](const Options& options) { return one_gang(options, "rack", 200, 2000); }});
const Register kBigRack({"GangOf1000InARack", "one gang of 1,000 small pods in the best of 100 racks of 50 nodes",
                         [](const Options& options) { return one_gang(options, "rack", 1000, 500); }});
const Register kMany({"Gangs1000", "1,000 gangs of 8 to 64 pods, one after the other, on 5,000 nodes that are 91% full", many_gangs});
const Register kPreempting({"GangPreemption", "victims for a gang of 32 on 5,000 full nodes with 50,000 pods",
                            [](const Options& options) { return preempting(options, ""); }});
const Register kPreemptingRack({"GangPreemptionInARack", "the same in whichever of 100 racks loses least",
                                [](const Options& options) { return preempting(options, "rack"); }});

}  // namespace
}  // namespace berth::bench
