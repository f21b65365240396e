// What each item is worth: column generation (Gilmore and Gomory) with a bound by any prices of items (Farley).
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "pools/packing_parts.h"

namespace berth::pools {
namespace {

constexpr double kTiny = 1e-9;
/// The inverse of the basis has this many rows and columns at most: beyond, simple prices have to do.
constexpr std::size_t kMostRows = 1200;

/// The linear program over patterns, by the revised simplex method with an explicit inverse.
class Master {
 public:
  Master(std::size_t rows, std::vector<double> demand)
      : m_(rows), inverse_(rows * rows, 0.0), level_(std::move(demand)), cost_(rows, 0.0) {}

  /// The first basis: `each` of the row's item for `cost`.
  void start(std::size_t row, double each, double cost) {
    inverse_[row * m_ + row] = 1.0 / each;
    level_[row] /= each;
    cost_[row] = cost;
  }
  [[nodiscard]] std::vector<double> prices() const {
    std::vector<double> out(m_, 0.0);
    for (std::size_t i = 0; i < m_; ++i) {
      if (cost_[i] == 0) continue;
      const double* row = &inverse_[i * m_];
      for (std::size_t k = 0; k < m_; ++k) out[k] += cost_[i] * row[k];
    }
    return out;
  }
  /// The column comes into the basis; false: numbers have become too small to go on.
  bool enter(const std::vector<std::pair<std::uint32_t, double>>& column, double cost) {
    direction_.assign(m_, 0.0);
    for (std::size_t i = 0; i < m_; ++i)
      for (const auto& [k, amount] : column) direction_[i] += inverse_[i * m_ + k] * amount;
    std::size_t leaves = m_;
    double least = 0;
    for (std::size_t i = 0; i < m_; ++i) {
      if (direction_[i] < 1e-7) continue;
      const double ratio = level_[i] / direction_[i];
      if (leaves == m_ || ratio < least) leaves = i, least = ratio;
    }
    if (leaves == m_) return false;
    const double pivot = direction_[leaves];
    double* out = &inverse_[leaves * m_];
    for (std::size_t k = 0; k < m_; ++k) out[k] /= pivot;
    level_[leaves] = least;
    for (std::size_t i = 0; i < m_; ++i) {
      if (i == leaves || std::abs(direction_[i]) < 1e-12) continue;
      double* row = &inverse_[i * m_];
      for (std::size_t k = 0; k < m_; ++k) row[k] -= direction_[i] * out[k];
      level_[i] = std::max(0.0, level_[i] - direction_[i] * least);
    }
    cost_[leaves] = cost;
    return true;
  }

