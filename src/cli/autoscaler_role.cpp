// berth autoscaler: adds and removes the nodes of MachineSets, for this or any cluster with the Machine API.
#include "cli/autoscaler_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <future>

#include "autoscaler/autoscaler.h"
#include "autoscaler/world.h"
#include "base/config_reader.h"
#include "base/log.h"
#include "cli/findings.h"
#include "cli/parse.h"
#include "cli/placement_input.h"
#include "cli/process.h"
#include "cli/roles.h"
#include "cli/session.h"
#include "client/kubeconfig.h"

namespace berth::cli {

AutoscalerRole::AutoscalerRole(std::shared_ptr<client::Transport> transport, autoscaler::RunnerOptions options)
    : loop_(lasting_loop("autoscaler")), client_(std::move(transport), &loop_, "cluster-autoscaler") {
  std::promise<void> made;
  loop_.post([&] {
    runner_ = std::make_unique<autoscaler::Runner>(client_, std::move(options), *metrics_);
    runner_->on_lost_leadership([] {
      log::error("autoscaler", "leadership lost: stopping");
      kill(getpid(), SIGTERM);
    });
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
    runner_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

namespace {

/// The ClusterAutoscaler of the documents, the one named default first.
Result<autoscaler::Options> options_of(const std::vector<json::Value>& documents) {
  const json::Value* found = nullptr;
  for (const json::Value& document : documents)
    if (json::get_string(document, {"kind"}) == "ClusterAutoscaler" &&
        (found == nullptr || json::get_string(document, {"metadata", "name"}) == "default"))
      found = &document;
  if (found == nullptr) return invalid("there is no ClusterAutoscaler in the files");
  return autoscaler::Options::parse(*found);
}

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
    if (!node.detail.empty()) entry["detail"] = node.detail;
    nodes.push_back(std::move(entry));
  }
  return json::Object{{"grow", std::move(grow)}, {"remove", std::move(remove)}, {"pods", std::move(pods)}, {"staying", std::move(nodes)}};
}

void print(const autoscaler::Actions& actions) {
  for (const autoscaler::Resize& resize : actions.grow)
    fmt::print("grow    {} from {} to {} (at most {})\n", resize.group, resize.from, resize.to, resize.max);
  for (const autoscaler::NodeRemoval& removal : actions.remove)
    fmt::print("remove  {} of {}, moving {} pods\n", removal.node, removal.group, removal.evict.size());
  for (const autoscaler::Note& note : actions.notes)
    if (note.pod != nullptr) fmt::print("pod     {}: {}\n", note.pod->key(), note.message);
  for (const autoscaler::Unremovable& node : actions.status.unremovable)
    fmt::print("stays   {}: {}{}{}\n", node.node, node.reason, node.detail.empty() ? "" : ": ", node.detail);
  if (actions.grow.empty() && actions.remove.empty()) fmt::print("nothing to do\n");
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
    if (kind != "ClusterAutoscaler") continue;
    if (out) return invalid(fmt::format("{}: there is more than one ClusterAutoscaler", path));
    out = read;
  }
  if (!out) return invalid(fmt::format("{}: there is no ClusterAutoscaler in it", path));
  return *out;
}

/// What would be done with a dump of a cluster. Every pause and delay counts as over: pods without a node as refused by the scheduler.
int dry_run(std::vector<json::Value> documents, const placement::Profiles& profiles, const std::string& output) {
  auto options = options_of(documents);
  if (!options) return report(options.error());
  options->unneeded_time = options->unready_time = Duration::zero();
  autoscaler::World world(profiles.find("default-scheduler")->profile().era);
  for (json::Value& document : documents) {
    if (json::get_string(document, {"kind"}) == "Pod" && json::get_string(document, {"spec", "nodeName"}).empty())
      json::set(document, {"status", "conditions"},
                json::Array{json::Object{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}});
    world.upsert(document);
  }
  autoscaler::Autoscaler core(profiles, 0);
  const autoscaler::Actions actions = core.step(world.snapshot(), *options, SystemClock().now());
  if (output == "json") {
    const std::string text = json::serialize_pretty(shown(actions));
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    print(actions);
  }
  return 0;
}

}  // namespace

int run_autoscaler(const std::vector<std::string>& args) {
  CLI::App app(
      "Adds nodes for pods that find no room and removes nodes that nobody needs: the replicas of MachineSets whose bounds a "
      "MachineAutoscaler sets, by the rules of the ClusterAutoscaler named default.\n"
      "  berth autoscaler --kubeconfig K\n"
      "  berth autoscaler --cluster dump.yaml        # only says what it would do",
      "berth autoscaler");
  ConnectionFlags connection;
  connection.add_to(app);
  ComponentPortFlags port;
  port.add_to(app, 8085);
  autoscaler::RunnerOptions options;
  std::string interval, config_file, output = "text";
  std::vector<std::string> cluster_files;
  bool leader_elect = true, validate_only = false;
  add_validate_flag(app, validate_only);
  PlacementFlags placement;
  app.add_option("--scheduler-config", placement.config_file,
                 "The scheduler's configuration: KubeSchedulerConfiguration or Policy (default: what the running scheduler has published)");
  app.add_option("--autoscaler-namespace", options.ns, "Of its Lease, its status and the priority expander's ConfigMap")
      ->capture_default_str();
  app.add_option("--scan-interval", interval, "Between two looks at the cluster (default 10s)");
  app.add_option("--options", config_file, "A file with a ClusterAutoscaler, instead of the object named default");
  app.add_option("--seed", options.seed, "Of the draw among equally good groups")->capture_default_str();
  app.add_option("--cluster", cluster_files,
                 "Files with a cluster's objects and a ClusterAutoscaler: says what would be done, does nothing");
  app.add_option("-o,--output", output, "With --cluster: text or json")->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several autoscalers works at a time (default true)");
  if (const auto code = parse_args(app, args)) return *code;
  placement.connection = connection;
  Findings findings;
  std::vector<std::string> notes;
  // What is known before anybody is asked: the file, where one is named.
  static_cast<void>(findings.take(read_placement_config(placement, {})));
  if (!interval.empty()) {
    options.scan_interval = parse_go_duration(interval);
    if (!options.scan_interval || *options.scan_interval < std::chrono::milliseconds(100))
      findings.error(fmt::format("--scan-interval: \"{}\" is not a duration of at least 100ms", interval));
  }
  if (!config_file.empty()) options.options = findings.take(read_options_file(config_file, notes));
  findings.notes(notes);
  const bool is_live = cluster_files.empty();
  if (is_live)
    check_connection(connection.kubeconfig, connection.context, findings);
  else if (validate_only)
    static_cast<void>(findings.take(read_objects(cluster_files)));
  if (is_live && app.count("--output") > 0) findings.note("--output has no effect without --cluster");
  port.check(findings);
  if (validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("autoscaler")) return 1;
  if (!is_live) {
    if (!config_file.empty()) cluster_files.push_back(config_file);
    auto documents = read_objects(cluster_files);
    if (!documents) return report(documents.error());
    auto input = read_placement_config(placement, known_schedulers_of(*documents));
    if (!input) return report(input.error());
    tell_configuration(*input, "default-scheduler");
    return dry_run(std::move(*documents), input->profiles_for_all(), output);
  }
  block_signals();
  auto transport = client::transport_from_kubeconfig(connection.kubeconfig, connection.context);
  if (!transport) return report(transport.error());
  client::Client client(*transport, nullptr, "cluster-autoscaler");
  auto input = read_placement_config(placement, placement.has_configuration() ? KnownSchedulers() : read_known_schedulers(client));
  if (!input) return report(input.error());
  tell_configuration(*input, "default-scheduler");
  options.profiles = input->profiles_for_all();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  options.leader_elect = leader_elect;
  options.identity = fmt::format("{}_{}", host, getpid());
  AutoscalerRole role(*transport, std::move(options));
  auto served = serve_component(port, role.port_options());
  if (!served) return report(served.error());
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
