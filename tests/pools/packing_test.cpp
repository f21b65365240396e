// Packing: never above first fit, never more than a node has, limits kept, the bound below every cost; tiny problems against every way.
#include "pools/packing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace berth::pools {
namespace {

struct Random {
  std::mt19937_64 engine;
  std::int64_t below(std::int64_t most) { return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(most)); }
  std::int64_t between(std::int64_t least, std::int64_t most) { return least + below(most - least + 1); }
};

/// Shapes of three families (2, 4 and 8 GiB a processor) in sizes that double, with a little noise in the prices.
PackingProblem random_problem(Random& random, int sizes, int kinds, std::int64_t most_pods) {
  PackingProblem out;
  for (int pool = 0; pool < 2; ++pool) out.pools.push_back({random.below(2) * 10, {INT64_MAX}});
  for (std::size_t pool = 0; pool < 2; ++pool)
    for (int family = 0; family < 3; ++family)
      for (int size = 0; size < sizes; ++size) {
        const std::int64_t cpu = 2000LL << size, memory = cpu * (2 << family) / 1000;
        const double price = (static_cast<double>(cpu) * 0.03 + static_cast<double>(memory) * 4.0) / 1000.0 *
                             (1 + 0.1 * static_cast<double>(random.below(100)) / 100.0);
        out.shapes.push_back({{cpu - 100, memory * 1000 - 500, 110}, {cpu}, price, pool});
      }
  for (int k = 0; k < kinds; ++k) {
    Item item{{random.between(1, 40) * 100, random.between(1, 160) * 100, 1}, random.between(1, most_pods), 0, {}};
    for (std::uint32_t s = 0; s < out.shapes.size(); ++s)
      if (out.shapes[s].pool == 0 || k % 3 != 0) item.shapes.push_back(s);
    out.items.push_back(std::move(item));
  }
  return out;
}

/// Everything that must hold of an answer.
void expect_sound(const PackingProblem& problem, const Packed& packed) {
  std::vector<std::int64_t> placed(problem.items.size(), 0);
  std::vector<std::vector<std::int64_t>> used(problem.pools.size(), std::vector<std::int64_t>(1, 0));
  double cost = 0;
  for (const Bin& bin : packed.bins) {
    const BinShape& shape = problem.shapes[bin.shape];
    Amounts room = shape.room;
    EXPECT_FALSE(bin.content.empty());
    for (const auto& [k, n] : bin.content) {
      EXPECT_GT(n, 0);
      EXPECT_TRUE(std::ranges::binary_search(problem.items[k].shapes, bin.shape)) << "an item where it may not be";
      placed[k] += n;
      for (std::size_t r = 0; r < room.size(); ++r) room[r] -= n * problem.items[k].request[r];
    }
    for (const std::int64_t left : room) EXPECT_GE(left, 0) << "overcommitted";
    used[shape.pool][0] += shape.capacity[0];
    cost += shape.price;
  }
  for (std::size_t k = 0; k < placed.size(); ++k) EXPECT_EQ(placed[k] + packed.left[k], problem.items[k].count);
  for (std::size_t p = 0; p < used.size(); ++p) EXPECT_LE(used[p][0], problem.pools[p].left[0]) << "over the limit";
  EXPECT_NEAR(cost, packed.cost, 1e-6);
  EXPECT_LE(packed.bound, packed.cost + 1e-9);
}

TEST(Packing, IsSoundAndNeverAboveFirstFit) {
  int below = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random{std::mt19937_64(seed)};
    const PackingProblem problem = random_problem(random, 5, static_cast<int>(random.between(1, 12)), 30);
    const Packed greedy = pack_first_fit(problem), packed = pack(problem, {.is_over = {}, .rounds = 60});
    expect_sound(problem, greedy);
    expect_sound(problem, packed);
    EXPECT_EQ(packed.left_count(), 0);
    EXPECT_LE(packed.cost, greedy.cost + 1e-9) << "seed " << seed;
    EXPECT_GT(packed.bound, 0.5 * packed.cost) << "seed " << seed << ": a bound that says nothing";
    below += packed.cost < greedy.cost - 1e-9 ? 1 : 0;
    ++all;
  }
  EXPECT_GT(below, all * 2 / 3) << "better on most";
}

TEST(Packing, KeepsLimitsAndLeavesNoMoreThanFirstFit) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random{std::mt19937_64(seed)};
    PackingProblem problem = random_problem(random, 4, 6, 20);
    for (PoolRules& pool : problem.pools) pool.left = {random.between(0, 40) * 1000};
    const Packed greedy = pack_first_fit(problem), packed = pack(problem, {.is_over = {}, .rounds = 20});
    expect_sound(problem, greedy);
    expect_sound(problem, packed);
    EXPECT_LE(packed.left_count(), greedy.left_count()) << "seed " << seed;
  }
}

TEST(Packing, TakesThePoolThatWeighsMost) {
  PackingProblem problem;
  problem.pools = {{0, {INT64_MAX}}, {10, {4000}}};
  problem.shapes = {{{4000, 16000, 110}, {4000}, 0.1, 0}, {{4000, 16000, 110}, {4000}, 0.5, 1}};
  problem.items = {{{2000, 4000, 1}, 4, 0, {0, 1}}};
  const Packed packed = pack(problem);
  expect_sound(problem, packed);
  ASSERT_EQ(packed.bins.size(), 2U);
  EXPECT_NEAR(packed.cost, 0.6, 1e-9) << "the dear pool of weight 10 to its limit, then the other";
}

