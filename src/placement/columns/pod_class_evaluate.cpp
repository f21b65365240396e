// Keeping one node's standing in a class.
#include <algorithm>

#include "placement/columns/pod_class.h"
#include "placement/plugins/default_selector.h"
#include "placement/plugins/inter_pod_affinity.h"

namespace berth::placement {
namespace {

std::uint64_t hash_key(const std::vector<std::int64_t>& key) {
  std::uint64_t out = 0x9e3779b97f4a7c15ULL;
  for (const auto part : key) {
    out ^= static_cast<std::uint64_t>(part);
    out *= 0xff51afd7ed558ccdULL;
    out ^= out >> 33;
  }
  return out;
}

}  // namespace

void PodClass::evaluate(std::uint32_t node, bool is_static) {
  if (node >= records_.size()) {
    records_.resize(std::max<std::size_t>(node + 1, index_->cluster().slot_count()));
    if (!inclusion_.empty()) inclusion_.resize(records_.size());
    if (selected_count_.is_valid()) zone_of_.resize(records_.size());
  }
  NodeRecord& record = records_.edit(node);
  if (is_static) service_node_order_.clear();
  // Amounts and static columns say it all: the node itself need not be touched.
  if (by_amounts_ && !has_domains() && !index_->cluster().has_nominations() && index_->amounts(node).is_plain) {
    std::uint32_t group = record.group;
    if (is_static || group == kNoGroup) {
      make_key(node);
      group = last_group_ = group_of_key(last_group_);
    }
    return evaluate_amounts(node, record, group);
  }
  const NodeInfo* info = index_->cluster().node(NodeIndex{node});
  if (info == nullptr || info->node == nullptr) {
    leave(node, record);
    record = {};
    if (!inclusion_.empty()) inclusion_.edit(node) = {};
    update_sums(node);
    return;
  }
  if (!inclusion_.empty() && (is_static || record.group == kNoGroup)) include(node, *info);
  if (selected_count_.is_valid() && (is_static || record.group == kNoGroup)) {
    const std::string zone = zone_key(info->labels());
    zone_of_.edit(node).value = zone.empty() ? -1 : zones_.try_emplace(zone, static_cast<std::int32_t>(zones_.size())).first->second;
  }
  update_sums(node);
  make_key(node);
  const std::uint32_t group = group_of_key(record.group);
  const std::uint16_t verdict = local_verdict(*info, node);
  settle(node, record, verdict, group, verdict == kFits ? local_score(*info, node) : 0);
}

void PodClass::evaluate_amounts(std::uint32_t node, NodeRecord& record, std::uint32_t group) {
  const NodeAmounts& amounts = index_->amounts(node);
  const unsigned shortage = resources_.shortage(amounts);
  const std::uint16_t verdict = shortage != 0 ? shortage_verdict(shortage, node) : static_verdict(node);
  settle(node, record, verdict, group, verdict == kFits ? narrow_score((*static_)[node].score + resources_.score(amounts)) : 0);
}

/// The node's rejection when its amounts do not suffice: worded once per combination, unless a static filter comes first.
std::uint16_t PodClass::shortage_verdict(unsigned shortage, std::uint32_t node) {
  const std::uint16_t known = static_verdict(node);
  if (known != kFits && verdicts_[known].order < local_filters_.front().order) return known;
  std::uint16_t& verdict = shortage_verdicts_[shortage];
  if (verdict == kFits) verdict = filter_on(*index_->cluster().node(NodeIndex{node}), kFits);
  return verdict;
}

void PodClass::include(std::uint32_t node, const NodeInfo& info) {
  Inclusion& out = inclusion_.edit(node);
  out = {0, 1, 1};
  unsigned bit = 0;
  for (const auto& one : hard_spread_) {
    out.has_hard_keys &= info.label(one.constraint.topology_key) != nullptr;
    out.constraints |= static_cast<std::uint16_t>(spread_includes_node(one.constraint, pod_->view(), info, era_) << bit++);
  }
  for (const auto& one : soft_spread_) {
    out.has_soft_keys &= info.label(one.constraint.topology_key) != nullptr;
    out.constraints |= static_cast<std::uint16_t>(spread_includes_node(one.constraint, pod_->view(), info, era_) << bit++);
  }
}

void PodClass::update_sums(std::uint32_t node) {
  unsigned bit = 0;
  for (auto& one : hard_spread_) {
    const Inclusion& in = inclusion_[node];
    const bool member = (in.constraints >> bit++ & 1) != 0 && in.has_hard_keys != 0;
    // 1.20 counts all pods of a domain that exists, whatever node of it they are on.
    one.sum.update(node, member || (era_ == Era::k120 && !one.sum.is_local()), member);
  }
  for (auto& one : soft_spread_) {
    const Inclusion& in = inclusion_[node];
    const bool counted = (in.constraints >> bit++ & 1) != 0 && (in.has_soft_keys != 0 || !spread_requires_all_keys_);
    one.sum->update(node, counted, false);
  }
  for (auto* sums : {&affinity_, &anti_, &existing_anti_, &score_sums_})
    for (auto& sum : *sums) sum.update(node, true, false);
}

/// The first rejection of the static filters, as this class numbers verdicts.
std::uint16_t PodClass::static_verdict(std::uint32_t node) {
  const std::uint16_t shared = (*static_)[node].verdict;
  if (shared == 0) return kFits;
  if (shared >= static_verdicts_.size()) static_verdicts_.resize(shared + 1U);
  std::uint16_t& own = static_verdicts_[shared];
  if (own == kFits) own = intern(static_->verdicts()[shared].status, static_->verdicts()[shared].order);
  return own;
}

/// The first of the node's own rejections, in the order of the filters.
std::uint16_t PodClass::local_verdict(const NodeInfo& info, std::uint32_t node, std::string_view except) {
  const std::uint16_t fixed = static_verdict(node);
  std::uint16_t out = kFits;
  if (const auto& nominated = index_->cluster().nominated(info.index); !nominated.empty()) {
    NodeInfo crowded = info;
    for (const auto& other : nominated)
      if (other->view().priority >= pod_->view().priority && other->key != except) crowded.add_pod(other);
    out = filter_on(crowded, fixed);
  }
  if (out == kFits) {
    const bool quick = by_amounts_ && index_->amounts(node).is_plain;
    out = quick && resources_.shortage(index_->amounts(node)) == 0 ? fixed : filter_on(info, fixed);
  }
  const auto consider = [&](const std::vector<DomainSum>& sums, std::uint16_t verdict) {
    if (sums.empty() || (out != kFits && verdicts_[out].order <= verdicts_[verdict].order)) return;
    const auto anyone_here = [&](const DomainSum& sum) { return sum.is_local() && sum.value_of(node) >= 0 && sum.amount_of(node) > 0; };
    if (std::ranges::any_of(sums, anyone_here)) out = verdict;
  };
  consider(anti_, verdict_anti_);
  consider(existing_anti_, verdict_existing_);
  return out;
}

std::uint16_t PodClass::filter_on(const NodeInfo& info, std::uint16_t static_verdict) {
  for (const auto& [plugin, order] : local_filters_) {
    if (static_verdict != kFits && verdicts_[static_verdict].order < order) break;
    Status status = plugin->filter(state_, *pod_, info);
    if (status.is_success()) continue;
    if (status.plugin.empty()) status.plugin = plugin->name();
    return intern(std::move(status), order);
  }
  return static_verdict;
}

std::int32_t PodClass::local_score(const NodeInfo& info, std::uint32_t node) const {
  std::int64_t sum = (*static_)[node].score;
  if (by_amounts_ && index_->amounts(node).is_plain) return narrow_score(sum + resources_.score(index_->amounts(node)));
  for (const auto& [plugin, weight] : local_scorers_) sum += plugin->score(state_, *pod_, info).value_or(0) * weight;
  return narrow_score(sum);
}

/// What the group part of the total looks at, in fixed places.
void PodClass::make_key(std::uint32_t node) {
  key_.clear();
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i) key_.push_back((*static_)[node].raw[i]);
  for (const auto& one : hard_spread_) {
    const std::int32_t value = one.sum.value_of(node);
    key_.push_back(one.sum.is_local() && value >= 0 ? one.sum.amount_of(node) : value);
  }
  for (const auto& one : soft_spread_) {
    const std::int32_t value = one.sum->value_of(node);
    const bool on_node = one.constraint.topology_key == kHostnameLabel;
    key_.push_back(on_node && value >= 0 ? static_cast<std::int64_t>(index_->counts(one.node_count)[node]) : value);
  }
  for (const auto& sum : affinity_) {
    const std::int32_t value = sum.value_of(node);
    key_.push_back(!sum.is_local() || value < 0 ? value : sum.amount_of(node) > 0 ? 1 : 0);
  }
  for (const auto* sums : {&anti_, &existing_anti_})
    for (const auto& sum : *sums)
      if (!sum.is_local()) key_.push_back(sum.value_of(node));
  for (const auto topology : service_topologies_) key_.push_back(index_->topology_column(topology).value_of(node));
  if (selected_count_.is_valid()) {
    key_.push_back(zone_of_[node].value);
    key_.push_back(index_->counts(selected_count_)[node]);
  }
  std::int64_t local_sum = 0;
  for (const auto& sum : score_sums_) {
    if (!sum.is_local()) {
      key_.push_back(sum.value_of(node));
    } else if (sum.value_of(node) >= 0) {
      local_sum += sum.amount_of(node);
    }
  }
  if (!score_sums_.empty()) key_.push_back(local_sum);
}

