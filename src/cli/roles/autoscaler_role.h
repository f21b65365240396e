// The cluster autoscaler on a loop of its own.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "autoscaler/runner.h"
#include "cli/roles/component_port.h"
#include "pools/catalogue.h"

namespace berth::pools {
class Runner;
}

namespace berth::cli {

/// Owns its thread.
class AutoscalerRole {
 public:
  /// `instance_types`: nodes of NodePools, too (docs/node-pools.md).
  AutoscalerRole(std::shared_ptr<client::Transport> transport, autoscaler::RunnerOptions options,
                 std::optional<pools::Catalogue> instance_types = std::nullopt);
  ~AutoscalerRole();
  /// What the role's own port shows. The server made of it must go before the role.
  [[nodiscard]] client::ComponentServerOptions port_options();

 private:
  ThreadLoop& loop_;
  client::Client client_;
  std::shared_ptr<metrics::Registry> metrics_ = std::make_shared<metrics::Registry>();
  std::unique_ptr<autoscaler::Runner> runner_;
  std::unique_ptr<pools::Runner> pools_;
};

}  // namespace berth::cli
