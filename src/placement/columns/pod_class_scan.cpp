// Deciding for a pod whose like has not been seen: a walk over the amounts of all nodes, with nothing kept.
#include <algorithm>

#include "placement/columns/pod_class.h"
#include "placement/plugins/normalize.h"

namespace berth::placement {
namespace {

constexpr std::int32_t kUnfit = ScanTable::kUnfit;

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
  return pre_filter_.is_success() && by_amounts_ && !has_domains_ && !signature_.has_checks() && !index_->cluster().has_nominations();
}

std::optional<PodClass::Choice> PodClass::scan(const Options& options, ScanTable& table, std::vector<std::int32_t>& totals) const {
  const Cluster& cluster = index_->cluster();
  const std::uint32_t slots = cluster.slot_count();
  table.sync(*index_);
  table.score(resources_, *index_, totals);
  std::int32_t max_raw[2] = {0, 0}, best = kUnfit;
  bool is_even = true;  // All have the same raw scores.
  StaticColumn::Entry before;
  Choice out;
  constexpr std::uint32_t kRun = Pages<StaticColumn::Entry>::kPage;  // Entries of a page stand side by side.
  for (std::uint32_t first = 0; first < slots; first += kRun) {
    const StaticColumn::Entry* const entries = &(*static_)[first];
    std::int32_t* const of_page = totals.data() + first;
    for (std::uint32_t i = 0; i < std::min(kRun, slots - first); ++i) {
      if (of_page[i] == kUnfit) continue;
      const StaticColumn::Entry& fixed = entries[i];
      if (fixed.verdict != 0) {
        of_page[i] = kUnfit;
        continue;
      }
      if (of_page[i] == ScanTable::kNotPlain) return std::nullopt;
      if (fixed.raw[0] != before.raw[0] || fixed.raw[1] != before.raw[1]) {
        is_even &= out.feasible_nodes == 0;
        max_raw[0] = std::max(max_raw[0], fixed.raw[0]);
        max_raw[1] = std::max(max_raw[1], fixed.raw[1]);
        before = fixed;
      }
      ++out.feasible_nodes;
      const std::int32_t total = of_page[i] += fixed.score;
      if (total > best) best = total, out.tied_nodes = 0;
      out.tied_nodes += total == best;
    }
  }
  if (out.feasible_nodes == 0) return std::nullopt;
  Bonus bonus;
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i) bonus.add({raw_scorers_[i].weight, max_raw[i], raw_scorers_[i].reversed});
  out.score = constant_score_;
  if (is_even) {
    out.score += best + bonus.of(before);
  } else {
    best = kUnfit;
    for (std::uint32_t i = 0; i < slots; ++i) {
      if (totals[i] == kUnfit) continue;
      totals[i] += bonus.of((*static_)[i]);
      if (totals[i] > best) best = totals[i], out.tied_nodes = 0;
      out.tied_nodes += totals[i] == best;
    }
    out.score += best;
  }
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