std::uint32_t PodClass::group_of_key(std::uint32_t current) {
  if (current != kNoGroup && groups_[current].key == key_) return current;
  auto& bucket = group_index_[hash_key(key_)];
  for (const auto group : bucket)
    if (groups_[group].key == key_) return group;
  const auto group = static_cast<std::uint32_t>(groups_.size());
  groups_.emplace_back().key = key_;
  ranking_.add_group(ranks_lazily_ ? INT32_MAX : decltype(ranking_)::kNoFloor);
  bucket.push_back(group);
  return group;
}

void PodClass::settle(std::uint32_t node, NodeRecord& record, std::uint16_t verdict, std::uint32_t group, std::int32_t score) {
  if (record.group == group && record.verdict == verdict) {
    if (record.score == score) return;
    if (verdict == kFits) {
      ranking_.move(group, node, record.score, score);
      record.score = score;
      return;
    }
  }
  leave(node, record);
  record.group = group;
  record.verdict = verdict;
  record.score = score;
  Group& owner = groups_[group];
  ++owner.members;
  const auto counted = std::ranges::find(owner.verdicts, verdict, &std::pair<std::uint16_t, std::uint32_t>::first);
  if (counted == owner.verdicts.end()) {
    owner.verdicts.emplace_back(verdict, 1);
  } else {
    ++counted->second;
  }
  if (verdict != kFits) return;
  ranking_.insert(group, node, score);
  if (owner.live_at == UINT32_MAX) make_live(group);
}

