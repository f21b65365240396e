// Keeping one node's standing in a class.
#include <algorithm>

#include "placement/columns/pod_class.h"

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
  if (node >= records_.size()) records_.resize(std::max<std::size_t>(node + 1, index_->cluster().slot_count()));
  NodeRecord& record = records_.edit(node);
  record.version = index_->version(node);
  // Amounts and static columns say it all: the node itself need not be touched.
  if (by_amounts_ && !has_domains_ && !index_->cluster().has_nominations() && index_->amounts(node).is_plain) {
    std::uint32_t group = record.group;
    if (is_static || group == kNoGroup) {
      make_static_key(node);
      group = last_group_ = group_of_key(last_group_);
    }
    return evaluate_amounts(node, record, group);
  }
  const NodeInfo* info = index_->cluster().node(NodeIndex{node});
  if (info == nullptr || info->node == nullptr) {
    leave(node, record);
    record = {.version = record.version};
    if (has_domains_)
      for (auto& slot : topology_) slot.part->remove(node);
    return;
  }
  make_static_key(node);
  if (has_domains_)
    for (auto& slot : topology_) slot.part->place(*pod_, *info, is_static || record.group == kNoGroup, key_);
  const std::uint32_t group = group_of_key(record.group);
  const std::uint16_t verdict = local_verdict(*info, node);
  settle(node, record, verdict, group, verdict == kFits ? local_score(*info, node) : 0);
}

/// While the class is built: a node that is as good as those of `group`, but for its amounts; kNoGroup: it is the first of them.
void PodClass::evaluate_alike(std::uint32_t node, std::uint32_t& group) {
  const StaticColumn::Entry& fixed = (*static_)[node];
  if (group == kNoGroup || fixed.verdict != 0 || !has_raw_scores(group, fixed)) {
    evaluate(node, true);
    group = records_[node].group;
    return;
  }
  NodeRecord& record = records_.edit(node);
  record.version = index_->version(node);
  evaluate_amounts(node, record, group);
}

bool PodClass::has_raw_scores(std::uint32_t group, const StaticColumn::Entry& fixed) const {
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i)
    if (groups_[group].key[i] != fixed.raw[i]) return false;
  return true;
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
  if (!has_domains_) return out;
  for (const auto& slot : topology_) {
    const TopologyPart::Verdict rejected = slot.part->reject_node(node);
    if (rejected == TopologyPart::kNone) continue;
    const std::uint16_t verdict = slot.verdicts[rejected - 1U];
    if (out == kFits || verdicts_[verdict].order < verdicts_[out].order) out = verdict;
  }
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

std::int32_t PodClass::local_score(const NodeInfo& info, std::uint32_t node) {
  std::int64_t sum = (*static_)[node].score;
  if (by_amounts_ && index_->amounts(node).is_plain) return narrow_score(sum + resources_.score(index_->amounts(node)));
  for (const auto& [plugin, weight] : local_scorers_) {
    const auto score = plugin->score(state_, *pod_, info);
    scores_failed_ |= !score;
    sum += score.value_or(0) * weight;
  }
  return narrow_score(sum);
}

bool PodClass::has_failed() const {
  if (static_->has_failed() || scores_failed_) return true;
  return knows_errors_ && std::ranges::any_of(groups_, [&](const Group& group) {
           return std::ranges::any_of(group.verdicts, [&](const auto& one) { return verdicts_[one.first].status.is_error(); });
         });
}

/// The raw scores, which stand first in a group's key.
void PodClass::make_static_key(std::uint32_t node) {
  key_.clear();
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i) key_.push_back((*static_)[node].raw[i]);
}

std::uint32_t PodClass::group_of_key(std::uint32_t current) {
  if (current != kNoGroup && groups_[current].key == key_) return current;
  const std::uint64_t hash = hash_key(key_);
  // Neighbours are of few groups, in turn.
  std::uint32_t& recent = recent_groups_[hash % recent_groups_.size()];
  if (recent < groups_.size() && groups_[recent].key == key_) return recent;
  auto& bucket = group_index_[hash];
  for (const auto group : bucket)
    if (groups_[group].key == key_) return recent = group;
  const auto group = recent = static_cast<std::uint32_t>(groups_.size());
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
  knows_errors_ |= status.is_error();
  if (verdicts_.size() >= UINT16_MAX) return UINT16_MAX - 1;
  verdicts_.push_back({std::move(status), order});
  return static_cast<std::uint16_t>(verdicts_.size() - 1);
}

}  // namespace berth::placement
