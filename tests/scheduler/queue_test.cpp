#include "scheduler/queue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const TimePoint kStart = TimePoint{} + std::chrono::hours(1000);

QueuedPod pod(const std::string& name, std::int32_t priority = 0) { return {"uid-" + name, "default", name, priority, false}; }

TEST(SchedulingQueue, PopsByPriorityThenAge) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("old"), kStart, false);
  queue.add_or_update(pod("new"), kStart + seconds(1), false);
  queue.add_or_update(pod("high", 10), kStart + seconds(2), false);
  std::string order;
  while (auto entry = queue.pop(kStart + seconds(3))) order += entry->pod.name + " ";
  EXPECT_EQ(order, "high old new ");
}

TEST(SchedulingQueue, BackoffDoublesUpToTheMaximum) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("a"), kStart, false);
  TimePoint now = kStart;
  for (const int wanted_s : {1, 2, 4, 8, 10, 10}) {
    ASSERT_TRUE(queue.pop(now).has_value());
    queue.failed("uid-a", now);
    EXPECT_FALSE(queue.has_ready(now + seconds(wanted_s) - milliseconds(1)));
    now += seconds(wanted_s);
    EXPECT_EQ(queue.next_wake(), now);
    EXPECT_TRUE(queue.has_ready(now));
  }
}

TEST(SchedulingQueue, UnschedulablePodWaitsForAnEventThatCouldHelp) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("a"), kStart, false);
  queue.pop(kStart);
  queue.unschedulable("uid-a", 0b10, kStart);
  EXPECT_EQ(queue.wake(0b01, kStart + seconds(5), [](const auto&) { return true; }), 0u);
  EXPECT_EQ(queue.wake(0b10, kStart + seconds(5), [](const auto&) { return false; }), 0u);
  EXPECT_EQ(queue.wake(0b10, kStart + seconds(5), [](const auto&) { return true; }), 1u);
  EXPECT_TRUE(queue.has_ready(kStart + seconds(5)));
}

TEST(SchedulingQueue, WokenWithinItsBackoffWaitsForItsEndWhereNobodyMayPopIt) {
  SchedulingQueue queue({.pops_from_backoff = false});
  queue.add_or_update(pod("a"), kStart, false);
  queue.pop(kStart);
  queue.unschedulable("uid-a", 1, kStart);
  queue.wake(1, kStart + milliseconds(200), [](const auto&) { return true; });
  EXPECT_FALSE(queue.has_ready(kStart + milliseconds(999)));
  EXPECT_TRUE(queue.has_ready(kStart + seconds(1)));
}

TEST(SchedulingQueue, WokenWithinItsBackoffIsPoppedOnceThereIsNothingElseToDo) {
  SchedulingQueue queue({});
  for (const auto& one : {pod("a"), pod("b", 5), pod("active")}) queue.add_or_update(one, kStart, false);
  while (auto entry = queue.pop(kStart))
    if (entry->pod.name != "active") queue.unschedulable(entry->pod.uid, 1, kStart);
  queue.failed("uid-active", kStart);
  queue.add_or_update(pod("new"), kStart, false);
  queue.wake(1, kStart, [](const auto&) { return true; });
  EXPECT_EQ(queue.sizes().backoff, 3u);
  std::string order;
  while (auto entry = queue.pop(kStart)) order += entry->pod.name + " ";
  EXPECT_EQ(order, "new b a ") << "and the one that failed by an error waits";
  EXPECT_EQ(queue.sizes().backoff, 1u);
  EXPECT_EQ(queue.next_wake(), kStart + seconds(1));
}

TEST(SchedulingQueue, RetryAfterBackoffIsNotPoppedEarly) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("a"), kStart, false);
  queue.pop(kStart);
  queue.unschedulable("uid-a", 1, kStart);
  queue.retry_after_backoff("uid-a", kStart);
  EXPECT_FALSE(queue.has_ready(kStart + milliseconds(999)));
  EXPECT_TRUE(queue.has_ready(kStart + seconds(1)));
}

TEST(SchedulingQueue, AmongEqualsTheOneThatWaitedLongestSinceItsLastAttemptGoesFirst) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("old"), kStart, false);
  queue.pop(kStart);
  queue.unschedulable("uid-old", 1, kStart);
  QueuedPod gated = pod("gated");
  gated.gated = true;
  queue.add_or_update(gated, kStart + seconds(1), false);
  queue.add_or_update(pod("new"), kStart + seconds(5), false);
  queue.wake(1, kStart + seconds(10), [](const auto&) { return true; });
  queue.add_or_update(pod("gated"), kStart + seconds(10), true);
  std::string order;
  while (auto entry = queue.pop(kStart + seconds(10))) order += entry->pod.name + " ";
  EXPECT_EQ(order, "old gated new ");
}

