// berth up: a whole cluster in one process.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <future>

#include "base/log.h"
#include "base/mutex.h"
#include "cli/command/configuration.h"
#include "cli/command/findings.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/remembered_flags.h"
#include "cli/command/report.h"
#include "cli/nodes/node_settings.h"
#include "cli/nodes/pod_programs.h"
#include "cli/nodes/real_node.h"
#include "cli/nodes/scenario_flag.h"
#include "cli/nodes/simulated_taint.h"
#include "cli/roles/autoscaler_role.h"
#include "cli/roles/controllers_role.h"
#include "cli/roles/placement_pages.h"
#include "cli/roles/roles.h"
#include "cli/roles/scheduler_role.h"
#include "cli/roles/server_role.h"
#include "cli/roles/up_dashboard.h"
#include "cli/roles/up_descheduler.h"
#include "cli/roles/up_queues.h"
#include "node/simulated/simulated_nodes.h"

namespace berth::cli {
namespace {

using node::simulated::SimulatedNodes;
using node::simulated::SimulatedNodesOptions;

/// Of one start alone; every other flag holds for the next start of the same data, unless it says something else.
const std::set<std::string> kOfOneStart = {"--data-dir", "--validate", "--unsafe-no-sync"};

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

/// What does not concern the server alone.
struct UpPlan {
  ServerPlan server;
  controllers::ManagerOptions controllers_options;
  scheduler::config::SchedulerConfig scheduler_config;
  std::optional<client::LeaderElectionConfig> scheduler_election;
  std::unique_ptr<UpDescheduler> descheduler;
  Duration scan_interval{};
  std::optional<pools::Catalogue> instance_types;
};

/// The scheduler leads as any other: one that comes beside it (the documents' second scheduler, 002 §16.4) waits for its Lease instead of
/// placing the same pods. The data directory stands for the candidate, so that the next start does not wait for the Lease of the last one,
/// however that ended.
std::optional<client::LeaderElectionConfig> scheduler_election(const scheduler::config::SchedulerConfig& config,
                                                               const std::string& data_dir, Findings& findings) {
  auto out = election_of(config, fmt::format("{}_{}", host_name(), data_dir), findings);
  if (!out || config.leader_election.times != client::kOwnTimes) return out;
  // Nobody stands by in haste for a process that has the server in it: it renews no more often than kube-scheduler.
  out->lease_duration = client::kKubernetesTimes.lease_duration;
  out->renew_deadline = client::kKubernetesTimes.renew_deadline;
  out->retry_period = client::kKubernetesTimes.retry_period;
  return out;
}

struct UpFlags {
  ServerFlags server;
  SchedulerFlags scheduler;
  ControllersFlags controllers;
  SimulatedNodesOptions nodes;
  RealNodeFlags real;
  std::string scenario, devices, descheduler_policy, descheduling_interval = "5m", scan_interval = "10s", instance_types;
  std::string scheduler_port = "auto", controllers_port = "auto", autoscaler_port = "auto", queues_port = "auto", dashboard_port = "auto";
  bool queues = false, fair_sharing = false, node_pools = false;

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
      ->check(CLI::Range(0, node::simulated::kMostNodes));
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
  app.add_flag("--queues", queues, "Run queues too: Kueue's kinds, and Jobs and pods that wait for quota (docs/queues.md)");
  app.add_flag("--queues-fair-sharing", fair_sharing, "With --queues: shares by weight, not quotas alone");
  app.add_option("--queues-secure-port", queues_port,
                 "With --queues: the HTTPS port of their /metrics; auto: 8443 or any free one; 0: none")
      ->capture_default_str();
  app.add_option("--autoscaler-secure-port", autoscaler_port, "The same of the cluster autoscaler; auto: 8085 or any free one; 0: none")
      ->capture_default_str();
  app.add_option("--dashboard-port", dashboard_port, "Port of the dashboard on 127.0.0.1; auto: 6480 or any free one; 0: no dashboard")
      ->capture_default_str();
  app.add_option("--scan-interval", scan_interval, "How often the cluster autoscaler looks, where a ClusterAutoscaler named default is")
      ->capture_default_str();
  app.add_option("--instance-types", instance_types,
                 "Simulated nodes come for NodePools (karpenter.sh) as pods want them: the file of what can be had, with prices "
                 "(docs/node-pools.md)");
  app.add_flag("--node-pools", node_pools, "NodePools without such a file: they buy machines of MachineSets alone (MachineNodeClass)");
}

UpPlan UpFlags::plan(Findings& findings) {
  UpPlan out;
  real.compatibility = server.compatibility = scheduler.compatibility;
  out.server = server.plan(findings);
  const apiserver::MasterConfig& master = out.server.master_config;
  // One that comes beside them waits for their Lease, as beside the scheduler.
  out.controllers_options =
      controllers.options(master.controller_arguments, {.features = out.server.features, .leader_elect = true}, findings);
  out.controllers_options.identity = fmt::format("{}_{}", host_name(), out.server.data_dir);
  if (out.controllers_options.election == client::kOwnTimes) out.controllers_options.election = client::kKubernetesTimes;
  out.controllers_options.simulated_machines = out.controllers_options.stands_again = true;
  if (auto config = findings.take(scheduler.config(master, server.master_config))) {
    findings.notes(config->notes);
    out.scheduler_config = std::move(*config);
    out.scheduler_election = scheduler_election(out.scheduler_config, out.server.data_dir, findings);
  }
  read_scenario(scenario, nodes, findings);
  scheduler.compatibility.apply(nodes.fleet.kubelet);
  read_devices(devices, nodes.node_template, findings);
  const auto scan = parse_go_duration(scan_interval);
  if (!scan || *scan < std::chrono::milliseconds(100))
    findings.error(fmt::format("--scan-interval: \"{}\" is not a duration of at least 100ms", scan_interval));
  out.scan_interval = scan.value_or(Duration::zero());
  if (!instance_types.empty()) out.instance_types = findings.take(pools::Catalogue::load(instance_types));
  if (node_pools && !out.instance_types) out.instance_types.emplace();
  for (const auto& [flag, port] :
       {std::pair("--scheduler-secure-port", scheduler_port), std::pair("--controllers-secure-port", controllers_port),
        std::pair("--autoscaler-secure-port", autoscaler_port), std::pair("--queues-secure-port", queues_port),
        std::pair("--dashboard-port", dashboard_port)})
    findings.take(check_component_port(flag, port));
  if (!real.config.empty() || !real.kubelet_arguments.empty())
    if (const auto settings = findings.take(read_kubelet_settings(real.config, real.kubelet_arguments))) {
      findings.notes(settings->warnings);
      if (real.mode == "off") findings.note("--node-config and --kubelet-arg have no effect with --real-node off");
    }
  if (fair_sharing && !queues) findings.note("--queues-fair-sharing has no effect without --queues");
  if (!descheduler_policy.empty())
    out.descheduler = UpDescheduler::plan(descheduler_policy, descheduling_interval, out.scheduler_config, findings);
  return out;
}

/// What the nodes of this start are: `berth up` takes this machine where it can, unless simulated nodes are asked for.
struct NodesChoice {
  RealNodeMode mode = RealNodeMode::kAuto;
  std::string no_real_node;  ///< Why there is none; empty where nobody asked, or where there is one.
  [[nodiscard]] bool has_real_node() const { return mode != RealNodeMode::kOff && no_real_node.empty(); }
};

Result<NodesChoice> choose_nodes(const RealNodeFlags& real, bool nodes_given, SimulatedNodesOptions& nodes) {
  NodesChoice out;
  out.mode = real.mode == "on" ? RealNodeMode::kOn : real.mode == "off" || nodes_given ? RealNodeMode::kOff : RealNodeMode::kAuto;
  if (out.mode != RealNodeMode::kOff) out.no_real_node = RealNode::missing(real, out.mode);
  if (out.mode == RealNodeMode::kOn && !out.no_real_node.empty())
    return fail(ErrorCode::kUnavailable, "--real-node on: " + out.no_real_node);
  // Machines report each by itself: of very many, more reports are under way at once.
  nodes.max_writes_in_flight = std::clamp(nodes.nodes / 50, nodes.max_writes_in_flight, 2048);
  if (!out.has_real_node()) return out;
  if (!nodes_given) nodes.nodes = 0;
  nodes.node_template.taints.push_back(simulated_taint());
  return out;
}

/// The roles of the cluster in this process. They start in the order of the functions and end in the opposite order, that of the members:
/// each goes before the server that its transport leads to, and its port before it.
class UpCluster {
 public:
  UpCluster(UpFlags& flags, UpPlan& plan, NodesChoice choice) : flags_(flags), plan_(plan), choice_(std::move(choice)) {}
  ~UpCluster() {
    relief_->set({});
    placement_pages_->set({});
  }

