// Files that the agent keeps for pods: volumes, logs, termination messages, mount points.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "node/agent/atomic_writer.h"
#include "node/agent/container_logs.h"
#include "node/agent/env_file.h"
#include "node/agent/mounts.h"
#include "node/agent/termination_message.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    char pattern[] = "/tmp/berth-files.XXXXXX";
    root_ = ::mkdtemp(pattern);
  }
  ~FilesTest() override { fs::remove_all(root_); }
  static std::string read(const fs::path& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void append(const std::string& name, std::string_view text) const { std::ofstream(root_ + "/" + name, std::ios::app) << text; }
  std::string root_;
};

TEST_F(FilesTest, AVolumesFilesChangeAtOnceAndGoWhenTheyAreNotWanted) {
  const std::string volume = root_ + "/v";
  ASSERT_TRUE(write_volume_files(volume, {{"a", {"1"}}, {"dir/b", {"2", 0400}}}, {}));
  EXPECT_EQ(read(volume + "/a"), "1");
  EXPECT_EQ(read(volume + "/dir/b"), "2");
  EXPECT_TRUE(fs::is_symlink(volume + "/a")) << "read through ..data";
  const fs::path before = fs::read_symlink(volume + "/..data");
  ASSERT_TRUE(write_volume_files(volume, {{"a", {"1"}}, {"dir/b", {"2", 0400}}}, {}));
  EXPECT_EQ(fs::read_symlink(volume + "/..data"), before) << "nothing changed, nothing was written";
  ASSERT_TRUE(write_volume_files(volume, {{"a", {"new"}}}, {}));
  EXPECT_EQ(read(volume + "/a"), "new");
  EXPECT_FALSE(fs::exists(volume + "/dir"));
  EXPECT_FALSE(fs::exists(volume / before)) << "the old content is gone";
}

TEST_F(FilesTest, AVolumesPathsStayInside) {
  for (const char* path : {"../x", "a/../../x", "/x", "..data", ""})
    EXPECT_FALSE(write_volume_files(root_ + "/v", {{path, {"1"}}}, {})) << path;
  EXPECT_FALSE(fs::exists(root_ + "/x"));
}

constexpr std::string_view kLog =
    "2026-01-01T00:00:01.5Z stdout F one\n"
    "2026-01-01T00:00:02Z stderr F two\n"
    "2026-01-01T00:00:03Z stdout P thr\n"
    "2026-01-01T00:00:03Z stdout F ee\n";

TEST(ContainerLogs, LinesAreShownAsAsked) {
  EXPECT_EQ(render_log(kLog, {}), "one\ntwo\nthree\n");
  LogOptions options;
  options.timestamps = true;
  options.tail_lines = 1;
  EXPECT_EQ(render_log(kLog, options), "2026-01-01T00:00:03Z three\n");
  EXPECT_EQ(render_log(kLog, {.stream = "stderr"}), "two\n");
  EXPECT_EQ(render_log(kLog, {.since = parse_rfc3339("2026-01-01T00:00:02Z")}), "two\nthree\n");
  EXPECT_EQ(render_log(kLog, {.limit_bytes = 5}), "one\nt");
  EXPECT_EQ(render_log("garbage\n\n x\n", {}), "");
}

TEST(EnvFiles, QuotedValuesAreTakenAsTheyStand) {
  const char* text = "# comment\n\n  A='x $y' # why\nB= 'z'\nC='one\ntwo'\nD='e'\n";
  EXPECT_EQ(*env_file_value(text, "A"), "x $y");
  EXPECT_EQ(*env_file_value(text, "B"), "") << "a blank behind the sign ends the value, as in a shell";
  EXPECT_EQ(*env_file_value(text, "C"), "one\ntwo");
  EXPECT_EQ(*env_file_value(text, "D"), "e");
  EXPECT_EQ(*env_file_value(text, "X"), "");
  for (const char* bad : {"A=x", "A", "A ='x'", "='x'", "A='x", "A='x'y"}) EXPECT_FALSE(env_file_value(bad, "A")) << bad;
  EXPECT_EQ(*env_file_value("A='x'\nrubbish", "A"), "x") << "what comes later is not looked at";
}

TEST_F(FilesTest, NoLinkLeadsOutOfAVolume) {
  append("inside", "text");
  ASSERT_EQ(::symlink("/etc/hostname", (root_ + "/out").c_str()), 0);
  EXPECT_EQ(read_file_beneath(root_, "inside"), "text");
  EXPECT_FALSE(read_file_beneath(root_, "out"));
  EXPECT_FALSE(read_file_beneath(root_, "../etc/hostname"));
}

