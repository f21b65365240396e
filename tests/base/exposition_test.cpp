#include "base/exposition.h"

#include <gtest/gtest.h>

namespace berth::metrics {
namespace {

TEST(Exposition, AFamilyIsHeadedOnceAndOnlyWhereItHasSamples) {
  Exposition out;
  out.family("empty", "Nothing has it", "gauge");
  out.family("bytes_total", "Bytes", "counter");
  out.sample({{"name", R"(a "b")"}}, 1.5, TimePoint(std::chrono::milliseconds(1'700'000'000'123)));
  out.sample({}, 2);
  EXPECT_EQ(out.text(), R"(# HELP bytes_total Bytes
# TYPE bytes_total counter
bytes_total{name="a \"b\""} 1.5 1700000000123
bytes_total 2
)");
}

}  // namespace
}  // namespace berth::metrics
