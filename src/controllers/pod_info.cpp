#include "controllers/pod_info.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json_scan.h"

namespace berth::controllers {
namespace {

PodPhase phase_of(std::string_view text) {
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  if (text == "Unknown") return PodPhase::kUnknown;
  return PodPhase::kPending;
}

/// A string's text, mostly as it stands.
std::string text_of(std::string_view raw) {
  bool is_plain = true;
  const std::string_view text = json::unquote_plain(raw, is_plain);
  return is_plain ? std::string(text) : json::unquote(raw);
}

TimePoint time_of(std::string_view raw) {
  const std::string text = text_of(raw);
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

/// Read again only where the text is another than the last pod's.
SharedList<Toleration> read_tolerations(std::string_view raw) {
  static thread_local std::pair<std::string, SharedList<Toleration>> last;
  if (raw.empty() || raw == "null") return {};
  if (last.first == raw) return last.second;
  std::vector<Toleration> out;
  json::for_each_element(raw, [&](std::string_view item) {
    static const json::PathScanner scanner({"effect", "key", "operator", "value", "tolerationSeconds"});
    std::array<std::string_view, 5> at;
    if (!scanner.scan(item, at)) return;
    Toleration toleration;
    toleration.effect = text_of(at[0]);
    if (!toleration.effect.empty() && toleration.effect != "NoExecute") return;
    toleration.key = text_of(at[1]);
    toleration.op = text_of(at[2]);
    toleration.value = text_of(at[3]);
    std::int64_t seconds = 0;
    if (std::from_chars(at[4].data(), at[4].data() + at[4].size(), seconds).ec == std::errc()) toleration.seconds = seconds;
    out.push_back(std::move(toleration));
  });
  last = {std::string(raw), SharedList<Toleration>(std::move(out))};
  return last.second;
}

/// The same.
Shared<std::string> read_scheduler(std::string_view raw) {
  static thread_local std::pair<std::string, Shared<std::string>> last;
  if (last.first != raw) last = {std::string(raw), Shared<std::string>(text_of(raw))};
  return last.second;
}

bool has_claim(std::string_view volumes) {
  // Most pods have a token's volume and no other.
  if (volumes.find("persistentVolumeClaim") == std::string_view::npos && volumes.find("ephemeral") == std::string_view::npos) return false;
  bool found = false;
  json::for_each_element(volumes, [&](std::string_view volume) {
    static const json::PathScanner scanner({"persistentVolumeClaim", "ephemeral"});
    std::array<std::string_view, 2> at;
    if (scanner.scan(volume, at))
      found = found || std::ranges::any_of(at, [](std::string_view raw) { return !raw.empty() && raw != "null"; });
  });
  return found;
}

void read_conditions(std::string_view raw, PodInfo& info) {
  json::for_each_element(raw, [&](std::string_view condition) {
    static const json::PathScanner scanner({"type", "status", "lastTransitionTime"});
    std::array<std::string_view, 3> at;
    if (!scanner.scan(condition, at)) return;
    const bool is_true = at[1] == "\"True\"";
    if (at[0] == "\"Ready\"") {
      info.ready = is_true;
      info.ready_since = time_of(at[2]);
    } else if (at[0] == "\"PodScheduled\"") {
      info.has_scheduled_condition = true;
      if (is_true) info.scheduled_since = time_of(at[2]);
    } else if (at[0] == "\"DisruptionTarget\"") {
      info.has_disruption_condition = true;
    }
  });
}

void read_restarts(std::string_view raw, PodInfo& info) {
  json::for_each_element(raw, [&](std::string_view status) {
    static const json::PathScanner scanner({"restartCount"});
    std::array<std::string_view, 1> at;
    std::int32_t restarts = 0;
    if (scanner.scan(status, at) && std::from_chars(at[0].data(), at[0].data() + at[0].size(), restarts).ec == std::errc())
      info.restarts = std::max(info.restarts, restarts);
  });
}

OwnerReferences read_owners(std::string_view raw) {
  std::vector<OwnerReference> owners;
  json::for_each_element(raw, [&](std::string_view item) {
    static const json::PathScanner scanner({"uid", "apiVersion", "kind", "name", "controller", "blockOwnerDeletion"});
    std::array<std::string_view, 6> at;
    if (!scanner.scan(item, at)) return;
    OwnerReference owner;
    owner.uid = text_of(at[0]);
    if (owner.uid.empty()) return;
    owner.api_version = text_of(at[1]);
    owner.kind = text_of(at[2]);
    owner.name = text_of(at[3]);
    owner.is_controller = at[4] == "true";
    owner.blocks_deletion = at[5] == "true";
    owners.push_back(std::move(owner));
  });
  return OwnerReferences(std::move(owners));
}

std::int32_t read_cost(std::string_view annotations) {
  constexpr std::string_view kCost = "controller.kubernetes.io/pod-deletion-cost";
  std::int32_t cost = 0;
  if (annotations.find("pod-deletion-cost") == std::string_view::npos) return cost;
  json::for_each_member(annotations, [&](std::string_view key, std::string_view value) {
    if (text_of(key) == kCost) cost = parse_cost(text_of(value));
  });
  return cost;
}

}  // namespace

OwnerReferences owner_references(const json::Value& document) {
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
  return OwnerReferences(std::move(owners));
}

/// From the bytes, without a document: every revision of every pod passes here.
PodRef make_pod_info(ObjectRef object) {
  enum : std::size_t {
    kCreated,
    kDeleted,
    kAnnotations,
    kFinalizers,
    kOwners,
    kNode,
    kTolerations,
    kClaims,
    kVolumes,
    kPhase,
    kConditions,
    kContainers,
    kExtendedClaim,
    kSchedulingGroup,
    kScheduler,
    kPaths
  };
  static const json::PathScanner scanner({"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.annotations",
                                          "metadata.finalizers", "metadata.ownerReferences", "spec.nodeName", "spec.tolerations",
                                          "spec.resourceClaims", "spec.volumes", "status.phase", "status.conditions",
                                          "status.containerStatuses", "status.extendedResourceClaimStatus.resourceClaimName",
                                          "spec.schedulingGroup.podGroupName", "spec.schedulerName"});
  auto info = std::make_shared<PodInfo>();
  info->object = std::move(object);
  info->deleting = info->object->is_deleting();
  std::array<std::string_view, kPaths> at;
  const HeldText text = info->object->text();
  if (!scanner.scan(*text, at)) return info;
  info->created = time_of(at[kCreated]);
  info->deletion_time = time_of(at[kDeleted]);
  info->deletion_cost = read_cost(at[kAnnotations]);
  json::for_each_element(at[kFinalizers], [&](std::string_view finalizer) {
    if (text_of(finalizer) == "batch.kubernetes.io/job-tracking") info->has_job_finalizer = true;
  });
  info->owners = read_owners(at[kOwners]);
  info->node = text_of(at[kNode]);
  info->no_execute_tolerations = read_tolerations(at[kTolerations]);
  json::for_each_element(at[kClaims], [&](std::string_view) { info->has_resource_claims = true; });
  info->extended_claim = text_of(at[kExtendedClaim]);
  info->scheduling_group = text_of(at[kSchedulingGroup]);
  info->scheduler = read_scheduler(at[kScheduler]);
  info->has_claim_volumes = has_claim(at[kVolumes]);
  info->phase = phase_of(text_of(at[kPhase]));
  read_conditions(at[kConditions], *info);
  read_restarts(at[kContainers], *info);
  return info;
}

}  // namespace berth::controllers
