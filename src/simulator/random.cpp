#include "simulator/random.h"

#include <cmath>

namespace berth::simulator {
namespace {

constexpr double kLn2 = 0.693147180559945309417232121458;

}  // namespace

Random::Random(std::uint64_t seed, std::string_view name) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x2545f4914f6cdd1dULL) {
  for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  next();
}

/// splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Random::exponential() { return -logarithm(1.0 - uniform()); }

/// Marsaglia's polar method: square root and our own logarithm, no sine.
double Random::normal() {
  while (true) {
    const double u = 2 * uniform() - 1, v = 2 * uniform() - 1, s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * logarithm(s) / s);
  }
}

double logarithm(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // In [0.5, 1).
  const double t = (mantissa - 1) / (mantissa + 1), square = t * t;
  double sum = 0;
  for (int k = 39; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * t * sum + exponent * kLn2;
}

double exponential_of(double x) {
  const double whole = std::floor(x / kLn2 + 0.5);
  if (whole > 1000) return 0x1.0p1000;
  if (whole < -1000) return 0;
  const double rest = x - whole * kLn2;
  double sum = 1;
  for (int k = 20; k >= 1; --k) sum = 1 + rest / k * sum;
  return std::ldexp(sum, static_cast<int>(whole));
}

}  // namespace berth::simulator
