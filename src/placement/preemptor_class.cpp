#include "placement/preemptor_class.h"

#include <algorithm>

namespace berth::placement {
namespace {

using Kind = PreemptionAnswer::Kind;
bool is_one_of(std::span<const Plugin* const> list, const Plugin* plugin) { return std::ranges::find(list, plugin) != list.end(); }

}  // namespace

struct PreemptorClass::Sheet {
  const NodeInfo& info;
  const PreemptionNode& rows;
  std::span<const LoadLimit> limits;  ///< By condition; until the next sheet is made.
  Numbers left;                       ///< With nominated pods,
  Numbers alone;                      ///< and without; only where there are any.
  bool has_nominated = false;
  std::vector<PodInfoPtr> nominated{};
  std::optional<NodeInfo> without{};  ///< The node as it is tried, where somebody asks.
  std::uint64_t passed = 0;           ///< Steps that read the node object alone and let the pod in, by bit.
};

PreemptorClass::Step::Step(const Step& other)
    : kind(other.kind),
      plugin(other.plugin),
      load(other.load == nullptr ? nullptr : other.load->clone()),
      words(other.words),
      first(other.first),
      count(other.count),
      first_own(other.first_own),
      own(other.own),
      says_all(other.says_all) {}

PreemptorClass::PreemptorClass(FrameworkPtr framework, PodInfoPtr pod, Signature signature, const Cluster& cluster, PreemptionIndex& index,
                               const PreemptionOptions& options)
    : framework_(std::move(framework)),
      pod_(std::move(pod)),
      signature_(std::move(signature)),
      cluster_(&cluster),
      index_(&index),
      options_(options),
      state_(framework_->new_cycle(cluster)),
      era_(framework_->profile().era) {}

std::shared_ptr<PreemptorClass> PreemptorClass::make(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature,
                                                     const Cluster& cluster, PreemptionIndex& index, const PreemptionOptions& options) {
  if (framework->profile().always_check_all_filters || pod->spec_request != nullptr) return nullptr;
  auto out = std::shared_ptr<PreemptorClass>(new PreemptorClass(framework, pod, std::move(signature), cluster, index, options));
  return out->prepare() ? out : nullptr;
}

void PreemptorClass::bind(const Cluster& cluster, PreemptionIndex& index) {
  cluster_ = &cluster;
  index_ = &index;
  state_.bind(cluster);
  for (Step& step : steps_)
    if (step.load != nullptr) step.load->bind(index.cluster_index());
}

bool PreemptorClass::prepare() {
  if (!prepare_pre_filters() || !prepare_steps()) return false;
  const auto& audience = signature_.audience();
  for (Step& step : steps_)
    if (step.load != nullptr) (void)step.load->adopt_terms(audience);
  held_seen_ = index_->cluster_index().held_term_count();
  if (!lay_out()) return false;
  if (only_ && counts_nodes_)
    for (std::uint32_t node = 0; node < cluster_->slot_count(); ++node) count_node(node);
  return is_covered();
}

bool PreemptorClass::prepare_pre_filters() {
  for (const Plugin* plugin : framework_->pre_filters()) {
    const ColumnKind kind = plugin->column_kind();
    if (kind == ColumnKind::kPlainOnly) return false;
    if (kind == ColumnKind::kTopology || kind == ColumnKind::kVolumes) continue;
    // What its state would be told of pods that go is nothing that a node could be asked without them.
    if (plugin->points().counts_pods) return false;
    const PreFilterOutcome outcome = plugin->pre_filter(state_, *pod_);
    if (outcome.status.is_skip()) {
      state_.skip_filter(plugin->slot());
      continue;
    }
    if (!outcome.status.is_success()) return false;
    if (!outcome.node_names) continue;
    if (only_) return false;
    only_.emplace();
    for (const auto& name : *outcome.node_names)
      if (const NodeInfo* node = cluster_->find_node(name); node != nullptr && node->node != nullptr) only_->push_back(node->index);
  }
  return true;
}

bool PreemptorClass::prepare_steps() {
  ClusterIndex& index = index_->cluster_index();
  const model::Selector default_selector = index.default_selector(*pod_);
  for (const Plugin* plugin : framework_->filters()) {
    const ColumnKind kind = plugin->column_kind();
    if (kind == ColumnKind::kVolumes || state_.filter_skipped(plugin->slot())) continue;
    Step step(Step::Kind::kConditions, plugin);
    step.load = plugin->removable_load({*pod_, index, default_selector, true, 0});
    const bool is_prepared = kind != ColumnKind::kTopology || is_one_of(framework_->pre_filters(), plugin);
    if (step.load == nullptr && kind == ColumnKind::kStatic)
      step.kind = Step::Kind::kObject;
    else if (step.load == nullptr && kind == ColumnKind::kNodeLocal)
      step.kind = Step::Kind::kAsked;
    else if (step.load == nullptr || !is_prepared)
      return false;
    steps_.push_back(std::move(step));
  }
  return steps_.size() <= kMostSteps;
}

/// Numbers conditions and what they count. False: there are too many.
bool PreemptorClass::lay_out() {
  number_of_.clear();
  of_domains_.clear();
  summed_.clear();
  numbers_ = kAmounts;
  asks_nodes_ = counts_nodes_ = false;
  reads_ = 0;
  for (Step& step : steps_) {
    asks_nodes_ |= step.kind == Step::Kind::kAsked;
    if (step.load == nullptr) continue;
    step.words = step.load->words();
    step.says_all = step.load->says_all();
    step.first = number_of_.size();
    step.first_own = numbers_;
    for (const auto& condition : step.load->conditions()) {
      if (condition.is_of_domain) of_domains_.push_back(number_of_.size());
      if (condition.is_summed) summed_.push_back(numbers_);
      const bool is_own = condition.amount == RemovableLoad::Amount::kOwn;
      number_of_.push_back(is_own ? numbers_++ : static_cast<std::size_t>(condition.amount));
    }
    step.count = number_of_.size() - step.first;
    step.own = numbers_ - step.first_own;
    counts_nodes_ |= step.own != 0;
    if (step.own != 0) reads_ |= step.load->reads();
  }
  forget_loads();
  return number_of_.size() <= kMostConditions && numbers_ <= kMostConditions && of_domains_.size() <= kMostOfDomains;
}

bool PreemptorClass::serves(const FrameworkPtr& framework, const Signature& signature) const {
  return framework_ == framework && !only_ && signature_.continues_as(signature, held_seen_);
}

bool PreemptorClass::adopt(const PodInfoPtr& pod, const Signature& signature) {
  pod_ = pod;
  if (signature_.audience().size() != signature.audience().size()) signature_ = signature;
  const auto& audience = signature_.audience();
  const std::span terms(std::ranges::lower_bound(audience, held_seen_), audience.end());
  held_seen_ = index_->cluster_index().held_term_count();
  bool has_more = false;
  for (Step& step : steps_) {
    if (step.load == nullptr) continue;
    if (!terms.empty()) has_more = step.load->adopt_terms(terms) || has_more;
    if (step.load->is_outdated()) return false;
  }
  if (terms.empty()) return true;
  forget_loads();
  if (has_more) answers_.clear();
  return !has_more || lay_out();
}

bool PreemptorClass::is_covered() const {
  return std::ranges::none_of(steps_, [&](const Step& step) {
    return step.load != nullptr && std::ranges::any_of(index_->cluster_index().nominated_kinds(),
                                                       [&](const auto& kind) { return step.load->is_blind_to(*kind.example, *pod_); });
  });
}

// Numbers

/// Kinds of pods are asked about once, not pods; their number is what makes a first look at a large cluster long.
const std::int64_t* PreemptorClass::own_load(const PreemptionRow& row) const {
  if ((row.has & reads_) == 0) return nullptr;
  if (row.kind >= loaded_.size()) loaded_.resize(index_->kind_count());
  if (loaded_[row.kind] == Loaded::kUnknown) {
    Numbers load{};
    add_load(load, *row.pod);
    const std::span own = std::span(load).subspan(kAmounts, numbers_ - kAmounts);
    const bool has_any = std::ranges::any_of(own, [](std::int64_t one) { return one != 0; });
    loaded_[row.kind] = has_any ? Loaded::kSo : Loaded::kNot;
    if (has_any) load_at_.emplace(row.kind, loads_.size()), loads_.insert(loads_.end(), own.begin(), own.end());
  }
  return loaded_[row.kind] == Loaded::kNot ? nullptr : &loads_[load_at_.at(row.kind)];
}

/// Of the own numbers alone.
void PreemptorClass::add_load(Numbers& numbers, const PodInfo& pod) const {
  for (const Step& step : steps_) {
    if (step.own == 0) continue;
    Numbers load;
    const std::span own = std::span(load).first(step.own);
    std::ranges::fill(own, 0);
    step.load->load_of(pod, own);
    for (std::size_t i = 0; i < step.own; ++i) numbers[step.first_own + i] = saturating_add(numbers[step.first_own + i], own[i]);
  }
}

void PreemptorClass::forget_loads() {
  loaded_.clear();
  load_at_.clear();
  loads_.clear();
}

template <typename Change>
void PreemptorClass::change(Sheet& sheet, const PreemptionRow& row, Change&& change) const {
  const std::int64_t* own = own_load(row);
  for (Numbers* numbers : {&sheet.left, &sheet.alone}) {
    for (std::size_t i = 0; i < kAmounts; ++i) (*numbers)[i] = change((*numbers)[i], row.request[i]);
    for (std::size_t i = kAmounts; own != nullptr && i < numbers_; ++i) (*numbers)[i] = change((*numbers)[i], own[i - kAmounts]);
    if (!sheet.has_nominated) break;
  }
}

void PreemptorClass::put(Sheet& sheet, const PreemptionRow& row) const {
  change(sheet, row, [](std::int64_t a, std::int64_t b) { return saturating_add(a, b); });
  if (sheet.without) sheet.without->add_pod(row.pod->shared_from_this());
}

void PreemptorClass::take(Sheet& sheet, const PreemptionRow& row) const {
  change(sheet, row, [](std::int64_t a, std::int64_t b) { return saturating_sub(a, b); });
  if (sheet.without) sheet.without->remove_pod(row.pod->key);
}

PreemptorClass::Sheet PreemptorClass::sheet_of(NodeIndex index, bool with_domains, std::string_view except) const {
  const NodeInfo& info = *cluster_->node(index);
  Sheet out{info, index_->node(index.value), std::span(limits_).first(number_of_.size()), {}, {}};
  for (const Step& step : steps_)
    if (step.count != 0) step.load->limits(info, std::span(limits_).subspan(step.first, step.count));
  if (!with_domains)
    for (const std::size_t condition : of_domains_) limits_[condition] = LoadLimit::always();
  for (std::size_t i = 0; i < number_of_.size(); ++i) out.left[number_of_[i]] = limits_[i].there;
  for (const auto& row : out.rows.rows) {
    const std::int64_t* own = summed_.empty() ? nullptr : own_load(row);
    for (std::size_t i = 0; own != nullptr && i < summed_.size(); ++i) out.left[summed_[i]] += own[summed_[i] - kAmounts];
  }
  if (asks_nodes_) out.without = info;
  if (!cluster_->has_nominations()) return out;
  for (const auto& other : cluster_->nominated(index)) {
    if (other->view().priority < pod_->view().priority || other->key == except) continue;
    if (!std::exchange(out.has_nominated, true)) out.alone = out.left;
    const auto amounts = preemption_amounts(other->request.total, 1);
    for (std::size_t i = 0; i < kAmounts; ++i) out.left[i] = saturating_add(out.left[i], amounts[i]);
    add_load(out.left, *other);
    out.nominated.push_back(other);
  }
  return out;
}

// Filters

PreemptorClass::Failure PreemptorClass::failure(Sheet& sheet) const {
  Failure out = failure(sheet, sheet.left, sheet.has_nominated);
  // The nominated pods may never come: what needs them must not be met by them alone.
  if (out.kind == Failure::Kind::kNone && sheet.has_nominated) out = failure(sheet, sheet.alone, false);
  return out;
}

PreemptorClass::Failure PreemptorClass::failure(Sheet& sheet, const Numbers& left, bool with_nominated) const {
  for (std::uint16_t at = 0; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
    if (step.kind != Step::Kind::kConditions) {
      if ((sheet.passed >> at & 1) != 0) continue;
      if (const Status said = asked(step, sheet, with_nominated); !said.is_success())
        return {said.code == Code::kUnschedulable ? Failure::Kind::kResolvable : Failure::Kind::kHopeless, at, 0, said};
      if (step.kind == Step::Kind::kObject) sheet.passed |= std::uint64_t{1} << at;
      continue;
    }
    std::uint32_t failed = 0;
    bool is_hopeless = false;
    for (std::size_t i = step.first; i < step.first + step.count; ++i) {
      const LoadLimit& limit = sheet.limits[i];
      if (limit.holds(left[number_of_[i]])) continue;
      failed |= 1U << limit.said;
      is_hopeless |= limit.is_hopeless;
      if (!step.says_all) break;
    }
    if (failed != 0) return {is_hopeless ? Failure::Kind::kHopeless : Failure::Kind::kResolvable, at, failed};
  }
  return {};
}

Status PreemptorClass::asked(const Step& step, const Sheet& sheet, bool with_nominated) const {
  const bool is_object = step.kind == Step::Kind::kObject;
  Status out;
  if (is_object || !with_nominated) {
    out = step.plugin->filter(state_, *pod_, is_object ? sheet.info : *sheet.without);
  } else {
    NodeInfo crowded = *sheet.without;
    for (const auto& other : sheet.nominated) crowded.add_pod(other);
    out = step.plugin->filter(state_, *pod_, crowded);
  }
  has_failed_ |= out.is_error();
  return out;
}

/// The same as failure() finds nothing, once filters that read the object alone have passed: what most time goes into.
bool PreemptorClass::fits(Sheet& sheet) const {
  for (std::size_t i = 0; i < number_of_.size(); ++i)
    if (!sheet.limits[i].holds(sheet.left[number_of_[i]]) || (sheet.has_nominated && !sheet.limits[i].holds(sheet.alone[number_of_[i]])))
      return false;
  return !asks_nodes_ || failure(sheet).kind == Failure::Kind::kNone;
}

std::uint16_t PreemptorClass::intern(const Failure& failure) const {
  const Step& step = steps_[failure.step];
  std::vector<std::string> said = failure.said.reasons;
  const std::uint64_t key = std::uint64_t{failure.step} << 32 | failure.conditions;
  if (step.kind == Step::Kind::kConditions) {
    const auto known = std::ranges::find(reason_ids_, key, &std::pair<std::uint64_t, std::uint16_t>::first);
    if (known != reason_ids_.end()) return known->second;
    for (std::size_t i = 0; i < step.words.size(); ++i)
      if ((failure.conditions >> i & 1) != 0) said.insert(said.end(), step.words[i].reasons.begin(), step.words[i].reasons.end());
  }
  const auto at = std::ranges::find(reasons_, said);
  const auto id = static_cast<std::uint16_t>(at - reasons_.begin());
  if (at == reasons_.end()) reasons_.push_back(std::move(said));
  // Texts that name nodes or pods are endless.
  has_failed_ |= reasons_.size() >= UINT16_MAX / 2;
  if (step.kind == Step::Kind::kConditions) reason_ids_.emplace_back(key, id);
  return id;
}

// Answers

bool PreemptorClass::is_resolvable(NodeIndex index, std::string_view except) const {
  const NodeInfo* node = cluster_->node(index);
  if (node == nullptr || node->node == nullptr) return era_ == Era::k120;
  if (only_ && std::ranges::find(*only_, index) == only_->end()) return false;
  Sheet sheet = sheet_of(index, true, except);
  return failure(sheet).kind != Failure::Kind::kHopeless;
}

bool PreemptorClass::miscounts(const std::vector<PodInfoPtr>& victims) const {
  return std::ranges::any_of(steps_, [&](const Step& step) {
    return step.load != nullptr && std::ranges::any_of(victims, [&](const PodInfoPtr& one) { return step.load->miscounts(*one); });
  });
}

PreemptionAnswer PreemptorClass::answer(NodeIndex index, std::vector<PodInfoPtr>* victims, std::string_view except) const {
  const NodeInfo* info = cluster_->node(index);
  if (index.value >= index_->slot_count() || info == nullptr || !index_->node(index.value).is_candidate) return {};
  Sheet sheet = sheet_of(index, true, except);
  return answer_on(sheet, victims);
}

/// The node's own, as if domains never objected.
PreemptionAnswer PreemptorClass::answer_in_open(NodeIndex index) const {
  Sheet sheet = sheet_of(index, false, {});
  return answer_on(sheet, nullptr);
}

PreemptionAnswer PreemptorClass::answer_on(Sheet& sheet, std::vector<PodInfoPtr>* victims) const {
  PreemptionAnswer out;
  out.kind = Kind::kNotHelpful;
  if (failure(sheet).kind != Failure::Kind::kResolvable) return out;
  const auto& rows = sheet.rows.rows;
  const auto lower = std::ranges::partition_point(rows, [&](const auto& row) { return row.priority >= pod_->view().priority; });
  if (lower == rows.end()) {
    out.kind = Kind::kNoVictims;
    return out;
  }
  const bool is_absurd = std::any_of(sheet.left.begin(), sheet.left.begin() + static_cast<std::ptrdiff_t>(numbers_),
                                     [](std::int64_t one) { return one == INT64_MAX; });
  for (auto row = lower; row != rows.end(); ++row) take(sheet, *row);
  if (is_absurd) count_anew(sheet, {rows.begin(), lower});
  if (const Failure left = failure(sheet); left.kind != Failure::Kind::kNone) {
    out.kind = Kind::kTooSmall;
    out.missing = intern(left);
    return out;
  }
  reprieve(sheet, {lower, rows.end()}, out, victims);
  // Whatever was put back fits, and all together do not: only in full can it be told what is wrong.
  has_failed_ |= out.count == 0;
  if (out.count == 0) return out;
  out.kind = options_.budgets_are_hard && out.violations > 0 ? Kind::kBudget : Kind::kCandidate;
  if (victims != nullptr && era_ != Era::k120)
    std::ranges::stable_sort(*victims, [](const auto& a, const auto& b) { return is_more_important(*a, *b); });
  return out;
}

/// Nothing can be taken off a sum that was cut off: it is added up again from those that stay.
void PreemptorClass::count_anew(Sheet& sheet, std::span<const PreemptionRow> staying) const {
  for (std::size_t i = 0; i < number_of_.size(); ++i) has_failed_ |= number_of_[i] >= kAmounts && sheet.limits[i].there == INT64_MAX;
  for (std::size_t i = 0; i < kAmounts; ++i) {
    std::int64_t alone = 0;
    for (const auto& row : staying) alone = saturating_add(alone, row.request[i]);
    sheet.left[i] = sheet.alone[i] = alone;
    for (const auto& other : sheet.nominated) sheet.left[i] = saturating_add(sheet.left[i], preemption_amounts(other->request.total, 1)[i]);
  }
}

/// Those whose eviction breaks a budget are the first to stay.
void PreemptorClass::reprieve(Sheet& sheet, std::span<const PreemptionRow> potential, PreemptionAnswer& out,
                              std::vector<PodInfoPtr>* victims) const {
  const std::vector<bool> violates = index_->violations(potential);
  const bool sorts = era_ != Era::k120;
  std::int64_t earliest_of = 0, earliest = 0;
  Numbers before, alone;
  for (const bool violating : {true, false}) {
    if (violates.empty() && violating) continue;
    for (std::size_t i = 0; i < potential.size(); ++i) {
      if (!violates.empty() && violates[i] != violating) continue;
      const PreemptionRow& row = potential[i];
      // Absurd amounts saturate: what was added cannot be taken back.
      std::copy_n(sheet.left.begin(), numbers_, before.begin());
      if (sheet.has_nominated) alone = sheet.alone;
      put(sheet, row);
      if (fits(sheet)) continue;
      std::copy_n(before.begin(), numbers_, sheet.left.begin());
      if (sheet.has_nominated) sheet.alone = alone;
      if (sheet.without) sheet.without->remove_pod(row.pod->key);
      const bool is_first = out.count++ == 0;
      out.violations += violating;
      out.sum += static_cast<__int128>(row.priority) + (std::int64_t{1} << 31);
      if (is_first || (sorts && row.priority > out.top)) out.top = row.priority;
      if (is_first || row.priority > earliest_of || (row.priority == earliest_of && row.start_time_ns < earliest)) {
        earliest_of = row.priority;
        earliest = row.start_time_ns;
      }
      if (victims != nullptr) victims->push_back(row.pod->shared_from_this());
    }
  }
  out.neg_start = -earliest;
}

}  // namespace berth::placement
