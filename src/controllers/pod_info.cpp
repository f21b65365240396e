#include "controllers/pod_info.h"

#include <charconv>

namespace berth::controllers {
namespace {

PodPhase phase_of(std::string_view text) {
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  if (text == "Unknown") return PodPhase::kUnknown;
  return PodPhase::kPending;
}

TimePoint time_at(const json::Value& root, json::Path path) {
  const std::string_view text = json::get_string(root, path);
  return text.empty() ? TimePoint{} : parse_rfc3339(text).value_or(TimePoint{});
}

/// A malformed cost counts as none, as in the ReplicaSet controller; only plain int32 without sign tricks ("+5", "05") is accepted.
std::int32_t parse_cost(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return 0;
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  return digits.size() > 1 && digits.starts_with('0') ? 0 : value;
}

void read_spec(const json::Value& document, PodInfo& info) {
  info.node = json::get_string(document, {"spec", "nodeName"});
  for (const json::Value& item : json::get_array(document, {"spec", "tolerations"})) {
    Toleration toleration;
    toleration.effect = json::get_string(item, {"effect"});
    if (!toleration.effect.empty() && toleration.effect != "NoExecute") continue;
    toleration.key = json::get_string(item, {"key"});
    toleration.op = json::get_string(item, {"operator"});
    toleration.value = json::get_string(item, {"value"});
    if (const json::Value* seconds = json::find(item, "tolerationSeconds"); seconds != nullptr && seconds->is_number())
      toleration.seconds = json::get_int(item, {"tolerationSeconds"});
    info.no_execute_tolerations.push_back(std::move(toleration));
  }
  info.has_resource_claims = !json::get_array(document, {"spec", "resourceClaims"}).empty();
  for (const json::Value& volume : json::get_array(document, {"spec", "volumes"}))
    if (json::find(volume, "persistentVolumeClaim") != nullptr || json::find(volume, "ephemeral") != nullptr) info.has_claim_volumes = true;
}

void read_status(const json::Value& document, PodInfo& info) {
  info.phase = phase_of(json::get_string(document, {"status", "phase"}));
  for (const json::Value& condition : json::get_array(document, {"status", "conditions"})) {
    const std::string_view type = json::get_string(condition, {"type"});
    const bool is_true = json::get_string(condition, {"status"}) == "True";
    if (type == "Ready") {
      info.ready = is_true;
      info.ready_since = time_at(condition, {"lastTransitionTime"});
    } else if (type == "PodScheduled") {
      info.scheduled_condition = is_true;
      if (is_true) info.scheduled_since = time_at(condition, {"lastTransitionTime"});
    }
  }
  for (const json::Value& status : json::get_array(document, {"status", "containerStatuses"}))
    info.restarts = std::max(info.restarts, static_cast<std::int32_t>(json::get_int(status, {"restartCount"})));
}

}  // namespace

std::vector<OwnerReference> owner_references(const json::Value& document) {
  std::vector<OwnerReference> owners;
  for (const json::Value& item : json::get_array(document, {"metadata", "ownerReferences"})) {
    OwnerReference owner;
    owner.uid = json::get_string(item, {"uid"});
    if (owner.uid.empty()) continue;
    owner.api_version = json::get_string(item, {"apiVersion"});
    owner.kind = json::get_string(item, {"kind"});
    owner.name = json::get_string(item, {"name"});
    owner.is_controller = json::get_bool(item, {"controller"});
    owner.blocks_deletion = json::get_bool(item, {"blockOwnerDeletion"});
    owners.push_back(std::move(owner));
  }
  return owners;
}

PodRef make_pod_info(ObjectRef object) {
  auto info = std::make_shared<PodInfo>();
  const auto parsed = object->parsed();
  const json::Value& document = *parsed;
  info->object = std::move(object);
  info->deleting = info->object->is_deleting();
  info->created = time_at(document, {"metadata", "creationTimestamp"});
  info->deletion_time = time_at(document, {"metadata", "deletionTimestamp"});
  info->deletion_cost = parse_cost(json::get_string(document, {"metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"}));
  for (const json::Value& finalizer : json::get_array(document, {"metadata", "finalizers"}))
    if (finalizer.is_string() && json::as_view(finalizer) == "batch.kubernetes.io/job-tracking") info->has_job_finalizer = true;
  info->owners = owner_references(document);
  read_spec(document, *info);
  read_status(document, *info);
  return info;
}

}  // namespace berth::controllers
