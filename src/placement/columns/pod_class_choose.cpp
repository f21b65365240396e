// Choosing among the groups of a class.
#include <algorithm>
#include <map>
#include <set>

#include "placement/columns/pod_class.h"
#include "placement/plugins/normalize.h"

namespace berth::placement {

PodClass::Choice PodClass::choose(const Options& options) {
  if (!pre_filter_.is_success()) return {};
  if (ranks_lazily_) refill();
  collect_candidates();
  if (candidates_.empty()) return {};
  score_groups();
  return options.checks != nullptr ? pick_accepted(options) : pick(options);
}

Status PodClass::verdict(NodeIndex node) {
  if (!pre_filter_.is_success()) return pre_filter_;
  if (node.value >= records_.size() || records_[node.value].group == kNoGroup) return Status::unresolvable("node is gone");
  if (has_domains_)
    for (auto& slot : topology_) slot.part->begin_choice(*pod_);
  const NodeRecord& record = records_[node.value];
  const std::uint16_t closed = gate(groups_[record.group]);
  const bool gate_first = record.verdict == kFits || (closed != kFits && verdicts_[closed].order < verdicts_[record.verdict].order);
  return verdicts_[gate_first ? closed : record.verdict].status;
}

void PodClass::collect_candidates() {
  candidates_.clear();
  if (has_domains_)
    for (auto& slot : topology_) slot.part->begin_choice(*pod_);
  for (const auto group : live_) {
    const Group& owner = groups_[group];
    if (gate(owner) == kFits) candidates_.push_back({owner.key.data(), ranking_.size(group), constant_score_, group, 0});
  }
}

/// The verdict of what the group's domains say; kFits when nothing there rejects.
std::uint16_t PodClass::gate(const Group& group) const {
  std::uint16_t out = kFits;
  if (!has_domains_) return out;
  for (const auto& slot : topology_) {
    if (slot.verdicts.empty()) continue;
    const TopologyPart::Verdict rejected = slot.part->gate(group.key.data() + slot.first);
    if (rejected == TopologyPart::kNone) continue;
    const std::uint16_t verdict = slot.verdicts[rejected - 1U];
    if (out == kFits || verdicts_[verdict].order < verdicts_[out].order) out = verdict;
  }
  return out;
}

void PodClass::score_groups() {
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i) {
    std::int64_t max = 0;
    for (const auto& candidate : candidates_) max = std::max(max, candidate.key[i]);
    for (auto& candidate : candidates_)
      candidate.bonus += raw_scorers_[i].weight * normalized_by_max(candidate.key[i], max, raw_scorers_[i].reversed);
  }
  if (!has_domains_) return;
  for (auto& slot : topology_) slot.part->score(candidates_, slot.first);
}

PodClass::Choice PodClass::pick(const Options& options) {
  Choice out;
  std::int64_t best = INT64_MIN;
  for (const auto& candidate : candidates_) {
    out.feasible_nodes += ranking_.size(candidate.group);
    const auto& bucket = ranking_.best(candidate.group);
    const std::int64_t total = candidate.bonus + bucket.score;
    if (total > best) {
      best = total;
      out.tied_nodes = 0;
    }
    if (total == best) out.tied_nodes += bucket.nodes.size();
  }
  out.score = best;
  if (options.tied != nullptr)
    for (const auto& candidate : candidates_)
      if (const auto& bucket = ranking_.best(candidate.group); candidate.bonus + bucket.score == best)
        std::ranges::transform(bucket.nodes, std::back_inserter(*options.tied), [](std::uint32_t node) { return NodeIndex{node}; });
  std::size_t nth = 0;
  if (options.random != nullptr && out.tied_nodes > 1)
    nth = std::uniform_int_distribution<std::size_t>(0, out.tied_nodes - 1)(*options.random);
  for (const auto& candidate : candidates_) {
    const auto& bucket = ranking_.best(candidate.group);
    if (candidate.bonus + bucket.score != best) continue;
    if (nth < bucket.nodes.size()) {
      out.node = NodeIndex{bucket.nodes[nth]};
      return out;
    }
    nth -= bucket.nodes.size();
  }
  return out;
}

/// With a last word on each node, which is asked as rarely as can be.
PodClass::Choice PodClass::pick_accepted(const Options& options) {
  const Cluster& cluster = index_->cluster();
  NodeChecks& checks = *options.checks;
  if (depends_on_every_node(checks)) keep_accepted(checks);
  Choice out;
  for (const auto& candidate : candidates_) out.feasible_nodes += candidate.nodes;
  std::vector<std::uint32_t> level;
  while (true) {
    std::int64_t best = INT64_MIN;
    for (const auto& candidate : candidates_)
      if (candidate.rank < ranking_.bucket_count(candidate.group))
        best = std::max(best, candidate.bonus + ranking_.bucket(candidate.group, candidate.rank).score);
    if (best == INT64_MIN) return {};
    level.clear();
    for (auto& candidate : candidates_) {
      if (candidate.rank >= ranking_.bucket_count(candidate.group)) continue;
      const auto& bucket = ranking_.bucket(candidate.group, candidate.rank);
      if (candidate.bonus + bucket.score != best) continue;
      level.insert(level.end(), bucket.nodes.begin(), bucket.nodes.end());
      ++candidate.rank;
    }
    out.score = best;
    out.tied_nodes = level.size();
    if (options.first_by_name)
      std::ranges::sort(level, {}, [&](std::uint32_t node) -> const std::string& { return cluster.node(NodeIndex{node})->name; });
    // Drawing until one is accepted is uniform over the accepted ones.
    for (std::size_t left = level.size(); left > 0; --left) {
      const bool draw = options.random != nullptr && !options.first_by_name;
      const std::size_t at = draw ? std::uniform_int_distribution<std::size_t>(0, left - 1)(*options.random) : level.size() - left;
      const std::uint32_t node = level[at];
      if (checks.accepts(node)) {
        out.node = NodeIndex{node};
        if (options.tied != nullptr)
          for (const auto other : level)
            if (other == node || checks.accepts(other)) options.tied->push_back(NodeIndex{other});
        return out;
      }
      if (draw) std::swap(level[at], level[left - 1]);
    }
  }
}

