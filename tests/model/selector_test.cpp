#include "model/selector.h"

#include <gtest/gtest.h>

#include "model/api_status.h"

namespace berth::model {
namespace {

Labels labels(std::vector<std::pair<std::string, std::string>> pairs) { return Labels(std::move(pairs)); }

bool matches(std::string_view selector, const Labels& object) {
  const auto parsed = Selector::parse(selector);
  EXPECT_TRUE(parsed) << selector;
  return parsed && parsed->matches(object);
}

TEST(Selector, ParsesTheQueryParameter) {
  const auto web = labels({{"app", "web"}, {"tier", "front"}, {"gen", "7"}});
  EXPECT_TRUE(matches("", web));
  EXPECT_TRUE(matches("app=web", web));
  EXPECT_TRUE(matches("app==web,tier!=back", web));
  EXPECT_TRUE(matches("app in (db, web)", web));
  EXPECT_FALSE(matches("app notin (db,web)", web));
  EXPECT_TRUE(matches("missing notin (a)", web));
  EXPECT_TRUE(matches("app, !missing", web));
  EXPECT_FALSE(matches("!app", web));
  EXPECT_TRUE(matches("gen>6,gen<8", web));
  EXPECT_FALSE(matches("app>6", web));
  EXPECT_TRUE(matches("x=", labels({{"x", ""}})));
}

TEST(Selector, RefusesBadSyntax) {
  for (const char* text : {"a in", "a in (", "a in (b", "=b", "a=b,", "a b", "a in ()x", "!", "a>x", "-a=b", "a=b c"})
    EXPECT_FALSE(Selector::parse(text)) << text;
}

TEST(Selector, WhatIsSaidOfABadOneIsNoProductOfItsParts) {
  // A long key that is wrong is named with each of many values that are wrong.
  std::string text = "~" + std::string(20'000, 'k') + " in (";
  for (int i = 0; i < 15'000; ++i) text += fmt::format("~{},", i);
  const auto parsed = Selector::parse(text + "~)");
  ASSERT_FALSE(parsed);
  EXPECT_GT(parsed.error().message.size(), 20'000U);
  EXPECT_LT(parsed.error().message.size(), 200'000U);
}

TEST(ApiStatus, AMessageIsCutWhereNobodyReadsOn) {
  ApiStatus status;
  status.code = 400;
  status.message = "x" + std::string(10, 'y');
  EXPECT_EQ(json::get_string(status.to_json(), {"message"}), status.message);
  status.message = "x";
  for (int i = 0; i < 200'000; ++i) status.message += "\u00e9";
  const json::Value document = status.to_json();
  const auto message = json::get_string(document, {"message"});
  EXPECT_LE(message.size(), 256U * 1024 + 3);
  EXPECT_TRUE(message.ends_with("\u00e9...")) << "not within a letter";
}

TEST(Selector, PrintsWhatItParses) { EXPECT_EQ(Selector::parse("b=1,a in (y,x),!c,d")->to_string(), "a in (x,y),b=1,!c,d"); }

TEST(Selector, ReadsLabelSelectors) {
  EXPECT_TRUE(Selector::from_label_selector(nullptr)->is_nothing());
  const json::Value empty = json::Object{};
  EXPECT_TRUE(Selector::from_label_selector(&empty)->is_everything());
  const auto selector =
      json::parse(R"({"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"NotIn","values":["x"]}]})");
  EXPECT_TRUE(Selector::from_label_selector(&*selector)->matches(labels({{"app", "web"}})));
  EXPECT_FALSE(Selector::from_label_selector(&*selector)->matches(labels({{"app", "web"}, {"tier", "x"}})));
  const auto bad = json::parse(R"({"matchExpressions":[{"key":"tier","operator":"Near","values":["x"]}]})");
  EXPECT_EQ(Selector::from_label_selector(&*bad).error().message, "\"Near\" is not a valid label selector operator");
}

TEST(Labels, KeepsTheLastOfEqualKeys) { EXPECT_EQ(*labels({{"a", "1"}, {"b", "2"}, {"a", "3"}}).get("a"), "3"); }

TEST(FieldSelector, ParsesTerms) {
  const auto parsed = FieldSelector::parse(R"(spec.nodeName=a,status.phase!=Failed,x==b\,c)");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->terms.size(), 3U);
  EXPECT_TRUE(parsed->terms[0].equals);
  EXPECT_FALSE(parsed->terms[1].equals);
  EXPECT_EQ(parsed->terms[2].value, "b,c");
  EXPECT_FALSE(FieldSelector::parse("spec.nodeName"));
}

}  // namespace
}  // namespace berth::model
