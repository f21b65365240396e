// Node pools: what to buy for thousands of pods, and what of thousands of nodes to give up.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "bench/bench.h"
#include "pools/consolidate.h"

namespace berth::bench {
namespace {

using namespace pools;

const TimePoint kNow = *parse_rfc3339("2026-11-28T12:00:00Z");

/// Families of 2, 4 and 8 GiB a processor in twelve sizes, prices with a little noise: about 700.
Catalogue make_catalogue() {
  constexpr int kCores[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 192};
  std::string text = "kind: InstanceTypeCatalogue\nzones: [a, b, c]\ninstanceTypes:\n";
  unsigned noise = 7;
  for (int family = 0; family < 58; ++family) {
    noise = noise * 1103515245 + 12345;
    const double factor = 1 + static_cast<double>((noise >> 16) % 30) / 100;
    for (const int cores : kCores) {
      const int memory = cores * (2 << family % 3);
      text += fmt::format(
          "- {{name: f{}.{}, cpu: {}, memory: {}Gi, pods: {}, overhead: {{cpu: 80m, memory: 500Mi}}, prices: {{on-demand: {:.4f}}}}}\n",
          family, cores, cores, memory, std::min(250, 20 + cores * 10), (cores * 0.03 + memory * 0.004) * factor);
    }
  }
  auto read = Catalogue::parse(text, "bench");
  return read ? std::move(*read) : Catalogue{};
}

placement::PodInfoPtr make_pod(std::size_t kind, std::size_t number, std::int64_t cpu, std::int64_t memory_mib,
                               const std::string& node = "") {
  auto view = std::make_shared<model::PodView>();
  view->meta.ns = "default";
  view->meta.name = view->meta.uid = fmt::format("app{}-{}", kind, number);
  view->meta.labels = model::Labels({{"app", fmt::format("app{}", kind)}});
  view->meta.owner_references = {{.api_version = "apps/v1", .kind = "ReplicaSet", .name = "rs", .uid = "rs", .controller = true}};
  view->scheduler_name = "default-scheduler";
  view->node_name = node;
  view->phase = node.empty() ? "Pending" : "Running";
  model::ContainerView container;
  container.requests = {{"cpu", model::Quantity::from_milli(cpu)}, {"memory", model::Quantity::from_value(memory_mib << 20)}};
  view->containers.push_back(std::move(container));
  return placement::PodInfo::make(std::move(view), placement::Era::k136);
}

std::vector<NodePool> make_pools() {
  return {NodePool::parse(*json::parse(R"({"metadata": {"name": "general"}, "spec": {"template": {"spec": {"requirements": []}},
    "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}}})"))};
}

placement::Profiles make_profiles() { return *placement::Profiles::create({placement::default_profile(placement::Era::k136)}); }

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

json::Object plan_5k(const Options& options) {
  const Catalogue catalogue = make_catalogue();
  const std::vector<NodePool> pools = make_pools();
  placement::Cluster cluster;
  placement::Trial trial(cluster, make_profiles());
  ProvisionInput input;
  input.trial = &trial;
  input.pools = &pools;
  input.catalogue = &catalogue;
  input.now = kNow;
  const auto count = static_cast<std::size_t>(5000 * options.scale);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t kind = i % 400;
    input.waiting.push_back(
        make_pod(kind, i, 100 + static_cast<std::int64_t>(kind * 37 % 40) * 100, 128 + static_cast<std::int64_t>(kind * 61 % 160) * 100));
  }
  const double start = now_seconds(), processor = processor_seconds();
  const ProvisionPlan plan = plan_provisioning(input);
  const double seconds = now_seconds() - start;
  std::size_t placed = 0;
  for (const NewClaim& claim : plan.claims) placed += claim.pods.size();
  json::Object out{{"pods", placed},
                   {"seconds", seconds},
                   {"processor_seconds", processor_seconds() - processor},
                   {"nodes", plan.claims.size()},
                   {"types", catalogue.types.size()},
                   {"cost", plan.cost},
                   {"first_fit_cost", plan.greedy_cost},
                   {"bound", plan.bound}};
  if (placed != count) out["error"] = fmt::format("{} of {} pods have a node", placed, count);
  return out;
}

json::Object consolidate_2k(const Options& options) {
  const Catalogue catalogue = make_catalogue();
  const std::vector<NodePool> pools = make_pools();
  placement::Cluster cluster;
  const auto nodes = static_cast<std::size_t>(2000 * options.scale);
  ConsolidationInput input;
  // Nodes of 8 and 16 processors that are half empty: the load has gone down.
  std::size_t number = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const InstanceType& type = *catalogue.find(i % 3 == 0 ? "f1.16" : "f1.8");
    const std::string name = fmt::format("node-{}", i);
    const NodeShape shape{0, 0, &type.offerings.front(), type.labels, type.offerings.front().price, {}};
    (void)cluster.upsert_node(node_of(shape, pools[0], type, name));
    for (std::size_t k = 0; k < 10; ++k, ++number)
      cluster.upsert_pod(make_pod(number % 400, number, 100 + static_cast<std::int64_t>(number % 400 * 37 % 6) * 100,
                                  128 + static_cast<std::int64_t>(number % 400 * 61 % 20) * 100, name));
    input.nodes.push_back(
        {name, name, 0, type.name, "a", "on-demand", type.offerings.front().price, true, false, "", "", kNow - std::chrono::hours(1)});
  }
  placement::Trial trial(cluster, make_profiles());
  input.provision.trial = &trial;
  input.provision.pools = &pools;
  input.provision.catalogue = &catalogue;
  input.provision.now = kNow;
  const double start = now_seconds(), processor = processor_seconds();
  input.provision.is_over = [end = start + 8] { return now_seconds() > end; };
  const ConsolidationPlan plan = plan_consolidation(input);
  const double seconds = now_seconds() - start;
  const double used = processor_seconds() - processor;
  // The bound: all pods anew, without a node.
  placement::Cluster empty;
  placement::Trial other(empty, make_profiles());
  ProvisionInput all = input.provision;
  all.trial = &other;
  all.is_over = {};
  for (std::size_t i = 0; i < number; ++i)
    all.waiting.push_back(make_pod(i % 400, i, 100 + static_cast<std::int64_t>(i % 400 * 37 % 6) * 100,
                                   128 + static_cast<std::int64_t>(i % 400 * 61 % 20) * 100));
  const double bound = plan_provisioning(all).bound;
  std::size_t evictions = 0, gone = 0, come = 0;
  for (const Disruption& step : plan.steps) evictions += step.evicted.size(), gone += step.nodes.size(), come += step.replacements.size();
  return {{"pods", number},
          {"seconds", seconds},
          {"processor_seconds", used},
          {"cost", plan.cost},
          {"cost_after", plan.cost - plan.savings},
          {"bound", bound},
          {"above_bound_percent", ((plan.cost - plan.savings) / bound - 1) * 100},
          {"nodes_gone", gone},
          {"nodes_come", come},
          {"evictions", evictions}};
}

const Register kPlan5k({"PoolsPlan5k", "what to buy: 5,000 pods of 400 kinds, 700 instance types, no node yet", plan_5k});
const Register kConsolidate2k({"PoolsConsolidate2k", "what to give up: 2,000 half-empty nodes with 20,000 pods, no budget in the way",
                               consolidate_2k});

}  // namespace
}  // namespace berth::bench
