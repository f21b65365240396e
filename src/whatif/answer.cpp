#include "whatif/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/topology_labels.h"
#include "pools/catalogue.h"
#include "pools/requirements.h"

namespace berth::whatif {
namespace {

std::string label_of(const placement::NodeInfo& node, std::string_view present, std::string_view old) {
  const std::string* out = node.label(present);
  if (out == nullptr) out = node.label(old);
  return out == nullptr ? std::string() : *out;
}

double share(double part, double whole) { return whole <= 0 ? 0 : std::round(part / whole * 1e4) / 1e4; }

json::Array nodes_of(const World& world, const Fullness& before, const Fullness& after) {
  json::Array out;
  std::set<std::string> names;
  for (const auto& [name, node] : before.nodes) names.insert(name);
  for (const auto& [name, node] : after.nodes) names.insert(name);
  for (const std::string& name : names) {
    const auto was = before.nodes.find(name), is = after.nodes.find(name);
    const auto state = world.node_states.find(name);
    const bool is_same = was != before.nodes.end() && is != after.nodes.end() && was->second.use.pods == is->second.use.pods &&
                         was->second.use.cpu == is->second.use.cpu && was->second.use.memory == is->second.use.memory &&
                         was->second.use.cpu_of == is->second.use.cpu_of;
    if (is_same && state == world.node_states.end()) continue;
    json::Object entry{{"name", name}, {"zone", (is != after.nodes.end() ? is : was)->second.zone}};
    if (const std::string& type = (is != after.nodes.end() ? is : was)->second.type; !type.empty()) entry["instanceType"] = type;
    entry["state"] = state == world.node_states.end() ? "there" : state->second;
    entry["before"] = was == before.nodes.end() ? json::Value(nullptr) : json::Value(was->second.use.to_json(false));
    entry["after"] = is == after.nodes.end() ? json::Value(nullptr) : json::Value(is->second.use.to_json(false));
    out.push_back(std::move(entry));
  }
  return out;
}

json::Array zones_in(const World& world, const Fullness& before, const Fullness& after) {
  std::map<std::string, std::pair<Use, Use>> zones;
  const auto add = [](Use& to, const Use& from) {
    to.nodes += from.nodes;
    to.pods += from.pods;
    to.cpu += from.cpu;
    to.memory += from.memory;
    to.cpu_of += from.cpu_of;
    to.memory_of += from.memory_of;
  };
  for (const auto& [name, node] : before.nodes) add(zones[node.zone].first, node.use);
  for (const auto& [name, node] : after.nodes) {
    const auto state = world.node_states.find(name);
    Use& use = zones[node.zone].second;
    if (state == world.node_states.end() || state->second != "lost") add(use, node.use);
  }
  json::Array out;
  for (const auto& [name, use] : zones)
    out.push_back(json::Object{{"name", name}, {"before", use.first.to_json(true)}, {"after", use.second.to_json(true)}});
  return out;
}

json::Array budgets_in(const World& world) {
  json::Array out;
  std::vector<const Budget*> sorted;
  const Budgets& budgets = world.tables().budgets;
  for (Budgets::Id id = 0; id < budgets.size(); ++id)
    if (budgets[id].is_touched) sorted.push_back(&budgets[id]);
  std::ranges::sort(sorted, {}, [](const Budget* one) { return one->key(); });
  for (const Budget* one : sorted) {
    json::Object entry{{"budget", one->key()}};
    if (one->first_healthy)
      entry["before"] = json::Object{{"allowed", std::max<std::int64_t>(0, *one->first_healthy - *one->first_desired - one->held)},
                                     {"healthy", *one->first_healthy},
                                     {"desired", *one->first_desired}};
    else
      entry["before"] = nullptr;
    if (one->is_gone)
      entry["after"] = nullptr;
    else
      entry["after"] = json::Object{{"allowed", one->allowed()}, {"healthy", one->healthy}, {"desired", one->desired}};
    entry["lowest"] = one->lowest;
    entry["broken"] = one->is_broken && !one->is_gone;
    json::Array blocks;
    for (const std::string& pod : one->blocks) blocks.emplace_back(pod);
    entry["blocks"] = std::move(blocks);
    out.push_back(std::move(entry));
  }
  return out;
}

/// Of an hour, by the instance types that were bought from (a node that does not say how it was bought is on demand; one of another place
/// costs as anywhere), then by the prices of the question.
std::optional<double> price_of(const World& world, const Fullness::Node& node) {
  if (const pools::InstanceType* type = world.catalogue == nullptr ? nullptr : world.catalogue->find(node.type)) {
    const std::string_view manner = node.capacity_type.empty() ? "on-demand" : std::string_view(node.capacity_type);
    const pools::Offering* best = nullptr;
    for (const pools::Offering& one : type->offerings)
      if (one.capacity_type == manner && (best == nullptr || one.zone == node.zone)) best = &one;
    if (best != nullptr) return best->price;
  }
  const json::Value* price = json::find(world.options().prices, node.type);
  return price != nullptr && price->is_number() ? std::optional(price->to_number<double>()) : std::nullopt;
}

json::Value cost_in(const World& world, const Fullness& before, const Fullness& after) {
  const json::Value& prices = world.options().prices;
  if (!prices.is_object() && world.catalogue == nullptr) return nullptr;
  std::set<std::string> unpriced;
  const auto sum = [&](const Fullness& of) {
    double out = 0;
    for (const auto& [name, node] : of.nodes) {
      if (const auto price = price_of(world, node))
        out += *price;
      else
        unpriced.insert(node.type.empty() ? name : node.type);
    }
    return std::round(out * 1e6) / 1e6;
  };
  const double was = sum(before), is = sum(after);
  json::Array missing;
  for (const std::string& one : unpriced) missing.emplace_back(one);
  json::Object out{{"before", was}, {"after", is}, {"unpriced", std::move(missing)}};
  std::string currency(json::get_string(prices, {"currency"}));
  if (currency.empty() && world.catalogue != nullptr) currency = world.catalogue->currency;
  if (!currency.empty()) out["currency"] = currency;
  return out;
}

/// Gangs that are otherwise than they were, or not whole.
json::Array gangs_in(World& world) {
  json::Array out;
  std::map<std::string, std::pair<GangCount, GangCount>> all;
  for (const auto& [name, count] : world.gangs_before) all[name].first = count;
  for (const auto& [name, count] : count_gangs(world.tables())) all[name].second = count;
  std::set<std::string> moved;
  for (const Departure& one : world.departures)
    if (const Record* record = world.find(one.pod); record != nullptr) moved.insert(record->group());
  for (const auto& [name, counts] : all) {
    const auto& [was, is] = counts;
    const bool is_same = was.running == is.running && was.waiting == is.waiting && !moved.contains(name);
    if (is_same && is.is_whole()) continue;
    const std::int64_t needed = std::max(was.needed, is.needed);
    out.push_back(json::Object{{"gang", name},
                               {"needed", needed},
                               {"runningBefore", was.running},
                               {"running", is.running},
                               {"waiting", is.waiting},
                               {"verdict", is.running + is.waiting == 0 ? "gone"
                                           : is.is_whole()              ? "runs"
                                                                        : "waits"}});
  }
  return out;
}

json::Array pending_in(World& world) {
  json::Array out;
  for (const std::string& pod : world.all_waiting()) {
    const Record& record = *world.find(pod);
    out.push_back(json::Object{{"pod", pod},
                               {"reason", record.reason},
                               {"message", record.message},
                               {"from", record.from},
                               {"before", record.was_waiting},
                               {"change", record.change}});
  }
  return out;
}

}  // namespace

void Use::add(const placement::NodeInfo& node) {
  ++nodes;
  pods += static_cast<std::int64_t>(node.pods.size());
  cpu += static_cast<double>(node.requested.cpu_milli) / 1000;
  memory += static_cast<double>(node.requested.memory_bytes);
  cpu_of += static_cast<double>(node.allocatable.cpu_milli) / 1000;
  memory_of += static_cast<double>(node.allocatable.memory_bytes);
}

json::Object Use::to_json(bool counts_nodes) const {
  json::Object out;
  if (counts_nodes) out["nodes"] = nodes;
  out["pods"] = pods;
  out["cpu"] = share(cpu, cpu_of);
  out["memory"] = share(memory, memory_of);
  return out;
}

Fullness Fullness::of(const placement::Cluster& cluster) {
  Fullness out;
  for (const placement::NodeInfo* node : cluster.nodes()) {
    Node& entry = out.nodes[node->name];
    entry.zone = label_of(*node, model::kZoneLabel.present, model::kZoneLabel.old);
    entry.capacity_type = label_of(*node, pools::kCapacityTypeLabel, pools::kCapacityTypeLabel);
    entry.type = label_of(*node, "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type");
    entry.use.add(*node);
  }
  return out;
}

json::Object to_json(const Move& move) {
  json::Object out{{"pod", move.pod}, {"from", move.from}, {"to", move.to}, {"reason", move.reason}, {"change", move.change}};
  if (!move.when.empty()) out["when"] = move.when;
  return out;
}

json::Object to_json(const Departure& departure) {
  json::Object out{{"pod", departure.pod},
                   {"node", departure.node},
                   {"outcome", departure.outcome},
                   {"reason", departure.reason},
                   {"change", departure.change}};
  if (!departure.budget.empty()) out["budget"] = departure.budget;
  if (!departure.by.empty()) out["by"] = departure.by;
  return out;
}

json::Object answer_of(World& world, const Fullness& before, const std::vector<std::string>& present_notes) {
  const Fullness after = Fullness::of(world.cluster());
  json::Array moves, evictions, notes, pending = pending_in(world), budgets = budgets_in(world);
  std::int64_t moved = 0, placed = 0, waiting = 0, waiting_before = 0, broken = 0;
  std::map<std::string, std::int64_t> outcomes;
  for (const Move& move : world.moves) {
    ++(move.from.empty() ? placed : moved);
    moves.push_back(to_json(move));
  }
  for (const Departure& one : world.departures) {
    ++outcomes[one.outcome];
    evictions.push_back(to_json(one));
  }
  for (const json::Value& one : pending) ++(json::get_bool(one, {"before"}) ? waiting_before : waiting);
  for (const json::Value& one : budgets) broken += json::get_bool(one, {"broken"});
  for (const std::string& note : present_notes) notes.emplace_back(note);
  for (const std::string& note : world.notes) notes.emplace_back(note);
  json::Object summary{{"moves", moved},
                       {"placed", placed},
                       {"pending", waiting},
                       {"pendingBefore", waiting_before},
                       {"evicted", outcomes["evicted"]},
                       {"preempted", outcomes["preempted"]},
                       {"blocked", outcomes["blocked"]},
                       {"lost", outcomes["lost"]},
                       {"deleted", outcomes["deleted"]},
                       {"budgetsBroken", broken},
                       {"nodes", json::Object{{"before", static_cast<std::int64_t>(before.nodes.size())},
                                              {"after", static_cast<std::int64_t>(after.nodes.size())}}}};
  json::Object out{
      {"summary", std::move(summary)}, {"moves", std::move(moves)}, {"pending", std::move(pending)}, {"evictions", std::move(evictions)}};
  out["nodes"] = nodes_of(world, before, after);
  out["zones"] = zones_in(world, before, after);
  out["budgets"] = std::move(budgets);
  if (json::Array gangs = gangs_in(world); !gangs.empty()) out["gangs"] = std::move(gangs);
  if (json::Value cost = cost_in(world, before, after); !cost.is_null()) out["cost"] = std::move(cost);
  if (!world.bought.empty()) out["bought"] = world.bought;
  out["notes"] = std::move(notes);
  return out;
}

}  // namespace berth::whatif
