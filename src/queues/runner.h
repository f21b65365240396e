// Queues against an API server: watches in, the core's steps, writes out.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "client/client.h"
#include "queues/core.h"

namespace berth::queues {

struct RunnerOptions {
  Settings settings;
  bool installs = true;       ///< The kinds and the policies, where they are missing.
  bool leader_elect = false;  ///< With the Lease berth-queues.
  std::string ns = "kube-system", identity;
  /// A clock that never jumps, for the length of attempts; null: none is measured.
  std::function<Duration()> stopwatch;
};

/// Lives on its client's loop: construct, start and destroy it there. The metrics must outlive it.
class Runner {
 public:
  Runner(client::Client& client, RunnerOptions options, metrics::Registry& metrics);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void start();
  /// The caches are filled, and the core runs.
  [[nodiscard]] bool has_synced() const;
  /// Called on the loop; the process should end.
  void on_lost_leadership(std::function<void()> lost);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::queues
