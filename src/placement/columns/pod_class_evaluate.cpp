// Keeping one node's standing in a class.
#include <algorithm>

#include "placement/columns/pod_class.h"
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

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, INT32_MIN / 2, INT32_MAX / 2)); }

}  // namespace

void PodClass::evaluate(std::uint32_t node, bool is_static) {
  if (node >= records_.size()) records_.resize(std::max<std::size_t>(node + 1, index_.cluster().slot_count()));
  NodeRecord& record = records_[node];
  const NodeInfo* info = index_.cluster().node(NodeIndex{node});
  if (info == nullptr || info->node == nullptr) {
    leave(node, record);
    record = {};
    update_sums(node, record);
    return;
  }
  if (is_static || record.group == kNoGroup) evaluate_static(*info, record);
  update_sums(node, record);
  const std::uint16_t verdict = local_verdict(*info, record, node);
  const std::int32_t score = verdict == kFits ? local_score(*info, record) : 0;
  make_key(node, record);
  settle(node, record, verdict, group_of_key(), score);
}

void PodClass::evaluate_static(const NodeInfo& info, NodeRecord& record) {
  record.static_verdict = kFits;
  if (only_nodes_ && !only_nodes_->contains(info.name)) record.static_verdict = verdict_excluded_;
  for (const auto& [plugin, order] : static_filters_) {
    if (record.static_verdict != kFits) break;
    Status status = plugin->filter(state_, *pod_, info);
    if (status.is_success()) continue;
    if (status.plugin.empty()) status.plugin = plugin->name();
    record.static_verdict = intern(std::move(status), order);
  }
  std::int64_t sum = 0;
  for (const auto& [plugin, weight] : static_scorers_) sum += plugin->score(state_, *pod_, info).value_or(0) * weight;
  record.static_score = narrow(sum);
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i) record.raw[i] = narrow(raw_scorers_[i].plugin->score(state_, *pod_, info).value_or(0));
  record.included = 0;
  record.has_hard_keys = record.has_soft_keys = 1;
  unsigned bit = 0;
  for (const auto& one : hard_spread_) {
    record.has_hard_keys &= info.label(one.constraint.topology_key) != nullptr;
    record.included |= static_cast<std::uint16_t>(spread_includes_node(one.constraint, pod_->view(), info, era_) << bit++);
  }
  for (const auto& one : soft_spread_) {
    record.has_soft_keys &= info.label(one.constraint.topology_key) != nullptr;
    record.included |= static_cast<std::uint16_t>(spread_includes_node(one.constraint, pod_->view(), info, era_) << bit++);
  }
}

void PodClass::update_sums(std::uint32_t node, const NodeRecord& record) {
  unsigned bit = 0;
  for (auto& one : hard_spread_) {
    const bool member = (record.included >> bit++ & 1) != 0 && record.has_hard_keys != 0;
    // 1.20 counts all pods of a domain that exists, whatever node of it they are on.
    one.sum.update(node, member || (era_ == Era::k120 && !one.sum.is_local()), member);
  }
  for (auto& one : soft_spread_) {
    const bool counted = (record.included >> bit++ & 1) != 0 && (record.has_soft_keys != 0 || !spread_requires_all_keys_);
    one.sum->update(node, counted, false);
  }
  for (auto* sums : {&affinity_, &anti_, &existing_anti_, &score_sums_})
    for (auto& sum : *sums) sum.update(node, true, false);
}

/// The first of the node's own rejections, in the order of the filters.
std::uint16_t PodClass::local_verdict(const NodeInfo& info, const NodeRecord& record, std::uint32_t node) {
  std::uint16_t out = kFits;
  if (const auto& nominated = index_.cluster().nominated(info.index); !nominated.empty()) {
    NodeInfo crowded = info;
    for (const auto& other : nominated)
      if (other->view().priority >= pod_->view().priority) crowded.add_pod(other);
    out = filter_on(crowded, record);
  }
  if (out == kFits) out = filter_on(info, record);
  const auto consider = [&](const std::vector<DomainSum>& sums, std::uint16_t verdict) {
    if (sums.empty() || (out != kFits && verdicts_[out].order <= verdicts_[verdict].order)) return;
    const auto anyone_here = [&](const DomainSum& sum) { return sum.is_local() && sum.value_of(node) >= 0 && sum.amount_of(node) > 0; };
    if (std::ranges::any_of(sums, anyone_here)) out = verdict;
  };
  consider(anti_, verdict_anti_);
  consider(existing_anti_, verdict_existing_);
  return out;
}

std::uint16_t PodClass::filter_on(const NodeInfo& info, const NodeRecord& record) {
  for (const auto& [plugin, order] : local_filters_) {
    if (record.static_verdict != kFits && verdicts_[record.static_verdict].order < order) break;
    Status status = plugin->filter(state_, *pod_, info);
    if (status.is_success()) continue;
    if (status.plugin.empty()) status.plugin = plugin->name();
    return intern(std::move(status), order);
  }
  return record.static_verdict;
}

std::int32_t PodClass::local_score(const NodeInfo& info, const NodeRecord& record) const {
  std::int64_t sum = record.static_score;
  for (const auto& [plugin, weight] : local_scorers_) sum += plugin->score(state_, *pod_, info).value_or(0) * weight;
  return narrow(sum);
}

/// What the group part of the total looks at, in fixed places.
void PodClass::make_key(std::uint32_t node, const NodeRecord& record) {
  key_.clear();
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i) key_.push_back(record.raw[i]);
  for (const auto& one : hard_spread_) {
    const std::int32_t value = one.sum.value_of(node);
    key_.push_back(one.sum.is_local() && value >= 0 ? one.sum.amount_of(node) : value);
  }
  for (const auto& one : soft_spread_) {
    const std::int32_t value = one.sum->value_of(node);
    const bool on_node = one.constraint.topology_key == kHostnameLabel;
    key_.push_back(on_node && value >= 0 ? static_cast<std::int64_t>((*one.node_count)[node]) : value);
  }
  for (const auto& sum : affinity_) {
    const std::int32_t value = sum.value_of(node);
    key_.push_back(!sum.is_local() || value < 0 ? value : sum.amount_of(node) > 0 ? 1 : 0);
  }
  for (const auto* sums : {&anti_, &existing_anti_})
    for (const auto& sum : *sums)
      if (!sum.is_local()) key_.push_back(sum.value_of(node));
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

std::uint32_t PodClass::group_of_key() {
  auto& bucket = group_index_[hash_key(key_)];
  for (const auto group : bucket)
    if (groups_[group].key == key_) return group;
  const auto group = static_cast<std::uint32_t>(groups_.size());
  groups_.emplace_back().key = key_;
  ranking_.add_group();
  bucket.push_back(group);
  return group;
}

void PodClass::settle(std::uint32_t node, NodeRecord& record, std::uint16_t verdict, std::uint32_t group, std::int32_t score) {
  if (record.group == group && record.verdict == verdict && record.score == score) return;
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
