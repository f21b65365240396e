// berth autoscaler: adds and removes the nodes of MachineSets, for this or any cluster with the Machine API.
#include "cli/roles/autoscaler_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <future>
#include <optional>

#include "base/config_reader.h"
#include "base/log.h"
#include "cli/command/findings.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/planning/placement_input.h"
#include "cli/planning/scaling_view.h"
#include "cli/roles/roles.h"
#include "client/kubeconfig.h"
#include "pools/runner.h"

namespace berth::cli {

AutoscalerRole::AutoscalerRole(std::shared_ptr<client::Transport> transport, autoscaler::RunnerOptions options,
                               std::optional<pools::Catalogue> instance_types)
    : loop_(lasting_loop("autoscaler")), client_(std::move(transport), &loop_, "cluster-autoscaler") {
  options.steady_clock = [] { return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()); };
  std::promise<void> made;
  loop_.post([&] {
    const auto lost = [] {
      log::error("autoscaler", "leadership lost: stopping");
      kill(getpid(), SIGTERM);
    };
    if (instance_types) {
      pools::RunnerOptions pools;
      pools.catalogue = std::move(*instance_types);
      pools.keeper.profiles = options.profiles;
      pools.steady_clock = options.steady_clock;
      pools.metrics = metrics_.get();
      pools.external = options.external;
      pools.leader_elect = options.leader_elect;
      pools.identity = options.identity;
      pools.ns = options.ns;
      pools_ = std::make_unique<pools::Runner>(client_, std::move(pools));
      pools_->on_lost_leadership(lost);
      pools_->start();
    }
    runner_ = std::make_unique<autoscaler::Runner>(client_, std::move(options), *metrics_);
    runner_->on_lost_leadership(lost);
    runner_->start();
    made.set_value();
  });
  made.get_future().wait();
}

client::ComponentServerOptions AutoscalerRole::port_options() {
  client::ComponentServerOptions out;
  out.name = "cluster-autoscaler";
  out.metrics = [registry = metrics_] { return registry->expose(); };
  out.checks.push_back(loop_check("autoscaler-loop", loop_));
  out.transport = client_.transport();
  return out;
}

