// berth up: a whole cluster in one process.
#include <cstdio>
#include <future>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/controllers_role.h"
#include "cli/parse.h"
#include "cli/process.h"
#include "cli/roles.h"
#include "cli/scheduler_role.h"
#include "cli/server_role.h"
#include "cli/session.h"
#include "node/simulated/simulated_nodes.h"

namespace berth::cli {
namespace {

using node::simulated::SimulatedNodes;
using node::simulated::SimulatedNodesOptions;

/// Simulated nodes on a loop of their own.
class NodesRole {
 public:
  NodesRole(std::shared_ptr<client::Transport> transport, const SimulatedNodesOptions& options, std::shared_ptr<SimulatedNodes::Backend> backend)
      : loop_("nodes"), client_(std::move(transport), &loop_, "berth-nodes") {
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
  ThreadLoop loop_;
  client::Client client_;
  std::unique_ptr<SimulatedNodes> nodes_;
};

}  // namespace

int run_up(const std::vector<std::string>& args) {
  CLI::App app("A whole cluster in one process: API server, scheduler, controllers and simulated nodes. Ctrl-C stops it; the next start with the same --data-dir has everything as it was", "berth up");
  ServerFlags server;
  server.add_to(app);
  SchedulerFlags scheduler;
  scheduler.add_to(app);
  ControllersFlags controllers;
  controllers.add_to(app);
  SimulatedNodesOptions nodes;
  nodes.nodes = 6;
  app.add_option("--nodes", nodes.nodes, "Simulated nodes there must be at least")->capture_default_str()->check(CLI::Range(0, 60'000));
  app.add_option("--zones", nodes.zones, "Zones of the simulated nodes, taken in turn")->capture_default_str()->check(CLI::Range(1, 10'000));
  if (const auto code = parse_args(app, args)) return *code;
  block_signals();
  raise_file_limit();

  // Nodes answer the server's kubelet requests (logs), but start after it: the backend is filled in when they do.
  auto backend = std::make_shared<SimulatedNodes::Backend>();
  auto api = ServerRole::start(server, [backend](const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
    return *backend && (*backend)(node, request, writer);
  });
  if (!api) return report(api.error());
  ServerRole& role = **api;
  NodesRole node_role(role.in_process("system:berth:nodes", {"system:masters"}), nodes, backend);
  auto options = controllers.options(role.ca_pem(), role.master_config().controller_arguments);
  if (!options) return report(options.error());
  ControllersRole controllers_role(role.in_process("system:kube-controller-manager", {"system:masters"}), *options);
  auto scheduler_config = scheduler.config(role.master_config().scheduler_config_file);
  if (!scheduler_config) return report(scheduler_config.error());
  SchedulerRole scheduler_role(role.in_process("system:kube-scheduler", {"system:masters"}), scheduler.options(*scheduler_config), false, "berth-up");
  if (auto started = scheduler_role.start(); !started) return report(started.error());
  std::printf("berth is up: %d simulated nodes in %d zones, API server on %s\nexport KUBECONFIG=%s\n", nodes.nodes, nodes.zones, role.url().c_str(), role.kubeconfig_path().c_str());
  std::fflush(stdout);
  wait_for_signal();
  log::info("up", "stopping; everything is kept in {}", role.data_dir());
  return 0;
}

}  // namespace berth::cli
