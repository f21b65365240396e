#include "placement/columns/pod_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/columns/alike_nodes.h"

namespace berth::placement {
namespace {

bool contains(std::span<const Plugin* const> list, const Plugin* plugin) { return std::ranges::find(list, plugin) != list.end(); }

/// What cannot be parsed is reported by the plain form.
bool is_well_formed(const model::PodView& pod) {
  return std::ranges::all_of(pod.node_affinity.preferred, [](const auto& term) { return term.preference.errors.empty(); });
}

}  // namespace

std::shared_ptr<PodClass> PodClass::make(FrameworkPtr framework, PodInfoPtr pod, Signature signature, ClusterIndex& index,
                                         StaticColumns& shared, std::size_t lazy_ranking_nodes) {
  // A pod that asks by its spec for another amount than its status says is none of the columns' cases.
  if (!is_well_formed(pod->view()) || pod->spec_request != nullptr || !pod->view().required_features.empty()) return nullptr;
  // With all filters asked an error of a volume plugin counts even where another filter has rejected the node.
  if (framework->profile().always_check_all_filters && signature.has_checks()) return nullptr;
  auto out = std::shared_ptr<PodClass>(new PodClass(std::move(framework), std::move(pod), std::move(signature), index));
  out->lazy_ranking_nodes_ = lazy_ranking_nodes;
  if (!out->prepare(shared)) return nullptr;
  return out;
}

PodClass::PodClass(FrameworkPtr framework, PodInfoPtr pod, Signature signature, ClusterIndex& index)
    : framework_(std::move(framework)),
      pod_(std::move(pod)),
      signature_(std::move(signature)),
      index_(&index),
      state_(framework_->new_cycle(index.cluster())),
      era_(framework_->profile().era) {
  verdicts_.push_back({});
}

void PodClass::bind(ClusterIndex& index, StaticColumns& shared) {
  static_ = &shared.edit(*static_id_, index);
  ranking_.bind(PositionOf{&records_});
  index_ = &index;
  state_.bind(index.cluster());
  for (auto& slot : topology_) slot.part->bind(index);
}

bool PodClass::prepare(StaticColumns& shared) {
  if (!prepare_filters() || !prepare_scorers() || !prepare_topology()) return false;
  epoch_ = index_->epoch();
  static_id_ = shared.find(*framework_, signature_);
  if (static_id_ == nullptr)
    static_id_ = shared.add(StaticColumn(framework_, pod_, std::string(signature_.statics()), *index_, std::move(plan_)));
  static_ = &shared.edit(*static_id_, *index_);
  static_generation_ = static_->catch_up(pod_);
  prepare_amounts();
  adopt_held_terms();
  look_for_domains();
  return true;
}

bool PodClass::prepare_filters() {
  for (const Plugin* plugin : framework_->pre_filters()) {
    const ColumnKind kind = plugin->column_kind();
    if (kind == ColumnKind::kPlainOnly) return false;
    if (kind != ColumnKind::kStatic && kind != ColumnKind::kNodeLocal && kind != ColumnKind::kNothing) continue;
    PreFilterOutcome outcome = plugin->pre_filter(state_, *pod_);
    if (outcome.status.is_error()) return false;
    if (outcome.status.is_skip()) {
      state_.skip_filter(plugin->slot());
    } else if (outcome.status.is_rejected() && pre_filter_.is_success()) {
      pre_filter_ = std::move(outcome.status);
      if (pre_filter_.plugin.empty()) pre_filter_.plugin = plugin->name();
    } else if (outcome.node_names) {
      // Two narrowing plugins would need intersecting and the words for it.
      if (plan_.only_nodes) return false;
      plan_.only_nodes = std::move(outcome.node_names);
      plan_.left_out = Status::unresolvable(fmt::format("node(s) didn't satisfy plugin(s) [{}]", plugin->name()));
    }
  }
  std::uint32_t order = 0;
  for (const Plugin* plugin : framework_->filters()) {
    order += 4;
    if (state_.filter_skipped(plugin->slot())) continue;
    switch (plugin->column_kind()) {
      case ColumnKind::kPlainOnly:
        return false;
      case ColumnKind::kStatic:
        plan_.filters.push_back({plugin, order});
        break;
      case ColumnKind::kNodeLocal:
        local_filters_.push_back({plugin, order});
        break;
      case ColumnKind::kTopology:
        if (!contains(framework_->pre_filters(), plugin)) return false;
        topology_role(plugin).order = order;
        break;
      case ColumnKind::kVolumes:
      case ColumnKind::kNothing:
        break;
    }
  }
  return true;
}

bool PodClass::prepare_scorers() {
  for (const Plugin* plugin : framework_->pre_scorers()) {
    const ColumnKind kind = plugin->column_kind();
    if (kind == ColumnKind::kPlainOnly) return false;
    if (kind != ColumnKind::kStatic && kind != ColumnKind::kNodeLocal) continue;
    const Status status = plugin->pre_score(state_, *pod_, {});
    if (status.is_skip()) {
      state_.skip_score(plugin->slot());
    } else if (!status.is_success()) {
      return false;
    }
  }
  for (const auto& [plugin, weight] : framework_->scorers()) {
    if (state_.score_skipped(plugin->slot())) continue;
    const ColumnKind kind = plugin->column_kind();
    const Normalization how = plugin->normalization();
    if (kind == ColumnKind::kPlainOnly || how == Normalization::kOwn) return false;
    if (weight < 0 || weight > 1'000'000) return false;  // Own scores are kept in 32 bits.
    if (plugin->name() == "ImageLocality") plan_.uses_images = true;
    if (kind == ColumnKind::kStatic && how != Normalization::kNone) {
      if (raw_scorers_.size() == 2) return false;
      raw_scorers_.push_back({plugin, weight, how == Normalization::kByMaxReversed});
      plan_.raw_scorers.push_back(plugin);
    } else if (kind == ColumnKind::kStatic) {
      plan_.scorers.push_back({plugin, weight});
    } else if (kind == ColumnKind::kNodeLocal) {
      local_scorers_.push_back({plugin, weight});
    } else if (kind == ColumnKind::kTopology) {
      if (plugin->points().pre_score && !contains(framework_->pre_scorers(), plugin)) return false;
      topology_role(plugin).weight = weight;
    }
  }
  return true;
}

PodClass::TopologyRole& PodClass::topology_role(const Plugin* plugin) {
  const auto known = std::ranges::find(topology_roles_, plugin, &TopologyRole::plugin);
  return known != topology_roles_.end() ? *known : topology_roles_.emplace_back(plugin);
}

bool PodClass::prepare_topology() {
  const model::Selector default_selector = topology_roles_.empty() ? model::Selector() : index_->default_selector(*pod_);
  for (const auto& [plugin, order, weight] : topology_roles_) {
    TopologyOutcome made = plugin->topology_part({*pod_, *index_, default_selector, order != 0, weight});
    if (made.plain_only) return false;
    constant_score_ += made.constant_score;
    if (made.part == nullptr) continue;
    TopologySlot& slot = topology_.emplace_back(std::move(made.part), plugin);
    if (order == 0) continue;
    // What groups can be rejected with, each at its step of its plugin.
    for (auto& [status, step] : slot.part->rejections()) {
      if (status.plugin.empty()) status.plugin = plugin->name();
      slot.verdicts.push_back(intern(std::move(status), order + step));
    }
  }
  return true;
}

/// Terms that pods brought since the last look and that concern this class. True when a new topology key came into play.
bool PodClass::adopt_held_terms() {
  bool layout_changed = false;
  const auto& audience = signature_.audience();
  const std::span terms(std::ranges::lower_bound(audience, held_seen_), audience.end());
  if (!terms.empty())
    for (auto& slot : topology_) layout_changed |= slot.part->adopt_terms(terms);
  held_seen_ = index_->held_term_count();
  return layout_changed;
}

void PodClass::look_for_domains() {
  has_domains_ = std::ranges::any_of(topology_, [](const TopologySlot& slot) { return !slot.part->is_empty(); });
}

/// Whether everything of a node that is not static can be had from its amounts.
void PodClass::prepare_amounts() {
  resources_ = {};
  const Resource& wanted = pod_->wanted();
  resources_.cpu = wanted.cpu_milli;
  resources_.memory = wanted.memory_bytes;
  resources_.storage = wanted.ephemeral_storage_bytes;
  bool joined = true;
  for (const auto& filter : local_filters_) joined &= filter.plugin->join_filter(resources_, *pod_);
  for (const auto& [plugin, weight] : local_scorers_) joined &= plugin->join_score(resources_, *pod_, weight);
  constexpr std::int64_t kSmall = 1LL << 44;
  const auto small = [](std::int64_t value) { return value >= 0 && value < kSmall; };
  by_amounts_ = joined && resources_.filters && small(resources_.cpu) && small(resources_.memory) && small(resources_.scored_cpu) &&
                small(resources_.scored_memory);
}

/// Whether what the class was prepared from has changed so that it must be made anew.
bool PodClass::is_outdated() {
  if (epoch_ != index_->epoch()) return true;
  return std::ranges::any_of(topology_, [&](const TopologySlot& slot) { return slot.part->is_outdated(*pod_); });
}

bool PodClass::serves(const Framework& framework, const Signature& signature) const {
  return framework_.get() == &framework && signature_.continues_as(signature, held_seen_);
}

bool PodClass::catch_up(const PodInfoPtr& pod, const Signature& signature) {
  if (is_outdated()) return false;
  if (signature_.audience().size() != signature.audience().size()) signature_ = signature;
  pod_ = pod;
  bool afresh = adopt_held_terms();
  if (afresh) look_for_domains();
  if (const auto generation = static_->catch_up(pod_); generation != static_generation_) {
    static_generation_ = generation;
    afresh = true;
  }
  afresh |= has_domains_ && std::ranges::any_of(topology_, [](const TopologySlot& slot) { return slot.part->is_stale(); });
  afresh |= is_far_behind();
  afresh |= groups_.size() > 2ULL * records_.size() + 4096;  // Groups that nobody is in any more.
  if (afresh) {
    build();
    return true;
  }
  follower_.follow(*index_, [&](std::uint32_t node, bool is_static, std::uint32_t later) {
    index_->prefetch(later);
    static_->prefetch(later);
    if (later < records_.size()) __builtin_prefetch(&records_[later]);
    if (!has_seen(node)) evaluate(node, is_static);
  });
  return true;
}

/// Building anew is cheaper, or all that is left. Going over all nodes in order is several times cheaper a node than jumping about, as long
/// as amounts decide.
bool PodClass::is_far_behind() const {
  if (!follower_.reaches(*index_)) return true;
  const std::uint64_t far = by_amounts_ && !has_domains_ ? records_.size() / 3 + 64 : 2ULL * records_.size() + 64;
  if (follower_.behind(*index_) <= far) return false;
  std::uint64_t changed = 0;
  for (std::uint32_t node = 0; node < index_->cluster().slot_count(); ++node) changed += !has_seen(node);
  return changed > far;
}

void PodClass::build() {
  follower_.restart(*index_);
  std::size_t first = raw_scorers_.size();
  for (auto& slot : topology_) {
    slot.part->reset();
    slot.first = first;
    first += slot.part->slot_count();
  }
  ranking_.clear();
  groups_.clear();
  group_index_.clear();
  live_.clear();
  last_group_ = kNoGroup;
  records_.renew(index_->cluster().slot_count());
  // A last word on nodes (volumes) may go through all of them in order.
  ranks_lazily_ = by_amounts_ && !has_domains_ && records_.size() >= lazy_ranking_nodes_ && !signature_.has_checks();
  if (ranks_lazily_ && !index_->cluster().has_nominations()) return build_by_amounts();
  constexpr std::uint32_t kAhead = 8;
  const auto size = static_cast<std::uint32_t>(records_.size());
  std::optional<AlikeNodes> alike;
  if (by_amounts_ && has_domains_ && !index_->cluster().has_nominations()) alike = AlikeNodes::of(topology_, *index_);
  for (std::uint32_t i = 0; i < size; ++i) {
    if (alike && alike->has(i) && index_->amounts(i).is_plain) {
      evaluate_alike(i, alike->group_of(i));
      continue;
    }
    if (i + kAhead < size) __builtin_prefetch(index_->cluster().node(NodeIndex{i + kAhead}));
    evaluate(i, true);
  }
}

/// The same for a class whose groups are decided by static scores alone: one pass, and counts once for each run of nodes of a group.
void PodClass::build_by_amounts() {
  std::uint32_t run = 0;
  const auto end_run = [&] {
    if (run == 0) return;
    Group& owner = groups_[last_group_];
    owner.members += run;
    const auto counted = std::ranges::find(owner.verdicts, kFits, &std::pair<std::uint16_t, std::uint32_t>::first);
    if (counted == owner.verdicts.end()) {
      owner.verdicts.emplace_back(kFits, run);
    } else {
      counted->second += run;
    }
    ranking_.insert_below(last_group_, run);
    if (owner.live_at == UINT32_MAX) make_live(last_group_);
    run = 0;
  };
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const NodeAmounts& amounts = index_->amounts(i);
    const StaticColumn::Entry& fixed = (*static_)[i];
    if (!amounts.is_plain || fixed.verdict != 0 || resources_.shortage(amounts) != 0) {
      end_run();
      evaluate(i, true);
      continue;
    }
    if (last_group_ == kNoGroup || !has_raw_scores(last_group_, fixed)) {
      end_run();
      make_static_key(i);
      last_group_ = group_of_key(last_group_);
    }
    // New groups begin with a floor above all scores: choose() ranks the best of them.
    records_.edit(i) = {narrow_score(fixed.score + resources_.score(amounts)), last_group_, 0, kFits, amounts.version};
    ++run;
  }
  end_run();
}

