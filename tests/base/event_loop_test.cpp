#include "base/event_loop.h"

#include <gtest/gtest.h>

#include <future>

#include "base/check.h"

namespace berth {
namespace {

/// What `look` finds on the loop's own thread.
template <typename Look>
auto on(EventLoop& loop, Look look) {
  std::packaged_task<decltype(look())()> task(std::move(look));
  auto found = task.get_future();
  loop.post([&task] { task(); });
  return found.get();
}

TEST(EventLoop, ItsTasksAreOnTheLoopAndOtherThreadsAreNot) {
  ThreadLoop loop("one"), other("two");
  EXPECT_TRUE(on(loop, [&] { return loop.is_here(); }));
  EXPECT_FALSE(loop.is_here());
  EXPECT_FALSE(on(other, [&] { return loop.is_here(); }));
}

TEST(EventLoop, OnceStoppedItKeepsNobodyAway) {
  ThreadLoop loop("one");
  on(loop, [] { return 0; });
  loop.stop();
  EXPECT_TRUE(loop.is_here());
  loop.assert_on_loop();
}

TEST(EventLoop, OneThatIsDrivenByHandIsWhereItsDriverIs) {
  VirtualLoop loop{TimePoint{}};
  bool ran = false;
  loop.post([&] {
    loop.assert_on_loop();
    ran = true;
  });
  loop.run_ready();
  EXPECT_TRUE(ran);
  loop.assert_on_loop();
}

TEST(EventLoopDeathTest, WhoIsCalledBesideTheLoopEndsTheProcessAndIsNamed) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        ThreadLoop loop("one");
        on(loop, [&] {
          loop.assert_on_loop();
          return 0;
        });
        loop.assert_on_loop();
      },
      ::testing::ExitedWithCode(kCheckFailedExit), "event_loop_test.cpp:[0-9]+: loop.is_here.* runs beside the loop's thread");
}

}  // namespace
}  // namespace berth
