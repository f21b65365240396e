#include "base/check.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Check, ATrueOneSaysNothingAndFormatsNothing) {
  int formatted = 0;
  const auto count = [&] { return ++formatted; };
  BERTH_CHECK(formatted == 0, "{}", count());
  EXPECT_EQ(formatted, 0);
}

TEST(Check, AFalseOneSaysWhatWhereAndWithWhichValuesAndEndsTheProcess) {
  const int open = -1;
  EXPECT_EXIT(BERTH_CHECK(open >= 0, "{}: answered {} times too often", "default/web", -open), ::testing::ExitedWithCode(kCheckFailedExit),
              "check_test.cpp:[0-9]+: open >= 0 is false: default/web: answered 1 times too often");
}

}  // namespace
}  // namespace berth