 private:
  std::size_t m_;
  std::vector<double> inverse_, level_, cost_, direction_;
};

}  // namespace

/// The items among which is chosen, the most valuable for their size first.
const std::vector<std::uint32_t>& PatternFinder::order_of(std::size_t shape, std::size_t weighting) {
  std::vector<std::uint32_t>& out = orders_[shape * kWeightings + weighting];
  if (is_ordered_[shape * kWeightings + weighting]) return out;
  is_ordered_[shape * kWeightings + weighting] = true;
  order_.clear();
  const std::vector<Item>& items = reduced_.problem->items;
  const std::vector<std::uint8_t>& allows = reduced_.allows[shape];
  const std::vector<double>& weights = weightings_[shape][weighting];
  for (const std::uint32_t k : among_) {
    if ((*values_)[k] <= 0 || allows[k] == 0) continue;
    double size = kTiny;
    for (std::size_t r = 0; r < weights.size(); ++r) size += weights[r] * static_cast<double>(items[k].request[r]);
    order_.emplace_back(-(*values_)[k] / size, k);
  }
  std::ranges::sort(order_);
  out.clear();
  for (const auto& [ratio, k] : order_) out.push_back(k);
  return out;
}

void PatternFinder::fill(std::size_t shape, const std::vector<std::int64_t>& left, std::size_t weighting) {
  const std::vector<Item>& items = reduced_.problem->items;
  Amounts room = reduced_.shape(shape).room;
  now_.value = 0;
  now_.content.clear();
  for (const std::uint32_t k : order_of(shape, weighting)) {
    if (left[k] <= 0) continue;
    const std::int64_t n = how_many(items[k].request, room, left[k]);
    if (n == 0) continue;
    take(room, items[k].request, n);
    now_.content.emplace_back(k, n);
    now_.value += (*values_)[k] * static_cast<double>(n);
  }
  if (now_.value > best_.value) std::swap(best_, now_);
}

namespace {

/// How a node's resources are weighed against each other: all alike, then the first two one over the other. The last `slots` are no sizes.
std::vector<std::vector<double>> weightings(const Amounts& room, std::size_t slots) {
  std::vector<std::vector<double>> out;
  for (const double first : {0.5, 0.85, 0.15}) {
    std::vector<double> weights(room.size(), 0.0);
    for (std::size_t r = 0; r < room.size() - slots; ++r) {
      const double share = r == 0 ? first : r == 1 ? 1 - first : 0.25;
      weights[r] = room[r] > 0 ? share / static_cast<double>(room[r]) : 0.0;
    }
    out.push_back(std::move(weights));
  }
  return out;
}

}  // namespace

PatternFinder::PatternFinder(const Reduced& reduced)
    : reduced_(reduced),
      all_(reduced.problem->items.size()),
      orders_(reduced.shapes.size() * kWeightings),
      is_ordered_(reduced.shapes.size() * kWeightings, false) {
  std::iota(all_.begin(), all_.end(), 0);
  for (const std::uint32_t s : reduced.shapes) weightings_.push_back(weightings(reduced.problem->shapes[s].room, reduced.problem->slots));
}

void PatternFinder::begin(const std::vector<double>& values, std::span<const std::uint32_t> among) {
  values_ = &values;
  among_ = among;
  is_ordered_.assign(is_ordered_.size(), false);
}

const Pattern& PatternFinder::find(std::size_t shape, const std::vector<std::int64_t>& left) {
  best_.value = 0;
  best_.content.clear();
  for (std::size_t w = 0; w < kWeightings; ++w) fill(shape, left, w);
  return best_;
}

double PatternFinder::fractional(std::size_t shape, const std::vector<double>& values, const std::vector<std::int64_t>& counts,
                                 const std::vector<double>& weights) {
  order_.clear();
  const std::vector<Item>& items = reduced_.problem->items;
  const auto size_of = [&](std::uint32_t k) {
    double size = kTiny;
    for (std::size_t r = 0; r < weights.size(); ++r) size += weights[r] * static_cast<double>(items[k].request[r]);
    return size;
  };
  for (const std::uint32_t k : all_)
    if (values[k] > 0 && counts[k] > 0 && reduced_.allows[shape][k] != 0) order_.emplace_back(-values[k] / size_of(k), k);
  std::ranges::sort(order_);
  double room = 0, out = 0;
  const Amounts& all = reduced_.shape(shape).room;
  for (std::size_t r = 0; r < weights.size(); ++r) room += weights[r] * static_cast<double>(all[r]);
  for (const auto& [ratio, k] : order_) {
    const double size = size_of(k);
    const auto most = static_cast<double>(how_many(items[k].request, all, counts[k]));
    const double n = std::min(most, room / size);
    out += n * values[k];
    room -= n * size;
    if (room <= 0) break;
  }
  return out;
}

double PatternFinder::at_most(std::size_t shape, const std::vector<double>& values, const std::vector<std::int64_t>& counts) {
  const Amounts& room = reduced_.shape(shape).room;
  double out = std::numeric_limits<double>::infinity();
  // Any weights of the resources give a bound. One resource alone, and the first two in ten mixtures.
  const auto try_weights = [&](const std::vector<double>& shares) {
    std::vector<double> weights(room.size(), 0.0);
    bool some = false;
    for (std::size_t r = 0; r < room.size(); ++r) {
      if (room[r] <= 0 || shares[r] <= 0) continue;
      weights[r] = shares[r] / static_cast<double>(room[r]);
      some = true;
    }
    if (some) out = std::min(out, fractional(shape, values, counts, weights));
  };
  for (std::size_t r = 2; r < room.size() - reduced_.problem->slots; ++r) {
    std::vector<double> shares(room.size(), 0.0);
    shares[r] = 1;
    try_weights(shares);
  }
  for (int step = 0; step <= 10 && room.size() >= 2; ++step) {
    std::vector<double> shares(room.size(), 0.0);
    shares[0] = step / 10.0;
    shares[1] = 1 - step / 10.0;
    try_weights(shares);
  }
  return out;
}

namespace {

/// The cheapest share of a node that one of the item can be: never below what it is worth in the end.
struct Alone {
  double price = 0, each = 0;
};
Alone alone(const Reduced& reduced, std::uint32_t item) {
  Alone out;
  const Item& one = reduced.problem->items[item];
  for (std::size_t s = 0; s < reduced.shapes.size(); ++s) {
    if (reduced.allows[s][item] == 0) continue;
    const auto n = static_cast<double>(how_many(one.request, reduced.shape(s).room, one.count));
    if (n > 0 && (out.each == 0 || reduced.shape(s).price / n < out.price / out.each)) out = {reduced.shape(s).price, n};
  }
  return out;
}

/// These prices, made so small that no node's content is worth more than the node: then nothing costs less than their sum.
double bound_by(PatternFinder& finder, const Reduced& reduced, const std::vector<double>& prices, const std::vector<std::int64_t>& counts) {
  double scale = 1, sum = 0;
  for (std::size_t s = 0; s < reduced.shapes.size(); ++s) {
    const double value = finder.at_most(s, prices, counts), price = reduced.shape(s).price;
    if (value > price) scale = std::min(scale, price / value);
  }
  for (std::size_t k = 0; k < prices.size(); ++k) sum += std::max(0.0, prices[k]) * static_cast<double>(counts[k]);
  return sum * scale;
}

/// Items that are allowed by the same shapes.
struct Class {
  std::vector<std::uint8_t> allowed;  ///< By shape.
  std::vector<double> demand;         ///< Of each resource.
};

/// Prices of a class's resources, as if pods were fluid: a small linear program whose columns are a node each of whose resources goes to
/// the class that pays most for it. No content of a node is worth more than the node, so that the sum is a bound.
class Fluid {
 public:
  Fluid(const Reduced& reduced, const std::vector<std::int64_t>& counts) : reduced_(reduced), class_of_(counts.size(), SIZE_MAX) {
    std::map<std::vector<std::uint8_t>, std::size_t> known;
    for (std::uint32_t k = 0; k < counts.size(); ++k) {
      if (counts[k] <= 0) continue;
      std::vector<std::uint8_t> allowed(reduced.shapes.size());
      bool some = false;
      for (std::size_t s = 0; s < allowed.size(); ++s) some |= (allowed[s] = reduced.allows[s][k]) != 0;
      if (!some) continue;
      const Amounts& request = reduced.problem->items[k].request;
      width_ = request.size() - reduced.problem->slots;
      const auto [at, is_new] = known.try_emplace(allowed, classes_.size());
      if (is_new) classes_.push_back({std::move(allowed), std::vector<double>(width_, 0.0)});
      class_of_[k] = at->second;
      for (std::size_t r = 0; r < width_; ++r)
        classes_[at->second].demand[r] += static_cast<double>(request[r]) * static_cast<double>(counts[k]);
    }
  }

