// `berth pools`: what pools would buy for pods that wait, and which of their nodes are not worth their price. Changes nothing.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "cli/parse.h"
#include "cli/placement_commands.h"
#include "cli/placement_input.h"
#include "cli/pod_manifests.h"
#include "cli/pool_documents.h"
#include "cli/scaling_view.h"
#include "pools/state.h"

namespace berth::cli {
namespace {

struct PoolsFlags {
  PlacementFlags placement;
  std::string catalogue, output = "text";
  std::vector<std::string> pools, pods;
  double seconds = 5;
  bool ignores_budgets = false;

  void add_to(CLI::App& app, bool is_plan) {
    placement.add_to(app);
    app.add_option("--instance-types,--catalogue", catalogue, "The file of instance types with their prices (docs/node-pools.md)")
        ->required();
    app.add_option("--node-pool,--pools", pools, "Files with NodePools, instead of or beside those of the cluster; - is standard input");
    if (is_plan) app.add_option("-f,--filename,--pods", pods, "Manifests of pods and workloads that would wait too");
    if (!is_plan)
      app.add_flag("--ignore-budgets", ignores_budgets,
                   "As if the pools' disruption budgets and consolidateAfter were no matter: what is possible");
    app.add_option("--time-limit", seconds, "Seconds for looking for something cheaper")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 3600.0));
    app.add_option("-o,--output", output, "text or json")->check(CLI::IsMember({"text", "json"}));
  }
};

struct Asked {
  pools::Catalogue catalogue;
  pools::PoolsWorld world;
  placement::Profiles profiles;
  pools::PoolsView view;
};

/// Kinds of karpenter.sh of a live cluster; one that does not serve them has none.
Result<void> read_pools(client::Client& client, std::vector<json::Value>& into) {
  for (const auto& [plural, kind] : {std::pair("nodepools", "NodePool"), std::pair("nodeclaims", "NodeClaim")}) {
    auto listed = client.list_and_wait({"karpenter.sh", "v1", plural}, "");
    if (!listed && listed.error().code == 404) continue;
    if (!listed) return invalid(listed.error().message);
    for (json::Value& item : listed->items) {
      json::set(item, {"kind"}, kind);
      json::set(item, {"apiVersion"}, "karpenter.sh/v1");
      into.push_back(std::move(item));
    }
  }
  return {};
}

Result<std::vector<json::Value>> read_cluster(PoolsFlags& flags) {
  if (!flags.placement.cluster_files.empty()) return read_objects(flags.placement.cluster_files);
  // Without a cluster the question is what pods of files would cost alone.
  if (!flags.pools.empty() && !flags.pods.empty() && flags.placement.connection.kubeconfig.empty() && std::getenv("KUBECONFIG") == nullptr)
    return std::vector<json::Value>();
  auto session = Session::open(flags.placement.connection);
  if (!session) return std::unexpected(session.error());
  auto out = read_scaling_objects((*session)->client());
  if (!out) return out;
  if (auto read = read_pools((*session)->client(), *out); !read) return std::unexpected(read.error());
  return out;
}

/// Pods of manifests as they would wait: a number behind the names of a workload's.
void add_pods(const std::vector<json::Value>& documents, const std::string& ns, pools::PoolsWorld& world) {
  std::size_t number = 0;
  for (const json::Value& document : documents)
    for (json::Value& pod : pods_of(document)) {
      json::Value whole = complete_pod(std::move(pod), world.cluster().cluster(), ns);
      std::string name(json::get_string(whole, {"metadata", "name"}));
      if (json::get_string(document, {"kind"}) != "Pod" || name.empty())
        name = fmt::format("{}-{}", json::get_string(document, {"metadata", "name"}), ++number);
      json::set(whole, {"metadata", "name"}, json::Value(name));
      json::set(whole, {"metadata", "uid"}, json::Value(name));
      json::set(whole, {"kind"}, json::Value("Pod"));
      world.upsert(whole);
    }
}

/// Everything that is wrong with it is told with the file's name.
Result<std::unique_ptr<Asked>> ask(PoolsFlags& flags) {
  auto out = std::make_unique<Asked>();
  auto catalogue = pools::Catalogue::load(flags.catalogue);
  if (!catalogue) return std::unexpected(catalogue.error());
  out->catalogue = std::move(*catalogue);
  auto documents = read_cluster(flags);
  if (!documents) return std::unexpected(documents.error());
  auto input = read_placement_config(flags.placement, known_schedulers_of(*documents));
  if (!input) return std::unexpected(input.error());
  tell_notes(*input);
  out->profiles = input->profiles_for_all();
  for (const json::Value& document : *documents) out->world.upsert(document);
  auto pools = read_pool_documents(flags.pools);
  if (!pools) return std::unexpected(pools.error());
  for (const json::Value& document : *pools) out->world.upsert(document);
  auto pods = read_pod_manifests(flags.pods);
  if (!pods) return std::unexpected(pods.error());
  add_pods(*pods, flags.placement.connection.ns.empty() ? "default" : flags.placement.connection.ns, out->world);
  if (out->world.pools().empty()) return invalid("there is no NodePool: name a file with --node-pool, or create one in the cluster");
  out->view = pools::view_of(out->world, out->catalogue, out->profiles, {}, SystemClock().now(), true);
  for (const std::string& note : out->view.notes) std::fprintf(stderr, "warning: %s\n", note.c_str());
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(flags.seconds * 1000));
  out->view.provision.is_over = [end] { return std::chrono::steady_clock::now() > end; };
  return out;
}

