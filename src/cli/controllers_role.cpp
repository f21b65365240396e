#include "cli/controllers_role.h"

#include <unistd.h>

#include <future>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/parse.h"
#include "cli/process.h"
#include "cli/roles.h"
#include "cli/session.h"
#include "client/kubeconfig.h"

namespace berth::cli {

void ControllersFlags::add_to(CLI::App& app) {
  app.add_option("--controller-arg", arguments, "NAME=VALUE as kube-controller-manager's flags, e.g. node-monitor-grace-period=20s; may be repeated");
}

Result<controllers::ManagerOptions> ControllersFlags::options(std::string root_ca_pem, std::map<std::string, std::vector<std::string>> configured) const {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) return invalid(fmt::format("--controller-arg: \"{}\" is not NAME=VALUE", argument));
    configured[argument.substr(0, equals)] = {argument.substr(equals + 1)};
  }
  controllers::ManagerOptions out;
  out.root_ca_pem = std::move(root_ca_pem);
  if (auto applied = controllers::apply_arguments(configured, out); !applied) return std::unexpected(applied.error());
  return out;
}

ControllersRole::ControllersRole(std::shared_ptr<client::Transport> transport, controllers::ManagerOptions options, bool leader_elect)
    : loop_("controllers"), client_(std::move(transport), &loop_, "berth-controllers"), options_(std::move(options)), leader_elect_(leader_elect) {}

void ControllersRole::start() {
  loop_.post([this] {
    const auto run = [this] {
      manager_ = std::make_unique<controllers::Manager>(client_, options_);
      manager_->start();
    };
    if (!leader_elect_) return run();
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    client::LeaderElectionConfig election;
    election.name = "kube-controller-manager";
    election.identity = fmt::format("{}_{}", host, getpid());
    elector_ = std::make_unique<client::LeaderElector>(client_, election,
                                                       client::LeaderCallbacks{run,
                                                                               [this] {
                                                                                 log::warning("controllers", "leadership lost");
                                                                                 manager_.reset();
                                                                                 elector_->start();
                                                                               },
                                                                               [](const std::string& leader) { log::info("controllers", "the leader is {}", leader); }});
    elector_->start();
  });
}

ControllersRole::~ControllersRole() {
  std::promise<void> gone;
  loop_.post([&] {
    elector_.reset();
    manager_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

int run_controllers(const std::vector<std::string>& args) {
  CLI::App app("The controllers: workloads, node life cycle, taint eviction, garbage collection", "berth controllers");
  ConnectionFlags connection;
  connection.add_to(app);
  ControllersFlags flags;
  flags.add_to(app);
  bool leader_elect = true;
  app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several works at a time (default true)");
  if (const auto code = parse_args(app, args)) return *code;
  block_signals();
  auto config = client::load_kubeconfig(connection.kubeconfig, connection.context);
  if (!config) return report(config.error());
  auto transport = client::transport_for(*config);
  if (!transport) return report(transport.error());
  auto options = flags.options(config->http.ca_pem, {});
  if (!options) return report(options.error());
  ControllersRole role(*transport, *options, leader_elect);
  role.start();
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
