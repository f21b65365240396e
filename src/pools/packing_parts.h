// What the files of packing share.
#pragma once
#include <random>
#include <span>
#include <vector>

#include "pools/packing.h"

namespace berth::pools {

inline void take(Amounts& room, const Amounts& wanted, std::int64_t times = 1) {
  for (std::size_t i = 0; i < wanted.size(); ++i) room[i] -= wanted[i] * times;
}
/// How many of them fit, at most `most`.
inline std::int64_t how_many(const Amounts& wanted, const Amounts& room, std::int64_t most) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] > 0) most = std::min(most, room[i] / wanted[i]);
  return std::max<std::int64_t>(most, 0);
}

/// A problem made small: shapes that another one beats are left out, and each item knows the shapes that are left and large enough.
struct Reduced {
  const PackingProblem* problem = nullptr;
  std::vector<std::uint32_t> shapes;              ///< Those that are left: indices into the problem's.
  std::vector<std::vector<std::uint8_t>> allows;  ///< [shape of `shapes`][item].
  [[nodiscard]] const BinShape& shape(std::size_t i) const { return problem->shapes[shapes[i]]; }
};
/// Which pools an item allows, of those that can take it.
enum class Allowed {
  kAll,
  kBest,      ///< Those of highest weight.
  kPossible,  ///< Those that it may come to: none below the first that has no limits.
};
Reduced reduce(const PackingProblem& problem, Allowed which);

/// What one of each item is worth where all that is bought is used well (the dual of the linear program), and what cannot be beaten.
struct Prices {
  std::vector<double> of_item;
  double bound = 0;
};
/// By column generation; `counts`: how many of each item there are. `is_over` as in PackingOptions.
Prices price_items(const Reduced& reduced, const std::vector<std::int64_t>& counts, const std::function<bool()>& is_over);

/// A content of a node: item and number.
struct Pattern {
  double value = 0;
  std::vector<std::pair<std::uint32_t, std::int64_t>> content;
};
/// The most valuable content that one look finds. `left`: how many there are of each item; only those `among` are looked at.
class PatternFinder {
 public:
  explicit PatternFinder(const Reduced& reduced);
  /// What holds for the looks that follow; both must outlive them unchanged, but that `among` may name items of which none is left.
  void begin(const std::vector<double>& values, std::span<const std::uint32_t> among);
  /// Holds until the next call.
  const Pattern& find(std::size_t shape, const std::vector<std::int64_t>& left);
  [[nodiscard]] std::span<const std::uint32_t> all() const { return all_; }
  /// No content of such a node is worth more.
  [[nodiscard]] double at_most(std::size_t shape, const std::vector<double>& values, const std::vector<std::int64_t>& counts);

 private:
  static constexpr std::size_t kWeightings = 3;
  const std::vector<std::uint32_t>& order_of(std::size_t shape, std::size_t weighting);
  void fill(std::size_t shape, const std::vector<std::int64_t>& left, std::size_t weighting);
  double fractional(std::size_t shape, const std::vector<double>& values, const std::vector<std::int64_t>& counts,
                    const std::vector<double>& weights);
  const Reduced& reduced_;
  std::vector<std::uint32_t> all_;
  std::vector<std::vector<std::vector<double>>> weightings_;  ///< By shape.
  const std::vector<double>* values_ = nullptr;
  std::span<const std::uint32_t> among_;
  std::vector<std::vector<std::uint32_t>> orders_;  ///< By shape and weighting, as far as is_ordered_ says.
  std::vector<bool> is_ordered_;
  Pattern best_, now_;
  std::vector<std::pair<double, std::uint32_t>> order_;
};

}  // namespace berth::pools
