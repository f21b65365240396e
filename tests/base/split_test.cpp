#include "base/split.h"

#include <gtest/gtest.h>

namespace berth::testing {
namespace {

using Views = std::vector<std::string_view>;

TEST(Split, GivesWhatStandsBetweenNothingAsWell) {
  EXPECT_EQ(split("a,bc,d", ',').list(), (Views{"a", "bc", "d"}));
  EXPECT_EQ(split(",a,,b,", ',').list(), (Views{"", "a", "", "b", ""}));
  EXPECT_EQ(split("a", ',').list(), (Views{"a"}));
  EXPECT_EQ(split("", ',').list(), (Views{""}));
  EXPECT_EQ(split(",", ',').list(), (Views{"", ""}));
}

TEST(Split, WordsAreWhatIsThere) {
  EXPECT_EQ(words("  one two  three ").list(), (Views{"one", "two", "three"}));
  EXPECT_EQ(words("/api//v1/", '/').list<std::string>(), (std::vector<std::string>{"api", "v1"}));
  EXPECT_EQ(words("").list(), Views());
  EXPECT_EQ(words(",,", ',').list(), Views());
}

TEST(Split, CanBeLeftOnTheWay) {
  Views seen;
  for (const auto part : split("a,b,c", ',')) {
    seen.push_back(part);
    if (part == "b") break;
  }
  EXPECT_EQ(seen, (Views{"a", "b"}));
}

}  // namespace
}  // namespace berth::testing
