// Choosing among the groups of a class.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "placement/columns/pod_class.h"
#include "placement/plugins/inter_pod_affinity.h"
#include "placement/plugins/normalize.h"
#include "placement/plugins/service_affinity.h"

namespace berth::placement {

PodClass::Choice PodClass::choose(const Options& options) {
  if (!pre_filter_.is_success()) return {};
  if (ranks_lazily_) refill();
  collect_candidates();
  if (candidates_.empty()) return {};
  normalize();
  return options.accept ? pick_accepted(options) : pick(options);
}

Status PodClass::verdict(NodeIndex node) {
  if (!pre_filter_.is_success()) return pre_filter_;
  if (node.value >= records_.size() || records_[node.value].group == kNoGroup) return Status::unresolvable("node is gone");
  look_at_domains();
  const NodeRecord& record = records_[node.value];
  const std::uint16_t closed = gate(groups_[record.group]);
  const bool gate_first = record.verdict == kFits || (closed != kFits && verdicts_[closed].order < verdicts_[record.verdict].order);
  return verdicts_[gate_first ? closed : record.verdict].status;
}

/// What the gates go by.
void PodClass::look_at_domains() {
  if (!service_topologies_.empty()) follow_service();
  for (auto& one : hard_spread_) {
    const bool too_few = era_ != Era::k120 && one.sum.domains() < one.constraint.min_domains;
    one.minimum = too_few ? 0 : one.sum.minimum();
  }
}

void PodClass::collect_candidates() {
  candidates_.clear();
  look_at_domains();
  for (const auto group : live_) {
    const Group& owner = groups_[group];
    if (gate(owner) != kFits) continue;
    Candidate candidate{group, {0, 0}, 0, 0, constant_score_, ranking_.size(group), 0, false};
    for (std::size_t i = 0; i < raw_scorers_.size(); ++i) candidate.raw[i] = owner.key[i];
    candidate.affinity_raw = score_sums_.empty() ? 0 : affinity_raw(owner);
    candidates_.push_back(candidate);
  }
  if (!soft_spread_.empty()) weigh_spread();
}

/// The verdict of what the group's domains say; kFits when nothing there rejects.
std::uint16_t PodClass::gate(const Group& group) const {
  const auto first_of = [&](std::uint16_t a, std::uint16_t b) {
    if (a == kFits || b == kFits) return a == kFits ? b : a;
    return verdicts_[a].order < verdicts_[b].order ? a : b;
  };
  const std::uint16_t spread = hard_spread_.empty() ? kFits : spread_gate(group);
  const std::uint16_t affinity = affinity_.empty() && anti_.empty() && existing_anti_.empty() ? kFits : affinity_gate(group);
  const std::uint16_t closed = first_of(spread, affinity);
  return service_topologies_.empty() ? closed : first_of(closed, service_gate(group));
}

/// What ServiceAffinity wants of each label now.
void PodClass::follow_service() {
  const Cluster& cluster = index_->cluster();
  const auto& labels = framework_->profile().args.service_affinity.affinity_labels;
  const auto id_of = [&](std::size_t label, const std::string& value) -> std::int64_t {
    const auto& ids = index_->topology_column(service_topologies_[label]).ids;
    const std::int32_t* id = ids.find(value);
    return id == nullptr ? kNoValue : *id;
  };
  bool is_complete = true;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto& selector = pod_->view().node_selector;
    const auto own = std::ranges::find(selector, labels[i], &std::pair<std::string, std::string>::first);
    service_wanted_[i] = own == selector.end() ? kAnyValue : id_of(i, own->second);
    is_complete &= own != selector.end();
  }
  if (is_complete || !has_service_) return;
  if (service_node_order_.empty())
    for (const NodeInfo* node : zone_interleaved(cluster.nodes())) service_node_order_.push_back(node->index.value);
  const auto first =
      std::ranges::find_if(service_node_order_, [&](std::uint32_t node) { return index_->counts(service_pods_)[node] != 0; });
  if (first == service_node_order_.end()) return;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (const auto* value = cluster.node(NodeIndex{*first})->label(labels[i]); value != nullptr && service_wanted_[i] == kAnyValue)
      service_wanted_[i] = id_of(i, *value);
}

