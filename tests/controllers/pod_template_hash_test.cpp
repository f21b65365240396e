// Hashes of pod templates and revisions, held against those that Kubernetes 1.36's own functions made of the same templates.
#include "controllers/pod_template_hash.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/source_dir.h"

namespace berth::controllers {
namespace {

/// pod_templates.jsonl: `HASH HASH-AT-COLLISION-1 TEMPLATE`, a template a line; every field of the types stands in some of them.
TEST(PodTemplateHash, IsKubernetesOwn) {
  std::ifstream in(berth::testing::source_dir() + "/tests/controllers/pod_templates.jsonl");
  ASSERT_TRUE(in);
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    const std::size_t first = line.find(' '), second = line.find(' ', first + 1);
    const auto pod_template = json::parse(std::string_view(line).substr(second + 1));
    ASSERT_TRUE(pod_template) << line;
    EXPECT_EQ(pod_template_hash(*pod_template, std::nullopt), line.substr(0, first)) << line << "\n" << dump_pod_template(*pod_template);
    EXPECT_EQ(pod_template_hash(*pod_template, 1), line.substr(first + 1, second - first - 1)) << line;
  }
  EXPECT_GT(lines, 140);
}

TEST(PodTemplateHash, EmptyAndUnknownFieldsAreNoDifference) {
  const auto hash = [](std::string_view text) { return pod_template_hash(*json::parse(text), std::nullopt); };
  const std::string plain = hash(R"({"spec":{"containers":[{"name":"c"}]}})");
  EXPECT_EQ(
      hash(R"({"metadata":{"labels":{},"creationTimestamp":null},"spec":{"volumes":[],"containers":[{"name":"c","wrong":1,"env":[]}]}})"),
      plain);
  EXPECT_NE(hash(R"({"spec":{"securityContext":{},"containers":[{"name":"c"}]}})"), plain);
  EXPECT_NE(pod_template_hash(*json::parse(R"({"spec":{"containers":[{"name":"c"}]}})"), 0), plain) << "a count of 0 is a count";
}

TEST(PodTemplateHash, NonsenseIsHashedToo) {
  for (const char* text :
       {"{}", "[]", "null", R"({"spec":"x","metadata":[]})", R"({"spec":{"containers":{"a":1},"priority":"x","overhead":{"cpu":5}}})",
        R"({"spec":{"overhead":{"cpu":"1e999999999999","memory":"99999999999999999999999999999999999999999999Ei"}}})"})
    EXPECT_FALSE(pod_template_hash(*json::parse(text), std::nullopt).empty()) << text;
}

}  // namespace
}  // namespace berth::controllers