  /// False: there are too many classes for it.
  bool solve(Prices& out, const std::vector<std::int64_t>& counts, const std::function<bool()>& is_over) {
    std::vector<double> demand;
    std::vector<std::pair<std::size_t, std::size_t>> rows;
    row_of_.assign(classes_.size() * width_, SIZE_MAX);
    for (std::size_t c = 0; c < classes_.size(); ++c)
      for (std::size_t r = 0; r < width_; ++r) {
        if (classes_[c].demand[r] <= 0) continue;
        row_of_[c * width_ + r] = demand.size();
        rows.emplace_back(c, r);
        demand.push_back(1.0);  // Each row in units of its own demand.
      }
    if (rows.empty() || rows.size() > kMostRows) return false;
    const std::size_t count = rows.size();
    Master master(count, std::move(demand));
    for (std::size_t i = 0; i < count; ++i) master.start(i, 1.0, dearest(rows[i].first, rows[i].second));
    std::vector<double> best, paid;
    for (std::size_t step = 0; step < 20 * count + 100; ++step) {
      if (is_over && step % 16 == 15 && is_over()) break;
      paid = master.prices();
      const auto cheapest = std::ranges::min_element(paid);
      if (*cheapest < -1e-9) {
        if (!master.enter({{static_cast<std::uint32_t>(cheapest - paid.begin()), -1.0}}, 0.0)) break;
        continue;
      }
      std::vector<std::pair<std::uint32_t, double>> column;
      double most = 0;
      std::size_t chosen = 0;
      for (std::size_t s = 0; s < reduced_.shapes.size(); ++s)
        if (const double ratio = value_of(s, paid, nullptr) / reduced_.shape(s).price; ratio > most) most = ratio, chosen = s;
      keep(out, paid, most, counts);
      if (most < 1 + 1e-7) break;
      value_of(chosen, paid, &column);
      if (!master.enter(column, reduced_.shape(chosen).price)) break;
    }
    return true;
  }