TEST(SchedulingQueue, ErrorsAndFullNodesMakeBackoffsOfTheirOwn) {
  SchedulingQueue queue({.pops_from_backoff = false});
  queue.add_or_update(pod("a"), kStart, false);
  TimePoint now = kStart;
  const auto backoff = [&](bool is_error) {
    EXPECT_TRUE(queue.pop(now).has_value());
    if (is_error) {
      queue.failed("uid-a", now);
    } else {
      queue.unschedulable("uid-a", 1, now);
      queue.wake(1, now, [](const auto&) { return true; });
    }
    const auto took = std::chrono::duration_cast<seconds>(*queue.next_wake() - now).count();
    now = *queue.next_wake();
    return took;
  };
  EXPECT_EQ(backoff(false), 1);
  EXPECT_EQ(backoff(false), 2);
  EXPECT_EQ(backoff(true), 1) << "the first error in a row";
  EXPECT_EQ(backoff(true), 2);
  EXPECT_EQ(backoff(false), 4) << "the third time that no node fitted";
  EXPECT_EQ(backoff(true), 1);
}

TEST(SchedulingQueue, SaysWhoWasTriedOnlyBecauseItWaitedSoLong) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("a"), kStart, false);
  EXPECT_FALSE(queue.pop(kStart)->waited_in_vain);
  queue.unschedulable("uid-a", 1, kStart);
  EXPECT_TRUE(queue.pop(kStart + minutes(5))->waited_in_vain);
  queue.unschedulable("uid-a", 1, kStart + minutes(5));
  queue.wake(1, kStart + minutes(6), [](const auto&) { return true; });
  EXPECT_FALSE(queue.pop(kStart + minutes(6))->waited_in_vain);
}

TEST(SchedulingQueue, LongWaitEndsByItself) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("a"), kStart, false);
  queue.pop(kStart);
  queue.unschedulable("uid-a", 1, kStart);
  EXPECT_FALSE(queue.has_ready(kStart + minutes(5) - milliseconds(1)));
  EXPECT_TRUE(queue.has_ready(kStart + minutes(5)));
}

TEST(SchedulingQueue, GatedPodsAreNeverPoppedUntilTheGateOpens) {
  SchedulingQueue queue({});
  QueuedPod gated = pod("a");
  gated.gated = true;
  queue.add_or_update(gated, kStart, false);
  EXPECT_FALSE(queue.has_ready(kStart + std::chrono::hours(10)));
  EXPECT_EQ(queue.sizes().gated, 1u);
  queue.add_or_update(pod("a"), kStart + seconds(1), true);
  EXPECT_TRUE(queue.pop(kStart + seconds(1)).has_value());
}

TEST(SchedulingQueue, RemovedInFlightPodDoesNotComeBack) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("a"), kStart, false);
  queue.pop(kStart);
  queue.remove("uid-a");
  queue.unschedulable("uid-a", 1, kStart);
  queue.failed("uid-a", kStart);
  EXPECT_FALSE(queue.contains("uid-a"));
  EXPECT_EQ(queue.next_wake(), std::nullopt);
}

TEST(SchedulingQueue, AnUnschedulableHighPriorityPodDoesNotBlockLowerOnes) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("high", 100), kStart, false);
  queue.add_or_update(pod("low", 1), kStart, false);
  EXPECT_EQ(queue.pop(kStart)->pod.name, "high");
  queue.unschedulable("uid-high", 1, kStart);
  EXPECT_EQ(queue.pop(kStart)->pod.name, "low");
}

TEST(SchedulingQueue, TellsWhatEntersWhichQueueAndWhoHoldsAPodBack) {
  SchedulingQueue queue({});
  std::vector<std::string> moves;
  PluginSet held = 0;
  queue.observe({[&](std::string_view name, std::string_view event) { moves.push_back(fmt::format("{} {}", name, event)); },
                 [&](const std::string&, PluginSet rejected_by, bool holds) { held = holds ? held | rejected_by : held & ~rejected_by; }});
  const auto moved = [&] { return std::exchange(moves, {}); };
  using Moves = std::vector<std::string>;
  queue.add_or_update(pod("a"), kStart, false);
  EXPECT_EQ(moved(), Moves{"active UnschedulablePodAdd"});
  queue.pop(kStart);
  queue.unschedulable("uid-a", 0b10, kStart);
  EXPECT_EQ(moved(), Moves{"unschedulable ScheduleAttemptFailure"});
  EXPECT_EQ(held, 0b10u);
  queue.wake(
      ~PluginSet{0}, kStart, [](const auto&) { return true; }, "NodeAdd");
  EXPECT_EQ(moved(), Moves{"backoff NodeAdd"});
  EXPECT_EQ(held, 0b10u) << "until it is tried again";
  queue.pop(kStart);
  EXPECT_EQ(moved(), Moves{"active PopFromBackoffQ"});
  EXPECT_EQ(held, 0u);
  queue.failed("uid-a", kStart);
  EXPECT_EQ(moved(), Moves{"backoff ScheduleAttemptFailure"});
  queue.pop(kStart + seconds(11));
  EXPECT_EQ(moved(), Moves{"active BackoffComplete"});
  queue.unschedulable("uid-a", 0b1, kStart + seconds(11));
  EXPECT_EQ(held, 0b1u);
  queue.remove("uid-a");
  EXPECT_EQ(held, 0u);
  moved();
  QueuedPod gated = pod("b");
  gated.gated = true;
  queue.add_or_update(gated, kStart, false);
  EXPECT_EQ(moved(), Moves{"unschedulable UnschedulablePodAdd"});
  gated.gated = false;
  queue.add_or_update(gated, kStart, false);
  EXPECT_EQ(moved(), Moves{"active UnschedulablePodUpdatePodSchedulingGatesEliminated"});
}

