#include "placement/preemptor_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/node_match.h"
#include "placement/plugins/inter_pod_affinity.h"

namespace berth::placement {
namespace {

constexpr std::string_view kStatic[] = {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeLabel"};
constexpr std::string_view kIndifferent[] = {"VolumeRestrictions", "NodeVolumeLimits", "EBSLimits",           "GCEPDLimits",
                                             "AzureDiskLimits",    "CinderLimits",     "VolumeBinding",       "VolumeZone",
                                             "PodTopologySpread",  "DynamicResources", "NodeDeclaredFeatures"};
constexpr std::size_t kPortsBit = 8, kAntiBit = 9, kExistingBit = 10;

bool is_one_of(std::span<const std::string_view> names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

/// The same as PreemptorClass::failure finds nothing, for a class whom nothing but base amounts concerns: what most time goes into.
bool base_fits(const PreemptionAmounts& wanted, const PreemptionAmounts& used, const PreemptionAmounts& allocatable, Era era) {
  if (saturating_add(wanted[3], used[3]) > allocatable[3]) return false;
  if (wanted[0] == 0 && wanted[1] == 0 && wanted[2] == 0) return true;
  for (std::size_t i = 0; i < 3; ++i)
    if (fit_amount(wanted[i], used[i], allocatable[i], era).is_short) return false;
  return true;
}

bool is_well_formed(const model::PodView& view) {
  return std::ranges::all_of(view.required_anti_affinity, [](const auto& term) { return term.selector_error.empty(); });
}

}  // namespace

void PreemptorClass::Load::add(const Load& other) {
  for (std::size_t i = 0; i < base.size(); ++i) base[i] = saturating_add(base[i], other.base[i]);
  for (std::size_t i = 0; i < scalars.size(); ++i) scalars[i] = saturating_add(scalars[i], other.scalars[i]);
  ports += other.ports;
  anti += other.anti;
  existing += other.existing;
}

void PreemptorClass::Load::subtract(const Load& other) {
  for (std::size_t i = 0; i < base.size(); ++i) base[i] = saturating_sub(base[i], other.base[i]);
  for (std::size_t i = 0; i < scalars.size(); ++i) scalars[i] = saturating_sub(scalars[i], other.scalars[i]);
  ports -= other.ports;
  anti -= other.anti;
  existing -= other.existing;
}

PreemptorClass::PreemptorClass(FrameworkPtr framework, PodInfoPtr pod, Signature signature, const Cluster& cluster, PreemptionIndex& index,
                               const PreemptionOptions& options)
    : framework_(std::move(framework)),
      pod_(std::move(pod)),
      signature_(std::move(signature)),
      cluster_(&cluster),
      index_(&index),
      options_(options),
      state_(framework_->new_cycle(cluster)),
      era_(framework_->profile().era),
      wanted_(preemption_amounts(pod_->request.total, 1)),
      own_namespace_labels_(&cluster.namespace_labels(pod_->view().ns())) {}

std::shared_ptr<PreemptorClass> PreemptorClass::make(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature,
                                                     const Cluster& cluster, PreemptionIndex& index, const PreemptionOptions& options) {
  const Profile& profile = framework->profile();
  const auto& view = pod->view();
  if (!pod->required_affinity.empty() || signature.has_checks() || pod->spec_request != nullptr || !view.required_features.empty() ||
      pod->request.total.scalars.size() > kMaxScalars || !is_well_formed(view) || profile.always_check_all_filters)
    return nullptr;
  if (std::ranges::any_of(view.spread_constraints, &model::TopologySpreadConstraint::is_hard) ||
      std::ranges::any_of(profile.args.spread.default_constraints, &model::TopologySpreadConstraint::is_hard))
    return nullptr;
  auto out = std::shared_ptr<PreemptorClass>(new PreemptorClass(framework, pod, std::move(signature), cluster, index, options));
  return out->prepare() ? out : nullptr;
}

void PreemptorClass::bind(const Cluster& cluster, PreemptionIndex& index) {
  cluster_ = &cluster;
  index_ = &index;
  state_.bind(cluster);
  own_namespace_labels_ = &cluster.namespace_labels(pod_->view().ns());
}

bool PreemptorClass::prepare_checks() {
  const Profile& profile = framework_->profile();
  for (const auto& use : profile.filter) {
    if (use.name == "NodeResourcesFit") {
      checks_.push_back(Check::kResources);
    } else if (use.name == "NodePorts") {
      checks_.push_back(Check::kPorts);
    } else if (use.name == "InterPodAffinity") {
      checks_.push_back(Check::kAffinity);
      checks_affinity_ = profile.has(profile.pre_filter, use.name);
      if (!checks_affinity_) return false;
    } else if (is_one_of(kStatic, use.name)) {
      // The message counts a node's first rejection: then the static ones must come first.
      if (!checks_.empty() && era_ != Era::k120) return false;
    } else if (!is_one_of(kIndifferent, use.name)) {
      return false;
    }
  }
  return std::ranges::find(checks_, Check::kResources) != checks_.end() && profile.args.fit.ignored_resources.empty() &&
         profile.args.fit.ignored_resource_groups.empty();
}

bool PreemptorClass::prepare() {
  if (!prepare_checks()) return false;
  for (const Plugin* plugin : framework_->filters()) {
    if (!is_one_of(kStatic, plugin->name())) continue;
    if (std::ranges::find(framework_->pre_filters(), plugin) != framework_->pre_filters().end()) {
      const auto outcome = plugin->pre_filter(state_, *pod_);
      if (outcome.status.is_skip()) continue;
      if (!outcome.status.is_success()) return false;
      if (outcome.node_names) {
        if (only_) return false;
        only_.emplace();
        for (const auto& name : *outcome.node_names)
          if (const NodeInfo* node = cluster_->find_node(name); node != nullptr && node->node != nullptr) only_->push_back(node->index);
      }
    }
    static_filters_.push_back(plugin);
  }
  if (checks_affinity_) {
    index_->cluster_index().note_namespace_selectors(*pod_);
    own_anti_ = resolve_namespaces(pod_->required_anti_affinity, *cluster_);
    for (const auto& term : own_anti_) topologies_.push_back(index_->cluster_index().topology(term.topology_key));
  }
  return is_covered();
}

bool PreemptorClass::serves(const FrameworkPtr& framework, const Signature& signature) const {
  return framework_ == framework && !only_ && signature_.continues_as(signature, held_seen_);
}

void PreemptorClass::adopt(const PodInfoPtr& pod, const Signature& signature) {
  pod_ = pod;
  if (signature_.audience().size() != signature.audience().size()) signature_ = signature;
}

/// Takes note of the topologies of terms that pods brought since the last look and that keep the class away.
bool PreemptorClass::adopt_held_terms() {
  auto& index = index_->cluster_index();
  const model::Labels& own_namespace = *own_namespace_labels_;
  const auto& audience = signature_.audience();
  for (auto id = std::ranges::lower_bound(audience, held_seen_); id != audience.end(); ++id)
    topologies_.push_back(index.topology(index.held_term(*id).term.topology_key));
  held_seen_ = index.held_term_count();
  labels_matter_ = !own_anti_.empty() || !audience.empty();
  has_extras_ = labels_matter_ || !pod_->request.total.scalars.empty() || !pod_->host_ports.empty();
  // The plugin's PreFilter skips where no running pod minds; then nominated pods that do mind are not counted either.
  return std::ranges::none_of(index.nominated_kinds(), [&](const auto& kind) {
    return std::ranges::any_of(kind.example->required_anti_affinity,
                               [&](const auto& term) { return term.matches(pod_->view(), own_namespace); });
  });
}

bool PreemptorClass::is_covered() {
  own_namespace_labels_ = &cluster_->namespace_labels(pod_->view().ns());
  has_extras_ = !pod_->request.total.scalars.empty() || !pod_->host_ports.empty();
  if (!checks_affinity_) return true;
  if (!adopt_held_terms()) return false;
  return std::ranges::all_of(topologies_,
                             [&](std::size_t topology) { return index_->cluster_index().topology_column(topology).is_local(); });
}

PreemptorClass::Load PreemptorClass::load_of(const NodeInfo& node, const PodInfo& pod, const PreemptionAmounts& amounts) const {
  Load out;
  out.base = amounts;
  if (!has_extras_) return out;
  const auto& scalars = pod_->request.total.scalars;
  if (!pod.request.total.scalars.empty())
    for (std::size_t i = 0; i < scalars.size(); ++i) out.scalars[i] = pod.request.total.scalar(scalars[i].first);
  if (!pod_->host_ports.empty() && !pod.host_ports.empty()) out.ports = ports_conflict(pod_->host_ports, pod.host_ports) ? 1 : 0;
  if (!labels_matter_) return out;
  const auto keeps_apart = [&](const AffinityTerm& term, const PodInfo& who, const model::Labels& labels_of_namespace) {
    return term.matches(who.view(), labels_of_namespace) && node.label(term.topology_key) != nullptr;
  };
  if (!own_anti_.empty()) {
    const auto& labels_of_namespace = cluster_->namespace_labels(pod.view().ns());
    out.anti = std::ranges::any_of(own_anti_, [&](const auto& term) { return keeps_apart(term, pod, labels_of_namespace); }) ? 1 : 0;
  }
  const auto minds = [&](const AffinityTerm& term) { return keeps_apart(term, *pod_, *own_namespace_labels_); };
  out.existing = std::ranges::any_of(pod.required_anti_affinity, minds) ? 1 : 0;
  return out;
}

/// Kinds of pods are asked once, not pods; their number is what makes a first look at a large cluster long.
bool PreemptorClass::is_foe(const PreemptionRow& row) const {
  if (!row.has_anti_affinity && own_anti_.empty()) return false;
  if (row.kind >= foes_.size()) foes_.resize(index_->kind_count(), kUnknown);
  Foe& known = foes_[row.kind];
  if (known != kUnknown) return known == kFoe;
  const PodInfo& pod = *row.pod;
  const auto minds = [&](const AffinityTerm& term) { return term.matches(pod_->view(), *own_namespace_labels_); };
  bool is_one = std::ranges::any_of(pod.required_anti_affinity, minds);
  if (!is_one && !own_anti_.empty()) {
    const auto& labels = cluster_->namespace_labels(pod.view().ns());
    is_one = std::ranges::any_of(own_anti_, [&](const AffinityTerm& term) { return term.matches(pod.view(), labels); });
  }
  known = is_one ? kFoe : kFriend;
  return is_one;
}

PreemptorClass::Load PreemptorClass::load_of(const NodeInfo& node, const PreemptionRow& row) const {
  const bool takes_more = (row.has_scalars && !pod_->request.total.scalars.empty()) || (row.has_ports && !pod_->host_ports.empty());
  if (takes_more || (labels_matter_ && is_foe(row))) return load_of(node, *row.pod, row.request);
  Load out;
  out.base = row.request;
  return out;
}

void PreemptorClass::put(Load& load, const NodeInfo& node, const PreemptionRow& row) const {
  if (has_extras_) return load.add(load_of(node, row));
  for (std::size_t i = 0; i < row.request.size(); ++i) load.base[i] = saturating_add(load.base[i], row.request[i]);
}

void PreemptorClass::take(Load& load, const NodeInfo& node, const PreemptionRow& row) const {
  if (has_extras_) return load.subtract(load_of(node, row));
  for (std::size_t i = 0; i < row.request.size(); ++i) load.base[i] = saturating_sub(load.base[i], row.request[i]);
}

/// All pods of the node, and those nominated to it that the class must make room for.
PreemptorClass::Load PreemptorClass::load_of(const NodeInfo& node, const PreemptionNode& rows, std::string_view except) const {
  Load out;
  if (has_extras_)
    for (const auto& row : rows.rows) out.add(load_of(node, row));
  out.base = rows.used;
  for (const auto& nominated : cluster_->nominated(node.index))
    if (nominated->view().priority >= pod_->view().priority && nominated->key != except)
      out.add(load_of(node, *nominated, preemption_amounts(nominated->request.total, 1)));
  return out;
}

PreemptorClass::Failure PreemptorClass::lacks_resources(const NodeInfo& node, const PreemptionNode& rows, const Load& load) const {
  const auto& scalars = pod_->request.total.scalars;
  const bool asks = wanted_[0] != 0 || wanted_[1] != 0 || wanted_[2] != 0 || !scalars.empty();
  Failure out;
  const auto check = [&](std::size_t bit, std::int64_t wanted, std::int64_t used, std::int64_t allocatable) {
    const AmountVerdict verdict = fit_amount(wanted, used, allocatable, era_);
    if (!verdict.is_short) return;
    out.reasons |= static_cast<std::uint16_t>(1U << bit);
    out.is_unresolvable |= bit != 3 && verdict.exceeds_node && era_ != Era::k120;
  };
  check(3, wanted_[3], load.base[3], rows.allocatable[3]);
  if (!asks) return out;
  for (std::size_t i = 0; i < 3; ++i) check(i, wanted_[i], load.base[i], rows.allocatable[i]);
  for (std::size_t i = 0; i < scalars.size(); ++i)
    check(4 + i, scalars[i].second, load.scalars[i], node.allocatable.scalar(scalars[i].first));
  return out;
}

PreemptorClass::Failure PreemptorClass::failure(const NodeInfo& node, const PreemptionNode& rows, const Load& load) const {
  for (const Check check : checks_) {
    Failure out;
    if (check == Check::kPorts && load.ports > 0) out.reasons = 1U << kPortsBit;
    if (check == Check::kAffinity && (load.anti > 0 || load.existing > 0))
      out.reasons = load.anti > 0 ? 1U << kAntiBit : 1U << kExistingBit;
    if (check == Check::kResources) out = lacks_resources(node, rows, load);
    if (out.reasons != 0) return out;
  }
  return {};
}

bool PreemptorClass::static_filters_pass(const NodeInfo& node) const {
  return std::ranges::all_of(static_filters_, [&](const Plugin* plugin) { return plugin->filter(state_, *pod_, node).is_success(); });
}

bool PreemptorClass::is_resolvable(NodeIndex index, std::string_view except) const {
  const NodeInfo* node = cluster_->node(index);
  if (node == nullptr || node->node == nullptr) return era_ == Era::k120;
  if (only_ && std::ranges::find(*only_, index) == only_->end()) return false;
  const PreemptionNode& rows = index_->node(index.value);
  const Failure now = failure(*node, rows, load_of(*node, rows, except));
  // 1.20 may ask for resources before it looks at taints and labels.
  if (era_ == Era::k120 && checks_.front() == Check::kResources && now.reasons != 0 && (now.reasons >> kPortsBit) == 0) return true;
  return static_filters_pass(*node) && !now.is_unresolvable;
}

PreemptionAnswer PreemptorClass::answer(NodeIndex index, std::vector<PodInfoPtr>* victims, std::string_view except) const {
  PreemptionAnswer out;
  if (index.value >= index_->slot_count()) return out;
  const PreemptionNode& node = index_->node(index.value);
  const NodeInfo* info = cluster_->node(index);
  if (!node.is_candidate || info == nullptr) return out;
  out.kind = PreemptionAnswer::Kind::kNotHelpful;
  Load used = load_of(*info, node, except);
  const Failure now = failure(*info, node, used);
  if (now.reasons == 0 || now.is_unresolvable || !static_filters_pass(*info)) return out;

  const auto lower = std::ranges::partition_point(node.rows, [&](const auto& row) { return row.priority >= pod_->view().priority; });
  if (lower == node.rows.end()) {
    out.kind = PreemptionAnswer::Kind::kNoVictims;
    return out;
  }
  for (auto row = lower; row != node.rows.end(); ++row) take(used, *info, *row);
  if (const Failure left = failure(*info, node, used); left.reasons != 0) {
    out.kind = PreemptionAnswer::Kind::kTooSmall;
    out.missing = left.reasons;
    return out;
  }
  const std::span<const PreemptionRow> potential(lower, node.rows.end());
  const std::vector<bool> violates = index_->violations(potential);
  const bool sorts = era_ != Era::k120;
  bool is_first = true;
  std::int64_t earliest_of = 0, earliest = 0;
  // Those whose eviction breaks a budget are the first to stay.
  for (const bool violating : {true, false}) {
    if (violates.empty() && violating) continue;
    for (std::size_t i = 0; i < potential.size(); ++i) {
      if (!violates.empty() && violates[i] != violating) continue;
      const PreemptionRow& row = potential[i];
      const Load before = used;  // Absurd amounts saturate: what was added cannot be taken back.
      put(used, *info, row);
      if (has_extras_ ? failure(*info, node, used).reasons == 0 : base_fits(wanted_, used.base, node.allocatable, era_)) continue;
      used = before;
      out.violations += violating;
      ++out.count;
      out.sum += static_cast<__int128>(row.priority) + (std::int64_t{1} << 31);
      if (is_first || (sorts && row.priority > out.top)) out.top = row.priority;
      if (is_first || row.priority > earliest_of || (row.priority == earliest_of && row.start_time_ns < earliest)) {
        earliest_of = row.priority;
        earliest = row.start_time_ns;
      }
      is_first = false;
      if (victims != nullptr) victims->push_back(row.pod->shared_from_this());
    }
  }
  if (out.count == 0) return out;
  out.neg_start = -earliest;
  out.kind = options_.budgets_are_hard && out.violations > 0 ? PreemptionAnswer::Kind::kBudget : PreemptionAnswer::Kind::kCandidate;
  if (victims != nullptr && sorts)
    std::ranges::stable_sort(*victims, [](const auto& a, const auto& b) { return is_more_important(*a, *b); });
  return out;
}

void PreemptorClass::catch_up() {
  const std::uint64_t end = index_->touched_end();
  if (answers_.empty() || seen_ < index_->touched_begin() || end - seen_ > index_->slot_count()) {
    answers_.renew(index_->slot_count());
    blocks_.assign(answers_.size() / kBlock + 1, {});
    tally_ = {};
    tally_.add({}, static_cast<std::int64_t>(answers_.size()));
    for (std::uint32_t i = 0; i < answers_.size(); ++i) set_answer(i);
    seen_ = end;
    return;
  }
  if (answers_.size() < index_->slot_count()) {
    tally_.add({}, static_cast<std::int64_t>(index_->slot_count() - answers_.size()));
    answers_.resize(index_->slot_count());
    blocks_.resize(answers_.size() / kBlock + 1);
  }
  for (; seen_ < end; ++seen_) {
    // A node that changed several times in a row is asked once.
    const std::uint32_t node = index_->touched(seen_);
    if (seen_ + 1 == end || index_->touched(seen_ + 1) != node) set_answer(node);
  }
}

void PreemptorClass::set_answer(std::uint32_t node) {
  PreemptionAnswer& known = answers_.edit(node);
  tally_.add(known, -1);
  known = answer(NodeIndex{node}, nullptr);
  tally_.add(known, 1);
  blocks_[node / kBlock].is_known = false;
}

const PreemptorClass::Block& PreemptorClass::block(std::size_t at) {
  Block& out = blocks_[at];
  if (out.is_known) return out;
  out = {{}, true};
  for (std::size_t i = at * kBlock; i < std::min(answers_.size(), (at + 1) * kBlock); ++i) {
    const PreemptionAnswer& one = answers_[i];
    if (one.kind != PreemptionAnswer::Kind::kCandidate) continue;
    if (out.best.kind != PreemptionAnswer::Kind::kCandidate || one.rank() < out.best.rank()) out.best = one;
  }
  return out;
}

std::optional<PreemptionAnswer> PreemptorClass::best(const Exception& own, std::size_t most, std::vector<NodeIndex>& nodes) {
  using Kind = PreemptionAnswer::Kind;
  nodes.clear();
  std::optional<PreemptionAnswer> out;
  const auto consider = [&](const PreemptionAnswer& one) {
    if (one.kind == Kind::kCandidate && (!out || one.rank() < out->rank())) out = one;
  };
  const auto for_nodes = [&](std::size_t at, auto&& visit) {
    for (std::size_t i = at * kBlock; i < std::min(answers_.size(), (at + 1) * kBlock); ++i) visit(static_cast<std::uint32_t>(i));
  };
  const std::size_t special = own.node.is_valid() ? own.node.value / kBlock : SIZE_MAX;
  for (std::size_t at = 0; at < blocks_.size(); ++at) {
    if (at != special)
      consider(block(at).best);
    else
      for_nodes(at, [&](std::uint32_t node) { consider(answer_of(node, own)); });
  }
  if (!out) return out;
  for (std::size_t at = 0; at < blocks_.size() && nodes.size() < most; ++at) {
    const PreemptionAnswer& there = blocks_[at].best;
    if (at != special && (there.kind != Kind::kCandidate || there.rank() != out->rank())) continue;
    for_nodes(at, [&](std::uint32_t node) {
      const PreemptionAnswer& one = answer_of(node, own);
      if (nodes.size() < most && one.kind == Kind::kCandidate && one.rank() == out->rank()) nodes.push_back(NodeIndex{node});
    });
  }
  return out;
}

PreemptionTally PreemptorClass::tally(const Exception& own) const {
  PreemptionTally out = tally_;
  if (!own.node.is_valid() || own.node.value >= answers_.size()) return out;
  out.add(answers_[own.node.value], -1);
  out.add(own.answer, 1);
  return out;
}

std::string PreemptorClass::reason(std::size_t bit) const {
  constexpr std::string_view kNative[] = {"Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage", "Too many pods"};
  if (bit < 4) return std::string(kNative[bit]);
  if (bit == kPortsBit) return "node(s) didn't have free ports for the requested pod ports";
  if (bit == kAntiBit) return std::string(kReasonAntiAffinityRules);
  if (bit == kExistingBit) return std::string(kReasonExistingAntiAffinity);
  return fmt::format("Insufficient {}", pod_->request.total.scalars[bit - 4].first);
}

}  // namespace berth::placement