/// Normalizing looked at every group, and in places at the number of its nodes: each that could have set an extreme must hold an accepted
/// node.
bool PodClass::depends_on_every_node(NodeChecks& checks) const {
  if (std::ranges::any_of(topology_, [](const TopologySlot& slot) { return slot.part->counts_nodes(); })) return true;
  if (candidates_.size() == 1) return false;
  const auto accepts = [&](std::uint32_t node) { return checks.accepts(node); };
  return !std::ranges::all_of(candidates_, [&](const TopologyCandidate& candidate) {
    for (std::size_t rank = 0; rank < ranking_.bucket_count(candidate.group); ++rank)
      if (std::ranges::any_of(ranking_.bucket(candidate.group, rank).nodes, accepts)) return true;
    return false;
  });
}

/// Scores the candidates again by their accepted nodes alone.
void PodClass::keep_accepted(NodeChecks& checks) {
  checks.foretell();
  constexpr std::uint32_t kNoCandidate = UINT32_MAX;
  std::vector<std::uint32_t> accepted(groups_.size(), kNoCandidate);
  for (const auto& candidate : candidates_) accepted[candidate.group] = 0;
  for (std::uint32_t node = 0; node < records_.size(); ++node) {
    const NodeRecord& record = records_[node];
    if (record.group == kNoGroup || record.verdict != kFits || accepted[record.group] == kNoCandidate) continue;
    accepted[record.group] += checks.accepts(node) ? 1U : 0U;
  }
  for (auto& candidate : candidates_) {
    candidate.nodes = accepted[candidate.group];
    candidate.bonus = constant_score_;
  }
  std::erase_if(candidates_, [](const TopologyCandidate& candidate) { return candidate.nodes == 0; });
  if (candidates_.empty()) return;
  score_groups();
}

bool PodClass::is_swayed_by_nominations() const {
  return std::ranges::any_of(index_->nominated_kinds(), [&](const auto& kind) {
    return std::ranges::any_of(topology_, [&](const TopologySlot& slot) { return slot.part->is_swayed_by(*kind.example, *pod_); });
  });
}

bool PodClass::hides_own_node(const OwnNomination& own) {
  const NodeInfo* info = index_->cluster().node(own.node);
  if (!pre_filter_.is_success() || info == nullptr || info->node == nullptr || own.node.value >= records_.size()) return false;
  const NodeRecord& record = records_[own.node.value];
  if (record.group == kNoGroup || record.verdict == kFits) return false;
  return local_verdict(*info, own.node.value, own.key) == kFits && gate(groups_[record.group]) == kFits;
}

Diagnosis PodClass::diagnose(const OwnNomination& own) {
  // Counted as it stands for others, and put right for the time of the count.
  bool is_put_right = false;
  if (const NodeInfo* info = own.node.is_valid() ? index_->cluster().node(own.node) : nullptr; info != nullptr && info->node != nullptr) {
    const NodeRecord& record = records_[own.node.value];
    const std::uint16_t verdict = local_verdict(*info, own.node.value, own.key);
    if (record.group != kNoGroup && verdict != record.verdict) {
      auto& verdicts = groups_[record.group].verdicts;
      --std::ranges::find(verdicts, record.verdict, &std::pair<std::uint16_t, std::uint32_t>::first)->second;
      verdicts.emplace_back(verdict, 1);
      is_put_right = true;
    }
  }
  Diagnosis out = diagnose_counted();
  if (is_put_right) {
    const NodeRecord& record = records_[own.node.value];
    auto& verdicts = groups_[record.group].verdicts;
    verdicts.pop_back();
    ++std::ranges::find(verdicts, record.verdict, &std::pair<std::uint16_t, std::uint32_t>::first)->second;
  }
  return out;
}

Diagnosis PodClass::diagnose_counted() const {
  Diagnosis out;
  out.node_count = index_->cluster().node_count();
  std::map<std::string, std::size_t> reasons;
  std::set<std::string_view> plugins;
  if (!pre_filter_.is_success()) {
    out.pre_filter = pre_filter_;
    for (const auto& reason : pre_filter_.reasons) reasons[reason] += out.node_count;
    plugins.insert(pre_filter_.plugin);
  } else {
    for (const auto& group : groups_) {
      if (group.members == 0) continue;
      const std::uint16_t closed = gate(group);
      for (const auto& [own, count] : group.verdicts) {
        if (count == 0) continue;
        const bool gate_first = own == kFits || (closed != kFits && verdicts_[closed].order < verdicts_[own].order);
        const Status& status = verdicts_[gate_first ? closed : own].status;
        for (const auto& reason : status.reasons) reasons[reason] += count;
        if (status.code == Code::kUnschedulable) out.resolvable_nodes += count;
        if (!status.plugin.empty()) plugins.insert(status.plugin);
      }
    }
  }
  out.reasons.assign(reasons.begin(), reasons.end());
  out.plugins.assign(plugins.begin(), plugins.end());
  return out;
}

}  // namespace berth::placement
