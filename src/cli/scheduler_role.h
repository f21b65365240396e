// The scheduler on a loop of its own.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "cli/component_port.h"
#include "client/leadership.h"
#include "scheduler/config/config.h"
#include "scheduler/scheduler.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct SchedulerFlags {
  std::string scheduler_name = "default-scheduler";
  std::uint64_t seed = 0;
  std::string columns_memory = "512Mi";
  std::string config_file, policy_file, compatibility;
  bool hard_budgets = false;
  void add_to(CLI::App& app);
  /// What the flags and the file they name say; `default_policy_file` is used when no file is named (master-config.yaml's
  /// schedulerConfigFile). Errors name file, line and field.
  [[nodiscard]] Result<scheduler::config::SchedulerConfig> config(const std::string& default_policy_file = {}) const;
  [[nodiscard]] scheduler::SchedulerOptions options(const scheduler::config::SchedulerConfig& config) const;
};

/// Owns its thread. The destructor gives the leadership up and stops.
class SchedulerRole {
 public:
  /// `election` absent: no leader election.
  SchedulerRole(std::shared_ptr<client::Transport> transport, scheduler::SchedulerOptions options,
                std::optional<client::LeaderElectionConfig> election = std::nullopt);
  ~SchedulerRole();
  Result<void> start();
  /// What the role's own port shows: metrics, configuration, checks. The server made of it must go before the role.
  [[nodiscard]] client::ComponentServerOptions port_options(const scheduler::config::SchedulerConfig& config);

 private:
  Result<void> start_on_loop();
  std::unique_ptr<client::Leadership> seek_leadership(const client::LeaderElectionConfig& election);
  ThreadLoop& loop_;
  std::shared_ptr<client::Transport> transport_;
  scheduler::SchedulerOptions options_;
  std::shared_ptr<metrics::Registry> metrics_;
  std::unique_ptr<client::Leadership> leadership_;  ///< Null: nobody competes.
  client::Client client_;
  std::unique_ptr<client::InformerFactory> informers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
};

}  // namespace berth::cli
