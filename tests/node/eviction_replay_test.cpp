// Replays recorded decisions of a real kubelet: the subset kept here, and whatever BERTH_EVICTION_VECTORS or ../shared has.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "node/eviction/replay.h"

namespace berth::node::eviction {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

fs::path find_vectors() {
  if (const char* set = std::getenv("BERTH_EVICTION_VECTORS")) return set;
  for (fs::path at = fs::path(BERTH_SOURCE_DIR); at.has_relative_path(); at = at.parent_path())
    if (fs::exists(at / "shared" / "eviction-vectors")) return at / "shared" / "eviction-vectors";
  return {};
}

TEST(EvictionReplay, EveryRecordedDecision) {
  const fs::path root = find_vectors();
  if (root.empty()) GTEST_SKIP() << "no recorded vectors beside this checkout (set BERTH_EVICTION_VECTORS)";
  int files = 0, failed = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".json") continue;
    const auto file = json::parse(read_text(entry.path()));
    ASSERT_TRUE(file) << entry.path();
    ++files;
    const std::vector<std::string> differences = replay_eviction(*file);
    if (differences.empty()) continue;
    ++failed;
    if (failed <= 20) ADD_FAILURE() << entry.path().filename() << ": " << differences.size() << " differences, first: " << differences.front().substr(0, 1500);
  }
  EXPECT_EQ(failed, 0) << "of " << files;
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace berth::node::eviction