/// The least cost by trying everything: each pod on each node that is open, or on a new one of each shape.
double exhaustive(const PackingProblem& problem, std::vector<std::pair<std::uint32_t, Amounts>>& bins, std::vector<std::size_t>& pods,
                  std::size_t at, double cost, double best) {
  if (cost >= best) return best;
  if (at == pods.size()) return cost;
  const Item& item = problem.items[pods[at]];
  const auto put = [&](Amounts& room) {
    for (std::size_t r = 0; r < room.size(); ++r) room[r] -= item.request[r];
  };
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (!fits(item.request, bins[i].second)) continue;
    const Amounts before = bins[i].second;
    put(bins[i].second);
    best = exhaustive(problem, bins, pods, at + 1, cost, best);
    bins[i].second = before;
  }
  for (std::uint32_t s = 0; s < problem.shapes.size(); ++s) {
    if (!fits(item.request, problem.shapes[s].room)) continue;
    bins.emplace_back(s, problem.shapes[s].room);
    put(bins.back().second);
    best = exhaustive(problem, bins, pods, at + 1, cost + problem.shapes[s].price, best);
    bins.pop_back();
  }
  return best;
}

TEST(Packing, OfTinyProblemsTheCheapestAndABoundBelowIt) {
  int exact = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random{std::mt19937_64(seed)};
    PackingProblem problem;
    problem.pools = {{0, {INT64_MAX}}};
    for (std::uint32_t s = 0; s < 3; ++s) {
      const std::int64_t cpu = 2000LL << s;
      problem.shapes.push_back(
          {{cpu, cpu * random.between(2, 8), 110}, {cpu}, static_cast<double>(cpu) / 1000 + 0.1 * static_cast<double>(random.below(8)), 0});
    }
    std::vector<std::size_t> pods;
    for (std::size_t k = 0; k < 3; ++k) {
      problem.items.push_back({{random.between(3, 15) * 100, random.between(5, 30) * 100, 1}, random.between(1, 2), 0, {0, 1, 2}});
      for (std::int64_t i = 0; i < problem.items.back().count; ++i) pods.push_back(k);
    }
    std::vector<std::pair<std::uint32_t, Amounts>> bins;
    const double least = exhaustive(problem, bins, pods, 0, 0, 1e9);
    const Packed packed = pack(problem);
    expect_sound(problem, packed);
    EXPECT_LE(packed.bound, least + 1e-6) << "seed " << seed << ": the bound is above the cheapest way";
    EXPECT_LE(packed.cost, least * 1.15 + 1e-6) << "seed " << seed;
    exact += packed.cost <= least + 1e-6 ? 1 : 0;
    ++all;
  }
  EXPECT_GE(exact, all * 9 / 10);
}

TEST(Packing, TheBoundKnowsThatPoolsOfMoreWeightComeFirst) {
  PackingProblem problem;
  problem.shapes = {{{4000, 16000, 110}, {4000}, 1.0, 0}, {{4000, 16000, 110}, {4000}, 0.1, 1}};
  problem.pools = {{10, {INT64_MAX}}, {1, {INT64_MAX}}};
  problem.items = {{{4000, 4000, 1}, 5, 0, {0, 1}}};
  EXPECT_NEAR(pack(problem).bound, 5.0, 1e-6) << "the dear pool comes first, and has no limits";
  EXPECT_NEAR(lower_bound(problem, {}), 5.0, 1e-6);
  problem.items[0].goes_by_weight = false;
  EXPECT_NEAR(lower_bound(problem, {}), 0.5, 1e-6) << "something else may send them to the other";
  problem.items[0].goes_by_weight = true;
  problem.pools[0].left = {8000};
  const Packed packed = pack(problem);
  EXPECT_NEAR(packed.cost, 2.3, 1e-6);
  EXPECT_LE(packed.bound, packed.cost);
  EXPECT_NEAR(lower_bound(problem, {}), 0.5, 1e-6) << "a pool with limits may leave everybody to the other";
}

TEST(Packing, EndsWhenTimeIsOver) {
  Random random{std::mt19937_64(7)};
  const PackingProblem problem = random_problem(random, 6, 100, 20);
  int asked = 0;
  const Packed packed = pack(problem, {.is_over = [&] { return ++asked > 3; }, .rounds = 1'000'000});
  expect_sound(problem, packed);
  EXPECT_EQ(packed.left_count(), 0);
  EXPECT_LE(packed.cost, pack_first_fit(problem).cost + 1e-9);
}

TEST(Packing, OfNothingAndOfWhatFitsNowhere) {
  PackingProblem problem;
  problem.pools = {{0, {INT64_MAX}}};
  EXPECT_EQ(pack(problem).cost, 0);
  problem.shapes = {{{1000, 1000, 10}, {1000}, 1, 0}};
  problem.items = {{{2000, 10, 1}, 3, 0, {0}}, {{500, 10, 1}, 1, 0, {}}};
  const Packed packed = pack(problem);
  EXPECT_TRUE(packed.bins.empty());
  EXPECT_EQ(packed.left, (std::vector<std::int64_t>{3, 1}));
}

}  // namespace
}  // namespace berth::pools