std::uint16_t PodClass::service_gate(const Group& group) const {
  const auto shared = std::ranges::count_if(score_sums_, [](const auto& sum) { return !sum.is_local(); });
  const std::size_t after = (score_sums_.empty() ? 0 : static_cast<std::size_t>(shared) + 1) + (selected_count_.is_valid() ? 2 : 0);
  const std::size_t first = group.key.size() - after - service_wanted_.size();
  for (std::size_t i = 0; i < service_wanted_.size(); ++i)
    if (service_wanted_[i] != kAnyValue && group.key[first + i] != service_wanted_[i]) return verdict_service_;
  return kFits;
}

std::uint16_t PodClass::spread_gate(const Group& group) const {
  std::size_t at = raw_scorers_.size();
  for (const auto& one : hard_spread_) {
    const std::int64_t part = group.key[at++];
    if (part < 0) return verdict_spread_label_;
    const std::int64_t there = one.sum.is_local() ? part : one.sum.sum(part, era_ == Era::k120);
    if (there + (one.self_match ? 1 : 0) - one.minimum > one.constraint.max_skew) return verdict_spread_;
  }
  return kFits;
}

std::uint16_t PodClass::affinity_gate(const Group& group) const {
  std::size_t at = raw_scorers_.size() + hard_spread_.size() + soft_spread_.size();
  bool has_keys = true;
  bool all_there = true;
  std::int64_t matching = 0;
  for (const auto& sum : affinity_) {
    const std::int64_t part = group.key[at++];
    has_keys &= part >= 0;
    all_there &= part >= 0 && (sum.is_local() ? part > 0 : sum.sum(part) > 0);
    matching += sum.total();
  }
  // The first of a group whose members want each other may go anywhere that has the keys.
  if (!has_keys || (!all_there && (matching != 0 || !self_affinity_))) return verdict_affinity_;
  const auto anyone_in = [&](const DomainSum& sum) {
    if (sum.is_local()) return false;
    const std::int64_t part = group.key[at++];
    return part >= 0 && sum.sum(part) > 0;
  };
  if (std::ranges::any_of(anti_, anyone_in)) return verdict_anti_;
  at = raw_scorers_.size() + hard_spread_.size() + soft_spread_.size() + affinity_.size();
  for (const auto& sum : anti_) at += sum.is_local() ? 0 : 1;
  return std::ranges::any_of(existing_anti_, anyone_in) ? verdict_existing_ : kFits;
}

std::int64_t PodClass::affinity_raw(const Group& group) const {
  // The score's places are the last ones: one for each shared key, then the sum over keys of single nodes.
  std::size_t at = group.key.size() - 1;
  std::int64_t out = group.key[at];
  for (auto sum = score_sums_.rbegin(); sum != score_sums_.rend(); ++sum) {
    if (sum->is_local()) continue;
    const std::int64_t part = group.key[--at];
    if (part >= 0) out += sum->sum(part);
  }
  return out;
}

/// Each soft constraint's weight by the number of domains among the nodes that fit, and the candidates' raw scores with it.
void PodClass::weigh_spread() {
  ++stamp_;
  const std::size_t first = raw_scorers_.size() + hard_spread_.size();
  std::vector<std::size_t> domains(soft_spread_.size());
  for (auto& candidate : candidates_) {
    const Group& group = groups_[candidate.group];
    candidate.spread_ignored = false;
    if (spread_requires_all_keys_) {
      for (std::size_t i = 0; i < soft_spread_.size(); ++i) candidate.spread_ignored |= group.key[first + i] < 0;
    }
    if (candidate.spread_ignored) continue;
    for (std::size_t i = 0; i < soft_spread_.size(); ++i) {
      SoftSpread& soft = soft_spread_[i];
      if (soft.constraint.topology_key == kHostnameLabel) {
        domains[i] += candidate.nodes;
        continue;
      }
      // Nodes without the label (system defaults) are one domain together.
      const auto place = static_cast<std::size_t>(group.key[first + i] + 1);
      if (place >= soft.stamp.size()) soft.stamp.resize(place + 1);
      if (soft.stamp[place] == stamp_) continue;
      soft.stamp[place] = stamp_;
      ++domains[i];
    }
  }
  for (std::size_t i = 0; i < soft_spread_.size(); ++i) soft_spread_[i].weight = spread_weight(domains[i]);
  for (auto& candidate : candidates_) candidate.spread_raw = spread_raw(groups_[candidate.group], candidate.spread_ignored);
}

