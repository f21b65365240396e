#include "whatif/purchases.h"

#include <fmt/format.h>

#include <algorithm>

#include "autoscaler/node_template.h"
#include "autoscaler/snapshot.h"
#include "pools/documents.h"
#include "pools/plan_words.h"
#include "pools/state.h"
#include "whatif/components.h"
#include "whatif/steps.h"

namespace berth::whatif {
namespace {

Result<void> take_pools(World& world, const json::Value& documents) {
  if (documents.is_bool()) return {};
  if (!documents.is_array()) return invalid("a list of NodePools is wanted, or true: the cluster's own");
  for (const json::Value& document : documents.get_array()) {
    auto pool = read_pool(document);
    if (!pool) return std::unexpected(pool.error());
    const std::string kind(json::get_string(*pool, {"kind"})), name(json::get_string(*pool, {"metadata", "name"}));
    if (kind != "NodePool" && kind != pools::kMachineClassKind) continue;  // How simulated machines boot is no matter here.
    world.tables().kinds.insert(kind);
    world.tables().objects.insert_or_assign(Tables::key(kind, "", name), std::make_shared<const json::Value>(std::move(*pool)));
  }
  return {};
}

/// Those on their way already, to which pods were planned: as if they were there.
void add_coming(World& world, const pools::ProvisionPlan& plan, const placement::Cluster& seen) {
  std::set<std::string> names;
  for (const auto& [pod, node] : plan.on_existing)
    if (world.node(node) == nullptr && names.insert(node).second)
      if (const placement::NodeInfo* info = seen.find_node(node); info != nullptr && info->node != nullptr) {
        world.put_node(info->node);
        world.node_states[node] = "added";
        world.note(fmt::format("node {} is on its way already: it counts as there", node));
      }
  keep_daemons(world, {names.begin(), names.end()});
}

}  // namespace

Result<json::Value> read_pool(const json::Value& document) {
  json::Value out = document;
  const std::vector<pools::Finding> wrong = pools::complete(out);
  if (wrong.empty()) return out;
  return invalid(fmt::format("{} {}: {}: {}", json::get_string(document, {"kind"}), json::get_string(document, {"metadata", "name"}),
                             wrong[0].path, wrong[0].what));
}

Result<std::shared_ptr<const pools::Catalogue>> read_catalogue(const json::Value& document) {
  if (!document.is_object()) return invalid("an InstanceTypeCatalogue is wanted");
  auto read = pools::Catalogue::parse(json::to_yaml(document), "instanceTypes");
  if (!read) return std::unexpected(read.error());
  return std::make_shared<const pools::Catalogue>(std::move(*read));
}

std::vector<std::string> add_bought(World& world, const std::vector<pools::NewClaim>& claims, const std::vector<pools::NodePool>& pools,
                                    const pools::Catalogue& catalogue) {
  std::vector<std::string> out;
  std::size_t number = 0;
  for (const pools::NewClaim& claim : claims) {
    std::string name;
    while (name.empty() || world.node(name) != nullptr) name = fmt::format("new-{}-{}", claim.type, ++number);
    const pools::NodeShape shape{claim.pool, 0, nullptr, claim.labels, claim.price, {}, {}};
    world.put_node(pools::node_of(shape, pools[claim.pool], *catalogue.find(claim.type), name));
    world.node_states[name] = "added";
    out.push_back(std::move(name));
  }
  keep_daemons(world, out);
  return out;
}

Result<void> buy_nodes(World& world, const json::Value& documents, const json::Value& instance_types) {
  auto catalogue = read_catalogue(instance_types);
  if (!catalogue) return std::unexpected(catalogue.error());
  if (auto taken = take_pools(world, documents); !taken) return taken;
  pools::PoolsCache seen(world.cluster().era());
  for (const auto& [key, object] : world.tables().objects) seen.upsert(*object);
  for (const std::string& name : world.node_names()) seen.cluster().upsert_node(world.node(name));
  for (placement::ReadPodPtr& pod : pods_by_now(world)) seen.cluster().upsert_pod(std::move(pod));
  if (seen.pools().empty()) return invalid("there is no NodePool: give one, or ask of a cluster that has some");
  std::vector<std::string> notes;
  *catalogue = std::make_shared<const pools::Catalogue>(pools::with_machines(**catalogue, seen, &notes));
  for (const std::string& note : notes) world.note(note);
  pools::PoolsView view = pools::view_of(seen, **catalogue, world.trial().profiles(), {}, world.options().now, true);
  for (const std::string& note : view.notes) world.note(note);
  const pools::ProvisionPlan plan = pools::plan_provisioning(view.input());
  add_coming(world, plan, view.trial->cluster());
  (void)add_bought(world, plan.claims, view.pools, **catalogue);
  world.catalogue = *catalogue;
  world.bought.push_back(pools::to_json(plan, view.pools, **catalogue));
  world.settle();
  for (const pools::ProvisionPlan::Refused& one : plan.refused)
    if (const Record* record = world.find(one.pod->key); record != nullptr && record->node.empty())
      world.note(fmt::format("no node for {}: {}", one.pod->key, one.why));
  return {};
}

pools::ProvisionPlan Shop::plan(World& world, const std::vector<std::string>& pods) const {
  pools::ProvisionInput input;
  input.trial = &world.trial();
  input.pools = &pools;
  input.catalogue = catalogue.get();
  input.now = world.options().now;
  for (const std::string& pod : pods) input.waiting.push_back(world.find(pod)->info);
  const auto& objects = world.tables().objects;
  for (auto at = objects.lower_bound("DaemonSet/"); at != objects.end() && at->first.starts_with("DaemonSet/"); ++at)
    input.daemons.push_back(autoscaler::daemon_pod(*at->second, world.cluster().era()));
  return pools::plan_provisioning(input);
}

pools::NodePool pool_of_everything(const World& world) {
  std::set<std::string> archs;
  for (const auto* node : world.cluster().nodes())
    if (const std::string* arch = node->label(pools::kArchLabel)) archs.insert(*arch);
  if (archs.empty()) archs.insert("amd64");
  json::Array values(archs.begin(), archs.end());
  json::Array requirements{json::Object{{"key", pools::kArchLabel}, {"operator", "In"}, {"values", std::move(values)}},
                           json::Object{{"key", pools::kCapacityTypeLabel}, {"operator", "In"}, {"values", json::Array{"on-demand"}}}};
  return pools::NodePool::parse(
      json::Object{{"metadata", json::Object{{"name", "catalogue"}}},
                   {"spec", json::Object{{"template", json::Object{{"spec", json::Object{{"requirements", std::move(requirements)}}}}}}}});
}

}  // namespace berth::whatif
