// berth up: a whole cluster in one process.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <future>

#include "base/log.h"
#include "cli/autoscaler_role.h"
#include "cli/controllers_role.h"
#include "cli/descheduler_role.h"
#include "cli/parse.h"
#include "cli/process.h"
#include "cli/real_node.h"
#include "cli/roles.h"
#include "cli/scenario_flag.h"
#include "cli/scheduler_role.h"
#include "cli/server_role.h"
#include "cli/session.h"
#include "node/simulated/simulated_nodes.h"

namespace berth::cli {
namespace {

using node::simulated::SimulatedNodes;
using node::simulated::SimulatedNodesOptions;

constexpr std::string_view kSimulatedTaint = "sim.berth.dev/simulated";

json::Value simulated_taint() { return json::Object{{"key", kSimulatedTaint}, {"effect", "NoSchedule"}}; }

/// Simulated nodes on a loop of their own.
class NodesRole {
 public:
  NodesRole(std::shared_ptr<client::Transport> transport, const SimulatedNodesOptions& options,
            std::shared_ptr<SimulatedNodes::Backend> backend)
      : loop_(lasting_loop("nodes")), client_(std::move(transport), &loop_, "berth-nodes") {
    std::promise<void> started;
    loop_.post([&] {
      nodes_ = std::make_unique<SimulatedNodes>(client_, options);
      *backend = nodes_->backend();
      nodes_->start();
      started.set_value();
    });
    started.get_future().wait();
  }
  ~NodesRole() {
    std::promise<void> gone;
    loop_.post([&] {
      nodes_.reset();
      gone.set_value();
    });
    gone.get_future().wait();
    loop_.stop();
  }

