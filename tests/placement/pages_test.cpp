// Containers whose copies share: each copy behaves as one of its own, whatever the others do.
#include "placement/pages.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "placement/sharded_map.h"

namespace berth::placement::testing {
namespace {

/// Random copies, changes and drops of a container beside those of a plain one.
template <typename Shared, typename Plain, typename Change, typename Compare>
void run(std::uint64_t seed, int steps, const Change& change, const Compare& compare) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<Shared, Plain>> all(1);
  for (int step = 0; step < steps; ++step) {
    const std::size_t at = random() % all.size();
    if (all.size() < 8 && random() % 10 == 0) {
      const auto copy = all[at];
      all.push_back(copy);
    } else if (all.size() > 1 && random() % 12 == 0) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      for (int i = 0; i < 20; ++i) change(all[at].first, all[at].second, random);
    }
    if (step % 10 == 0)
      for (const auto& [shared, plain] : all) compare(shared, plain);
  }
  for (const auto& [shared, plain] : all) compare(shared, plain);
}

TEST(Pages, CopiesAreVectorsOfTheirOwn) {
  struct Big {
    std::int64_t value = 0, more[127] = {};
  };
  static_assert(Pages<Big>::kPage == 16);
  run<Pages<Big>, std::vector<std::int64_t>>(
      1, 3000,
      [](auto& shared, auto& plain, auto& random) {
        const std::uint64_t what = random() % 20;
        if (what < 2) {
          const std::size_t size = random() % 100;
          shared.resize(size);
          plain.resize(size);
        } else if (what == 2) {
          shared.renew(40);
          plain.assign(40, 0);
        } else if (what < 6) {
          shared.push_back({static_cast<std::int64_t>(what)});
          plain.push_back(static_cast<std::int64_t>(what));
        } else if (!plain.empty()) {
          const std::size_t at = random() % plain.size();
          shared.edit(at).value = plain[at] = static_cast<std::int64_t>(random() % 1000);
        }
      },
      [](const auto& shared, const auto& plain) {
        ASSERT_EQ(shared.size(), plain.size());
        for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(shared[i].value, plain[i]) << i;
      });
}

TEST(PagedLog, PositionsStayWhatTheyAre) {
  using Log = PagedLog<std::shared_ptr<int>>;
  run<Log, std::map<std::uint64_t, int>>(
      2, 3000,
      [](auto& shared, auto& plain, auto& random) {
        if (random() % 200 == 0) {
          shared.drop_half();
          std::erase_if(plain, [&](const auto& entry) { return entry.first < shared.begin(); });
        } else if (random() % 1000 == 0) {
          shared.restart(shared.end());
          plain.clear();
        } else {
          const int value = static_cast<int>(random() % 1000);
          plain[shared.end()] = value;
          shared.push_back(std::make_shared<int>(value));
        }
      },
      [](const auto& shared, const auto& plain) {
        ASSERT_EQ(shared.size(), plain.size());
        for (const auto& [position, value] : plain) ASSERT_EQ(*shared[position], value) << position;
      });
}

TEST(ShardedMap, CopiesAreMapsOfTheirOwn) {
  using Map = ShardedMap<std::string, int, TextHash>;
  run<Map, std::map<std::string, int>>(
      3, 4000,
      [](auto& shared, auto& plain, auto& random) {
        const std::string key = std::to_string(random() % 4000);
        if (random() % 4 == 0) {
          ASSERT_EQ(shared.erase(std::string_view(key)), plain.erase(key) != 0);
        } else {
          shared[key] = plain[key] = static_cast<int>(random() % 1000);
        }
      },
      [](const auto& shared, const auto& plain) {
        ASSERT_EQ(shared.size(), plain.size());
        std::size_t seen = 0;
        shared.for_each([&](const std::string& key, int value) {
          ++seen;
          const auto at = plain.find(key);
          ASSERT_TRUE(at != plain.end() && at->second == value) << key;
          ASSERT_EQ(*shared.find(std::string_view(key)), value);
        });
        ASSERT_EQ(seen, plain.size());
      });
}

}  // namespace
}  // namespace berth::placement::testing
