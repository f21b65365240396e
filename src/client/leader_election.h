// Leader election on a coordination.k8s.io/v1 Lease, as client-go's tools/leaderelection: one of several candidates leads at a time.
//
//   start --> acquiring --(lease free, expired or ours)--> leading --(not renewed within renew_deadline, or stop)--> stopped
//                 ^  |                                        ^ |
//                 +--+ some times a retry_period, jittered,   +-+ every retry_period
//                      and when the lease runs out
//
// Beside an attempt without an answer for half the renew_deadline (at least a second) another begins; what first comes to something counts.
// Other candidates' clocks are never trusted: a lease counts as expired when its record did not change for its duration on our own clock.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "client/client.h"
#include "client/election_times.h"

namespace berth::client {

struct LeaderElectionConfig {
  std::string ns = "kube-system";
  std::string name;      ///< Of the Lease.
  std::string identity;  ///< Unique among the candidates: "host_uuid".
  Duration lease_duration = kKubernetesTimes.lease_duration;
  Duration renew_deadline = kKubernetesTimes.renew_deadline;
  Duration retry_period = kKubernetesTimes.retry_period;
  /// Gives the lease up on stop, so that the next candidate need not wait for it to expire.
  bool release_on_stop = true;
  /// Who may not read or write the Lease (403) leads all the same, says which right is missing, and tries again: for a Lease that is the
  /// component's own by default, and whose rights nobody was told to give.
  bool goes_without = false;
  std::uint64_t seed = 0;  ///< Of the jitter.
};

/// Called on the loop. None runs after the elector is destroyed.
struct LeaderCallbacks {
  std::function<void()> on_started_leading;
  /// Instead, where it led before and nobody else has since: what it knows is as good as it was. Empty: on_started_leading.
  std::function<void()> on_resumed_leading;
  std::function<void()> on_stopped_leading;  ///< Once for each of them.
  std::function<void(const std::string& identity)> on_new_leader;
  /// The lease was taken or renewed: nobody else takes it before that time, whenever the answer came.
  std::function<void(TimePoint until)> on_renewed;
  std::function<void(const std::string& why)> on_waiting;  ///< What is logged while it does not lead; may be empty.
};

/// Lives on its client's loop. After leadership was lost it is stopped; start may be called again.
class LeaderElector {
 public:
  /// The error names the setting that is impossible (client-go's rules).
  static Result<void> validate(const LeaderElectionConfig& config);
  /// Requires a valid config.
  LeaderElector(Client& client, LeaderElectionConfig config, LeaderCallbacks callbacks);
  /// Without a release: the others wait for the lease to expire.
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void start();
  /// Stops leading and competing; `done` (may be empty) is called when the lease is released or that has failed.
  void stop(std::function<void()> done = {});
  [[nodiscard]] bool is_leader() const;
  /// The holder last seen; empty when none.
  [[nodiscard]] const std::string& leader() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::client