 private:
  /// More than the class's demand of the resource can ever cost.
  [[nodiscard]] double dearest(std::size_t c, std::size_t r) const {
    double out = 0;
    for (std::size_t s = 0; s < reduced_.shapes.size(); ++s)
      if (classes_[c].allowed[s] != 0 && reduced_.shape(s).room[r] > 0)
        out = std::max(out, reduced_.shape(s).price * (1 + classes_[c].demand[r] / static_cast<double>(reduced_.shape(s).room[r])));
    return out * 10;
  }
  /// What the classes pay for the node at most.
  double value_of(std::size_t s, const std::vector<double>& paid, std::vector<std::pair<std::uint32_t, double>>* column) const {
    double out = 0;
    for (std::size_t r = 0; r < width_; ++r) {
      double most = 0, amount = 0;
      std::size_t row = SIZE_MAX;
      for (std::size_t c = 0; c < classes_.size(); ++c) {
        const std::size_t at = row_of_[c * width_ + r];
        if (at == SIZE_MAX || classes_[c].allowed[s] == 0) continue;
        const double share = static_cast<double>(reduced_.shape(s).room[r]) / classes_[c].demand[r];
        if (paid[at] * share > most) most = paid[at] * share, row = at, amount = share;
      }
      out += most;
      if (column != nullptr && row != SIZE_MAX) column->emplace_back(static_cast<std::uint32_t>(row), amount);
    }
    return out;
  }
  /// Prices of items where these are better than those before: `most` is how much too high they are at most.
  void keep(Prices& out, const std::vector<double>& paid, double most, const std::vector<std::int64_t>& counts) const {
    double sum = 0;
    for (const double one : paid) sum += std::max(0.0, one);
    const double scale = most > 1 ? 1 / most : 1;
    if (sum * scale <= out.bound) return;
    out.bound = sum * scale;
    for (std::uint32_t k = 0; k < counts.size(); ++k) {
      if (class_of_[k] == SIZE_MAX) continue;
      const Class& one = classes_[class_of_[k]];
      double price = 0;
      for (std::size_t r = 0; r < width_; ++r)
        if (const std::size_t at = row_of_[class_of_[k] * width_ + r]; at != SIZE_MAX)
          price += paid[at] * scale * static_cast<double>(reduced_.problem->items[k].request[r]) / one.demand[r];
      out.of_item[k] = price;
    }
  }

  const Reduced& reduced_;
  std::vector<Class> classes_;
  std::vector<std::size_t> class_of_, row_of_;
  std::size_t width_ = 0;
};

/// Whole patterns instead of fluid: better where few pods fill a node. Starts near the prices that are known (Wentges' smoothing).
class Generation {
 public:
  Generation(const Reduced& reduced, const std::vector<std::int64_t>& counts)
      : reduced_(reduced), counts_(counts), finder_(reduced), row_of_(counts.size(), SIZE_MAX) {
    for (std::uint32_t k = 0; k < counts.size(); ++k) {
      if (counts[k] <= 0) continue;
      const Alone start = alone(reduced, k);
      if (start.each == 0) continue;
      row_of_[k] = items_.size();
      items_.push_back(k);
      starts_.push_back(start);
    }
  }

