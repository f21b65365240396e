// Recorded scenarios of groups of pods come out of this scheduler as of the real one (docs/gangs.md, "Beside the real one").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "parity/gangs.h"
#include "parity/vector_files.h"
#include "tests/support/source_dir.h"

namespace berth::scheduler::parity {
namespace {

std::string kept() { return berth::testing::source_dir() + "/tests/parity/gang_vectors.jsonl.gz"; }

std::size_t replay_all(const std::string& path) {
  std::size_t replayed = 0;
  const auto count = for_each_vector(path, [&](const std::string& name, const std::string& text) {
    const auto file = json::parse(text);
    ASSERT_TRUE(file) << name << ": " << file.error().message;
    ASSERT_TRUE(is_gang_vector(*file)) << name;
    ++replayed;
    const auto differences = replay_gangs(*file);
    EXPECT_TRUE(differences.empty()) << name << ":\n" << fmt::format("{}", fmt::join(differences, "\n"));
  });
  EXPECT_TRUE(count) << (count ? "" : count.error().message);
  return replayed;
}

TEST(GangParity, RecordedScenariosOfTheProject) { EXPECT_GE(replay_all(kept()), 30U); }

TEST(GangParity, RecordedScenariosBesideTheProject) {
  const char* shared = std::getenv("BERTH_SHARED");
  const std::string path = (shared != nullptr ? std::string(shared) : berth::testing::source_dir() + "/../shared") + "/gang-vectors";
  if (!std::filesystem::is_directory(path)) GTEST_SKIP() << "no recorded scenarios in " << path;
  EXPECT_GT(replay_all(path), 0U);
}

TEST(GangParity, AnotherAnswerIsNoticed) {
  std::size_t changed = 0;
  (void)for_each_vector(kept(), [&](const std::string& name, const std::string& text) {
    json::Value file = *json::parse(text);
    json::Value* counts = json::find(file.as_object()["expected"].as_array()[0], "counts");
    if (counts == nullptr || counts->get_object().empty()) return;
    json::Value& first = counts->get_object().begin()->value();
    json::set(first, {"placed"}, json::Value(json::get_int(first, {"placed"}) + 1));
    ++changed;
    EXPECT_FALSE(replay_gangs(file).empty()) << name;
  });
  EXPECT_GE(changed, 20U);
}

}  // namespace
}  // namespace berth::scheduler::parity
