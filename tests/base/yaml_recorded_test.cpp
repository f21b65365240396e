// YAML beside the library of Kubernetes: recorded answers (tests/base/recorded/README.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/yaml.h"
#include "tests/support/source_dir.h"

namespace berth::json {
namespace {

std::vector<Value> recorded() {
  std::vector<Value> out;
  std::ifstream in(testing::source_dir() + "/tests/base/recorded/yaml.jsonl");
  for (std::string line; std::getline(in, line);) out.push_back(parse(line).value());
  return out;
}

/// Keys sorted, as Go writes maps.
Value sorted(Value value) {
  if (auto* list = value.if_array()) {
    for (auto& element : *list) element = sorted(std::move(element));
  } else if (auto* object = value.if_object()) {
    std::map<std::string, Value> members;
    for (auto& [key, member] : *object) members.emplace(std::string(key), sorted(std::move(member)));
    object->clear();
    for (auto& [key, member] : members) (*object)[key] = std::move(member);
  }
  return value;
}

class YamlRecorded : public ::testing::TestWithParam<std::size_t> {
 protected:
  static inline const std::vector<Value> all = recorded();
};

TEST_P(YamlRecorded, IsReadAndPrintedAlike) {
  const Value& wanted = all.at(GetParam());
  const auto text = get_string(wanted, {"text"});
  SCOPED_TRACE(text);
  const auto read = read_first_yaml(text);
  if (const auto error = get_string(wanted, {"error"}); !error.empty()) {
    ASSERT_FALSE(read) << json::serialize(*read);
    EXPECT_EQ(read.error().go_words, error);
    return;
  }
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(json::serialize(sorted(*read)), get_string(wanted, {"json"}));
  EXPECT_EQ(to_yaml(*read), get_string(wanted, {"yaml"}));
}

INSTANTIATE_TEST_SUITE_P(Case, YamlRecorded, ::testing::Range<std::size_t>(0, 313));

TEST(YamlRecorded, NoCaseIsLeftOut) { EXPECT_EQ(recorded().size(), 313u); }

TEST(YamlPlaces, KeysAndEntriesHaveLinesAndRepeatedKeysAreTold) {
  std::vector<YamlPlaces> all;
  ASSERT_TRUE(read_yaml("# head\na:\n  b.c: 1\n  list:\n  - x: 1\n  - k: 2\n    k: 3\na: 4\n---\n---\nb: 1\n", &all));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].lines.at("b"), 11u);
  const YamlPlaces& places = all[0];
  EXPECT_EQ(places.lines.at(""), 2u);
  EXPECT_EQ(places.lines.at("a"), 8u);  // The last of two.
  EXPECT_EQ(places.lines.at("a.b.c"), 3u);
  EXPECT_EQ(places.lines.at("a.list[1]"), 6u);
  EXPECT_EQ(places.lines.at("a.list[1].k"), 7u);
  EXPECT_EQ(places.repeated, (std::vector<std::string>{"a.list[1].k", "a"}));
}

TEST(YamlFaults, AreToldWithLineAndColumnAndAsKubernetesTellsThem) {
  const auto read = read_yaml("a: 1\nb: c: d\n");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(), "invalid YAML at line 2, column 5: mapping values are not allowed in this context");
  EXPECT_EQ(read.error().go_words, "yaml: line 2: mapping values are not allowed in this context");
}

}  // namespace
}  // namespace berth::json
