// Zones and their rates.
#include "controllers/zones.h"

#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

TEST(Zones, TaintAtTheZonesRate) {
  Zones zones({});
  TimePoint now = kStart;
  zones.update({{"a", {900, 100}}}, now);
  for (int i = 0; i < 100; ++i) zones.add("a", std::to_string(i));
  std::size_t taken = 0;
  for (; now < kStart + seconds(101); now += std::chrono::milliseconds(100)) taken += zones.take(now).size();
  EXPECT_EQ(taken, 11u) << "one at once, then one each ten seconds";
}

TEST(Zones, StopAndSlowDownByHealth) {
  Zones zones({});
  zones.update({{"small", {4, 6}}, {"big", {40, 60}}, {"down", {0, 5}}}, kStart);
  EXPECT_EQ(zones.state("small"), ZoneState::kPartialDisruption);
  EXPECT_EQ(zones.state("down"), ZoneState::kFullDisruption);
  for (int i = 0; i < 4; ++i) {
    zones.add("small", "s" + std::to_string(i));
    zones.add("big", "b" + std::to_string(i));
  }
  EXPECT_EQ(zones.take(kStart), std::vector<std::string>{"b0"});
  EXPECT_EQ(zones.next(kStart), seconds(100));
  EXPECT_EQ(zones.update({{"small", {0, 10}}, {"big", {0, 100}}, {"down", {0, 5}}}, kStart), Zones::Transition::kAllDown);
  zones.add("big", "x");
  EXPECT_TRUE(zones.take(kStart + minutes(60)).empty()) << "everything down: nobody moves";
  EXPECT_EQ(zones.update({{"small", {10, 0}}, {"big", {0, 100}}, {"down", {0, 5}}}, kStart), Zones::Transition::kRecovered);
}

}  // namespace
}  // namespace berth::controllers
