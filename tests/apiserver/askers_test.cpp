// Threads that may wait: what hangs keeps nobody who waits for something else, and who asks a lot nobody else who asks.
#include "apiserver/ground/askers.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>

namespace berth::apiserver {
namespace {

// What jobs touch is declared before the askers, whose end waits for jobs that run.

TEST(Askers, WhatHangsKeepsNobodyWhoWaitsForSomethingElse) {
  std::promise<void> wake;
  const auto hangs = wake.get_future().share();
  std::latch begun(2);
  std::atomic<int> ended{0};
  std::promise<bool> other;
  std::promise<void> last;
  Askers askers({.threads = 4});
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(askers.post({"the issuer", "u" + std::to_string(i),
                             [&, hangs, i] {
                               if (i < 2) begun.count_down();
                               hangs.wait();
                               ++ended;
                             },
                             [] {}}));
  begun.wait();
  ASSERT_TRUE(askers.post({"the webhook", "jane", [&] { other.set_value(Askers::is_one()); }, [] {}}));
  EXPECT_TRUE(other.get_future().get()) << "half of the threads are left to others";
  EXPECT_FALSE(Askers::is_one());
  EXPECT_EQ(ended, 0);
  wake.set_value();
  ASSERT_TRUE(askers.post({"the issuer", "u9", [&] { last.set_value(); }, [] {}}));
  last.get_future().wait();
}

TEST(Askers, WhoAsksALotKeepsNobodyElse) {
  std::promise<void> wake;
  const auto hangs = wake.get_future().share();
  std::promise<void> begun, last;
  std::mutex mutex;
  std::vector<std::string> order;
  Askers askers({.threads = 2, .most_waiting = 100, .most_of_one = 50});
  ASSERT_TRUE(askers.post({"hook", "first",
                           [&, hangs] {
                             begun.set_value();
                             hangs.wait();
                           },
                           [] {}}));
  begun.get_future().wait();
  const auto note = [&](const std::string& who) {
    return Askers::Job{"hook", who,
                       [&, who] {
                         const std::lock_guard lock(mutex);
                         order.push_back(who);
                       },
                       [] {}};
  };
  int taken = 0;
  for (int i = 0; i < 80; ++i) taken += askers.post(note("mallory"));
  EXPECT_EQ(taken, 50) << "of one who asks";
  EXPECT_TRUE(askers.post(note("jane")));
  ASSERT_TRUE(askers.post({"hook", "zoe", [&] { last.set_value(); }, [] {}}));
  wake.set_value();
  last.get_future().wait();
  const std::lock_guard lock(mutex);
  const auto jane = std::ranges::find(order, "jane");
  ASSERT_NE(jane, order.end());
  EXPECT_LE(jane - order.begin(), 2) << "her turn comes after one of his, not after fifty";
}

/// Of the threads of one service: what of others' comes there may be over in a moment.
TEST(Askers, WhatHangsForOneLeavesThreadsToOthers) {
  std::promise<void> wake;
  const auto hangs = wake.get_future().share();
  std::latch begun(2), over(20);
  std::atomic<int> running{0};
  Askers askers({.threads = 8});
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(askers.post({"hook", "mallory",
                             [&, hangs] {
                               if (++running <= 2) begun.count_down();
                               hangs.wait();
                               over.count_down();
                             },
                             [] {}}));
  begun.wait();
  for (const char* who : {"jane", "zoe", "jane"}) {
    std::promise<void> served;
    ASSERT_TRUE(askers.post({"hook", who, [&] { served.set_value(); }, [] {}}));
    EXPECT_EQ(served.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready) << who;
  }
  EXPECT_EQ(running, 2) << "of the four that wait for it";
  wake.set_value();
  over.wait();
  EXPECT_EQ(running, 20);
}

TEST(Askers, WhoWaitsTooLongIsRefused) {
  std::promise<void> wake, refused;
  const auto hangs = wake.get_future().share();
  std::atomic<bool> ran{false};
  Askers askers({.threads = 2, .longest_wait = std::chrono::milliseconds(1)});
  for (bool begun = false; !begun;) {  // On a busy machine the first one itself may wait for too long.
    const auto turn = std::make_shared<std::promise<bool>>();
    ASSERT_TRUE(askers.post({"hook", "first",
                             [turn, hangs] {
                               turn->set_value(true);
                               hangs.wait();
                             },
                             [turn] { turn->set_value(false); }}));
    begun = turn->get_future().get();
  }
  ASSERT_TRUE(askers.post({"hook", "jane", [&] { ran = true; }, [&] { refused.set_value(); }}));
  refused.get_future().wait();
  EXPECT_FALSE(ran);
  wake.set_value();
}

TEST(Askers, WhatWaitsIsDroppedAtTheEnd) {
  std::promise<void> wake;
  const auto hangs = wake.get_future().share();
  std::atomic<bool> ran{false};
  std::promise<void> begun;
  {
    Askers askers({.threads = 2, .most_waiting = 1U << 30, .most_of_one = 1U << 30});  // Refused when it stops, and only then.
    ASSERT_TRUE(askers.post({"hook", "first",
                             [&, hangs] {
                               begun.set_value();
                               hangs.wait();
                             },
                             [] {}}));
    begun.get_future().wait();
    ASSERT_TRUE(askers.post({"hook", "jane", [&] { ran = true; }, [] {}}));
    std::thread stop([&] { askers.stop(); });
    while (askers.post({"other", "x", [] {}, [] {}})) std::this_thread::yield();
    wake.set_value();
    stop.join();
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace berth::apiserver
