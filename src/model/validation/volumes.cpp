// Volumes of pods (ValidateVolumes, validateVolumeSource) and their mounts.
#include <fmt/format.h>

#include <set>

#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;
using Strings = std::vector<std::string_view>;

constexpr std::string_view kModeText = "must be a number between 0 and 0777 (octal), both inclusive";

void mode(const Value& holder, std::string_view key, const Path& at, Errors& errors) {
  const Value* value = json::find(holder, key);
  if (value != nullptr && value->is_int64() && (value->get_int64() < 0 || value->get_int64() > 0777))
    errors.invalid(at / key, *value, kModeText);
}

bool goes_up(std::string_view path) {
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    if (path.substr(start, end - start) == "..") return true;
    start = end + 1;
  }
  return false;
}

/// A path below the volume: relative, without "..".
void descending_path(std::string_view path, const Path& at, Errors& errors) {
  if (path.starts_with('/')) errors.invalid(at, path, "must be a relative path");
  if (goes_up(path)) errors.invalid(at, path, "must not contain '..'");
}

/// As above, and not a name that volumes keep for themselves.
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
    mode(item, "mode", one, errors);
  }
}

void downward_items(const Value& source, const Path& source_at, Errors& errors) {
  static const Strings kFields = {"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"};
  const Path& one = source_at;  // Kubernetes names the source, not the item.
  for (const Value& item : get_array(source, {"items"})) {
    const std::string_view path = get_string(item, {"path"});
    if (path.empty()) errors.required(one / "path");
    local_path(path, one / "path", errors);
    const Value* field = json::find(item, "fieldRef");
    const Value* resource = json::find(item, "resourceFieldRef");
    if (field != nullptr) {
      field_reference(*field, kFields, one / "fieldRef", errors);
      if (resource != nullptr) errors.invalid(one, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
    } else if (resource != nullptr) {
      resource_field_reference(*resource, source_at / "resourceFieldRef", errors, true);
    } else {
      errors.required(one, "one of fieldRef and resourceFieldRef is required");
    }
    mode(item, "mode", one, errors);
  }
}

/// No two projections write the same file.
void distinct_paths(const Value& source, const Path& at, Errors& errors) {
  std::set<std::string_view> paths;
  const auto add = [&](std::string_view path) {
    if (!path.empty() && !paths.insert(path).second) errors.invalid(at, path, "conflicting duplicate paths");
  };
  for (const Value& projection : get_array(source, {"sources"})) {
    for (const char* key : {"secret", "configMap", "downwardAPI"})
      for (const Value& item : get_array(projection, {key, "items"})) add(get_string(item, {"path"}));
    add(get_string(projection, {"serviceAccountToken", "path"}));
  }
}

void projected(const Value& source, const Path& at, Errors& errors) {
  mode(source, "defaultMode", at, errors);
  distinct_paths(source, at, errors);
  const Path sources = at / "sources";
  std::size_t i = 0;
  for (const Value& projection : get_array(source, {"sources"})) {
    const Path one = sources[i++];
    int count = 0;
    const auto found = [&](std::string_view key) -> const Value* {
      const Value* value = json::find(projection, key);
      if (value != nullptr && ++count > 1) errors.forbidden(one / key, "may not specify more than 1 volume type");
      return value;
    };
    for (const char* key : {"secret", "configMap"})
      if (const Value* map = found(key)) {
        if (get_string(*map, {"name"}).empty()) errors.required(one / key / "name");
        key_items(*map, one / key, errors);
      }
    if (const Value* downward = found("downwardAPI")) downward_items(*downward, one / "downwardAPI", errors);
    if (const Value* token = found("serviceAccountToken")) {
      const Path here = one / "serviceAccountToken";
      const Value* seconds = json::find(*token, "expirationSeconds");
      if (seconds != nullptr && get_int(*token, {"expirationSeconds"}) > (std::int64_t{1} << 32))
        errors.invalid(here / "expirationSeconds", *seconds, "may not specify a duration larger than 2^32 seconds");
      if (seconds != nullptr && get_int(*token, {"expirationSeconds"}) < 600)
        errors.invalid(here / "expirationSeconds", *seconds, "may not specify a duration less than 10 minutes");
      if (get_string(*token, {"path"}).empty())
        errors.required(at / "path");
      else
        local_path(get_string(*token, {"path"}), here / "path", errors);
    }
    if (const Value* bundle = found("clusterTrustBundle"); bundle != nullptr && get_string(*bundle, {"path"}).empty())
      errors.required(one / "clusterTrustBundle" / "path");
  }
}

void host_path(const Value& source, const Path& at, Errors& errors) {
  static const Strings kTypes = {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"};
  const std::string_view path = get_string(source, {"path"}), type = get_string(source, {"type"});
  if (path.empty())
    errors.required(at / "path");
  else if (goes_up(path))
    errors.invalid(at / "path", path, "must not contain '..'");
  if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) errors.not_supported(at / "type", type, kTypes);
}

/// Strings that a source cannot do without.
struct Need {
  std::string_view source, key;
};
constexpr Need kNeeds[] = {{"gcePersistentDisk", "pdName"},
                           {"awsElasticBlockStore", "volumeID"},
                           {"gitRepo", "repository"},
                           {"secret", "secretName"},
                           {"nfs", "server"},
                           {"nfs", "path"},
                           {"iscsi", "targetPortal"},
                           {"iscsi", "iqn"},
                           {"glusterfs", "endpoints"},
                           {"glusterfs", "path"},
                           {"persistentVolumeClaim", "claimName"},
                           {"rbd", "image"},
                           {"cinder", "volumeID"},
                           {"flexVolume", "driver"},
                           {"azureFile", "secretName"},
                           {"azureFile", "shareName"},
                           {"azureDisk", "diskName"},
                           {"azureDisk", "diskURI"},
                           {"vsphereVolume", "volumePath"},
                           {"portworxVolume", "volumeID"},
                           {"scaleIO", "gateway"},
                           {"scaleIO", "system"},
                           {"scaleIO", "volumeName"},
                           {"quobyte", "registry"},
                           {"quobyte", "volume"},
                           {"photonPersistentDisk", "pdID"},
                           {"configMap", "name"},
                           {"csi", "driver"},
                           {"image", "reference"}};

void source_details(const Value& volume, const Path& at, Errors& errors) {
  for (const Need& need : kNeeds)
    if (const Value* source = json::find(volume, need.source); source != nullptr && get_string(*source, {need.key}).empty())
      errors.required(at / (need.source == "gcePersistentDisk" ? "persistentDisk" : need.source) / need.key);
  for (const char* source : {"gcePersistentDisk", "awsElasticBlockStore"})
    if (const std::int64_t partition = get_int(volume, {source, "partition"}); partition < 0 || partition > 255)
      errors.invalid(at / source / "partition", Value(partition), "must be between 0 and 255, inclusive");
  if (const std::string_view path = get_string(volume, {"nfs", "path"}); json::find(volume, "nfs") != nullptr && !path.starts_with('/'))
    errors.invalid(at / "nfs" / "path", path, "must be an absolute path");
  if (const std::string_view iqn = get_string(volume, {"iscsi", "iqn"});
      !iqn.empty() && !iqn.starts_with("iqn") && !iqn.starts_with("eui") && !iqn.starts_with("naa")) {
    const Path here = at / "iscsi";
    errors.invalid(here / "iqn", iqn, "must be valid format starting with iqn, eui, or naa");
  }
  if (const std::int64_t lun = get_int(volume, {"iscsi", "lun"}); lun < 0 || lun > 255) {
    const Path here = at / "iscsi";
    errors.invalid(here / "lun", Value(lun), "must be between 0 and 255, inclusive");
  }
  if (const Value* csi = json::find(volume, "csi")) {
    const std::string_view driver = get_string(*csi, {"driver"});
    const Path here = at / "csi";
    if (driver.size() > 63) errors.too_long(here / "driver", 63);
    std::string lower(driver);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (const std::string why = check_dns1123_subdomain(lower); !why.empty()) errors.invalid(here / "driver", driver, why);
  }
  for (const char* source : {"rbd", "cephfs"})
    if (const Value* object = json::find(volume, source); object != nullptr && get_array(*object, {"monitors"}).empty())
      errors.required(at / source / "monitors");
  if (const Value* source = json::find(volume, "hostPath")) host_path(*source, at / "hostPath", errors);
  if (const std::string_view limit = get_string(volume, {"emptyDir", "sizeLimit"}); !limit.empty())
    if (const auto quantity = Quantity::parse(limit); quantity && quantity->sign() < 0)
      errors.forbidden(at / "emptyDir" / "sizeLimit", "SizeLimit field must be a valid resource quantity");
  for (const char* key : {"secret", "configMap"})
    if (const Value* source = json::find(volume, key)) {
      const Path here = at / key;
      mode(*source, "defaultMode", here, errors);
      key_items(*source, here, errors);
    }
  if (const Value* source = json::find(volume, "downwardAPI")) {
    const Path here = at / "downwardAPI";
    mode(*source, "defaultMode", here, errors);
    downward_items(*source, here, errors);
  }
  if (const Value* source = json::find(volume, "projected")) projected(*source, at / "projected", errors);
  if (const Value* ephemeral = json::find(volume, "ephemeral"); ephemeral != nullptr) {
    const Path here = at / "ephemeral";
    const Value* claim = json::find(*ephemeral, "volumeClaimTemplate");
    if (claim == nullptr)
      errors.required(here / "volumeClaimTemplate");
    else
      claim_spec(*claim, here / "volumeClaimTemplate" / "spec", errors);
  }
}

}  // namespace