TEST(SchedulingQueue, PodsOfOneKindAreAskedAboutOnceAndMoveTogether) {
  SchedulingQueue queue({});
  const auto kind = std::make_shared<const PodKind>(7), other = std::make_shared<const PodKind>(8);
  for (int i = 0; i < 300; ++i) {
    const QueuedPod one = pod(fmt::format("p{}", i), i % 3 == 0 ? 10 : 0);
    queue.add_or_update(one, kStart, false);
    queue.pop(kStart);
    queue.unschedulable(one.uid, 0b11, kStart, i < 200 ? kind : other);
  }
  int asked = 0;
  const auto count = [&](const auto&) { return ++asked, false; };
  EXPECT_EQ(queue.wake(0b11, kStart, count), 0u);
  EXPECT_EQ(asked, 4) << "two kinds of two priorities, each once though two plugins rejected them";
  asked = 0;
  queue.wake(0b100, kStart, count);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(
      queue.wake(
          0b10, kStart, [](const auto& one) { return one.pod.priority == 10; }, "X", [](const auto& one) { return one.pod.name != "p0"; }),
      99u);
}

TEST(SchedulingQueue, APodThatBecameAnotherKindIsAskedAboutByItself) {
  SchedulingQueue queue({});
  const auto kind = std::make_shared<const PodKind>(7), other = std::make_shared<const PodKind>(8);
  for (const char* name : {"a", "b"}) {
    queue.add_or_update(pod(name), kStart, false);
    queue.pop(kStart);
    queue.unschedulable(pod(name).uid, 1, kStart, kind);
  }
  queue.set_kind("uid-b", other);
  std::set<std::string> asked;
  queue.wake(1, kStart, [&](const auto& one) { return asked.insert(one.pod.name), false; });
  EXPECT_EQ(asked, (std::set<std::string>{"a", "b"}));
}

TEST(SchedulingQueue, WhoIsActivatedNeedNotWaitForItsBackoff) {
  SchedulingQueue queue({.pops_from_backoff = false});
  std::vector<std::string> moves;
  queue.observe({[&](std::string_view name, std::string_view event) { moves.push_back(fmt::format("{} {}", name, event)); }, {}});
  QueuedPod gated = pod("gated");
  gated.gated = true;
  queue.add_or_update(gated, kStart, false);
  for (const char* name : {"fits nowhere", "failed", "flies"}) queue.add_or_update(pod(name), kStart, false);
  while (queue.pop(kStart)) continue;
  queue.unschedulable("uid-fits nowhere", 1, kStart);
  queue.failed("uid-failed", kStart);
  moves.clear();
  for (const char* uid : {"uid-gated", "uid-flies", "uid-nobody"}) queue.activate(uid);
  EXPECT_TRUE(moves.empty());
  EXPECT_FALSE(queue.has_ready(kStart));
  queue.activate("uid-fits nowhere");
  EXPECT_EQ(queue.pop(kStart)->pod.name, "fits nowhere");
  queue.activate("uid-failed");
  EXPECT_EQ(queue.pop(kStart)->pod.name, "failed");
  EXPECT_EQ(moves, (std::vector<std::string>{"active ForceActivate", "active ForceActivate"}));
  EXPECT_EQ(queue.next_wake(), std::nullopt);
}

TEST(SchedulingQueue, OnePodIsWokenByItsUid) {
  SchedulingQueue queue({});
  queue.add_or_update(pod("a"), kStart, false);
  EXPECT_FALSE(queue.wake_one("uid-a", kStart)) << "it is active already";
  queue.pop(kStart);
  queue.unschedulable("uid-a", 0b10, kStart);
  EXPECT_TRUE(queue.holds_rejected_by(0b10));
  EXPECT_FALSE(queue.holds_rejected_by(0b01));
  EXPECT_TRUE(queue.wake_one("uid-a", kStart));
  EXPECT_FALSE(queue.holds_rejected_by(0b10));
  EXPECT_FALSE(queue.wake_one("uid-b", kStart));
}

}  // namespace
}  // namespace berth::scheduler
