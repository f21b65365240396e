// `berth up` finds its nodes as they were asked for.
#include "cli/command/remembered_flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>

namespace berth::cli {
namespace {

struct Start {
  CLI::App app;
  int nodes = 6, zones = 3;
  std::string prefix = "node-", file, once;
  std::vector<std::string> arguments;
  bool is_hard = false;
  Result<RememberedFlags> flags = fail(ErrorCode::kInternal, "");

  Start(const std::string& directory, std::vector<std::string> words, const std::string& configuration = {}) {
    app.add_option("--nodes", nodes)->check(CLI::Range(0, 10));
    app.add_option("--zones", zones);
    app.add_option("--prefix", prefix);
    app.add_option("--file", file);
    app.add_option("--once", once);
    app.add_option("--controller-arg", arguments);
    app.add_flag("--hard,!--soft", is_hard);
    std::ranges::reverse(words);  // As CLI11 wants them.
    app.parse(words);
    flags = RememberedFlags::recall(app, directory, {"--once"}, configuration);
    if (flags) {
      EXPECT_TRUE(flags->save());
    }
  }
};

class RememberedFlagsTest : public ::testing::Test {
 protected:
  RememberedFlagsTest() {
    char pattern[] = "/tmp/berth-flags.XXXXXX";
    directory_ = mkdtemp(pattern);
  }
  ~RememberedFlagsTest() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& text) const { std::ofstream(directory_ + "/up.json") << text; }
  std::string directory_;
};

TEST_F(RememberedFlagsTest, WhatWasTypedHoldsForTheNextStart) {
  EXPECT_TRUE(Start(directory_, {"--nodes", "3", "--prefix", "a-"}).flags->notes().empty());
  const Start next(directory_, {});
  EXPECT_EQ(next.nodes, 3);
  EXPECT_EQ(next.prefix, "a-");
  EXPECT_EQ(next.zones, 3) << "a default is not remembered";
  EXPECT_EQ(next.flags->notes(), std::vector<std::string>{"as at the last start: --nodes 3 --prefix a-"});
  EXPECT_EQ(next.app.count("--nodes"), 1U) << "as if it had been typed";
}

TEST_F(RememberedFlagsTest, AFlagWinsAndTheChangeIsSaid) {
  Start(directory_, {"--nodes", "3", "--zones", "2"});
  const Start next(directory_, {"--nodes", "5"});
  EXPECT_EQ(next.nodes, 5);
  EXPECT_EQ(next.zones, 2);
  EXPECT_EQ(next.flags->notes(), (std::vector<std::string>{"as at the last start: --zones 2", "--nodes 5 (3 at the last start)"}));
  EXPECT_EQ(Start(directory_, {}).nodes, 5);
}

TEST_F(RememberedFlagsTest, AFileIsFoundFromElsewhere) {
  Start(directory_, {"--file", "scenario.yaml", "--prefix", "tests"});
  const Start next(directory_, {});
  EXPECT_EQ(next.file, std::filesystem::absolute("scenario.yaml").string());
  EXPECT_EQ(next.prefix, "tests") << "a name that a directory here has is a name all the same";
}

TEST_F(RememberedFlagsTest, SoIsOneWithinAnotherProgramsFlag) {
  Start(directory_, {"--controller-arg", "cluster-signing-cert-file=ca.crt", "--controller-arg", "node-eviction-rate=1"});
  EXPECT_EQ(
      Start(directory_, {}).arguments,
      (std::vector<std::string>{"cluster-signing-cert-file=" + std::filesystem::absolute("ca.crt").string(), "node-eviction-rate=1"}));
}

TEST_F(RememberedFlagsTest, SwitchesAreRememberedBothWays) {
  Start(directory_, {"--hard"});
  const Start next(directory_, {});
  EXPECT_TRUE(next.is_hard);
  EXPECT_EQ(next.flags->notes(), std::vector<std::string>{"as at the last start: --hard"});
  EXPECT_EQ(Start(directory_, {"--soft"}).flags->notes(), std::vector<std::string>{"--hard=false (true at the last start)"});
  EXPECT_FALSE(Start(directory_, {}).is_hard);
}

TEST_F(RememberedFlagsTest, WhatIsOfOneStartIsNotRemembered) {
  Start(directory_, {"--once", "a"});
  const Start next(directory_, {});
  EXPECT_EQ(next.once, "");
  EXPECT_TRUE(next.flags->notes().empty());
}

TEST_F(RememberedFlagsTest, TheConfigurationIsFoundAgain) {
  EXPECT_EQ(RememberedFlags::last_configuration(directory_), "");
  const std::string file = std::filesystem::absolute("berth.yaml");
  Start(directory_, {}, "berth.yaml");
  EXPECT_EQ(RememberedFlags::last_configuration(directory_), file);
  EXPECT_EQ(Start(directory_, {}, file).flags->notes(), std::vector<std::string>{"as at the last start: --config " + file});
  Start(directory_, {});
  EXPECT_EQ(RememberedFlags::last_configuration(directory_), "") << "a start without it ends it";
}

TEST_F(RememberedFlagsTest, WhatIsTypedCanBeTypedAgain) {
  Start(directory_, {"--prefix", "it's"});
  EXPECT_EQ(Start(directory_, {}).flags->notes(), std::vector<std::string>{R"(as at the last start: --prefix 'it'\''s')"});
}

TEST_F(RememberedFlagsTest, AnEmptyValueIsForgotten) {
  Start(directory_, {"--prefix", "a-"});
  Start(directory_, {"--prefix", ""});
  EXPECT_EQ(Start(directory_, {}).prefix, "node-");
}

TEST_F(RememberedFlagsTest, AFileThatIsNotOursIsRefusedByName) {
  for (const char* text : {"x", "[]", R"({"--nodes": "many"})", R"({"--nodes": "11"})"}) {
    write(text);
    const Start start(directory_, {});
    ASSERT_FALSE(start.flags) << text;
    EXPECT_NE(start.flags.error().message.find(directory_ + "/up.json"), std::string::npos) << start.flags.error().message;
  }
  write("x");
  std::filesystem::create_directory(directory_ + "/elsewhere");
  EXPECT_EQ(Start(directory_ + "/elsewhere", {}).nodes, 6);
}

}  // namespace
}  // namespace berth::cli
