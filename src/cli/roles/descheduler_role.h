// The descheduler on a thread of its own, cycle after cycle.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "cli/roles/component_port.h"
#include "client/leadership.h"
#include "descheduler/descheduler.h"

namespace berth::cli {

/// Owns its thread, and one for the election. The destructor gives the leadership up and waits for the running cycle.
class DeschedulerRole {
 public:
  /// A cycle every `interval`, the first at once. `election` absent: no leader election. A leadership that is lost ends the process, as it
  /// ends the real descheduler's.
  DeschedulerRole(std::shared_ptr<client::Transport> transport, descheduler::DeschedulerOptions options, Duration interval,
                  std::optional<client::LeaderElectionConfig> election = std::nullopt);
  ~DeschedulerRole();
  DeschedulerRole(const DeschedulerRole&) = delete;
  DeschedulerRole& operator=(const DeschedulerRole&) = delete;

  /// What the role's own port shows. The server made of it must go before the role.
  [[nodiscard]] client::ComponentServerOptions port_options();

 private:
  std::unique_ptr<client::Leadership> seek_leadership(const client::LeaderElectionConfig& election);
  void run();

  std::shared_ptr<client::Transport> transport_;
  std::shared_ptr<metrics::Registry> metrics_ = std::make_shared<metrics::Registry>();
  Mutex mutex_;
  CondVar wake_;
  bool is_leading_ BERTH_GUARDED_BY(mutex_) = false, is_stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::unique_ptr<client::Leadership> leadership_;  ///< Null: nobody competes.
  descheduler::Descheduler descheduler_;
  Duration interval_;
  std::thread thread_;
};

/// `10m`, `1h30m`, `0`: nullopt when it is no duration, or negative.
std::optional<Duration> parse_interval(const std::string& text);

}  // namespace berth::cli
