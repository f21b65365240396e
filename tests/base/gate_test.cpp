#include "base/gate.h"

#include <gtest/gtest.h>

#include <thread>

namespace berth {
namespace {

TEST(Gate, WhoIsBehindItPassesAgainAndHoldsItUntilTheFirstPassEnds) {
  Gate gate;
  std::unique_lock outer(gate);
  EXPECT_TRUE(gate.is_behind());
  {
    const std::lock_guard inner(gate);
    EXPECT_TRUE(gate.is_behind());
  }
  EXPECT_TRUE(gate.is_behind());
  bool other_is_behind = true;
  std::thread([&] { other_is_behind = gate.is_behind(); }).join();
  EXPECT_FALSE(other_is_behind);
  outer.unlock();
  EXPECT_FALSE(gate.is_behind());
}

TEST(Gate, CallsOfManyThreadsRunOneAtATime) {
  Gate gate;
  int calls = 0, inside = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) {
        const std::lock_guard outer(gate);
        most = std::max(most, ++inside);
        {
          const std::lock_guard again(gate);
          ++calls;
        }
        --inside;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(calls, 4000);
  EXPECT_EQ(most, 1);
}

/// What the gate is for: once whoever is called is gone, he is not called, and he may go from within a call.
TEST(Gate, NobodyIsCalledOnceHeHasGone) {
  struct Callee {
    Gate gate;
    bool is_gone = false;
    int calls = 0;
    void call() {
      const std::lock_guard lock(gate);
      if (is_gone) return;
      ++calls;
      if (calls == 100) leave();
    }
    void leave() {
      const std::lock_guard lock(gate);
      is_gone = true;
    }
  } callee;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) callee.call();
  });
  for (int i = 0; i < 1000; ++i) callee.call();
  other.join();
  EXPECT_EQ(callee.calls, 100);
}

}  // namespace
}  // namespace berth
