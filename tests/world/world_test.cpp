// Worlds in which everything breaks, from a seed; and everything comes right.
//
//   BERTH_WORLD_SEEDS=1000 BERTH_WORLD_FIRST=1 BERTH_WORLD_FAULTS=300 test_world --gtest_filter='World.*'
//   BERTH_WORLD_DISK_SEEDS=1000 BERTH_WORLD_FIRST=1 BERTH_WORLD_FAULTS=300 test_world --gtest_filter='WorldOnADisk.*'
//
// A seed that fails is tried again with fewer and fewer faults, and the fewest that still fail are told as a story. How to add a judge, or
// look at a seed: docs/testing.md.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "tests/world/telling.h"

namespace berth::world {
namespace {

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// What breaks says so, again and again; BERTH_WORLD_LOG=1 shows it.
void hush() {
  log::set_level(log::Level::kError);
  if (setting("BERTH_WORLD_LOG", 0) == 0 && std::freopen("/dev/null", "w", stderr) == nullptr) ADD_FAILURE() << "no /dev/null";
}

/// "JUDGE: what he found"
std::string_view judge_of(std::string_view finding) { return finding.substr(0, finding.find(':')); }

/// The fewest of the faults that still make that judge speak: halves, quarters, … are left out as long as he does.
std::vector<Fault> shrink(std::uint64_t seed, std::vector<Fault> faults, Ground ground, std::string_view judge) {
  const auto is_silent = [&](const Findings& findings) {
    return std::ranges::none_of(findings, [&](const std::string& one) { return judge_of(one) == judge; });
  };
  int tries = 0;
  for (std::size_t piece = faults.size() / 2; piece > 0 && tries < 200; piece /= 2)
    for (std::size_t from = 0; from < faults.size() && tries < 200;) {
      std::vector<Fault> fewer = faults;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(from),
                  fewer.begin() + static_cast<std::ptrdiff_t>(std::min(from + piece, fewer.size())));
      ++tries;
      if (is_silent(Telling(seed, fewer, ground).findings()))
        from += piece;
      else
        faults = std::move(fewer);
    }
  return faults;
}

/// Tells the stories of some seeds.
void tell(Ground ground, int seeds) {
  hush();
  const int first = setting("BERTH_WORLD_FIRST", 1), faults = setting("BERTH_WORLD_FAULTS", 60);
  const bool shrinks = setting("BERTH_WORLD_SHRINK", 1) != 0;
  std::size_t acts = 0, acknowledged = 0;
  const std::clock_t begun = std::clock();
  int told = 0, failures = 0, lost = 0;
  for (int number = first; number < first + seeds; ++number) {
    const auto seed = static_cast<std::uint64_t>(number);
    const auto story = world::story(seed, faults);
    Findings findings;
    {
      Telling run(seed, story, ground);
      acts += run.acts();
      acknowledged += run.acknowledged();
      findings = run.findings();
      failures += run.power_failures().first;
      lost += run.power_failures().second;
    }
    told += faults;
    if (findings.empty()) continue;
    std::string text = fmt::format("BERTH_WORLD_FIRST={} BERTH_WORLD_SEEDS=1 BERTH_WORLD_FAULTS={}\n", seed, faults);
    for (std::size_t i = 0; i < std::min<std::size_t>(findings.size(), 10); ++i) text += "  " + findings[i] + "\n";
    if (shrinks) {
      const auto fewest = shrink(seed, story, ground, judge_of(findings.front()));
      text += fmt::format("the same of {} faults:\n", fewest.size());
      for (const Fault& fault : fewest) text += "  " + words(fault) + "\n";
      for (const auto& one : Telling(seed, fewest, ground).findings()) text += "    " + one + "\n";
    }
    ADD_FAILURE() << text;
    if (shrinks) break;
  }
  const double spent = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  fmt::print("{} faults in {:.1f} s of processor time ({:.0f} a second), {} of {} acts acknowledged\n", told, spent,
             told / std::max(spent, 0.001), acknowledged, acts);
  if (ground == Ground::kDisk) fmt::print("the power failed {} times and took {} leases and events\n", failures, lost);
  EXPECT_GT(acknowledged, acts / 4) << "the stories tell nothing";
}

TEST(World, ComesRight) { tell(Ground::kEtcd, setting("BERTH_WORLD_SEEDS", 5)); }

/// One server over its own file, on a disk that loses its power.
TEST(WorldOnADisk, ComesRight) { tell(Ground::kDisk, setting("BERTH_WORLD_DISK_SEEDS", 3)); }

/// What servers made at their first start and never read since is shown as the others read it, too.
TEST(World, WithoutFaultsNothingIsFound) {
  hush();
  for (const std::uint64_t seed : {1, 2}) EXPECT_EQ(Telling(seed, {}).findings(), Findings());
}

TEST(World, IsAFunctionOfItsSeed) {
  hush();
  const auto story = world::story(7, 40);
  Telling one(7, story), other(7, story);
  EXPECT_EQ(one.fingerprint(), other.fingerprint());
}

}  // namespace
}  // namespace berth::world
