#include "autoscaler/pass_log.h"

#include <fmt/format.h>

#include "base/log.h"

namespace berth::autoscaler {

std::vector<std::string> describe_pass(const Actions& actions, std::int64_t verbosity, Duration length) {
  const Status& status = actions.status;
  std::vector<std::string> out;
  const auto say = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    out.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  if (verbosity < 2) return out;
  say("pass of {} ms: {} pods find no node, {} fit on nodes that are there or coming; {} groups grow, {} nodes go; {} unneeded, {} stay{}",
      std::chrono::duration_cast<std::chrono::milliseconds>(length).count(), status.pending_pods, status.placed_in_thought,
      actions.grow.size(), actions.remove.size(), status.unneeded.size(), status.unremovable.size(),
      status.is_healthy ? "" : "; the cluster is unhealthy");
  if (verbosity < 4) return out;
  for (const ScaleUpPlan::Option& option : status.plan.options)
    say("option: {} with {} more nodes for {} pods", option.group, option.nodes, option.pods);
  for (const auto& [pod, why] : status.plan.not_helped) say("pod {}: {}", pod->key(), fmt::join(count_reasons(*why), ", "));
  for (const RequestUpdate& update : actions.requests)
    for (const RequestCondition& one : update.conditions)
      say("ProvisioningRequest {}: {}={} {}", update.request->key(), one.type, one.status, one.reason);
  for (const auto& [node, since] : status.unneeded) say("node {}: unneeded since {}", node, format_rfc3339(since));
  for (const Unremovable& node : status.unremovable) say("node {} stays: {}", node.node, to_string(node));
  if (verbosity < 6) return out;
  for (const GroupStatus& group : status.groups)
    say("group {}: {} of {} to {}; {} ready, {} unready, {} not started, {} coming{}{}", group.id, group.target, group.min, group.max,
        group.ready, group.unready, group.not_started, group.upcoming, group.is_healthy ? "" : ", unhealthy",
        group.is_in_backoff ? ", pauses: " + group.backoff_message : "");
  return out;
}

void log_pass(const Actions& actions, std::int64_t verbosity, Duration length) {
  for (const std::string& line : describe_pass(actions, verbosity, length)) log::info("autoscaler", "{}", line);
}

}  // namespace berth::autoscaler