  void run(Prices& out, const std::function<bool()>& is_over) {
    const std::size_t rows = items_.size();
    if (rows == 0) return;
    if (out.bound == 0)
      for (std::size_t i = 0; i < rows; ++i) out.of_item[items_[i]] = starts_[i].price / starts_[i].each;
    improve(out, out.of_item);
    if (rows > kMostRows / 2) return;
    std::vector<double> demand;
    for (const std::uint32_t k : items_) demand.push_back(static_cast<double>(counts_[k]));
    Master master(rows, std::move(demand));
    for (std::size_t i = 0; i < rows; ++i) master.start(i, starts_[i].each, starts_[i].price);
    std::vector<double> outer(counts_.size(), 0.0), between = outer;
    const std::size_t most = rows <= 60 ? 20 * rows + 100 : 4000 / rows + 10;
    for (std::size_t step = 0; step < most; ++step) {
      if (is_over && step % 8 == 7 && is_over()) return;
      const std::vector<double> by_row = master.prices();
      const auto cheapest = std::ranges::min_element(by_row);
      if (*cheapest < -1e-7) {
        if (!master.enter({{static_cast<std::uint32_t>(cheapest - by_row.begin()), -1.0}}, 0.0)) return;
        continue;
      }
      for (std::size_t i = 0; i < rows; ++i) outer[items_[i]] = by_row[i];
      for (std::size_t k = 0; k < outer.size(); ++k) between[k] = 0.7 * out.of_item[k] + 0.3 * outer[k];
      if (!enter_best(master, between, outer) && !enter_best(master, outer, outer)) {
        improve(out, outer);
        return;
      }
      if (step % 20 == 19) improve(out, between);
    }
    improve(out, outer);
  }

 private:
  void improve(Prices& out, const std::vector<double>& prices) {
    const double bound = bound_by(finder_, reduced_, prices, counts_);
    if (bound <= out.bound) return;
    out.bound = bound;
    out.of_item = prices;
  }
  /// The pattern that is best by `prices`; false when by `judged` it is worth no more than it costs.
  bool enter_best(Master& master, const std::vector<double>& prices, const std::vector<double>& judged) {
    double best = 0;
    std::size_t chosen = reduced_.shapes.size();
    std::vector<std::pair<std::uint32_t, std::int64_t>> content;
    finder_.begin(prices, finder_.all());
    for (std::size_t s = 0; s < reduced_.shapes.size(); ++s) {
      const Pattern& pattern = finder_.find(s, counts_);
      if (const double ratio = pattern.value / reduced_.shape(s).price; ratio > best) best = ratio, chosen = s, content = pattern.content;
    }
    if (chosen == reduced_.shapes.size()) return false;
    double value = 0;
    std::vector<std::pair<std::uint32_t, double>> column;
    for (const auto& [k, n] : content) {
      value += judged[k] * static_cast<double>(n);
      column.emplace_back(static_cast<std::uint32_t>(row_of_[k]), static_cast<double>(n));
    }
    return value > reduced_.shape(chosen).price * (1 + 1e-6) && master.enter(column, reduced_.shape(chosen).price);
  }

  const Reduced& reduced_;
  const std::vector<std::int64_t>& counts_;
  PatternFinder finder_;
  std::vector<std::size_t> row_of_;
  std::vector<std::uint32_t> items_;
  std::vector<Alone> starts_;
};

}  // namespace

Prices price_items(const Reduced& reduced, const std::vector<std::int64_t>& counts, const std::function<bool()>& is_over) {
  Prices out{std::vector<double>(counts.size(), 0.0), 0};
  Fluid(reduced, counts).solve(out, counts, is_over);
  Generation(reduced, counts).run(out, is_over);
  for (double& price : out.of_item) price = std::max(price, 0.0);
  return out;
}

}  // namespace berth::pools
