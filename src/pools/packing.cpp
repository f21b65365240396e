#include "pools/packing.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "pools/packing_parts.h"

namespace berth::pools {

std::int64_t Packed::left_count() const { return std::accumulate(left.begin(), left.end(), std::int64_t{0}); }

namespace {

constexpr double kCent = 1e-9;  ///< Prices that differ by less are equal.

bool is_within(const Amounts& capacity, const Amounts& left) { return fits(capacity, left); }

/// Takes from what is left of a limit; what has no limit keeps none.
void take_limit(Amounts& left, const Amounts& capacity) {
  for (std::size_t i = 0; i < left.size(); ++i)
    if (left[i] != INT64_MAX) left[i] -= capacity[i];
}

/// Items by cpu, then memory, the largest first.
std::vector<std::uint32_t> by_size(const PackingProblem& problem) {
  std::vector<std::uint32_t> out(problem.items.size());
  std::iota(out.begin(), out.end(), 0);
  std::ranges::stable_sort(out, [&](std::uint32_t a, std::uint32_t b) { return problem.items[a].request > problem.items[b].request; });
  return out;
}

std::vector<std::size_t> pools_by_weight(const PackingProblem& problem) {
  std::vector<std::size_t> out(problem.pools.size());
  std::iota(out.begin(), out.end(), 0);
  std::ranges::stable_sort(out, std::greater{}, [&](std::size_t pool) { return problem.pools[pool].weight; });
  return out;
}

/// A node of which it is not settled what it will be.
struct OpenNode {
  std::vector<std::uint32_t> shapes;  ///< Indices into Reduced::shapes.
  Amounts used;
  std::map<std::uint32_t, std::int64_t> content;
  std::vector<bool> refused;  ///< Items: they do not fit any more.
};

class FirstFit {
 public:
  explicit FirstFit(const PackingProblem& problem) : problem_(problem), reduced_(reduce(problem, Allowed::kAll)), rules_(problem.pools) {}

  Packed run() {
    Packed out;
    out.left.resize(problem_.items.size());
    for (const std::uint32_t k : by_size(problem_)) {
      std::int64_t n = problem_.items[k].count;
      while (n > 0 && (put_on_open(k) || put_on_new(k))) --n;
      out.left[k] = n;
    }
    for (const OpenNode& node : nodes_) {
      Bin bin{cheapest(node.shapes), {node.content.begin(), node.content.end()}};
      out.cost += problem_.shapes[bin.shape].price;
      out.bins.push_back(std::move(bin));
    }
    out.greedy_cost = out.cost;
    return out;
  }

 private:
  [[nodiscard]] std::uint32_t cheapest(const std::vector<std::uint32_t>& shapes) const {
    return reduced_.shapes[*std::ranges::min_element(shapes, {}, [&](std::uint32_t s) { return reduced_.shape(s).price; })];
  }
  bool put_on_open(std::uint32_t k) {
    for (const auto& entry : order_) {
      const auto [pods, number] = entry;  // By value: its place in the order changes.
      OpenNode& node = nodes_[number];
      if (node.refused[k]) continue;
      if (!add(node, k)) {
        node.refused[k] = true;
        continue;
      }
      order_.erase({pods, number});
      order_.emplace(pods + 1, number);
      return true;
    }
    return false;
  }
  bool add(OpenNode& node, std::uint32_t k) {
    Amounts used = node.used;
    take(used, problem_.items[k].request, -1);
    std::vector<std::uint32_t> shapes;
    for (const std::uint32_t s : node.shapes)
      if (reduced_.allows[s][k] != 0 && fits(used, reduced_.shape(s).room)) shapes.push_back(s);
    if (shapes.empty()) return false;
    node.used = std::move(used);
    node.shapes = std::move(shapes);
    ++node.content[k];
    return true;
  }
  bool put_on_new(std::uint32_t k) {
    for (const std::size_t pool : pools_by_weight(problem_)) {
      OpenNode node{{}, Amounts(problem_.items[k].request.size(), 0), {}, std::vector<bool>(problem_.items.size())};
      for (std::uint32_t s = 0; s < reduced_.shapes.size(); ++s)
        if (reduced_.shape(s).pool == pool && is_within(reduced_.shape(s).capacity, rules_[pool].left)) node.shapes.push_back(s);
      if (!add(node, k)) continue;
      // The largest of what it may become counts against the limits.
      Amounts most(rules_[pool].left.size(), 0);
      for (const std::uint32_t s : node.shapes)
        for (std::size_t r = 0; r < most.size(); ++r) most[r] = std::max(most[r], reduced_.shape(s).capacity[r]);
      take_limit(rules_[pool].left, most);
      order_.emplace(1, nodes_.size());
      nodes_.push_back(std::move(node));
      return true;
    }
    return false;
  }

