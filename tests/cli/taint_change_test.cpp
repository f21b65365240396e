// What `adm taint` understands (SPEC A8, D1).
#include "cli/verbs/taint_change.h"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

json::Value node(json::Array taints) { return {{"metadata", {{"name", "node1"}}}, {"spec", {{"taints", std::move(taints)}}}}; }
json::Value taint(const char* key, const char* value, const char* effect) { return {{"key", key}, {"value", value}, {"effect", effect}}; }

std::vector<TaintChange> changes(std::initializer_list<const char*> specs) {
  std::vector<TaintChange> out;
  for (const char* spec : specs) out.push_back(*parse_taint(spec));
  return out;
}

TEST(TaintChange, ASpecHasKeyValueEffectAndMayRemove) {
  const auto full = parse_taint("key1=value1:NoExecute");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->key, "key1");
  EXPECT_EQ(full->value, "value1");
  EXPECT_EQ(full->effect, "NoExecute");
  EXPECT_FALSE(full->remove);
  EXPECT_TRUE(parse_taint("key1:NoExecute-")->remove);
  EXPECT_TRUE(parse_taint("key1-")->effect.empty());
  for (const char* bad : {"key1=value1:Never", "key1=value1", ":NoSchedule", "=v:NoSchedule", "key1:Never-"}) {
    const auto refused = parse_taint(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().message.find(bad), std::string::npos) << refused.error().message;
  }
}

TEST(TaintChange, ATaintIsNotAddedAndRemovedAtOnce) {
  for (const auto& wrong :
       {changes({"a=b:NoSchedule", "a-"}), changes({"a-", "a=b:NoSchedule"}), changes({"a=b:NoSchedule", "a:NoSchedule-"})}) {
    const auto refused = check_together(wrong);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("can not both modify and remove the following taint(s) in the same command: a"),
              std::string::npos);
  }
  EXPECT_TRUE(check_together(changes({"a=b:NoSchedule", "a:NoExecute-", "c-"})));
}

TEST(TaintChange, ATaintIsNotAddedTwice) {
  EXPECT_FALSE(check_together(changes({"a=b:NoSchedule", "a=c:NoSchedule"})));
  EXPECT_TRUE(check_together(changes({"a=b:NoSchedule", "a=b:NoExecute"})));
}

TEST(TaintChange, AKeyAloneRemovesEveryEffect) {
  const auto now = node({taint("a", "b", "NoSchedule"), taint("a", "b", "NoExecute"), taint("c", "", "NoSchedule")});
  EXPECT_EQ(changed_taints(now, changes({"a-"}), false)->size(), 1u);
  EXPECT_EQ(changed_taints(now, changes({"a:NoExecute-"}), false)->size(), 2u);
  EXPECT_FALSE(changed_taints(now, changes({"x-"}), false)) << "what is not there cannot go";
}

TEST(TaintChange, ATaintThatIsThereIsReplacedOnlyWhenTold) {
  const auto now = node({taint("a", "b", "NoSchedule")});
  EXPECT_FALSE(changed_taints(now, changes({"a=x:NoSchedule"}), false));
  const auto replaced = changed_taints(now, changes({"a=x:NoSchedule"}), true);
  ASSERT_TRUE(replaced);
  ASSERT_EQ(replaced->size(), 1u);
  EXPECT_EQ(json::get_string((*replaced)[0], {"value"}), "x");
}

}  // namespace
}  // namespace berth::cli
