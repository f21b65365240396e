// The answers of all nodes to a class of preemptors: kept, and the best found.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "placement/preemptor_class.h"

namespace berth::placement {
namespace {

using Kind = PreemptionAnswer::Kind;
/// How much pods may count for a domain, on one node: more is as much.
constexpr std::int64_t kFarthest = 10'000;

}  // namespace

void PreemptionTally::add(const PreemptionAnswer& answer, std::int64_t count) {
  kinds[static_cast<std::size_t>(answer.kind)] += count;
  if (answer.kind != Kind::kTooSmall) return;
  if (answer.missing >= missing.size()) missing.resize(answer.missing + 1UL);
  missing[answer.missing] += count;
}

void PreemptorClass::count_node(std::uint32_t node) {
  for (Step& step : steps_)
    if (step.own != 0) step.load->update(node, cluster_->node(NodeIndex{node}));
}

void PreemptorClass::renew() {
  const std::size_t size = index_->slot_count();
  answers_.renew(size);
  blocks_.assign(size / kBlock + 1, {});
  reach_.renew(of_domains_.empty() ? 0 : size);
  specials_.renew(of_domains_.empty() ? 0 : size);
  tally_ = {};
  tally_.add({}, static_cast<std::int64_t>(size));
  for (std::uint32_t i = 0; i < size; ++i) set_answer(i);
}

void PreemptorClass::catch_up() {
  const std::uint64_t end = index_->touched_end();
  const auto phase = [&] {
    std::uint32_t out = 0;
    for (const Step& step : steps_) out = out * 2 + (step.load == nullptr ? 0 : step.load->phase());
    return out;
  };
  if (answers_.empty() || seen_ < index_->touched_begin() || end - seen_ > index_->slot_count()) {
    for (Step& step : steps_)
      if (step.own != 0) step.load->reset();
    for (std::uint32_t i = 0; counts_nodes_ && i < index_->slot_count(); ++i) count_node(i);
    seen_ = end;
    phase_ = phase();
    return renew();
  }
  if (answers_.size() < index_->slot_count()) {
    const std::size_t size = index_->slot_count();
    tally_.add({}, static_cast<std::int64_t>(size - answers_.size()));
    answers_.resize(size);
    blocks_.resize(size / kBlock + 1);
    if (!of_domains_.empty()) reach_.resize(size), specials_.resize(size);
  }
  // A node that changed several times in a row is asked once. All are counted first: what is said of one may depend on all.
  const auto for_touched = [&](auto&& each) {
    for (std::uint64_t at = seen_; at < end; ++at)
      if (at + 1 == end || index_->touched(at + 1) != index_->touched(at)) each(index_->touched(at));
  };
  if (counts_nodes_) for_touched([&](std::uint32_t node) { count_node(node); });
  if (const std::uint32_t now = phase(); std::exchange(phase_, now) != now)
    renew();
  else
    for_touched([&](std::uint32_t node) { set_answer(node); });
  seen_ = end;
  BERTH_CHECK(std::accumulate(tally_.kinds.begin(), tally_.kinds.end(), std::int64_t{0}) == static_cast<std::int64_t>(answers_.size()),
              "{} nodes have answers, and others are counted", answers_.size());
}

void PreemptorClass::set_answer(std::uint32_t node) {
  PreemptionAnswer& known = answers_.edit(node);
  tally_.add(known, -1);
  known = {};
  const NodeInfo* info = cluster_->node(NodeIndex{node});
  const bool is_there = info != nullptr && index_->node(node).is_candidate;
  if (is_there) known = answer_in_open(NodeIndex{node});
  tally_.add(known, 1);
  blocks_[node / kBlock].is_known = false;
  if (of_domains_.empty()) return;
  std::int64_t reach = 0;
  if (is_there) {
    Numbers sums{};
    const auto add = [&](const std::int64_t* load) {
      for (std::size_t i = kAmounts; load != nullptr && i < numbers_; ++i) sums[i] += std::abs(load[i - kAmounts]);
    };
    for (const auto& row : index_->node(node).rows)
      if (row.priority < pod_->view().priority) add(own_load(row));
    for (const auto& other : cluster_->nominated(NodeIndex{node})) {
      Numbers load{};
      add_load(load, *other);
      add(load.data() + kAmounts);
    }
    for (const std::size_t condition : of_domains_) reach = std::max(reach, sums[number_of_[condition]]);
  }
  reach_.edit(node) = static_cast<std::uint16_t>(std::min(reach, kFarthest));
  has_failed_ |= reach > kFarthest;
  specials_.edit(node).is_known = false;
}

void PreemptorClass::begin_decision() {
  for (Step& step : steps_)
    if (step.load != nullptr) step.load->begin_decision();
}

/// What the node's domains allow, cut to what its own pods can make of it.
PreemptorClass::Domains PreemptorClass::allowed_by_domains(const NodeInfo& node, Allowance& out) const {
  auto& limits = limits_;
  for (const Step& step : steps_)
    if (step.count != 0 && step.own != 0) step.load->limits(node, std::span(limits).subspan(step.first, step.count));
  const std::int64_t reach = reach_[node.index.value];
  bool is_open = true, holds_now = true;
  std::size_t at = 0;
  for (const std::size_t condition : of_domains_) {
    const LoadLimit& limit = limits[condition];
    const std::int64_t most = std::clamp(saturating_sub(limit.most, limit.there), -reach - 1, reach);
    const std::int64_t least =
        limit.least == INT64_MAX ? reach + 1 : std::clamp(saturating_sub(limit.least, limit.there), -reach, reach + 1);
    is_open &= most >= reach || least <= -reach;
    holds_now &= most >= 0 || least <= 0;
    out[at++] = static_cast<std::int16_t>(most);
    out[at++] = static_cast<std::int16_t>(least);
    out[at++] = static_cast<std::int16_t>(limit.said * 2 + (limit.is_hopeless ? 1 : 0));
  }
  return is_open ? Domains::kOpen : reach == 0 && !holds_now ? Domains::kClosed : Domains::kNeedVictims;
}

const PreemptionAnswer& PreemptorClass::answer_with_domains(std::uint32_t node, bool says_why) {
  static const PreemptionAnswer kClosed{.kind = Kind::kTooSmall};
  const PreemptionAnswer& base = answers_[node];
  if (of_domains_.empty() || base.kind == Kind::kNoNode) return base;
  Allowance allowance{};
  const Domains said = allowed_by_domains(*cluster_->node(NodeIndex{node}), allowance);
  if (said == Domains::kOpen) return base;
  if (said == Domains::kClosed && !says_why) return kClosed;
  if (const Special& known = specials_[node]; known.is_known && known.of == allowance) return known.answer;
  Special& special = specials_.edit(node);
  special = {allowance, true, answer(NodeIndex{node}, nullptr)};
  return special.answer;
}

const PreemptorClass::Block& PreemptorClass::block(std::size_t at) {
  Block& out = blocks_[at];
  if (out.is_known) return out;
  out = {{}, true, false};
  for (std::size_t i = at * kBlock; i < std::min(answers_.size(), (at + 1) * kBlock); ++i) {
    if (!of_domains_.empty() && reach_[i] != 0) {
      out.has_loaded = true;
      continue;
    }
    const PreemptionAnswer& one = answers_[i];
    if (one.kind != Kind::kCandidate) continue;
    if (out.best.kind != Kind::kCandidate || one.rank() < out.best.rank()) out.best = one;
  }
  return out;
}

/// The block's nodes that `visit` may want: it gets each with the best that can be said of it, and asks for what is said of it.
template <typename Visit>
void PreemptorClass::for_candidates(std::size_t at, const Exceptions& own, Visit&& visit) {
  const auto end = static_cast<std::uint32_t>(std::min(answers_.size(), (at + 1) * kBlock));
  auto next = std::ranges::lower_bound(own, NodeIndex{static_cast<std::uint32_t>(at * kBlock)}, {}, &Exceptions::value_type::first);
  for (auto node = static_cast<std::uint32_t>(at * kBlock); node < end; ++node) {
    if (next != own.end() && next->first.value == node) {
      const PreemptionAnswer& mine = (next++)->second;
      visit(node, mine.kind == Kind::kCandidate ? &mine : nullptr, [&]() -> const PreemptionAnswer& { return mine; });
      continue;
    }
    const bool is_loaded = !of_domains_.empty() && reach_[node] != 0;
    const PreemptionAnswer& base = answers_[node];
    if (!is_loaded && base.kind != Kind::kCandidate) continue;
    visit(node, is_loaded ? nullptr : &base, [&]() -> const PreemptionAnswer& { return answer_with_domains(node, false); });
  }
}

std::optional<PreemptionAnswer> PreemptorClass::best(const Exceptions& own, std::size_t most, std::vector<NodeIndex>& nodes) {
  nodes.clear();
  std::optional<PreemptionAnswer> out;
  std::vector<std::uint8_t> is_special(blocks_.size());
  for (const auto& [node, answer] : own)
    if (node.value < answers_.size()) is_special[node.value / kBlock] = 1;
  // Of a node that may only be worse than the best so far, or one equal too many, nothing is asked.
  const auto is_too_late = [&](const PreemptionAnswer& at_best) {
    return out && (nodes.size() == most ? at_best.rank() >= out->rank() : at_best.rank() > out->rank());
  };
  // Without domains what is best in a block is there to be had.
  for (std::size_t at = 0; of_domains_.empty() && at < blocks_.size(); ++at)
    if (const PreemptionAnswer& there = block(at).best; is_special[at] == 0 && there.kind == Kind::kCandidate && !is_too_late(there))
      out = there;
  for (std::size_t at = 0; at < blocks_.size(); ++at) {
    if (is_special[at] == 0 && !block(at).has_loaded)
      if (const PreemptionAnswer& there = block(at).best; there.kind != Kind::kCandidate || is_too_late(there)) continue;
    for_candidates(at, own, [&](std::uint32_t node, const PreemptionAnswer* at_best, auto&& ask) {
      if (at_best != nullptr && is_too_late(*at_best)) return;
      const PreemptionAnswer& one = ask();
      if (one.kind != Kind::kCandidate || is_too_late(one)) return;
      if (!out || one.rank() < out->rank()) {
        out = one;
        nodes.clear();
      }
      nodes.push_back(NodeIndex{node});
    });
  }
  return out;
}

PreemptionTally PreemptorClass::tally(const Exceptions& own) {
  PreemptionTally out = tally_;
  for (std::uint32_t node = 0; !of_domains_.empty() && node < answers_.size(); ++node) {
    out.add(answers_[node], -1);
    out.add(answer_with_domains(node, true), 1);
  }
  for (const auto& [node, answer] : own) {
    if (node.value >= answers_.size()) continue;
    out.add(answer_with_domains(node.value, true), -1);
    out.add(answer, 1);
  }
  return out;
}

std::size_t PreemptorClass::memory_bytes() const {
  std::size_t out = pod_->bytes + signature_.memory_bytes() + answers_.memory_bytes() + reach_.memory_bytes() + specials_.memory_bytes();
  for (const Step& step : steps_)
    if (step.load != nullptr) out += step.load->memory_bytes();
  return out + blocks_.size() * sizeof(Block) + loaded_.capacity() + load_at_.size() * 40 + loads_.capacity() * sizeof(loads_[0]);
}

}  // namespace berth::placement
