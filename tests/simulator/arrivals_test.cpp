// How many come, and when.
#include "simulator/arrivals.h"

#include <cmath>

#include "tests/simulator/support.h"

namespace berth::simulator {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

std::vector<Duration> all_of(const Arrivals& arrivals, Duration end, std::uint64_t seed = 1, Duration day_offset = {}) {
  ArrivalStream stream(arrivals, Random(seed, "w"), day_offset, end);
  std::vector<Duration> out;
  while (const auto at = stream.next()) out.push_back(*at);
  return out;
}

TEST(Arrivals, AConstantPaceIsExact) {
  Arrivals arrivals{.kind = Arrivals::Kind::kConstant, .period = minutes(10)};
  const auto times = all_of(arrivals, hours(2));
  ASSERT_EQ(times.size(), 12U);
  EXPECT_EQ(times[1], Duration(minutes(10)));
  arrivals.from = minutes(60);
  EXPECT_EQ(all_of(arrivals, hours(2)).size(), 6U);
  arrivals.most = 2;
  EXPECT_EQ(all_of(arrivals, hours(2)).size(), 2U);
}

TEST(Arrivals, ListedTimesComeAsListed) {
  const Arrivals arrivals{.times = {minutes(5), minutes(70), hours(3)}};
  EXPECT_EQ(all_of(arrivals, hours(2)), (std::vector<Duration>{minutes(5), minutes(70)}));
}

TEST(Arrivals, PoissonHasItsMeanAndItsSpread) {
  const Arrivals arrivals{.kind = Arrivals::Kind::kPoisson, .per_hour = 60};
  double sum = 0, squares = 0;
  constexpr int kSeeds = 200;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto count = static_cast<double>(all_of(arrivals, hours(10), static_cast<std::uint64_t>(seed)).size());
    sum += count;
    squares += count * count;
  }
  const double mean = sum / kSeeds, variance = squares / kSeeds - mean * mean;
  EXPECT_NEAR(mean, 600, 6);        // Standard error 1.7.
  EXPECT_NEAR(variance, 600, 200);  // Of a Poisson count it is the mean.
}

TEST(Arrivals, ADailyCurveIsFollowed) {
  const Arrivals arrivals{.kind = Arrivals::Kind::kDaily, .curve = {{hours(0), 0}, {hours(12), 100}}};
  const auto times = all_of(arrivals, hours(24 * 20));
  std::size_t night = 0, noon = 0;
  for (const Duration at : times) {
    const Duration of_day = at % Duration(hours(24));
    night += of_day < hours(3) || of_day >= hours(21);
    noon += of_day >= hours(9) && of_day < hours(15);
  }
  EXPECT_NEAR(static_cast<double>(times.size()), 20 * 24 * 50, 600);  // The curve's mean is 50 an hour.
  EXPECT_NEAR(static_cast<double>(noon) / static_cast<double>(night), 7, 1);
  // A scenario that starts at noon is at the peak then.
  EXPECT_NEAR(static_cast<double>(all_of(arrivals, hours(1), 1, hours(12)).size()), 96, 40);
}

TEST(Arrivals, ChanceIsTheSameEverywhere) {
  // Written down once: another machine, compiler or C library must give the same.
  Random random(42, "web");
  EXPECT_EQ(random.next(), Random(42, "web").next());
  for (const double x : {1e-9, 0.3, 1.0, 2.0, 1e6}) EXPECT_NEAR(logarithm(x), std::log(x), 1e-12 * std::max(1.0, std::abs(std::log(x))));
  for (const double x : {-20.0, -1.0, 0.0, 0.5, 3.0}) EXPECT_NEAR(exponential_of(x) / std::exp(x), 1, 1e-12);
  double sum = 0, squares = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 20'000, 0, 0.03);
  EXPECT_NEAR(squares / 20'000, 1, 0.05);
}

TEST(Lengths, EachDistributionHasItsMiddle) {
  Random random(7, "lengths");
  const auto mean_minutes = [&](const Lengths& lengths) {
    double sum = 0;
    for (int i = 0; i < 20'000; ++i) sum += static_cast<double>(lengths.draw(random).count()) / 6e7;
    return sum / 20'000;
  };
  EXPECT_DOUBLE_EQ(mean_minutes({Lengths::Kind::kFixed, minutes(20), {}}), 20);
  EXPECT_NEAR(mean_minutes({Lengths::Kind::kUniform, minutes(10), minutes(30)}), 20, 0.2);
  EXPECT_NEAR(mean_minutes({Lengths::Kind::kExponential, minutes(20), {}}), 20, 0.6);
  std::vector<Duration> drawn;
  for (int i = 0; i < 20'001; ++i) drawn.push_back(Lengths{Lengths::Kind::kLogNormal, minutes(10), minutes(40)}.draw(random));
  std::ranges::sort(drawn);
  EXPECT_NEAR(static_cast<double>(drawn[10'000].count()) / 6e7, 10, 0.4);
  EXPECT_NEAR(static_cast<double>(drawn[19'000].count()) / 6e7, 40, 2.5);
}

}  // namespace
}  // namespace berth::simulator
