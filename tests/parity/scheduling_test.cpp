// Every recorded decision of the real kube-scheduler comes out of this engine (SPEC B11).
#include "parity/scheduling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "parity/vector_files.h"
#include "tests/support/source_dir.h"

namespace berth::scheduler::parity {
namespace {

std::size_t replay_all(const std::string& path) {
  std::size_t replayed = 0;
  const auto count = for_each_vector(path, [&](const std::string& name, const std::string& text) {
    const auto file = json::parse(text);
    ASSERT_TRUE(file) << name << ": " << file.error().message;
    if (!is_scheduling_vector(*file)) return;
    ++replayed;
    const auto differences = replay_scheduling(*file);
    EXPECT_TRUE(differences.empty()) << name << ": " << differences.size() << " differences, the first:\n"
                                     << fmt::format(
                                            "{}",
                                            fmt::join(differences.begin(),
                                                      differences.begin() + std::min<std::ptrdiff_t>(5, std::ssize(differences)), "\n"));
  });
  EXPECT_TRUE(count) << (count ? "" : count.error().message);
  return replayed;
}

TEST(SchedulingParity, RecordedScenariosOfTheProject) {
  EXPECT_GE(replay_all(berth::testing::source_dir() + "/tests/parity/vectors.jsonl.gz"), 700u);
}

TEST(SchedulingParity, RecordedScenariosBesideTheProject) {
  const char* shared = std::getenv("BERTH_SHARED");
  const std::string path = (shared != nullptr ? std::string(shared) : berth::testing::source_dir() + "/../shared") + "/vectors";
  if (!std::filesystem::is_directory(path)) GTEST_SKIP() << "no scenarios in " << path;
  EXPECT_GT(replay_all(path), 0u);
}

TEST(SchedulingParity, AWrongRecordingIsNoticed) {
  std::string text;
  (void)for_each_vector(berth::testing::source_dir() + "/tests/parity/vectors.jsonl.gz",
                        [&](const std::string& name, const std::string& one) {
                          if (text.empty() && name.find("resources") != std::string::npos) text = one;
                        });
  auto file = json::parse(text);
  ASSERT_TRUE(file);
  file->as_object()["expect"].as_array()[0].as_object()["message"] = "something else";
  EXPECT_FALSE(replay_scheduling(*file).empty());
}

TEST(SchedulingParity, MalformedFilesAreReportedNotReplayed) {
  EXPECT_FALSE(is_scheduling_vector(json::Value("text")));
  const json::Value broken = {{"pods", json::Array{1}}, {"expect", json::Array{}}};
  EXPECT_EQ(replay_scheduling(broken).size(), 1u);
}

}  // namespace
}  // namespace berth::scheduler::parity
