// berth autoscaler: adds and removes the nodes of MachineSets, for this or any cluster with the Machine API.
#include "cli/autoscaler_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <future>

#include "base/log.h"
#include "cli/parse.h"
#include "cli/placement_input.h"
#include "cli/process.h"
#include "cli/roles.h"
#include "cli/scaling_view.h"
#include "cli/session.h"
#include "client/kubeconfig.h"
#include "scheduler/config/config.h"

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
    fmt::print("stays   {}: {}\n", node.node, autoscaler::to_string(node));
  if (actions.grow.empty() && actions.remove.empty()) fmt::print("nothing to do\n");
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

}  // namespace

int run_autoscaler(const std::vector<std::string>& args) {
  CLI::App app(
      "Adds nodes for pods that find no room and removes nodes that nobody needs: the replicas of MachineSets whose bounds a "
      "MachineAutoscaler sets, by the rules of the ClusterAutoscaler named default.\n"
      "  berth autoscaler --kubeconfig K\n"
      "  berth autoscaler --once --dry-run --kubeconfig K    # only says what it would do now\n"
      "  berth autoscaler --cluster dump.yaml                # the same, of a dump",
      "berth autoscaler");
  ConnectionFlags connection;
  connection.add_to(app);
  ComponentPortFlags port;
  port.add_to(app, 8085);
  autoscaler::RunnerOptions options;
  std::string interval, pass_time, config_file, scheduler_file, output = "text";
  std::vector<std::string> cluster_files;
  bool leader_elect = true, is_once = false;
  app.add_option("--autoscaler-namespace", options.ns, "Of its Lease, its status and the priority expander's ConfigMap")
      ->capture_default_str();
  app.add_option("--scan-interval", interval, "Between two looks at the cluster (default 10s)");
  app.add_option("--max-pass-time", pass_time, "A look ends after that with what it has; the rest comes first the next time (default 10s)");
  app.add_flag("--enforce-node-group-min-size", options.enforce_min_sizes, "Groups below their minimum grow to it without a pod that needs them");
  app.add_flag("--dry-run", options.dry_run, "Decides and says what it would do in its status and events; changes nothing");
  app.add_flag("--once", is_once, "With --dry-run: prints what it would do now, and ends");
  app.add_option("--config", scheduler_file, "The scheduler's configuration (KubeSchedulerConfiguration or Policy): what fits is asked of the pod's profile");
  app.add_option("--options", config_file, "A file with a ClusterAutoscaler, instead of the object named default");
  app.add_option("--seed", options.seed, "Of the draw among equally good groups")->capture_default_str();
  app.add_option("--cluster", cluster_files,
                 "Files with a cluster's objects and a ClusterAutoscaler: says what would be done, does nothing");
  app.add_option("-o,--output", output, "With --cluster: text or json")->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several autoscalers works at a time (default true)");
  if (const auto code = parse_args(app, args)) return *code;
  auto scheduler = scheduler_file.empty() ? Result<scheduler::config::SchedulerConfig>(scheduler::config::default_config(placement::Era::k136))
                                          : scheduler::config::load(scheduler_file, {.file = scheduler_file, .era = placement::Era::k136});
  if (!scheduler) return report(scheduler.error());
  auto profiles = placement::Profiles::create(scheduler->profiles);
  if (!profiles) return report(profiles.error());
  profiles->set_otherwise(profiles->find(scheduler->profiles.front().scheduler_name));
  options.profiles = std::move(*profiles);
  if (is_once && !options.dry_run) return report(invalid("--once goes with --dry-run").error());
  if (!cluster_files.empty() || is_once) {
    if (!config_file.empty()) cluster_files.push_back(config_file);
    auto documents = read_objects(cluster_files);
    if (!documents) return report(documents.error());
    if (is_once) {
      auto session = Session::open(connection);
      if (!session) return report(session.error());
      auto live = read_scaling_objects((*session)->client());
      if (!live) return report(live.error());
      std::ranges::move(*live, std::back_inserter(*documents));
    }
    auto rules = scaling_options_of(*documents);
    if (!rules) return report(rules.error());
    rules->enforce_min_sizes = options.enforce_min_sizes;
    return show(look_at_scaling(*documents, std::move(*rules), options.profiles), output);
  }
  if (!interval.empty()) {
    options.scan_interval = parse_go_duration(interval);
    if (!options.scan_interval || *options.scan_interval < std::chrono::milliseconds(100))
      return report(invalid(fmt::format("--scan-interval: \"{}\" is not a duration of at least 100ms", interval)).error());
  }
  if (!pass_time.empty()) {
    const auto parsed = parse_go_duration(pass_time);
    if (!parsed || *parsed < std::chrono::milliseconds(100))
      return report(invalid(fmt::format("--max-pass-time: \"{}\" is not a duration of at least 100ms", pass_time)).error());
    options.max_pass_time = *parsed;
  }
  if (!config_file.empty()) {
    auto documents = read_objects({config_file});
    if (!documents) return report(documents.error());
    auto parsed = scaling_options_of(*documents);
    if (!parsed) return report(parsed.error());
    options.options = std::move(*parsed);
  }
  block_signals();
  auto transport = client::transport_from_kubeconfig(connection.kubeconfig, connection.context);
  if (!transport) return report(transport.error());
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
