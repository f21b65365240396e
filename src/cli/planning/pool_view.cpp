#include "cli/planning/pool_view.h"

#include <fmt/format.h>

#include "pools/crds.h"
#include "pools/plan_words.h"

namespace berth::cli {
Result<void> read_live_pools(client::Client& client, std::vector<json::Value>& into) {
  for (const pools::OwnKind& kind : pools::own_kinds()) {
    auto listed = client.list_and_wait(kind.gvr, "");
    if (!listed && listed.error().code == 404) continue;
    if (!listed) return invalid(listed.error().message);
    for (json::Value& item : listed->items) {
      json::set(item, {"kind"}, json::Value(kind.kind));
      json::set(item, {"apiVersion"}, json::Value(kind.gvr.group + "/" + kind.gvr.version));
      into.push_back(std::move(item));
    }
  }
  return {};
}

std::string explain_buying(PoolView& view, const std::string& pod) {
  pools::ProvisionPlan plan = pools::plan_provisioning(view.view.input());
  for (const pools::NewClaim& claim : plan.claims)
    for (const auto& one : claim.pods)
      if (one->key == pod)
        return fmt::format("NodePool {} would buy a node for it{}: {} in {}, {}, {} an hour; {} instance types would do.\n",
                           view.view.pools[claim.pool].name,
                           claim.pods.size() > 1 ? fmt::format(" and {} other pods", claim.pods.size() - 1) : "", claim.type, claim.zone,
                           claim.capacity_type, view.catalogue.money(claim.price), claim.types.size());
  for (const auto& [one, node] : plan.on_existing)
    if (one->key == pod) return fmt::format("No node is bought for it: it has room on {}, which is there or on its way.\n", node);
  for (const auto& one : view.view.left_to_groups)
    if (one->key == pod) return "No NodePool buys a node for it: a node group of the ClusterAutoscaler may grow for it.\n";
  for (const pools::ProvisionPlan::Refused& one : plan.refused)
    if (one.pod->key == pod) return fmt::format("No NodePool gives it a node: {}.\n", one.why);
  return "";
}

std::string explain_keeping(PoolView& view, const std::string& node) {
  const pools::ConsolidationInput input{view.view.input(), view.view.owned};
  return pools::node_text(json::Value(pools::to_json(pools::plan_consolidation(input), input)), node);
}

}  // namespace berth::cli