AutoscalerRole::~AutoscalerRole() {
  std::promise<void> gone;
  loop_.post([&] {
    pools_.reset();
    runner_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

namespace {

json::Value shown(const autoscaler::Actions& actions) {
  json::Array grow, remove, pods, nodes;
  for (const autoscaler::Resize& resize : actions.grow)
    grow.push_back(json::Object{{"group", resize.group}, {"from", resize.from}, {"to", resize.to}, {"max", resize.max}});
  for (const autoscaler::NodeRemoval& removal : actions.remove) {
    json::Array evict;
    for (const autoscaler::PodPtr& pod : removal.evict) evict.emplace_back(pod->key());
    remove.push_back(json::Object{{"node", removal.node}, {"group", removal.group}, {"evict", std::move(evict)}});
  }
  for (const autoscaler::Note& note : actions.notes)
    if (note.pod != nullptr) pods.push_back(json::Object{{"pod", note.pod->key()}, {"reason", note.reason}, {"message", note.message}});
  for (const autoscaler::Unremovable& node : actions.status.unremovable) {
    json::Object entry{{"node", node.node}, {"reason", node.reason}};
    if (!node.blocking_reason.empty()) entry["blockingReason"] = node.blocking_reason;
    if (node.blocking_pod != nullptr) entry["blockingPod"] = node.blocking_pod->key();
    if (!node.detail.empty()) entry["detail"] = node.detail;
    nodes.push_back(std::move(entry));
  }
  json::Array requests;
  for (const autoscaler::RequestUpdate& update : actions.requests)
    requests.push_back(json::Object{{"request", update.request->key()}, {"status", update.status()}});
  return json::Object{
      {"grow", std::move(grow)},     {"remove", std::move(remove)},
      {"pods", std::move(pods)},     {"requests", std::move(requests)},
      {"staying", std::move(nodes)}, {"problems", json::Array(actions.status.problems.begin(), actions.status.problems.end())}};
}

void print(const autoscaler::Actions& actions) {
  for (const autoscaler::Resize& resize : actions.grow)
    fmt::print("grow    {} from {} to {} (at most {})\n", resize.group, resize.from, resize.to, resize.max);
  for (const autoscaler::NodeRemoval& removal : actions.remove)
    fmt::print("remove  {} of {}, moving {} pods\n", removal.node, removal.group, removal.evict.size());
  for (const autoscaler::Note& note : actions.notes)
    if (note.pod != nullptr) fmt::print("pod     {}: {}\n", note.pod->key(), note.message);
  for (const autoscaler::Unremovable& node : actions.status.unremovable)
    fmt::print("stays   {}: {}\n", node.node, autoscaler::to_string(node));
  for (const autoscaler::RequestUpdate& update : actions.requests)
    for (const autoscaler::RequestCondition& one : update.conditions)
      fmt::print("request {}: {}={} {}: {}\n", update.request->key(), one.type, one.status, one.reason, one.message);
  if (actions.grow.empty() && actions.remove.empty()) fmt::print("nothing to do\n");
  for (const std::string& problem : actions.status.problems) fmt::print(stderr, "warning: {}\n", problem);
}

/// The ClusterAutoscaler of an options file, each of whose documents is read with its own lines.
Result<autoscaler::Options> read_options_file(const std::string& path, std::vector<std::string>& notes) {
  const auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  std::optional<autoscaler::Options> out;
  for (const std::string& document : config::split_documents(*text)) {
    autoscaler::Options read;
    std::string kind;
    const auto done = config::read_text(document, {.file = path, .notes = &notes}, [&](const config::Reader& root) {
      kind = root.string("kind");
      if (kind == "ClusterAutoscaler" || kind.empty()) read = autoscaler::Options::read(root);
    });
    if (!done) return std::unexpected(done.error());
    if (kind != "ClusterAutoscaler") {
      constexpr std::string_view kKinds[] = {"ClusterAutoscaler"};
      if (const std::string meant = config::suggestion(kind, kKinds); !meant.empty())
        return invalid(fmt::format("{}:{}: kind: \"{}\" is unknown{}", path, config::line_finder(document)("kind"), kind, meant));
      continue;
    }
    if (out) return invalid(fmt::format("{}: there is more than one ClusterAutoscaler", path));
    out = read;
  }
  if (!out) return invalid(fmt::format("{}: there is no ClusterAutoscaler in it", path));
  return *out;
}

int show(const ScalingView& view, const std::string& output) {
  if (output == "json") {
    const std::string text = json::serialize_pretty(shown(view.actions));
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    print(view.actions);
  }
  return 0;
}

struct AutoscalerFlags {
  ConnectionFlags connection;
  ComponentPortFlags port;
  PlacementFlags placement;
  autoscaler::RunnerOptions options;
  std::string interval, pass_time, options_file, output = "text";
  std::vector<std::string> cluster_files;
  std::string cloud_provider, cloud_config, expander_ca_file, instance_types;
  std::optional<pools::Catalogue> catalogue;
  bool leader_elect = true, validate_only = false, is_once = false, node_pools = false;

  void add_to(CLI::App& app) {
    connection.add_to(app);
    port.add_to(app, 8085);
    add_validate_flag(app, validate_only);
    placement.compatibility.add_to(app, "The scheduler's formulas, and whether a pod at podPriorityThreshold adds nodes");
    app.add_option(
        "--config,--scheduler-config", placement.config_file,
        "The scheduler's configuration: KubeSchedulerConfiguration or Policy (default: what the running scheduler has published)");
    app.add_option("--autoscaler-namespace", options.ns, "Of its Lease, its status and the priority expander's ConfigMap")
        ->capture_default_str();
    app.add_option("--scan-interval", interval, "Between two looks at the cluster (default 10s)");
    app.add_option("--max-pass-time", pass_time,
                   "A look ends after that with what it has; the rest comes first the next time (default 10s)");
    app.add_flag("--enforce-node-group-min-size", options.enforce_min_sizes,
                 "Groups below their minimum grow to it without a pod that needs them");
    app.add_option(
        "--check-capacity-processor-instance", options.check_capacity_processor_instance,
        "Of ProvisioningRequests, only those of class check-capacity whose parameter processorInstance is this one are looked at");
    app.add_flag("--dry-run", options.dry_run, "Decides and says what it would do in its status and events; changes nothing");
    app.add_flag("--once", is_once, "With --dry-run: prints what it would do now, and ends");
    app.add_option("--options", options_file, "A file with a ClusterAutoscaler, instead of the object named default");
    app.add_option("--cloud-provider", cloud_provider,
                   "Whose machines: clusterapi (the Machine API's and Cluster API's objects) or externalgrpc (default: externalgrpc with "
                   "--cloud-config, else clusterapi)")
        ->check(CLI::IsMember({"clusterapi", "externalgrpc"}));
    app.add_option("--cloud-config", cloud_config,
                   "Of externalgrpc: the file that says where the provider is: address (host:port), cert, key, cacert, grpc_timeout");
    app.add_option("--grpc-expander-url", options.grpc_expander_url, "Whom the expander grpc asks: host:port");
    app.add_option("--grpc-expander-cert", expander_ca_file, "Who signs its certificate, PEM; without it the connection is plain");
    app.add_option("--instance-types", instance_types,
                   "Nodes of NodePools, too (karpenter.sh): the file of instance types with their prices (docs/node-pools.md)");
    app.add_flag("--node-pools", node_pools,
                 "The same without a file: NodePools buy machines of MachineSets and of the external provider alone (MachineNodeClass)");
    app.add_option("--seed", options.seed, "Of the draw among equally good groups")->capture_default_str();
    app.add_option("--cluster", cluster_files,
                   "Files with a cluster's objects and a ClusterAutoscaler: says what would be done, does nothing");
    app.add_option("-o,--output", output, "With --cluster and --once: text or json")->check(CLI::IsMember({"text", "json"}));
    app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several autoscalers works at a time (default true)");
  }
  [[nodiscard]] bool is_look() const { return is_once || !cluster_files.empty(); }

  void check(const CLI::App& app, Findings& findings) {
    const auto read = [&](std::string_view flag, const std::string& text, auto& target) {
      if (text.empty()) return;
      const auto parsed = parse_go_duration(text);
      if (!parsed || *parsed < std::chrono::milliseconds(100))
        findings.error(fmt::format("{}: \"{}\" is not a duration of at least 100ms", flag, text));
      else
        target = *parsed;
    };
    read("--scan-interval", interval, options.scan_interval);
    read("--max-pass-time", pass_time, options.max_pass_time);
    if (!instance_types.empty()) catalogue = findings.take(pools::Catalogue::load(instance_types));
    if (node_pools && !catalogue) catalogue.emplace();
    if (catalogue && (is_look() || options.dry_run))
      findings.note("--instance-types and --node-pools have no effect with --dry-run and --cluster: berth pools answers for NodePools");
    std::vector<std::string> notes;
    if (!options_file.empty()) options.options = findings.take(read_options_file(options_file, notes));
    findings.notes(notes);
    if (cloud_provider == "externalgrpc" && cloud_config.empty())
      findings.error("--cloud-provider externalgrpc needs --cloud-config, the file that says where the provider is");
    if (cloud_provider == "clusterapi" && !cloud_config.empty())
      findings.note("--cloud-config has no effect with --cloud-provider clusterapi");
    if (!cloud_config.empty() && cloud_provider != "clusterapi")
      options.external = findings.take(autoscaler::ExternalProviderConfig::load(cloud_config));
    if (!expander_ca_file.empty())
      if (auto pem = findings.take(config::read_whole_file(expander_ca_file))) options.grpc_expander_ca_pem = std::move(*pem);
    if (is_look() && options.external)
      findings.note("--cloud-config has no effect with --cluster and --once: groups are those of the objects");
    if (is_once && !options.dry_run) findings.error("--once goes with --dry-run");
    if (cluster_files.empty())
      check_connection(connection.kubeconfig, connection.context, findings);
    else if (validate_only)
      static_cast<void>(findings.take(read_objects(cluster_files)));
    if (!is_look() && app.count("--output") > 0) findings.note("--output has no effect without --cluster or --once");
    if (validate_only) static_cast<void>(findings.take(read_placement_config(placement, KnownSchedulers())));
    port.check(findings);
  }
};

/// What would be done now, of files or of a live cluster.
int look_once(AutoscalerFlags& flags) {
  if (!flags.options_file.empty()) flags.cluster_files.push_back(flags.options_file);
  auto documents = read_objects(flags.cluster_files);
  if (!documents) return report(documents.error());
  KnownSchedulers known = known_schedulers_of(*documents);
  if (flags.is_once) {
    auto session = Session::open(flags.connection);
    if (!session) return report(session.error());
    auto live = read_scaling_objects((*session)->client());
    if (!live) return report(live.error());
    std::ranges::move(*live, std::back_inserter(*documents));
    if (!flags.placement.has_configuration()) known = read_known_schedulers((*session)->client());
  }
  auto input = read_placement_config(flags.placement, known);
  if (!input) return report(input.error());
  tell_configuration(*input, "default-scheduler");
  auto rules = scaling_options_of(*documents);
  if (!rules) return report(rules.error());
  rules->enforce_min_sizes = flags.options.enforce_min_sizes;
  return show(look_at_scaling(*documents, std::move(*rules), input->profiles_for_all()), flags.output);
}

}  // namespace

int run_autoscaler(const std::vector<std::string>& args) {
  CLI::App app(
      "Adds nodes for pods that find no room and removes nodes that nobody needs: the replicas of MachineSets whose bounds a "
      "MachineAutoscaler sets, by the rules of the ClusterAutoscaler named default.\n"
      "  berth autoscaler --kubeconfig K\n"
      "  berth autoscaler --once --dry-run --kubeconfig K    # only says what it would do now\n"
      "  berth autoscaler --cluster dump.yaml                # the same, of a dump",
      "berth autoscaler");
  AutoscalerFlags flags;
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  flags.placement.connection = flags.connection;
  Findings findings;
  flags.check(app, findings);
  if (flags.validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("autoscaler")) return 1;
  if (flags.is_look()) return look_once(flags);
  block_signals();
  auto transport = client::transport_from_kubeconfig(flags.connection.kubeconfig, flags.connection.context);
  if (!transport) return report(transport.error());
  client::Client client(*transport, nullptr, "cluster-autoscaler");
  auto input =
      read_placement_config(flags.placement, flags.placement.has_configuration() ? KnownSchedulers() : read_known_schedulers(client));
  if (!input) return report(input.error());
  tell_configuration(*input, "default-scheduler");
  flags.options.profiles = input->profiles_for_all();
  flags.options.leader_elect = flags.leader_elect;
  flags.options.identity = fmt::format("{}_{}", host_name(), getpid());
  if (flags.options.dry_run) flags.catalogue.reset();
  AutoscalerRole role(*transport, std::move(flags.options), std::move(flags.catalogue));
  auto served = serve_component(flags.port, role.port_options());
  if (!served) return report(served.error());
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