  Result<void> start_server(const RememberedFlags& remembered);
  void start_simulated_nodes();
  void start_controllers();
  Result<void> start_scheduler();
  /// The ports of controllers and scheduler, the descheduler where there is a policy for it, the autoscaler and its port, queues where they
  /// are wanted.
  Result<void> start_around_them();
  Result<void> start_real_node();
  /// Last: it asks the server and the scheduler.
  void start_dashboard();

  [[nodiscard]] std::string nodes_shown() const;
  [[nodiscard]] ServerRole& server() const { return *server_; }
  void log_ports() const;
  [[nodiscard]] bool has_real_node() const { return real_node_ != nullptr; }

 private:
  using Port = std::unique_ptr<client::ComponentServer>;
  [[nodiscard]] std::shared_ptr<client::Transport> as(const std::string& user) { return server_->in_process(user, {"system:masters"}); }
  Result<void> serve(Port& port, const char* flag, const std::string& wanted, std::uint16_t usual, client::ComponentServerOptions options);

  UpFlags& flags_;
  UpPlan& plan_;
  const NodesChoice choice_;
  /// What the server calls when memory gets tight: the roles that have something to give up begin after it and end before it.
  class Relief {
   public:
    void set(std::function<void()> call) {
      const MutexLock lock(mutex_);
      call_ = std::move(call);
    }
    void operator()() {
      const MutexLock lock(mutex_);
      if (call_) call_();
    }

