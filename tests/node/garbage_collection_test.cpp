// Which images, containers and sandboxes a node deletes.
#include <gtest/gtest.h>

#include "node/eviction/container_gc.h"
#include "node/eviction/image_gc.h"

namespace berth::node::eviction {
namespace {

using std::chrono::minutes;
constexpr std::uint64_t kGi = 1ULL << 30;

TimePoint at(Duration since) { return TimePoint(std::chrono::hours(1000)) + since; }

class Images : public testing::Test {
 protected:
  ImageCollector make(ImageGcPolicy policy = {}) { return ImageCollector(policy, at({})); }
  ImageCollector::Remove remove() {
    return [this](const std::string& id) -> Result<void> {
      if (broken_.contains(id)) return fail(ErrorCode::kUnavailable, id + " is stuck");
      removed_.push_back(id);
      return {};
    };
  }
  static FsUsage disk(std::uint64_t available, std::uint64_t capacity = 100 * kGi) {
    FsUsage fs;
    fs.capacity_bytes = capacity;
    fs.available_bytes = available;
    return fs;
  }
  std::vector<std::string> removed_;
  std::set<std::string> broken_;
};

TEST_F(Images, NothingHappensBelowTheHighThreshold) {
  ImageCollector images = make();
  images.observe({{"a", kGi}}, {}, at({}));
  EXPECT_EQ(images.collect(disk(16 * kGi), at(minutes(5)), remove()).error, "") << "84% used";
  EXPECT_TRUE(removed_.empty());
}

TEST_F(Images, LeastRecentlyUsedGoFirstUntilTheLowThreshold) {
  ImageCollector images = make();
  const std::vector<Image> all = {{"a", 3 * kGi}, {"b", 3 * kGi}, {"c", 3 * kGi}, {"d", 3 * kGi}};
  images.observe(all, {"a"}, at({}));
  images.observe(all, {"b"}, at(minutes(1)));
  images.observe(all, {"d"}, at(minutes(5)));
  // 85% used: down to 80% means 5 of the 100 Gi.
  const ImageGcResult result = images.collect(disk(15 * kGi), at(minutes(5)), remove());
  EXPECT_EQ(removed_, (std::vector<std::string>{"c", "a"})) << "never used, then a; d is in use";
  EXPECT_EQ(result.freed_bytes, 6 * kGi);
  EXPECT_EQ(result.error, "");
  EXPECT_FALSE(result.event);
}

TEST_F(Images, TooLittleToFreeIsAnEventInTheKubeletsWords) {
  ImageCollector images = make();
  images.observe({{"a", kGi}, {"used", 50 * kGi}, {"pinned", kGi, true}}, {"used"}, at({}));
  const ImageGcResult result = images.collect(disk(0), at({}), remove());
  EXPECT_EQ(removed_, (std::vector<std::string>{"a"}));
  ASSERT_TRUE(result.event);
  EXPECT_EQ(result.event->reason, "FreeDiskSpaceFailed");
  EXPECT_EQ(result.error,
            "Failed to garbage collect required amount of images. Attempted to free 21474836480 bytes, but only found 1073741824 bytes "
            "eligible to free.");
  EXPECT_EQ(result.event->message, result.error);
}

TEST_F(Images, YoungOnesStay) {
  ImageCollector images = make();
  images.observe({{"old", kGi}}, {}, at({}));
  images.observe({{"old", kGi}, {"new", kGi}}, {}, at(minutes(5)));
  (void)images.delete_unused(at(minutes(6)), remove());
  EXPECT_EQ(removed_, (std::vector<std::string>{"old"})) << "of unknown age: old enough; the new one is a minute old";
  (void)images.delete_unused(at(minutes(7)), remove());
  EXPECT_EQ(removed_, (std::vector<std::string>{"old", "new"}));
}

TEST_F(Images, TheMaximumAgeCountsFromTheLastUse) {
  ImageCollector images = make({.maximum_age = minutes(60)});
  const std::vector<Image> all = {{"a", kGi}, {"b", kGi}};
  images.observe(all, {"a"}, at({}));
  images.observe(all, {"b"}, at(minutes(30)));
  images.observe(all, {}, at(minutes(60)));
  EXPECT_TRUE(images.collect(disk(90 * kGi), at(minutes(60)), remove()).removed.empty()) << "the agent itself is not older";
  images.observe(all, {}, at(minutes(61)));
  EXPECT_EQ(images.collect(disk(90 * kGi), at(minutes(61)), remove()).removed, (std::vector<std::string>{"a"}));
}

TEST_F(Images, OneThatNobodyWasSeenUsingWaitsUntilTheAgentIsAsOld) {
  ImageCollector images = make({.maximum_age = minutes(60)});
  images.observe({{"never", kGi}}, {}, at({}));
  for (const int minute : {1, 30, 60}) EXPECT_TRUE(images.collect(disk(90 * kGi), at(minutes(minute)), remove()).removed.empty()) << minute;
  broken_ = {"never"};
  const ImageGcResult failed = images.collect(disk(90 * kGi), at(minutes(61)), remove());
  EXPECT_EQ(failed.error, "wanted to free images older than 1h0m0s, encountered errors in image deletion: never is stuck");
  EXPECT_TRUE(failed.removed.empty());
  broken_.clear();
  const ImageGcResult done = images.collect(disk(90 * kGi), at(minutes(62)), remove());
  EXPECT_EQ(done.removed, std::vector<std::string>{"never"});
  EXPECT_EQ(done.freed_bytes, kGi);
  EXPECT_TRUE(images.collect(disk(90 * kGi), at(minutes(63)), remove()).removed.empty()) << "it is gone";
  ImageCollector endless = make();
  endless.observe({{"never", kGi}}, {}, at({}));
  EXPECT_TRUE(endless.collect(disk(90 * kGi), at(minutes(6000)), remove()).removed.empty());
}

TEST_F(Images, AFailureIsReportedAndTheRestGoesOn) {
  ImageCollector images = make();
  broken_ = {"a"};
  images.observe({{"a", kGi}, {"b", 2}}, {}, at({}));
  const ImageGcResult result = images.delete_unused(at(minutes(5)), remove());
  EXPECT_EQ(removed_, (std::vector<std::string>{"b"}));
  EXPECT_EQ(result.error, "wanted to free 9223372036854775807 bytes, but freed 2 bytes space with errors in image deletion: a is stuck");
}

TEST_F(Images, ADiskWithoutSize) {
  ImageCollector images = make();
  const ImageGcResult result = images.collect(FsUsage{}, at({}), remove());
  EXPECT_EQ(result.error, "invalid capacity 0 on image filesystem");
  EXPECT_EQ(result.event->reason, "InvalidDiskCapacity");
}

DeadContainer dead(const char* id, const char* pod, const char* name, std::uint32_t attempt) {
  return {id, pod, name, std::string("sandbox-") + pod, at(minutes(attempt)), attempt, false};
}
using Ids = std::vector<std::string>;

TEST(Containers, OneDeadInstanceOfEachStays) {
  const std::vector<DeadContainer> all = {dead("a1", "p", "a", 1), dead("a3", "p", "a", 3), dead("a2", "p", "a", 2),
                                          dead("b1", "p", "b", 1)};
  const auto live = [](const std::string&) { return PodExistence::kLive; };
  EXPECT_EQ(containers_to_remove(all, {}, live, true, at(minutes(60))), (Ids{"a1", "a2"})) << "a3 has the log of the last crash";
  EXPECT_EQ(containers_to_remove(all, {.most_per_container = 0}, live, false, at(minutes(60))), (Ids{"a1", "a2", "a3", "b1"}));
  EXPECT_TRUE(containers_to_remove(all, {.most_per_container = -1}, live, false, at(minutes(60))).empty());
  EXPECT_EQ(containers_to_remove(all, {.minimum_age = minutes(58)}, live, false, at(minutes(60))), (Ids{"a1"}))
      << "a3 is too young to count";
}

TEST(Containers, OfPodsThatAreOverAllGoWhenTheDiskIsShort) {
  const std::vector<DeadContainer> all = {dead("a", "over", "a", 0), dead("b", "live", "b", 0), dead("c", "gone", "c", 0)};
  const auto pods = [](const std::string& uid) {
    return uid == "over" ? PodExistence::kTerminated : uid == "gone" ? PodExistence::kGone : PodExistence::kLive;
  };
  EXPECT_EQ(containers_to_remove(all, {}, pods, true, at(minutes(60))), (Ids{"c", "a"}));
  EXPECT_EQ(containers_to_remove(all, {}, pods, false, at(minutes(60))), (Ids{"c"})) << "their logs may still be asked for";
}

TEST(Containers, RunningOnesNever) {
  DeadContainer running = dead("r", "gone", "r", 0);
  running.is_running = true;
  EXPECT_TRUE(
      containers_to_remove(
          {running}, {.most_per_container = 0, .most = 0}, [](const std::string&) { return PodExistence::kGone; }, true, at(minutes(60)))
          .empty());
}

TEST(Containers, ALimitForTheNodeIsSharedEvenly) {
  std::vector<DeadContainer> all;
  for (std::uint32_t i = 0; i < 4; ++i) all.push_back(dead(fmt::format("a{}", i).c_str(), "p", "a", i));
  all.push_back(dead("b0", "p", "b", 0));
  const auto live = [](const std::string&) { return PodExistence::kLive; };
  EXPECT_EQ(containers_to_remove(all, {.most_per_container = -1, .most = 4}, live, false, at(minutes(60))), (Ids{"a0", "a1"}));
}

TEST(Sandboxes, TheLatestOfALivePodStays) {
  const std::vector<DeadSandbox> all = {
      {"s0", "p", at({}), 0, false}, {"s1", "p", at(minutes(1)), 1, false}, {"s2", "p", at(minutes(2)), 2, true}};
  const auto live = [](const std::string&) { return PodExistence::kLive; };
  EXPECT_EQ(sandboxes_to_remove(all, {}, live, false), (Ids{"s0", "s1"}));
  DeadContainer user = dead("c", "p", "c", 0);
  user.sandbox_id = "s1";
  EXPECT_EQ(sandboxes_to_remove(all, {user}, live, false), (Ids{"s0"})) << "a container still lies in it";
  EXPECT_EQ(sandboxes_to_remove({{"x", "p", at({}), 0, false}}, {}, live, true), Ids{});
  EXPECT_EQ(sandboxes_to_remove(
                {{"x", "p", at({}), 0, false}}, {}, [](const std::string&) { return PodExistence::kTerminated; }, true),
            Ids{"x"});
}

}  // namespace
}  // namespace berth::node::eviction
