// The descheduler within `berth up`, by the scheduler's own profiles. Its own header, so that up.cpp does without the descheduler's.
#pragma once
#include <memory>
#include <string>

#include "cli/command/findings.h"
#include "client/transport.h"
#include "scheduler/config/config.h"

namespace berth::cli {

class UpDescheduler {
 public:
  ~UpDescheduler();
  /// Reads the policy; what is wrong is in the findings. Null then.
  static std::unique_ptr<UpDescheduler> plan(const std::string& policy_file, const std::string& interval,
                                             const scheduler::config::SchedulerConfig& scheduler, Findings& findings);
  /// Runs from now on, until it is destroyed. Once.
  void start(std::shared_ptr<client::Transport> transport);

 private:
  struct Impl;
  explicit UpDescheduler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::cli
