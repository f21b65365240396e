#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "placement/engine.h"

namespace berth::placement {
namespace {

void collect_errors(std::vector<std::string>& errors, const Status& status) {
  errors.push_back(status.message());
  std::ranges::sort(errors);
  errors.erase(std::ranges::unique(errors).begin(), errors.end());
}

void fill_diagnosis(Evaluation& out, const Cluster& cluster) {
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
  diagnosis.reasons.assign(reasons.begin(), reasons.end());
  diagnosis.plugins.assign(plugins.begin(), plugins.end());
}

/// Filters every candidate; nodes that PreFilter left out are listed only when nothing else fits.
std::vector<const NodeInfo*> filter_nodes(const Framework& framework, const CycleState& state, const PodInfo& pod,
                                          const std::vector<std::string_view>& narrowed_by, Evaluation& out) {
  std::vector<const NodeInfo*> feasible;
  std::vector<const NodeInfo*> left_out;
  for (const NodeInfo* node : state.cluster().nodes()) {
    if (out.pre_filter_nodes && !out.pre_filter_nodes->contains(node->name)) {
      left_out.push_back(node);
      continue;
    }
    Status status = framework.run_filter_with_nominated(state, pod, *node);
    if (status.is_success()) {
      feasible.push_back(node);
    } else if (status.is_error()) {
      collect_errors(out.errors, status);
    } else {
      Evaluation::Rejected rejected{node->index, std::move(status), {}};
      if (framework.profile().always_check_all_filters) rejected.all = framework.run_every_filter(state, pod, *node);
      out.rejected.push_back(std::move(rejected));
    }
  }
  if (feasible.empty() && out.errors.empty()) {
    for (const NodeInfo* node : left_out) {
      Status status = Status::unresolvable(fmt::format("node(s) didn't satisfy plugin(s) [{}]", fmt::join(narrowed_by, " ")));
      out.rejected.push_back({node->index, std::move(status), {}});
    }
  }
  return feasible;
}

void score_nodes(const Framework& framework, CycleState& state, const PodInfo& pod, const std::vector<const NodeInfo*>& feasible, Evaluation& out) {
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

Evaluation evaluate(const Framework& framework, const Cluster& cluster, const PodInfo& pod) {
  Evaluation out;
  if (cluster.node_count() == 0) {
    out.errors.emplace_back("no nodes available to schedule pods");
    return out;
  }
  CycleState state = framework.new_cycle(cluster);
  std::vector<std::string_view> narrowed_by;
  PreFilterOutcome outcome = framework.run_pre_filter(state, pod, &narrowed_by);
  if (outcome.status.is_error()) {
    collect_errors(out.errors, outcome.status);
    return out;
  }
  out.pre_filter = std::move(outcome.status);
  if (out.pre_filter.is_success()) {
    out.pre_filter_nodes = std::move(outcome.node_names);
    const auto feasible = filter_nodes(framework, state, pod, narrowed_by, out);
    if (out.errors.empty() && !feasible.empty()) score_nodes(framework, state, pod, feasible, out);
  }
  if (!out.errors.empty()) {
    out.feasible.clear();
    out.rejected.clear();
    return out;
  }
  if (out.feasible.empty()) fill_diagnosis(out, cluster);
  pick_tied(framework, cluster, pod, out);
  return out;
}

}  // namespace berth::placement
