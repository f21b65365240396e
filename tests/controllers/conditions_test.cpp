// Conditions as status writers keep them.
#include <gtest/gtest.h>

#include "controllers/common.h"

namespace berth::controllers {
namespace {

TEST(Conditions, KeepTheTimeOfTheirLastTransitionUntilTheStatusIsAnother) {
  const TimePoint first = *parse_rfc3339("2026-01-05T10:00:00Z"), later = first + std::chrono::minutes(5);
  json::Array all;
  EXPECT_TRUE(set_condition(all, {"Progressing", "True", "NewReplicaSetCreated", "made"}, first));
  EXPECT_FALSE(set_condition(all, {"Progressing", "True", "NewReplicaSetCreated", "made"}, later)) << "nothing is new";
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(json::get_string(all[0], {"lastTransitionTime"}), "2026-01-05T10:00:00Z");
  EXPECT_TRUE(set_condition(all, {"Progressing", "True", "ReplicaSetUpdated", "goes on"}, later));
  EXPECT_EQ(json::get_string(all[0], {"reason"}), "ReplicaSetUpdated");
  EXPECT_EQ(json::get_string(all[0], {"lastTransitionTime"}), "2026-01-05T10:00:00Z") << "another reason is no transition";
  EXPECT_TRUE(set_condition(all, {"Progressing", "False", "ProgressDeadlineExceeded", "late"}, later));
  EXPECT_EQ(json::get_string(all[0], {"lastTransitionTime"}), "2026-01-05T10:05:00Z");
  EXPECT_TRUE(set_condition(all, {"Available", "True", "", ""}, later));
  EXPECT_EQ(all.size(), 2U);
}

}  // namespace
}  // namespace berth::controllers
