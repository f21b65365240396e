// Fewest nodes for what runs, and the order of evictions that gets there: budgets honoured, every evicted pod with a place before the next.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pools/plan_words.h"
#include "whatif/answer.h"
#include "whatif/purchases.h"
#include "whatif/question.h"
#include "whatif/steps.h"

namespace berth::whatif {
namespace {

struct Load {
  double cpu = 0, memory = 0;
  std::int64_t pods = 0;
};

/// What has to stand somewhere when these nodes go: all but daemons' and mirror pods.
Load load_of(World& world, const std::vector<std::string>& nodes) {
  Load out;
  for (const std::string& node : nodes)
    for (const std::string& pod : world.pods_on(node)) {
      const Record& record = *world.find(pod);
      if (record.is_daemon() || record.is_mirror()) continue;
      const placement::Resource& request = record.info->request.total;
      out.cpu += static_cast<double>(request.cpu_milli) / 1000;
      out.memory += static_cast<double>(request.memory_bytes);
      ++out.pods;
    }
  return out;
}

/// No fewer nodes than this can do, whatever the scheduler.
std::int64_t lower_bound_of(const Load& load, const model::NodeView& node) {
  const auto amount = [&](std::string_view name) {
    const model::Quantity* quantity = model::find_resource(node.allocatable, name);
    return quantity == nullptr ? 0.0 : quantity->as_double();
  };
  double out = 1;
  for (const auto& [wanted, there] : {std::pair(load.cpu, amount("cpu")), std::pair(load.memory, amount("memory")),
                                      std::pair(static_cast<double>(load.pods), amount("pods"))})
    if (there > 0) out = std::max(out, std::ceil(wanted / there - 1e-9));
  return static_cast<std::int64_t>(out);
}

std::vector<std::string> add_many(World& world, const Shape& shape, std::int64_t count) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(add_node(world, shape, shape.zones.empty() ? "" : shape.zones[static_cast<std::size_t>(i) % shape.zones.size()]));
  keep_daemons(world, out);
  world.settle();
  return out;
}

/// Whether everybody of these nodes finds a place on so many new ones, and on those that stay.
bool is_enough(World& world, const std::vector<std::string>& old, const Shape& shape, std::int64_t count) {
  World scratch = world.fork();
  const std::size_t waiting = scratch.all_waiting().size();
  add_many(scratch, shape, count);
  cordon(scratch, old, true);
  remove_nodes(scratch, old);
  return scratch.all_waiting().size() <= waiting;
}

/// 0: however many there are, somebody finds none of them good enough.
std::int64_t fewest_of(World& world, const std::vector<std::string>& old, const Shape& shape, std::int64_t least) {
  std::int64_t enough = least;
  const std::int64_t most = std::max<std::int64_t>(least * 4, static_cast<std::int64_t>(world.node_names().size()) * 4) + 16;
  while (enough <= most && !is_enough(world, old, shape, enough)) enough = std::max(enough + 1, enough + enough / 2);
  if (enough > most) return 0;
  std::int64_t too_few = least - 1;
  for (std::int64_t low = least; low < enough;) {
    const std::int64_t middle = low + (enough - low) / 2;
    if (is_enough(world, old, shape, middle))
      enough = middle;
    else
      too_few = middle, low = middle + 1;
  }
  (void)too_few;
  return enough;
}

/// What is told of a plan: what to do, in its order, and which nodes it leaves, with the reason.
struct Plan {
  json::Array steps, stays;
  void keep(const std::string& node, std::string reason) { stays.push_back(json::Object{{"node", node}, {"reason", std::move(reason)}}); }
};

/// Drains and removes, one after the other; each is a step with its evictions in their order. First of all nobody comes to any of them any
/// more: who goes from one would go from the next again, under another name.
void empty_nodes(World& world, const std::vector<std::string>& nodes, Plan& plan) {
  for (const std::string& node : nodes)
    if (!world.node(node)->unschedulable) plan.steps.push_back(json::Object{{"step", "cordon"}, {"node", node}});
  cordon(world, nodes, true);
  for (const std::string& node : nodes) {
    const std::size_t first = world.departures.size();
    world.set_reason(fmt::format("{} is emptied", node));
    drain(world, {node});
    json::Array evictions;
    bool is_empty = true;
    for (std::size_t i = first; i < world.departures.size(); ++i) {
      const Departure& one = world.departures[i];
      is_empty &= one.outcome != "blocked";
      if (one.outcome == "evicted" || one.outcome == "lost") evictions.emplace_back(one.pod);
    }
    plan.steps.push_back(json::Object{{"step", "drain"}, {"node", node}, {"evictions", std::move(evictions)}});
    if (!is_empty) {
      plan.keep(node, "a budget refuses an eviction: it stays, cordoned");
      continue;
    }
    remove_nodes(world, {node});
    plan.steps.push_back(json::Object{{"step", "remove"}, {"node", node}});
  }
}

/// Evicting what nobody makes anew is not safe: such nodes stay.
std::vector<std::string> without_bare_pods(World& world, const std::vector<std::string>& nodes, Plan& plan) {
  std::vector<std::string> out;
  for (const std::string& node : nodes) {
    std::string bare;
    for (const std::string& pod : world.pods_on(node)) {
      const Record& record = *world.find(pod);
      if (record.owner() == nullptr && !record.is_mirror() && !record.view().meta.is_deleting) bare = pod;
    }
    if (bare.empty())
      out.push_back(node);
    else
      plan.keep(node, fmt::format("nobody would make {} anew", bare));
  }
  return out;
}

/// Nodes that can be emptied one after the other with nobody pending, lost or refused; the emptiest first.
std::vector<std::string> nodes_to_empty(World& world) {
  World scratch = world.fork();
  std::vector<std::pair<double, std::string>> order;
  for (const auto* node : scratch.cluster().nodes()) {
    Use use;
    use.add(*node);
    order.emplace_back(std::max(use.cpu_of > 0 ? use.cpu / use.cpu_of : 0, use.memory_of > 0 ? use.memory / use.memory_of : 0), node->name);
  }
  std::ranges::sort(order);
  std::vector<std::string> out;
  for (const auto& [use, node] : order) {
    if (out.size() + 1 == order.size()) break;  // Somebody has to stay.
    const std::size_t departures = scratch.departures.size();
    scratch.begin_thought();
    drain(scratch, {node});
    bool is_good = scratch.waiting_since_thought().empty();
    for (std::size_t i = departures; i < scratch.departures.size(); ++i) is_good &= scratch.departures[i].outcome == "evicted";
    scratch.end_thought();
    if (!is_good) continue;
    drain(scratch, {node});
    out.push_back(node);
  }
  return out;
}

/// The cheapest of the shapes for everybody on the nodes that go.
struct Choice {
  std::optional<Shape> shape;
  std::int64_t fewest = 0, least = 0;  ///< So many are wanted; fewer than that cannot do whatever the scheduler.
  json::Array tried;
};

Result<Choice> choose_shape(World& world, const std::vector<std::string>& go, const json::Value& shapes) {
  const bool all_go = go.size() == world.node_names().size();
  const Load load = load_of(world, go);
  Choice out;
  double best_cost = 0;
  for (const json::Value& wanted : shapes.is_array() ? shapes.get_array() : json::Array{shapes}) {
    auto shape = shape_of(world, wanted);
    if (!shape) return std::unexpected(shape.error());
    // Where nodes stay, they take their part.
    const std::int64_t bound = all_go ? lower_bound_of(load, *shape->node) : 1, count = fewest_of(world, go, *shape, bound);
    json::Object entry{{"shape", shape->name}, {"nodesNeeded", count}, {"lowerBound", bound}};
    double cost = static_cast<double>(count);
    if (const json::Value* price = json::find(world.options().prices, shape->name); price != nullptr && price->is_number()) {
      cost = price->to_number<double>() * static_cast<double>(count);
      entry["cost"] = std::round(cost * 1e6) / 1e6;
    } else if (world.options().prices.is_object()) {
      cost += 1e12;  // Whatever has a price comes first.
      world.note(fmt::format("no price is known of {}: it is taken only when no other shape will do", shape->name));
    }
    out.tried.push_back(std::move(entry));
    if (count == 0) {
      world.note(fmt::format("no number of {} takes everybody: some pods want other nodes than these", shape->name));
      continue;
    }
    if (out.shape && cost >= best_cost) continue;
    out.shape = std::move(*shape);
    out.fewest = count;
    out.least = bound;
    best_cost = cost;
  }
  if (!out.shape) return invalid("none of the shapes takes everybody: see what keeps pods away with --add and --drain");
  return out;
}

Result<json::Object> pack_into(World& world, const json::Value& shapes) {
  const std::vector<std::string> old = world.node_names();
  Plan plan;
  const auto now = static_cast<std::int64_t>(old.size());
  const std::vector<std::string> go = without_bare_pods(world, old, plan);
  if (go.empty())
    return json::Object{
        {"nodesNow", now}, {"nodesNeeded", now}, {"nodesAfter", now}, {"stays", std::move(plan.stays)}, {"steps", json::Array()}};
  auto choice = choose_shape(world, go, shapes);
  if (!choice) return std::unexpected(choice.error());
  for (const std::string& node : add_many(world, *choice->shape, choice->fewest))
    plan.steps.push_back(json::Object{{"step", "add"}, {"node", node}, {"shape", choice->shape->name}});
  empty_nodes(world, go, plan);
  json::Object out{{"shape", choice->shape->name},       {"nodesNow", now},
                   {"nodesNeeded", choice->fewest},      {"nodesAfter", static_cast<std::int64_t>(world.node_names().size())},
                   {"shapes", std::move(choice->tried)}, {"stays", std::move(plan.stays)},
                   {"steps", std::move(plan.steps)}};
  if (go.size() == old.size()) out["lowerBound"] = choice->least;
  return out;
}

Result<Shop> shop_of(const World& world, const json::Value& request) {
  auto catalogue = read_catalogue(*json::find(request, "instanceTypes"));
  if (!catalogue) return invalid("pack.instanceTypes: " + catalogue.error().message);
  Shop out{{}, *catalogue};
  for (const json::Value& document : json::get_array(request, {"pools"})) {
    auto pool = read_pool(document);
    if (!pool) return invalid("pack.pools: " + pool.error().message);
    if (json::get_string(*pool, {"kind"}) == "NodePool") out.pools.push_back(pools::NodePool::parse(*pool));
  }
  if (out.pools.empty()) out.pools.push_back(pool_of_everything(world));
  return out;
}

std::vector<std::string> waiting_beyond(World& world, const std::set<std::string>& before) {
  std::vector<std::string> out;
  for (const std::string& pod : world.waiting())
    if (!before.contains(pod)) out.push_back(pod);
  return out;
}

/// Everybody of these nodes on the cheapest mixture of instance types.
struct Mixture {
  std::vector<pools::NewClaim> claims;
  double bound = 0;
  std::string left;  ///< Who finds no place all the same.
};

/// The scheduler puts pods elsewhere than the plan does: who has no place then is bought for once more.
Mixture mix(World& world, const std::vector<std::string>& go, const Shop& shop) {
  constexpr int kRounds = 4;
  const std::set<std::string> before = world.all_waiting();
  Mixture out;
  for (int round = 0; round < kRounds; ++round) {
    World scratch = world.fork();
    (void)add_bought(scratch, out.claims, shop.pools, *shop.catalogue);
    cordon(scratch, go, true);
    remove_nodes(scratch, go);
    scratch.settle();
    const std::vector<std::string> waiting = waiting_beyond(scratch, before);
    if (waiting.empty()) return out;
    const pools::ProvisionPlan plan = shop.plan(scratch, waiting);
    if (round == 0) out.bound = plan.bound;
    out.claims.insert(out.claims.end(), plan.claims.begin(), plan.claims.end());
    if (plan.refused.empty() && !plan.claims.empty()) continue;
    out.left = plan.refused.empty() ? waiting.front() : fmt::format("{}: {}", plan.refused.front().pod->key, plan.refused.front().why);
    return out;
  }
  out.left = "the scheduler places the pods in another way each time";
  return out;
}

Result<json::Object> pack_by_catalogue(World& world, const json::Value& request) {
  auto shop = shop_of(world, request);
  if (!shop) return std::unexpected(shop.error());
  Plan plan;
  const std::vector<std::string> old = world.node_names(), go = without_bare_pods(world, old, plan);
  const auto now = static_cast<std::int64_t>(old.size());
  const Mixture mixture = mix(world, go, *shop);
  if (!mixture.left.empty()) return invalid(fmt::format("no mixture of these instance types takes everybody: {}", mixture.left));
  pools::ProvisionPlan told;
  told.claims = mixture.claims;
  for (const pools::NewClaim& claim : told.claims) told.cost += claim.price;
  told.bound = mixture.bound;
  world.catalogue = shop->catalogue;
  const std::vector<std::string> bought = add_bought(world, mixture.claims, shop->pools, *shop->catalogue);
  for (std::size_t i = 0; i < bought.size(); ++i)
    plan.steps.push_back(json::Object{{"step", "add"}, {"node", bought[i]}, {"shape", mixture.claims[i].type}});
  world.settle();
  empty_nodes(world, go, plan);
  world.bought.push_back(pools::to_json(told, shop->pools, *shop->catalogue));
  return json::Object{{"shape", "a mixture"},
                      {"nodesNow", now},
                      {"nodesNeeded", static_cast<std::int64_t>(bought.size())},
                      {"nodesAfter", static_cast<std::int64_t>(world.node_names().size())},
                      {"stays", std::move(plan.stays)},
                      {"steps", std::move(plan.steps)}};
}

}  // namespace

