// The cluster autoscaler on a loop of its own.
#pragma once
#include <memory>
#include <string>

#include "autoscaler/runner.h"
#include "cli/component_port.h"

namespace berth::cli {

/// Owns its thread.
class AutoscalerRole {
 public:
  AutoscalerRole(std::shared_ptr<client::Transport> transport, autoscaler::RunnerOptions options);
  ~AutoscalerRole();
  /// What the role's own port shows. The server made of it must go before the role.
  [[nodiscard]] client::ComponentServerOptions port_options();

 private:
  ThreadLoop& loop_;
  client::Client client_;
  std::shared_ptr<metrics::Registry> metrics_ = std::make_shared<metrics::Registry>();
  std::unique_ptr<autoscaler::Runner> runner_;
};

}  // namespace berth::cli
