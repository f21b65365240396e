#include "node/csi/volume_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/quantity.h"

namespace berth::node::csi {
namespace {

using json::get_array;
using json::get_bool;
using json::get_string;

/// How often a driver that wants to publish again is asked to.
constexpr std::chrono::seconds kRepublish{60};

json::Object as_object(const Texts& texts) {
  json::Object out;
  for (const auto& [key, value] : texts) out[key] = value;
  return out;
}

const json::Value& persistent_source(const PodVolume& volume) { return *json::find(*volume.persistent_volume, {"spec", "csi"}); }

bool has_mode(const PodVolume& volume, std::string_view wanted) {
  return volume.persistent_volume != nullptr &&
         std::ranges::any_of(get_array(*volume.persistent_volume, {"spec", "accessModes"}),
                             [&](const json::Value& mode) { return mode.is_string() && json::as_view(mode) == wanted; });
}

/// The volume's first mode. Drivers of today tell whether several pods of the node may write.
std::string_view access_mode(const PodVolume& volume, const Capabilities& capabilities) {
  const bool tells_apart = capabilities.contains("SINGLE_NODE_MULTI_WRITER");
  std::string_view mode = "ReadWriteOnce";
  if (volume.persistent_volume != nullptr)
    if (const auto& modes = get_array(*volume.persistent_volume, {"spec", "accessModes"}); !modes.empty() && modes[0].is_string())
      mode = json::as_view(modes[0]);
  if (mode == "ReadOnlyMany") return "MULTI_NODE_READER_ONLY";
  if (mode == "ReadWriteMany") return "MULTI_NODE_MULTI_WRITER";
  if (mode == "ReadWriteOncePod") return tells_apart ? "SINGLE_NODE_SINGLE_WRITER" : "SINGLE_NODE_WRITER";
  return tells_apart ? "SINGLE_NODE_MULTI_WRITER" : "SINGLE_NODE_WRITER";
}

std::string fs_type(const PodVolume& volume) {
  return std::string(volume.source != nullptr ? get_string(*volume.source, {"fsType"}) : get_string(persistent_source(volume), {"fsType"}));
}

json::Object capability(const PodVolume& volume, const VolumePlace& place, const Surroundings& around) {
  json::Object out{{"access_mode", json::Object{{"mode", access_mode(volume, around.capabilities)}}}};
  if (place.is_block) {
    out["block"] = json::Object{};
    return out;
  }
  json::Object mount{{"fs_type", fs_type(volume)}};
  if (volume.persistent_volume != nullptr) mount["mount_flags"] = get_array(*volume.persistent_volume, {"spec", "mountOptions"});
  if (volume.fs_group && around.capabilities.contains("VOLUME_MOUNT_GROUP")) mount["volume_mount_group"] = std::to_string(*volume.fs_group);
  out["mount"] = std::move(mount);
  return out;
}

json::Object volume_context(const PodVolume& volume) {
  return json::get_object(volume.source != nullptr ? *volume.source : persistent_source(volume), {"volumeAttributes"});
}

/// With what the driver wants to know of the pod (CSIDriver.spec.podInfoOnMount).
json::Object publish_context(const PodVolume& volume, const VolumePlace& place, const Surroundings& around) {
  json::Object out = volume_context(volume);
  if (around.driver != nullptr && get_bool(*around.driver, {"spec", "podInfoOnMount"})) {
    out["csi.storage.k8s.io/pod.name"] = get_string(volume.pod, {"metadata", "name"});
    out["csi.storage.k8s.io/pod.namespace"] = get_string(volume.pod, {"metadata", "namespace"});
    out["csi.storage.k8s.io/pod.uid"] = get_string(volume.pod, {"metadata", "uid"});
    out["csi.storage.k8s.io/serviceAccount.name"] = get_string(volume.pod, {"spec", "serviceAccountName"});
    out["csi.storage.k8s.io/ephemeral"] = place.is_persistent ? "false" : "true";
  }
  return out;
}

std::string tokens_text(const Texts& tokens) {
  json::Object out;
  for (const auto& [audience, token] : tokens)
    if (auto parsed = json::parse(token)) out[audience] = std::move(*parsed);
  return json::serialize(out);
}

/// CSIDriver.spec.volumeLifecycleModes: without a word, volumes of the cluster alone.
Result<void> check_lifecycle(const VolumePlace& place, const json::Value* driver) {
  const std::string_view mode = place.is_persistent ? "Persistent" : "Ephemeral";
  json::Array modes;
  if (driver != nullptr) modes = get_array(*driver, {"spec", "volumeLifecycleModes"});
  if (modes.empty()) modes.push_back("Persistent");
  if (std::ranges::any_of(modes, [&](const json::Value& one) { return one.is_string() && json::as_view(one) == mode; })) return {};
  if (driver == nullptr)
    return invalid(fmt::format("volume mode \"{}\" not supported by driver {} (no CSIDriver object)", mode, place.driver));
  return invalid(
      fmt::format("volume mode \"{}\" not supported by driver {} (only supports {})", mode, place.driver, json::serialize(modes)));
}

/// Who gives a volume's files to the pod's group: the driver, as it is mounted; the node, as CSIDriver.spec.fsGroupPolicy says; nobody.
std::optional<std::int64_t> owner_group(const PodVolume& volume, const VolumePlace& place, const Surroundings& around) {
  if (!volume.fs_group || volume.is_read_only || place.is_block || around.capabilities.contains("VOLUME_MOUNT_GROUP")) return std::nullopt;
  const std::string_view policy =
      around.driver == nullptr ? "" : get_string(*around.driver, {"spec", "fsGroupPolicy"}, "ReadWriteOnceWithFSType");
  if (policy == "None") return std::nullopt;
  if (policy == "File") return volume.fs_group;
  const bool is_one_nodes = has_mode(volume, "ReadWriteOnce") || has_mode(volume, "ReadWriteOncePod");
  return is_one_nodes && !fs_type(volume).empty() ? volume.fs_group : std::nullopt;
}

std::int64_t bytes_at(const json::Value& document, json::Path path) {
  const auto quantity = model::Quantity::parse(get_string(document, path));
  return quantity ? quantity->value() : 0;
}

}  // namespace

Result<VolumePlace> place_of(const PodVolume& volume) {
  const std::string uid(get_string(volume.pod, {"metadata", "uid"}));
  if (volume.source != nullptr)
    return VolumePlace{std::string(get_string(*volume.source, {"driver"})), ephemeral_handle(uid, volume.name), volume.name, false, false};
  if (volume.persistent_volume == nullptr || json::find(*volume.persistent_volume, {"spec", "csi"}) == nullptr)
    return invalid("it is no volume of a CSI driver");
  const json::Value& source = persistent_source(volume);
  return VolumePlace{std::string(get_string(source, {"driver"})), std::string(get_string(source, {"volumeHandle"})),
                     std::string(get_string(*volume.persistent_volume, {"metadata", "name"})),
                     get_string(*volume.persistent_volume, {"spec", "volumeMode"}) == "Block", true};
}

bool needs_attachment(const json::Value* driver, const VolumePlace& place) {
  return place.is_persistent && (driver == nullptr || get_bool(*driver, {"spec", "attachRequired"}, true));
}

std::optional<std::pair<std::string, std::string>> secret_of(const PodVolume& volume, std::string_view field) {
  const json::Value& source = volume.source != nullptr ? *volume.source : persistent_source(volume);
  const std::string name(get_string(source, {field, "name"}));
  if (name.empty()) return std::nullopt;
  return std::pair(
      std::string(volume.source != nullptr ? get_string(volume.pod, {"metadata", "namespace"}) : get_string(source, {field, "namespace"})),
      name);
}

std::int64_t pending_expansion(const PodVolume& volume) {
  if (volume.claim == nullptr || volume.persistent_volume == nullptr || volume.is_read_only) return 0;
  const std::int64_t shown = bytes_at(*volume.claim, {"status", "capacity", "storage"}),
                     there = bytes_at(*volume.persistent_volume, {"spec", "capacity", "storage"});
  return shown > 0 && shown < there ? there : 0;
}

json::Value expanded_claim_patch(const json::Value& claim, const json::Value& persistent_volume) {
  json::Array conditions;
  for (const json::Value& one : get_array(claim, {"status", "conditions"}))
    if (const auto type = get_string(one, {"type"});
        type != "FileSystemResizePending" && type != "Resizing" && type != "NodeResizeError" && type != "ControllerResizeError")
      conditions.push_back(one);
  json::Value left = nullptr;  // Of what other resources of the claim wait for.
  if (json::get_object(claim, {"status", "allocatedResourceStatuses"}).size() > 1) left = json::Object{{"storage", nullptr}};
  return json::Object{
      {"metadata", json::Object{{"resourceVersion", get_string(claim, {"metadata", "resourceVersion"})}}},
      {"status", json::Object{{"capacity", json::Object{{"storage", get_string(persistent_volume, {"spec", "capacity", "storage"})}}},
                              {"allocatedResourceStatuses", std::move(left)},
                              {"conditions", std::move(conditions)}}}};
}

Result<VolumeRequest> make_request(const PodVolume& volume, const Surroundings& around) {
  auto place = place_of(volume);
  if (!place) return std::unexpected(place.error());
  if (auto allowed = check_lifecycle(*place, around.driver); !allowed) return std::unexpected(allowed.error());
  VolumeRequest out;
  json::Object attached;
  if (needs_attachment(around.driver, *place)) {
    if (around.attachment == nullptr || !get_bool(*around.attachment, {"status", "attached"}))
      return fail(ErrorCode::kUnavailable,
                  fmt::format("volume {} is not attached to node {} yet{}", place->name, around.node,
                              around.attachment == nullptr
                                  ? ""
                                  : fmt::format(" (VolumeAttachment {})", get_string(*around.attachment, {"metadata", "name"}))));
    attached = json::get_object(*around.attachment, {"status", "attachmentMetadata"});
  }
  const std::string uid(get_string(volume.pod, {"metadata", "uid"}));
  out.want = {.pod = uid, .volume = place->key(), .driver = place->driver, .is_persistent = place->is_persistent};
  out.want.is_staged_first = place->is_persistent && around.capabilities.contains("STAGE_UNSTAGE_VOLUME");
  out.want.is_exclusive = has_mode(volume, "ReadWriteOncePod");
  if (around.driver != nullptr && get_bool(*around.driver, {"spec", "requiresRepublish"})) out.want.republish_every = kRepublish;
  out.can_expand = around.capabilities.contains("EXPAND_VOLUME");
  if (out.can_expand) out.want.expand_to_bytes = pending_expansion(volume);
  out.owner_group = owner_group(volume, *place, around);
  out.is_owner_kept_where_root_has_it = get_string(volume.pod, {"spec", "securityContext", "fsGroupChangePolicy"}) == "OnRootMismatch";

  const json::Object asked = capability(volume, *place, around);
  const std::string staging = out.want.is_staged_first ? staging_path(around.root, *place) : "";
  const std::string target = target_path(around.root, *place, uid);
  out.stage = json::Object{{"volume_id", place->handle},
                           {"publish_context", attached},
                           {"staging_target_path", staging},
                           {"volume_capability", asked},
                           {"secrets", as_object(around.stage_secrets)},
                           {"volume_context", volume_context(volume)}};
  json::Object secrets = as_object(around.publish_secrets), context = publish_context(volume, *place, around);
  if (!around.tokens.empty())
    (get_bool(*around.driver, {"spec", "serviceAccountTokenInSecrets"}) ? secrets : context)["csi.storage.k8s.io/serviceAccount.tokens"] =
        tokens_text(around.tokens);
  out.publish = json::Object{{"volume_id", place->handle},    {"publish_context", attached},         {"staging_target_path", staging},
                             {"target_path", target},         {"volume_capability", asked},          {"readonly", volume.is_read_only},
                             {"secrets", std::move(secrets)}, {"volume_context", std::move(context)}};
  out.expand = json::Object{{"volume_id", place->handle},
                            {"volume_path", target},
                            {"staging_target_path", staging},
                            {"volume_capability", asked},
                            {"capacity_range", json::Object{{"required_bytes", out.want.expand_to_bytes}}},
                            {"secrets", as_object(around.expand_secrets)}};
  out.place = std::move(*place);
  return out;
}

}  // namespace berth::node::csi