   private:
    Mutex mutex_;
    std::function<void()> call_ BERTH_GUARDED_BY(mutex_);
  };
  std::shared_ptr<Relief> relief_ = std::make_shared<Relief>();
  std::shared_ptr<PlacementPages> placement_pages_ = std::make_shared<PlacementPages>();
  std::unique_ptr<ServerRole> server_;
  std::unique_ptr<NodesRole> nodes_;
  std::unique_ptr<ControllersRole> controllers_;
  std::unique_ptr<SchedulerRole> scheduler_;
  Port scheduler_port_, controllers_port_;
  std::unique_ptr<UpDescheduler> descheduler_;
  std::unique_ptr<AutoscalerRole> autoscaler_;
  Port autoscaler_port_;
  std::unique_ptr<UpQueues> queues_;
  Port queues_port_;
  std::unique_ptr<RealNode> real_node_;
  std::shared_ptr<void> dashboard_;
  std::shared_ptr<SimulatedNodes::Backend> backend_ = std::make_shared<SimulatedNodes::Backend>();
};

Result<void> UpCluster::start_server(const RememberedFlags& remembered) {
  plan_.server.on_memory_tight = [relief = relief_] { (*relief)(); };
  plan_.server.placement_pages = placement_pages_;
  // Nodes answer the server's kubelet requests (logs), but start after it: the backend is filled in when they do.
  auto started = ServerRole::start(
      flags_.server, plan_.server,
      [backend = backend_](const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
        return *backend && (*backend)(node, request, writer);
      });
  if (!started) return std::unexpected(started.error());
  server_ = std::move(*started);
  return remembered.save();
}

void UpCluster::start_simulated_nodes() {
  taint_simulated_nodes(as("system:berth:nodes"), choice_.has_real_node());
  SimulatedNodesOptions& nodes = flags_.nodes;
  nodes.programs = make_pod_programs({.transport = as("system:berth:nodes"),
                                      .server = {.server = server_->url(), .ca_pem = server_->ca_pem()},
                                      .directory = server_->data_dir() + "/programs"});
  nodes.tracer = server_->tracer();
  nodes_ = std::make_unique<NodesRole>(as("system:berth:nodes"), nodes, backend_);
  nodes.programs.reset();  // The role has it; it must go before the server that its transport leads to.
}

void UpCluster::start_controllers() {
  plan_.controllers_options.root_ca_pem = server_->ca_pem();
  auto& signing = plan_.controllers_options.signing;
  if (signing.certificate_file.empty()) {
    signing.certificate_file = server_->data_dir() + "/pki/ca.crt";
    signing.key_file = server_->data_dir() + "/pki/ca.key";
  }
  signing.authority = authority_from_files(signing.certificate_file, signing.key_file);
  plan_.controllers_options.election_transport = as("system:kube-controller-manager");
  controllers_ = std::make_unique<ControllersRole>(as("system:kube-controller-manager"), plan_.controllers_options);
}

Result<void> UpCluster::start_scheduler() {
  auto options = flags_.scheduler.options(plan_.scheduler_config);
  options.tracer = server_->tracer();
  scheduler_ = std::make_unique<SchedulerRole>(as("system:kube-scheduler"), std::move(options), plan_.scheduler_election,
                                               as("system:kube-scheduler"));
  scheduler_->publish(published_of(plan_.scheduler_config, flags_.scheduler.hard_budgets));
  relief_->set([this] { scheduler_->forget(); });
  placement_pages_->set(scheduler_->answers());
  return scheduler_->start();
}

Result<void> UpCluster::serve(Port& port, const char* flag, const std::string& wanted, std::uint16_t usual,
                              client::ComponentServerOptions options) {
  options.address = server_->host();
  options.tls = server_->tls();
  auto served = serve_component_of_up(flag, wanted, usual, std::move(options));
  if (!served) return std::unexpected(served.error());
  port = std::move(*served);
  return {};
}

Result<void> UpCluster::start_around_them() {
  if (auto served =
          serve(scheduler_port_, "--scheduler-secure-port", flags_.scheduler_port, 10259, scheduler_->port_options(plan_.scheduler_config));
      !served)
    return served;
  if (auto served = serve(controllers_port_, "--controllers-secure-port", flags_.controllers_port, 10257, controllers_->port_options());
      !served)
    return served;
  descheduler_ = std::move(plan_.descheduler);
  if (descheduler_) descheduler_->start(as("system:descheduler"));
  auto profiles = placement::Profiles::create(plan_.scheduler_config.profiles);
  if (!profiles) return std::unexpected(profiles.error());
  profiles->set_otherwise(profiles->find(plan_.scheduler_config.profiles.front().scheduler_name));
  autoscaler_ = std::make_unique<AutoscalerRole>(as("system:serviceaccount:openshift-machine-api:cluster-autoscaler"),
                                                 autoscaler::RunnerOptions{.profiles = *profiles, .scan_interval = plan_.scan_interval},
                                                 std::move(plan_.instance_types));
  if (auto served = serve(autoscaler_port_, "--autoscaler-secure-port", flags_.autoscaler_port, 8085, autoscaler_->port_options()); !served)
    return served;
  if (!flags_.queues) return {};
  queues_ = std::make_unique<UpQueues>(as("system:serviceaccount:kueue-system:kueue-controller-manager"), flags_.fair_sharing);
  return serve(queues_port_, "--queues-secure-port", flags_.queues_port, 8443, queues_->port_options());
}

Result<void> UpCluster::start_real_node() {
  if (!choice_.has_real_node()) return {};
  const RealNodeFlags& real = flags_.real;
  auto started =
      RealNode::start(real, choice_.mode,
                      {server_->data_dir(), server_->ca_pem(), server_->in_process("system:node:" + real_node_name(real), {"system:nodes"}),
                       as("system:berth:network"), server_->tracer()});
  if (!started) return std::unexpected(started.error());
  real_node_ = std::move(*started);
  server_->api().trust_node(real_node_->name(), real_node_->serving_ca_pem());
  return {};
}

void UpCluster::start_dashboard() {
  dashboard_ =
      start_dashboard_of_up(flags_.dashboard_port, server_->kubeconfig_path(), scheduler_->port_options(plan_.scheduler_config).metrics);
}

std::string UpCluster::nodes_shown() const {
  const std::string simulated = fmt::format("{} simulated nodes in {} zones", flags_.nodes.nodes, flags_.nodes.zones);
  if (!real_node_) return simulated;
  return fmt::format("real node {} (containers by {}){}", real_node_->name(), real_node_->runtime(),
                     flags_.nodes.nodes > 0 ? fmt::format(", {} beside it", simulated) : "");
}

void UpCluster::log_ports() const {
  for (const auto& [name, port] : {std::pair("scheduler", scheduler_port_.get()), std::pair("controllers", controllers_port_.get()),
                                   std::pair("autoscaler", autoscaler_port_.get()), std::pair("queues", queues_port_.get())})
    if (port != nullptr)
      log::info("up", "{}: /metrics, /healthz and /configz on https://{}:{}", name, url_host(server_->host()), port->port());
}

/// What another terminal is to be told: where the cluster is and, where no `berth` is found by its name, where this program is.
void tell_environment(const std::string& kubeconfig) {
  const std::string directory = directory_to_add_to_path();
  if (!directory.empty()) std::printf("export PATH=%s:$PATH\n", shell_word(directory).c_str());
  std::printf("export KUBECONFIG=%s\n", shell_word(kubeconfig).c_str());
  std::fflush(stdout);
}

/// Until a signal comes. The first role that cannot start ends those before it.
Result<void> run_cluster(UpCluster& cluster, const RememberedFlags& remembered, const std::string& no_real_node) {
  if (auto started = cluster.start_server(remembered); !started) return started;
  cluster.start_simulated_nodes();
  cluster.start_controllers();
  if (auto started = cluster.start_scheduler(); !started) return started;
  if (auto started = cluster.start_around_them(); !started) return started;
  if (auto started = cluster.start_real_node(); !started) return started;
  const ServerRole& server = cluster.server();
  std::printf("berth is up: %s, API server on %s\n", cluster.nodes_shown().c_str(), server.url().c_str());
  for (const std::string& note : remembered.notes()) std::printf("%s\n", note.c_str());
  cluster.start_dashboard();
  if (!no_real_node.empty()) std::printf("no real node: %s\n", no_real_node.c_str());
  tell_environment(server.kubeconfig_path());
  cluster.log_ports();
  wait_for_signal();
  if (cluster.has_real_node()) log::info("up", "containers of the real node run on; the next start takes them over");
  log::info("up", "stopping; everything is kept in {}", server.data_dir());
  return {};
}

/// The arguments with the Configuration of the last start, where they name none.
std::vector<std::string> with_last_configuration(std::vector<std::string> args, std::string data_dir) {
  if (names_configuration(args)) return args;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--data-dir" && i + 1 < args.size()) data_dir = args[i + 1];
    if (args[i].starts_with("--data-dir=")) data_dir = args[i].substr(args[i].find('=') + 1);
  }
  if (const std::string file = RememberedFlags::last_configuration(data_dir); !file.empty()) args.insert(args.begin(), "--config=" + file);
  return args;
}

Result<RememberedFlags> recall(CLI::App& app, const std::string& data_dir) {
  std::set<std::string> left_out = configured_flags();
  left_out.insert(kOfOneStart.begin(), kOfOneStart.end());
  return RememberedFlags::recall(app, data_dir, left_out, configuration_file());
}

}  // namespace