json::Value shown(const pools::NewClaim& claim, const pools::PoolsView& view) {
  json::Array pods, types;
  for (const auto& pod : claim.pods) pods.emplace_back(pod->key);
  for (const std::string& type : claim.types) types.emplace_back(type);
  return json::Object{{"nodePool", view.pools[claim.pool].name},
                      {"instanceType", claim.type},
                      {"zone", claim.zone},
                      {"capacityType", claim.capacity_type},
                      {"pricePerHour", claim.price},
                      {"instanceTypes", std::move(types)},
                      {"pods", std::move(pods)}};
}

json::Value shown(const pools::ProvisionPlan& plan, const Asked& asked) {
  json::Array claims, existing, refused;
  for (const pools::NewClaim& claim : plan.claims) claims.push_back(shown(claim, asked.view));
  for (const auto& [pod, node] : plan.on_existing) existing.push_back(json::Object{{"pod", pod->key}, {"node", node}});
  for (const auto& one : plan.refused) refused.push_back(json::Object{{"pod", one.pod->key}, {"reason", one.why}});
  json::Object out{{"nodeClaims", std::move(claims)},         {"onExistingNodes", std::move(existing)}, {"refused", std::move(refused)},
                   {"currency", asked.catalogue.currency},    {"priced", asked.catalogue.priced},       {"pricePerHour", plan.cost},
                   {"firstFitPricePerHour", plan.greedy_cost}};
  if (plan.bound > 0) out["lowerBoundPerHour"] = plan.bound;
  return out;
}

/// Lines of claims that are alike, with their number.
void print_claims(const std::vector<pools::NewClaim>& claims, const Asked& asked, const char* indent) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::tuple<std::size_t, std::size_t, double>> rows;
  for (const pools::NewClaim& claim : claims) {
    auto& [nodes, pods, price] = rows[{asked.view.pools[claim.pool].name, claim.type, claim.zone, claim.capacity_type}];
    ++nodes;
    pods += claim.pods.size();
    price = claim.price;
  }
  for (const auto& [what, row] : rows) {
    const auto& [pool, type, zone, capacity_type] = what;
    const auto& [nodes, pods, price] = row;
    fmt::print("{}{:>4} x {:<16} {:<10} {:<10} {:>12} an hour each, {} pods  (pool {})\n", indent, nodes, type, zone, capacity_type,
               asked.catalogue.money(price), pods, pool);
  }
}

void print_refused(const pools::ProvisionPlan& plan) {
  std::map<std::string, std::pair<std::size_t, std::string>> reasons;
  for (const auto& one : plan.refused) {
    auto& [count, example] = reasons[one.why];
    if (count++ == 0) example = one.pod->key;
  }
  for (const auto& [why, who] : reasons)
    fmt::print("no node for {}: {}\n", who.first == 1 ? who.second : fmt::format("{} pods such as {}", who.first, who.second), why);
}

void print(const pools::ProvisionPlan& plan, const Asked& asked) {
  std::size_t placed = 0;
  for (const auto& claim : plan.claims) placed += claim.pods.size();
  if (!plan.on_existing.empty()) fmt::print("{} pods have room on nodes that are there or on their way\n", plan.on_existing.size());
  if (plan.claims.empty()) {
    fmt::print("nothing to buy\n");
  } else {
    fmt::print("{} nodes for {} pods:\n", plan.claims.size(), placed);
    print_claims(plan.claims, asked, "");
    const std::string words = plan.bound_words();
    fmt::print("{} an hour{}\n", asked.catalogue.money(plan.cost), words.empty() ? "" : ": " + words);
    if (plan.greedy_cost > plan.cost + 1e-9)
      fmt::print("first fit, the largest pods first, would pay {}\n", asked.catalogue.money(plan.greedy_cost));
    if (!asked.catalogue.priced.empty()) fmt::print("prices as of {}\n", asked.catalogue.priced);
  }
  print_refused(plan);
}

