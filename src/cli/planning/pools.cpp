// `berth pools`: what pools would buy for pods that wait, and which of their nodes are not worth their price. Changes nothing.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "cli/command/parse.h"
#include "cli/planning/instance_types.h"
#include "cli/planning/placement_commands.h"
#include "cli/planning/placement_input.h"
#include "cli/planning/pod_manifests.h"
#include "cli/planning/pool_documents.h"
#include "cli/planning/pool_view.h"
#include "cli/planning/scaling_view.h"
#include "pools/documents.h"
#include "pools/plan_words.h"

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
    app.add_option(
        "--instance-types,--catalogue", catalogue,
        "The file of instance types with their prices (docs/node-pools.md); default: what the cluster's autoscaler has published");
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

Result<std::vector<json::Value>> read_cluster(PoolsFlags& flags) {
  if (!flags.placement.cluster_files.empty()) return read_objects(flags.placement.cluster_files);
  // Without a cluster the question is what pods of files would cost alone.
  if (!flags.pools.empty() && !flags.pods.empty() && flags.placement.connection.kubeconfig.empty() && std::getenv("KUBECONFIG") == nullptr)
    return std::vector<json::Value>();
  auto session = Session::open(flags.placement.connection);
  if (!session) return std::unexpected(session.error());
  auto out = read_scaling_objects((*session)->client());
  if (!out) return out;
  if (auto read = read_live_pools((*session)->client(), *out); !read) return std::unexpected(read.error());
  return out;
}

/// Pods of manifests as they would wait: a number behind the names of a workload's.
void add_pods(const std::vector<json::Value>& documents, const std::string& ns, pools::PoolsCache& cache) {
  std::size_t number = 0;
  std::vector<std::string> classes;
  for (const json::Value& document : documents)
    for (json::Value& pod : pods_of(document)) {
      json::Value whole = complete_pod(std::move(pod), cache.cluster().cluster(), ns);
      classes.emplace_back(json::get_string(whole, {"spec", "priorityClassName"}));
      std::string name(json::get_string(whole, {"metadata", "name"}));
      if (json::get_string(document, {"kind"}) != "Pod" || name.empty())
        name = fmt::format("{}-{}", json::get_string(document, {"metadata", "name"}), ++number);
      json::set(whole, {"metadata", "name"}, json::Value(name));
      json::set(whole, {"metadata", "uid"}, json::Value(name));
      json::set(whole, {"kind"}, json::Value("Pod"));
      cache.upsert(whole);
    }
  tell_unknown_priorities(classes, cache.cluster().cluster());
}

/// What a server would have dropped of pools and classes that somebody wrote into a file of a cluster.
std::vector<std::string> dropped_fields(const std::vector<json::Value>& documents) {
  std::vector<std::string> out;
  for (json::Value document : documents) {
    const std::string kind(json::get_string(document, {"kind"})), name(json::get_string(document, {"metadata", "name"}));
    if (kind != "NodePool" && !kind.ends_with("NodeClass")) continue;
    for (const pools::Finding& one : pools::complete(document))
      if (one.is_dropped) out.push_back(fmt::format("{} \"{}\": {}: {} (it counts for nothing)", kind, name, one.path, one.what));
  }
  return out;
}

/// Everything that is wrong with it is told with the file's name.
Result<std::unique_ptr<PoolView>> ask(PoolsFlags& flags) {
  auto out = std::make_unique<PoolView>();
  auto documents = read_cluster(flags);
  if (!documents) return std::unexpected(documents.error());
  auto catalogue = catalogue_of(flags.catalogue, *documents);
  if (!catalogue) return std::unexpected(catalogue.error());
  out->catalogue = std::move(*catalogue);
  auto input = read_placement_config(flags.placement, known_schedulers_of(*documents));
  if (!input) return std::unexpected(input.error());
  tell_notes(*input);
  out->profiles = input->profiles_for_all();
  for (const json::Value& document : *documents) out->cache.upsert(document);
  auto pools = read_pool_documents(flags.pools);
  if (!pools) return std::unexpected(pools.error());
  for (const json::Value& document : *pools) out->cache.upsert(document);
  auto pods = read_pod_manifests(flags.pods);
  if (!pods) return std::unexpected(pods.error());
  add_pods(*pods, flags.placement.connection.ns.empty() ? "default" : flags.placement.connection.ns, out->cache);
  if (out->cache.pools().empty()) return invalid("there is no NodePool: name a file with --node-pool, or create one in the cluster");
  out->look(SystemClock().now());
  auto dropped = flags.placement.cluster_files.empty() ? std::vector<std::string>() : dropped_fields(*documents);
  for (const auto* notes : {&dropped, &out->view.notes, &out->notes})
    for (const std::string& note : *notes) std::fprintf(stderr, "warning: %s\n", note.c_str());
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(flags.seconds * 1000));
  out->view.provision.is_over = [end] { return std::chrono::steady_clock::now() > end; };
  return out;
}

int show(json::Object plan, std::string (*words)(const json::Value&), const std::string& output) {
  const json::Value document(std::move(plan));
  const std::string text = output == "json" ? json::serialize_pretty(document) : words(document);
  std::fwrite(text.data(), 1, text.size(), stdout);
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
  pools::PoolsView& view = (*asked)->view;
  return show(pools::to_json(pools::plan_provisioning(view.input()), view.pools, (*asked)->catalogue), pools::provision_text, flags.output);
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
  const pools::ConsolidationInput input{view.input(), view.owned};
  return show(pools::to_json(pools::plan_consolidation(input), input), pools::consolidation_text, flags.output);
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
