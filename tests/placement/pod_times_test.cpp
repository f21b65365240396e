// When a pod started, which decides among victims of one priority: read as it is written, to the nanosecond, with its zone.
#include <gtest/gtest.h>

#include "placement/cluster.h"

namespace berth::placement {
namespace {

std::int64_t start_of(const std::string& text) {
  const auto document = json::parse_yaml(
      fmt::format("metadata: {{name: p, namespace: d, uid: p}}\nspec: {{containers: []}}\nstatus: {{startTime: '{}'}}", text));
  return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*document)), Era::k136)->start_time_ns;
}

TEST(PodTimes, AreReadToTheNanosecond) {
  const std::int64_t noon = start_of("2026-01-10T12:00:00Z");
  EXPECT_EQ(noon, 1'768'046'400'000'000'000);
  EXPECT_EQ(start_of("2026-01-10T12:00:01Z"), noon + 1'000'000'000);
  EXPECT_EQ(start_of("2026-01-10T12:00:00.5Z"), noon + 500'000'000);
  EXPECT_EQ(start_of("2026-01-10T12:00:00.000000001Z"), noon + 1);
  EXPECT_EQ(start_of("2026-01-10T12:00:00.123456789Z"), noon + 123'456'789);
  EXPECT_EQ(start_of("2026-01-10T13:30:00+01:30"), noon);
  EXPECT_EQ(start_of("2026-01-10T04:00:00.25-08:00"), noon + 250'000'000);
  EXPECT_EQ(start_of("2024-03-01T00:00:00Z") - start_of("2024-02-28T00:00:00Z"), 2 * std::int64_t{86'400'000'000'000}) << "a leap year";
  EXPECT_EQ(start_of("2100-03-01T00:00:00Z") - start_of("2100-02-28T00:00:00Z"), std::int64_t{86'400'000'000'000})
      << "and one that is none";
}

TEST(PodTimes, WhatIsNoneIsTheFarFuture) {
  for (const char* text : {"", "2026-01-10", "2026-01-10 12:00:00Z", "2026/01/10T12:00:00Z", "20x6-01-10T12:00:00Z", "2026-13-10T12:00:00Z",
                           "2026-00-10T12:00:00Z", "2026-01-00T12:00:00Z", "2026-01-10Txx:00:00Z", "1969-01-10T12:00:00Z"})
    EXPECT_EQ(start_of(text), INT64_MAX) << text;
}

}  // namespace
}  // namespace berth::placement
