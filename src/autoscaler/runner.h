// The autoscaler against an API server: watches in, a step every ten seconds, writes out (SPEC section H).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "autoscaler/external/external_config.h"
#include "autoscaler/options.h"
#include "base/metrics.h"
#include "client/leadership.h"
#include "placement/profiles.h"

namespace berth::autoscaler {

struct RunnerOptions {
  /// Of the status ConfigMap, the priority expander's ConfigMap and the Lease.
  std::string ns = "kube-system";
  /// The scheduler's own profile: what fits is asked of it.
  placement::Profiles profiles;
  /// Instead of the ClusterAutoscaler named default; without either nothing is done.
  std::optional<Options> options;
  std::optional<Duration> scan_interval;
  Duration max_pass_time = std::chrono::seconds(10);
  bool enforce_min_sizes = false;                 ///< Groups below their minimum grow to it, pods or not.
  std::string check_capacity_processor_instance;  ///< Of ProvisioningRequests: only those that name it.
  bool dry_run = false;                           ///< Decides and says what it would do; writes nothing but its status and events.
  std::uint64_t seed = 0;
  /// A clock that never jumps, by which jumps of the loop's are seen; null: it has none.
  std::function<Duration()> steady_clock;
  /// Instead of the Machine API: machines of whoever speaks the external gRPC protocol.
  std::optional<ExternalProviderConfig> external;
  std::string grpc_expander_url, grpc_expander_ca_pem;  ///< Whom the expander grpc asks: host:port, and its authority for TLS.
  bool leader_elect = false;                            ///< With the Lease cluster-autoscaler.
  std::string identity;
  EventLoop* election_loop = nullptr;  ///< See client::LeadershipOptions::election_loop.
};

/// Lives on its client's loop: construct, start and destroy it there. The metrics must outlive it.
class Runner {
 public:
  Runner(client::Client& client, RunnerOptions options, metrics::Registry& metrics);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void start();
  [[nodiscard]] bool has_synced() const;
  /// Called on the loop; the process should end.
  void on_lost_leadership(std::function<void()> lost);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::autoscaler
