#include "base/left_threads.h"

#include <gtest/gtest.h>

#include <future>

namespace berth {
namespace {

TEST(LeftThreads, AThreadThatEndsItsOwnerIsWaitedForByNobodyAndRunsOn) {
  auto owner = std::make_shared<LeavableThread>();
  std::promise<void> made, let_go;
  auto ended = std::make_shared<std::promise<bool>>();
  auto is_ended = ended->get_future();
  *owner = LeavableThread([mine = std::weak_ptr(owner), made = made.get_future(), let_go = let_go.get_future(), ended]() mutable {
    made.wait();
    auto last = mine.lock();
    let_go.wait();
    last.reset();
    ended->set_value(mine.expired());
  });
  made.set_value();
  // The thread has it now, or never will: either way nobody joins here.
  let_go.set_value();
  owner.reset();
  EXPECT_TRUE(is_ended.get());
}

TEST(LeftThreads, WhatWasLeftAndIsOverIsJoinedByTheNextThatIsLeft) {
  // What the work holds is let go before the thread counts as over.
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  std::promise<void> begun;
  LeavableThread first([held = std::move(held), &begun] { begun.set_value(); });
  begun.get_future().wait();
  first.leave();
  EXPECT_FALSE(first.joinable());
  first.leave();  // Nothing to leave.
  while (!watch.expired()) std::this_thread::yield();
  LeavableThread second([] {});
  second.leave();
  EXPECT_FALSE(second.joinable());
}

TEST(LeftThreads, AnOwnerThatCanWaitJoins) {
  int done = 0;
  LeavableThread thread([&done] { done = 1; });
  ASSERT_TRUE(thread.joinable());
  thread.join();
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace berth
