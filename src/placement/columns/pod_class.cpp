#include "placement/columns/pod_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/plugins/default_selector.h"
#include "placement/plugins/inter_pod_affinity.h"
#include "placement/plugins/service_affinity.h"

namespace berth::placement {
namespace {

bool contains(std::span<const Plugin* const> list, const Plugin* plugin) { return std::ranges::find(list, plugin) != list.end(); }

/// What cannot be parsed is reported by the plain form.
bool is_well_formed(const model::PodView& pod) {
  const auto good_term = [](const model::PodAffinityTerm& term) { return term.selector_error.empty(); };
  const auto good_weighted = [&](const model::WeightedPodAffinityTerm& weighted) { return good_term(weighted.term); };
  return std::ranges::all_of(pod.required_affinity, good_term) && std::ranges::all_of(pod.required_anti_affinity, good_term) &&
         std::ranges::all_of(pod.preferred_affinity, good_weighted) && std::ranges::all_of(pod.preferred_anti_affinity, good_weighted) &&
         std::ranges::all_of(
             pod.spread_constraints,
             [](const auto& constraint) { return constraint.selector_error.empty() && !constraint.selector.is_everything(); }) &&
         std::ranges::all_of(pod.node_affinity.preferred, [](const auto& term) { return term.preference.errors.empty(); });
}

bool has_repeated_key(const std::vector<SpreadConstraint>& constraints) {
  for (std::size_t i = 0; i < constraints.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (constraints[i].topology_key == constraints[j].topology_key) return true;
  return false;
}

AffinityTerm spread_term(const model::PodView& pod, const model::Selector& selector) {
  AffinityTerm out;
  out.namespaces = {pod.meta.ns};
  out.selector = selector;
  return out;
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
  for (auto* sums : {&affinity_, &anti_, &existing_anti_, &score_sums_})
    for (auto& sum : *sums) sum.bind(index);
  for (auto& one : hard_spread_) one.sum.bind(index);
  for (auto& one : soft_spread_) one.sum->bind(index);
}

bool PodClass::prepare(StaticColumns& shared) {
  const Cluster& cluster = index_->cluster();
  index_->note_namespace_selectors(*pod_);
  workloads_version_ = cluster.workloads_version();
  default_selector_ = index_->default_selector(*pod_);
  if (!prepare_filters() || !prepare_scorers() || !prepare_spread()) return false;
  intern_group_verdicts();
  prepare_affinity();
  epoch_ = index_->epoch();
  static_id_ = shared.find(*framework_, signature_);
  if (static_id_ == nullptr)
    static_id_ = shared.add(StaticColumn(framework_, pod_, std::string(signature_.statics()), *index_, std::move(plan_)));
  static_ = &shared.edit(*static_id_, *index_);
  static_generation_ = static_->catch_up(pod_);
  prepare_amounts();
  adopt_held_terms();
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
      case ColumnKind::kPodTopologySpread:
        if (!contains(framework_->pre_filters(), plugin)) return false;
        spread_order_ = order;
        break;
      case ColumnKind::kInterPodAffinity:
        if (!contains(framework_->pre_filters(), plugin)) return false;
        affinity_order_ = order;
        filters_affinity_ = true;
        break;
      case ColumnKind::kServiceAffinity:
        if (!contains(framework_->pre_filters(), plugin)) return false;
        service_order_ = order;
        break;
      case ColumnKind::kSelectorSpread:
      case ColumnKind::kVolumes:
      case ColumnKind::kNothing:
        break;
    }
  }
  return true;
}

/// What groups can be rejected with, each at its step of its plugin.
void PodClass::intern_group_verdicts() {
  const auto add = [&](Status status, std::string_view plugin, std::uint32_t order) {
    status.plugin = plugin;
    return intern(std::move(status), order);
  };
  if (spread_order_ != 0) {
    verdict_spread_label_ = add(Status::unresolvable(std::string(kReasonSpreadLabel)), "PodTopologySpread", spread_order_);
    verdict_spread_ = add(Status::unschedulable(std::string(kReasonSpread)), "PodTopologySpread", spread_order_);
  }
  if (filters_affinity_) {
    const auto affinity = [&](Code code, std::string_view reason, std::uint32_t step) {
      return add(affinity_rejection(code, reason, era_), "InterPodAffinity", affinity_order_ + step);
    };
    verdict_affinity_ = affinity(Code::kUnschedulableAndUnresolvable, kReasonAffinityRules, 0);
    verdict_anti_ = affinity(Code::kUnschedulable, kReasonAntiAffinityRules, 1);
    verdict_existing_ = affinity(Code::kUnschedulable, kReasonExistingAntiAffinity, 2);
  }
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
    if (kind == ColumnKind::kSelectorSpread && weight >= 0 && weight <= 1'000'000) {
      if (!contains(framework_->pre_scorers(), plugin)) return false;
      selector_weight_ = weight;
      continue;
    }
    if (kind == ColumnKind::kServiceAffinity) {
      // Without labels to spread over it gives every node nothing; with them only the plain form knows how.
      if (!framework_->profile().args.service_affinity.anti_affinity_labels_preference.empty()) return false;
      continue;
    }
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
    } else if (kind == ColumnKind::kPodTopologySpread) {
      if (!contains(framework_->pre_scorers(), plugin)) return false;
      spread_weight_ = weight;
    } else if (kind == ColumnKind::kInterPodAffinity) {
      if (!contains(framework_->pre_scorers(), plugin)) return false;
      affinity_weight_ = weight;
      scores_affinity_ = true;
    }
  }
  return true;
}

