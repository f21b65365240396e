// Whose a node's price is.
#include "pools/ledger.h"

#include <gtest/gtest.h>

namespace berth::pools {
namespace {

TEST(Ledger, ANodesPriceIsItsPodsAndWhatNobodyAsksForIsIdle) {
  const TimePoint start = *parse_rfc3339("2026-03-02T00:00:00Z");
  const auto hour = [&](int n) { return start + std::chrono::hours(n); };
  Ledger ledger(start);
  const Parts whole{8000, 8'000'000, 0};
  ledger.load("a", "default/web", {4000, 2'000'000, 0}, 1, hour(-1));  // Before the node is known, and before the start.
  ledger.put("a", {"general", 1.0, whole}, hour(-1));
  ledger.load("a", "default/job", {2000, 2'000'000, 0}, 1, hour(1));
  ledger.load("a", "default/job", {2000, 2'000'000, 0}, -1, hour(2));
  ledger.drop("a", hour(3));
  const auto costs = ledger.by_workload(hour(5));
  EXPECT_NEAR(costs.at("default/web"), 3 * (0.5 + 0.25) / 2, 1e-9);
  EXPECT_NEAR(costs.at("default/job"), 0.25, 1e-9);
  EXPECT_NEAR(costs.at("(idle)"), 3 - 3 * 0.375 - 0.25, 1e-9);
  EXPECT_NEAR(ledger.by_pool(hour(5)).at("general"), 3, 1e-9) << "nothing before the start, nothing after the end";
  Ledger gpus(start);
  gpus.put("g", {"gpu", 2.0, {8000, 8'000'000, 2000}}, start);
  gpus.load("g", "default/train", {100, 1000, 1000}, 1, start);
  EXPECT_NEAR(gpus.by_workload(hour(1)).at("default/train"), 1.0, 1e-9) << "it is bought for its GPUs";
}

}  // namespace
}  // namespace berth::pools