/// Ranks the best part of each group that has nodes but none ranked.
void PodClass::refill() {
  constexpr std::size_t kSamples = 4096;
  constexpr std::size_t kPart = 8;
  std::vector<std::uint32_t> thin;
  for (const auto group : live_)
    if (ranking_.is_thin(group)) thin.push_back(group);
  if (thin.empty()) return;
  std::vector<std::vector<std::int32_t>> samples(groups_.size());
  const std::size_t stride = records_.size() / kSamples | 1;
  std::vector<std::uint8_t> is_thin(groups_.size(), 0);
  for (const auto group : thin) is_thin[group] = 1;
  for (std::size_t i = 0; i < records_.size(); i += stride) {
    const NodeRecord& record = records_[i];
    if (record.group != kNoGroup && record.verdict == kFits && is_thin[record.group] != 0) samples[record.group].push_back(record.score);
  }
  for (const auto group : thin) {
    auto& scores = samples[group];
    if (scores.empty()) {
      ranking_.lower_floor(group, decltype(ranking_)::kNoFloor);
      continue;
    }
    const auto nth = scores.begin() + static_cast<std::ptrdiff_t>(scores.size() / kPart);
    std::ranges::nth_element(scores, nth, std::greater<>());
    ranking_.lower_floor(group, *nth);
  }
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const NodeRecord& record = records_[i];
    if (record.group == kNoGroup || record.verdict != kFits || is_thin[record.group] == 0) continue;
    if (record.score >= ranking_.floor(record.group)) ranking_.rank_counted(record.group, i, record.score);
  }
}

std::size_t PodClass::memory_bytes() const {
  // The pod and its signature are another's, too, while it lives; then they are the class's alone.
  std::size_t out = sizeof(PodClass) + pod_->bytes + signature_.memory_bytes() + records_.memory_bytes() + ranking_.memory_bytes();
  out += groups_.capacity() * sizeof(Group);
  if (!groups_.empty()) out += groups_.size() * heap_bytes(groups_.front().key);
  for (const auto& slot : topology_) out += sizeof(TopologySlot) + slot.part->memory_bytes();
  for (const Verdict& verdict : verdicts_) out += sizeof(Verdict) + heap_bytes(verdict.status.reasons);
  return out;
}

}  // namespace berth::placement
