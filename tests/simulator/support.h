// Scenarios as texts, and their runs.
#pragma once
#include <gtest/gtest.h>

#include "base/log.h"
#include "simulator/report.h"
#include "simulator/scenario.h"
#include "simulator/simulation.h"

namespace berth::simulator {

inline Scenario scenario_of(std::string_view text) {
  auto parsed = parse_scenario(text, "scenario.yaml", "");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? std::move(parsed->variants.front().scenario) : Scenario{};
}

inline Outcome outcome_of(std::string_view text) {
  log::set_level(log::Level::kError);
  auto outcome = run(scenario_of(text));
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? std::move(*outcome) : Outcome{};
}

/// What reading says is wrong; empty: nothing.
inline std::string problems_of(std::string_view text) {
  const auto parsed = parse_scenario(text, "scenario.yaml", "");
  return parsed ? std::string() : parsed.error().message;
}

inline std::int64_t evictions(const Outcome& outcome, const std::string& cause) {
  const auto found = outcome.samples.back().evictions.find(cause);
  return found == outcome.samples.back().evictions.end() ? 0 : found->second;
}

}  // namespace berth::simulator
