// Pools against an API server: watches in, a pass every second, writes out.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "autoscaler/external/external_config.h"
#include "base/metrics.h"
#include "client/leadership.h"
#include "pools/keeper.h"

namespace berth::pools {

struct RunnerOptions {
  Catalogue catalogue;
  KeeperOptions keeper;
  Duration interval = std::chrono::seconds(1);
  Duration most_of_a_pass = std::chrono::milliseconds(1500);   ///< For looking for something cheaper.
  std::function<Duration()> steady_clock;                      ///< Null: passes are not limited.
  std::optional<autoscaler::ExternalProviderConfig> external;  ///< Whose groups are bought from, too.
  bool leader_elect = false;                                   ///< With the Lease berth-node-pools.
  std::string ns = "kube-system", identity;
  EventLoop* election_loop = nullptr;    ///< See client::LeadershipOptions::election_loop.
  metrics::Registry* metrics = nullptr;  ///< Outlives the runner. Null: nobody counts.
};

/// Lives on its client's loop: construct, start and destroy it there. Writes the definitions first.
class Runner {
 public:
  Runner(client::Client& client, RunnerOptions options);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void start();
  /// Called on the loop; the process should end.
  void on_lost_leadership(std::function<void()> lost);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::pools
