// What of an answer depends on the order in which pods arrive that lost their node.
#include "tests/whatif/dump.h"

namespace berth::whatif::testing {
namespace {

const json::Value& orders_of(const json::Value& answer) {
  static const json::Value kNone;
  const json::Value* out = json::find(answer, "orders");
  return out == nullptr ? kNone : *out;
}

/// One pod of 3 cores and two of 2 are lost, where there is room on 4 and on 3: who comes last stays out, the large one or a small one.
Dump contested() {
  Dump dump;
  dump.node("a1", "a", "8").node("b1", "b", "4").node("c1", "c", "3");
  return std::move(dump.deployment("big", "3", {{"a1"}}).deployment("small", "2", {{"a1"}, {"a1"}}));
}

TEST(Orders, WhoIsLeftOverInOneOrderAloneIsUndecided) {
  const json::Value answer = contested().ask("{changes: [{fail: a1}]}");
  const json::Value& orders = orders_of(answer);
  EXPECT_EQ(json::get_int(orders, {"tried"}), 4);
  EXPECT_EQ(json::get_int(orders, {"pendingLeast"}), 1);
  EXPECT_EQ(json::get_int(orders, {"pendingMost"}), 1);
  const json::Array& undecided = json::get_array(orders, {"undecided"});
  ASSERT_EQ(undecided.size(), 2U) << json::serialize(orders);
  EXPECT_EQ(json::get_string(undecided[0], {"pods"}), "shop/big-1");
  EXPECT_EQ(json::get_int(undecided[0], {"pendingLeast"}), 0);
  EXPECT_EQ(json::get_int(undecided[0], {"pendingMost"}), 1);
  EXPECT_EQ(json::get_string(undecided[1], {"pods"}), "shop/small-1");
  EXPECT_LT(json::get_int(orders, {"placesInAll"}), json::get_int(orders, {"places"}));
  EXPECT_NE(
      to_text(answer).find("The order of arrival decides who stays pending: 1 in 4 orders of arrival that were played (shop/big-1 0 to "
                           "1, shop/small-1 0 to 1).\n"),
      std::string::npos)
      << to_text(answer);
}

TEST(Orders, ReplicasStandForEachOther) {
  Dump dump;
  dump.node("a1", "a", "8").node("b1", "b", "2").deployment("web", "1", {{"a1"}, {"a1"}, {"a1"}});
  const json::Value answer = dump.ask("{changes: [{fail: a1}]}");
  const json::Value& orders = orders_of(answer);
  EXPECT_TRUE(json::get_array(orders, {"undecided"}).empty()) << json::serialize(orders);
  EXPECT_EQ(json::get_int(orders, {"places"}), 2);
  EXPECT_EQ(json::get_int(orders, {"placesInAll"}), 2);
  EXPECT_NE(to_text(answer).find("The same stay pending in all 4 orders of arrival"), std::string::npos) << to_text(answer);
}

TEST(Orders, AsManyAsAreWantedAndNoneWhereNothingIsOpen) {
  EXPECT_EQ(json::get_int(orders_of(contested().ask("{changes: [{fail: a1}], orders: 9}")), {"tried"}), 10);
  EXPECT_TRUE(orders_of(contested().ask("{changes: [{fail: a1}], orders: 0}")).is_null());
  EXPECT_TRUE(orders_of(contested().ask("{each: node}")).is_null());
  Dump one;
  one.node("a1", "a").node("b1", "b").deployment("web", "1", {{"a1"}});
  EXPECT_TRUE(orders_of(one.ask("{changes: [{fail: a1}]}")).is_null());
  for (const char* wrong : {"51", "-1", "2.5", "many"}) {
    const auto answer = contested().try_ask(fmt::format("{{changes: [{{fail: a1}}], orders: {}}}", wrong));
    ASSERT_FALSE(answer.has_value()) << wrong;
    EXPECT_EQ(answer.error().message.substr(0, 38), "orders: a whole number from 0 to 50 is") << answer.error().message;
  }
}

}  // namespace
}  // namespace berth::whatif::testing