TEST(ContainerLogs, QueriesAreChecked) {
  LogOptions options;
  EXPECT_FALSE(
      read_log_options("tailLines=5&sinceSeconds=60&timestamps=true&stream=Stdout", *parse_rfc3339("2026-01-01T01:00:00Z"), options));
  EXPECT_EQ(options.tail_lines, 5);
  EXPECT_EQ(options.since, parse_rfc3339("2026-01-01T00:59:00Z"));
  EXPECT_EQ(options.stream, "stdout");
  for (const char* query : {"tailLines=x", "sinceTime=yesterday", "limitBytes=1.5"}) {
    LogOptions fresh;
    EXPECT_EQ(read_log_options(query, {}, fresh), LogQueryError::kUnreadable) << query;
  }
  for (const char* query :
       {"tailLines=-1", "limitBytes=0", "sinceSeconds=0", "stream=Other", "sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z"}) {
    LogOptions fresh;
    EXPECT_EQ(read_log_options(query, {}, fresh), LogQueryError::kInvalid) << query;
  }
  LogOptions older;
  EXPECT_FALSE(read_log_options("tail=all&follow", {}, older));
  EXPECT_FALSE(older.tail_lines);
}

TEST_F(FilesTest, AFollowedLogIsReadOverItsRotation) {
  append("0.log", "T stdout F one\nT stdout F two\nT stdout F thr");
  LogOptions options;
  options.tail_lines = 1;
  LogFollower follower(root_ + "/0.log", options);
  EXPECT_EQ(follower.read(false), "two\n") << "whole lines, of which the last";
  append("0.log", "ee\n");
  EXPECT_EQ(follower.read(false), "three\n");
  ASSERT_TRUE(rotate_log(root_ + "/0.log", 3, *parse_rfc3339("2026-01-01T00:00:00Z"), [&] {
    append("0.log", "T stdout F four\n");
    return true;
  }));
  EXPECT_EQ(follower.read(false), "four\n");
  EXPECT_EQ(follower.read(false), "");
}

TEST_F(FilesTest, RotationKeepsSoManyFilesAndCompressesTheOlder) {
  TimePoint now = *parse_rfc3339("2026-01-01T00:00:00Z");
  for (int i = 0; i < 5; ++i, now += std::chrono::seconds(1)) {
    append("0.log", fmt::format("T stdout F run {}\n", i));
    ASSERT_TRUE(rotate_log(root_ + "/0.log", 3, now, [&] {
      append("0.log", "");
      return true;
    }));
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root_)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"0.log", "0.log.20260101-000003.gz", "0.log.20260101-000004"}));
}

TEST_F(FilesTest, ARotationThatTheRuntimeRefusesIsTakenBack) {
  append("0.log", "T stdout F one\n");
  EXPECT_FALSE(rotate_log(root_ + "/0.log", 3, {}, [] { return false; }));
  EXPECT_EQ(read(root_ + "/0.log"), "T stdout F one\n");
}

TEST_F(FilesTest, TerminationMessages) {
  append("message", "because");
  append("empty", "");
  append("0.log", "T stdout F some\nT stderr F last words\n");
  EXPECT_EQ(termination_message(root_ + "/message", "File", 1, root_ + "/0.log", "runtime"), "because");
  EXPECT_EQ(termination_message(root_ + "/empty", "File", 1, root_ + "/0.log", "runtime"), "runtime");
  EXPECT_EQ(termination_message(root_ + "/empty", "FallbackToLogsOnError", 1, root_ + "/0.log", ""), "some\nlast words\n");
  EXPECT_EQ(termination_message(root_ + "/empty", "FallbackToLogsOnError", 0, root_ + "/0.log", ""), "") << "only of failures";
  append("long", std::string(10'000, 'x'));
  EXPECT_EQ(termination_message(root_ + "/long", "File", 0, "", "").size(), 4096u);
}

TEST(Mounts, MountPointsBelowADirectoryComeDeepestFirst) {
  const std::string info =
      "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
      "23 22 0:5 / /pods/u/volumes/a rw - tmpfs tmpfs rw\n"
      "24 22 0:6 / /pods/u/volumes/a/b\\040c rw - tmpfs tmpfs rw\n"
      "25 22 0:7 / /pods/uu/x rw - tmpfs tmpfs rw\n";
  EXPECT_EQ(mount_points_below(info, "/pods/u"), (std::vector<std::string>{"/pods/u/volumes/a/b c", "/pods/u/volumes/a"}));
}

}  // namespace
}  // namespace berth::node::agent