bool PodClass::prepare_spread() {
  const auto& args = framework_->profile().args.spread;
  const auto& view = pod_->view();
  const Cluster& cluster = index_->cluster();
  if (spread_order_ != 0) {
    auto [constraints, error] = spread_constraints(view, cluster, args, era_, true, &default_selector_);
    if (!error.empty() || (era_ == Era::k120 && has_repeated_key(constraints))) return false;
    for (auto& constraint : constraints) {
      DomainSum sum(*index_, index_->topology(constraint.topology_key));
      sum.add_source({index_->matcher({spread_term(view, constraint.selector)}, true), 1});
      const bool self = constraint.selector.matches(view.meta.labels);
      hard_spread_.push_back({std::move(constraint), std::move(sum), self, 0});
    }
  }
  if (spread_weight_ != 0) {
    auto [constraints, error] = spread_constraints(view, cluster, args, era_, false, &default_selector_);
    if (!error.empty() || (era_ == Era::k120 && has_repeated_key(constraints))) return false;
    if (constraints.empty() && era_ == Era::k120) constant_score_ += spread_weight_ * kMaxNodeScore;
    for (auto& constraint : constraints) {
      SoftSpread soft;
      const CountId matcher = index_->matcher({spread_term(view, constraint.selector)}, true);
      const auto topology = index_->topology(constraint.topology_key);
      soft.sum.emplace(*index_, topology);
      soft.node_count = matcher;
      soft.sum->add_source({matcher, 1});
      soft.constraint = std::move(constraint);
      soft_spread_.push_back(std::move(soft));
    }
    spread_requires_all_keys_ = era_ == Era::k120 || !view.spread_constraints.empty() || !args.system_defaulting;
  }
  if (hard_spread_.size() + soft_spread_.size() > 16) return false;
  prepare_selector_spread();
  if (!prepare_service_affinity()) return false;
  // A label with an empty value and a missing label are told apart in one place and not in another: the plain form knows where.
  const auto has_empty_value = [](const DomainSum& sum) { return sum.column().empty_value >= 0; };
  return std::ranges::none_of(hard_spread_, [&](const auto& one) { return has_empty_value(one.sum); }) &&
         std::ranges::none_of(soft_spread_, [&](const auto& one) { return has_empty_value(*one.sum); });
}

/// 1.20's SelectorSpread: pods of the node, and of its zone, that the pod's services and workloads select.
void PodClass::prepare_selector_spread() {
  if (selector_weight_ == 0 || !pod_->view().spread_constraints.empty()) return;  // Own constraints switch it off.
  if (default_selector_.is_everything()) {
    constant_score_ += selector_weight_ * kMaxNodeScore;  // Nothing selects it: all nodes are as good.
    return;
  }
  selected_count_ = index_->matcher({spread_term(pod_->view(), default_selector_)}, true);
}