std::int64_t PodClass::spread_raw(const Group& group, bool& ignored) const {
  if (ignored) return 0;
  std::size_t at = raw_scorers_.size() + hard_spread_.size();
  double sum = 0;
  for (const auto& soft : soft_spread_) {
    const std::int64_t part = group.key[at++];
    if (part < 0) continue;
    const std::int64_t count = soft.constraint.topology_key == kHostnameLabel ? part : soft.sum->sum(part);
    sum += static_cast<double>(count) * soft.weight + static_cast<double>(soft.constraint.max_skew - 1);
  }
  return static_cast<std::int64_t>(era_ == Era::k120 ? sum : std::round(sum));
}

void PodClass::normalize() {
  for (std::size_t i = 0; i < raw_scorers_.size(); ++i) {
    std::int64_t max = 0;
    for (const auto& candidate : candidates_) max = std::max(max, candidate.raw[i]);
    for (auto& candidate : candidates_)
      candidate.bonus += raw_scorers_[i].weight * normalized_by_max(candidate.raw[i], max, raw_scorers_[i].reversed);
  }
  if (!soft_spread_.empty()) {
    std::int64_t min = INT64_MAX;
    std::int64_t max = 0;
    for (const auto& candidate : candidates_) {
      if (candidate.spread_ignored) continue;
      min = std::min(min, candidate.spread_raw);
      max = std::max(max, candidate.spread_raw);
    }
    for (auto& candidate : candidates_)
      if (!candidate.spread_ignored) candidate.bonus += spread_weight_ * spread_normalized(candidate.spread_raw, min, max);
  }
  if (selected_count_.is_valid()) normalize_selector_spread();
  if (!score_sums_.empty()) {
    std::int64_t min = era_ == Era::k120 ? 0 : INT64_MAX;
    std::int64_t max = era_ == Era::k120 ? 0 : INT64_MIN;
    for (const auto& candidate : candidates_) {
      min = std::min(min, candidate.affinity_raw);
      max = std::max(max, candidate.affinity_raw);
    }
    for (auto& candidate : candidates_) candidate.bonus += affinity_weight_ * affinity_normalized(candidate.affinity_raw, min, max);
  }
}

/// Over the nodes that fit: a node is the better the fewer selected pods it has, its zone likewise.
void PodClass::normalize_selector_spread() {
  // The places before those of the affinity scores: one for each shared key and one for the sum, if there are any.
  const auto shared = std::ranges::count_if(score_sums_, [](const auto& sum) { return !sum.is_local(); });
  const std::size_t after = score_sums_.empty() ? 0 : static_cast<std::size_t>(shared) + 1;
  const auto count_of = [&](const Group& group) { return group.key[group.key.size() - after - 1]; };
  const auto zone_of = [&](const Group& group) { return group.key[group.key.size() - after - 2]; };
  std::vector<std::int64_t> by_zone(zones_.size());
  std::int64_t max_node = 0;
  for (const auto& candidate : candidates_) {
    const Group& group = groups_[candidate.group];
    max_node = std::max(max_node, count_of(group));
    if (zone_of(group) >= 0)
      by_zone[static_cast<std::size_t>(zone_of(group))] += count_of(group) * static_cast<std::int64_t>(candidate.nodes);
  }
  const std::int64_t max_zone = by_zone.empty() ? 0 : *std::ranges::max_element(by_zone);
  for (auto& candidate : candidates_) {
    const Group& group = groups_[candidate.group];
    const std::int64_t zone = zone_of(group);
    candidate.bonus += selector_weight_ * selector_spread_score(count_of(group), max_node, zone >= 0,
                                                                zone >= 0 ? by_zone[static_cast<std::size_t>(zone)] : 0, max_zone);
  }
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
        for (const auto node : bucket.nodes) options.tied->push_back(NodeIndex{node});
  std::size_t nth = 0;
  if (options.random != nullptr && !options.first_by_name && out.tied_nodes > 1)
    nth = std::uniform_int_distribution<std::size_t>(0, out.tied_nodes - 1)(*options.random);
  const std::string* first = nullptr;
  for (const auto& candidate : candidates_) {
    const auto& bucket = ranking_.best(candidate.group);
    if (candidate.bonus + bucket.score != best) continue;
    if (options.first_by_name) {
      for (const auto node : bucket.nodes) {
        const std::string& name = index_->cluster().node(NodeIndex{node})->name;
        if (first != nullptr && *first <= name) continue;
        first = &name;
        out.node = NodeIndex{node};
      }
    } else if (nth < bucket.nodes.size()) {
      out.node = NodeIndex{bucket.nodes[nth]};
      return out;
    } else {
      nth -= bucket.nodes.size();
    }
  }
  return out;
}

