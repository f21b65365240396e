#include "placement/preemptor.h"

#include <algorithm>
#include <map>

#include "placement/columns/node_checks.h"
#include "placement/preemption_words.h"
#include "placement/preemptor_class.h"

namespace berth::placement {
namespace {

constexpr std::size_t kMaxClasses = 64, kMaxBytes = std::size_t{64} << 20;
/// Where thousands of nodes are equally good, their names are not worth sorting.
constexpr std::size_t kMostTied = 256;
using Kind = PreemptionAnswer::Kind;

/// Why evicting helps nowhere.
std::map<std::string, std::size_t> reasons_of(const PreemptorClass& one, const PreemptionTally& tally) {
  std::map<std::string, std::size_t> out;
  const auto put = [&](std::string_view reason, std::int64_t count) {
    if (count != 0) out[std::string(reason)] += static_cast<std::size_t>(count);
  };
  const auto count_of = [&](Kind kind) { return tally.kinds[static_cast<std::size_t>(kind)]; };
  put(words::kNotHelpful, count_of(Kind::kNotHelpful));
  put(words::kNoVictims, count_of(Kind::kNoVictims));
  put(words::kHardBudget, count_of(Kind::kBudget));
  for (std::size_t at = 0; at < tally.missing.size(); ++at)
    for (std::size_t i = 0; tally.missing[at] != 0 && i < one.reasons(at).size(); ++i) put(one.reasons(at)[i], tally.missing[at]);
  return out;
}

}  // namespace

struct Preemptor::Impl {
  const Cluster& cluster;
  PreemptionOptions options;
  std::unique_ptr<PreemptionIndex> index;
  std::uint64_t epoch = 0;
  std::vector<std::shared_ptr<PreemptorClass>> classes;
  std::shared_ptr<PreemptorClass> single;  ///< Of a pod that names its nodes: for one question.
  std::uint64_t uses = 0;
  bool was_fast = false;
  // Of the question at hand.
  bool has_checks = false;
  std::optional<CycleState> check_state;  ///< After PreFilter of those who check.
  PreemptorClass::Exceptions own;
  std::vector<Candidate> tried;  ///< Nodes that were tried in full.

  Impl(const Cluster& c, PreemptionOptions o) : cluster(c), options(o) {}
  Impl(const Impl& from, const Cluster& fork)
      : cluster(fork),
        options(from.options),
        index(from.index == nullptr ? nullptr : std::make_unique<PreemptionIndex>(*from.index, fork)),
        epoch(from.epoch),
        classes(from.classes),
        uses(from.uses) {}

