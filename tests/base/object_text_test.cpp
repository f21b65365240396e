// A dump of a cluster is read object by object, and is then what it is when read as a whole.
#include "base/object_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/config_reader.h"
#include "base/yaml_plain.h"

namespace berth::config {
namespace {

std::vector<json::Value> objects_of(std::string_view text, std::string_view word = {}) {
  std::vector<json::Value> out;
  Notes notes;
  const auto read = for_each_object(
      text, [&](json::Value object) { out.push_back(std::move(object)); }, notes, word);
  EXPECT_TRUE(read) << read.error().message;
  EXPECT_TRUE(notes.empty()) << notes.front();
  return out;
}

std::string error_of(std::string_view text) {
  Notes notes;
  const auto read = for_each_object(
      text, [](json::Value) {}, notes);
  return read ? "" : read.error().message;
}

std::string pod_yaml(int number, std::string_view indent) {
  std::string out;
  for (const auto& line :
       {fmt::format("- apiVersion: v1"), fmt::format("  kind: Pod"), fmt::format("  metadata:"), fmt::format("    name: pod-{}", number),
        fmt::format("    annotations:"), fmt::format("      note: 'it''s {}'", number), fmt::format("      script: |"),
        fmt::format("        - not an item"), fmt::format("        kind: Secret"), fmt::format("  spec:"), fmt::format("    containers:"),
        // Every hundredth is not as kubectl writes it.
        fmt::format("    - args: {}", number % 100 == 11 ? "[\"- x\", y]" : "[]"), fmt::format("      name: main"),
        fmt::format("      image: \"registry.example/app:{}\"", number)})
    out += fmt::format("{}{}\n", indent, line);
  return out;
}

/// As kubectl prints it: what the list is stands behind its items.
std::string big_list(int pods, std::string_view indent = "") {
  std::string out = "apiVersion: v1\nitems:\n";
  for (int i = 0; i < pods; ++i) out += pod_yaml(i, indent);
  return out + "kind: List\nmetadata:\n  resourceVersion: \"\"\n";
}

constexpr int kMany = 6000;  // More than a megabyte.

TEST(ObjectText, ABigListIsReadItemByItem) {
  for (const std::string indent : {"", "  "}) {
    const std::string text = big_list(kMany, indent);
    ASSERT_GT(text.size(), 1U << 20);
    const auto objects = objects_of(text);
    ASSERT_EQ(objects.size(), static_cast<std::size_t>(kMany));
    const auto alone = json::parse_yaml_stream(pod_yaml(4711, ""));
    ASSERT_TRUE(alone);
    EXPECT_EQ(objects[4711], (*alone)[0].get_array()[0]);
  }
}

TEST(ObjectText, MoreThanTheAliasLimitAllowsIsReadWhereThereAreNoAliases) {
  const auto objects = objects_of(big_list(40'000));
  EXPECT_EQ(objects.size(), 40'000U);
}

TEST(ObjectText, ItemsOfATypedListGetItsKind) {
  std::string text = "apiVersion: v1\nitems:\n";
  for (int i = 0; i < 30'000; ++i) text += fmt::format("- metadata:\n    name: node-{}\n    labels: {{a: b}}\n", i);
  text += "kind: NodeList\n";
  const auto objects = objects_of(text);
  ASSERT_EQ(objects.size(), 30'000U);
  EXPECT_EQ(json::get_string(objects[29'999], {"kind"}), "Node");
  EXPECT_EQ(json::get_string(objects[29'999], {"apiVersion"}), "v1");
}

TEST(ObjectText, DocumentsBeforeAndBehindAListAreThere) {
  const auto objects =
      objects_of("kind: Node\nmetadata: {name: first}\n---\n" + big_list(kMany) + "...\n---\nkind: Node\nmetadata:\n  name: last\n");
  ASSERT_EQ(objects.size(), kMany + 2U);
  EXPECT_EQ(json::get_string(objects.front(), {"metadata", "name"}), "first");
  EXPECT_EQ(json::get_string(objects.back(), {"metadata", "name"}), "last");
}

TEST(ObjectText, AnErrorTellsTheLineOfTheWholeText) {
  std::string text = big_list(kMany);
  const auto at = text.find("    name: pod-5000\n");
  text.replace(at, 18, "    name: pod: 5000");
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  EXPECT_NE(error_of(text).find(fmt::format("line {}", line)), std::string::npos) << error_of(text);
}

TEST(ObjectText, AnAnchorOfAnotherItemIsFound) {
  std::string text = "apiVersion: v1\nitems:\n- kind: Node\n  metadata: &m {name: a}\n- kind: Node\n  metadata: *m\n";
  for (int i = 0; i < kMany; ++i) text += pod_yaml(i, "");
  // As a whole it is within the limit.
  const auto objects = objects_of(text + "kind: List\n");
  ASSERT_EQ(objects.size(), kMany + 2U);
  EXPECT_EQ(json::get_string(objects[1], {"metadata", "name"}), "a");
}

TEST(ObjectText, ACutOffListIsSaid) {
  std::string text = "apiVersion: v1\nitems:\n";
  for (int i = 0; i < 70; ++i) text += pod_yaml(i, "") + "  pad: " + std::string(1 << 20, 'x') + "\n";
  EXPECT_NE(error_of(text).find("cut off"), std::string::npos);
}

TEST(ObjectText, WhatLacksTheWordMayBeLeftOut) {
  std::string text = "apiVersion: v1\nitems:\n- kind: ConfigMap\n  metadata:\n    name: c\n";
  for (int i = 0; i < kMany; ++i) text += pod_yaml(i, "");
  EXPECT_EQ(objects_of(text + "kind: List\n", "ConfigMap").size(), 1U);
}

TEST(ObjectText, ABigJsonListIsReadItemByItem) {
  const auto list_of = [](int pods, std::string_view end) {
    std::string out = R"({"apiVersion":"v1","items":[)";
    for (int i = 0; i < pods; ++i)
      out += fmt::format(R"({}{{"metadata":{{"name":"node-{}","annotations":{{"x":"]}}\"","pad":"{}"}}}}}})", i == 0 ? "" : ",\n", i,
                         std::string(80, 'x'));
    return out + std::string(end);
  };
  const auto objects = objects_of(list_of(20'000, R"(],"kind":"NodeList"})"));
  ASSERT_EQ(objects.size(), 20'000U);
  EXPECT_EQ(json::get_string(objects[19'999], {"kind"}), "Node");
  EXPECT_EQ(json::get_string(objects[19'999], {"metadata", "annotations", "x"}), "]}\"");
  EXPECT_FALSE(error_of(list_of(20'000, "")).empty());
  EXPECT_FALSE(error_of(list_of(20'000, R"(],"kind":"NodeList")")).empty());
  EXPECT_NE(error_of(list_of(20'000, R"(,{"a":nonsense}],"kind":"List"})")).find("item 20001 of the list, at line 20000"),
            std::string::npos);
}

TEST(PlainYaml, IsWhatTheParserMakesOfIt) {
  for (const std::string_view text :
       {"a: 1\n", "a:\n  b: x\n  c:\n  - 1\n  - d: e\n    f: null\n  - - 1\n    - 2\ng: 'it''s'\n",
        "a: \"0\"\nb: 0x1f\nc: yes\nd: 1_000\ne: -1\n", "- a\n- b: 1\n- c:\n  - d\n  e:\n",
        "a: |\n  x\n    y\n\n  z\nb: |-\n  one\n\n\nc: {}\nd: []\n", "a:b: c\nurl: http://x:80/y\nm: a, b [c] \"d\"\n", "a: 1\na: 2\n",
        "e: 1e3\nf: .5\ng: 017\nh: 2026-01-01\n", "k8s.io/a: b\n? : c\n", "a: ~\nb: Null\nc: n\n", "a: \"b\\n\\\"c\\\\ \\td\"\nb: \"\"\n",
        "a: \"b\\\"\n", "a: \"b\\\\\"\n"}) {
    const auto plain = json::parse_plain_yaml(text);
    const auto parsed = json::parse_yaml_stream(text);
    if (plain) {
      ASSERT_TRUE(parsed) << text;
      ASSERT_EQ(parsed->size(), 1U) << text;
      EXPECT_EQ(*plain, (*parsed)[0]) << text;
    }
  }
  EXPECT_TRUE(json::parse_plain_yaml("a:\n  b: x\n  c:\n  - 1\n  - d: e\n    f: null\n"));
  EXPECT_TRUE(json::parse_plain_yaml("a: \"b\\n\\\"c\\\\\"\n"));
  EXPECT_TRUE(json::parse_plain_yaml("a: |\n  x\n    y\n\n  z\nb: |-\n  one\n\n\nc: {}\n"));
}

TEST(PlainYaml, LeavesTheRestToTheParser) {
  for (const std::string_view text :
       {"a: b\n c\n",    "a: \"\\x41\"\n", "a: \"b\n  c\"\n", "a: b # c\n", "a: &x b\n", "a: *x\n",   "a: !!str 1\n",    "a: >\n  b\n",
        "a: |2\n   b\n", "a: {b: c}\n",    "a: [b]\n",        "\"a\": b\n", "a: b: c\n", "a:\tb\n",   "a: b \n",         "---\na: b\n",
        "# c\na: b\n",   "a: b\n\nc: d\n", "a: ü\n",          "<<: b\n",    "null: b\n", "a:\n  b\n", "a: 1\n   b: 2\n", "- a\nb: 1\n",
        "a: 1\n- b\n",   "a: |\n\n  b\n",  "a: |\n  b",       "a: '\n",     "- \n",      "",          "a: \"b\" c\n",    "a\n",
        "a: b\n  c: d\n"})
    EXPECT_FALSE(json::parse_plain_yaml(text)) << text;
}

/// Bytes of plain YAML changed at random: whatever is still taken is what the parser makes of it.
TEST(PlainYaml, ChangedTextsAreTakenAsTheParserTakesThemOrNotAtAll) {
  const std::string base =
      pod_yaml(7, "") + "  status:\n    conditions:\n    - status: \"True\"\n      type: Ready\n    phase: Running\n    count: 12\n";
  constexpr std::string_view kBytes = " \n-:'\"#|>&*!{}[],?%@`~0x.ey\\";
  std::uint64_t state = 42;
  const auto draw = [&](std::size_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  std::size_t taken = 0;
  for (int round = 0; round < 8'000; ++round) {
    std::string text = base;
    for (std::size_t changes = 1 + draw(3); changes > 0; --changes) {
      const std::size_t at = draw(text.size());
      switch (draw(3)) {
        case 0:
          text[at] = kBytes[draw(kBytes.size())];
          break;
        case 1:
          text.erase(at, 1);
          break;
        default:
          text.insert(at, 1, kBytes[draw(kBytes.size())]);
      }
    }
    const auto plain = json::parse_plain_yaml(text);
    if (!plain) continue;
    ++taken;
    const auto parsed = json::parse_yaml_stream(text);
    ASSERT_TRUE(parsed) << text << parsed.error().message;
    ASSERT_EQ(parsed->size(), 1U) << text;
    ASSERT_EQ(*plain, (*parsed)[0]) << text;
  }
  EXPECT_GT(taken, 1000U);
}

TEST(ObjectText, WhatFailsWhereItEndsSeemsToBeCutOff) {
  const std::string json = R"({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Node", "metadata": {"name": "a"}}]})";
  EXPECT_TRUE(error_of(json.substr(0, json.size() - 8)).ends_with("the file seems to be cut off"));
  const std::string yaml = "apiVersion: v1\nitems:\n- kind: Node\n  metadata:\n    name: a\nkind: List\n";
  EXPECT_EQ(error_of(yaml), "");
  const std::string cut = yaml.substr(0, yaml.find("name: a")) + "name: a\n    lab";
  EXPECT_TRUE(error_of(cut).ends_with("the file seems to be cut off")) << error_of(cut);
  EXPECT_EQ(error_of("apiVersion: v1\nkind Node\nmetadata:\n  name: a\n  labels: {}\n").find("cut off"), std::string::npos);
}

}  // namespace
}  // namespace berth::config