/// With a last word on each node, which is asked as rarely as can be.
PodClass::Choice PodClass::pick_accepted(const Options& options) {
  const Cluster& cluster = index_->cluster();
  enum class Word : std::uint8_t { kNotAsked, kYes, kNo };
  std::vector<Word> words(records_.size(), Word::kNotAsked);
  const auto accepted = [&](std::uint32_t node) {
    if (words[node] == Word::kNotAsked) words[node] = options.accept(*cluster.node(NodeIndex{node})) ? Word::kYes : Word::kNo;
    return words[node] == Word::kYes;
  };
  if (depends_on_every_node(accepted)) keep_accepted(accepted);
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
      if (accepted(node)) {
        out.node = NodeIndex{node};
        if (options.tied != nullptr)
          for (const auto other : level)
            if (other == node || accepted(other)) options.tied->push_back(NodeIndex{other});
        return out;
      }
      if (draw) std::swap(level[at], level[left - 1]);
    }
  }
}

/// Normalizing looked at every group, and in places at the number of its nodes: each that could have set an extreme must hold an accepted
/// node.
bool PodClass::depends_on_every_node(const std::function<bool(std::uint32_t)>& accepted) const {
  const auto counts_nodes = [](const auto& soft) { return soft.constraint.topology_key == kHostnameLabel; };
  if (selected_count_.is_valid() || std::ranges::any_of(soft_spread_, counts_nodes)) return true;
  if (candidates_.size() == 1) return false;
  return !std::ranges::all_of(candidates_, [&](const Candidate& candidate) {
    for (std::size_t rank = 0; rank < ranking_.bucket_count(candidate.group); ++rank)
      if (std::ranges::any_of(ranking_.bucket(candidate.group, rank).nodes, accepted)) return true;
    return false;
  });
}

/// Scores the candidates again by their accepted nodes alone.
void PodClass::keep_accepted(const std::function<bool(std::uint32_t)>& accepted) {
  for (auto& candidate : candidates_) {
    candidate.nodes = 0;
    candidate.bonus = constant_score_;
    for (std::size_t rank = 0; rank < ranking_.bucket_count(candidate.group); ++rank)
      candidate.nodes += static_cast<std::size_t>(std::ranges::count_if(ranking_.bucket(candidate.group, rank).nodes, accepted));
  }
  std::erase_if(candidates_, [](const Candidate& candidate) { return candidate.nodes == 0; });
  if (candidates_.empty()) return;
  if (!soft_spread_.empty()) weigh_spread();
  normalize();
}

bool PodClass::is_swayed_by_nominations() const {
  const Cluster& cluster = index_->cluster();
  const auto& view = pod_->view();
  const auto& own_namespace = cluster.namespace_labels(view.ns());
  return std::ranges::any_of(index_->nominated_kinds(), [&](const auto& kind) {
    const model::PodView& other = kind.example->view();
    const auto spreads_with = [&](const auto& one) {
      return other.ns() == view.ns() && one.constraint.selector.matches(other.meta.labels);
    };
    if (std::ranges::any_of(hard_spread_, spreads_with)) return true;
    if (!service_topologies_.empty() && other.ns() == view.ns() && has_labels_of(other, view)) return true;
    if (!filters_affinity_) return false;
    const auto& labels = cluster.namespace_labels(other.ns());
    const auto matches_other = [&](const AffinityTerm& term) { return term.matches(other, labels); };
    return std::ranges::any_of(pod_->required_affinity, matches_other) ||
           std::ranges::any_of(pod_->required_anti_affinity, matches_other) ||
           std::ranges::any_of(kind.example->required_anti_affinity,
                               [&](const AffinityTerm& term) { return term.matches(view, own_namespace); });
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
