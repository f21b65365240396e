// What the rest of a GPU is worth when shares of known sizes come in known proportions.
//
// To hold shares on as few GPUs as possible is a linear programme over patterns, a pattern being shares that one GPU holds together
// (cutting stock). Its dual prices say what a share costs, in GPUs: 810 thousandths cost a whole one where too few small shares come to
// fill the rests, and those small ones cost nothing. A rest is worth what the dearest shares that fit into it cost. A share that goes where
// it belongs takes no more worth than it costs: a pair of 470 and 470 loses nothing, 320 with 470 spoils a place for another 470.
//
// Patterns are made one after the other by a knapsack (Gilmore and Gomory, 1961). Pure; the same input gives the same output.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace cutting_stock {

/// Everything is counted in hundredths of a GPU: shares are rounded up to them, rests down.
constexpr int kUnits = 100, kMilliPerUnit = 10;

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  ///< By row.

/// x of m x = b, by elimination; 0 where m says nothing.
inline Vector solve(Matrix m, Vector b) {
  constexpr double kNothing = 1e-12;
  const std::size_t n = b.size();
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row)
      if (std::abs(m[row][column]) > std::abs(m[pivot][column])) pivot = row;
    std::swap(m[pivot], m[column]);
    std::swap(b[pivot], b[column]);
    if (std::abs(m[column][column]) < kNothing) continue;
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = row == column ? 0 : m[row][column] / m[column][column];
      if (factor == 0) continue;
      for (std::size_t k = column; k < n; ++k) m[row][k] -= factor * m[column][k];
      b[row] -= factor * b[column];
    }
  }
  for (std::size_t i = 0; i < n; ++i) b[i] = std::abs(m[i][i]) < kNothing ? 0 : b[i] / m[i][i];
  return b;
}

/// The best that fits into each number of units, and the pattern that fills a whole GPU best.
struct Knapsack {
  Vector worth;    ///< By units, 0 to kUnits.
  Vector pattern;  ///< By size: how many of it.
};

inline Knapsack fill(std::span<const int> sizes, const Vector& prices) {
  constexpr double kBetter = 1e-12;
  Knapsack out{Vector(kUnits + 1), Vector(sizes.size())};
  std::vector<int> last(kUnits + 1, -1);  // The size that came last; -1: the same as with a unit less.
  for (int units = 1; units <= kUnits; ++units) {
    const auto at = static_cast<std::size_t>(units);
    out.worth[at] = out.worth[at - 1];
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] > units || prices[i] <= 0) continue;
      const double with = out.worth[static_cast<std::size_t>(units - sizes[i])] + prices[i];
      if (with <= out.worth[at] + kBetter) continue;
      out.worth[at] = with;
      last[at] = static_cast<int>(i);
    }
  }
  for (int units = kUnits; units > 0;) {
    const int size = last[static_cast<std::size_t>(units)];
    if (size >= 0) out.pattern[static_cast<std::size_t>(size)] += 1;
    units -= size < 0 ? 1 : sizes[static_cast<std::size_t>(size)];
  }
  return out;
}

/// The worth of a rest, in GPUs, by its units (0 to kUnits). `shares`: thousandths, below 1000, and how many of them come for one of
/// others.
inline Vector worth_of_rests(const std::map<int, double>& shares) {
  constexpr int kMostSteps = 500;
  constexpr double kEnough = 1e-9;
  std::vector<int> sizes;
  Vector wanted;
  for (const auto& [milli, count] : shares) {
    sizes.push_back((milli + kMilliPerUnit - 1) / kMilliPerUnit);
    wanted.push_back(count);
  }
  const std::size_t n = sizes.size();
  Matrix patterns(n, Vector(n));  // The basis: one in each row. To begin with each size has GPUs of its own.
  for (std::size_t i = 0; i < n; ++i) patterns[i][i] = kUnits / sizes[i];
  Knapsack best = fill(sizes, Vector(n));
  for (int step = 0; step < kMostSteps && n > 0; ++step) {
    best = fill(sizes, solve(patterns, Vector(n, 1.0)));
    if (best.worth.back() <= 1 + kEnough) break;
    Matrix columns(n, Vector(n));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) columns[j][i] = patterns[i][j];
    const Vector used = solve(columns, wanted), change = solve(columns, best.pattern);
    std::size_t leaves = n;
    for (std::size_t i = 0; i < n; ++i)
      if (change[i] > kEnough && (leaves == n || used[i] / change[i] < used[leaves] / change[leaves])) leaves = i;
    if (leaves == n) break;
    patterns[leaves] = best.pattern;
  }
  return best.worth;
}

}  // namespace cutting_stock
