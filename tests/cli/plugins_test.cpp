#include "cli/planning/plugins.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace berth::cli {
namespace {

class Plugins : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/berth-plugins-test.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string file(const std::string& name, const std::string& content, mode_t mode) const {
    const std::string path = (directory_ / name).string();
    std::ofstream(path) << content;
    ::chmod(path.c_str(), mode);
    return path;
  }
  static std::string refusal(const std::string& path) {
    const auto loaded = load_plugins(path);
    return loaded ? std::string() : loaded.error().message;
  }
  std::filesystem::path directory_;
};

TEST_F(Plugins, WhatIsNoneIsNotEvenLookedInto) {
  EXPECT_NE(refusal((directory_ / "nowhere.so").string()).find("No such file or directory"), std::string::npos);
  EXPECT_NE(refusal(directory_.string()).find("is no file"), std::string::npos);
  EXPECT_NE(refusal("/dev/zero").find("is no file"), std::string::npos) << "it has no end";
  const std::string pipe = (directory_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(refusal(pipe).find("is no file"), std::string::npos) << "nobody writes there";
  EXPECT_NE(refusal(file("text.so", "no library", 0644)).find("is not a library of berth plugins"), std::string::npos);
}

TEST_F(Plugins, NobodyElseMayWriteThem) {
  EXPECT_NE(refusal(file("open.so", "", 0666)).find("may be written by everybody (mode 0666)"), std::string::npos);
}

}  // namespace
}  // namespace berth::cli
