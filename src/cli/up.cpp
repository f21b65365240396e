// berth up: a whole cluster in one process.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <future>

#include "base/log.h"
#include "cli/autoscaler_role.h"
#include "cli/controllers_role.h"
#include "cli/dashboard_role.h"
#include "cli/findings.h"
#include "cli/node_settings.h"
#include "cli/parse.h"
#include "cli/pod_programs.h"
#include "cli/process.h"
#include "cli/real_node.h"
#include "cli/remembered_flags.h"
#include "cli/roles.h"
#include "cli/scenario_flag.h"
#include "cli/scheduler_role.h"
#include "cli/server_role.h"
#include "cli/session.h"
#include "cli/up_descheduler.h"
#include "node/simulated/simulated_nodes.h"

namespace berth::cli {
namespace {

using node::simulated::SimulatedNodes;
using node::simulated::SimulatedNodesOptions;

/// What the cluster's nodes are made from: a start without these flags makes them as the last one did.
const std::vector<RememberedFlag> kRememberedFlags = {{"--nodes"},          {"--prefix"},    {"--zones"},          {"--devices"},
                                                      {"--scenario", true}, {"--real-node"}, {"--real-node-name"}, {"--compatibility"}};
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

/// What does not concern the server alone.
struct UpPlan {
  ServerPlan server;
  controllers::ManagerOptions controllers_options;
  scheduler::config::SchedulerConfig scheduler_config;
  std::unique_ptr<UpDescheduler> descheduler;
  Duration scan_interval{};
};

struct UpFlags {
  ServerFlags server;
  SchedulerFlags scheduler;
  ControllersFlags controllers;
  SimulatedNodesOptions nodes;
  RealNodeFlags real;
  std::string scenario, devices, descheduler_policy, descheduling_interval = "5m", scan_interval = "10s";
  std::string scheduler_port = "auto", controllers_port = "auto", autoscaler_port = "auto", dashboard_port = "auto";

