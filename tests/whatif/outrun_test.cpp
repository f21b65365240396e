// An answer is about a moment: it says which, and what has changed since can be asked.
#include "tests/whatif/dump.h"

namespace berth::whatif {
namespace {

using testing::Dump;
using testing::Words;

Dump shop(const std::string& second = "a2") {
  Dump dump;
  dump.node("a1", "a").node("a2", "a").node("b1", "b");
  dump.deployment("web", "1", {{.node = "a1"}, {.node = second}}).budget("web", "web", "minAvailable: 1");
  return dump;
}

Present present_of(const Dump& dump) {
  Present present(dump.options);
  for (const json::Value& object : dump.objects) present.add(object);
  EXPECT_TRUE(present.finish());
  return present;
}

json::Value look(const Dump& now, const json::Value& answer) {
  auto out = present_of(now).look_again(answer);
  if (!out) ADD_FAILURE() << out.error().message;
  return out ? *out : json::Value(json::Object{{"holds", true}});
}

Words lines(const json::Value& look, std::string_view key) {
  Words out;
  for (const json::Value& one : json::get_array(look, {key})) out.emplace_back(json::as_view(one));
  return out;
}

TEST(Outrun, AnAnswerSaysOfWhichMomentItIs) {
  Dump dump = shop();
  dump.yaml("{apiVersion: v1, kind: Namespace, metadata: {name: shop, resourceVersion: '417', creationTimestamp: '2026-01-01T09:00:00Z'}}");
  const json::Value answer = dump.ask("{changes: [{drain: a1}]}");
  EXPECT_EQ(json::get_string(answer, {"of", "revision"}), "417");
  EXPECT_EQ(json::get_string(answer, {"of", "newest"}), "2026-01-01T09:00:00Z");
  EXPECT_NE(to_text(answer).find("revision 417, the newest change at 2026-01-01T09:00:00Z"), std::string::npos);
  EXPECT_NE(to_html(answer).find("revision 417"), std::string::npos);
  EXPECT_EQ(json::get_string(json::get_array(answer, {"question", "changes"})[0], {"drain"}), "a1");
}

TEST(Outrun, OfAnUnchangedClusterEveryAnswerHolds) {
  for (const char* question : {"{changes: [{drain: a1}]}", "{changes: [{scale: shop/web, replicas: 9}]}", "{each: node}", "{pack: {}}"}) {
    Dump dump = shop();
    const json::Value seen = look(dump, dump.ask(question));
    EXPECT_TRUE(json::get_bool(seen, {"holds"})) << question << text_of_look(seen);
    EXPECT_EQ(lines(seen, "changed"), Words{}) << question;
  }
}

TEST(Outrun, WhatHasChangedOfWhatTheAnswerSpeaksOfIsSaid) {
  const json::Value answer = shop().ask("{changes: [{drain: a1}]}");
  ASSERT_EQ(testing::moves(answer), (Words{"web-1-0 a1>b1"}));
  Dump now;
  now.node("a1", "a").node("a2", "a").node("b1", "b", "4", "unschedulable: true");
  now.deployment("web", "1", {{.node = "a2"}, {.node = "a2"}}).budget("web", "web", "minAvailable: 2");
  const json::Value seen = look(now, answer);
  EXPECT_FALSE(json::get_bool(seen, {"holds"}));
  EXPECT_EQ(lines(seen, "changed"), (Words{"node a1 has 0 pods (was: 1)", "node b1 is cordoned", "pod shop/web-1-0 is on a2 (was on a1)",
                                           "poddisruptionbudget shop/web allows 0 evictions (was: 1)"}));
  EXPECT_EQ(lines(seen, "differences"), (Words{"no more: shop/web-1-0 goes to b1", "no more: shop/web-1-0 is evicted from a1"}));
}

TEST(Outrun, ANodeThatCameMayBeTheAnswerToAPodThatWaited) {
  const json::Value answer = shop().ask("{changes: [{scale: shop/web, replicas: 13}]}");
  ASSERT_EQ(testing::summary(answer, "pending"), 1);
  Dump now = shop();
  now.node("c1", "c");
  const json::Value seen = look(now, answer);
  EXPECT_FALSE(json::get_bool(seen, {"holds"}));
}

TEST(Outrun, AChangeThatAltersNothingLeavesTheAnswerItsWorth) {
  const json::Value answer = shop().ask("{changes: [{drain: a1}]}");
  Dump now = shop();
  now.yaml(
      "{apiVersion: v1, kind: Pod, metadata: {name: done, namespace: shop, uid: p-done}, spec: {nodeName: a1, containers: [{name: c}]}, "
      "status: {phase: Succeeded}}");
  const json::Value seen = look(now, answer);
  EXPECT_TRUE(json::get_bool(seen, {"holds"})) << text_of_look(seen);
}

TEST(Outrun, AnotherClusterIsTakenForOne) {
  const json::Value answer = shop().ask("{changes: [{drain: a1}]}");
  Dump other;
  other.node("x1", "a").node("x2", "a");
  const json::Value seen = look(other, answer);
  EXPECT_FALSE(json::get_bool(seen, {"holds"}));
  ASSERT_FALSE(lines(seen, "changed").empty());
  EXPECT_NE(lines(seen, "changed")[0].find("perhaps another cluster's"), std::string::npos);
  ASSERT_FALSE(lines(seen, "differences").empty());
  EXPECT_NE(lines(seen, "differences")[0].find("the question has no answer any more"), std::string::npos);
}

TEST(Outrun, APlanThatIsHalfDoneIsToldToBe) {
  const json::Value plan = shop().ask("{pack: {}}");
  EXPECT_GT(json::get_array(plan, {"pack", "steps"}).size(), 0U);
  Dump now;
  now.node("a1", "a", "4", "unschedulable: true").node("a2", "a").node("b1", "b");
  now.deployment("web", "1", {{.node = "b1"}, {.node = "a2"}}).budget("web", "web", "minAvailable: 1");
  const json::Value seen = look(now, plan);
  EXPECT_FALSE(json::get_bool(seen, {"holds"}));
  EXPECT_NE(text_of_look(seen).find("ask again before you act on it"), std::string::npos);
}

TEST(Outrun, WhatIsNoAnswerIsRefused) {
  Present present = present_of(shop());
  const auto seen = present.look_again(json::Value(json::Object{{"kind", "Pod"}}));
  ASSERT_FALSE(seen);
  EXPECT_NE(seen.error().message.find("this is no answer"), std::string::npos);
}

TEST(Losses, PartsOfThemPutTogetherAreTheWhole) {
  Dump dump = shop();
  for (int i = 0; i < 9; ++i) dump.node(fmt::format("n{}", i), i % 2 == 0 ? "a" : "b", "1");
  for (int i = 0; i < 7; ++i) dump.pod(fmt::format("bare-{}", i), "{}", "", "1", {.node = fmt::format("n{}", i)});
  dump.deployment("big", "4", {{.node = "b1"}});
  Present present = present_of(dump);
  for (const char* text :
       {"{each: node}", "{each: node, by: drain}", "{each: zone, by: remove}", "{changes: [{cordon: a2}], each: node}"}) {
    const auto questions = json::parse_yaml_stream(text);
    ASSERT_TRUE(questions) << questions.error().message;
    const json::Value& question = questions->front();
    const auto answer = present.ask(question);
    ASSERT_TRUE(answer) << text << answer.error().message;
    const std::string whole = json::serialize(*answer);
    for (const std::size_t count : {2UL, 3UL, 50UL}) {
      auto joined = present.ask(question, {0, count});
      ASSERT_TRUE(joined) << joined.error().message;
      for (std::size_t i = 1; i < count; ++i) {
        const auto part = present.ask(question, {i, count});
        ASSERT_TRUE(part) << part.error().message;
        join_losses(*joined, *part);
      }
      EXPECT_EQ(json::serialize(*joined), whole) << text << " in " << count;
    }
  }
}

}  // namespace
}  // namespace berth::whatif