VolumeNames volumes(const Value& spec, const Path& spec_at, Errors& errors) {
  static constexpr std::string_view kSources[] = {"emptyDir",
                                                  "hostPath",
                                                  "gcePersistentDisk",
                                                  "awsElasticBlockStore",
                                                  "gitRepo",
                                                  "secret",
                                                  "nfs",
                                                  "iscsi",
                                                  "glusterfs",
                                                  "persistentVolumeClaim",
                                                  "rbd",
                                                  "cinder",
                                                  "cephfs",
                                                  "flocker",
                                                  "downwardAPI",
                                                  "fc",
                                                  "flexVolume",
                                                  "configMap",
                                                  "azureFile",
                                                  "vsphereVolume",
                                                  "photonPersistentDisk",
                                                  "portworxVolume",
                                                  "azureDisk",
                                                  "storageos",
                                                  "projected",
                                                  "scaleIO",
                                                  "csi",
                                                  "ephemeral",
                                                  "quobyte",
                                                  "image"};
  VolumeNames good;
  const Path at = spec_at / "volumes";
  std::size_t i = 0;
  for (const Value& volume : get_array(spec, {"volumes"})) {
    const Path one = at[i++];
    const std::size_t before = errors.size();
    const std::string_view name = get_string(volume, {"name"});
    if (name.empty())
      errors.required(one / "name");
    else if (const std::string why = check_dns1123_label(name); !why.empty())
      errors.invalid(one / "name", name, why);
    if (good.contains(name)) errors.duplicate(one / "name", Value(name));
    int count = 0;
    for (const std::string_view source : kSources) {
      if (json::find(volume, source) == nullptr) continue;
      if (++count > 1) errors.forbidden(one / source, "may not specify more than 1 volume type");
    }
    if (count == 0)
      errors.required(one, "must specify a volume type");
    else
      source_details(volume, one, errors);
    if (errors.size() == before) good.emplace(name, &volume);
  }
  return good;
}

