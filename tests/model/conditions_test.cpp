#include "model/conditions.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TimePoint at(int second) { return *parse_rfc3339(fmt::format("2030-01-01T00:00:{:02}Z", second)); }

TEST(Conditions, TheTimeMovesWithTheStatusAlone) {
  json::Value document = json::Object();
  EXPECT_TRUE(set_condition(document, {"Ready", "True", "Up", "it is up"}, at(1)));
  EXPECT_EQ(json::serialize(*json::find(document, {"status", "conditions"})),
            R"([{"type":"Ready","status":"True","lastTransitionTime":"2030-01-01T00:00:01Z","reason":"Up","message":"it is up"}])");
  EXPECT_FALSE(set_condition(document, {"Ready", "True", "Up", "it is up"}, at(2)));
  EXPECT_TRUE(set_condition(document, {"Ready", "True", "Up", "it is still up"}, at(3)));
  EXPECT_EQ(json::get_string(*find_condition(document, "Ready"), {"lastTransitionTime"}), "2030-01-01T00:00:01Z");
  EXPECT_TRUE(set_condition(document, {"Ready", "False", "Up", "it is still up", 7}, at(4)));
  EXPECT_EQ(condition_status(document, "Ready"), "False");
  EXPECT_EQ(json::get_string(*find_condition(document, "Ready"), {"lastTransitionTime"}), "2030-01-01T00:00:04Z");
  EXPECT_EQ(json::get_int(*find_condition(document, "Ready"), {"observedGeneration"}), 7);
}

TEST(Conditions, OthersStayAsTheyAre) {
  auto list = json::parse(R"([{"type":"A","status":"True","mine":1},{"type":"B","status":"True","mine":2}])")->get_array();
  EXPECT_TRUE(set_condition(list, {"B", "True", "New", ""}, at(1), true));
  EXPECT_EQ(json::serialize(list),
            R"([{"type":"A","status":"True","mine":1},)"
            R"({"type":"B","status":"True","mine":2,"lastUpdateTime":"2030-01-01T00:00:01Z","reason":"New","message":""}])");
  EXPECT_TRUE(remove_condition(list, "A"));
  EXPECT_FALSE(remove_condition(list, "A"));
  EXPECT_EQ(list.size(), 1U);
}

}  // namespace
}  // namespace berth::model
