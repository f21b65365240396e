// The shell in memory that answers exec into simulated containers.
#include "node/simulated/shell.h"

#include <gtest/gtest.h>

namespace berth::node::simulated {
namespace {

struct ExecShell : testing::Test {
  ShellWorld world{.hostname = "web-0", .environment = {{"HOSTNAME", "web-0"}, {"HOME", "/root"}}, .files = {}};
  ShellResult sh(const std::string& text) { return run_words(world, {"sh", "-c", text}, "", "2026-01-01T00:00:00Z"); }
  std::string says(const std::string& text) { return sh(text).output; }
};

TEST_F(ExecShell, CommandsAnswerByThemselvesAndInAShell) {
  EXPECT_EQ(run_words(world, {"hostname"}, "", "").output, "web-0\n");
  EXPECT_EQ(says("echo hello world"), "hello world\n");
  EXPECT_EQ(run_words(world, {"/bin/sh", "-c", "echo $HOSTNAME"}, "", "").output, "web-0\n");
}

TEST_F(ExecShell, QuotesAndVariables) {
  EXPECT_EQ(says("A='x y'; echo \"$A\" '$A' ${A}z \"a\\\"b\""), "x y $A x yz a\"b\n");
  EXPECT_EQ(says("false; echo $?"), "1\n");
  EXPECT_EQ(says("printf '%s-%s\\n' a b"), "a-b\n");
}

TEST_F(ExecShell, ListsGoOnAsTheirSignsSay) {
  EXPECT_EQ(says("true && echo yes || echo no"), "yes\n");
  EXPECT_EQ(says("false && echo yes || echo no"), "no\n");
  EXPECT_EQ(says("false && echo a; echo b"), "b\n");
  EXPECT_EQ(sh("exit 3; echo never").exit_code, 3);
  EXPECT_EQ(says("exit 3; echo never"), "");
}

TEST_F(ExecShell, FilesStayFromOneExecToTheNext) {
  EXPECT_EQ(sh("mkdir -p /data && echo one >/data/a && echo two >>/data/a").exit_code, 0);
  EXPECT_EQ(says("cat /data/a"), "one\ntwo\n");
  EXPECT_EQ(says("wc -l </data/a"), "2\n");
  EXPECT_EQ(says("cat /data/a | grep two"), "two\n");
  EXPECT_EQ(says("cd /data; pwd; ls | grep a"), "/data\na\n");
  EXPECT_EQ(sh("test -f /data/a").exit_code, 0);
  EXPECT_EQ(sh("rm /data/a && test -f /data/a").exit_code, 1);
}

TEST_F(ExecShell, WhatIsNotThereIsSaid) {
  const ShellResult unknown = sh("apt-get update");
  EXPECT_EQ(unknown.exit_code, 127);
  EXPECT_EQ(unknown.errors, "sh: apt-get: not found\n");
  const ShellResult missing = sh("cat /nothing");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.errors, "cat: /nothing: No such file or directory\n");
  EXPECT_EQ(sh("cat /nothing 2>/dev/null").errors, "");
}

TEST_F(ExecShell, InputIsRead) {
  EXPECT_EQ(run_words(world, {"cat"}, "in\n", "").output, "in\n");
  EXPECT_TRUE(reads_commands({"/bin/sh"}));
  EXPECT_FALSE(reads_commands({"sh", "-c", "ls"}));
  EXPECT_FALSE(reads_commands({"ls"}));
}

TEST_F(ExecShell, NonsenseEndsToo) {
  for (const char* text : {"'", "\"", "$", "${", ">", "a >", "| |", "&&", "\\", "echo $(x)", "sh -c 'sh -c \"sh\"'"}) (void)sh(text);
  std::string deep = "echo x";
  for (int i = 0; i < 20; ++i) deep = "sh -c " + deep;
  EXPECT_LT(sh(deep).output.size(), 100U);
}

}  // namespace
}  // namespace berth::node::simulated
