// What a seed tells, as a scenario: a file that `berth simulate` runs.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/clock.h"
#include "base/log.h"
#include "simulator/cluster.h"
#include "simulator/report.h"
#include "simulator/scenario.h"
#include "simulator/simulation.h"

namespace berth::simulation {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

inline int setting(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? std::atoi(text) : fallback;
}

/// Faults and changes at times that a seed draws; whoever derives from it says which. Nothing of them lasts beyond the healing.
class Told {
 public:
  explicit Told(std::uint64_t seed) : random_(seed) {}

  /// `head`: the scenario's other fields.
  [[nodiscard]] std::string text(const std::string& head) const {
    std::string out = head + "faults:\n";
    for (const Event& fault : faults_) {
      out += fmt::format("- {{at: {}, {}", format_go_duration(fault.at), fault.what);
      if (fault.lasts)
        out += fmt::format(", for: {}", format_go_duration(std::max<Duration>(std::min(*fault.lasts, healed_ - fault.at), seconds(1))));
      out += "}\n";
    }
    out += "changes:\n";
    for (const Event& change : changes_) out += fmt::format("- {{at: {}, {}}}\n", format_go_duration(change.at), change.what);
    return out;
  }

 protected:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  template <typename T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  void fault(std::optional<Duration> lasts, std::string what) { faults_.push_back({now_, lasts, std::move(what)}); }
  void change(std::string what) { changes_.push_back({now_, std::nullopt, std::move(what)}); }
  void remove(std::string_view kind, std::string_view name) { change(fmt::format("delete: {{kind: {}, name: {}}}", kind, name)); }
  void merge(std::string_view kind, std::string_view name, std::string_view patch) {
    change(fmt::format("patch: {{kind: {}, name: {}, merge: {}}}", kind, name, patch));
  }

  struct Event {
    Duration at{};
    std::optional<Duration> lasts;
    std::string what;
  };
  Duration now_ = seconds(1), healed_{};
  std::vector<Event> faults_, changes_;

 private:
  std::mt19937_64 random_;
};

inline simulator::Scenario scenario_of(const std::string& text) {
  auto parsed = simulator::parse_scenario(text, "scenario.yaml", "");
  EXPECT_TRUE(parsed) << parsed.error().message << "\n" << text;
  return parsed ? std::move(parsed->variants.front().scenario) : simulator::Scenario{};
}

}  // namespace berth::simulation
