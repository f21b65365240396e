#include "base/shared_pool.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace berth {
namespace {

/// All values fall on one another.
struct OneHash {
  static std::size_t hash(const std::string&) { return 1; }
  static bool same(const std::string& a, const std::string& b) { return a == b; }
};

/// Told apart by its note alone.
struct Amount {
  int value = 0;
  std::string note;
  friend bool operator==(const Amount& a, const Amount& b) { return a.value == b.value; }
  [[nodiscard]] auto parts() const { return std::tie(value, note); }
};

using Text = Shared<std::string>;

TEST(Shared, EqualValuesAreOneAsLongAsSomebodyHoldsIt) {
  const std::size_t before = Text::count();
  Text first(std::string("web"));
  const Text second(std::string("web")), other(std::string("db"));
  EXPECT_EQ(&*first, &*second);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, other);
  EXPECT_EQ(Text::count(), before + 2);
  first = {};
  EXPECT_EQ(*first, "");
  EXPECT_EQ(Text(std::string("web")), second);
  EXPECT_EQ(Text::count(), before + 2);
}

TEST(Shared, ADefaultValueIsNothing) {
  const std::size_t before = Text::count();
  EXPECT_EQ(Text(std::string()), Text());
  EXPECT_EQ(Text::count(), before);
}

TEST(Shared, WhatNobodyHoldsIsForgottenAndComesAgain) {
  using Crowded = Shared<std::string, OneHash>;
  for (int i = 0; i < 100; ++i) {
    const Crowded one(std::to_string(i)), other(std::string("stays"));
    EXPECT_EQ(*one, std::to_string(i));
    EXPECT_EQ(Crowded::count(), 2U);
  }
  EXPECT_EQ(Crowded::count(), 0U);
  std::vector<Crowded> many;
  for (int i = 0; i < 1000; ++i) many.emplace_back(std::to_string(i));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(*many[static_cast<std::size_t>(i)], std::to_string(i));
  EXPECT_EQ(Crowded::count(), 1000U);
}

TEST(Shared, ThreadsThatTakeAndGiveBackTheSame) {
  const std::size_t before = Text::count();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 2000; ++i) {
        const Text one(std::to_string(i % 7)), same(std::to_string(i % 7));
        EXPECT_EQ(one, same);
        EXPECT_EQ(*one, std::to_string(i % 7));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(Text::count(), before);
}

TEST(Shared, WhatEqualsInPartIsNotTheSame) {
  const Shared<Amount> plain(Amount{1, "1"}), other(Amount{1, "1.0"});
  EXPECT_EQ(*plain, *other);
  EXPECT_NE(plain, other);
  EXPECT_EQ(other->note, "1.0");
}

TEST(Shared, AChangeIsTheHoldersOwn) {
  Text one(std::string("web"));
  const Text other = one;
  one.change([](std::string& text) { text += "-1"; });
  EXPECT_EQ(*one, "web-1");
  EXPECT_EQ(*other, "web");
}

TEST(SharedList, IsReadAsAVector) {
  const SharedList<int> none, list{1, 2}, same(std::vector<int>{1, 2});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none, SharedList<int>(std::vector<int>()));
  EXPECT_EQ(list, same);
  EXPECT_NE(list, none);
  int sum = 0;
  for (const int one : list) sum += one;
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(list[1], 2);
}

}  // namespace
}  // namespace berth
