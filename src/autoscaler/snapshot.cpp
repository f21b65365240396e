#include "autoscaler/snapshot.h"

#include <algorithm>

namespace berth::autoscaler {

std::optional<Duration> scale_up_delay(const Pod& pod) {
  const std::string* text = pod.view().meta.annotation(kPodScaleUpDelay);
  return text == nullptr ? std::nullopt : parse_go_duration(*text);
}

std::string_view consumed_request(const Pod& pod) {
  for (const std::string_view key : {kConsumeRequest, kOldConsumeRequest})
    if (const std::string* name = pod.view().meta.annotation(key); name != nullptr && !name->empty()) return *name;
  return {};
}

void PodSets::put(PodPtr pod) {
  const std::string key = pod->key();
  if (const auto known = all.find(key); known != all.end()) leave_group(*known->second);
  if (!pod->facts.group.empty() && !pod->view().is_terminal()) groups.add_member(pod->facts.group, {pod->view().meta.uid, key});
  const auto keep = [&](PodMap& map, bool belongs) {
    if (belongs)
      map[key] = pod;
    else if (const auto found = map.find(key); found != map.end())
      map.erase(found);
  };
  keep(unplaced, pod->view().node_name.empty());
  keep(below_zero, pod->view().priority < 0);
  keep(terminating, pod->facts.deletion_time.has_value());
  keep(consumers, !consumed_request(*pod).empty());
  keep(all, true);
}

void PodSets::leave_group(const Pod& pod) {
  if (!pod.facts.group.empty()) groups.remove_member(pod.facts.group, pod.view().meta.uid);
}

void PodSets::erase(std::string_view key) {
  if (const auto known = all.find(key); known != all.end()) leave_group(*known->second);
  for (PodMap* map : {&all, &unplaced, &below_zero, &terminating, &consumers})
    if (const auto found = map->find(key); found != map->end()) map->erase(found);
}

NodeTotals NodeTotals::of(const NodeFactsMap& nodes) {
  NodeTotals out;
  for (const auto& [name, facts] : nodes) {
    out.to_be_deleted += facts.is_to_be_deleted;
    out.candidates += facts.is_candidate;
    for (const std::string& key : facts.taints) ++out.taints[key];
    if (facts.is_working())
      ++out.working;
    else
      out.not_working.push_back(name);
    if (facts.is_to_be_deleted) continue;
    out.cores = placement::saturating_add(out.cores, facts.cores);
    out.memory_bytes = placement::saturating_add(out.memory_bytes, facts.memory_bytes);
  }
  return out;
}

bool is_startup_taint(std::string_view key) {
  return key.starts_with("ignore-taint.cluster-autoscaler.kubernetes.io/") ||
         key.starts_with("startup-taint.cluster-autoscaler.kubernetes.io/");
}

NodeFacts NodeFacts::of(const model::NodeView& node, std::string_view accelerator_label) {
  NodeFacts out;
  bool says_ready = false, is_broken = false;
  const auto see_time = [&](const std::string& text) { out.changed = std::max(out.changed, parse_rfc3339(text).value_or(TimePoint{})); };
  for (const model::NodeCondition& condition : node.conditions) {
    if (condition.type != "Ready" && condition.type != "DiskPressure" && condition.type != "NetworkUnavailable") continue;
    says_ready |= condition.type == "Ready";
    is_broken |= condition.type == "Ready" ? condition.status == "False" || condition.status == "Unknown" : condition.status == "True";
    see_time(condition.last_transition);
  }
  for (const model::Taint& taint : node.taints) {
    out.taints.push_back(taint.key);
    out.is_starting |= is_startup_taint(taint.key);
    out.is_to_be_deleted |= taint.key == kToBeDeletedTaint;
    out.is_candidate |= taint.key == kDeletionCandidateTaint;
    if (taint.key != "node.kubernetes.io/not-ready" && taint.key != "node.kubernetes.io/disk-pressure" &&
        taint.key != "node.kubernetes.io/network-unavailable")
      continue;
    is_broken = true;
    see_time(taint.time_added);
  }
  out.is_ready = says_ready && !is_broken;
  const auto has_device = [&](std::string_view resource) {
    const model::Quantity* amount = model::find_resource(node.allocatable, resource);
    return amount != nullptr && amount->sign() > 0;
  };
  const auto capacity = [&](std::string_view resource) {
    const model::Quantity* amount = model::find_resource(node.capacity, resource);
    return amount == nullptr ? 0 : std::max<std::int64_t>(amount->value(), 0);
  };
  out.cores = capacity("cpu");
  out.memory_bytes = capacity("memory");
  out.lacks_device = node.labels().get(accelerator_label) != nullptr && std::ranges::none_of(kGpuResources, has_device);
  out.is_cordoned = node.unschedulable;
  out.delays_deletion = std::ranges::any_of(node.meta.annotations, [](const auto& one) { return one.first.starts_with(kDelayDeletion); });
  out.created = parse_rfc3339(node.meta.creation_timestamp).value_or(TimePoint{});
  return out;
}

Readiness readiness_of(const NodeFacts& node, TimePoint now) {
  if (node.is_working()) return Readiness::kReady;
  constexpr auto kMaxStartup = std::chrono::minutes(15);
  return node.created + kMaxStartup > now ? Readiness::kNotStarted : Readiness::kUnready;
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
