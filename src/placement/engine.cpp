#include "placement/engine.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <random>

#include "base/check.h"
#include "placement/columns/cluster_index.h"
#include "placement/columns/node_checks.h"
#include "placement/columns/pod_class.h"
#include "placement/name_order.h"
#include "placement/plugins/pod_claims.h"

namespace berth::placement {
namespace {

/// What a class takes, about.
constexpr std::size_t kBytesPerNodeAndClass = 48;

/// PreFilter will leave a few named nodes: cheaper to ask just those than to build columns for a class of one pod.
bool names_its_nodes(const model::PodView& pod) {
  const auto& required = pod.node_affinity.required;
  if (!required || required->terms.empty() || required->terms.size() > 16) return false;
  return std::ranges::all_of(required->terms, [](const auto& term) {
    return std::ranges::any_of(term.fields, [](const auto& field) { return field.op == model::Requirement::Op::kIn; });
  });
}

}  // namespace

struct Engine::Impl {
  const Cluster& cluster;
  EngineOptions options;
  std::mt19937_64 random;
  std::vector<std::mt19937_64> random_before;  ///< Of each attempt.
  std::unique_ptr<ClusterIndex> index;
  StaticColumns static_columns;
  struct ClassEntry {
    std::shared_ptr<PodClass> columns;
    std::uint64_t last_use = 0;
    std::size_t bytes = 0;  ///< When it was made, or looked at last.
  };
  ShardedMap<std::uint64_t, std::vector<ClassEntry>, NumberHash> classes;  ///< By the hash of the signature's part for columns.
  std::size_t class_count = 0, class_bytes = 0;
  std::uint64_t index_epoch = 0;
  std::uint64_t tick = 0, last_sweep = 0;
  boost::unordered_flat_set<std::uint64_t> seen;  ///< Hashes of signatures that were asked for.
  ScanTable scan_table;                           ///< A fork begins without.
  std::vector<std::int32_t> totals;               ///< Working space.
  std::vector<NodeIndex> equals;                  ///< Likewise.
  NameOrder name_order;

  Impl(const Cluster& over, EngineOptions with) : cluster(over), options(with), random(with.seed) {}
  Impl(const Impl& from, const Cluster& fork)
      : cluster(fork),
        options(from.options),
        random(from.random),
        index(std::make_unique<ClusterIndex>(*from.index, fork)),
        static_columns(from.static_columns),
        classes(from.classes),
        class_count(from.class_count),
        class_bytes(from.class_bytes),
        index_epoch(from.index_epoch),
        tick(from.tick),
        name_order(from.name_order) {}

  /// `tied` gets every node that the pod could go to, unless null.
  Decision schedule(const FrameworkPtr& framework, const PodInfoPtr& pod, std::vector<NodeIndex>* tied);
  Status fits(const FrameworkPtr& framework, const PodInfoPtr& pod, NodeIndex node);
  std::optional<Status> fits_by_columns(const FrameworkPtr& framework, const PodInfoPtr& pod, const NodeInfo& node);
  void prepare(const FrameworkPtr& framework, const PodInfoPtr& pod);
  std::optional<Decision> try_nominated(const Framework& framework, const PodInfo& pod);
  std::optional<Decision> decide_by_columns(const FrameworkPtr& framework, const PodInfoPtr& pod, std::vector<NodeIndex>* tied);
  Decision decide_plainly(const Framework& framework, const PodInfo& pod, std::vector<NodeIndex>* tied);
  void sync();
  PodClass* known_class(const Framework& framework, const PodInfoPtr& pod, const Signature& signature);
  PodClass* class_of(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature, std::vector<NodeIndex>* tied,
                     std::optional<PodClass::Choice>& scanned);
  PodClass* keep(std::shared_ptr<PodClass> made);
  bool is_first(std::uint64_t hash);
  void make_room();
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> classes_by_use() const;
  void drop(std::uint64_t last_use, std::uint64_t hash);
  void weigh(ClassEntry& entry);
  void forget_classes();
  Decision as_decision(const PodClass::Choice& choice) const;
  std::optional<CycleState> prepare_checks(const Framework& framework, const PodInfo& pod);
  PodClass::Choice choose_by_name(PodClass& columns, std::vector<NodeIndex>* tied);
  std::optional<PodClass::Choice> choose_with_checks(const Framework& framework, const PodInfo& pod, PodClass& columns,
                                                     std::vector<NodeIndex>* tied);

