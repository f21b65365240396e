// The simulator's chance: the same numbers from the same seed on every machine, whatever its C library's logarithm gives in the last bit.
#pragma once
#include <cstdint>
#include <string_view>

namespace berth::simulator {

/// A stream of its own for each name, so that what one workload draws does not depend on another, nor on the configuration under test.
class Random {
 public:
  Random(std::uint64_t seed, std::string_view name);
  std::uint64_t next();
  /// Below n; n > 0.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  /// In [0, 1).
  double uniform();
  /// With mean 1.
  double exponential();
  /// With mean 0 and standard deviation 1.
  double normal();

 private:
  std::uint64_t state_;
};

/// From additions, multiplications and divisions alone, which IEEE 754 fixes to the bit. x > 0.
double logarithm(double x);
double exponential_of(double x);

}  // namespace berth::simulator
