#include "base/json_scan.h"

#include <gtest/gtest.h>

#include <random>

namespace berth::json {
namespace {

TEST(JsonScan, FindsValuesAtPaths) {
  PathScanner scanner({"metadata.name", "metadata.labels", "spec.nodeName", "spec", "gone.x"});
  std::array<std::string_view, 5> values;
  ASSERT_TRUE(scanner.scan(
      R"( {"kind":"Pod","metadata":{"labels":{"a":"}\"]"},"name":"p\n1"},"spec":{"list":[1,{"nodeName":"no"}],"nodeName":"n1"}} )",
      values));
  EXPECT_EQ(unquote(values[0]), "p\n1");
  EXPECT_EQ(values[1], R"({"a":"}\"]"})");
  EXPECT_EQ(values[2], R"("n1")");
  EXPECT_EQ(values[3], R"({"list":[1,{"nodeName":"no"}],"nodeName":"n1"})");
  EXPECT_TRUE(values[4].empty());
}

TEST(JsonScan, KeysMayBeEscapedAndLastOneWins) {
  PathScanner scanner({"a"});
  std::array<std::string_view, 1> values;
  ASSERT_TRUE(scanner.scan(R"({"a":1,"\u0061":2})", values));
  EXPECT_EQ(values[0], "2");
}

TEST(JsonScan, MalformedTextIsRefusedWithoutOverrun) {
  PathScanner scanner({"a.b"});
  std::array<std::string_view, 1> values;
  const std::string good = R"({"a":{"b":"x\"y","c":[1,2,{"d":null}]},"e":true})";
  ASSERT_TRUE(scanner.scan(good, values));
  for (std::size_t n = 0; n < good.size(); ++n) {
    std::string cut = good.substr(0, n);
    EXPECT_FALSE(scanner.scan(std::string_view(cut.data(), cut.size()), values)) << cut;
  }
  for (const char* text : {"", "null", "[]", "{\"a\"}", "{\"a\":}", "{,}", "{\"a\":1 \"b\":2}", "{\"a\":\"\\"})
    EXPECT_FALSE(scanner.scan(text, values)) << text;
}

TEST(JsonScan, LongTextsOfEveryLengthAreSkippedWhole) {
  PathScanner scanner({"z"});
  std::array<std::string_view, 1> values;
  for (std::size_t n = 0; n < 70; ++n) {
    std::string fill(n, 'x');
    std::string text =
        R"({"a":")" + fill + R"(\"]}","b":[{"c":")" + fill + R"("},[)" + std::string(n, ' ') + R"(]],"z":")" + fill + R"("})";
    ASSERT_TRUE(scanner.scan(text, values)) << text;
    EXPECT_EQ(values[0], "\"" + fill + "\"");
    EXPECT_FALSE(scanner.scan(std::string_view(text).substr(0, text.size() - 1), values));
    EXPECT_FALSE(scanner.scan(std::string_view(text).substr(0, 6 + n), values));
  }
}

TEST(JsonScan, UnquoteDecodesEscapes) {
  EXPECT_EQ(unquote(R"("\u00e9\ud83d\ude00\/\\\"\t")"), "é😀/\\\"\t");
  EXPECT_EQ(unquote("12"), "");
  bool ok = false;
  EXPECT_EQ(unquote_plain("\"abc\"", ok), "abc");
  EXPECT_TRUE(ok);
  unquote_plain("\"a\\nb\"", ok);
  EXPECT_FALSE(ok);
}

TEST(JsonScan, MembersAndElementsInOrder) {
  std::vector<std::string> seen;
  EXPECT_TRUE(for_each_member(R"({"x":1,"y":[2,3]})", [&](auto k, auto v) { seen.push_back(std::string(k) + "=" + std::string(v)); }));
  EXPECT_TRUE(for_each_element(R"([1, "a" ,{"b":2}])", [&](auto v) { seen.emplace_back(v); }));
  EXPECT_EQ(seen, (std::vector<std::string>{"\"x\"=1", "\"y\"=[2,3]", "1", "\"a\"", "{\"b\":2}"}));
  EXPECT_FALSE(for_each_member("[1]", [](auto, auto) {}));
  EXPECT_FALSE(for_each_element("{}", [](auto) {}));
}

std::string random_json(std::mt19937& random, int depth) {
  const auto roll = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  static constexpr std::string_view kPieces[] = {"a", "\\\\", "\\\"", "{",       "}", "[",
                                                 "]", ",",    ":",    "\\u00e9", "é", "some longer text without anything"};
  const auto text = [&] {
    std::string out = "\"";
    for (unsigned i = roll(12); i > 0; --i) out += kPieces[roll(12)];
    return out + "\"";
  };
  switch (depth > 6 ? roll(3) : roll(6)) {
    case 0:
      return text();
    case 1:
      return std::to_string(random());
    case 2:
      return "null";
    case 3:
    case 4: {
      std::string out = "{";
      for (unsigned i = roll(6); i > 0; --i) out += "\"k" + std::to_string(i) + "\":" + random_json(random, depth + 1) + (i > 1 ? "," : "");
      return out + "}";
    }
    default: {
      std::string out = "[";
      for (unsigned i = roll(6); i > 0; --i) out += random_json(random, depth + 1) + (i > 1 ? ", " : "");
      return out + "]";
    }
  }
}

TEST(JsonScan, SlicesAreExactInLongTexts) {
  std::mt19937 random(5);
  const PathScanner scanner({"a", "c.d"});
  for (int round = 0; round < 3000; ++round) {
    const auto a = random_json(random, 0), b = random_json(random, 0), d = random_json(random, 0);
    const auto text = "{\"a\":" + a + ",\"b\":" + b + ",\"c\":{\"x\":" + b + ",\"d\":" + d + "}}";
    std::array<std::string_view, 2> values;
    ASSERT_TRUE(scanner.scan(text, values)) << text;
    EXPECT_EQ(values[0], a);
    EXPECT_EQ(values[1], d);
    const auto cut = text.substr(0, random() % text.size());
    EXPECT_FALSE(scanner.scan(cut, values));
  }
}

}  // namespace
}  // namespace berth::json
