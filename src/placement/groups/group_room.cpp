#include "placement/groups/group_room.h"

#include <algorithm>
#include <unordered_map>

namespace berth::placement {

GroupRoom::GroupRoom(Trial& trial, std::span<const PodInfoPtr> members) : cluster_(trial.cluster()) {
  sort_into_kinds(trial, members);
  for (const MemberKind& kind : kinds_)
    for (const auto& [name, amount] : kind.example->wanted().scalars)
      if (std::ranges::find(scalars_, name) == scalars_.end()) scalars_.push_back(name);
  std::ranges::sort(scalars_);
  largest_.resize(width(), 0);
  for (const MemberKind& kind : kinds_) {
    auto& wanted = wanted_.emplace_back(width());
    amounts_of(*kind.example, false, wanted.data());
    for (std::size_t i = 0; i < wanted.size(); ++i) largest_[i] = std::max(largest_[i], wanted[i]);
  }
  priority_ = members.empty() ? 0 : members.front()->view().priority;
  is_plain_ = std::ranges::all_of(kinds_, &MemberKind::is_plain) && counts_nominations_alike(members);
}

void GroupRoom::sort_into_kinds(Trial& trial, std::span<const PodInfoPtr> members) {
  std::unordered_map<Signature, std::size_t, SignatureHash> known;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Signature signature = trial.sign(*members[i]);
    const auto [at, is_new] = known.try_emplace(signature, kinds_.size());
    if (is_new) {
      kinds_.push_back({members[i], {}, false});
      rules_.push_back(rules_of(trial, kinds_.back(), signature.has_checks()));
      kinds_.back().is_plain = rules_.back().has_value();
    }
    kinds_[at->second].members.push_back(i);
  }
}

std::optional<GroupRoom::Rules> GroupRoom::rules_of(const Trial& trial, const MemberKind& kind, bool has_checks) const {
  const PodInfo& pod = *kind.example;
  const FrameworkPtr& framework = trial.profiles().of(pod);
  if (framework == nullptr || has_checks || !pod.view().required_features.empty()) return std::nullopt;
  Rules out{framework->new_cycle(cluster_), {}, {}};
  for (const Plugin* plugin : framework->pre_filters()) {
    const PreFilterOutcome said = plugin->pre_filter(out.state, pod);
    if (said.status.is_skip())
      out.state.skip_filter(plugin->slot());
    else if (!said.status.is_success() || (said.node_names && out.only_nodes))
      return std::nullopt;
    if (said.node_names) out.only_nodes = said.node_names;
  }
  bool counts_amounts = false;
  for (const Plugin* plugin : framework->filters()) {
    if (plugin->goes_by_amounts(pod)) {
      counts_amounts = true;
      continue;
    }
    if (out.state.filter_skipped(plugin->slot())) continue;
    const ColumnKind how = plugin->column_kind();
    if (how == ColumnKind::kStatic)
      out.filters.push_back(plugin);
    else if (how != ColumnKind::kNothing && how != ColumnKind::kVolumes)
      return std::nullopt;
  }
  if (!counts_amounts) return std::nullopt;
  return out;
}

/// Nominated pods of equal and higher priority count, but for the pod's own nomination.
bool GroupRoom::counts_nominations_alike(std::span<const PodInfoPtr> members) const {
  if (!cluster_.has_nominations()) return true;
  return std::ranges::all_of(members, [&](const PodInfoPtr& pod) {
    return pod->view().priority == priority_ && pod->view().nominated_node_name.empty() && !cluster_.is_nominated(pod->key);
  });
}

void GroupRoom::amounts_of(const PodInfo& pod, bool is_placed, std::int64_t* out) const {
  const Resource& all = is_placed ? pod.request.total : pod.wanted();
  out[0] = all.cpu_milli;
  out[1] = all.memory_bytes;
  out[2] = all.ephemeral_storage_bytes;
  out[3] = 1;
  for (std::size_t i = 0; i < scalars_.size(); ++i) out[4 + i] = all.scalars.empty() ? 0 : all.scalar(scalars_[i]);
}

void GroupRoom::left_beside_nominations(const NodeInfo& node, std::int64_t* out) const {
  const Resource &has = node.allocatable, &used = node.requested;
  out[0] = saturating_sub(has.cpu_milli, used.cpu_milli);
  out[1] = saturating_sub(has.memory_bytes, used.memory_bytes);
  out[2] = saturating_sub(has.ephemeral_storage_bytes, used.ephemeral_storage_bytes);
  out[3] = has.allowed_pods - static_cast<std::int64_t>(node.pods.size());
  for (std::size_t i = 0; i < scalars_.size(); ++i) out[4 + i] = saturating_sub(has.scalar(scalars_[i]), used.scalar(scalars_[i]));
}

void GroupRoom::left_on(const NodeInfo& node, std::int64_t* out) const {
  left_beside_nominations(node, out);
  if (!cluster_.has_nominations()) return;
  std::vector<std::int64_t> taken(width());
  for (const PodInfoPtr& pod : cluster_.nominated(node.index)) {
    if (pod->view().priority < priority_) continue;
    amounts_of(*pod, true, taken.data());
    for (std::size_t i = 0; i < taken.size(); ++i) out[i] = saturating_sub(out[i], taken[i]);
  }
}

bool GroupRoom::may_go(std::size_t kind, const NodeInfo& node) const {
  if (!rules_[kind]) return true;
  const Rules& rules = *rules_[kind];
  if (rules.only_nodes && !rules.only_nodes->contains(node.name)) return false;
  return std::ranges::all_of(rules.filters,
                             [&](const Plugin* plugin) { return plugin->filter(rules.state, *kinds_[kind].example, node).is_success(); });
}

}  // namespace berth::placement
