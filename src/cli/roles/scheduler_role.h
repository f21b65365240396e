// The scheduler on a loop of its own.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "apiserver/admission/config.h"
#include "cli/command/compatibility.h"
#include "cli/planning/scheduler_configuration.h"
#include "cli/roles/component_port.h"
#include "client/leader_election.h"
#include "client/leadership.h"
#include "scheduler/config/config.h"
#include "scheduler/scheduler.h"

namespace CLI {
class App;
}

namespace berth::cli {

class Findings;
struct PlacementQuestion;

struct SchedulerFlags {
  std::string scheduler_name;  ///< Empty: as the configuration says.
  std::uint64_t seed = 0;
  std::string columns_memory = "512Mi";
  std::string config_file, policy_file;
  Compatibility compatibility;
  /// What the word changes, for --help.
  std::string compatibility_acts_on = "The scheduler's formulas and words, whatever release its configuration's version means";
  bool hard_budgets = false;
  bool gangs_as_kubernetes = false;
  std::string gang_reservation_after = "5m", gang_reservation_for = "30m";
  void add_to(CLI::App& app);
  /// What the flags, the file they name and the master configuration say; the flags win. Errors name file, line and field.
  [[nodiscard]] Result<scheduler::config::SchedulerConfig> config(const apiserver::MasterConfig& master = {},
                                                                  const std::string& master_config_file = {}) const;
  [[nodiscard]] scheduler::SchedulerOptions options(const scheduler::config::SchedulerConfig& config) const;
};

/// How the configuration has its scheduler lead; nothing where it wants no election. `identity`: unique among the candidates. A setting
/// that is impossible is a finding.
std::optional<client::LeaderElectionConfig> election_of(const scheduler::config::SchedulerConfig& config, std::string identity,
                                                        Findings& findings);

/// Owns its thread. The destructor gives the leadership up and stops.
class SchedulerRole {
 public:
  /// `election` absent: no leader election.
  SchedulerRole(std::shared_ptr<client::Transport> transport, scheduler::SchedulerOptions options,
                std::optional<client::LeaderElectionConfig> election = std::nullopt,
                std::shared_ptr<client::Transport> election_transport = nullptr);
  ~SchedulerRole();
  /// What it publishes of its configuration whenever it begins to lead; before start.
  void publish(std::vector<Published> published) { published_ = std::move(published); }
  Result<void> start();
  /// Memory is short. Any thread, before the role ends.
  void forget() {
    loop_.post([this] {
      if (scheduler_) scheduler_->forget();
    });
  }
  /// Answers by the cluster and the profiles that pods are placed by, on a thread of its own; `done` comes from any. An error where that
  /// cannot be: 404 for pods of other schedulers and groups that are not known, 429 while many ask, 503 before the cluster is. Any thread.
  using Told = std::function<void(model::ApiResult<std::string>)>;
  void explain(PlacementQuestion question, Told done);
  /// The same as a function, good as long as the role.
  [[nodiscard]] std::function<void(PlacementQuestion, Told)> answers();
  /// What the role's own port shows: metrics, configuration, checks. The server made of it must go before the role.
  [[nodiscard]] client::ComponentServerOptions port_options(const scheduler::config::SchedulerConfig& config);

 private:
  Result<void> start_on_loop();
  /// Why this scheduler cannot say all about it now; on the loop.
  [[nodiscard]] std::optional<model::ApiStatus> refusal_of(const PlacementQuestion& question) const;
  /// On the loop. A leader publishes the configuration it decides by.
  void lead(bool is_leader);
  std::unique_ptr<client::Leadership> seek_leadership(const client::LeaderElectionConfig& election,
                                                      std::shared_ptr<client::Transport> transport);
  ThreadLoop& loop_;
  std::shared_ptr<client::Transport> transport_;
  scheduler::SchedulerOptions options_;
  std::vector<Published> published_;
  std::shared_ptr<metrics::Registry> metrics_;
  std::unique_ptr<client::Leadership> leadership_;  ///< Null: nobody competes.
  client::Client client_;
  std::unique_ptr<client::InformerFactory> informers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::size_t asked_ = 0;  ///< Questions under way. On the loop.
};

}  // namespace berth::cli
