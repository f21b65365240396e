// The expected orders are what Go's sort.Sort gives for these keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "base/go/sort.h"

namespace berth {
namespace {

struct Item {
  int key, at;
};

template <typename Key>
std::vector<int> order_of(int count, Key key) {
  std::vector<Item> items;
  for (int i = 0; i < count; ++i) items.push_back({key(i), i});
  go_sort(items, [](const Item& a, const Item& b) { return a.key < b.key; });
  std::vector<int> order;
  for (const Item& item : items) order.push_back(item.at);
  return order;
}

TEST(GoSort, TwelveElementsKeepTheOrderOfEquals) {
  EXPECT_EQ(order_of(12, [](int i) { return i % 2; }), (std::vector<int>{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
}

TEST(GoSort, EqualsComeOutAsGoLeavesThem) {
  EXPECT_EQ(order_of(20, [](int i) { return i % 3; }),
            (std::vector<int>{9, 18, 15, 3, 12, 0, 6, 10, 7, 4, 13, 16, 1, 19, 8, 5, 11, 14, 2, 17}));
  EXPECT_EQ(order_of(60, [](int i) { return i * 37 % 8; }),
            (std::vector<int>{0,  48, 40, 56, 32, 8,  16, 24, 21, 45, 5,  53, 29, 13, 37, 10, 34, 42, 18, 50,
                              2,  58, 26, 31, 39, 55, 7,  47, 15, 23, 52, 44, 20, 12, 28, 4,  36, 9,  57, 25,
                              33, 41, 17, 49, 1,  30, 46, 38, 22, 54, 6,  14, 11, 51, 43, 35, 3,  19, 27, 59}));
  EXPECT_EQ(
      order_of(30, [](int i) { return (40 - i) / 4; }),
      (std::vector<int>{29, 25, 28, 27, 26, 24, 23, 22, 21, 17, 20, 19, 18, 14, 15, 16, 13, 9, 12, 11, 10, 8, 7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST(GoSort, SortsWhateverTheShape) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::size_t> items(random() % 400);
    const auto shape = random() % 5;
    for (std::size_t i = 0; i < items.size(); ++i)
      items[i] = shape == 0   ? random() % 1000
                 : shape == 1 ? random() % 4
                 : shape == 2 ? i
                 : shape == 3 ? items.size() - i
                              : std::min(i, items.size() - i);
    std::vector<std::size_t> expected = items;
    std::ranges::sort(expected);
    go_sort(items, std::less<>{});
    ASSERT_EQ(items, expected) << "shape " << shape << ", " << items.size() << " elements";
  }
}

// An order that answers at random is no order, but must neither hang nor leave the list.
TEST(GoSort, SurvivesAnInconsistentOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> items(200);
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = static_cast<int>(i);
    go_sort(items, [&](int, int) { return random() % 2 == 0; });
    std::ranges::sort(items);
    for (std::size_t i = 0; i < items.size(); ++i) ASSERT_EQ(items[i], static_cast<int>(i));
  }
}

}  // namespace
}  // namespace berth
