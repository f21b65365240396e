#include "node/simulated/pod_shell.h"

#include <gtest/gtest.h>

namespace berth::node::simulated {
namespace {

struct PodShellTest : ::testing::Test {
  ShellWorld world{.hostname = "web-0", .environment = {{"HOME", "/root"}, {"WHO", "me"}}, .files = {{"/etc/hostname", "web-0\n"}}};
  PodShell shell{world, "2026-01-02T03:04:05Z"};
  std::string out(std::string_view line, const std::string& input = "") { return shell.line(line, input).out; }
  int code(std::string_view line) { return shell.line(line, "").code; }
};

TEST_F(PodShellTest, RunsProgramsAndTellsTheirCodes) {
  EXPECT_EQ(shell.run({"echo", "a", "b"}, "").out, "a b\n");
  EXPECT_EQ(shell.run({"/bin/hostname"}, "").out, "web-0\n");
  EXPECT_EQ(shell.run({"sh", "-c", "exit 7"}, "").code, 7);
  EXPECT_EQ(shell.run({"cat"}, "from outside").out, "from outside");
  const ShellResult none = shell.run({"nosuch"}, "");
  EXPECT_TRUE(none.not_found);
  EXPECT_EQ(code("false"), 1);
  EXPECT_EQ(shell.line("nosuch", "").err, "sh: nosuch: not found\n");
  EXPECT_EQ(code("nosuch"), 127);
}

TEST_F(PodShellTest, QuotesVariablesAndJoins) {
  EXPECT_EQ(out("echo \"$WHO ${WHO}x\" '$WHO' \\$WHO"), "me mex $WHO $WHO\n");
  EXPECT_EQ(out("false || echo a && echo b; true && echo c"), "a\nb\nc\n");
  EXPECT_EQ(out("false; echo $?"), "1\n");
  EXPECT_EQ(out("X=5; echo $X | cat"), "5\n");
  EXPECT_EQ(out("printf '%s-%s\\n' a b c d"), "a-b\nc-d\n");
  EXPECT_EQ(out("seq 5 | tail -n 2 | wc -l"), "2\n");
  EXPECT_EQ(out("echo a; exit 3; echo b"), "a\n");
}

TEST_F(PodShellTest, FilesStayInItsWorld) {
  EXPECT_EQ(out("mkdir -p /data/sub; echo one > /data/sub/f; echo two >> /data/sub/f; cat /data/sub/f"), "one\ntwo\n");
  PodShell later(world, "");
  EXPECT_EQ(later.line("cd /data; ls; cat sub/f | grep two", "").out, "sub\ntwo\n");
  EXPECT_EQ(code("test -f /data/sub/f && [ -d /data ] && [ ! -e /none ]"), 0);
  EXPECT_EQ(code("rm -r /data; test -e /data/sub/f"), 1);
  EXPECT_EQ(shell.line("cat /none 2>&1", "").out, "cat: can't open '/none': No such file or directory\n");
  EXPECT_EQ(out("cat ../../etc/hostname"), "web-0\n");
}

TEST_F(PodShellTest, SaysWhatItDoesNotKnow) {
  for (const char* line : {"for i in 1 2; do echo; done", "echo $(date)", "sleep 1 &", "echo 'open", "cat <"}) {
    const ShellResult result = shell.line(line, "");
    EXPECT_EQ(result.code, 2) << line;
    EXPECT_NE(result.err.find("syntax error"), std::string::npos) << line;
  }
}

TEST_F(PodShellTest, KnowsWhoReadsWhat) {
  EXPECT_TRUE(PodShell::is_interactive({"/bin/sh"}));
  EXPECT_TRUE(PodShell::is_interactive({"bash", "-i"}));
  EXPECT_FALSE(PodShell::is_interactive({"sh", "-c", "ls"}));
  EXPECT_TRUE(PodShell::wants_input({"cat"}));
  EXPECT_FALSE(PodShell::wants_input({"ls"}));
}

TEST_F(PodShellTest, NothingGrowsWithoutEnd) {
  EXPECT_LE(out("seq 100000000").size(), (1U << 20) + 100);
  for (int i = 0; i < 40; ++i) shell.line("seq 100000 >> /big", "");
  EXPECT_LE(world.files["/big"].size(), 1U << 20);
}

}  // namespace
}  // namespace berth::node::simulated
