// Replays recorded decisions of a real kubelet: the subset kept beside this file, and all of ../shared (or BERTH_EVICTION_VECTORS) where
// there.
#include "parity/eviction.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/source_dir.h"

namespace berth::node::eviction {
namespace {

namespace fs = std::filesystem;

std::string read_gzip(const fs::path& path) {
  std::string out;
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) return out;
  char buffer[1 << 16];
  for (int n; (n = gzread(file, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  gzclose(file);
  return out;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

fs::path find_vectors() {
  if (const char* set = std::getenv("BERTH_EVICTION_VECTORS")) return set;
  for (fs::path at = fs::path(berth::testing::source_dir()); at.has_relative_path(); at = at.parent_path())
    if (fs::exists(at / "shared" / "eviction-vectors")) return at / "shared" / "eviction-vectors";
  return {};
}

TEST(EvictionReplay, TheKeptSubset) {
  const std::string text = read_gzip(fs::path(berth::testing::source_dir()) / "tests/node/eviction_vectors.jsonl.gz");
  std::istringstream lines(text);
  int files = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto file = json::parse(line);
    ASSERT_TRUE(file);
    ASSERT_TRUE(is_eviction_vector(*file));
    ++files;
    const std::vector<std::string> differences = replay_eviction(*file);
    EXPECT_TRUE(differences.empty()) << json::get_string(*file, {"id"}) << ": " << differences.front().substr(0, 1500);
  }
  EXPECT_GT(files, 100);
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
    if (failed <= 20)
      ADD_FAILURE() << entry.path().filename() << ": " << differences.size()
                    << " differences, first: " << differences.front().substr(0, 1500);
  }
  EXPECT_EQ(failed, 0) << "of " << files;
  EXPECT_GT(files, 0);
}

TEST(EvictionReplay, AWrongAnswerIsNoticed) {
  const std::string text = read_gzip(fs::path(berth::testing::source_dir()) / "tests/node/eviction_vectors.jsonl.gz");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto file = json::parse(line);
    if (json::get_string(*file, {"kind"}) != "manager") continue;
    for (json::Value& alternative : json::find(*file, "expect")->as_array()[0].as_array()) json::set(alternative, {"summaryReads"}, 7);
    EXPECT_FALSE(replay_eviction(*file).empty());
    return;
  }
}

}  // namespace
}  // namespace berth::node::eviction
