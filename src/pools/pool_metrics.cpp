#include "pools/pool_metrics.h"

#include "pools/ledger.h"

namespace berth::pools {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(10);

/// Of a pod, as people call what it is of.
std::string workload_of(const model::PodView& pod) {
  for (const std::string_view key : {"app", "app.kubernetes.io/name", "job-name"})
    if (const std::string* name = pod.meta.labels.get(key)) return *name;
  return "other";
}

Parts parts_of(const placement::Resource& resource) {
  Parts out{resource.cpu_milli, resource.memory_bytes, 0};
  for (const auto& [name, amount] : resource.scalars)
    if (name.ends_with("/gpu")) out[kGpuPart] += amount * 1000;
  return out;
}

}  // namespace

void PoolMetrics::see(const PassResult& pass, PoolsCache& cache, const Catalogue& catalogue, TimePoint now) {
  count(pass, cache);
  if (now - looked_ < kBetweenLooks) return;
  const double hours = looked_ == TimePoint{} ? 0 : static_cast<double>((now - looked_).count()) / 3.6e9;
  looked_ = now;
  show_pools(cache);
  charge(cache, catalogue, hours);
}

void PoolMetrics::count(const PassResult& pass, const PoolsCache& cache) {
  const auto pool_of = [&](const std::string& claim) {
    const auto at = cache.claims().find(claim);
    return at == cache.claims().end() ? std::string() : at->second.pool;
  };
  for (const Write& write : pass.writes) {
    if (write.gvr.resource != "nodeclaims") continue;
    if (write.kind == Write::Kind::kCreate)
      registry_
          .counter("karpenter_nodeclaims_created_total", "NodeClaims that were made.",
                   {{"nodepool", std::string(json::get_string(write.body, {"metadata", "labels", kPoolLabel}))}})
          .add();
    if (write.kind == Write::Kind::kDelete)
      registry_.counter("karpenter_nodeclaims_terminated_total", "NodeClaims that were given up.", {{"nodepool", pool_of(write.name)}})
          .add();
  }
  for (const auto& [claim, reason] : pass.disrupted)
    registry_
        .counter("karpenter_nodeclaims_disrupted_total", "NodeClaims that were to go, by why.",
                 {{"nodepool", pool_of(claim)}, {"reason", std::string(to_string(reason))}})
        .add();
}

void PoolMetrics::show_pools(const PoolsCache& cache) {
  for (const auto& [name, pool] : cache.pools()) {
    const json::Value* document = cache.pool_document(name);
    for (const auto& [key, amount] : json::get_object(*document, {"status", "resources"}))
      if (const auto quantity = model::Quantity::parse(amount.is_string() ? json::as_view(amount) : std::string_view()))
        registry_
            .gauge("karpenter_nodepools_usage", "What the nodes of a pool have.", {{"nodepool", name}, {"resource_type", std::string(key)}})
            .set(quantity->as_double());
    for (const auto& [resource, quantity] : pool.limits)
      registry_.gauge("karpenter_nodepools_limit", "What the nodes of a pool may have.", {{"nodepool", name}, {"resource_type", resource}})
          .set(quantity.as_double());
  }
}

void PoolMetrics::charge(PoolsCache& cache, const Catalogue& catalogue, double hours) {
  std::map<std::string, double> rates;
  for (const auto& [name, pool] : cache.pools()) rates[name] = 0;
  const auto pay = [&](const std::string& ns, const std::string& workload, double amount) {
    if (hours > 0 && amount > 0)
      registry_
          .counter("berth_workload_cost_total",
                   "What workloads cost on nodes of pools, in the instance types' currency; without a "
                   "name: what no pod asks for.",
                   {{"namespace", ns}, {"workload", workload}})
          .add(amount * hours);
  };
  for (const auto& [name, claim] : cache.claims()) {
    const double price = price_of(catalogue, claim.labels);
    if (price <= 0 || !claim.is("Launched")) continue;
    rates[claim.pool] += price;
    const placement::NodeInfo* info = claim.node_name.empty() ? nullptr : cache.cluster().cluster().find_node(claim.node_name);
    double used = 0;
    std::map<std::pair<std::string, std::string>, double> shares;
    if (info != nullptr)
      for (const auto& pod : info->pods) {
        const double share = price_share(parts_of(pod->wanted()), parts_of(info->allocatable));
        shares[{pod->view().meta.ns, workload_of(pod->view())}] += share;
        used += share;
      }
    for (const auto& [who, share] : shares) pay(who.first, who.second, price * share / std::max(1.0, used));
    pay("", "", price * std::max(0.0, 1 - used));
  }
  for (const auto& [pool, rate] : rates) {
    registry_.gauge("berth_nodepool_price_per_hour", "What an hour of a pool's nodes costs.", {{"nodepool", pool}}).set(rate);
    if (hours > 0 && rate > 0)
      registry_.counter("berth_nodepool_cost_total", "What a pool's nodes have cost.", {{"nodepool", pool}}).add(rate * hours);
  }
}

}  // namespace berth::pools
