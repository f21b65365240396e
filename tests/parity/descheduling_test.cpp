// Recorded cycles of the real descheduler evict the same pods here (SPEC G1 to G3; the rules are docs/descheduler.md's, "Beside the real
// one").
#include "parity/descheduling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "parity/vector_files.h"
#include "tests/support/source_dir.h"

namespace berth::descheduler {
namespace {

std::string kept_cycles() { return berth::testing::source_dir() + "/tests/parity/descheduler_vectors.jsonl.gz"; }

/// Usage that a Prometheus would tell is refused here: such a policy evicts nothing.
bool asks_prometheus(const json::Value& file) { return json::find(file, "prometheus") != nullptr; }

std::size_t replay_all(const std::string& path) {
  std::size_t replayed = 0;
  const auto count = scheduler::parity::for_each_vector(path, [&](const std::string& name, const std::string& text) {
    const auto file = json::parse(text);
    ASSERT_TRUE(file) << name << ": " << file.error().message;
    ASSERT_TRUE(is_descheduler_vector(*file)) << name;
    ++replayed;
    const auto differences = replay_descheduler(*file);
    if (asks_prometheus(*file)) return;
    EXPECT_TRUE(differences.empty()) << name << ": " << differences.front().substr(0, 1500);
  });
  EXPECT_TRUE(count) << (count ? "" : count.error().message);
  return replayed;
}

TEST(DeschedulingParity, RecordedCyclesOfTheProject) { EXPECT_GE(replay_all(kept_cycles()), 200U); }

TEST(DeschedulingParity, RecordedCyclesBesideTheProject) {
  const char* shared = std::getenv("BERTH_SHARED");
  const std::string path = (shared != nullptr ? std::string(shared) : berth::testing::source_dir() + "/../shared") + "/descheduler-vectors";
  if (!std::filesystem::is_directory(path)) GTEST_SKIP() << "no recorded cycles in " << path;
  EXPECT_GT(replay_all(path), 0U);
}

TEST(DeschedulingParity, AnotherAnswerIsNoticed) {
  std::size_t changed = 0;
  (void)scheduler::parity::for_each_vector(kept_cycles(), [&](const std::string& name, const std::string& text) {
    json::Value file = *json::parse(text);
    json::Value* evicted = json::find(file, {"expected", "evicted"});
    if (changed == 20 || evicted == nullptr || !evicted->is_array() || evicted->get_array().empty() || asks_prometheus(file)) return;
    if (json::get_string(file, {"expected", "order"}) == "counts" || json::find(file, "canonical") != nullptr) return;
    ++changed;
    evicted->get_array().pop_back();
    EXPECT_FALSE(replay_descheduler(file).empty()) << name;
  });
  EXPECT_EQ(changed, 20U);
}

}  // namespace
}  // namespace berth::descheduler
