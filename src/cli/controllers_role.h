// The controllers on a loop of their own.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/leader_election.h"
#include "controllers/manager.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct ControllersFlags {
  std::vector<std::string> arguments;  ///< NAME=VALUE, kube-controller-manager's flags.
  void add_to(CLI::App& app);
  /// From master-config.yaml's controllerArguments, then the flags. The error names the argument.
  [[nodiscard]] Result<controllers::ManagerOptions> options(std::string root_ca_pem, std::map<std::string, std::vector<std::string>> configured) const;
};

/// Owns its thread.
class ControllersRole {
 public:
  ControllersRole(std::shared_ptr<client::Transport> transport, controllers::ManagerOptions options, bool leader_elect);
  ~ControllersRole();
  void start();

 private:
  ThreadLoop loop_;
  client::Client client_;
  controllers::ManagerOptions options_;
  bool leader_elect_;
  std::unique_ptr<controllers::Manager> manager_;
  std::unique_ptr<client::LeaderElector> elector_;
};

}  // namespace berth::cli
