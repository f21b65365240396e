#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "placement/engine.h"

namespace berth::placement {
namespace {

void collect_errors(std::vector<std::string>& errors, const Status& status) {
  errors.push_back(status.message());
  std::ranges::sort(errors);
  errors.erase(std::ranges::unique(errors).begin(), errors.end());
}

void fill_diagnosis(Evaluation& out, const Cluster& cluster, const std::vector<std::pair<std::string, std::size_t>>& not_listed) {
  Diagnosis& diagnosis = out.diagnosis;
  diagnosis.node_count = cluster.node_count();
  std::map<std::string, std::size_t> reasons;
  std::set<std::string_view> plugins;
  if (out.pre_filter.is_rejected()) {
    diagnosis.pre_filter = out.pre_filter;
    for (const auto& reason : out.pre_filter.reasons) reasons[reason] += diagnosis.node_count;
    plugins.insert(out.pre_filter.plugin);
  }
  for (const auto& [node, status, all] : out.rejected) {
    for (const auto& reason : status.reasons) ++reasons[reason];
    diagnosis.resolvable_nodes += status.code == Code::kUnschedulable;
    if (!status.plugin.empty()) plugins.insert(status.plugin);
    for (const auto& one : all) plugins.insert(one.plugin);
  }
  for (const auto& [reason, count] : not_listed) reasons[reason] += count;
  diagnosis.reasons.assign(reasons.begin(), reasons.end());
  diagnosis.plugins.assign(plugins.begin(), plugins.end());
}

void filter_node(const Framework& framework, const CycleState& state, const PodInfo& pod, const NodeInfo& node, Evaluation& out,
                 std::vector<const NodeInfo*>& feasible) {
  std::vector<Status> all;
  Status status = framework.run_filter_with_nominated(state, pod, node, &all);
  if (status.is_success()) {
    feasible.push_back(&node);
  } else if (status.is_error()) {
    collect_errors(out.errors, status);
  } else {
    out.rejected.push_back({node.index, std::move(status), std::move(all)});
  }
}

/// The nodes that PreFilter named and that are there, in order of arrival: looked up, so that naming one node does not cost a walk over
/// all.
std::vector<const NodeInfo*> named_nodes(const Cluster& cluster, const std::set<std::string>& names) {
  std::vector<const NodeInfo*> out;
  for (const auto& name : names)
    if (const NodeInfo* node = cluster.find_node(name); node != nullptr && node->node != nullptr) out.push_back(node);
  std::ranges::sort(out, {}, [&](const NodeInfo* node) { return cluster.arrival(node->index); });
  return out;
}

/// Filters every candidate; nodes that PreFilter left out are told so only when nothing else fits. Returns how many were not listed.
std::size_t filter_nodes(const Framework& framework, const CycleState& state, const PodInfo& pod, const Status& left_out,
                         bool list_left_out, Evaluation& out, std::vector<const NodeInfo*>& feasible) {
  const Cluster& cluster = state.cluster();
  if (!out.pre_filter_nodes) {
    for (const NodeInfo* node : cluster.nodes()) filter_node(framework, state, pod, *node, out, feasible);
    return 0;
  }
  const auto named = named_nodes(cluster, *out.pre_filter_nodes);
  for (const NodeInfo* node : named) filter_node(framework, state, pod, *node, out, feasible);
  if (!feasible.empty() || !out.errors.empty()) return 0;
  if (!list_left_out) return cluster.node_count() - named.size();
  for (const NodeInfo* node : cluster.nodes())
    if (!out.pre_filter_nodes->contains(node->name)) out.rejected.push_back({node->index, left_out, {}});
  return 0;
}

void score_nodes(const Framework& framework, CycleState& state, const PodInfo& pod, const std::vector<const NodeInfo*>& feasible,
                 Evaluation& out) {
  const Status prepared = framework.run_pre_score(state, pod, feasible);
  if (!prepared.is_success()) return collect_errors(out.errors, prepared);
  const auto rows = framework.run_score(state, pod, feasible);
  if (!rows) return collect_errors(out.errors, rows.error());
  for (const auto& row : *rows) out.scorers.push_back(row.plugin);
  for (std::size_t i = 0; i < feasible.size(); ++i) {
    Evaluation::Feasible one{feasible[i]->index, 0, {}};
    for (const auto& row : *rows) {
      one.scores.push_back(row.scores[i]);
      one.total += row.scores[i];
    }
    out.feasible.push_back(std::move(one));
  }
}

void pick_tied(const Framework& framework, const Cluster& cluster, const PodInfo& pod, Evaluation& out) {
  const auto& nominated = pod.view().nominated_node_name;
  if (framework.profile().era != Era::k120 && !nominated.empty()) {
    for (const auto& one : out.feasible) {
      if (cluster.node(one.node)->name != nominated) continue;
      out.tied = {one.node};
      out.nominated_first = true;
      return;
    }
  }
  // A single feasible node is taken without looking at scores.
  std::int64_t best = INT64_MIN;
  for (const auto& one : out.feasible) best = std::max(best, one.total);
  for (const auto& one : out.feasible)
    if (one.total == best) out.tied.push_back(one.node);
  std::ranges::sort(out.tied, {}, [&](NodeIndex node) -> const std::string& { return cluster.node(node)->name; });
}

}  // namespace

std::string fit_error_message(const Diagnosis& diagnosis, Era era, std::string_view post_filter_message) {
  std::string out = fmt::format("0/{} nodes are available:", diagnosis.node_count);
  if (era != Era::k120 && !diagnosis.pre_filter.is_success()) {
    out += fmt::format(" {}.", diagnosis.pre_filter.message());
  } else {
    std::vector<std::string> parts;
    for (const auto& [reason, count] : diagnosis.reasons) parts.push_back(fmt::format("{} {}", count, reason));
    std::ranges::sort(parts);
    if (!parts.empty() || era == Era::k120) out += fmt::format(" {}.", fmt::join(parts, ", "));
  }
  if (era != Era::k120 && !post_filter_message.empty()) out += fmt::format(" {}", post_filter_message);
  return out;
}

Evaluation evaluate(const Framework& framework, const Cluster& cluster, const PodInfo& pod, bool list_left_out) {
  Evaluation out;
  if (cluster.node_count() == 0) {
    out.errors.emplace_back("no nodes available to schedule pods");
    return out;
  }
  CycleState state = framework.new_cycle(cluster);
  std::vector<std::string_view> narrowed_by;
  std::vector<std::pair<std::string, std::size_t>> left_out_counts;
  PreFilterOutcome outcome = framework.run_pre_filter(state, pod, &narrowed_by);
  if (outcome.status.is_error()) {
    collect_errors(out.errors, outcome.status);
    return out;
  }
  out.pre_filter = std::move(outcome.status);
  if (out.pre_filter.is_success()) {
    out.pre_filter_nodes = std::move(outcome.node_names);
    const Status left_out = left_out_by(narrowed_by);
    std::vector<const NodeInfo*> feasible;
    const std::size_t not_listed = filter_nodes(framework, state, pod, left_out, list_left_out, out, feasible);
    if (not_listed != 0) left_out_counts.emplace_back(left_out.reasons[0], not_listed);
    if (out.errors.empty() && !feasible.empty()) score_nodes(framework, state, pod, feasible, out);
  }
  if (!out.errors.empty()) {
    out.feasible.clear();
    out.rejected.clear();
    return out;
  }
  if (out.feasible.empty()) fill_diagnosis(out, cluster, left_out_counts);
  pick_tied(framework, cluster, pod, out);
  return out;
}

}  // namespace berth::placement
