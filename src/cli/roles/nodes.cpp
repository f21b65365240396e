#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <future>

#include "base/event_loop.h"
#include "cli/command/compatibility.h"
#include "cli/command/findings.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/command/tracing_flags.h"
#include "cli/nodes/pod_programs.h"
#include "cli/nodes/scenario_flag.h"
#include "cli/roles/roles.h"
#include "client/kubeconfig.h"
#include "client/traced_transport.h"
#include "model/quantity.h"
#include "node/simulated/simulated_nodes.h"

namespace berth::cli {
namespace {

using node::simulated::FleetOptions;
using node::simulated::SimulatedNodes;
using node::simulated::SimulatedNodesOptions;

const CLI::Range kNodeCount(0, node::simulated::kMostNodes);

struct NodesFlags {
  std::string cpu = "32", memory = "256Gi", pods = "110";
  std::string start_delay = "0s", stop_delay = "200ms", lease_period, status_period, events = "warnings";
  std::string scenario, devices;
  std::vector<std::string> labels;
  Compatibility compatibility;
};

void apply(const NodesFlags& flags, SimulatedNodesOptions& options, Findings& findings) {
  for (const auto& [name, text] : {std::pair("cpu", flags.cpu), std::pair("memory", flags.memory), std::pair("pods", flags.pods)}) {
    const auto quantity = model::Quantity::parse(text);
    if (!quantity || quantity->sign() < 0) findings.error(fmt::format("--{}: \"{}\" is not a quantity", name, text));
    options.node_template.capacity[name] = text;
  }
  Duration lease_period{}, status_period{};
  for (const auto& [name, text, least, out] :
       {std::tuple("start-delay", flags.start_delay, Duration::zero(), &options.fleet.start_delay),
        std::tuple("stop-delay", flags.stop_delay, Duration::zero(), &options.fleet.stop_delay),
        std::tuple("lease-period", flags.lease_period, Duration(std::chrono::seconds(1)), &lease_period),
        std::tuple("status-period", flags.status_period, Duration(std::chrono::seconds(1)), &status_period)}) {
    if (text.empty()) continue;
    const auto duration = parse_go_duration(text);
    if (!duration || *duration < least)
      findings.error(fmt::format("--{}: \"{}\" is not a duration of at least {}", name, text, format_go_duration(least)));
    else
      *out = *duration;
  }
  if (lease_period > Duration::zero()) options.fleet.lease_period = lease_period;
  if (status_period > Duration::zero()) options.fleet.status_period = status_period;
  for (const std::string& label : flags.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      findings.error(fmt::format("--label: \"{}\" is not KEY=VALUE", label));
    else
      options.node_template.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  read_scenario(flags.scenario, options, findings);
  flags.compatibility.apply(options.fleet.kubelet);
  read_devices(flags.devices, options.node_template, findings);
  options.fleet.events = flags.events == "none"       ? FleetOptions::Events::kNone
                         : flags.events == "warnings" ? FleetOptions::Events::kWarnings
                                                      : FleetOptions::Events::kAll;
}

/// The way to the server, whose requests are traced where that is wanted.
Result<std::shared_ptr<client::Transport>> connect(const client::Connection& known, const net::tracing::TracerOptions* traced,
                                                   SimulatedNodesOptions& options) {
  auto transport = client::transport_for(known);
  if (!transport || traced == nullptr) return transport;
  auto tracer = net::tracing::Tracer::start(*traced);
  if (!tracer) return std::unexpected(tracer.error());
  options.tracer = *tracer;
  return client::with_tracing(*transport, *tracer);
}

}  // namespace

int run_nodes(const std::vector<std::string>& args) {
  CLI::App app{
      "Simulated nodes, thousands in one process, for any Kubernetes-compatible API server.\n"
      "Pods' behaviour is set by annotations sim.berth.dev/… (docs/simulated-nodes.md).",
      "berth nodes"};
  ConnectionFlags connection;
  connection.add_to(app);
  SimulatedNodesOptions options;
  NodesFlags flags;
  app.add_option("--nodes", options.nodes, "how many nodes there must be at least")->capture_default_str()->check(kNodeCount);
  app.add_option("--prefix", options.prefix, "node names are PREFIX1, PREFIX2, …")->capture_default_str();
  app.add_option("--fleet", options.fleet.name, "plays the nodes annotated sim.berth.dev/fleet=NAME")->capture_default_str();
  app.add_option("--zones", options.zones, "zones, taken in turn")->capture_default_str()->check(CLI::Range(1, 10'000));
  app.add_option("--region", options.region, "region of all nodes")->capture_default_str();
  app.add_option("--cpu", flags.cpu, "cores of a node")->capture_default_str();
  app.add_option("--memory", flags.memory, "memory of a node")->capture_default_str();
  app.add_option("--pods", flags.pods, "pods that a node takes")->capture_default_str();
  app.add_option("--label", flags.labels, "KEY=VALUE for every node; may be repeated");
  app.add_option("--start-delay", flags.start_delay, "how long a pod's containers take to start")->capture_default_str();
  app.add_option("--stop-delay", flags.stop_delay, "how long they take to stop")->capture_default_str();
  app.add_option("--lease-period", flags.lease_period, "between heartbeats; without it a quarter of nodeLeaseDurationSeconds");
  app.add_option("--status-period", flags.status_period, "between unchanged reports; without it nodeStatusReportFrequency");
  app.add_option("--events", flags.events, "none, warnings or all of the events that a kubelet would record")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "warnings", "all"}));
  bool validate_only = false;
  add_validate_flag(app, validate_only);
  app.add_option("--scenario", flags.scenario, kScenarioHelp);
  app.add_option("--devices", flags.devices, kDevicesHelp);
  flags.compatibility.add_to(app, kNodeCompatibility);
  TracingFlags tracing;
  tracing.add_to(app);
  app.add_option("--in-flight", options.max_writes_in_flight, "requests under way at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  if (const auto code = parse_args(app, args)) return *code;
  Findings findings;
  apply(flags, options, findings);
  check_connection(connection.kubeconfig, connection.context, findings);
  const auto traced = tracing.plan("berth-nodes", findings);
  if (validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("nodes")) return 1;
  block_signals();
  const auto known = client::load_kubeconfig(connection.kubeconfig, connection.context);
  if (!known) return report(known.error());
  const auto transport = connect(*known, traced.get(), options);
  if (!transport) return report(transport.error());
  // Programs check the server's certificate; without an authority to check it by there are none.
  if (!known->http.ca_pem.empty())
    options.programs =
        make_pod_programs({.transport = *transport,
                           .server = {.server = known->http.url, .ca_pem = known->http.ca_pem, .tls_server_name = known->http.server_name},
                           .directory = fmt::format("{}/berth-nodes-{}", std::filesystem::temp_directory_path().string(), getpid())});
  ThreadLoop loop("nodes");
  client::Client client(*transport, &loop, "berth-nodes");
  std::unique_ptr<SimulatedNodes> nodes;
  loop.post([&] {
    nodes = std::make_unique<SimulatedNodes>(client, options);
    nodes->start();
  });
  wait_for_signal();
  std::promise<void> done;
  loop.post([&] {
    nodes.reset();
    done.set_value();
  });
  done.get_future().wait();
  options.programs.reset();  // Ends them while the loop that hears of it is still there.
  return 0;
}

}  // namespace berth::cli
