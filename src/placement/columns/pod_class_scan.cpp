// Deciding for a pod whose like has not been seen: a walk over the amounts of all nodes, with nothing kept.
#include <algorithm>

#include "placement/columns/pod_class.h"
#include "placement/plugins/normalize.h"

namespace berth::placement {
namespace {

constexpr std::int32_t kUnfit = INT32_MIN;

/// The weighted scores that are normalized by the highest among the nodes that fit. Neighbours mostly have the same raw scores.
class Bonus {
 public:
  struct Scorer {
    std::int64_t weight, max;
    bool reversed;
  };
  void add(Scorer scorer) { scorers_.push_back(scorer); }
  std::int32_t of(const StaticColumn::Entry& entry) {
    if (is_known_ && entry.raw[0] == raw_[0] && entry.raw[1] == raw_[1]) return value_;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < scorers_.size(); ++i)
      sum += scorers_[i].weight * normalized_by_max(entry.raw[i], scorers_[i].max, scorers_[i].reversed);
    is_known_ = true;
    raw_[0] = entry.raw[0];
    raw_[1] = entry.raw[1];
    value_ = static_cast<std::int32_t>(sum);
    return value_;
  }

 private:
  std::vector<Scorer> scorers_;
  bool is_known_ = false;
  std::int32_t raw_[2] = {0, 0}, value_ = 0;
};

}  // namespace

bool PodClass::can_scan() const {
  return pre_filter_.is_success() && by_amounts_ && !has_domains() && !signature_.has_checks() && !index_->cluster().has_nominations();
}

std::optional<PodClass::Choice> PodClass::scan(const Options& options, std::vector<std::int32_t>& totals) const {
  const Cluster& cluster = index_->cluster();
  const std::uint32_t slots = cluster.slot_count();
  totals.assign(slots, kUnfit);
  std::int64_t max_raw[2] = {0, 0};
  Choice out;
  for (std::uint32_t i = 0; i < slots; ++i) {
    const NodeAmounts& amounts = index_->amounts(i);
    const StaticColumn::Entry& fixed = (*static_)[i];
    if (fixed.verdict != 0 || resources_.shortage(amounts) != 0) continue;
    if (!amounts.is_plain) return std::nullopt;
    totals[i] = static_cast<std::int32_t>(fixed.score + resources_.score(amounts));
    max_raw[0] = std::max<std::int64_t>(max_raw[0], fixed.raw[0]);
    max_raw[1] = std::max<std::int64_t>(max_raw[1], fixed.raw[1]);
    ++out.feasible_nodes;
  }
  if (out.feasible_nodes == 0) return std::nullopt;
  Bonus bonus;
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i) bonus.add({raw_scorers_[i].weight, max_raw[i], raw_scorers_[i].reversed});
  std::int32_t best = kUnfit;
  for (std::uint32_t i = 0; i < slots; ++i) {
    if (totals[i] == kUnfit) continue;
    totals[i] += bonus.of((*static_)[i]);
    if (totals[i] > best) best = totals[i], out.tied_nodes = 0;
    out.tied_nodes += totals[i] == best;
  }
  out.score = best + constant_score_;
  std::size_t nth = 0;
  if (options.random != nullptr && !options.first_by_name && out.tied_nodes > 1)
    nth = std::uniform_int_distribution<std::size_t>(0, out.tied_nodes - 1)(*options.random);
  const std::string* first = nullptr;
  for (std::uint32_t i = 0; i < slots; ++i) {
    if (totals[i] != best) continue;
    if (!options.first_by_name && nth-- == 0) {
      out.node = NodeIndex{i};
      break;
    }
    if (!options.first_by_name) continue;
    const std::string& name = cluster.node(NodeIndex{i})->name;
    if (first != nullptr && *first <= name) continue;
    first = &name;
    out.node = NodeIndex{i};
  }
  return out;
}

}  // namespace berth::placement
