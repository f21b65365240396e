#include "placement/engine.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <random>

#include "placement/columns/cluster_index.h"
#include "placement/columns/pod_class.h"
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
  std::unique_ptr<ClusterIndex> index;
  StaticColumns static_columns;
  struct ClassEntry {
    std::shared_ptr<PodClass> columns;
    std::uint64_t last_use = 0;
  };
  ShardedMap<std::uint64_t, std::vector<ClassEntry>, NumberHash> classes;  ///< By the hash of the signature's part for columns.
  std::size_t class_count = 0;
  std::uint64_t index_epoch = 0;
  std::uint64_t tick = 0;
  boost::unordered_flat_set<std::uint64_t> seen;  ///< Hashes of signatures that were asked for.
  std::vector<std::int32_t> totals;               ///< Working space.

  Impl(const Cluster& over, EngineOptions with) : cluster(over), options(with), random(with.seed) {}
  Impl(const Impl& from, const Cluster& fork)
      : cluster(fork),
        options(from.options),
        random(from.random),
        index(std::make_unique<ClusterIndex>(*from.index, fork)),
        static_columns(from.static_columns),
        classes(from.classes),
        class_count(from.class_count),
        index_epoch(from.index_epoch),
        tick(from.tick) {}

  Decision schedule(const FrameworkPtr& framework, const PodInfoPtr& pod);
  std::optional<Decision> try_nominated(const Framework& framework, const PodInfo& pod);
  std::optional<Decision> decide_by_columns(const FrameworkPtr& framework, const PodInfoPtr& pod);
  Decision decide_plainly(const Framework& framework, const PodInfo& pod);
  void sync();
  PodClass* class_of(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature, std::optional<PodClass::Choice>& scanned);
  bool is_first(std::uint64_t hash);
  void make_room();
  Decision as_decision(const PodClass::Choice& choice) const;
  std::optional<PodClass::Choice> choose_with_checks(const Framework& framework, const PodInfo& pod, PodClass& columns);

  PodClass::Options choice_options() {
    PodClass::Options out;
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

Decision Engine::Impl::schedule(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  if (options.plain || cluster.node_count() == 0) return decide_plainly(*framework, *pod);
  if (framework->profile().era != Era::k120 && !pod->view().nominated_node_name.empty()) {
    if (auto decision = try_nominated(*framework, *pod)) return std::move(*decision);
  }
  if (auto decision = decide_by_columns(framework, pod)) return std::move(*decision);
  return decide_plainly(*framework, *pod);
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

std::optional<Decision> Engine::Impl::decide_by_columns(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  sync();
  Signature signature = framework->sign(*pod, index.get());
  const bool has_checks = signature.has_checks();
  std::optional<PodClass::Choice> scanned;
  PodClass* columns = class_of(framework, pod, std::move(signature), scanned);
  if (scanned) return as_decision(*scanned);
  if (columns == nullptr) return std::nullopt;
  PodClass::OwnNomination own;
  if (cluster.has_nominations()) {
    own = {cluster.nominated_node(pod->key), pod->key};
    if (columns->is_swayed_by_nominations() || (own.node.is_valid() && columns->hides_own_node(own))) return std::nullopt;
  }
  PodClass::Choice choice;
  if (!has_checks) {
    choice = columns->choose(choice_options());
  } else {
    auto chosen = choose_with_checks(*framework, *pod, *columns);
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

/// The plugins of volumes and devices check node by node, best first. Nullopt: the plain form must decide, or say why nothing fits.
std::optional<PodClass::Choice> Engine::Impl::choose_with_checks(const Framework& framework, const PodInfo& pod, PodClass& columns) {
  // Which of a claim's alternatives a node can give counts in its score: then every node has to be asked.
  if (has_alternatives(pod.view(), cluster)) return std::nullopt;
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
  const bool none_matter = std::ranges::none_of(framework.filters(), [&](const Plugin* plugin) {
    return plugin->column_kind() == ColumnKind::kVolumes && !state.filter_skipped(plugin->slot());
  });
  if (none_matter) return columns.choose(choice_options());
  bool failed = false;
  PodClass::Options with_last_word = choice_options();
  with_last_word.accept = [&](const NodeInfo& node) {
    if (!cluster.nominated(node.index).empty()) {
      const Status status = framework.run_filter_with_nominated(state, pod, node);
      failed |= status.is_error();
      return status.is_success();
    }
    for (const Plugin* plugin : framework.filters()) {
      if (plugin->column_kind() != ColumnKind::kVolumes || state.filter_skipped(plugin->slot())) continue;
      const Status status = plugin->filter(state, pod, node);
      if (status.is_success()) continue;
      failed |= status.is_error();
      return false;
    }
    return true;
  };
  const PodClass::Choice choice = columns.choose(with_last_word);
  if (failed || !choice.node.is_valid()) return std::nullopt;
  return choice;
}

void Engine::Impl::sync() {
  if (index == nullptr) index = std::make_unique<ClusterIndex>(cluster);
  index->sync();
  if (index_epoch == index->epoch()) return;
  index_epoch = index->epoch();
  classes.clear();
  static_columns.clear();
  class_count = 0;
}

/// The columns for pods of this signature. The first such pod may be decided without any: then `scanned` is set.
PodClass* Engine::Impl::class_of(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature,
                                 std::optional<PodClass::Choice>& scanned) {
  const std::uint64_t hash = signature.columns_hash();
  if (auto* bucket = classes.edit(hash)) {
    const auto at = std::ranges::find_if(*bucket, [&](const auto& entry) { return entry.columns->serves(*framework, signature); });
    if (at != bucket->end()) {
      PodClass& columns = unshare(at->columns);
      columns.bind(*index, static_columns);
      if (columns.catch_up(pod, signature)) {
        at->last_use = ++tick;
        return &columns;
      }
      bucket->erase(at);
      --class_count;
    }
  }
  if (names_its_nodes(pod->view())) return nullptr;
  auto made = PodClass::make(framework, pod, std::move(signature), *index, static_columns, options.lazy_ranking_nodes);
  if (made == nullptr) return nullptr;
  if (made->can_scan() && is_first(hash)) {
    scanned = made->scan(choice_options(), totals);
    if (scanned) return nullptr;
  }
  make_room();
  made->build();
  ++class_count;
  return classes[hash].emplace_back(std::move(made), ++tick).columns.get();
}

/// Nobody with this hash has asked lately.
bool Engine::Impl::is_first(std::uint64_t hash) {
  constexpr std::size_t kRemembered = 1 << 17;
  if (seen.size() >= kRemembered) seen.clear();
  return seen.insert(hash).second;
}

/// Several go at once, so that looking for the longest unused is paid for by many.
void Engine::Impl::make_room() {
  const std::size_t most =
      std::max<std::size_t>(16, options.columns_bytes / (kBytesPerNodeAndClass * std::max(cluster.slot_count(), 1024U)));
  if (class_count < most) return;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_use;  // Last use and hash.
  classes.for_each([&](std::uint64_t hash, const std::vector<ClassEntry>& bucket) {
    for (const ClassEntry& entry : bucket) by_use.emplace_back(entry.last_use, hash);
  });
  const auto leaving = by_use.begin() + static_cast<std::ptrdiff_t>(by_use.size() / 8);
  std::ranges::nth_element(by_use, leaving);
  for (const auto& [last_use, hash] : std::ranges::subrange(by_use.begin(), leaving + 1)) {
    auto& bucket = *classes.edit(hash);
    class_count -= std::erase_if(bucket, [&](const ClassEntry& entry) { return entry.last_use == last_use; });
    if (bucket.empty()) classes.erase(hash);
  }
}

Decision Engine::Impl::decide_plainly(const Framework& framework, const PodInfo& pod) {
  Evaluation evaluation = placement::evaluate(framework, cluster, pod, false);
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

Decision Engine::schedule(const FrameworkPtr& framework, const PodInfoPtr& pod) { return impl_->schedule(framework, pod); }

Signature Engine::sign(const Framework& framework, const PodInfo& pod) {
  impl_->sync();
  return framework.sign(pod, impl_->index.get());
}

Evaluation Engine::evaluate(const Framework& framework, const PodInfo& pod) const {
  return placement::evaluate(framework, impl_->cluster, pod);
}

std::size_t Engine::memory_bytes() const {
  std::size_t out = impl_->index == nullptr ? 0 : impl_->index->memory_bytes() + impl_->static_columns.memory_bytes();
  impl_->classes.for_each([&](std::uint64_t, const auto& bucket) {
    for (const auto& entry : bucket) out += entry.columns->memory_bytes();
  });
  return out;
}

}  // namespace berth::placement
