#include "placement/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "placement/lacks.h"
#include "placement/numa/node_alignment.h"
#include "placement/relaxations.h"
#include "placement/topology_keys.h"
#include "placement/trial.h"

namespace berth::placement {
namespace {

constexpr std::size_t kMostNamed = 10;  ///< Of nodes that are as good, in a sentence.

/// How far a node is from taking the pod: another node than the pod names is furthest, then one that no eviction helps; then by number of
/// rejections and size of shortage.
using Distance = std::tuple<bool, bool, std::size_t, double>;
Distance distance(const Cluster& cluster, const PodInfo& pod, const NodeInfo& node, const std::vector<std::string>& pins,
                  const NodeReport& report) {
  const bool is_hopeless =
      std::ranges::any_of(report.rejections, [](const auto& one) { return one.code == "UnschedulableAndUnresolvable"; });
  double missing = 0;
  for (const auto& one : shortages(cluster, pod, node))
    missing += static_cast<double>(saturating_sub(one.asked, one.free)) / static_cast<double>(std::max<std::int64_t>(one.asked, 1));
  return {!pins.empty() && !is_pinned_to(pins, node), is_hopeless, report.rejections.size(), missing};
}

class Explainer {
 public:
  Explainer(const FrameworkPtr& framework, const Cluster& cluster, PodInfoPtr pod, const ExplainOptions& options)
      : framework_(*framework),
        trial_(Trial::on_fork(cluster, framework, {.engine = {}, .preemption = options.preemption})),
        cluster_(trial_.cluster()),
        pod_(std::move(pod)),
        options_(options) {}

  Explanation run() {
    out_.pod = pod_->key;
    out_.scheduler = framework_.profile().scheduler_name;
    if (const auto node = cluster_.pod_node(pod_->key); node.is_valid()) {
      out_.current_node = cluster_.node(node)->name;
      out_.resize = room_for_resize(cluster_, *pod_);
      // As it would come today: what it holds would pin it to where it is.
      pod_ = trial_.renew(trial_.evict(pod_));
    }
    if (const Status gate = trial_.admits(*pod_); !gate.is_success()) {
      out_.verdict = Explanation::Verdict::kGated;
      out_.message = gate.message();
      out_.summary = fmt::format("{} waits before the queue: {}", out_.pod, out_.message);
      return std::move(out_);
    }
    evaluation_ = trial_.evaluate(*pod_);
    if (!evaluation_.errors.empty()) {
      out_.verdict = Explanation::Verdict::kError;
      out_.message = evaluation_.errors[0];
      out_.summary = fmt::format("{} cannot be placed: {}", out_.pod, out_.message);
      return std::move(out_);
    }
    report_nodes();
    if (evaluation_.tied.empty()) {
      pending();
    } else {
      placed();
    }
    return std::move(out_);
  }

 private:
  void report_nodes();
  void placed();
  void pending();
  void relax(const std::vector<NodeIndex>& nearest);
  [[nodiscard]] std::vector<std::string> feasible_after(const std::vector<const RelaxableConstraint*>& changes,
                                                        const std::vector<NodeIndex>& where) const;
  void plan_eviction(const PostFilterResult& result);

