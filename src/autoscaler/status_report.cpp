#include "autoscaler/status_report.h"

#include <fmt/format.h>

#include "autoscaler/advice.h"
#include "base/json.h"

namespace berth::autoscaler {
namespace {

/// Stands in the document for the time of the look: a time that it never is.
constexpr std::string_view kProbeTime = "2006-01-02T15:04:05Z";

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
  const std::string_view probe = kProbeTime;
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
  // Most passes find what the last one found, at another time.
  if (json::Value document = std::move(out); text_.empty() || !json::equal(document, document_)) {
    text_ = json::to_yaml(document);
    document_ = std::move(document);
  }
  const std::string time = format_rfc3339(now);
  std::string text;
  for (std::size_t from = 0, at = 0; at != std::string::npos; from = at + kProbeTime.size()) {
    at = text_.find(kProbeTime, from);
    text.append(text_, from, at == std::string::npos ? at : at - from);
    if (at != std::string::npos) text += time;
  }
  return text;
}

}  // namespace berth::autoscaler
