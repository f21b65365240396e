// The scheduler on a loop of its own.
#pragma once
#include <memory>
#include <string>

#include "client/leader_election.h"
#include "scheduler/scheduler.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct SchedulerFlags {
  std::string scheduler_name = "default-scheduler";
  std::uint64_t seed = 0;
  void add_to(CLI::App& app);
  [[nodiscard]] scheduler::SchedulerOptions options() const;
};

/// Owns its thread. The destructor gives the leadership up and stops.
class SchedulerRole {
 public:
  SchedulerRole(std::shared_ptr<client::Transport> transport, scheduler::SchedulerOptions options, bool leader_elect, std::string identity);
  ~SchedulerRole();
  Result<void> start();

 private:
  Result<void> start_on_loop();
  ThreadLoop loop_;
  client::Client client_;
  scheduler::SchedulerOptions options_;
  bool leader_elect_;
  std::string identity_;
  std::unique_ptr<client::InformerFactory> informers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<client::LeaderElector> elector_;
};

}  // namespace berth::cli