void mounts(const VolumeNames& volumes, const Value& container, const Path& container_at, Errors& errors) {
  const Path at = container_at / "volumeMounts";
  const auto volume_of = [&](std::string_view name) {
    const auto found = volumes.find(name);
    return found == volumes.end() ? nullptr : found->second;
  };
  std::set<std::string_view> paths;
  std::size_t i = 0;
  for (const Value& mount : get_array(container, {"volumeMounts"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(mount, {"name"}), path = get_string(mount, {"mountPath"});
    if (name.empty()) errors.required(one / "name");
    if (volume_of(name) == nullptr) errors.not_found(one / "name", Value(name));
    if (path.empty()) errors.required(one / "mountPath");
    if (!paths.insert(path).second) errors.invalid(one / "mountPath", path, "must be unique");
    const std::string_view sub = get_string(mount, {"subPath"}), expression = get_string(mount, {"subPathExpr"});
    if (!sub.empty()) descending_path(sub, one / "subPath", errors);
    if (!expression.empty()) {
      if (!sub.empty()) errors.invalid(one / "subPathExpr", expression, "subPathExpr and subPath are mutually exclusive");
      descending_path(expression, one / "subPathExpr", errors);
    }
    static const Strings kPropagation = {"Bidirectional", "HostToContainer", "None"};
    if (const Value* given = json::find(mount, "mountPropagation"); given != nullptr && given->is_string()) {
      const std::string_view propagation = json::as_view(*given);
      if (std::find(kPropagation.begin(), kPropagation.end(), propagation) == kPropagation.end())
        errors.not_supported(at / "mountPropagation", propagation, kPropagation);
      else if (propagation == "Bidirectional" && !json::get_bool(container, {"securityContext", "privileged"}))
        errors.forbidden(at / "mountPropagation", "Bidirectional mount propagation is available only to privileged containers");
    }
  }
  const Path devices_at = container_at / "volumeDevices";
  i = 0;
  for (const Value& device : get_array(container, {"volumeDevices"})) {
    const Path one = devices_at[i++];
    const std::string_view name = get_string(device, {"name"}), path = get_string(device, {"devicePath"});
    const Value* volume = volume_of(name);
    if (name.empty()) errors.required(one / "name");
    if (volume == nullptr)
      errors.not_found(one / "name", Value(name));
    else if (json::find(*volume, "persistentVolumeClaim") == nullptr && json::find(*volume, "ephemeral") == nullptr)
      errors.invalid(one / "name", name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    if (path.empty())
      errors.required(one / "devicePath");
    else if (!paths.insert(path).second)
      errors.invalid(one / "devicePath", path, "must be unique");
    if (goes_up(path)) errors.invalid(one / "devicePath", path, "can not contain backsteps ('..')");
  }
}

}  // namespace berth::model::validation