  void add_to(CLI::App& app);
  /// Reads all files and looks at all flags; changes nothing but the nodes' options.
  UpPlan plan(Findings& findings);
};

void UpFlags::add_to(CLI::App& app) {
  server.add_to(app);
  scheduler.compatibility_acts_on = "Scheduler, nodes' eviction order and allocatable, the API server's warnings";
  scheduler.add_to(app);
  controllers.add_to(app);
  real.add_to(app);
  nodes.nodes = 6;
  app.add_option("--nodes", nodes.nodes, "Simulated nodes there must be at least; without it none beside a real node")
      ->capture_default_str()
      ->check(CLI::Range(0, 60'000));
  app.add_option("--prefix", nodes.prefix, "Simulated nodes are named PREFIX1, PREFIX2, …")->capture_default_str();
  app.add_option("--zones", nodes.zones, "Zones of the simulated nodes, taken in turn")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  app.add_option("--scenario", scenario, kScenarioHelp);
  app.add_option("--devices", devices, kDevicesHelp);
  app.add_option("--scheduler-secure-port", scheduler_port,
                 "HTTPS port of the scheduler's /healthz, /metrics, /configz; auto: 10259 or, when that is taken, any free one; 0: none")
      ->capture_default_str();
  app.add_option("--controllers-secure-port", controllers_port, "The same of the controllers; auto: 10257 or any free one; 0: none")
      ->capture_default_str();
  app.add_option("--descheduler-policy", descheduler_policy, "Run the descheduler too, with this DeschedulerPolicy");
  app.add_option("--descheduling-interval", descheduling_interval, "Pause between the starts of two of its cycles")->capture_default_str();
  app.add_option("--autoscaler-secure-port", autoscaler_port, "The same of the cluster autoscaler; auto: 8085 or any free one; 0: none")
      ->capture_default_str();
  app.add_option("--dashboard-port", dashboard_port, "Port of the dashboard on 127.0.0.1; auto: 6480 or any free one; 0: no dashboard")
      ->capture_default_str();
  app.add_option("--scan-interval", scan_interval, "How often the cluster autoscaler looks, where a ClusterAutoscaler named default is")
      ->capture_default_str();
}

UpPlan UpFlags::plan(Findings& findings) {
  UpPlan out;
  real.compatibility = server.compatibility = scheduler.compatibility;
  out.server = server.plan(findings);
  const apiserver::MasterConfig& master = out.server.master_config;
  out.controllers_options = controllers.options(master.controller_arguments, {}, findings);
  out.controllers_options.leader_elect = false;  // There is one in this process, and one process on the data.
  out.controllers_options.simulated_machines = true;
  if (auto config = findings.take(scheduler.config(master, server.master_config))) {
    findings.notes(config->notes);
    out.scheduler_config = std::move(*config);
  }
  read_scenario(scenario, nodes, findings);
  scheduler.compatibility.apply(nodes.fleet.kubelet);
  read_devices(devices, nodes.node_template, findings);
  const auto scan = parse_go_duration(scan_interval);
  if (!scan || *scan < std::chrono::milliseconds(100))
    findings.error(fmt::format("--scan-interval: \"{}\" is not a duration of at least 100ms", scan_interval));
  out.scan_interval = scan.value_or(Duration::zero());
  for (const auto& [flag, port] :
       {std::pair("--scheduler-secure-port", scheduler_port), std::pair("--controllers-secure-port", controllers_port),
        std::pair("--autoscaler-secure-port", autoscaler_port), std::pair("--dashboard-port", dashboard_port)})
    findings.take(check_component_port(flag, port));
  if (!real.config.empty() || !real.kubelet_arguments.empty())
    if (const auto settings = findings.take(read_kubelet_settings(real.config, real.kubelet_arguments))) {
      findings.notes(settings->warnings);
      if (real.mode == "off") findings.note("--node-config and --kubelet-arg have no effect with --real-node off");
    }
  if (!descheduler_policy.empty())
    out.descheduler = UpDescheduler::plan(descheduler_policy, descheduling_interval, out.scheduler_config, findings);
  return out;
}

/// Says where it is; a cluster without one is a cluster.
std::unique_ptr<dashboard::Dashboard> start_dashboard_of_up(const std::string& port, const std::string& kubeconfig,
                                                            std::function<std::string()> metrics) {
  if (port == "0") return nullptr;
  DashboardPlan plan;
  plan.connection.kubeconfig = kubeconfig;
  plan.port = port;
  plan.metrics = std::move(metrics);
  auto started = start_dashboard(std::move(plan));
  if (!started) {
    std::printf("no dashboard: %s\n", started.error().message.c_str());
    return nullptr;
  }
  std::printf("dashboard: %s\n", (*started)->url().c_str());
  return std::move(*started);
}

}  // namespace

// Longer than a screen: flags, what is wrong with them, then the roles in the order in which they start and stop.
int run_up(const std::vector<std::string>& args) {
  CLI::App app(
      "A whole cluster in one process: API server, scheduler, controllers, and nodes: this machine with real containers, or simulated "
      "ones. Ctrl-C stops it; the next start with the same --data-dir has everything as it was",
      "berth up");
  UpFlags flags;
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  const auto remembered = RememberedFlags::recall(app, flags.server.data_dir, kRememberedFlags);
  if (!remembered) return report(remembered.error());
  Findings findings;
  UpPlan plan = flags.plan(findings);
  if (flags.server.validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("up")) return 1;
  SimulatedNodesOptions& nodes = flags.nodes;
  const RealNodeFlags& real = flags.real;
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
  auto api = ServerRole::start(flags.server, plan.server,
                               [backend](const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
                                 return *backend && (*backend)(node, request, writer);
                               });
  if (!api) return report(api.error());
  ServerRole& role = **api;
  if (const auto saved = remembered->save(); !saved) return report(saved.error());
  taint_simulated_nodes(role.in_process("system:berth:nodes", {"system:masters"}), has_real_node);
  nodes.programs = make_pod_programs({.transport = role.in_process("system:berth:nodes", {"system:masters"}),
                                      .server = {.server = role.url(), .ca_pem = role.ca_pem()},
                                      .directory = role.data_dir() + "/programs"});
  NodesRole node_role(role.in_process("system:berth:nodes", {"system:masters"}), nodes, backend);
  nodes.programs.reset();  // The role has it; it must go before the server that its transport leads to.
  plan.controllers_options.root_ca_pem = role.ca_pem();
  auto& signing = plan.controllers_options.signing;
  if (signing.certificate_file.empty()) {
    signing.certificate_file = role.data_dir() + "/pki/ca.crt";
    signing.key_file = role.data_dir() + "/pki/ca.key";
  }
  signing.authority = authority_from_files(signing.certificate_file, signing.key_file);
  ControllersRole controllers_role(role.in_process("system:kube-controller-manager", {"system:masters"}), plan.controllers_options);
  auto scheduler_options = flags.scheduler.options(plan.scheduler_config);
  scheduler_options.tracer = role.tracer();
  SchedulerRole scheduler_role(role.in_process("system:kube-scheduler", {"system:masters"}), std::move(scheduler_options));
  scheduler_role.publish(published_of(plan.scheduler_config, flags.scheduler.hard_budgets));
  if (auto started = scheduler_role.start(); !started) return report(started.error());
  const auto serve = [&](const char* flag, const std::string& port, std::uint16_t usual_port, client::ComponentServerOptions options) {
    options.address = role.host();
    options.tls = role.tls();
    return serve_component_of_up(flag, port, usual_port, std::move(options));
  };
  auto scheduler_served = serve("--scheduler-secure-port", flags.scheduler_port, 10259, scheduler_role.port_options(plan.scheduler_config));
  if (!scheduler_served) return report(scheduler_served.error());
  auto controllers_served = serve("--controllers-secure-port", flags.controllers_port, 10257, controllers_role.port_options());
  if (!controllers_served) return report(controllers_served.error());
  // Goes before the server that its transport leads to.
  const std::unique_ptr<UpDescheduler> descheduler = std::move(plan.descheduler);
  if (descheduler) descheduler->start(role.in_process("system:descheduler", {"system:masters"}));
  auto profiles = placement::Profiles::create(plan.scheduler_config.profiles);
  if (!profiles) return report(profiles.error());
  profiles->set_otherwise(profiles->find(plan.scheduler_config.profiles.front().scheduler_name));
  AutoscalerRole autoscaler_role(role.in_process("system:serviceaccount:openshift-machine-api:cluster-autoscaler", {"system:masters"}),
                                 {.profiles = *profiles, .scan_interval = plan.scan_interval});
  auto autoscaler_served = serve("--autoscaler-secure-port", flags.autoscaler_port, 8085, autoscaler_role.port_options());
  if (!autoscaler_served) return report(autoscaler_served.error());
  std::unique_ptr<RealNode> real_node;
  std::string shown = fmt::format("{} simulated nodes in {} zones", nodes.nodes, nodes.zones);
  if (has_real_node) {
    auto started =
        RealNode::start(real, mode,
                        {role.data_dir(), role.ca_pem(), role.in_process("system:node:" + real_node_name(real), {"system:nodes"}),
                         role.in_process("system:berth:network", {"system:masters"})});
    if (!started) return report(started.error());
    real_node = std::move(*started);
    role.api().trust_node(real_node->name(), real_node->serving_ca_pem());
    shown = fmt::format("real node {} (containers by {}){}", real_node->name(), real_node->runtime(),
                        nodes.nodes > 0 ? fmt::format(", {} beside it", shown) : "");
  }
  std::printf("berth is up: %s, API server on %s\n", shown.c_str(), role.url().c_str());
  for (const std::string& note : remembered->notes()) std::printf("%s\n", note.c_str());
  // It asks the server and the scheduler: it goes first.
  const auto dashboard =
      start_dashboard_of_up(flags.dashboard_port, role.kubeconfig_path(), scheduler_role.port_options(plan.scheduler_config).metrics);
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
