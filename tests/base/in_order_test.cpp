// Results made on several threads are taken in order.
#include "base/in_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace berth {
namespace {

/// What is taken, of so many items.
std::vector<std::size_t> taken(std::size_t count, std::size_t portion, std::size_t threads, std::size_t most = SIZE_MAX) {
  std::vector<std::size_t> made(count), out;
  const InOrder work{.count = count,
                     .portion = portion,
                     .make =
                         [&](std::size_t first, std::size_t last) {
                           for (std::size_t at = first; at < last; ++at) made[at] += at + 1;
                         },
                     .take =
                         [&](std::size_t first, std::size_t last) {
                           for (std::size_t at = first; at < last; ++at) out.push_back(made[at]);
                           return out.size() < most;
                         }};
  work.run(threads);
  return out;
}

TEST(InOrder, EverythingIsMadeOnceAndTakenInOrderWhateverTheNumberOfThreads) {
  for (const std::size_t threads : {0, 1, 2, 7})
    for (const std::size_t count : {0, 1, 3, 4, 5, 4000}) {
      const auto out = taken(count, 4, threads);
      ASSERT_EQ(out.size(), count) << threads;
      for (std::size_t at = 0; at < count; ++at) ASSERT_EQ(out[at], at + 1) << threads;
    }
}

TEST(InOrder, NothingIsTakenAfterATakerHasEnough) {
  for (const std::size_t threads : {1, 4}) EXPECT_EQ(taken(4000, 4, threads, 10).size(), 12U);
}

TEST(InOrder, NoMoreIsMadeAheadThanMemoryShallHold) {
  std::atomic<std::size_t> made = 0;
  std::size_t most_ahead = 0, so_far = 0;
  const InOrder work{.count = 4000,
                     .portion = 1,
                     .make = [&](std::size_t, std::size_t) { ++made; },
                     .take =
                         [&](std::size_t, std::size_t) {
                           most_ahead = std::max(most_ahead, made - so_far++);
                           return true;
                         }};
  work.run(4);
  EXPECT_EQ(made, 4000U);
  EXPECT_LE(most_ahead, 8U);
}

TEST(InOrder, ATakerThatThrowsLeavesNoThread) {
  const InOrder work{.count = 4000,
                     .portion = 1,
                     .make = [](std::size_t, std::size_t) {},
                     .take = [](std::size_t, std::size_t) -> bool { throw std::runtime_error("enough"); }};
  EXPECT_THROW(work.run(4), std::runtime_error);
}

}  // namespace
}  // namespace berth