  const PackingProblem& problem_;
  Reduced reduced_;
  std::vector<PoolRules> rules_;
  std::vector<OpenNode> nodes_;
  std::set<std::pair<std::size_t, std::size_t>> order_;  ///< How many it has, number.
};

/// The state of one way to pack, changed by hand.
class Builder {
 public:
  Builder(const Reduced& reduced, PatternFinder& finder) : reduced_(reduced), finder_(finder) {}

  struct State {
    std::vector<Bin> bins;
    std::vector<std::int64_t> left;
    std::vector<Amounts> limits;
    double cost = 0;
  };
  [[nodiscard]] State empty() const {
    State out;
    for (const Item& item : reduced_.problem->items) out.left.push_back(item.count);
    for (const PoolRules& pool : reduced_.problem->pools) out.limits.push_back(pool.left);
    return out;
  }
  void add(State& state, std::uint32_t shape, std::vector<std::pair<std::uint32_t, std::int64_t>> content) const {
    const BinShape& bought = reduced_.problem->shapes[shape];
    take_limit(state.limits[bought.pool], bought.capacity);
    state.cost += bought.price;
    for (const auto& [k, n] : content) state.left[k] -= n;
    std::ranges::sort(content);
    state.bins.push_back({shape, std::move(content)});
  }
  void remove(State& state, std::size_t at) const {
    Bin& bin = state.bins[at];
    const BinShape& bought = reduced_.problem->shapes[bin.shape];
    Amounts& limit = state.limits[bought.pool];
    for (std::size_t i = 0; i < limit.size(); ++i)
      if (limit[i] != INT64_MAX) limit[i] += bought.capacity[i];
    state.cost -= bought.price;
    for (const auto& [k, n] : bin.content) state.left[k] += n;
    std::swap(bin, state.bins.back());
    state.bins.pop_back();
  }
  /// Buys the node whose content is worth most for its price, again and again.
  void complete(State& state, const std::vector<double>& values) const {
    std::vector<std::uint32_t> waiting;
    for (std::uint32_t k = 0; k < state.left.size(); ++k)
      if (state.left[k] > 0) waiting.push_back(k);
    finder_.begin(values, waiting);
    for (;;) {
      double best = 0, most = 0;
      std::size_t chosen = reduced_.shapes.size();
      std::vector<std::pair<std::uint32_t, std::int64_t>> content;
      for (std::size_t s = 0; s < reduced_.shapes.size(); ++s) {
        const BinShape& shape = reduced_.shape(s);
        if (!is_within(shape.capacity, state.limits[shape.pool])) continue;
        const Pattern& pattern = finder_.find(s, state.left);
        if (pattern.content.empty()) continue;
        const double ratio = pattern.value / std::max(shape.price, kCent);
        // Of equals the larger: fewer nodes.
        if (ratio < best * (1 + 1e-9) && (ratio < best * (1 - 1e-9) || pattern.value <= most)) continue;
        best = ratio;
        most = pattern.value;
        chosen = s;
        content = pattern.content;
      }
      if (chosen == reduced_.shapes.size()) return;
      buy(state, chosen, content);
    }
  }
  /// What has no place goes where there is room.
  void fill_room(State& state) const {
    std::vector<std::uint32_t> waiting;
    for (const std::uint32_t k : by_size(*reduced_.problem))
      if (state.left[k] > 0) waiting.push_back(k);
    for (Bin& bin : state.bins) {
      if (waiting.empty()) return;
      const auto place = std::ranges::lower_bound(reduced_.shapes, bin.shape);
      if (place == reduced_.shapes.end() || *place != bin.shape) continue;
      const auto& allows = reduced_.allows[static_cast<std::size_t>(place - reduced_.shapes.begin())];
      Amounts room = room_of(bin);
      for (const std::uint32_t k : waiting) {
        const std::int64_t n = allows[k] == 0 ? 0 : how_many(reduced_.problem->items[k].request, room, state.left[k]);
        if (n == 0) continue;
        take(room, reduced_.problem->items[k].request, n);
        state.left[k] -= n;
        put(bin, k, n);
      }
      std::erase_if(waiting, [&](std::uint32_t k) { return state.left[k] == 0; });
    }
  }
  /// Each node becomes the cheapest that takes its content.
  void right_size(State& state) const {
    for (Bin& bin : state.bins) {
      const BinShape& now = reduced_.problem->shapes[bin.shape];
      Amounts used(now.room.size(), 0);
      for (const auto& [k, n] : bin.content) take(used, reduced_.problem->items[k].request, -n);
      std::uint32_t best = bin.shape;
      for (std::size_t s = 0; s < reduced_.shapes.size(); ++s) {
        const BinShape& shape = reduced_.shape(s);
        if (shape.price >= reduced_.problem->shapes[best].price - kCent || !fits(used, shape.room)) continue;
        if (shape.pool != now.pool && !is_within(shape.capacity, state.limits[shape.pool])) continue;
        if (shape.pool == now.pool && !is_within(grown(shape.capacity, now.capacity), state.limits[shape.pool])) continue;
        if (!std::ranges::all_of(bin.content, [&](const auto& one) { return reduced_.allows[s][one.first] != 0; })) continue;
        best = reduced_.shapes[s];
      }
      if (best == bin.shape) continue;
      const BinShape& next = reduced_.problem->shapes[best];
      for (std::size_t i = 0; i < next.capacity.size(); ++i) {
        if (Amounts& limit = state.limits[now.pool]; limit[i] != INT64_MAX) limit[i] += now.capacity[i];
        if (Amounts& limit = state.limits[next.pool]; limit[i] != INT64_MAX) limit[i] -= next.capacity[i];
      }
      state.cost += next.price - now.price;
      bin.shape = best;
    }
  }
  [[nodiscard]] double use_of(const Bin& bin, const std::vector<double>& values) const {
    double value = 0;
    for (const auto& [k, n] : bin.content) value += values[k] * static_cast<double>(n);
    return value / std::max(reduced_.problem->shapes[bin.shape].price, kCent);
  }