json::Value shown(const pools::ConsolidationPlan& plan, const Asked& asked) {
  json::Array steps, staying;
  for (const pools::Disruption& step : plan.steps) {
    json::Array nodes, replacements, evicted;
    for (const std::size_t i : step.nodes) nodes.emplace_back(asked.view.owned[i].node);
    for (const auto& claim : step.replacements) replacements.push_back(shown(claim, asked.view));
    for (const auto& pod : step.evicted) evicted.emplace_back(pod->key);
    steps.push_back(json::Object{{"reason", pools::to_string(step.reason)},
                                 {"nodes", std::move(nodes)},
                                 {"replacements", std::move(replacements)},
                                 {"evictions", std::move(evicted)},
                                 {"savingsPerHour", step.savings}});
  }
  for (const auto& [i, why] : plan.staying)
    staying.push_back(json::Object{{"node", asked.view.owned[i].node}, {"pricePerHour", asked.view.owned[i].price}, {"reason", why}});
  return json::Object{{"steps", std::move(steps)},
                      {"staying", std::move(staying)},
                      {"currency", asked.catalogue.currency},
                      {"pricePerHour", plan.cost},
                      {"savingsPerHour", plan.savings}};
}

void print(const pools::ConsolidationPlan& plan, const Asked& asked) {
  fmt::print("{} nodes of pools cost {} an hour\n", asked.view.owned.size(), asked.catalogue.money(plan.cost));
  for (const pools::Disruption& step : plan.steps) {
    std::vector<std::string> nodes;
    for (const std::size_t i : step.nodes) nodes.push_back(asked.view.owned[i].node);
    fmt::print("{}: {} go{}, {} pods move, {} an hour less\n", pools::to_string(step.reason), fmt::join(nodes, ", "),
               nodes.size() == 1 ? "es" : "", step.evicted.size(), asked.catalogue.money(step.savings));
    print_claims(step.replacements, asked, "    instead: ");
  }
  if (plan.steps.empty()) fmt::print("nothing to do\n");
  std::map<std::string, std::vector<std::string>> staying;
  for (const auto& [i, why] : plan.staying) staying[why].push_back(asked.view.owned[i].node);
  for (const auto& [why, nodes] : staying)
    fmt::print("{} stay{}: {}\n", nodes.size() == 1 ? nodes.front() : fmt::format("{} nodes such as {}", nodes.size(), nodes.front()),
               nodes.size() == 1 ? "s" : "", why);
  if (plan.savings > 0) fmt::print("{} an hour less in all\n", asked.catalogue.money(plan.savings));
}

template <typename Plan>
int show(const Plan& plan, const Asked& asked, const std::string& output) {
  if (output == "json") {
    const std::string text = json::serialize_pretty(shown(plan, asked));
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    print(plan, asked);
  }
  return 0;
}

int run_plan(const std::vector<std::string>& args) {
  CLI::App app(
      "What NodePools would buy for pods that wait: the cheapest nodes, what they cost an hour, and how much less is possible at best. "
      "Changes nothing.\n"
      "  berth pools plan --instance-types types.yaml                             # of the cluster, its pools and its waiting pods\n"
      "  berth pools plan --instance-types types.yaml --node-pool pool.yaml -f deployment.yaml --cluster dump.yaml",
      "berth pools plan");
  PoolsFlags flags;
  flags.add_to(app, true);
  if (const auto code = parse_args(app, args)) return *code;
  auto asked = ask(flags);
  if (!asked) return report(asked.error());
  return show(pools::plan_provisioning((*asked)->view.input()), **asked, flags.output);
}

int run_consolidate(const std::vector<std::string>& args) {
  CLI::App app(
      "Which nodes of NodePools are not worth their price: empty ones, those whose pods have room elsewhere, those that cheaper ones "
      "replace; and why the others stay. Changes nothing.\n"
      "  berth pools consolidate --instance-types types.yaml --cluster dump.yaml",
      "berth pools consolidate");
  PoolsFlags flags;
  flags.add_to(app, false);
  if (const auto code = parse_args(app, args)) return *code;
  auto asked = ask(flags);
  if (!asked) return report(asked.error());
  pools::PoolsView& view = (*asked)->view;
  if (flags.ignores_budgets)
    for (pools::NodePool& pool : view.pools) {
      pool.budgets = {{.nodes = "100%"}};
      pool.consolidate_after = Duration::zero();
      pool.only_when_empty = false;
    }
  return show(pools::plan_consolidation({view.input(), view.owned}), **asked, flags.output);
}

}  // namespace

int run_pools(const std::vector<std::string>& args) {
  const std::string verb = args.empty() ? "--help" : args.front();
  const std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  if (verb == "plan") return run_plan(rest);
  if (verb == "consolidate") return run_consolidate(rest);
  const bool is_help = verb == "--help" || verb == "-h" || verb == "help";
  std::fprintf(is_help ? stdout : stderr,
               "%sNodePools asked beforehand: what would be bought, what would go. Changes nothing.\n\n"
               "  berth pools plan           the cheapest nodes for the pods that wait\n"
               "  berth pools consolidate    the nodes that are not worth their price\n\n"
               "berth pools VERB --help tells a verb's flags.\n",
               is_help ? "" : fmt::format("error: berth pools has no verb \"{}\"\n", verb).c_str());
  return is_help ? 0 : 2;
}

}  // namespace berth::cli
