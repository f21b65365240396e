// The controllers on a loop of their own.
#pragma once
#include <memory>
#include <string>

#include "cli/roles/component_port.h"
#include "controllers/manager.h"

namespace berth::cli {

struct ControllersFlags {
  std::vector<std::string> arguments;  ///< NAME=VALUE, kube-controller-manager's flags.
  void add_to(CLI::App& app);
  /// From master-config.yaml's controllerArguments, then the flags; what has no effect is a note.
  [[nodiscard]] controllers::ManagerOptions options(const config::Arguments& configured, controllers::ManagerOptions defaults,
                                                    Findings& findings) const;
};

/// Reads the two files at every question: an authority that is exchanged is in use at once.
controllers::AuthoritySource authority_from_files(std::string certificate_file, std::string key_file);
/// That --cluster-signing-cert-file and --cluster-signing-key-file go together and can be read.
void check_signing(controllers::SigningOptions& signing, Findings& findings);

/// Owns its thread. When the Lease is lost the process ends, or the controllers stand again (ManagerOptions::stands_again).
class ControllersRole {
 public:
  ControllersRole(std::shared_ptr<client::Transport> transport, controllers::ManagerOptions options);
  ~ControllersRole();
  /// What the role's own port shows. The server made of it must go before the role.
  [[nodiscard]] client::ComponentServerOptions port_options();

 private:
  void begin();
  void lost();
  ThreadLoop& loop_;
  std::shared_ptr<client::Transport> transport_;
  const controllers::ManagerOptions options_;
  json::Value config_;  ///< As /configz shows it.
  std::shared_ptr<metrics::Registry> metrics_ = std::make_shared<metrics::Registry>();
  std::unique_ptr<controllers::ControllerManager> manager_;  ///< On the loop, as what follows.
  bool is_ending_ = false;
};

}  // namespace berth::cli
