// The registry of benchmarks: one scenario a promise. A scenario registers itself with BERTH_BENCH and returns what it measured.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::bench {

struct Options {
  std::string kubeconfig;  ///< Scenarios that drive an API server: whose. Empty: they start one of their own.
  double scale = 1;        ///< Multiplies object counts, for quick runs.
  std::uint64_t seed = 1;
};

struct Scenario {
  std::string name;
  std::string summary;  ///< What the figure includes, in one line.
  /// Returns the measured fields. "pods" and "seconds" give pods_per_s; the runner adds name and peak_rss_mb. "error" fails the run.
  std::function<json::Object(const Options&)> run;
};

std::vector<Scenario>& scenarios();

struct Register {
  explicit Register(Scenario scenario) { scenarios().push_back(std::move(scenario)); }
};

/// Seconds on the monotonic clock.
double now_seconds();
/// Resident and peak resident memory of this process, MiB.
double rss_mb();
double peak_rss_mb();

}  // namespace berth::bench
