#include "autoscaler/pass_metrics.h"

#include <set>

namespace berth::autoscaler {
namespace {

double number(auto value) { return static_cast<double>(value); }

const std::vector<double>& length_bounds() {
  static const std::vector<double> bounds = {0.01, 0.05, 0.1,  0.5, 1,    2.5, 5,  7.5, 10,  12.5, 15,
                                             17.5, 20,   22.5, 25,  27.5, 30,  50, 75,  100, 1000};
  return bounds;
}

/// The kind of a taint as dashboards count them (utils/taints).
std::string_view kind_of_taint(std::string_view key) {
  if (key == kToBeDeletedTaint || key == kDeletionCandidateTaint) return key;
  if (is_startup_taint(key)) return "startup-taint";
  if (key.starts_with("status-taint.cluster-autoscaler.kubernetes.io/")) return "status-taint";
  if (key.starts_with("node.kubernetes.io/") || key.starts_with("node.cloudprovider.kubernetes.io/")) return key;
  return "other";
}

}  // namespace

PassMetrics::PassMetrics(metrics::Registry& registry) : registry_(registry) {
  // What never happens here is nought, not missing: node groups are not made, and pods of one controller are told apart by what they are.
  gauge("nap_enabled", "[ALPHA] Whether or not Node Autoprovisioning is enabled. 1 if it is, 0 otherwise.", 0);
  for (const char* made : {"created", "deleted"})
    count(std::string(made) + "_node_groups_total", std::string("node groups ") + made + " by Node Autoprovisioning", 0);
  for (const char* deleted : {"true", "false"}) removal_latency(deleted);
  gauge("overflowing_controllers_count",
        "[ALPHA] Number of controllers that own a large set of heterogenous pods, preventing CA from treating these pods as equivalent.",
        0);
  for (const char* type : {"cloudProviderError", "apiCallError", "internalError"})
    count("errors_total", "CA loops failed due to an error", 0, {{"type", type}});
  for (const char* result : {"succeeded", "failed"}) count("evicted_pods_total", "pods evicted by CA", 0, {{"eviction_result", result}});
  for (const char* reason : {"empty", "underutilized", "unready"})
    count("scaled_down_nodes_total", "nodes removed by CA", 0, {{"reason", reason}});
  for (const char* reason : {"cloudProviderError", "timeout"}) {
    count("failed_scale_ups_total", "times scale-up operation has failed", 0, {{"reason", reason}});
    count("failed_node_creations_total", "nodes which failed to be added by CA", 0, {{"reason", reason}});
  }
  for (const char* direction : {"up", "down"})
    for (const char* reason : {"CpuResourceLimit", "MemoryResourceLimit"}) skip(direction, reason, 0);
  count("scaled_up_nodes_total", "nodes added by CA", 0);
  count("old_unregistered_nodes_removed_count", "unregistered nodes removed by CA", 0);
}

void PassMetrics::gauge(const std::string& name, const std::string& help, double value, metrics::Labels labels) {
  registry_.gauge("cluster_autoscaler_" + name, help, std::move(labels)).set(value);
}
void PassMetrics::count(const std::string& name, const std::string& what, std::int64_t amount, metrics::Labels labels) {
  registry_.counter("cluster_autoscaler_" + name, "[ALPHA] Number of " + what + ".", std::move(labels)).add(number(amount));
}
void PassMetrics::observe(const std::string& function, Duration length) {
  registry_
      .histogram("cluster_autoscaler_function_duration_seconds", "[ALPHA] Time taken by various parts of CA main loop.", length_bounds(),
                 {{"function", function}})
      .observe(std::chrono::duration<double>(length).count());
  // The summary of the same, which has no quantiles there either.
  const std::string summary = "cluster_autoscaler_function_duration_quantile_seconds",
                    help = "[ALPHA] Quantiles of time taken by various parts of CA main loop.";
  registry_.counter(summary + "_sum", help, {{"function", function}}).add(std::chrono::duration<double>(length).count());
  registry_.counter(summary + "_count", help, {{"function", function}}).add(1);
}
void PassMetrics::skip(const char* direction, const char* reason, std::int64_t times) {
  count("skipped_scale_events_count", "times scaling was skipped because of a limit", times,
        {{"direction", direction}, {"reason", reason}});
}
metrics::Histogram& PassMetrics::removal_latency(const char* deleted) {
  return registry_.histogram("cluster_autoscaler_node_removal_latency_seconds",
                             "[ALPHA] Latency from when an unneeded node is eligible for scale down until it is removed (deleted=true) or "
                             "it became needed again (deleted=false).",
                             metrics::exponential_buckets(1, 1.5, 19), {{"deleted", deleted}});
}

/// As the cluster autoscaler counts since 1.36: nodes without a GPU have empty labels, which are none.
metrics::Labels PassMetrics::with_gpu(metrics::Labels labels, const Gpu& gpu) {
  if (!gpu.resource.empty()) {
    labels.emplace_back("gpu_resource_name", gpu.resource);
    labels.emplace_back("gpu_name", gpu.name);
  }
  return labels;
}

void PassMetrics::pass(const Actions& actions, const Options& options, const NodeFactsMap& nodes, const NodeTotals& totals, TimePoint now,
                       Duration length) {
  const Status& status = actions.status;
  const auto active = [&](const char* activity) {
    gauge("last_activity", "[ALPHA] Last time certain part of CA logic executed.",
          number(std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count()), {{"activity", std::string(activity)}});
  };
  active("main");
  if (status.is_healthy) active("autoscaling");
  if (status.plan.result != ScaleUpPlan::Result::kNotNeeded) active("scaleUp");
  if (actions.grow.empty() && !status.is_scale_down_paused && options.scale_down_enabled) active("scaleDown");
  observe("main", length);
  for (const auto& [function, took] : status.lengths) observe(function, took);
  describe_cluster(status, options);
  describe_groups(status.groups);
  describe_scale_down(status);
  count_taints(totals);
  count_skipped(status);
  const auto late = std::ranges::count(actions.delete_instances, false, &Deletion::has_failed);
  count("old_unregistered_nodes_removed_count", "unregistered nodes removed by CA", late);
  for (const Note& note : actions.notes)
    if (note.reason == "ScaleUpTimedOut")
      count("failed_scale_ups_total", "times scale-up operation has failed", 1, {{"reason", "timeout"}});
  count("failed_node_creations_total", "nodes which failed to be added by CA", late, {{"reason", "timeout"}});
  for (const Resize& resize : actions.give_up)
    count("failed_node_creations_total", "nodes which failed to be added by CA", resize.from - resize.to, {{"reason", "timeout"}});
  for (const NodeRemoval& removal : actions.remove) {
    const auto facts = nodes.find(removal.node);
    const bool is_working = facts == nodes.end() || facts->second.is_working();
    leaving_[removal.node] = {!is_working ? "unready" : removal.is_empty ? "empty" : "underutilized", gpus_[removal.group], now};
    // Its time of being unneeded was over before this pass, if it was known to the last one.
    if (const auto eligible = eligible_.find(removal.node); eligible != eligible_.end())
      leaving_[removal.node].eligible = std::min(now, eligible->second);
  }
  follow_unneeded(status, options, now);
}

void PassMetrics::describe_cluster(const Status& status, const Options& options) {
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
  gauge("node_groups_count", "[ALPHA] Number of node groups managed by CA.", 0, {{"node_group_type", "autoprovisioned"}});
  gauge("unschedulable_pods_count", "[ALPHA] Number of unschedulable pods in the cluster.", number(status.pending_pods),
        {{"type", "unschedulable"}});
  gauge("unschedulable_pods_count", "[ALPHA] Number of unschedulable pods in the cluster.", 0, {{"type", "scheduler_unprocessed"}});
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
}

void PassMetrics::describe_groups(const std::vector<GroupStatus>& groups) {
  for (const GroupStatus& group : groups) {
    const metrics::Labels label{{"node_group", group.id}};
    gauge("node_group_min_count", "[ALPHA] Minimum number of nodes in the node group", number(group.min), label);
    gauge("node_group_max_count", "[ALPHA] Maximum number of nodes in the node group", number(group.max), label);
    gauge("node_group_target_count", "[ALPHA] Target number of nodes in the node group by CA.", number(group.target), label);
    gauge("node_group_healthiness", "[ALPHA] Whether or not node group is healthy enough for autoscaling. 1 if it is, 0 otherwise.",
          group.is_healthy ? 1 : 0, label);
  }
  for (const GroupStatus& group : groups)
    gauge("node_group_backoff_status", "[ALPHA] Whether or not node group is backoff for not autoscaling. 1 if it is, 0 otherwise.",
          group.is_in_backoff ? 1 : 0, {{"node_group", group.id}, {"reason", "cloudProviderError"}});
  gpus_.clear();
  for (const GroupStatus& group : groups) gpus_[group.id] = {group.gpu_resource, group.gpu_name};
}

void PassMetrics::describe_scale_down(const Status& status) {
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

/// Nodes that were due to go and are needed again.
void PassMetrics::follow_unneeded(const Status& status, const Options& options, TimePoint now) {
  std::map<std::string, TimePoint> eligible;
  for (const auto& [node, since] : status.unneeded) eligible[node] = since + options.unneeded_time;
  for (const auto& [node, when] : eligible_)
    if (when < now && !eligible.contains(node) && !leaving_.contains(node))
      removal_latency("false").observe(std::chrono::duration<double>(now - when).count());
  eligible_ = std::move(eligible);
}

void PassMetrics::count_taints(const NodeTotals& totals) {
  std::map<std::string_view, std::int64_t> counts;
  for (const auto& [key, taints] : totals.taints) counts[kind_of_taint(key)] += taints;
  for (const auto& [kind, taints] : counts)
    gauge("node_taints_count", "[ALPHA] Number of taints per type used in the cluster.", number(taints), {{"type", std::string(kind)}});
  for (const std::string& kind : known_taints_)
    if (!counts.contains(kind)) gauge("node_taints_count", "[ALPHA] Number of taints per type used in the cluster.", 0, {{"type", kind}});
  for (const auto& [kind, taints] : counts) known_taints_.emplace(kind);
}

/// Groups that a limit of the whole cluster kept from growing, and nodes that a minimum keeps.
void PassMetrics::count_skipped(const Status& status) {
  std::set<std::string_view> cpu, memory;
  for (const auto& [pod, why] : status.plan.not_helped)
    for (const auto& [group, refusal] : *why)
      for (const std::string& resource : refusal.over_limits) {
        if (resource == "cpu") cpu.insert(group);
        if (resource == "memory") memory.insert(group);
      }
  skip("up", "CpuResourceLimit", std::ssize(cpu));
  skip("up", "MemoryResourceLimit", std::ssize(memory));
}

void PassMetrics::failed(const std::string& type) { count("errors_total", "CA loops failed due to an error", 1, {{"type", type}}); }

void PassMetrics::grown(const std::string& group, std::int64_t nodes) {
  const Gpu& gpu = gpus_[group];
  count("scaled_up_nodes_total", "nodes added by CA", nodes, with_gpu({}, gpu));
  if (!gpu.resource.empty())
    count("scaled_up_gpu_nodes_total", "GPU nodes added by CA, by GPU name", nodes,
          {{"gpu_resource_name", gpu.resource}, {"gpu_name", gpu.name}});
}

void PassMetrics::grow_failed(const std::string& group) {
  const Gpu& gpu = gpus_[group];
  failed("cloudProviderError");
  count("failed_scale_ups_total", "times scale-up operation has failed", 1, with_gpu({{"reason", "cloudProviderError"}}, gpu));
  count("failed_node_creations_total", "nodes which failed to be added by CA", 1, {{"reason", "cloudProviderError"}});
  if (!gpu.resource.empty())
    count("failed_gpu_scale_ups_total", "times scale-up operation has failed for GPU node group", 1,
          {{"reason", "cloudProviderError"}, {"gpu_resource_name", gpu.resource}, {"gpu_name", gpu.name}});
}

void PassMetrics::removed(const std::string& node, TimePoint now) {
  const auto found = leaving_.find(node);
  if (found == leaving_.end()) return;
  const auto& [reason, gpu, eligible] = found->second;
  count("scaled_down_nodes_total", "nodes removed by CA", 1, with_gpu({{"reason", reason}}, gpu));
  removal_latency("true").observe(std::chrono::duration<double>(now - eligible).count());
  if (!gpu.resource.empty())
    count("scaled_down_gpu_nodes_total", "GPU nodes removed by CA, by reason and GPU name", 1,
          {{"reason", reason}, {"gpu_resource_name", gpu.resource}, {"gpu_name", gpu.name}});
  leaving_.erase(found);
}

void PassMetrics::evicted(std::int64_t pods, bool succeeded) {
  count("evicted_pods_total", "pods evicted by CA", pods, {{"eviction_result", succeeded ? "succeeded" : "failed"}});
}

}  // namespace berth::autoscaler