  PodClass::Options choice_options(std::vector<NodeIndex>* tied) {
    PodClass::Options out;
    out.tied = tied;
    out.first_by_name = options.tie_break == EngineOptions::TieBreak::kFirstByName;
    out.random = &random;
    return out;
  }
  /// Of `count` equals, the one to take.
  std::size_t pick(std::size_t count) {
    if (count <= 1 || options.tie_break == EngineOptions::TieBreak::kFirstByName) return 0;
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  }
};

Decision Engine::Impl::schedule(const FrameworkPtr& framework, const PodInfoPtr& pod, std::vector<NodeIndex>* tied) {
  if (options.plain || cluster.node_count() == 0) return decide_plainly(*framework, *pod, tied);
  if (framework->profile().era != Era::k120 && !pod->view().nominated_node_name.empty()) {
    if (auto decision = try_nominated(*framework, *pod)) {
      if (tied != nullptr) *tied = {decision->node};
      return std::move(*decision);
    }
  }
  if (auto decision = decide_by_columns(framework, pod, tied)) return std::move(*decision);
  return decide_plainly(*framework, *pod, tied);
}

Status Engine::Impl::fits(const FrameworkPtr& framework, const PodInfoPtr& pod, NodeIndex index_of_node) {
  const NodeInfo* node = cluster.node(index_of_node);
  if (node == nullptr || node->node == nullptr) return Status::unresolvable("node is gone");
  if (auto known = fits_by_columns(framework, pod, *node)) return std::move(*known);
  CycleState state = framework->new_cycle(cluster);
  std::vector<std::string_view> narrowed_by;
  PreFilterOutcome outcome = framework->run_pre_filter(state, *pod, &narrowed_by);
  if (!outcome.status.is_success() && !outcome.status.is_skip()) return std::move(outcome.status);
  if (outcome.node_names && !outcome.node_names->contains(node->name)) return left_out_by(narrowed_by);
  return framework->run_filter_with_nominated(state, *pod, *node);
}

/// Nullopt: the plain form must say, or knows better why not.
std::optional<Status> Engine::Impl::fits_by_columns(const FrameworkPtr& framework, const PodInfoPtr& pod, const NodeInfo& node) {
  if (options.plain || index == nullptr || framework->profile().always_check_all_filters) return std::nullopt;
  sync();
  const Signature signature = framework->sign(*pod, index.get());
  PodClass* columns = known_class(*framework, pod, signature);
  if (columns == nullptr) return std::nullopt;
  if (cluster.has_nominations() && (columns->is_swayed_by_nominations() || cluster.nominated_node(pod->key) == node.index))
    return std::nullopt;
  Status status = columns->verdict(node.index);
  if (status.is_error()) return std::nullopt;
  if (!signature.has_checks()) return status;
  // A plugin of volumes or devices may have rejected the pod before any node was looked at.
  if (!status.is_success()) return std::nullopt;
  if (!cluster.nominated(node.index).empty()) return std::nullopt;
  const auto state = prepare_checks(*framework, *pod);
  if (!state) return std::nullopt;
  status = NodeChecks(*framework, *state, *pod, *index, false).of(node);
  if (status.is_success()) return status;
  return std::nullopt;
}

void Engine::Impl::prepare(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  if (options.plain || cluster.node_count() == 0 || names_its_nodes(pod->view())) return;
  sync();
  Signature signature = framework->sign(*pod, index.get());
  if (known_class(*framework, pod, signature) != nullptr) return;
  if (auto made = PodClass::make(framework, pod, std::move(signature), *index, static_columns, options.lazy_ranking_nodes))
    (void)keep(std::move(made));
}

/// The node that preemption made room on is tried before all others; nullopt when the pod does not fit there (any more).
std::optional<Decision> Engine::Impl::try_nominated(const Framework& framework, const PodInfo& pod) {
  const NodeInfo* node = cluster.find_node(pod.view().nominated_node_name);
  if (node == nullptr || node->node == nullptr) return std::nullopt;
  CycleState state = framework.new_cycle(cluster);
  if (!framework.run_pre_filter(state, pod).status.is_success()) return std::nullopt;
  if (!framework.run_filter_with_nominated(state, pod, *node).is_success()) return std::nullopt;
  Decision out;
  out.outcome = Decision::Outcome::kScheduled;
  out.node = node->index;
  out.node_name = node->name;
  out.feasible_nodes = out.tied_nodes = 1;
  out.nominated_first = true;
  return out;
}

std::optional<Decision> Engine::Impl::decide_by_columns(const FrameworkPtr& framework, const PodInfoPtr& pod,
                                                        std::vector<NodeIndex>* tied) {
  sync();
  Signature signature = framework->sign(*pod, index.get());
  const bool has_checks = signature.has_checks();
  std::optional<PodClass::Choice> scanned;
  PodClass* columns = class_of(framework, pod, std::move(signature), tied, scanned);
  if (scanned) return as_decision(*scanned);
  if (columns == nullptr || columns->has_failed()) return std::nullopt;
  PodClass::OwnNomination own;
  if (cluster.has_nominations()) {
    own = {cluster.nominated_node(pod->key), pod->key};
    if (columns->is_swayed_by_nominations() || (own.node.is_valid() && columns->hides_own_node(own))) return std::nullopt;
  }
  PodClass::Choice choice;
  if (!has_checks) {
    choice = choose_by_name(*columns, tied);
  } else {
    auto chosen = choose_with_checks(*framework, *pod, *columns, tied);
    if (!chosen) return std::nullopt;
    choice = *chosen;
  }
  Decision out;
  if (!choice.node.is_valid()) {
    // Columns keep the first rejection of a node only.
    if (framework->profile().always_check_all_filters) return std::nullopt;
    out.diagnosis = std::make_shared<const Diagnosis>(columns->diagnose(own));
    return out;
  }
  return as_decision(choice);
}

Decision Engine::Impl::as_decision(const PodClass::Choice& choice) const {
  Decision out;
  out.outcome = Decision::Outcome::kScheduled;
  out.node = choice.node;
  out.node_name = cluster.node(choice.node)->name;
  out.score = choice.score;
  out.feasible_nodes = choice.feasible_nodes;
  out.tied_nodes = choice.tied_nodes;
  return out;
}

/// The pod's cycle for the plugins of volumes and devices alone; nullopt: one of them rejects the pod, or names its nodes.
std::optional<CycleState> Engine::Impl::prepare_checks(const Framework& framework, const PodInfo& pod) {
  CycleState state = framework.new_cycle(cluster);
  for (const Plugin* plugin : framework.pre_filters()) {
    if (plugin->column_kind() != ColumnKind::kVolumes) continue;
    const PreFilterOutcome outcome = plugin->pre_filter(state, pod);
    if (outcome.status.is_skip()) {
      state.skip_filter(plugin->slot());
    } else if (!outcome.status.is_success() || outcome.node_names) {
      return std::nullopt;
    }
  }
  return state;
}

/// The plugins of volumes and devices check node by node, best first. Nullopt: the plain form must decide, or say why nothing fits.
std::optional<PodClass::Choice> Engine::Impl::choose_with_checks(const Framework& framework, const PodInfo& pod, PodClass& columns,
                                                                 std::vector<NodeIndex>* tied) {
  // Which of a claim's alternatives a node can give counts in its score, and so may what devices it has left: then every node is asked.
  if (has_alternatives(pod.view(), cluster)) return std::nullopt;
  const auto counts_devices = [&](const auto& scorer) { return scorer.plugin->scores_by_devices(pod, cluster); };
  if (std::ranges::any_of(framework.scorers(), counts_devices)) return std::nullopt;
  const auto state = prepare_checks(framework, pod);
  if (!state) return std::nullopt;
  NodeChecks checks(framework, *state, pod, *index, true);
  if (checks.empty()) return choose_by_name(columns, tied);
  if (checks.may_fail()) return std::nullopt;  // On a node that nobody would ask for, too.
  PodClass::Options with_last_word = choice_options(tied);
  with_last_word.checks = &checks;
  const PodClass::Choice choice = columns.choose(with_last_word);
  if (checks.has_failed() || !choice.node.is_valid()) return std::nullopt;
  return choice;
}

/// Of the columns' best nodes the first by name where that is wanted: columns compare names one by one, for each pod anew.
PodClass::Choice Engine::Impl::choose_by_name(PodClass& columns, std::vector<NodeIndex>* tied) {
  PodClass::Options how = choice_options(tied);
  if (!how.first_by_name) return columns.choose(how);
  equals.clear();
  how.tied = &equals;
  how.first_by_name = false;
  how.random = nullptr;
  PodClass::Choice out = columns.choose(how);
  name_order.learn_if_due(cluster, random_before.size());
  if (!equals.empty()) out.node = name_order.first(cluster, equals);
  if (tied != nullptr) tied->insert(tied->end(), equals.begin(), equals.end());
  return out;
}

void Engine::Impl::sync() {
  if (index == nullptr) index = std::make_unique<ClusterIndex>(cluster);
  index->sync();
  if (index_epoch == index->epoch()) return;
  index_epoch = index->epoch();
  forget_classes();
}

void Engine::Impl::forget_classes() {
  classes.clear();
  static_columns.clear();
  class_count = class_bytes = 0;
}

/// The columns for pods of this signature that are there, up to date; null without any.
PodClass* Engine::Impl::known_class(const Framework& framework, const PodInfoPtr& pod, const Signature& signature) {
  auto* bucket = classes.edit(signature.columns_hash());
  if (bucket == nullptr) return nullptr;
  const auto at = std::ranges::find_if(*bucket, [&](const auto& entry) { return entry.columns->serves(framework, signature); });
  if (at == bucket->end()) return nullptr;
  PodClass& columns = unshare(at->columns);
  columns.bind(*index, static_columns);
  if (columns.catch_up(pod, signature)) {
    at->last_use = ++tick;
    constexpr std::uint64_t kLooks = 64;
    if (tick % kLooks == 0) weigh(*at);
    return &columns;
  }
  class_bytes -= at->bytes;
  bucket->erase(at);
  --class_count;
  return nullptr;
}

/// The columns for pods of this signature. The first such pod may be decided without any: then `scanned` is set.
PodClass* Engine::Impl::class_of(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature, std::vector<NodeIndex>* tied,
                                 std::optional<PodClass::Choice>& scanned) {
  if (PodClass* known = known_class(*framework, pod, signature)) return known;
  if (names_its_nodes(pod->view())) return nullptr;
  auto made = PodClass::make(framework, pod, std::move(signature), *index, static_columns, options.lazy_ranking_nodes);
  if (made == nullptr) return nullptr;
  if (tied == nullptr && made->can_scan() && !made->has_failed() && is_first(made->signature().columns_hash())) {
    scanned = made->scan(choice_options(nullptr), scan_table, totals);
    if (scanned) return nullptr;
  }
  return keep(std::move(made));
}

PodClass* Engine::Impl::keep(std::shared_ptr<PodClass> made) {
  make_room();
  made->build();
  ++class_count;
  const std::uint64_t hash = made->signature().columns_hash();
  ClassEntry& entry = classes[hash].emplace_back(std::move(made), ++tick);
  weigh(entry);
  return entry.columns.get();
}

void Engine::Impl::weigh(ClassEntry& entry) {
  class_bytes -= entry.bytes;
  entry.bytes = entry.columns->memory_bytes();
  class_bytes += entry.bytes;
}

/// Nobody with this hash has asked lately.
bool Engine::Impl::is_first(std::uint64_t hash) {
  constexpr std::size_t kRemembered = 1 << 17;
  if (seen.size() >= kRemembered) seen.clear();
  return seen.insert(hash).second;
}

/// Last use and hash, the longest unused first.
std::vector<std::pair<std::uint64_t, std::uint64_t>> Engine::Impl::classes_by_use() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  classes.for_each([&](std::uint64_t hash, const std::vector<ClassEntry>& bucket) {
    for (const ClassEntry& entry : bucket) out.emplace_back(entry.last_use, hash);
  });
  std::ranges::sort(out);
  return out;
}

