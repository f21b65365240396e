#include "pools/plan_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "pools/consolidate.h"

namespace berth::pools {
namespace {

std::string text_of(const json::Value& value, std::string_view key) { return std::string(json::get_string(value, {key})); }

double number_of(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_number() ? found->to_number<double>() : 0;
}

/// "1 node", "5 nodes".
std::string counted(std::size_t number, std::string_view what) { return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s"); }

std::string moving(std::size_t pods) { return fmt::format("{} move{}", counted(pods, "pod"), pods == 1 ? "s" : ""); }

std::string bound_words_of(double cost, double bound) {
  ProvisionPlan plan;
  plan.cost = cost;
  plan.bound = bound;
  return plan.bound_words();
}

std::vector<std::string> names_in(const json::Value& step, std::string_view key) {
  std::vector<std::string> out;
  for (const json::Value& one : json::get_array(step, {key})) out.emplace_back(json::as_view(one));
  return out;
}

std::string step_line(const json::Value& step, std::string_view currency) {
  const std::vector<std::string> nodes = names_in(step, "nodes");
  const double savings = number_of(step, "savingsPerHour");
  return fmt::format("{}: {} go{}, {}, {} an hour {}\n", text_of(step, "reason"), fmt::join(nodes, ", "), nodes.size() == 1 ? "es" : "",
                     moving(json::get_array(step, {"evictions"}).size()), money(std::abs(savings), currency),
                     savings < 0 ? "more" : "less");
}

}  // namespace

std::string money(double amount, std::string_view currency) { return fmt::format("{:.4f} {}", amount, currency); }

json::Object to_json(const NewClaim& claim, const std::vector<NodePool>& pools) {
  json::Array pods, types;
  for (const auto& pod : claim.pods) pods.emplace_back(pod->key);
  for (const std::string& type : claim.types) types.emplace_back(type);
  return json::Object{{"nodePool", pools[claim.pool].name},
                      {"instanceType", claim.type},
                      {"zone", claim.zone},
                      {"capacityType", claim.capacity_type},
                      {"pricePerHour", claim.price},
                      {"instanceTypes", std::move(types)},
                      {"pods", std::move(pods)}};
}

json::Object to_json(const ProvisionPlan& plan, const std::vector<NodePool>& pools, const Catalogue& catalogue) {
  json::Array claims, existing, refused;
  for (const NewClaim& claim : plan.claims) claims.push_back(to_json(claim, pools));
  for (const auto& [pod, node] : plan.on_existing) existing.push_back(json::Object{{"pod", pod->key}, {"node", node}});
  for (const auto& one : plan.refused) refused.push_back(json::Object{{"pod", one.pod->key}, {"reason", one.why}});
  json::Object out{{"nodeClaims", std::move(claims)},
                   {"onExistingNodes", std::move(existing)},
                   {"refused", std::move(refused)},
                   {"currency", catalogue.currency},
                   {"priced", catalogue.priced},
                   {"pricePerHour", plan.cost},
                   {"firstFitPricePerHour", plan.greedy_cost}};
  if (plan.bound > 0) out["lowerBoundPerHour"] = plan.bound;
  return out;
}

json::Object to_json(const ConsolidationPlan& plan, const ConsolidationInput& input) {
  json::Array steps, staying;
  for (const Disruption& step : plan.steps) {
    json::Array nodes, replacements, evicted;
    for (const std::size_t i : step.nodes) nodes.emplace_back(input.nodes[i].node);
    for (const NewClaim& claim : step.replacements) replacements.push_back(to_json(claim, *input.provision.pools));
    for (const auto& pod : step.evicted) evicted.emplace_back(pod->key);
    steps.push_back(json::Object{{"reason", to_string(step.reason)},
                                 {"nodes", std::move(nodes)},
                                 {"replacements", std::move(replacements)},
                                 {"evictions", std::move(evicted)},
                                 {"savingsPerHour", step.savings}});
  }
  for (const auto& [i, why] : plan.staying)
    staying.push_back(json::Object{{"node", input.nodes[i].node}, {"pricePerHour", input.nodes[i].price}, {"reason", why}});
  json::Array nodes;
  for (const OwnedNode& one : input.nodes)
    nodes.push_back(json::Object{{"node", one.node},
                                 {"nodeClaim", one.claim},
                                 {"nodePool", (*input.provision.pools)[one.pool].name},
                                 {"instanceType", one.type},
                                 {"zone", one.zone},
                                 {"capacityType", one.capacity_type},
                                 {"pricePerHour", one.price},
                                 {"isLeaving", one.is_leaving}});
  return json::Object{{"steps", std::move(steps)}, {"staying", std::move(staying)},
                      {"nodes", std::move(nodes)}, {"currency", input.provision.catalogue->currency},
                      {"pricePerHour", plan.cost}, {"savingsPerHour", plan.savings}};
}

std::string claim_lines(const json::Array& claims, std::string_view currency, std::string_view indent) {
  struct Row {
    std::size_t nodes = 0, pods = 0;
    double price = 0;
  };
  std::map<std::array<std::string, 4>, Row> rows;
  for (const json::Value& claim : claims) {
    Row& row = rows[{text_of(claim, "nodePool"), text_of(claim, "instanceType"), text_of(claim, "zone"), text_of(claim, "capacityType")}];
    ++row.nodes;
    row.pods += json::get_array(claim, {"pods"}).size();
    row.price = number_of(claim, "pricePerHour");
  }
  std::string out;
  for (const auto& [what, row] : rows) {
    const auto& [pool, type, zone, capacity_type] = what;
    out += fmt::format("{}{:>4} x {:<16} {:<10} {:<10} {:>12} an hour each, {}  (pool {})\n", indent, row.nodes, type, zone, capacity_type,
                       money(row.price, currency), counted(row.pods, "pod"), pool);
  }
  return out;
}

std::string provision_text(const json::Value& plan) {
  std::string out;
  const std::string currency = text_of(plan, "currency");
  const json::Array& claims = json::get_array(plan, {"nodeClaims"});
  std::size_t placed = 0;
  for (const json::Value& claim : claims) placed += json::get_array(claim, {"pods"}).size();
  if (const std::size_t existing = json::get_array(plan, {"onExistingNodes"}).size(); existing > 0)
    out += fmt::format("{} pods have room on nodes that are there or on their way\n", existing);
  if (claims.empty()) {
    out += "nothing to buy\n";
  } else {
    const double cost = number_of(plan, "pricePerHour"), greedy = number_of(plan, "firstFitPricePerHour");
    out += fmt::format("{} for {}:\n", counted(claims.size(), "node"), counted(placed, "pod")) + claim_lines(claims, currency, "");
    const std::string words = bound_words_of(cost, number_of(plan, "lowerBoundPerHour"));
    out += fmt::format("{} an hour{}\n", money(cost, currency), words.empty() ? "" : ": " + words);
    if (greedy > cost + 1e-9) out += fmt::format("first fit, the largest pods first, would pay {}\n", money(greedy, currency));
    if (const std::string priced = text_of(plan, "priced"); !priced.empty()) out += fmt::format("prices as of {}\n", priced);
  }
  std::map<std::string, std::pair<std::size_t, std::string>> reasons;
  for (const json::Value& one : json::get_array(plan, {"refused"})) {
    auto& [count, example] = reasons[text_of(one, "reason")];
    if (count++ == 0) example = text_of(one, "pod");
  }
  for (const auto& [why, who] : reasons)
    out += fmt::format("no node for {}: {}\n", who.first == 1 ? who.second : fmt::format("{} pods such as {}", who.first, who.second), why);
  return out;
}

std::string consolidation_text(const json::Value& plan) {
  const std::string currency = text_of(plan, "currency");
  std::string out = fmt::format("{} nodes of pools cost {} an hour\n", json::get_array(plan, {"nodes"}).size(),
                                money(number_of(plan, "pricePerHour"), currency));
  const json::Array& steps = json::get_array(plan, {"steps"});
  for (const json::Value& step : steps)
    out += step_line(step, currency) + claim_lines(json::get_array(step, {"replacements"}), currency, "    instead: ");
  if (steps.empty()) out += "nothing to do\n";
  std::map<std::string, std::vector<std::string>> staying;
  for (const json::Value& one : json::get_array(plan, {"staying"})) staying[text_of(one, "reason")].push_back(text_of(one, "node"));
  for (const auto& [why, nodes] : staying)
    out +=
        fmt::format("{} stay{}: {}\n", nodes.size() == 1 ? nodes.front() : fmt::format("{} nodes such as {}", nodes.size(), nodes.front()),
                    nodes.size() == 1 ? "s" : "", why);
  if (const double savings = number_of(plan, "savingsPerHour"); savings > 0)
    out += fmt::format("{} an hour less in all\n", money(savings, currency));
  return out;
}

std::string node_text(const json::Value& consolidation, std::string_view node) {
  const std::string currency = text_of(consolidation, "currency");
  for (const json::Value& one : json::get_array(consolidation, {"nodes"})) {
    if (text_of(one, "node") != node) continue;
    std::string out =
        fmt::format("Node {} is of NodePool {} (NodeClaim {}): {} in {}, {}, {}.\n", node, text_of(one, "nodePool"),
                    text_of(one, "nodeClaim"), text_of(one, "instanceType"), text_of(one, "zone"), text_of(one, "capacityType"),
                    number_of(one, "pricePerHour") > 0 ? money(number_of(one, "pricePerHour"), currency) + " an hour"
                                                       : std::string("of a price that the instance types do not tell"));
    if (json::get_bool(one, {"isLeaving"})) return out + "It goes: its pods are being moved.\n";
    for (const json::Value& step : json::get_array(consolidation, {"steps"}))
      if (const std::vector<std::string> nodes = names_in(step, "nodes"); std::ranges::find(nodes, node) != nodes.end())
        return out + "It would go now. " + step_line(step, currency) +
               claim_lines(json::get_array(step, {"replacements"}), currency, "    instead: ");
    for (const json::Value& stays : json::get_array(consolidation, {"staying"}))
      if (text_of(stays, "node") == node) return out + fmt::format("It stays: {}.\n", text_of(stays, "reason"));
    return out;
  }
  return "";
}

}  // namespace berth::pools
