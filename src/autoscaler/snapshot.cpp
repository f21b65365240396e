#include "autoscaler/snapshot.h"

#include <algorithm>

#include "placement/groups/group_placement.h"

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
  if (json::get_string(pod, {"metadata", "annotations", kDaemonPod}) == "true") out.is_daemon = true;
  out.scale_up_delay = parse_go_duration(json::get_string(pod, {"metadata", "annotations", kPodScaleUpDelay}));
  const std::string_view harmless = json::get_string(pod, {"metadata", "annotations", kSafeToEvictLocalVolumes});
  for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"})) {
    const bool is_local = json::find(volume, "hostPath") != nullptr ||
                          (json::find(volume, "emptyDir") != nullptr && json::get_string(volume, {"emptyDir", "medium"}) != "Memory");
    if (is_local && !is_named(harmless, json::get_string(volume, {"name"}))) out.has_local_storage = true;
  }
  for (const json::Value& condition : json::get_array(pod, {"status", "conditions"})) {
    const auto is = [&](std::string_view type, std::string_view status, std::string_view reason) {
      return json::get_string(condition, {"type"}) == type && json::get_string(condition, {"status"}) == status &&
             json::get_string(condition, {"reason"}) == reason;
    };
    out.is_unschedulable |= is("PodScheduled", "False", "Unschedulable");
    out.is_evicted |= is("DisruptionTarget", "True", "EvictionByEvictionAPI");
    out.is_disrupted |= json::get_string(condition, {"type"}) == "DisruptionTarget" && json::get_string(condition, {"status"}) == "True";
  }
  const std::string_view phase = json::get_string(pod, {"status", "phase"}), restart = json::get_string(pod, {"spec", "restartPolicy"});
  out.is_finished = phase == "Failed" || (phase == "Succeeded" && restart != "Always");
  const std::int64_t grace = json::get_int(pod, {"spec", "terminationGracePeriodSeconds"}, 30);
  if (const auto deleted = parse_rfc3339(json::get_string(pod, {"metadata", "deletionTimestamp"})))
    out.deletion_time = *deleted + std::chrono::seconds(grace);
  out.created = parse_rfc3339(json::get_string(pod, {"metadata", "creationTimestamp"})).value_or(TimePoint{});
  out.group = placement::group_key_of(pod);
  for (const std::string_view key : {kOldConsumeRequest, kConsumeRequest})
    if (const auto name = json::get_string(pod, {"metadata", "annotations", key}); !name.empty()) out.consumes = name;
  return out;
}

PodPtr Pod::parse(const json::Value& pod, placement::Era era) {
  auto out = std::make_shared<Pod>();
  out->info = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod)), era);
  out->facts = PodFacts::parse(pod);
  return out;
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
  keep(consumers, !pod->facts.consumes.empty());
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

NodeFacts NodeFacts::parse(const json::Value& node, std::string_view accelerator_label) {
  const auto time = [](const json::Value& from, std::string_view key) {
    return parse_rfc3339(json::get_string(from, {key})).value_or(TimePoint{});
  };
  NodeFacts out;
  bool says_ready = false, is_broken = false;
  for (const json::Value& condition : json::get_array(node, {"status", "conditions"})) {
    const std::string_view type = json::get_string(condition, {"type"}), status = json::get_string(condition, {"status"});
    if (type != "Ready" && type != "DiskPressure" && type != "NetworkUnavailable") continue;
    says_ready |= type == "Ready";
    is_broken |= type == "Ready" ? status == "False" || status == "Unknown" : status == "True";
    out.changed = std::max(out.changed, time(condition, "lastTransitionTime"));
  }
  for (const json::Value& taint : json::get_array(node, {"spec", "taints"})) {
    const std::string_view key = json::get_string(taint, {"key"});
    out.taints.emplace_back(key);
    out.is_starting |= is_startup_taint(key);
    out.is_to_be_deleted |= key == kToBeDeletedTaint;
    out.is_candidate |= key == kDeletionCandidateTaint;
    if (key != "node.kubernetes.io/not-ready" && key != "node.kubernetes.io/disk-pressure" &&
        key != "node.kubernetes.io/network-unavailable")
      continue;
    is_broken = true;
    out.changed = std::max(out.changed, time(taint, "timeAdded"));
  }
  out.is_ready = says_ready && !is_broken;
  const auto has_device = [&](std::string_view resource) {
    const auto amount = model::Quantity::parse(json::get_string(node, {"status", "allocatable", resource}));
    return amount && amount->sign() > 0;
  };
  const auto capacity = [&](std::string_view resource) {
    const auto amount = model::Quantity::parse(json::get_string(node, {"status", "capacity", resource}));
    return amount ? std::max<std::int64_t>(amount->value(), 0) : 0;
  };
  out.cores = capacity("cpu");
  out.memory_bytes = capacity("memory");
  out.lacks_device =
      json::find(node, {"metadata", "labels", accelerator_label}) != nullptr && std::ranges::none_of(kGpuResources, has_device);
  out.is_cordoned = json::get_bool(node, {"spec", "unschedulable"});
  for (const auto& [key, value] : json::get_object(node, {"metadata", "annotations"}))
    out.delays_deletion |= std::string_view(key.data(), key.size()).starts_with(kDelayDeletion);
  out.created = parse_rfc3339(json::get_string(node, {"metadata", "creationTimestamp"})).value_or(TimePoint{});
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