 private:
  static Amounts grown(const Amounts& to, const Amounts& from) {
    Amounts out = to;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::max<std::int64_t>(0, to[i] - from[i]);
    return out;
  }
  static void put(Bin& bin, std::uint32_t k, std::int64_t n) {
    const auto at = std::ranges::lower_bound(bin.content, k, {}, [](const auto& one) { return one.first; });
    if (at != bin.content.end() && at->first == k)
      at->second += n;
    else
      bin.content.insert(at, {k, n});
  }
  [[nodiscard]] Amounts room_of(const Bin& bin) const {
    Amounts out = reduced_.problem->shapes[bin.shape].room;
    for (const auto& [k, n] : bin.content) take(out, reduced_.problem->items[k].request, n);
    return out;
  }
  /// The same content as often as there is enough of it.
  void buy(State& state, std::size_t shape, const std::vector<std::pair<std::uint32_t, std::int64_t>>& content) const {
    std::int64_t times = INT64_MAX;
    for (const auto& [k, n] : content) times = std::min(times, state.left[k] / n);
    const BinShape& bought = reduced_.shape(shape);
    for (; times > 0 && is_within(bought.capacity, state.limits[bought.pool]); --times) add(state, reduced_.shapes[shape], content);
  }

  const Reduced& reduced_;
  PatternFinder& finder_;
};

bool is_better(const Builder::State& a, const Builder::State& b) {
  const auto count = [](const Builder::State& state) { return std::accumulate(state.left.begin(), state.left.end(), std::int64_t{0}); };
  const std::int64_t left_a = count(a), left_b = count(b);
  if (left_a != left_b) return left_a < left_b;
  return a.cost < b.cost - kCent || (a.cost < b.cost + kCent && a.bins.size() < b.bins.size());
}

/// Takes the nodes that are used worst, and some by lot, apart and packs their content anew.
void ruin_and_recreate(const Builder& builder, Builder::State& best, const std::vector<double>& values, const PackingOptions& options) {
  std::mt19937_64 random(options.seed);
  const auto draw = [&](std::size_t below) { return static_cast<std::size_t>(random() % std::max<std::size_t>(below, 1)); };
  for (int round = 0; round < options.rounds && best.bins.size() > 1; ++round) {
    if (options.is_over && options.is_over()) return;
    Builder::State state = best;
    std::ranges::sort(state.bins, std::greater{}, [&](const Bin& bin) { return builder.use_of(bin, values); });
    const std::size_t most = std::min<std::size_t>(state.bins.size(), 3 + draw(std::min<std::size_t>(state.bins.size() / 4 + 4, 40)));
    for (std::size_t i = 0; i < most; ++i) {
      // Two in three from the end with the worst, the third from anywhere.
      const std::size_t from_end = draw(3) == 0 ? draw(state.bins.size()) : draw(std::min<std::size_t>(state.bins.size(), 2 + most));
      builder.remove(state, state.bins.size() - 1 - from_end);
    }
    std::vector<double> shaken = values;
    for (double& value : shaken) value *= 0.85 + 0.3 * static_cast<double>(draw(1000)) / 1000.0;
    if (draw(2) == 0) builder.fill_room(state);
    builder.complete(state, shaken);
    builder.fill_room(state);
    builder.right_size(state);
    if (is_better(state, best)) best = std::move(state);
  }
}

Packed as_packed(const PackingProblem& problem, Builder::State state) {
  Packed out;
  std::erase_if(state.bins, [](const Bin& bin) { return bin.content.empty(); });
  for (const Bin& bin : state.bins) out.cost += problem.shapes[bin.shape].price;
  out.bins = std::move(state.bins);
  out.left = std::move(state.left);
  return out;
}

/// One attempt: items to the pools that weigh most, what these leave to the others.
Builder::State pack_at_once(const PackingProblem& problem, const PackingOptions& options, const std::vector<double>& values,
                            const Reduced& first, const Reduced& all) {
  PatternFinder finder(first), wider(all);
  const Builder builder(first, finder), later(all, wider);
  Builder::State state = builder.empty();
  builder.complete(state, values);
  builder.fill_room(state);
  builder.right_size(state);
  ruin_and_recreate(builder, state, values, options);
  later.fill_room(state);
  later.complete(state, values);
  (void)problem;
  return state;
}

}  // namespace

namespace {

/// No limit of its pool counts nodes of the shape.
bool is_endless(const PackingProblem& problem, const BinShape& shape) {
  const Amounts& left = problem.pools[shape.pool].left;
  for (std::size_t r = 0; r < shape.capacity.size(); ++r)
    if (left[r] != INT64_MAX && shape.capacity[r] > 0) return false;
  return true;
}

}  // namespace

Reduced reduce(const PackingProblem& problem, Allowed which) {
  Reduced out{&problem, {}, {}};
  std::vector<std::vector<std::uint8_t>> allows(problem.shapes.size(), std::vector<std::uint8_t>(problem.items.size(), 0));
  for (std::uint32_t k = 0; k < problem.items.size(); ++k) {
    const Item& item = problem.items[k];
    std::int64_t best = INT64_MIN;
    const auto can_take = [&](std::uint32_t s) {
      const BinShape& shape = problem.shapes[s];
      return fits(item.request, shape.room) && is_within(shape.capacity, problem.pools[shape.pool].left);
    };
    const auto counts = [&](std::uint32_t s) {
      return which == Allowed::kBest || (which == Allowed::kPossible && item.goes_by_weight && is_endless(problem, problem.shapes[s]));
    };
    for (const std::uint32_t s : item.shapes)
      if (problem.pools[problem.shapes[s].pool].weight > best && counts(s) && can_take(s))
        best = problem.pools[problem.shapes[s].pool].weight;
    for (const std::uint32_t s : item.shapes)
      if (problem.pools[problem.shapes[s].pool].weight >= best && can_take(s)) allows[s][k] = 1;
  }
  // Shapes of one pool that allow the same and, of these, the same limits: one that is no larger and no cheaper than another goes.
  std::vector<std::uint32_t> order(problem.shapes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t s) { return problem.shapes[s].price; });
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t s : order) {
    if (std::ranges::find(allows[s], 1) == allows[s].end()) continue;
    const BinShape& shape = problem.shapes[s];
    const auto beats = [&](std::uint32_t other) {
      const BinShape& one = problem.shapes[other];
      if (one.pool != shape.pool || !fits(shape.room, one.room)) return false;
      for (std::size_t r = 0; r < shape.capacity.size(); ++r)
        if (problem.pools[shape.pool].left[r] != INT64_MAX && one.capacity[r] > shape.capacity[r]) return false;
      for (std::size_t k = 0; k < problem.items.size(); ++k)
        if (allows[s][k] > allows[other][k]) return false;
      return true;
    };
    if (std::ranges::none_of(kept, beats)) kept.push_back(s);
  }
  std::ranges::sort(kept);
  for (const std::uint32_t s : kept) {
    out.shapes.push_back(s);
    out.allows.push_back(std::move(allows[s]));
  }
  return out;
}

