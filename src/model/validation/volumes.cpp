// Volumes of pods (ValidateVolumes) and their mounts.
#include <fmt/format.h>

#include <set>

#include "base/split.h"
#include "model/validation/volume_sources.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_string;
using Strings = std::vector<std::string_view>;

constexpr std::string_view kModeText = "must be a number between 0 and 0777 (octal), both inclusive";

}  // namespace

void file_mode(const Value& holder, std::string_view key, const Path& at, Errors& errors) {
  const Value* value = json::find(holder, key);
  if (value != nullptr && value->is_int64() && (value->get_int64() < 0 || value->get_int64() > 0777))
    errors.invalid(at / key, *value, kModeText);
}

bool path_goes_up(std::string_view path) {
  return std::ranges::any_of(words(path, '/').list(), [](std::string_view step) { return step == ".."; });
}

void descending_path(std::string_view path, const Path& at, Errors& errors) {
  if (path.starts_with('/')) errors.invalid(at, path, "must be a relative path");
  if (path_goes_up(path)) errors.invalid(at, path, "must not contain '..'");
}

void local_path(std::string_view path, const Path& at, Errors& errors) {
  descending_path(path, at, errors);
  if (path.starts_with("..") && !path.starts_with("../")) errors.invalid(at, path, "must not start with '..'");
}

void key_items(const Value& source, const Path& source_at, Errors& errors) {
  const Path at = source_at / "items";
  std::size_t i = 0;
  for (const Value& item : get_array(source, {"items"})) {
    const Path one = at[i++];
    if (get_string(item, {"key"}).empty()) errors.required(one / "key");
    const std::string_view path = get_string(item, {"path"});
    if (path.empty()) errors.required(one / "path");
    local_path(path, one / "path", errors);
    file_mode(item, "mode", one, errors);
  }
}

VolumeNames volumes(const Value& spec, std::string_view pod_name, bool is_pod, const Path& spec_at, Errors& errors) {
  VolumeNames good;
  std::set<std::string> made;  // Claims that ephemeral volumes make.
  for (const Value& volume : get_array(spec, {"volumes"}))
    if (!pod_name.empty() && json::find(volume, "ephemeral") != nullptr)
      made.insert(fmt::format("{}-{}", pod_name, get_string(volume, {"name"})));
  const Path at = spec_at / "volumes";
  std::size_t i = 0;
  for (const Value& volume : get_array(spec, {"volumes"})) {
    const Path one = at[i++];
    const std::size_t before = errors.size();
    const std::string_view name = get_string(volume, {"name"});
    volume_source(volume, pod_name, is_pod, one, errors);
    if (name.empty())
      errors.required(one / "name");
    else if (const std::string why = check_dns1123_label(name); !why.empty())
      errors.invalid(one / "name", name, why);
    if (good.contains(name)) errors.duplicate(one / "name", Value(name));
    if (errors.size() == before) good.emplace(name, &volume);
    const std::string_view claim = get_string(volume, {"persistentVolumeClaim", "claimName"});
    if (json::find(volume, "persistentVolumeClaim") != nullptr && made.contains(std::string(claim)))
      errors.invalid(one / "persistentVolumeClaim" / "claimName", claim,
                     "must not reference a PVC that gets created for an ephemeral volume");
  }
  return good;
}

