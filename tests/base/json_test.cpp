#include "base/json.h"

#include <gtest/gtest.h>

namespace berth::json {
namespace {

TEST(Json, RoundTripKeepsOrderAndNumbers) {
  const std::string text = R"({"b":1,"a":[true,null,-5,1.5,"x\n\"é\\"],"big":18446744073709551615,"whole":3})";
  const auto value = json::parse(text);
  ASSERT_TRUE(value.has_value()) << value.error().message;
  EXPECT_EQ(json::serialize(*value), text);
  EXPECT_EQ(json::serialize(json::parse("1.0").value()), "1");
  EXPECT_EQ(json::serialize(json::parse("0.25").value()), "0.25");
}

TEST(Json, ErrorsNameThePlace) {
  EXPECT_NE(json::parse("{\n \"a\": tru }").error().message.find("line 2"), std::string::npos);
  EXPECT_FALSE(json::parse("").has_value());
  EXPECT_FALSE(json::parse("{} x").has_value());
  EXPECT_FALSE(json::parse("{\"a\":1").has_value());
  EXPECT_FALSE(json::parse("\"\xff\"").has_value());
  EXPECT_FALSE(json::parse(std::string(100'000, '[')).has_value());
}

TEST(Json, DuplicateKeysAreReportedWithTheirPath) {
  std::vector<std::string> duplicates;
  ParseOptions options;
  options.duplicates = &duplicates;
  const auto value = json::parse(R"({"a":{"x":1,"x":2},"l":[{"k":"}","k":1}],"a":3})", options);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(duplicates, (std::vector<std::string>{"a.x", "l[0].k", "a"}));
  EXPECT_EQ(json::get_int(*value, {"a"}), 3);
}

TEST(Json, FindSetEraseFollowPaths) {
  Value root = json::parse(R"({"spec":{"n":null,"s":"v","f":2.0}})").value();
  EXPECT_EQ(json::find(root, {"spec", "n"}), nullptr);
  EXPECT_EQ(get_string(root, {"spec", "s"}), "v");
  EXPECT_EQ(json::get_int(root, {"spec", "f"}), 2);
  EXPECT_EQ(json::get_int(root, {"spec", "s"}, 7), 7);
  set(root, {"status", "phase"}, "Running");
  EXPECT_EQ(get_string(root, {"status", "phase"}), "Running");
  EXPECT_TRUE(erase(root, {"spec", "s"}));
  EXPECT_FALSE(erase(root, {"spec", "s"}));
}

TEST(Json, EqualIgnoresKeyOrderAndNumberForm) {
  EXPECT_TRUE(json::equal(json::parse(R"({"a":1,"b":[2.0]})").value(), json::parse(R"({"b":[2],"a":1})").value()));
  EXPECT_FALSE(json::equal(json::parse("[1,2]").value(), json::parse("[2,1]").value()));
}

TEST(Yaml, ScalarsResolveAsInKubernetes) {
  const auto value = parse_yaml("a: yes\nb: \"yes\"\nc: 0o17\nd: 1e3\ne: 012\nf: ~\ng: 1_000\nh: 0x1F\ni: -5\nj: 1.10\nk: 100m\n");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(json::serialize(*value), R"({"a":true,"b":"yes","c":15,"d":1000,"e":10,"f":null,"g":1000,"h":31,"i":-5,"j":1.1,"k":"100m"})");
}

TEST(Yaml, StreamsAnchorsAndMergeKeys) {
  const auto documents = parse_yaml_stream("a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  l: 3\n---\n---\n- 1\n");
  ASSERT_TRUE(documents.has_value());
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ(json::serialize((*documents)[0]), R"({"a":{"k":1,"l":2},"b":{"k":1,"l":3}})");
}

TEST(Yaml, ErrorsNameLineAndColumn) {
  const auto value = parse_yaml("a: 1\nb: [1, 2\nc: 3\n");
  ASSERT_FALSE(value.has_value());
  EXPECT_NE(value.error().message.find("line "), std::string::npos);
  EXPECT_FALSE(parse_yaml("a: 1\n---\nb: 2\n").has_value());
}

TEST(Yaml, LongKeysStandAlone) {
  const std::string at(128, 'k'), longer(129, 'k'), control = std::string(1100, 'k') + "\t\x1c";
  EXPECT_EQ(to_yaml(Object{{at, 1}}), at + ": 1\n");
  EXPECT_EQ(to_yaml(Object{{longer, 1}}), "? " + longer + "\n: 1\n");
  EXPECT_EQ(to_yaml(Object{{"m", Object{{longer, Object{{"a", 1}, {"b", Array{2}}}}}}}),
            "m:\n  ? " + longer + "\n  : a: 1\n    b:\n    - 2\n");
  EXPECT_EQ(to_yaml(Object{{longer, Array{1, Object{{"c", 2}}}}}), "? " + longer + "\n: - 1\n  - c: 2\n");
  for (const Value& value : {Value(nullptr), Value("text"), Value(Object{{longer, Object{{longer, Array{1}}}}}), Value(Array{Array{1}, 2}),
                             Value(Object()), Value(Array()), Value("two\nlines")})
    for (const std::string& key : {longer, control}) {
      const Value document = Object{{"a", Object{{key, value}, {"z", 1}}}, {"l", Array{Object{{key, value}}, 2}}};
      const auto again = parse_yaml(to_yaml(document));
      ASSERT_TRUE(again) << to_yaml(document) << again.error().message;
      EXPECT_TRUE(equal(*again, document)) << to_yaml(document);
    }
}

TEST(Yaml, OutputReadsBackTheSame) {
  const Value value =
      json::parse(
          R"({"z":{"list":[{"name":"a","args":["--x=1","yes","1",""]},[1,2],[]],"empty":{}},"text":"one\ntwo\n","q":"a: b","t":"2026-01-01T00:00:00Z","star":"*","n":null})")
          .value();
  const std::string yaml = to_yaml(value);
  const auto back = parse_yaml(yaml);
  ASSERT_TRUE(back.has_value()) << back.error().message << "\n" << yaml;
  EXPECT_TRUE(json::equal(value, *back)) << yaml;
}

TEST(Yaml, AliasBombIsRefused) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    text += fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 10; ++k) text += fmt::format("{}*a{}", k == 0 ? "" : ",", i - 1);
    text += "]\n";
  }
  EXPECT_FALSE(parse_yaml(text).has_value());
}

}  // namespace
}  // namespace berth::json