Packed pack_first_fit(const PackingProblem& problem) { return FirstFit(problem).run(); }

Packed pack(const PackingProblem& problem, const PackingOptions& options) {
  Packed greedy = pack_first_fit(problem);
  const Reduced first = reduce(problem, Allowed::kBest), all = reduce(problem, Allowed::kAll);
  std::vector<std::int64_t> counts;
  for (const Item& item : problem.items) counts.push_back(item.count);
  const Prices prices = price_items(first, counts, options.is_over);
  Packed out = as_packed(problem, pack_at_once(problem, options, prices.of_item, first, all));
  if (greedy.left_count() < out.left_count() || (greedy.left_count() == out.left_count() && greedy.cost < out.cost - kCent)) {
    // What it found may still be improved.
    PatternFinder finder(first);
    const Builder builder(first, finder);
    Builder::State state = builder.empty();
    for (Bin& bin : greedy.bins) builder.add(state, bin.shape, std::move(bin.content));
    builder.right_size(state);
    if (options.rounds > 0) ruin_and_recreate(builder, state, prices.of_item, options);
    const double paid = greedy.cost;
    greedy = as_packed(problem, std::move(state));
    greedy.greedy_cost = paid;
    out = std::move(greedy);
  } else {
    out.greedy_cost = greedy.cost;
  }
  // The bound is of what has a place; where a pool may be at its limits, others serve its pods.
  const bool is_limited = std::ranges::any_of(problem.pools, [](const PoolRules& pool) {
    return std::ranges::any_of(pool.left, [](std::int64_t left) { return left != INT64_MAX; });
  });
  if (out.left_count() == 0 && !is_limited) {
    out.bound = std::min(prices.bound, out.cost);
  } else {
    for (std::size_t k = 0; k < counts.size(); ++k) counts[k] -= out.left[k];
    out.bound = std::min(price_items(is_limited ? reduce(problem, Allowed::kPossible) : first, counts, options.is_over).bound, out.cost);
  }
  return out;
}

double lower_bound(const PackingProblem& problem, const std::function<bool()>& is_over) {
  std::vector<std::int64_t> counts;
  for (const Item& item : problem.items) counts.push_back(item.count);
  return price_items(reduce(problem, Allowed::kPossible), counts, is_over).bound;
}

}  // namespace berth::pools