void Engine::Impl::drop(std::uint64_t last_use, std::uint64_t hash) {
  auto& bucket = *classes.edit(hash);
  const auto at = std::ranges::find(bucket, last_use, &ClassEntry::last_use);
  class_bytes -= at->bytes;
  bucket.erase(at);
  --class_count;
  if (bucket.empty()) classes.erase(hash);
}

/// Several go at once, an eighth of them by number or by bytes, so that looking for the longest unused is paid for by many.
void Engine::Impl::make_room() {
  const std::size_t most =
      std::max<std::size_t>(16, options.columns_bytes / (kBytesPerNodeAndClass * std::max(cluster.slot_count(), 1024U)));
  if (class_count < most && class_bytes <= options.columns_bytes) return;
  const std::size_t count_goal = most - most / 8, bytes_goal = options.columns_bytes - options.columns_bytes / 8;
  for (const auto& [last_use, hash] : classes_by_use()) {
    if (class_count <= count_goal && class_bytes <= bytes_goal) return;
    drop(last_use, hash);
  }
}

Decision Engine::Impl::decide_plainly(const Framework& framework, const PodInfo& pod, std::vector<NodeIndex>* tied) {
  Evaluation evaluation = placement::evaluate(framework, cluster, pod, false);
  if (tied != nullptr) tied->clear();
  Decision out;
  if (!evaluation.errors.empty()) {
    out.outcome = Decision::Outcome::kError;
    out.error = evaluation.errors.front();
    return out;
  }
  if (evaluation.tied.empty()) {
    out.diagnosis = std::make_shared<const Diagnosis>(std::move(evaluation.diagnosis));
    return out;
  }
  out.outcome = Decision::Outcome::kScheduled;
  if (tied != nullptr) *tied = evaluation.tied;
  out.node = evaluation.tied[pick(evaluation.tied.size())];
  out.node_name = cluster.node(out.node)->name;
  out.score = std::ranges::find(evaluation.feasible, out.node, &Evaluation::Feasible::node)->total;
  out.feasible_nodes = evaluation.feasible.size();
  out.tied_nodes = evaluation.tied.size();
  out.nominated_first = evaluation.nominated_first;
  return out;
}

