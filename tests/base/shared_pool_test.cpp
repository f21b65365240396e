#include "base/shared_pool.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace berth {
namespace {

using Pool = SharedPool<std::string, std::hash<std::string>>;

/// All values fall on one another.
struct OneHash {
  std::size_t operator()(const std::string&) const { return 1; }
};

TEST(SharedPool, EqualValuesAreOneAsLongAsSomebodyHoldsIt) {
  Pool pool;
  auto first = pool.share("web");
  const auto second = pool.share("web"), other = pool.share("db");
  EXPECT_EQ(first, second);
  EXPECT_NE(first, other);
  EXPECT_EQ(pool.size(), 2U);
  first.reset();
  EXPECT_EQ(pool.share("web"), second);
  EXPECT_EQ(pool.size(), 2U);
}

TEST(SharedPool, WhatNobodyHoldsIsForgottenAndComesAgain) {
  SharedPool<std::string, OneHash> pool;
  for (int i = 0; i < 100; ++i) {
    const auto one = pool.share(std::to_string(i)), other = pool.share("stays");
    EXPECT_EQ(*one, std::to_string(i));
    EXPECT_EQ(pool.size(), 2U);
  }
  EXPECT_EQ(pool.size(), 0U);
  EXPECT_EQ(*pool.share("5"), "5");
}

TEST(SharedPool, ThreadsThatTakeAndGiveBackTheSame) {
  Pool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool] {
      for (int i = 0; i < 2000; ++i) {
        const auto one = pool.share(std::to_string(i % 7)), same = pool.share(std::to_string(i % 7));
        EXPECT_EQ(one, same);
        EXPECT_EQ(*one, std::to_string(i % 7));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.size(), 0U);
}

TEST(SharedList, IsReadAsAVector) {
  const SharedList<int> none, list(std::make_shared<const std::vector<int>>(std::vector<int>{1, 2})),
      same(std::make_shared<const std::vector<int>>(std::vector<int>{1, 2}));
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none, SharedList<int>(std::make_shared<const std::vector<int>>()));
  EXPECT_EQ(list, same);
  EXPECT_NE(list, none);
  int sum = 0;
  for (const int one : list) sum += one;
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(list[1], 2);
}

}  // namespace
}  // namespace berth