/// 1.20's ServiceAffinity, its filter: the labels' values of the node where the service's first pod is, unless the pod selects them itself.
bool PodClass::prepare_service_affinity() {
  const auto& labels = framework_->profile().args.service_affinity.affinity_labels;
  if (service_order_ == 0 || labels.empty()) return true;
  const auto& view = pod_->view();
  has_service_ = !pod_services(view, index_->cluster()).empty();
  std::vector<model::Requirement> own_labels;
  for (const auto& [key, value] : view.meta.labels.pairs()) own_labels.push_back({key, model::Requirement::Op::kIn, {value}});
  service_pods_ = index_->matcher({spread_term(view, model::Selector(std::move(own_labels)))}, false);
  for (const auto& label : labels) service_topologies_.push_back(index_->topology(label));
  service_wanted_.assign(labels.size(), kAnyValue);
  Status rejection = Status::unschedulable(std::string(kReasonServiceAffinity));
  rejection.plugin = "ServiceAffinity";
  verdict_service_ = intern(std::move(rejection), service_order_);
  return true;
}

void PodClass::prepare_affinity() {
  const Cluster& cluster = index_->cluster();
  const auto& view = pod_->view();
  bool ignored = false;
  if (filters_affinity_) {
    const auto affinity = resolve_namespaces(pod_->required_affinity, cluster);
    const auto anti = resolve_namespaces(pod_->required_anti_affinity, cluster);
    self_affinity_ = matches_all_terms(view, cluster.namespace_labels(view.ns()), affinity);
    // Only pods that match all affinity terms count, for each of the keys.
    for (const auto& term : affinity) add_affinity_source(affinity_, term.topology_key, {index_->matcher(affinity, false), 1}, ignored);
    for (const auto& term : anti) add_affinity_source(anti_, term.topology_key, {index_->matcher({term}, false), 1}, ignored);
  }
  if (!scores_affinity_) return;
  const bool has_preferences = !pod_->preferred_affinity.empty() || !pod_->preferred_anti_affinity.empty();
  if (era_ != Era::k120 && framework_->profile().args.inter_pod_affinity.ignore_preferred_terms_of_existing_pods && !has_preferences) {
    counts_held_scores_ = false;
    return;
  }
  for (const auto& term : resolve_namespaces(pod_->preferred_affinity, cluster))
    add_affinity_source(score_sums_, term.topology_key, {index_->matcher({term}, false), term.weight}, ignored);
  for (const auto& term : resolve_namespaces(pod_->preferred_anti_affinity, cluster))
    add_affinity_source(score_sums_, term.topology_key, {index_->matcher({term}, false), -term.weight}, ignored);
}

void PodClass::add_affinity_source(std::vector<DomainSum>& sums, const std::string& topology_key, DomainSum::Source source,
                                   bool& layout_changed) {
  const std::size_t topology = index_->topology(topology_key);
  for (auto& sum : sums)
    if (sum.topology() == topology) return sum.add_source(source);
  sums.emplace_back(*index_, topology);
  sums.back().add_source(source);
  layout_changed = true;
}

/// Terms that pods brought since the last look and that concern this class. True when a new topology key came into play.
bool PodClass::adopt_held_terms() {
  bool layout_changed = false;
  const std::int64_t hard_weight = framework_->profile().args.inter_pod_affinity.hard_pod_affinity_weight;
  const auto& audience = signature_.audience();
  for (auto id = std::ranges::lower_bound(audience, held_seen_); id != audience.end(); ++id) {
    const HeldTerm& held = index_->held_term(*id);
    const CountId counts = ClusterIndex::held_counts(*id);
    const bool rejects = held.kind == HeldTerm::Kind::kRequiredAntiAffinity && filters_affinity_;
    const std::int64_t weight = held.kind == HeldTerm::Kind::kPreferred          ? held.term.weight
                                : held.kind == HeldTerm::Kind::kRequiredAffinity ? std::max<std::int64_t>(hard_weight, 0)
                                                                                 : 0;
    const bool scores = weight != 0 && scores_affinity_ && counts_held_scores_;
    if (rejects) add_affinity_source(existing_anti_, held.term.topology_key, {counts, 1}, layout_changed);
    if (scores) add_affinity_source(score_sums_, held.term.topology_key, {counts, weight}, layout_changed);
  }
  held_seen_ = index_->held_term_count();
  return layout_changed;
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
  const Cluster& cluster = index_->cluster();
  if (epoch_ != index_->epoch()) return true;
  // Another default selector is another signature; whether there is a service at all is not told by it.
  if (!service_topologies_.empty() && workloads_version_ != cluster.workloads_version()) {
    workloads_version_ = cluster.workloads_version();
    if (has_service_ == pod_services(pod_->view(), cluster).empty()) return true;
  }
  const auto gained_empty_value = [](const DomainSum& sum) { return sum.column().empty_value >= 0; };
  return std::ranges::any_of(hard_spread_, [&](const auto& one) { return gained_empty_value(one.sum); }) ||
         std::ranges::any_of(soft_spread_, [&](const auto& one) { return gained_empty_value(*one.sum); });
}