Engine::Engine(const Cluster& cluster, EngineOptions options) : impl_(std::make_unique<Impl>(cluster, options)) {}
Engine::Engine(Engine& from, const Cluster& fork) {
  from.impl_->sync();
  impl_ = std::make_unique<Impl>(*from.impl_, fork);
}
Engine::~Engine() = default;

Decision Engine::schedule(const FrameworkPtr& framework, const PodInfoPtr& pod) { return impl_->schedule(framework, pod, nullptr); }

void Engine::prepare(const FrameworkPtr& framework, const PodInfoPtr& pod) { impl_->prepare(framework, pod); }

BestNodes Engine::best(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  BestNodes out;
  out.decision = impl_->schedule(framework, pod, &out.nodes);
  impl_->name_order.sort(impl_->cluster, out.nodes);
  return out;
}

Status Engine::fits(const FrameworkPtr& framework, const PodInfoPtr& pod, NodeIndex node) { return impl_->fits(framework, pod, node); }

Signature Engine::sign(const Framework& framework, const PodInfo& pod) {
  impl_->sync();
  return framework.sign(pod, impl_->index.get());
}

Evaluation Engine::evaluate(const Framework& framework, const PodInfo& pod) const {
  return placement::evaluate(framework, impl_->cluster, pod);
}