  const Framework& framework_;
  Trial trial_;
  const Cluster& cluster_;  ///< The trial's.
  PodInfoPtr pod_;
  const ExplainOptions& options_;
  Evaluation evaluation_;
  std::vector<NodeIndex> nearest_;
  Explanation out_;
};

void Explainer::report_nodes() {
  for (const auto& one : evaluation_.feasible) {
    NodeReport report;
    report.name = cluster_.node(one.node)->name;
    report.is_feasible = true;
    report.total = one.total;
    if (report.name != out_.current_node) report.would_refuse = numa::refusal_beforehand(*cluster_.node(one.node), *pod_);
    for (std::size_t i = 0; i < evaluation_.scorers.size(); ++i)
      report.scores.emplace_back(std::string(evaluation_.scorers[i]), one.scores[i]);
    out_.nodes.push_back(std::move(report));
  }
  std::ranges::stable_sort(out_.nodes,
                           [](const auto& a, const auto& b) { return a.total != b.total ? a.total > b.total : a.name < b.name; });

  CycleState state = framework_.new_cycle(cluster_);
  (void)framework_.run_pre_filter(state, *pod_);
  std::vector<std::tuple<Distance, std::string, NodeIndex, NodeReport>> rejected;
  Lacks lacks(framework_, cluster_, *pod_);
  const auto pins = pinned_nodes(pod_->view());
  for (const auto& one : evaluation_.rejected) {
    const NodeInfo& node = *cluster_.node(one.node);
    NodeReport report;
    report.name = node.name;
    auto statuses = evaluation_.pre_filter.is_success() && !one.status.plugin.empty() ? framework_.run_every_filter(state, *pod_, node)
                                                                                      : std::vector<Status>{};
    // Nominated pods may be what rejects; then the filters alone are content.
    if (statuses.empty()) statuses.push_back(one.status);
    for (const auto& status : statuses)
      report.rejections.push_back(
          {std::string(status.plugin), std::string(code_name(status.code)), status.reasons, lacks.of(node, status.plugin)});
    for (const auto& rejection : report.rejections) report.lacks.insert(report.lacks.end(), rejection.lacks.begin(), rejection.lacks.end());
    rejected.emplace_back(distance(cluster_, *pod_, node, pins, report), node.name, one.node, std::move(report));
  }
  std::ranges::sort(rejected, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (auto& [key, name, index, report] : rejected) {
    nearest_.push_back(index);
    out_.nodes.push_back(std::move(report));
  }
}

void Explainer::placed() {
  for (const auto node : evaluation_.tied) out_.best_nodes.push_back(cluster_.node(node)->name);
  for (const auto& report : out_.nodes)
    if (!report.would_refuse.empty() && std::ranges::find(out_.best_nodes, report.name) != out_.best_nodes.end())
      out_.notes.push_back(report.would_refuse);
  if (!out_.notes.empty()) out_.notes.emplace_back("the scheduler's plugin NodeResourceTopologyMatch keeps pods away from such nodes");
  out_.verdict = out_.current_node.empty() ? Explanation::Verdict::kFits : Explanation::Verdict::kRuns;
  const std::string best = some_of(out_.best_nodes, kMostNamed);
  if (out_.current_node.empty()) {
    out_.summary =
        fmt::format("{} fits on {} of {} nodes; the best is {}", out_.pod, evaluation_.feasible.size(), cluster_.node_count(), best);
  } else {
    const bool is_best = std::ranges::find(out_.best_nodes, out_.current_node) != out_.best_nodes.end();
    out_.summary = fmt::format("{} runs on {}, {}", out_.pod, out_.current_node,
                               is_best ? "which is still the best place for it" : "but would go to " + best + " today");
  }
  if (evaluation_.nominated_first) {
    out_.why_winner.push_back("the pod was nominated to this node by preemption: it is taken before scores are looked at");
    return;
  }
  if (evaluation_.feasible.size() == 1) {
    out_.why_winner.push_back("it is the only node that takes the pod");
    return;
  }
  const NodeReport& winner = out_.nodes[0];
  const NodeReport& second = out_.nodes[std::min(out_.best_nodes.size(), evaluation_.feasible.size() - 1)];
  if (out_.best_nodes.size() > 1)
    out_.why_winner.push_back(
        fmt::format("{} nodes share the highest total {}; one of them is taken at random", out_.best_nodes.size(), winner.total));
  if (winner.total == second.total) return;
  std::vector<std::pair<std::int64_t, std::string>> gains;
  for (std::size_t i = 0; i < winner.scores.size(); ++i)
    if (const auto gain = winner.scores[i].second - second.scores[i].second; gain != 0) gains.emplace_back(gain, winner.scores[i].first);
  std::ranges::sort(gains, std::greater{});
  std::vector<std::string> parts;
  for (const auto& [gain, plugin] : gains) parts.push_back(fmt::format("{} {:+}", plugin, gain));
  out_.why_winner.push_back(fmt::format("{} beats {} by {} ({} to {}): {}", winner.name, second.name, winner.total - second.total,
                                        winner.total, second.total, fmt::join(parts, ", ")));
}

void Explainer::pending() {
  out_.verdict = Explanation::Verdict::kPending;
  const auto result = trial_.victims_for(pod_, &evaluation_);
  out_.message = fit_error_message(evaluation_.diagnosis, framework_.profile().era, result.status.message());
  if (!nearest_.empty()) out_.nearest_node = cluster_.node(nearest_[0])->name;
  out_.summary = out_.current_node.empty() ? fmt::format("{} fits on none of {} nodes", out_.pod, cluster_.node_count())
                                           : fmt::format("{} runs on {}, but today it would fit on none of {} nodes", out_.pod,
                                                         out_.current_node, cluster_.node_count());
  if (const auto pins = pinned_nodes(pod_->view()); !pins.empty()) {
    const auto all = cluster_.nodes();
    if (std::ranges::none_of(all, [&](const NodeInfo* node) { return is_pinned_to(pins, *node); }))
      out_.summary += fmt::format("; it is pinned to {}, which is not there", some_of(pins, 3));
  }
  relax(nearest_);
  out_.node_changes = node_changes(trial_, pod_, nearest_);
  plan_eviction(result);
}

std::vector<std::string> Explainer::feasible_after(const std::vector<const RelaxableConstraint*>& changes,
                                                   const std::vector<NodeIndex>& where) const {
  auto view = std::make_shared<model::PodView>(pod_->view());
  for (const auto* change : changes) change->apply(*view);
  // A term without a topology key is one that was given up.
  const auto is_dropped = [](const auto& term) { return term.topology_key.empty(); };
  view->required_affinity.erase_if(is_dropped);
  view->required_anti_affinity.erase_if(is_dropped);
  const PodInfoPtr changed = PodInfo::make(std::move(view), cluster_.era());
  std::vector<std::string> out;
  for (const auto index : trial_.fitting(*changed, where)) out.push_back(cluster_.node(index)->name);
  std::ranges::sort(out);
  return out;
}

void Explainer::relax(const std::vector<NodeIndex>& nearest) {
  std::vector<NodeIndex> where = nearest;
  if (where.empty())
    for (const NodeInfo* node : cluster_.nodes()) where.push_back(node->index);
  if (where.size() > options_.max_nodes_for_relaxations) where.resize(options_.max_nodes_for_relaxations);

  std::vector<model::Taint> taints;
  std::map<std::string, std::int64_t> largest_free;
  for (const auto index : where) {
    const NodeInfo& node = *cluster_.node(index);
    for (const auto& taint : untolerated(*pod_, node))
      if (std::ranges::find(taints, taint) == taints.end() && taints.size() < 16) taints.push_back(taint);
    for (const auto& one : shortages(cluster_, *pod_, node)) {
      if (one.resource == "pods") continue;
      const auto [at, is_new] = largest_free.emplace(one.resource, one.free);
      if (!is_new) at->second = std::max(at->second, one.free);
    }
  }
  const auto constraints = relaxable_constraints(*pod_, taints, {largest_free.begin(), largest_free.end()});
  std::vector<std::vector<std::size_t>> tried = {{}};
  for (std::size_t size = 1; size <= options_.max_relaxations_at_once && out_.relaxations.empty(); ++size) {
    std::vector<std::vector<std::size_t>> next;
    for (const auto& base : tried)
      for (std::size_t i = base.empty() ? 0 : base.back() + 1; i < constraints.size(); ++i) {
        auto set = base;
        set.push_back(i);
        std::vector<const RelaxableConstraint*> changes;
        for (const auto one : set) changes.push_back(&constraints[one]);
        auto nodes = feasible_after(changes, where);
        if (!nodes.empty()) {
          Relaxation relaxation;
          for (const auto* change : changes) relaxation.changes.push_back(change->text);
          relaxation.nodes = std::move(nodes);
          out_.relaxations.push_back(std::move(relaxation));
        }
        next.push_back(std::move(set));
      }
    tried = std::move(next);
    if (tried.size() > 256) break;
  }
  std::ranges::stable_sort(out_.relaxations, std::greater{}, [](const auto& one) { return one.nodes.size(); });
}

void Explainer::plan_eviction(const PostFilterResult& result) {
  const Candidate* choice = result.choice();
  PostFilterResult hypothetical;
  const bool is_allowed = choice != nullptr;
  if (!is_allowed && pod_->view().preemption_never) {
    // What it would take if its policy let it.
    auto view = std::make_shared<model::PodView>(pod_->view());
    view->preemption_never = false;
    hypothetical = trial_.victims_for(PodInfo::make(std::move(view), cluster_.era()), &evaluation_);
    choice = hypothetical.choice();
  }
  if (choice == nullptr) return;
  EvictionPlan plan;
  plan.node = cluster_.node(choice->node)->name;
  plan.is_allowed = is_allowed;
  const auto violates = budget_violations(cluster_, choice->victims);
  for (std::size_t i = 0; i < choice->victims.size(); ++i) {
    const auto& victim = *choice->victims[i];
    plan.victims.push_back(fmt::format("{} (priority {})", victim.key, victim.view().priority));
    if (victim.view().meta.controller() == nullptr) plan.orphans.push_back(victim.key);
    if (!violates[i]) continue;
    for (const auto& [key, budget] : cluster_.disruption_budgets())
      if (budget->meta.ns == victim.view().ns() && !budget->selector_is_empty && budget->selector.matches(victim.view().meta.labels) &&
          std::ranges::find(plan.broken_budgets, key) == plan.broken_budgets.end())
        plan.broken_budgets.push_back(key);
  }
  out_.eviction = std::move(plan);
}

}  // namespace

Explanation explain(const FrameworkPtr& framework, const Cluster& cluster, const PodInfoPtr& pod, const ExplainOptions& options) {
  Explanation out = Explainer(framework, cluster, pod, options).run();
  if (out.verdict == Explanation::Verdict::kPending) out.notes = missing_topology_keys(cluster, pod->view());
  return out;
}

std::string format_amount(std::string_view resource, std::int64_t amount) {
  // As people write them: 500m, 1.5, 32.
  if (resource == "cpu")
    return std::abs(amount) < 1000 && amount != 0 ? fmt::format("{}m", amount) : fmt::format("{}", static_cast<double>(amount) / 1000);
  const bool is_bytes = resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  if (!is_bytes) return std::to_string(amount);
  constexpr std::pair<std::int64_t, std::string_view> kUnits[] = {
      {std::int64_t{1} << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}};
  for (const auto& [size, unit] : kUnits) {
    if (amount >= size || amount <= -size)
      return amount % size == 0 ? fmt::format("{}{}", amount / size, unit)
                                : fmt::format("{:.1f}{}", static_cast<double>(amount) / static_cast<double>(size), unit);
  }
  return std::to_string(amount);
}

}  // namespace berth::placement