 private:
  ThreadLoop& loop_;
  client::Client client_;
  std::unique_ptr<SimulatedNodes> nodes_;
};

/// Plain pods are for the real node where there is one: simulated nodes beside it (this fleet's and those kept from earlier starts) are
/// tainted, and the taint is taken away where there is none.
void taint_simulated_nodes(const std::shared_ptr<client::Transport>& transport, bool is_wanted) {
  client::Client client(transport, nullptr, "berth-up");
  const model::Gvr nodes{"", "v1", "nodes"};
  const auto all = client.list_and_wait(nodes, "");
  if (!all) return;
  for (const json::Value& node : all->items) {
    if (!json::find(node, {"metadata", "annotations", "sim.berth.dev/fleet"})) continue;
    json::Array taints;
    bool is_there = false;
    for (const json::Value& taint : json::get_array(node, {"spec", "taints"})) {
      const bool own = json::get_string(taint, {"key"}) == kSimulatedTaint;
      is_there = is_there || own;
      if (!own) taints.push_back(taint);
    }
    if (is_there == is_wanted) continue;
    if (is_wanted) taints.push_back(simulated_taint());
    client::Call patch{.verb = "patch", .gvr = nodes, .name = std::string(json::get_string(node, {"metadata", "name"}))};
    patch.content_type = "application/merge-patch+json";
    patch.body = json::serialize(json::Object{{"spec", json::Object{{"taints", std::move(taints)}}}});
    if (const auto patched = client.call_and_wait(std::move(patch)); !patched) log::warning("up", "{}", patched.error().message);
  }
}

/// With the scheduler's own profiles. The errors name the flag or the policy's line.
Result<std::unique_ptr<DeschedulerRole>> descheduler_of_up(const std::string& policy_file, const std::string& interval_text,
                                                           const scheduler::config::SchedulerConfig& scheduler,
                                                           std::shared_ptr<client::Transport> transport) {
  const auto interval = parse_interval(interval_text);
  if (!interval || *interval < std::chrono::seconds(1))
    return invalid(fmt::format("--descheduling-interval {}: a duration of a second or more is wanted, such as 5m", interval_text));
  auto policy = descheduler::load_policy(policy_file);
  if (!policy) return std::unexpected(policy.error());
  descheduler::DeschedulerOptions options;
  options.policy = std::move(*policy);
  options.era = scheduler.era;
  auto profiles = placement::Profiles::create(scheduler.profiles);
  if (!profiles) return std::unexpected(profiles.error());
  options.profiles = std::move(*profiles);
  return std::make_unique<DeschedulerRole>(std::move(transport), std::move(options), *interval);
}

}  // namespace

int run_up(const std::vector<std::string>& args) {
  CLI::App app(
      "A whole cluster in one process: API server, scheduler, controllers, and nodes: this machine with real containers, or simulated "
      "ones. Ctrl-C stops it; the next start with the same --data-dir has everything as it was",
      "berth up");
  ServerFlags server;
  server.add_to(app);
  SchedulerFlags scheduler;
  scheduler.add_to(app);
  ControllersFlags controllers;
  controllers.add_to(app);
  SimulatedNodesOptions nodes;
  nodes.nodes = 6;
  RealNodeFlags real;
  real.add_to(app);
  app.add_option("--nodes", nodes.nodes, "Simulated nodes there must be at least; without it none beside a real node")
      ->capture_default_str()
      ->check(CLI::Range(0, 60'000));
  app.add_option("--prefix", nodes.prefix, "The simulated nodes' names are PREFIX1, PREFIX2, …")->capture_default_str();
  app.add_option("--zones", nodes.zones, "Zones of the simulated nodes, taken in turn")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  std::string scenario;
  app.add_option("--scenario", scenario, kScenarioHelp);
  std::string devices;
  app.add_option("--devices", devices, kDevicesHelp);
  std::string scheduler_port = "auto", controllers_port = "auto", autoscaler_port = "auto";
  app.add_option("--scheduler-secure-port", scheduler_port,
                 "HTTPS port of the scheduler's /healthz, /metrics, /configz; auto: 10259 or, when that is taken, any free one; 0: none")
      ->capture_default_str();
  app.add_option("--controllers-secure-port", controllers_port, "The same of the controllers; auto: 10257 or any free one; 0: none")
      ->capture_default_str();
  std::string descheduler_policy, descheduling_interval = "5m";
  app.add_option("--descheduler-policy", descheduler_policy, "Run the descheduler too, with this DeschedulerPolicy");
  app.add_option("--descheduling-interval", descheduling_interval, "Pause between the starts of two of its cycles")->capture_default_str();
  app.add_option("--autoscaler-secure-port", autoscaler_port, "The same of the cluster autoscaler; auto: 8085 or any free one; 0: none")
      ->capture_default_str();
  std::string scan_interval = "10s";
  app.add_option("--scan-interval", scan_interval, "How often the cluster autoscaler looks, where a ClusterAutoscaler named default is")
      ->capture_default_str();
  if (const auto code = parse_args(app, args)) return *code;
  if (const auto wrong = read_scenario(scenario, nodes.fleet)) {
    std::fprintf(stderr, "error: %s\n", wrong->c_str());
    return 2;
  }
  if (const auto wrong = read_devices(devices, nodes.node_template)) {
    std::fprintf(stderr, "error: %s\n", wrong->c_str());
    return 2;
  }
  const auto scan = parse_go_duration(scan_interval);
  if (!scan || *scan < std::chrono::milliseconds(100)) {
    std::fprintf(stderr, "error: --scan-interval: \"%s\" is not a duration of at least 100ms\n", scan_interval.c_str());
    return 2;
  }
  block_signals();
  raise_file_limit();
  const bool nodes_given = app.count("--nodes") > 0;
  const RealNodeMode mode = real.mode == "on"                   ? RealNodeMode::kOn
                            : real.mode == "off" || nodes_given ? RealNodeMode::kOff
                                                                : RealNodeMode::kAuto;
  const std::string no_real_node = mode == RealNodeMode::kOff ? "" : RealNode::missing(real, mode);
  if (mode == RealNodeMode::kOn && !no_real_node.empty())
    return report(fail(ErrorCode::kUnavailable, "--real-node on: " + no_real_node).error());
  const bool has_real_node = mode != RealNodeMode::kOff && no_real_node.empty();
  if (has_real_node && !nodes_given) nodes.nodes = 0;
  if (has_real_node) nodes.node_template.taints.push_back(simulated_taint());

  // Nodes answer the server's kubelet requests (logs), but start after it: the backend is filled in when they do.
  auto backend = std::make_shared<SimulatedNodes::Backend>();
  auto api = ServerRole::start(server,
                               [backend](const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
                                 return *backend && (*backend)(node, request, writer);
                               });
  if (!api) return report(api.error());
  ServerRole& role = **api;
  taint_simulated_nodes(role.in_process("system:berth:nodes", {"system:masters"}), has_real_node);
  NodesRole node_role(role.in_process("system:berth:nodes", {"system:masters"}), nodes, backend);
  auto options = controllers.options(role.ca_pem(), role.master_config().controller_arguments);
  if (!options) return report(options.error());
  options->simulated_machines = true;
  ControllersRole controllers_role(role.in_process("system:kube-controller-manager", {"system:masters"}), *options);
  auto scheduler_config = scheduler.config(role.master_config().scheduler_config_file);
  if (!scheduler_config) return report(scheduler_config.error());
  SchedulerRole scheduler_role(role.in_process("system:kube-scheduler", {"system:masters"}), scheduler.options(*scheduler_config));
  scheduler_role.publish(published_of(*scheduler_config, scheduler.hard_budgets));
  if (auto started = scheduler_role.start(); !started) return report(started.error());
  const auto serve = [&](const char* flag, const std::string& port, std::uint16_t usual_port, client::ComponentServerOptions options) {
    options.address = role.host();
    options.tls = role.tls();
    return serve_component_of_up(flag, port, usual_port, std::move(options));
  };
  auto scheduler_served = serve("--scheduler-secure-port", scheduler_port, 10259, scheduler_role.port_options(*scheduler_config));
  if (!scheduler_served) return report(scheduler_served.error());
  auto controllers_served = serve("--controllers-secure-port", controllers_port, 10257, controllers_role.port_options());
  if (!controllers_served) return report(controllers_served.error());
  std::unique_ptr<DeschedulerRole> descheduler_role;
  if (!descheduler_policy.empty()) {
    auto made = descheduler_of_up(descheduler_policy, descheduling_interval, *scheduler_config,
                                  role.in_process("system:descheduler", {"system:masters"}));
    if (!made) return report(made.error());
    descheduler_role = std::move(*made);
  }
  auto profiles = placement::Profiles::create(scheduler_config->profiles);
  if (!profiles) return report(profiles.error());
  profiles->set_otherwise(profiles->find(scheduler_config->profiles.front().scheduler_name));
  AutoscalerRole autoscaler_role(role.in_process("system:serviceaccount:openshift-machine-api:cluster-autoscaler", {"system:masters"}),
                                 {.profiles = *profiles, .scan_interval = *scan});
  auto autoscaler_served = serve("--autoscaler-secure-port", autoscaler_port, 8085, autoscaler_role.port_options());
  if (!autoscaler_served) return report(autoscaler_served.error());
  std::unique_ptr<RealNode> real_node;
  std::string shown = fmt::format("{} simulated nodes in {} zones", nodes.nodes, nodes.zones);
  if (has_real_node) {
    auto started = RealNode::start(real, mode, {role.data_dir(), role.ca_pem(), role.in_process("system:berth:node", {"system:masters"})});
    if (!started) return report(started.error());
    real_node = std::move(*started);
    shown = fmt::format("real node {} (containers by {}){}", real_node->name(), real_node->runtime(),
                        nodes.nodes > 0 ? fmt::format(", {} beside it", shown) : "");
  }
  std::printf("berth is up: %s, API server on %s\n", shown.c_str(), role.url().c_str());
  if (!no_real_node.empty()) std::printf("no real node: %s\n", no_real_node.c_str());
  std::printf("export KUBECONFIG=%s\n", shell_word(role.kubeconfig_path()).c_str());
  std::fflush(stdout);
  for (const auto& [name, served] : {std::pair("scheduler", scheduler_served->get()), std::pair("controllers", controllers_served->get()),
                                     std::pair("autoscaler", autoscaler_served->get())})
    if (served != nullptr)
      log::info("up", "{}: /metrics, /healthz and /configz on https://{}:{}", name, url_host(role.host()), served->port());
  wait_for_signal();
  if (real_node) log::info("up", "containers of the real node run on; the next start takes them over");
  log::info("up", "stopping; everything is kept in {}", role.data_dir());
  return 0;
}

}  // namespace berth::cli
