// Memory that gets tight, then short, then is there again, by a number that the test gives.
#include "apiserver/upkeep/memory_guard.h"

#include <gtest/gtest.h>

namespace berth::apiserver {
namespace {

using flow::Memory;

class MemoryGuardTest : public ::testing::Test {
 protected:
  Memory at(std::size_t megabytes) {
    bytes_ = megabytes * 1'000'000;
    loop_.run_for(MemoryGuard::kPause);
    return memory_;
  }
  VirtualLoop loop_{TimePoint{} + std::chrono::hours(1)};
  std::size_t bytes_ = 0;
  Memory memory_ = Memory::kAmple;
  int told_ = 0, given_up_ = 0;
  MemoryGuard guard_{loop_,
                     100'000'000,
                     {.changed =
                          [this](Memory memory) {
                            memory_ = memory;
                            ++told_;
                          },
                      .give_up = [this] { ++given_up_; },
                      .resident = [this] { return bytes_; }}};
};

TEST_F(MemoryGuardTest, EachStateEndsBelowWhereItBegan) {
  EXPECT_EQ(at(74), Memory::kAmple);
  EXPECT_EQ(at(76), Memory::kTight);
  EXPECT_EQ(at(71), Memory::kTight);
  EXPECT_EQ(at(91), Memory::kShort);
  EXPECT_EQ(at(81), Memory::kShort);
  EXPECT_EQ(at(79), Memory::kTight);
  EXPECT_EQ(at(69), Memory::kAmple);
  EXPECT_EQ(at(74), Memory::kAmple);
  EXPECT_EQ(at(95), Memory::kShort);
  EXPECT_EQ(at(10), Memory::kAmple);
}

TEST_F(MemoryGuardTest, CachesAreGivenUpWhenItGetsWorseAndNowAndThenWhileItIs) {
  at(76);
  EXPECT_EQ(given_up_, 1);
  at(77);
  EXPECT_EQ(given_up_, 1);
  at(92);
  EXPECT_EQ(given_up_, 2);
  loop_.run_for(MemoryGuard::kAgain * 3 + MemoryGuard::kPause);
  EXPECT_EQ(given_up_, 5);
  at(10);
  loop_.run_for(MemoryGuard::kAgain * 3);
  EXPECT_EQ(given_up_, 5);
}

TEST_F(MemoryGuardTest, WhileItIsShortThatIsToldAtEveryLook) {
  at(76);
  at(76);
  EXPECT_EQ(told_, 1);
  at(95);
  at(95);
  at(95);
  EXPECT_EQ(told_, 4);
}

}  // namespace
}  // namespace berth::apiserver