void PodClass::leave(std::uint32_t node, NodeRecord& record) {
  if (record.group == kNoGroup) return;
  Group& owner = groups_[record.group];
  --owner.members;
  const auto counted = std::ranges::find(owner.verdicts, record.verdict, &std::pair<std::uint16_t, std::uint32_t>::first);
  if (--counted->second == 0) owner.verdicts.erase(counted);
  if (record.verdict == kFits) {
    ranking_.erase(record.group, node, record.score);
    if (ranking_.empty(record.group)) drop_live(record.group);
  }
  record.group = kNoGroup;
}

void PodClass::make_live(std::uint32_t group) {
  groups_[group].live_at = static_cast<std::uint32_t>(live_.size());
  live_.push_back(group);
}

void PodClass::drop_live(std::uint32_t group) {
  const std::uint32_t hole = groups_[group].live_at;
  live_[hole] = live_.back();
  groups_[live_[hole]].live_at = hole;
  live_.pop_back();
  groups_[group].live_at = UINT32_MAX;
}

std::uint16_t PodClass::intern(Status status, std::uint32_t order) {
  for (std::size_t i = 1; i < verdicts_.size(); ++i) {
    const auto& [known, known_order] = verdicts_[i];
    if (known_order == order && known.code == status.code && known.reasons == status.reasons) return static_cast<std::uint16_t>(i);
  }
  // Taint texts of 1.20 are as many as there are taints; beyond any sensible number they share the last place.
  if (verdicts_.size() >= UINT16_MAX) return UINT16_MAX - 1;
  verdicts_.push_back({std::move(status), order});
  return static_cast<std::uint16_t>(verdicts_.size() - 1);
}

}  // namespace berth::placement