namespace {

/// How a mount is shared; Kubernetes names the list, not the entry.
void mount_modes(const Value& mount, const Value& container, const Path& at, Errors& errors) {
  static const Strings kPropagation = {"Bidirectional", "HostToContainer", "None"}, kRecursive = {"Disabled", "Enabled", "IfPossible"};
  const Value* propagation = json::find(mount, "mountPropagation");
  supported_value(mount, "mountPropagation", at, kPropagation, errors, true);
  if (propagation != nullptr && *propagation == "Bidirectional" && !json::get_bool(container, {"securityContext", "privileged"}))
    errors.forbidden(at / "mountPropagation", "Bidirectional mount propagation is available only to privileged containers");
  supported_value(mount, "recursiveReadOnly", at, kRecursive, errors, true);
  const std::string_view recursive = get_string(mount, {"recursiveReadOnly"});
  if (recursive != "Enabled" && recursive != "IfPossible") return;
  if (!json::get_bool(mount, {"readOnly"})) errors.forbidden(at / "recursiveReadOnly", "may only be specified when readOnly is true");
  if (propagation != nullptr && *propagation != "None")
    errors.forbidden(at / "recursiveReadOnly", "may only be specified when mountPropagation is None or not specified");
}

/// Names and paths of a container's mounts or block_devices.
struct Used {
  Used(const Value& container, std::string_view list, std::string_view path) {
    for (const Value& one : get_array(container, {list})) {
      names.insert(get_string(one, {"name"}));
      paths.insert(get_string(one, {path}));
    }
  }
  std::set<std::string_view> names, paths;
};

void block_devices(const VolumeNames& volumes, const Value& container, const Path& container_at, Errors& errors) {
  const Path at = container_at / "volumeDevices";
  const Used mounts(container, "volumeMounts", "mountPath");
  std::set<std::string_view> names, paths;
  std::size_t i = 0;
  for (const Value& device : get_array(container, {"volumeDevices"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(device, {"name"}), path = get_string(device, {"devicePath"});
    const auto volume = volumes.find(name);
    if (name.empty()) errors.required(one / "name");
    if (names.contains(name)) errors.invalid(one / "name", name, "must be unique");
    if (volume == volumes.end())
      errors.not_found(one / "name", Value(name));
    else if (json::find(*volume->second, "persistentVolumeClaim") == nullptr && json::find(*volume->second, "ephemeral") == nullptr)
      errors.invalid(one / "name", name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    if (path.empty()) errors.required(one / "devicePath");
    if (paths.contains(path)) errors.invalid(one / "devicePath", path, "must be unique");
    if (!path.empty() && path_goes_up(path))
      errors.invalid(one / "devicePath", path, "can not contain backsteps ('..')");
    else
      paths.insert(path);
    if (mounts.names.contains(name)) errors.invalid(one / "name", name, "must not already exist in volumeMounts");
    if (mounts.paths.contains(path)) errors.invalid(one / "devicePath", path, "must not already exist as a path in volumeMounts");
    if (!name.empty()) names.insert(name);
  }
}

}  // namespace

void mounts(const VolumeNames& volumes, const Value& container, const Path& container_at, Errors& errors) {
  const Path at = container_at / "volumeMounts";
  const Used in_devices(container, "volumeDevices", "devicePath");
  std::set<std::string_view> paths;
  std::size_t i = 0;
  for (const Value& mount : get_array(container, {"volumeMounts"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(mount, {"name"}), path = get_string(mount, {"mountPath"});
    if (name.empty()) errors.required(one / "name");
    if (!volumes.contains(name)) errors.not_found(one / "name", Value(name));
    if (path.empty()) errors.required(one / "mountPath");
    if (!paths.insert(path).second) errors.invalid(one / "mountPath", path, "must be unique");
    if (in_devices.names.contains(name)) errors.invalid(one / "name", name, "must not already exist in volumeDevices");
    if (in_devices.paths.contains(path)) errors.invalid(one / "mountPath", path, "must not already exist as a path in volumeDevices");
    const std::string_view sub = get_string(mount, {"subPath"}), expression = get_string(mount, {"subPathExpr"});
    if (!sub.empty()) descending_path(sub, at / "subPath", errors);
    if (!expression.empty()) {
      if (!sub.empty()) errors.invalid(one / "subPathExpr", expression, "subPathExpr and subPath are mutually exclusive");
      descending_path(expression, at / "subPathExpr", errors);
    }
    mount_modes(mount, container, at, errors);
  }
  block_devices(volumes, container, container_at, errors);
}

}  // namespace berth::model::validation
