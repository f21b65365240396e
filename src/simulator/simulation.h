// One run of a scenario: a cluster, a story, and what was seen of it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/census.h"
#include "simulator/checks.h"
#include "simulator/gangs.h"
#include "simulator/scenario.h"

namespace berth::simulator {

class Cluster;

struct Progress {
  Duration at{}, duration{};
  std::int64_t running = 0, pending = 0, nodes = 0;
};

struct RunOptions {
  /// Called at every sample; may be empty.
  std::function<void(const Progress&)> on_progress;
  /// Every change of an object, in the recording's format; empty: not written.
  std::string recording_file;
  /// Nodes write every heartbeat, and nobody takes silence for one: the same results, at the cost of a real cluster.
  bool writes_heartbeats = false;
  /// By which `broken.zoneRates` judges, in nodes a second; unset: by what the controllers are told (--node-eviction-rate).
  std::optional<double> judged_eviction_rate;
  /// Called with the cluster before anything of it runs, two minutes before the scenario's start; it lives until the run is over. For who
  /// looks at more than samples show.
  std::function<void(Cluster&)> on_cluster;
};

/// What came of a run. A function of the scenario, its seed included.
struct Outcome {
  std::string title, variant;
  std::string currency;    ///< Of costs; empty: nobody says.
  std::size_t checks = 0;  ///< That had to hold.
  std::uint64_t seed = 0;
  Duration duration{};
  TimePoint start{};
  std::vector<Sample> samples;
  std::vector<Happening> happenings;
  std::int64_t dropped_happenings = 0;  ///< Beyond what is kept.
  std::vector<CheckFailure> failures;
  std::map<std::string, std::int64_t> refusals;  ///< What the API server refused, and how often.
  std::int64_t arrivals = 0;
  std::map<std::string, std::int64_t> component_evictions;         ///< Through the eviction API, by who asked.
  double wait_mean = 0, wait_p50 = 0, wait_p99 = 0, wait_max = 0;  ///< Seconds from creation to node.
  std::int64_t waits = 0;
  std::map<std::string, GangCount> gangs;  ///< By queue; empty: none came.
  std::vector<std::string> notes;
  [[nodiscard]] bool ok() const { return failures.empty() && refusals.empty(); }
};

/// The error: the scenario cannot be run at all (a recording that is cut off, a configuration that names an unknown plugin).
Result<Outcome> run(const Scenario& scenario, const RunOptions& options = {});

/// Figures of a whole run, by name, in a fixed order: what summaries show and comparisons compare.
struct Figure {
  std::string name, unit;
  double value = 0;
  bool less_is_better = true;
};
std::vector<Figure> figures_of(const Outcome& outcome);

}  // namespace berth::simulator