Result<json::Object> pack(World& world, const json::Value& request) {
  if (!request.is_object()) return invalid("pack: an object is wanted: {} or {\"shapes\": [\"m5.2xlarge\"]}");
  const bool by_catalogue = json::find(request, "instanceTypes") != nullptr;
  for (const auto& [key, value] : request.get_object())
    if (by_catalogue ? key != "instanceTypes" && key != "pools" : key != "shapes")
      return invalid(fmt::format("pack.{}: no such field; there is: {}", std::string_view(key),
                                 by_catalogue ? "instanceTypes, pools" : "shapes, or instanceTypes and pools"));
  const auto waiting = static_cast<std::int64_t>(world.all_waiting().size());
  if (waiting > 0) world.note(fmt::format("{} pods are pending already: the plan gives them no room", waiting));
  if (by_catalogue) return pack_by_catalogue(world, request);
  const json::Value* shapes = json::find(request, "shapes");
  const bool has_shapes = shapes != nullptr && !(shapes->is_array() && shapes->get_array().empty());
  if (has_shapes) return pack_into(world, *shapes);
  const std::vector<std::string> all = world.node_names();
  std::vector<std::string> go = nodes_to_empty(world);
  Plan plan;
  // With all of them cordoned nobody moves twice. Where that leaves somebody without a place, the last ones stay.
  for (;;) {
    World scratch = world.fork();
    Plan ignored;
    empty_nodes(scratch, go, ignored);
    if (go.empty() || static_cast<std::int64_t>(scratch.all_waiting().size()) <= waiting) break;
    go.pop_back();
  }
  empty_nodes(world, go, plan);
  const auto left = static_cast<std::int64_t>(world.node_names().size());
  world.note(
      "the emptiest nodes are emptied first, and evicted pods go where the scheduler puts them: fewer nodes may be possible, not by "
      "evictions alone");
  return json::Object{{"nodesNow", static_cast<std::int64_t>(all.size())},
                      {"nodesNeeded", left},
                      {"nodesAfter", left},
                      {"stays", std::move(plan.stays)},
                      {"steps", std::move(plan.steps)}};
}

}  // namespace berth::whatif
