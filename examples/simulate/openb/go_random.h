// The generator of Go's math/rand as rand.Seed leaves it: the paper's seeds mean the same order of pods here as there.
//
// It is an additive lagged Fibonacci generator, y[k] = y[k-607] + y[k-273] modulo 2^64, whose seeds are mixed with what the same recurrence
// gives after 7.8e12 steps from seed 1 (math/rand/gen_cooked.go). Those numbers are found here by jumping ahead: x^7.8e12 modulo
// x^607 - x^334 - 1, some milliseconds.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace openb {

class GoRandom {
 public:
  explicit GoRandom(std::int32_t seed) : state_(mixed(seed, 40, 20)) {
    static const State cooked = jumped();
    for (int i = 0; i < kLong; ++i) state_[static_cast<std::size_t>(i)] ^= cooked[static_cast<std::size_t>(i)];
  }

  /// rand.Int63, which rand.Int and rand.Float64 draw once.
  std::int64_t int63() { return static_cast<std::int64_t>(next() & (~0ULL >> 1)); }
  /// rand.Intn, for n below 2^31.
  std::int32_t below(std::int32_t n) {
    const auto draw = [&] { return static_cast<std::int32_t>(int63() >> 32); };
    if ((n & (n - 1)) == 0) return draw() & (n - 1);
    const std::int32_t most = INT32_MAX - static_cast<std::int32_t>((1U << 31) % static_cast<std::uint32_t>(n));
    std::int32_t out = draw();
    while (out > most) out = draw();
    return out % n;
  }
  /// rand.Shuffle.
  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i-- > 1;) std::swap(list[i], list[below_by_product(static_cast<std::uint32_t>(i + 1))]);
  }
  /// rand.Perm.
  std::vector<std::int32_t> permutation(std::int32_t n) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) {
      const auto j = static_cast<std::size_t>(below(i + 1));
      out[static_cast<std::size_t>(i)] = out[j];
      out[j] = i;
    }
    return out;
  }

 private:
  static constexpr int kLong = 607, kShort = 273;
  using State = std::array<std::uint64_t, kLong>;

  std::uint32_t below_by_product(std::uint32_t n) {
    const auto draw = [&] { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(int63() >> 31)) * n; };
    std::uint64_t product = draw();
    if (static_cast<std::uint32_t>(product) < n)
      for (const std::uint32_t least = -n % n; static_cast<std::uint32_t>(product) < least;) product = draw();
    return static_cast<std::uint32_t>(product >> 32);
  }
  std::uint64_t next() {
    tap_ = (tap_ + kLong - 1) % kLong;
    feed_ = (feed_ + kLong - 1) % kLong;
    return state_[static_cast<std::size_t>(feed_)] += state_[static_cast<std::size_t>(tap_)];
  }

  /// Three steps of the minimal standard generator for each number.
  static State mixed(std::int32_t seed, int high, int middle) {
    std::uint64_t x = static_cast<std::uint64_t>(seed % INT32_MAX);
    if (x == 0) x = 89482311;
    const auto step = [&] { return x = x * 48271 % INT32_MAX; };
    for (int i = 0; i < 20; ++i) step();
    State out{};
    for (auto& one : out) {
      one = step() << high;
      one ^= step() << middle;
      one ^= step();
    }
    return out;
  }

  /// The state of seed 1 after 7.8e12 draws. The k-th draw lands at place 334 - k; before the first, y[-606] … y[0] are there.
  static State jumped() {
    constexpr std::int64_t kSteps = 7'800'000'000'000;
    const auto place = [](std::int64_t draw) {
      const std::int64_t at = (kLong - kShort - draw) % kLong;
      return static_cast<std::size_t>(at < 0 ? at + kLong : at);
    };
    const State start = mixed(1, 20, 10);
    std::vector<std::uint64_t> y(2 * kLong);  // y[m] is the draw m - 606.
    for (std::size_t m = 0; m < y.size(); ++m)
      y[m] = m < kLong ? start[place(static_cast<std::int64_t>(m) - 606)] : y[m - kLong] + y[m - kShort];
    using Polynomial = std::vector<std::uint64_t>;
    const auto reduce = [](Polynomial& p) {
      for (std::size_t i = p.size(); i-- > kLong;) {
        p[i - kLong] += p[i];
        p[i - kShort] += p[i];
      }
      p.resize(kLong);
    };
    Polynomial power(kLong);
    power[0] = 1;
    for (int bit = 62; bit >= 0; --bit) {
      Polynomial square(2 * kLong);
      for (std::size_t i = 0; i < kLong; ++i)
        for (std::size_t j = 0; power[i] != 0 && j < kLong; ++j) square[i + j] += power[i] * power[j];
      reduce(square);
      if ((kSteps >> bit & 1) != 0) {
        square.insert(square.begin(), 0);
        reduce(square);
      }
      power = std::move(square);
    }
    State out{};
    for (std::size_t m = 0; m < kLong; ++m) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < kLong; ++i) sum += power[i] * y[i + m];
      out[place(kSteps + static_cast<std::int64_t>(m) - 606)] = sum;
    }
    return out;
  }

  State state_;
  int tap_ = 0, feed_ = kLong - kShort;
};

}  // namespace openb
