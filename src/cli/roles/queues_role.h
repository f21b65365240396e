// Queues on a loop of their own.
#pragma once
#include <memory>
#include <string>

#include "cli/roles/component_port.h"
#include "queues/runner.h"

namespace berth::cli {

/// Owns its thread.
class QueuesRole {
 public:
  QueuesRole(std::shared_ptr<client::Transport> transport, queues::RunnerOptions options);
  ~QueuesRole();
  QueuesRole(const QueuesRole&) = delete;
  QueuesRole& operator=(const QueuesRole&) = delete;
  /// What the role's own port shows. The server made of it must go before the role.
  [[nodiscard]] client::ComponentServerOptions port_options();

 private:
  ThreadLoop& loop_;
  client::Client client_;
  std::shared_ptr<metrics::Registry> metrics_ = std::make_shared<metrics::Registry>();
  std::unique_ptr<queues::Runner> runner_;
};

}  // namespace berth::cli
