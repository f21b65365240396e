#include "autoscaler/status_report.h"

#include <fmt/format.h>

#include "autoscaler/advice.h"
#include "base/json.h"

namespace berth::autoscaler {
namespace {

json::Object node_counts(const GroupStatus& counts) {
  return {{"registered", json::Object{{"total", counts.ready + counts.unready + counts.not_started + counts.being_deleted},
                                      {"ready", counts.ready},
                                      {"notStarted", counts.not_started},
                                      {"beingDeleted", counts.being_deleted},
                                      {"unready", json::Object{{"total", counts.unready}, {"resourceUnready", counts.resource_unready}}}}},
          {"longUnregistered", counts.long_unregistered},
          {"unregistered", counts.unregistered}};
}

/// What the cluster autoscaler's document has no place for: why nodes stay that would be worth removing, why pods get no node, and what the
/// pass had no time for. Long lists are cut.
json::Object why_not(const Status& status) {
  constexpr std::size_t kMost = 50;
  json::Object out;
  json::Array nodes, pods;
  for (const Unremovable& node : status.unremovable) {
    if (node.reason == "NotUnderutilized" || nodes.size() >= kMost) continue;
    json::Object entry{{"name", node.node}, {"reason", to_string(node)}};
    if (std::string advice = advice_for(node); !advice.empty()) entry["advice"] = std::move(advice);
    nodes.push_back(std::move(entry));
  }
  for (const auto& [pod, why] : status.plan.not_helped)
    if (pods.size() < kMost)
      pods.push_back(json::Object{{"name", pod->key()}, {"reason", fmt::format("{}", fmt::join(count_reasons(*why), ", "))}});
  if (!nodes.empty()) out["nodes"] = std::move(nodes);
  if (!pods.empty()) out["pods"] = std::move(pods);
  if (!status.left_groups.empty()) out["groupsNotLookedAt"] = status.left_groups.size();
  if (!status.left_nodes.empty()) out["nodesNotLookedAt"] = status.left_nodes.size();
  json::Array problems(status.problems.begin(), status.problems.end());
  if (!problems.empty()) out["problems"] = std::move(problems);
  return out;
}

}  // namespace

std::string StatusReport::since(const std::string& what, std::string_view value, TimePoint now) {
  auto& [last, when] = last_[what];
  if (last != value || when.empty()) {
    last = value;
    when = format_rfc3339(now);
  }
  return when;
}

std::string StatusReport::write(const Status& status, TimePoint now) {
  const std::string probe = format_rfc3339(now);
  const auto condition = [&](const std::string& what, std::string_view value) {
    return json::Object{{"status", value}, {"lastProbeTime", probe}, {"lastTransitionTime", since(what, value, now)}};
  };
  json::Object whole;
  json::Object health = condition("health", status.is_healthy ? "Healthy" : "Unhealthy");
  GroupStatus counts = status.whole;
  counts.being_deleted = 0;  // They are among the others already.
  health["nodeCounts"] = node_counts(counts);
  whole["health"] = std::move(health);
  whole["scaleUp"] = condition("scaleUp", status.whole.is_growing ? "InProgress" : "NoActivity");
  json::Object down = condition("scaleDown", status.whole.candidates > 0 ? "CandidatesPresent" : "NoCandidates");
  if (status.whole.candidates > 0) down["candidates"] = status.whole.candidates;
  whole["scaleDown"] = std::move(down);
  json::Array groups;
  for (const GroupStatus& group : status.groups) {
    json::Object group_health = condition(group.id + " health", group.is_healthy ? "Healthy" : "Unhealthy");
    group_health["nodeCounts"] = node_counts(group);
    group_health["cloudProviderTarget"] = group.target;
    group_health["minSize"] = group.min;
    group_health["maxSize"] = group.max;
    json::Object up = condition(group.id + " scaleUp", group.is_in_backoff ? "Backoff" : group.is_growing ? "InProgress" : "NoActivity");
    if (group.is_in_backoff) up["backoffInfo"] = json::Object{{"errorCode", "cloudProviderError"}, {"errorMessage", group.backoff_message}};
    json::Object group_down = condition(group.id + " scaleDown", group.candidates > 0 ? "CandidatesPresent" : "NoCandidates");
    if (group.candidates > 0) group_down["candidates"] = group.candidates;
    groups.push_back(json::Object{
        {"name", group.id}, {"health", std::move(group_health)}, {"scaleUp", std::move(up)}, {"scaleDown", std::move(group_down)}});
  }
  json::Object out{{"time", probe}, {"autoscalerStatus", "Running"}, {"clusterWide", std::move(whole)}, {"nodeGroups", std::move(groups)}};
  if (json::Object why = why_not(status); !why.empty()) out["whyNot"] = std::move(why);
  return json::to_yaml(out);
}

void publish_metrics(metrics::Registry& registry, const Status& status, const Options& options) {
  const auto gauge = [&](const std::string& name, const std::string& help, double value, metrics::Labels labels = {}) {
    registry.gauge("cluster_autoscaler_" + name, help, std::move(labels)).set(value);
  };
  const auto number = [](auto value) { return static_cast<double>(value); };
  gauge("cluster_safe_to_autoscale", "[ALPHA] Whether or not cluster is healthy enough for autoscaling. 1 if it is, 0 otherwise.",
        status.is_healthy ? 1 : 0);
  const std::string nodes = "[ALPHA] Number of nodes in cluster.";
  gauge("nodes_count", nodes, number(status.whole.ready), {{"state", "ready"}});
  gauge("nodes_count", nodes, number(status.whole.unready), {{"state", "unready"}});
  gauge("nodes_count", nodes, number(status.whole.not_started), {{"state", "notStarted"}});
  gauge("nodes_count", nodes, number(status.whole.unregistered), {{"state", "unregistered"}});
  gauge("nodes_count", nodes, number(status.whole.long_unregistered), {{"state", "longUnregistered"}});
  gauge("node_groups_count", "[ALPHA] Number of node groups managed by CA.", number(status.groups.size()),
        {{"node_group_type", "autoscaled"}});
  gauge("unschedulable_pods_count", "[ALPHA] Number of unschedulable pods in the cluster.", number(status.pending_pods),
        {{"type", "unschedulable"}});
  std::int64_t most = 0;
  for (const GroupStatus& group : status.groups) most += group.max;
  gauge("max_nodes_count", "[ALPHA] Maximum number of nodes in all node groups",
        number(options.max_nodes_total > 0 ? std::min(most, options.max_nodes_total) : most));
  const auto total = [&](std::string_view name) {
    const auto found = status.totals.find(name);
    return found == status.totals.end() ? 0.0 : number(found->second);
  };
  gauge("cluster_cpu_current_cores", "[ALPHA] Current number of cores in the cluster, minus deleting nodes.", total("cpu"));
  gauge("cluster_memory_current_bytes", "[ALPHA] Current number of bytes of memory in the cluster, minus deleting nodes.", total("memory"));
  const auto limits = [&](const std::string& name, const std::string& help, const Bounds& bounds) {
    gauge(name, help, number(bounds.min), {{"direction", "minimum"}});
    if (bounds.max != INT64_MAX) gauge(name, help, number(bounds.max), {{"direction", "maximum"}});
  };
  limits("cpu_limits_cores", "[ALPHA] Minimum and maximum number of cores in the cluster.", options.cores);
  limits("memory_limits_bytes", "[ALPHA] Minimum and maximum number of bytes of memory in cluster.", options.memory_bytes);
  for (const GroupStatus& group : status.groups) {
    const metrics::Labels label{{"node_group", group.id}};
    gauge("node_group_min_count", "[ALPHA] Minimum number of nodes in the node group", number(group.min), label);
    gauge("node_group_max_count", "[ALPHA] Maximum number of nodes in the node group", number(group.max), label);
    gauge("node_group_target_count", "[ALPHA] Target number of nodes in the node group by CA.", number(group.target), label);
    gauge("node_group_healthiness", "[ALPHA] Whether or not node group is healthy enough for autoscaling. 1 if it is, 0 otherwise.",
          group.is_healthy ? 1 : 0, label);
  }
  for (const GroupStatus& group : status.groups)
    gauge("node_group_backoff_status", "[ALPHA] Whether or not node group is backoff for not autoscaling. 1 if it is, 0 otherwise.",
          group.is_in_backoff ? 1 : 0, {{"node_group", group.id}, {"reason", "cloudProviderError"}});
  gauge("pending_node_deletions", "[ALPHA] Number of nodes that haven't been removed or aborted after finished scale-down phase.",
        number(status.whole.being_deleted));
  gauge("unneeded_nodes_count", "[ALPHA] Number of nodes currently considered unneeded by CA.", number(status.unneeded.size()));
  gauge("scale_down_in_cooldown", "[ALPHA] Whether or not the scale down is in cooldown. 1 if its, 0 otherwise.",
        status.is_scale_down_paused ? 1 : 0);
  std::map<std::string_view, int> stays;
  for (const Unremovable& node : status.unremovable) ++stays[node.reason];
  for (const std::string_view reason :
       {"NotUnderutilized", "BlockedByPod", "NoPlaceToMovePods", "NotUnneededLongEnough", "NodeGroupMinSizeReached",
        "ScaleDownDisabledAnnotation", "MinimalResourceLimitExceeded", "CurrentlyBeingDeleted", "NotUnreadyLongEnough"})
    gauge("unremovable_nodes_count", "[ALPHA] Number of nodes currently considered unremovable by CA.", number(stays[reason]),
          {{"reason", std::string(reason)}});
}

}  // namespace berth::autoscaler
