#include "cli/planning/scaling_view.h"

#include "client/list_all.h"
#include "pools/crds.h"

namespace berth::cli {

Result<bool> is_scaled(client::Client& client) {
  const auto has_any = [&](const client::Gvr& gvr) -> Result<bool> {
    const auto listed = client.list_and_wait(gvr, "", {.label_selector = {}, .field_selector = {}, .limit = 1});
    if (!listed && listed.error().code == 404) return false;
    if (!listed) return invalid(listed.error().message);
    return !listed->items.empty();
  };
  for (const autoscaler::WatchedKind& one : autoscaler::watched_kinds())
    if (one.kind == "ClusterAutoscaler")
      if (auto any = has_any(one.gvr); !any || *any) return any;
  for (const pools::OwnKind& one : pools::own_kinds())
    if (one.kind == "NodePool") return has_any(one.gvr);
  return false;
}

Result<std::vector<json::Value>> read_scaling_objects(client::Client& client, std::optional<model::ApiStatus>* refused) {
  std::vector<json::Value> out;
  const auto read = [&](std::string_view group, std::string_view plural) -> Result<void> {
    const auto listed = client::list_all(client, group, plural, [&](json::Value object) { out.push_back(std::move(object)); });
    if (listed || listed.error().code == 404) return {};
    if (refused != nullptr) *refused = listed.error();
    return invalid(listed.error().message);
  };
  for (const autoscaler::WatchedKind& one : autoscaler::watched_kinds())
    if (auto ok = read(one.gvr.group, one.gvr.resource); !ok) return std::unexpected(ok.error());
  if (auto ok = read("", "configmaps"); !ok) return std::unexpected(ok.error());
  return out;
}

Result<autoscaler::Options> scaling_options_of(const std::vector<json::Value>& documents) {
  const json::Value* found = nullptr;
  for (const json::Value& document : documents)
    if (json::get_string(document, {"kind"}) == "ClusterAutoscaler" &&
        (found == nullptr || json::get_string(document, {"metadata", "name"}) == "default"))
      found = &document;
  if (found == nullptr) return invalid("the cluster has no ClusterAutoscaler: nodes are neither added nor removed by themselves");
  return autoscaler::Options::parse(*found);
}

ScalingView look_at_scaling(const std::vector<json::Value>& documents, autoscaler::Options options, const placement::Profiles& profiles) {
  ScalingView out{std::make_unique<autoscaler::ClusterCache>(), std::move(options), {}, {}, {}};
  out.patience = {SystemClock().now(), out.options.unneeded_time, out.options.unready_time};
  if (const auto& scheduler = profiles.find("default-scheduler")) out.options.follow(scheduler->profile().era);
  out.options.unneeded_time = out.options.unready_time = Duration::zero();
  for (json::Value document : documents) {
    if (json::get_string(document, {"kind"}) == "Pod" && json::get_string(document, {"spec", "nodeName"}).empty())
      json::set(document, {"status", "conditions"},
                json::Array{json::Object{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}});
    out.cache->upsert(document);
  }
  out.snapshot = out.cache->snapshot();
  out.actions = autoscaler::Autoscaler(profiles, 0).step(out.snapshot, out.options, out.patience.now);
  return out;
}

}  // namespace berth::cli