void Engine::forget() {
  impl_->forget_classes();
  impl_->index.reset();
  impl_->index_epoch = 0;
  impl_->scan_table = {};
}

void Engine::forget_unused() {
  const std::uint64_t since = std::exchange(impl_->last_sweep, impl_->tick);
  for (const auto& [last_use, hash] : impl_->classes_by_use()) {
    if (last_use > since) break;
    impl_->drop(last_use, hash);
  }
  if (impl_->index != nullptr) impl_->index->forget_unused();
}

void Engine::begin_attempt() {
  if (impl_->random_before.empty()) {
    impl_->name_order.learn_if_due(impl_->cluster, 0);
    if (impl_->index != nullptr) {
      impl_->sync();
      impl_->index->begin_attempt();
    }
  }
  impl_->random_before.push_back(impl_->random);
}
void Engine::end_attempt(bool draws_again) {
  BERTH_CHECK(!impl_->random_before.empty(), "an attempt ends that never began");
  if (draws_again) impl_->random = impl_->random_before.back();
  impl_->random_before.pop_back();
  impl_->name_order.attempt_ended(impl_->random_before.size());
  if (!impl_->random_before.empty() || impl_->index == nullptr) return;
  impl_->sync();
  impl_->index->end_attempt(draws_again);
}

std::size_t Engine::memory_bytes() const {
  std::size_t out = impl_->index == nullptr ? 0 : impl_->index->memory_bytes() + impl_->static_columns.memory_bytes();
  impl_->classes.for_each([&](std::uint64_t, const auto& bucket) {
    for (const auto& entry : bucket) out += entry.columns->memory_bytes();
  });
  return out;
}

}  // namespace berth::placement
