// Configurations side by side: the same seeds for each, means with their confidence, and whether a difference is one.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/simulation.h"

namespace berth::simulator {

/// The mean of some runs, and how sure it is.
struct Estimate {
  double mean = 0;
  std::optional<double> half_width;  ///< Of the 95% confidence interval, by Student's distribution; of one run nobody knows it.
};
Estimate estimate(const std::vector<double>& values);

struct Side {
  std::string name;
  std::vector<Outcome> outcomes;  ///< By seed.
};

struct CompareOptions {
  /// Gets who runs: of those that run at once the first. From any of the threads, one at a time; may be empty.
  std::function<void(const std::string& who, const Progress&)> on_progress;
  std::size_t threads = 0;  ///< Runs at once; 0: as many as there are processors.
};
/// All variants over seeds S, S+1, …: S is each scenario's own. What comes out does not depend on the threads. The error is that of one
/// run.
Result<std::vector<Side>> compare(const std::vector<Variant>& variants, std::int64_t seeds, const CompareOptions& options);

struct ComparedFigure {
  std::string name, unit;
  bool less_is_better = false;
  std::vector<Estimate> sides;
  /// Of each side less the first, seed by seed; of the first nothing.
  std::vector<Estimate> differences;
  /// "better", "worse", "more", "less", or empty: no difference can be told.
  std::vector<std::string> verdicts;
};
std::vector<ComparedFigure> compared_figures(const std::vector<Side>& sides);
/// A sentence for each side but the first: what is better with it and what is worse, what matters most first; or that no difference can be
/// told, and what would tell.
std::vector<std::string> verdicts_of(const std::vector<Side>& sides);

std::string to_text(const std::vector<Side>& sides);
json::Value to_json(const std::vector<Side>& sides);
/// A line a side, seed and figure.
std::string to_csv(const std::vector<Side>& sides);

}  // namespace berth::simulator