bool PodClass::serves(const Framework& framework, const Signature& signature) const {
  return framework_.get() == &framework && signature_.continues_as(signature, held_seen_);
}

bool PodClass::catch_up(const PodInfoPtr& pod, const Signature& signature) {
  if (is_outdated()) return false;
  if (signature_.audience().size() != signature.audience().size()) signature_ = signature;
  pod_ = pod;
  bool afresh = adopt_held_terms();
  if (const auto generation = static_->catch_up(pod_); generation != static_generation_) {
    static_generation_ = generation;
    afresh = true;
  }
  const auto is_stale = [](const DomainSum& sum) { return sum.is_stale(); };
  for (const auto* sums : {&affinity_, &anti_, &existing_anti_, &score_sums_}) afresh |= std::ranges::any_of(*sums, is_stale);
  afresh |= std::ranges::any_of(hard_spread_, [&](const auto& one) { return is_stale(one.sum); });
  const std::uint64_t end = index_->touched_end();
  // Going over all nodes in order is several times cheaper a node than jumping about, as long as amounts decide.
  const std::uint64_t far_behind = by_amounts_ && !has_domains() ? records_.size() / 3 + 64 : 2ULL * records_.size() + 64;
  afresh |= position_ < index_->touched_begin() || end - position_ > far_behind;
  afresh |= groups_.size() > 2ULL * records_.size() + 4096;  // Groups that nobody is in any more.
  if (afresh) {
    build();
    return true;
  }
  constexpr std::uint64_t kAhead = 12;
  for (; position_ < end; ++position_) {
    if (position_ + kAhead < end) {
      const std::uint32_t later = index_->touched(position_ + kAhead).node;
      index_->prefetch(later);
      static_->prefetch(later);
      if (later < records_.size()) __builtin_prefetch(&records_[later]);
    }
    const auto [node, is_static] = index_->touched(position_);
    evaluate(node, is_static);
  }
  return true;
}

void PodClass::build() {
  position_ = index_->touched_end();
  const auto renew = [&](DomainSum& sum) { sum.reset(); };
  for (auto* sums : {&affinity_, &anti_, &existing_anti_, &score_sums_}) std::ranges::for_each(*sums, renew);
  for (auto& one : hard_spread_) renew(one.sum);
  for (auto& one : soft_spread_) renew(*one.sum);
  ranking_.clear();
  groups_.clear();
  group_index_.clear();
  live_.clear();
  last_group_ = kNoGroup;
  records_.renew(index_->cluster().slot_count());
  zones_.clear();
  service_node_order_.clear();
  zone_of_.renew(selected_count_.is_valid() ? records_.size() : 0);
  inclusion_.renew(hard_spread_.empty() && soft_spread_.empty() ? 0 : records_.size());
  // A last word on nodes (volumes) may go through all of them in order.
  ranks_lazily_ = by_amounts_ && !has_domains() && records_.size() >= lazy_ranking_nodes_ && !signature_.has_checks();
  if (ranks_lazily_ && !index_->cluster().has_nominations()) return build_by_amounts();
  for (std::uint32_t i = 0; i < records_.size(); ++i) evaluate(i, true);
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
  const std::size_t raws = raw_scorers_.size();
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const NodeAmounts& amounts = index_->amounts(i);
    const StaticColumn::Entry& fixed = (*static_)[i];
    if (!amounts.is_plain || fixed.verdict != 0 || resources_.shortage(amounts) != 0) {
      end_run();
      evaluate(i, true);
      continue;
    }
    bool same = last_group_ != kNoGroup;
    for (std::size_t raw = 0; same && raw < raws; ++raw) same = groups_[last_group_].key[raw] == fixed.raw[raw];
    if (!same) {
      end_run();
      make_key(i);
      last_group_ = group_of_key(last_group_);
    }
    // New groups begin with a floor above all scores: choose() ranks the best of them.
    records_.edit(i) = {narrow_score(fixed.score + resources_.score(amounts)), last_group_, 0, kFits};
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
  return records_.memory_bytes() + inclusion_.memory_bytes() + ranking_.memory_bytes() + groups_.capacity() * sizeof(Group);
}

}  // namespace berth::placement
