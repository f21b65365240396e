#include "cli/pool_view.h"

#include <fmt/format.h>

#include "base/config_reader.h"
#include "cli/dumps.h"
#include "pools/crds.h"
#include "pools/plan_words.h"
#include "pools/runner.h"

namespace berth::cli {
namespace {

/// The text that a ConfigMap of that name has; empty: it is another one.
std::string published_in(const json::Value& object) {
  if (json::get_string(object, {"kind"}) != "ConfigMap" || json::get_string(object, {"metadata", "name"}) != pools::kPublishedTypes)
    return "";
  return std::string(json::get_string(object, {"data", pools::kPublishedKey}));
}

}  // namespace

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

Result<json::Value> read_instance_types(const std::string& file) {
  if (auto catalogue = pools::Catalogue::load(file); !catalogue) return std::unexpected(catalogue.error());
  const auto text = config::read_whole_file(file);
  if (!text) return std::unexpected(text.error());
  return json::parse_yaml(*text);
}

std::optional<json::Value> published_instance_types(const PlacementFlags& flags) {
  std::string text;
  if (!flags.cluster_files.empty()) {
    auto dumps = Dumps::find(flags.cluster_files);
    if (!dumps) return std::nullopt;
    const auto look = [&](const json::Value& object, const std::string&) {
      if (text.empty()) text = published_in(object);
    };
    (void)dumps->for_each(look, "ConfigMap");
  } else if (auto session = Session::open(flags.connection)) {
    if (const auto map = (*session)->client().get_and_wait({"", "v1", "configmaps"}, "kube-system", std::string(pools::kPublishedTypes)))
      text = json::get_string(*map, {"data", pools::kPublishedKey});
  }
  auto document = text.empty() ? Result<json::Value>(invalid("")) : json::parse_yaml(text);
  return document ? std::optional(std::move(*document)) : std::nullopt;
}

Result<pools::Catalogue> catalogue_of(const std::string& file, const std::vector<json::Value>& objects) {
  if (!file.empty()) return pools::Catalogue::load(file);
  for (const json::Value& object : objects)
    if (const std::string text = published_in(object); !text.empty())
      return pools::Catalogue::parse(text, fmt::format("ConfigMap kube-system/{}", pools::kPublishedTypes));
  return invalid(
      "what can be bought is not known: name the file with --instance-types (a cluster in which `berth autoscaler --instance-types` runs "
      "says it itself)");
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
