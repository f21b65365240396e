// Assertions: expressions of the Common Expression Language over a sample of the cluster (docs/simulate.md lists the names).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "simulator/scenario.h"

namespace berth::simulator {

/// What is wrong with an expression; empty: nothing.
std::string check_problem(const std::string& expression);

struct CheckFailure {
  std::string name;
  Duration at{};        ///< When it first failed.
  std::string message;  ///< The expression, and what its names were.
};

/// Looks at samples as they come.
class Checker {
 public:
  explicit Checker(const std::vector<Check>& checks);
  ~Checker();
  /// `sample`: Sample::to_json, with `broken` where wants_invariants().
  void look(const json::Value& sample, Duration now, bool is_end);
  /// Whether an assertion asks for what walks over everything to be known (`broken`).
  [[nodiscard]] bool wants_invariants() const;
  /// When an assertion wants a sample besides the regular ones.
  [[nodiscard]] std::vector<Duration> wanted_times() const;
  [[nodiscard]] const std::vector<CheckFailure>& failures() const { return failures_; }

 private:
  struct Compiled;
  void evaluate(Compiled& check, const json::Value& sample, Duration now);
  std::vector<std::unique_ptr<Compiled>> checks_;
  std::vector<CheckFailure> failures_;
};

}  // namespace berth::simulator