int run_up(const std::vector<std::string>& args) {
  CLI::App app(
      "A whole cluster in one process: API server, scheduler, controllers, and nodes: this machine with real containers, or simulated "
      "ones. Ctrl-C stops it; the next start with the same --data-dir has everything as it was: objects and flags (an empty value, "
      "such as --master-config \"\", forgets a flag)",
      "berth up");
  UpFlags flags;
  flags.add_to(app);
  const std::vector<std::string> all = with_last_configuration(args, flags.server.data_dir);
  if (const auto code = parse_args(app, all)) {
    if (*code != 0 && all.size() > args.size())
      std::fprintf(stderr, "note: %s is that of the last start; --config \"\" starts without it\n", all.front().c_str());
    return *code;
  }
  const auto remembered = recall(app, flags.server.data_dir);
  if (!remembered) return report(remembered.error());
  Findings findings;
  UpPlan plan = flags.plan(findings);
  if (!findings.ok())
    for (const std::string& note : remembered->notes()) std::fprintf(stderr, "%s\n", note.c_str());
  if (flags.server.validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("up")) return 1;
  block_signals();
  raise_file_limit();
  const auto choice = choose_nodes(flags.real, app.count("--nodes") > 0, flags.nodes);
  if (!choice) return report(choice.error());
  UpCluster cluster(flags, plan, *choice);
  const auto ran = run_cluster(cluster, *remembered, choice->no_real_node);
  return ran ? 0 : report(ran.error());
}

}  // namespace berth::cli
