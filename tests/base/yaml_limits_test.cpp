// YAML that grows when it is read (aliases of aliases, and of long texts), and bytes that are no text.
#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::json {
namespace {

TEST(YamlLimits, AliasBombsAreRefused) {
  std::string nodes = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    nodes += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) nodes += (k > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    nodes += "]\n";
  }
  EXPECT_FALSE(parse_yaml(nodes));
  std::string text = "a: &a \"" + std::string(1'000'000, 'x') + "\"\nb: [";
  for (int k = 0; k < 10'000; ++k) text += k > 0 ? ", *a" : "*a";
  EXPECT_FALSE(parse_yaml(text + "]\n"));
  EXPECT_FALSE(parse_yaml("a: &a [*a]\n"));
}

TEST(YamlLimits, WhatIsLongWithoutAliasesIsToldSo) {
  std::string list;
  for (int i = 0; i < 600'000; ++i) list += "- a\n";
  const auto document = parse_yaml(list);
  ASSERT_FALSE(document);
  EXPECT_NE(document.error().message.find("it has more than 500000 values"), std::string::npos) << document.error().message;
  std::string few = "a: &a [x]\nb: *a\nc:\n";
  for (int i = 0; i < 600'000; ++i) few += "- a\n";
  const auto aliased = parse_yaml(few);
  ASSERT_FALSE(aliased);
  EXPECT_NE(aliased.error().message.find("aliases"), std::string::npos) << aliased.error().message;
}

TEST(YamlLimits, TextThatIsNotUtf8IsRefused) {
  const auto document = parse_yaml("!J\xfe\xff\xff\xff:");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().message, "invalid YAML at line 1, column 1: it is not valid UTF-8");
}

TEST(YamlLimits, EscapesBecomeUtf8) {
  const auto document = parse_yaml("\"a\\_\": \"\xc3\xa0\\Nb\"");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(json::serialize(*document),
            "{\"a\xc2\xa0\":\"\xc3\xa0\xc2\x85"
            "b\"}");
}

TEST(YamlLimits, OrdinaryAliasesAreRead) {
  const auto document = parse_yaml("a: &a {x: 1}\nb: *a\nc: {<<: *a, z: 2}\n");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(json::serialize(*document), R"({"a":{"x":1},"b":{"x":1},"c":{"x":1,"z":2}})");
}

}  // namespace
}  // namespace berth::json
