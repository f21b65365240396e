#include "base/deadlines.h"

#include <gtest/gtest.h>

#include <future>

namespace berth {
namespace {

using namespace std::chrono_literals;

TEST(Deadlines, WhatIsDueIsEndedOnce) {
  Deadlines deadlines;
  std::promise<void> first, second;
  int ends = 0;
  const auto watch = deadlines.watch(0s, [&] {
    ++ends;
    first.set_value();
  });
  first.get_future().wait();
  // One that comes later is behind the first, which is still watched.
  const auto later = deadlines.watch(1ms, [&] { second.set_value(); });
  second.get_future().wait();
  EXPECT_EQ(ends, 1);
}

TEST(Deadlines, WhatIsOverIsNotEnded) {
  Deadlines deadlines;
  bool is_ended = false;
  std::promise<void> later;
  {
    const auto watch = deadlines.watch(1ms, [&] { is_ended = true; });
  }
  auto replaced = deadlines.watch(1h, [&] { is_ended = true; });
  replaced = deadlines.watch(2ms, [&] { later.set_value(); });
  later.get_future().wait();
  EXPECT_FALSE(is_ended);
}

TEST(Deadlines, WhoComesFirstIsServedThoughALaterOneWasWaitedFor) {
  Deadlines deadlines;
  std::promise<void> ended;
  const auto late = deadlines.watch(1h, [] {});
  const auto early = deadlines.watch(1ms, [&] { ended.set_value(); });
  ended.get_future().wait();
}

}  // namespace
}  // namespace berth
