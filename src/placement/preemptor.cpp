#include "placement/preemptor.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "placement/preemption_words.h"

namespace berth::placement {
namespace {

/// cpu, memory, ephemeral storage, pods.
using Amounts = std::array<std::int64_t, 4>;
constexpr std::array<std::string_view, 4> kReasons = {"Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage", "Too many pods"};
constexpr std::string_view kStatic[] = {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeLabel"};
constexpr std::string_view kIndifferent[] = {"NodePorts",   "VolumeRestrictions", "NodeVolumeLimits", "EBSLimits",  "GCEPDLimits",       "AzureDiskLimits",
                                             "CinderLimits", "VolumeBinding",      "VolumeZone",       "PodTopologySpread", "InterPodAffinity", "DynamicResources"};
constexpr std::size_t kMaxClasses = 64;

bool is_one_of(std::span<const std::string_view> names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

Amounts amounts_of(const Resource& resource, std::int64_t pods) { return {resource.cpu_milli, resource.memory_bytes, resource.ephemeral_storage_bytes, pods}; }

void add(Amounts& a, const Amounts& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = saturating_add(a[i], b[i]);
}
void subtract(Amounts& a, const Amounts& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = saturating_sub(a[i], b[i]);
}

/// A pod of a node, as preemption sees it.
struct Row {
  std::int64_t priority, start_time_ns;
  Amounts request;
  const PodInfo* pod;
};

struct NodeRows {
  std::vector<Row> rows;  ///< Most important first.
  Amounts used{}, allocatable{};
  bool is_candidate = false;  ///< Has a node object.
  bool has_anti_affinity = false;
};

/// A node's answer to a class.
struct Answer {
  enum class Kind : std::uint8_t { kNotHelpful, kNoVictims, kTooSmall, kBudget, kCandidate };
  Kind kind = Kind::kNotHelpful;
  std::uint8_t missing = 0;  ///< kTooSmall: which of kReasons.
  std::uint32_t violations = 0, count = 0;
  std::int64_t top = 0, neg_start = 0;
  __int128 sum = 0;
  [[nodiscard]] auto rank() const { return std::tie(violations, top, sum, count, neg_start); }
};

struct PodClass {
  FrameworkPtr framework;
  PodInfoPtr pod;  ///< The first of the class; stands for all.
  CycleState state;
  std::vector<const Plugin*> static_filters;
  std::vector<Answer> answers;  ///< By node slot.
  std::uint64_t seen = 0;       ///< Position in the change log.
  std::uint64_t objects_version = 0;
  std::uint64_t last_use = 0;
};

bool same_preemptor(const PodInfo& a, const PodInfo& b) {
  const auto& x = a.view();
  const auto& y = b.view();
  return x.priority == y.priority && a.request.total == b.request.total && x.node_name == y.node_name && x.node_selector == y.node_selector &&
         x.tolerations == y.tolerations && x.node_affinity == y.node_affinity;
}

}  // namespace

struct Preemptor::Impl {
  const Cluster& cluster;
  PreemptionOptions options;
  std::vector<NodeRows> nodes;
  std::size_t anti_affinity_nodes = 0;
  bool nominated_anti_affinity = false;  ///< Some nominated pod keeps others away: the plain form sees to that.
  std::set<std::string, std::less<>> nominated;  ///< Keys of the pods that wait for room; their own nomination must not count against them.
  std::uint64_t seen = 0;
  bool is_built = false;
  std::vector<std::unique_ptr<PodClass>> classes;
  std::uint64_t uses = 0;
  bool was_fast = false;

  Impl(const Cluster& c, PreemptionOptions o) : cluster(c), options(o) {}

  void catch_up();
  void rebuild_node(NodeIndex index);
  [[nodiscard]] bool is_coverable(const Framework& framework, const PodInfo& pod) const;
  PodClass* class_for(const FrameworkPtr& framework, const PodInfoPtr& pod);
  void catch_up(PodClass& one);
  [[nodiscard]] Answer answer(const PodClass& one, NodeIndex index, std::vector<PodInfoPtr>* victims) const;
  [[nodiscard]] std::uint8_t missing(const PodClass& one, const NodeRows& node, const Amounts& used) const;
  PostFilterResult fast(PodClass& one, const PodInfoPtr& pod);
};

void Preemptor::Impl::rebuild_node(NodeIndex index) {
  if (nodes.size() <= index.value) nodes.resize(index.value + 1);
  NodeRows& out = nodes[index.value];
  anti_affinity_nodes -= out.has_anti_affinity;
  out.rows.clear();
  out.has_anti_affinity = false;
  const NodeInfo* info = cluster.node(index);
  out.is_candidate = info != nullptr && info->node != nullptr;
  if (info == nullptr) return;
  out.used = amounts_of(info->requested, static_cast<std::int64_t>(info->pods.size()));
  out.allocatable = amounts_of(info->allocatable, info->allocatable.allowed_pods);
  out.has_anti_affinity = info->pods_with_required_anti_affinity > 0;
  anti_affinity_nodes += out.has_anti_affinity;
  out.rows.reserve(info->pods.size());
  for (const auto& pod : info->pods)
    out.rows.push_back({pod->view().priority, pod->start_time_ns, amounts_of(pod->request.total, 1), pod.get()});
  std::ranges::stable_sort(out.rows, [](const Row& a, const Row& b) { return a.priority != b.priority ? a.priority > b.priority : a.start_time_ns < b.start_time_ns; });
}

void Preemptor::Impl::catch_up() {
  if (!is_built || seen < cluster.log_begin()) {
    nodes.clear();
    anti_affinity_nodes = 0;
    nodes.resize(cluster.slot_count());
    nominated_anti_affinity = false;
    nominated.clear();
    for (std::uint32_t i = 0; i < cluster.slot_count(); ++i) {
      rebuild_node(NodeIndex{i});
      for (const auto& pod : cluster.nominated(NodeIndex{i})) {
        nominated_anti_affinity |= !pod->required_anti_affinity.empty();
        nominated.insert(pod->key);
      }
    }
    is_built = true;
    seen = cluster.log_end();
    return;
  }
  for (; seen < cluster.log_end(); ++seen) {
    const Change& change = cluster.change(seen);
    // Several changes of one node in a row cost one rebuild.
    if (change.kind == Change::Kind::kOther || !change.node.is_valid()) continue;
    if (change.kind == Change::Kind::kNominated && change.pod != nullptr) {
      nominated_anti_affinity |= !change.pod->required_anti_affinity.empty();
      const bool is_there = std::ranges::any_of(cluster.nominated(change.node), [&](const auto& pod) { return pod->key == change.pod->key; });
      if (is_there) {
        nominated.insert(change.pod->key);
      } else {
        nominated.erase(change.pod->key);
      }
    }
    if (seen + 1 < cluster.log_end() && cluster.change(seen + 1).node == change.node) continue;
    rebuild_node(change.node);
  }
}

bool Preemptor::Impl::is_coverable(const Framework& framework, const PodInfo& pod) const {
  const Profile& profile = framework.profile();
  const auto& view = pod.view();
  if (!pod.required_affinity.empty() || !pod.required_anti_affinity.empty() || !pod.host_ports.empty() || !pod.request.total.scalars.empty() ||
      !view.resource_claims.empty() || !view.nominated_node_name.empty() || view.preemption_never || anti_affinity_nodes > 0 || nominated_anti_affinity || nominated.contains(pod.key))
    return false;
  if (std::ranges::any_of(view.spread_constraints, &model::TopologySpreadConstraint::is_hard) ||
      std::ranges::any_of(profile.args.spread.default_constraints, &model::TopologySpreadConstraint::is_hard))
    return false;
  if (std::ranges::any_of(view.volumes, [](const auto& volume) { return volume.kind != model::VolumeView::Kind::kOther; })) return false;
  bool fit_seen = false;
  for (const auto& use : profile.filter) {
    if (use.name == "NodeResourcesFit") {
      fit_seen = true;
    } else if (is_one_of(kStatic, use.name)) {
      // The message counts a node's first rejection: then the static ones must come first.
      if (fit_seen && profile.era != Era::k120) return false;
    } else if (!is_one_of(kIndifferent, use.name)) {
      return false;
    }
  }
  return fit_seen && profile.args.fit.ignored_resources.empty();
}

PodClass* Preemptor::Impl::class_for(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  ++uses;
  for (auto& one : classes) {
    if (one->framework != framework || !same_preemptor(*one->pod, *pod)) continue;
    one->last_use = uses;
    return one.get();
  }
  auto made = std::unique_ptr<PodClass>(new PodClass{framework, pod, framework->new_cycle(cluster), {}, {}, 0, 0, uses});
  for (const Plugin* plugin : framework->filters()) {
    if (!is_one_of(kStatic, plugin->name())) continue;
    if (std::ranges::find(framework->pre_filters(), plugin) != framework->pre_filters().end()) {
      const auto outcome = plugin->pre_filter(made->state, *pod);
      if (outcome.status.is_skip()) continue;
      if (!outcome.status.is_success() || outcome.node_names) return nullptr;
    }
    made->static_filters.push_back(plugin);
  }
  if (classes.size() >= kMaxClasses) classes.erase(std::ranges::min_element(classes, {}, [](const auto& one) { return one->last_use; }));
  classes.push_back(std::move(made));
  return classes.back().get();
}

/// The node's shortfalls for the class, as bits of kReasons.
std::uint8_t Preemptor::Impl::missing(const PodClass& one, const NodeRows& node, const Amounts& used) const {
  const Amounts wanted = amounts_of(one.pod->request.total, 1);
  const bool asks = wanted[0] != 0 || wanted[1] != 0 || wanted[2] != 0;
  const bool checks_zero = one.framework->profile().era == Era::k120;
  std::uint8_t out = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i < 3 && (!asks || (wanted[i] == 0 && !checks_zero))) continue;
    if (saturating_add(wanted[i], used[i]) > node.allocatable[i]) out |= static_cast<std::uint8_t>(1U << i);
  }
  return out;
}

Answer Preemptor::Impl::answer(const PodClass& one, NodeIndex index, std::vector<PodInfoPtr>* victims) const {
  Answer out;
  const NodeRows& node = nodes[index.value];
  const NodeInfo* info = cluster.node(index);
  if (!node.is_candidate || info == nullptr) return out;
  Amounts used = node.used;
  for (const auto& nominated : cluster.nominated(index))
    if (nominated->view().priority >= one.pod->view().priority) add(used, amounts_of(nominated->request.total, 1));
  const std::uint8_t now = missing(one, node, used);
  if (now == 0) return out;
  const Amounts wanted = amounts_of(one.pod->request.total, 1);
  for (std::size_t i = 0; i < 3; ++i)
    if ((now >> i & 1) != 0 && wanted[i] > node.allocatable[i]) {
      if (one.framework->profile().era != Era::k120) return out;
    }
  for (const Plugin* plugin : one.static_filters)
    if (!plugin->filter(one.state, *one.pod, *info).is_success()) return out;

  const auto lower = std::ranges::partition_point(node.rows, [&](const Row& row) { return row.priority >= one.pod->view().priority; });
  if (lower == node.rows.end()) {
    out.kind = Answer::Kind::kNoVictims;
    return out;
  }
  for (auto row = lower; row != node.rows.end(); ++row) subtract(used, row->request);
  if (const auto left = missing(one, node, used); left != 0) {
    out.kind = Answer::Kind::kTooSmall;
    out.missing = left;
    return out;
  }
  const auto count = static_cast<std::size_t>(node.rows.end() - lower);
  std::vector<bool> violates;
  if (!cluster.disruption_budgets().empty()) {
    std::vector<PodInfoPtr> pods;
    for (auto row = lower; row != node.rows.end(); ++row) pods.push_back(row->pod->shared_from_this());
    violates = budget_violations(cluster, pods);
  }
  const bool sorts = one.framework->profile().era != Era::k120;
  std::vector<std::size_t> chosen;
  bool is_first = true;
  std::int64_t earliest_of = 0, earliest = 0;
  for (const bool violating : {true, false}) {
    if (violates.empty() && violating) continue;
    for (std::size_t i = 0; i < count; ++i) {
      if (!violates.empty() && violates[i] != violating) continue;
      const Row& row = lower[static_cast<std::ptrdiff_t>(i)];
      Amounts with = used;
      add(with, row.request);
      if (missing(one, node, with) == 0) {
        used = with;
        continue;
      }
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
  out.kind = options.budgets_are_hard && out.violations > 0 ? Answer::Kind::kBudget : Answer::Kind::kCandidate;
  if (victims != nullptr && sorts) std::ranges::stable_sort(*victims, [](const auto& a, const auto& b) { return is_more_important(*a, *b); });
  return out;
}

void Preemptor::Impl::catch_up(PodClass& one) {
  const bool has_budgets = !cluster.disruption_budgets().empty();
  const bool is_stale = one.answers.empty() || one.seen < cluster.log_begin() || (has_budgets && one.objects_version != cluster.objects_version()) ||
                        one.objects_version > cluster.objects_version();
  one.objects_version = cluster.objects_version();
  one.answers.resize(nodes.size());
  if (is_stale) {
    for (std::uint32_t i = 0; i < nodes.size(); ++i) one.answers[i] = answer(one, NodeIndex{i}, nullptr);
  } else {
    for (; one.seen < cluster.log_end(); ++one.seen) {
      const Change& change = cluster.change(one.seen);
      if (!change.node.is_valid()) continue;
      if (one.seen + 1 < cluster.log_end() && cluster.change(one.seen + 1).node == change.node) continue;
      one.answers[change.node.value] = answer(one, change.node, nullptr);
    }
  }
  one.seen = cluster.log_end();
}

PostFilterResult Preemptor::Impl::fast(PodClass& one, const PodInfoPtr& pod) {
  PostFilterResult out;
  const Answer* best = nullptr;
  for (std::uint32_t i = 0; i < one.answers.size(); ++i) {
    const Answer& answer = one.answers[i];
    if (answer.kind != Answer::Kind::kCandidate) continue;
    if (best != nullptr && best->rank() < answer.rank()) continue;
    if (best == nullptr || answer.rank() < best->rank()) out.tied.clear();
    best = &answer;
    out.tied.push_back(NodeIndex{i});
  }
  const auto name = [&](NodeIndex node) -> const std::string& { return cluster.node(node)->name; };
  if (best != nullptr) {
    std::ranges::sort(out.tied, {}, name);
    Candidate candidate{out.tied[0], {}, best->violations};
    (void)answer(one, out.tied[0], &candidate.victims);
    out.candidates.push_back(std::move(candidate));
    out.best = 0;
    return out;
  }
  std::map<std::string, std::size_t> reasons;
  for (std::uint32_t i = 0; i < one.answers.size(); ++i) {
    if (!nodes[i].is_candidate) continue;
    const Answer& answer = one.answers[i];
    if (answer.kind == Answer::Kind::kNotHelpful) ++reasons[std::string(words::kNotHelpful)];
    if (answer.kind == Answer::Kind::kNoVictims) ++reasons[std::string(words::kNoVictims)];
    if (answer.kind == Answer::Kind::kBudget) ++reasons[std::string(words::kHardBudget)];
    for (std::size_t bit = 0; answer.kind == Answer::Kind::kTooSmall && bit < kReasons.size(); ++bit)
      if ((answer.missing >> bit & 1) != 0) ++reasons[std::string(kReasons[bit])];
  }
  out.status = words::rejected(cluster.node_count(), reasons, one.framework->profile());
  return out;
}

Preemptor::Preemptor(const Cluster& cluster, PreemptionOptions options) : impl_(std::make_unique<Impl>(cluster, options)) {}
Preemptor::~Preemptor() = default;
bool Preemptor::was_fast() const { return impl_->was_fast; }

std::size_t Preemptor::memory_bytes() const {
  std::size_t out = impl_->nodes.capacity() * sizeof(NodeRows);
  for (const auto& node : impl_->nodes) out += node.rows.capacity() * sizeof(Row);
  for (const auto& one : impl_->classes) out += one->answers.capacity() * sizeof(Answer);
  return out;
}

PostFilterResult Preemptor::find(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  impl_->was_fast = false;
  if (!framework->profile().has(framework->profile().post_filter, "DefaultPreemption")) {
    return run_post_filter(*framework, impl_->cluster, pod, evaluate(*framework, impl_->cluster, *pod), impl_->options);
  }
  impl_->catch_up();
  PodClass* one = impl_->is_coverable(*framework, *pod) ? impl_->class_for(framework, pod) : nullptr;
  if (one == nullptr) return run_post_filter(*framework, impl_->cluster, pod, evaluate(*framework, impl_->cluster, *pod), impl_->options);
  impl_->was_fast = true;
  impl_->catch_up(*one);
  return impl_->fast(*one, pod);
}

}  // namespace berth::placement