  void sync();
  PreemptorClass* class_for(const FrameworkPtr& framework, const PodInfoPtr& pod);
  PreemptorClass* make_class(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature);
  [[nodiscard]] bool waits_for_victims(const PreemptorClass& one, const PodInfo& pod) const;
  std::optional<PreemptionAnswer> best_of_named(const PreemptorClass& one, const PodInfo& pod, PreemptionTally& tally,
                                                std::vector<NodeIndex>& tied) const;
  bool prepare_checks(const PreemptorClass& one, const PodInfo& pod);
  bool ask_checks(const PreemptorClass& one, const PodInfo& pod);
  std::optional<PreemptionAnswer> best_of_checked(PreemptorClass& one, const PodInfo& pod, std::vector<NodeIndex>& tied);
  void try_in_full(const PreemptorClass& one, const PodInfo& pod, const NodeInfo& node, std::optional<CycleState>& state);
  std::optional<Status> fast(PreemptorClass& one, const PodInfo& pod, PostFilterResult& out);
};

void Preemptor::Impl::sync() {
  index->sync();
  if (epoch == index->epoch()) return;
  epoch = index->epoch();
  classes.clear();
}

PreemptorClass* Preemptor::Impl::class_for(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  if (index == nullptr) index = std::make_unique<PreemptionIndex>(cluster);
  sync();
  ++uses;
  Signature signature = framework->sign_filters(*pod, &index->cluster_index());
  has_checks = signature.has_checks();
  if (has_checks) signature = signature.without_checks();
  const auto known = std::ranges::find_if(classes, [&](const auto& one) { return one->serves(framework, signature); });
  if (known == classes.end()) return make_class(framework, pod, std::move(signature));
  PreemptorClass& mine = unshare(*known);
  mine.bind(cluster, *index);
  mine.last_use = uses;
  if (mine.adopt(pod, signature) && !mine.has_failed()) return mine.is_covered() ? &mine : nullptr;
  classes.erase(known);
  return make_class(framework, pod, std::move(signature));
}

PreemptorClass* Preemptor::Impl::make_class(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature) {
  auto made = PreemptorClass::make(framework, pod, std::move(signature), cluster, *index, options);
  if (made == nullptr) return nullptr;
  if (made->only_nodes()) {
    single = std::move(made);
    return single.get();
  }
  made->last_use = uses;
  const auto bytes = [&] {
    std::size_t out = 0;
    for (const auto& one : classes) out += one->memory_bytes();
    return out;
  };
  while (classes.size() >= kMaxClasses || (!classes.empty() && bytes() > kMaxBytes))
    classes.erase(std::ranges::min_element(classes, {}, [](const auto& one) { return one->last_use; }));
  classes.push_back(std::move(made));
  return classes.back().get();
}

/// Room is being made on the pod's nominated node already (PodEligibleToPreemptOthers).
bool Preemptor::Impl::waits_for_victims(const PreemptorClass& one, const PodInfo& pod) const {
  const NodeInfo* node = pod.view().nominated_node_name.empty() ? nullptr : cluster.find_node(pod.view().nominated_node_name);
  if (node == nullptr) return false;
  const bool is_old = one.framework().profile().era == Era::k120;
  const bool leaving = std::ranges::any_of(node->pods, [&](const auto& other) {
    return other->view().priority < pod.view().priority && other->view().meta.is_deleting &&
           (is_old || other->view().terminating_by_preemption);
  });
  return leaving && one.is_resolvable(node->index, pod.key);
}

std::optional<PreemptionAnswer> Preemptor::Impl::best_of_named(const PreemptorClass& one, const PodInfo& pod, PreemptionTally& tally,
                                                               std::vector<NodeIndex>& tied) const {
  std::optional<PreemptionAnswer> best;
  std::vector<PreemptionAnswer> named;
  for (const NodeIndex node : *one.only_nodes()) {
    const PreemptionAnswer& answer = named.emplace_back(one.answer(node, nullptr, pod.key));
    tally.add(answer, 1);
    if (answer.kind == Kind::kCandidate && (!best || answer.rank() < best->rank())) best = answer;
  }
  for (std::size_t i = 0; i < named.size(); ++i)
    if (best && named[i].kind == Kind::kCandidate && named[i].rank() == best->rank()) tied.push_back((*one.only_nodes())[i]);
  tally.add({.kind = Kind::kNotHelpful}, static_cast<std::int64_t>(cluster.node_count() - named.size()));
  return best;
}

/// PreFilter of the plugins of volumes and claims. False: only every node in full will do.
bool Preemptor::Impl::prepare_checks(const PreemptorClass& one, const PodInfo& pod) {
  const Framework& framework = one.framework();
  if (one.only_nodes() || !pod.view().nominated_node_name.empty() || cluster.is_nominated(pod.key)) return false;
  CycleState& state = check_state.emplace(framework.new_cycle(cluster));
  for (const Plugin* plugin : framework.pre_filters()) {
    if (plugin->column_kind() != ColumnKind::kVolumes) continue;
    const PreFilterOutcome outcome = plugin->pre_filter(state, pod);
    if (outcome.status.is_skip())
      state.skip_filter(plugin->slot());
    else if (!outcome.status.is_success() || outcome.node_names)
      return false;
  }
  return true;
}

/// What volumes and claims say of nodes. Where they let the pod in beside everybody, they do beside fewer; where evicting may cure what
/// they say, the node is tried in full. False: only every node in full will do.
bool Preemptor::Impl::ask_checks(const PreemptorClass& one, const PodInfo& pod) {
  NodeChecks checks(one.framework(), *check_state, pod, index->cluster_index(), true);
  if (checks.empty()) return true;
  checks.foretell();
  std::optional<CycleState> full;
  for (std::uint32_t at = 0; at < cluster.slot_count(); ++at) {
    const NodeInfo* node = cluster.node(NodeIndex{at});
    if (node == nullptr || node->node == nullptr || checks.accepts(at)) continue;
    if (checks.has_failed()) return false;
    if (checks.never_accepts(at))
      own.emplace_back(NodeIndex{at}, PreemptionAnswer{.kind = Kind::kNotHelpful});
    else
      try_in_full(one, pod, *node, full);
  }
  return true;
}

/// The best node, where checks are asked about the best alone: none can fail, and none is cured by evicting. Nullopt: all have to be asked.
std::optional<PreemptionAnswer> Preemptor::Impl::best_of_checked(PreemptorClass& one, const PodInfo& pod, std::vector<NodeIndex>& tied) {
  constexpr int kRounds = 8;  // So many refuse only where most do.
  if (one.only_nodes() || cluster.has_nominations()) return std::nullopt;
  NodeChecks checks(one.framework(), *check_state, pod, index->cluster_index(), true);
  if (!checks.refuse_for_good() || checks.may_fail()) return std::nullopt;
  for (int round = 0; round < kRounds; ++round) {
    auto best = one.best(own, kMostTied, tied);
    if (!best) return std::nullopt;
    const auto accepted = std::ranges::stable_partition(tied, [&](NodeIndex node) { return checks.accepts(node.value); });
    for (const NodeIndex node : accepted) own.emplace_back(node, PreemptionAnswer{.kind = Kind::kNotHelpful});
    std::ranges::sort(own, {}, &PreemptorClass::Exceptions::value_type::first);
    tied.erase(accepted.begin(), accepted.end());
    if (!tied.empty()) return best;
  }
  return std::nullopt;
}

void Preemptor::Impl::try_in_full(const PreemptorClass& one, const PodInfo& pod, const NodeInfo& node, std::optional<CycleState>& state) {
  const Framework& framework = one.framework();
  if (!state) {
    state.emplace(framework.new_cycle(cluster));
    (void)framework.run_pre_filter(*state, pod);
  }
  PreemptionAnswer answer{.kind = Kind::kNotHelpful};
  Status why;
  if (framework.run_filter_with_nominated(*state, pod, node).code == Code::kUnschedulable) {
    if (auto found = select_victims(framework, *state, pod, node, why)) {
      const auto [violations, top, sum, count, neg_start] = rank_of(*found);
      answer = {options.budgets_are_hard && violations > 0 ? Kind::kBudget : Kind::kCandidate,
                0,
                static_cast<std::uint32_t>(violations),
                static_cast<std::uint32_t>(count),
                top,
                neg_start,
                sum};
      tried.push_back(std::move(*found));
    }
  }
  own.emplace_back(node.index, answer);
}

/// Nullopt: only every node in full will do.
std::optional<Status> Preemptor::Impl::fast(PreemptorClass& one, const PodInfo& pod, PostFilterResult& out) {
  if (pod.view().preemption_never) return Status::unschedulable(std::string(words::kNever));
  own.clear();
  tried.clear();
  if (!one.only_nodes()) one.catch_up();
  one.begin_decision();
  std::optional<PreemptionAnswer> best = has_checks ? best_of_checked(one, pod, out.tied) : std::nullopt;
  if (has_checks && !best) {
    own.clear();
    out.tied.clear();
    if (!ask_checks(one, pod)) return std::nullopt;
  }
  out.waits_for_victims = waits_for_victims(one, pod);
  if (out.waits_for_victims) return Status::unschedulable(std::string(words::kTerminating));
  PreemptionTally tally;
  if (best) {
    // Known.
  } else if (one.only_nodes()) {
    best = best_of_named(one, pod, tally, out.tied);
  } else {
    // The pod's own nomination stands in the way of all others of its class, but not in its own.
    const NodeIndex mine = cluster.has_nominations() ? cluster.nominated_node(pod.key) : NodeIndex{};
    if (mine.is_valid()) own.emplace_back(mine, one.answer(mine, nullptr, pod.key));
    best = one.best(own, kMostTied, out.tied);
    if (!best && has_checks) return std::nullopt;
    if (!best) tally = one.tally(own);
  }
  if (one.has_failed()) return std::nullopt;
  if (!best) return Status::unschedulable(words::fit_error(cluster.node_count(), reasons_of(one, tally)));
  std::ranges::sort(out.tied, {}, [&](NodeIndex node) -> const std::string& { return cluster.node(node)->name; });
  const auto in_full = std::ranges::find(tried, out.tied[0], &Candidate::node);
  Candidate candidate = in_full != tried.end() ? *in_full : Candidate{out.tied[0], {}, best->violations};
  if (in_full == tried.end()) (void)one.answer(out.tied[0], &candidate.victims, pod.key);
  // What AddPod and RemovePod told a plugin of pods, and what it counts by itself, may be two things.
  const bool is_certain = in_full == tried.end() ? !one.miscounts(candidate.victims) : !options.confirm;
  if (!is_certain && (!options.confirm || !helps(one.shared_framework(), cluster, pod, candidate))) return std::nullopt;
  out.candidates.push_back(std::move(candidate));
  out.best = 0;
  return Status::success();
}

Preemptor::Preemptor(const Cluster& cluster, PreemptionOptions options) : impl_(std::make_unique<Impl>(cluster, options)) {}
Preemptor::Preemptor(Preemptor& from, const Cluster& fork) {
  if (from.impl_->index != nullptr) from.impl_->sync();
  impl_ = std::make_unique<Impl>(*from.impl_, fork);
}
Preemptor::~Preemptor() = default;
bool Preemptor::was_fast() const { return impl_->was_fast; }

std::size_t Preemptor::memory_bytes() const {
  std::size_t out = impl_->index == nullptr ? 0 : impl_->index->memory_bytes();
  for (const auto& one : impl_->classes) out += one->memory_bytes();
  return out;
}

PostFilterResult Preemptor::find(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  impl_->was_fast = false;
  PreemptorClass* const one = framework->post_filters().empty() ? nullptr : impl_->class_for(framework, pod);
  if (one != nullptr && (!impl_->has_checks || impl_->prepare_checks(*one, *pod))) {
    PostFilterCall call(framework, impl_->cluster, pod, impl_->options, nullptr);
    bool will_do = true;
    call.quick = [&](PostFilterResult& out) {
      const std::optional<Status> said = impl_->fast(*one, *pod, out);
      will_do = said.has_value();
      return said.value_or(Status::unschedulable(""));
    };
    PostFilterResult out = run_post_filter(call);
    impl_->was_fast = will_do;
    if (will_do) return out;
  }
  return run_post_filter(framework, impl_->cluster, pod, evaluate(*framework, impl_->cluster, *pod, false), impl_->options);
}

}  // namespace berth::placement
