#include "autoscaler/snapshot.h"

#include <algorithm>

namespace berth::autoscaler {
namespace {

bool is_named(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return false;
}

}  // namespace

PodFacts PodFacts::parse(const json::Value& pod) {
  PodFacts out;
  const json::Object& annotations = json::get_object(pod, {"metadata", "annotations"});
  out.is_mirror = annotations.contains("kubernetes.io/config.mirror");
  for (const json::Value& owner : json::get_array(pod, {"metadata", "ownerReferences"}))
    if (json::get_bool(owner, {"controller"}) && json::get_string(owner, {"kind"}) == "DaemonSet") out.is_daemon = true;
  const std::string_view harmless = json::get_string(pod, {"metadata", "annotations", kSafeToEvictLocalVolumes});
  for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"})) {
    const bool is_local = json::find(volume, "hostPath") != nullptr ||
                          (json::find(volume, "emptyDir") != nullptr && json::get_string(volume, {"emptyDir", "medium"}) != "Memory");
    if (is_local && !is_named(harmless, json::get_string(volume, {"name"}))) out.has_local_storage = true;
  }
  for (const json::Value& condition : json::get_array(pod, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "PodScheduled" && json::get_string(condition, {"status"}) == "False" &&
        json::get_string(condition, {"reason"}) == "Unschedulable")
      out.is_unschedulable = true;
  const std::string_view phase = json::get_string(pod, {"status", "phase"}), restart = json::get_string(pod, {"spec", "restartPolicy"});
  out.is_finished = phase == "Failed" || (phase == "Succeeded" && restart != "Always");
  const std::int64_t grace = json::get_int(pod, {"spec", "terminationGracePeriodSeconds"}, 30);
  if (const auto deleted = parse_rfc3339(json::get_string(pod, {"metadata", "deletionTimestamp"})))
    out.deletion_time = *deleted + std::chrono::seconds(grace);
  out.created = parse_rfc3339(json::get_string(pod, {"metadata", "creationTimestamp"})).value_or(TimePoint{});
  return out;
}

PodPtr Pod::parse(const json::Value& pod, placement::Era era) {
  auto out = std::make_shared<Pod>();
  out->info = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod)), era);
  out->facts = PodFacts::parse(pod);
  return out;
}

Readiness readiness_of(const model::NodeView& node, TimePoint now) {
  for (const model::NodeCondition& condition : node.conditions)
    if (condition.type == "Ready" && condition.status == "True") return Readiness::kReady;
  constexpr auto kMaxStartup = std::chrono::minutes(15);
  const TimePoint created = parse_rfc3339(node.meta.creation_timestamp).value_or(TimePoint{});
  return created + kMaxStartup > now ? Readiness::kNotStarted : Readiness::kUnready;
}

bool has_taint(const model::NodeView& node, std::string_view key) {
  return std::ranges::any_of(node.taints, [&](const model::Taint& taint) { return taint.key == key; });
}

placement::PodInfoPtr daemon_pod(const json::Value& daemon_set, placement::Era era) {
  const json::Value* pod_template = json::find(daemon_set, {"spec", "template"});
  json::Value pod = pod_template != nullptr ? *pod_template : json::Value(json::Object{});
  json::set(pod, {"metadata", "namespace"}, json::Value(json::get_string(daemon_set, {"metadata", "namespace"})));
  json::set(pod, {"metadata", "name"}, json::Value(json::get_string(daemon_set, {"metadata", "name"})));
  json::Object owner{{"apiVersion", "apps/v1"},
                     {"kind", "DaemonSet"},
                     {"name", json::get_string(daemon_set, {"metadata", "name"})},
                     {"uid", json::get_string(daemon_set, {"metadata", "uid"})},
                     {"controller", true}};
  json::set(pod, {"metadata", "ownerReferences"}, json::Array{std::move(owner)});
  json::Array tolerations = json::get_array(pod, {"spec", "tolerations"});
  for (const auto& [key, effect] :
       {std::pair("node.kubernetes.io/not-ready", "NoExecute"), std::pair("node.kubernetes.io/unreachable", "NoExecute"),
        std::pair("node.kubernetes.io/disk-pressure", "NoSchedule"), std::pair("node.kubernetes.io/memory-pressure", "NoSchedule"),
        std::pair("node.kubernetes.io/pid-pressure", "NoSchedule"), std::pair("node.kubernetes.io/unschedulable", "NoSchedule")})
    tolerations.push_back(json::Object{{"key", key}, {"operator", "Exists"}, {"effect", effect}});
  json::set(pod, {"spec", "tolerations"}, std::move(tolerations));
  return placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod)), era);
}

}  // namespace berth::autoscaler
