// Volumes of pods.
#include <set>

#include <fmt/format.h>

#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {

using json::get_array;
using json::get_int;
using json::get_string;

void volumes(const Value& spec, const Path& spec_at, Errors& errors) {
  static constexpr std::string_view kSources[] = {"emptyDir", "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "secret", "nfs", "iscsi", "glusterfs", "persistentVolumeClaim",
      "rbd", "cinder", "cephfs", "flocker", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos",
      "projected", "scaleIO", "csi", "ephemeral", "quobyte", "image"};
  const Path at = spec_at / "volumes";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& volume : get_array(spec, {"volumes"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(volume, {"name"});
    if (name.empty()) errors.required(one / "name");
    else if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(one / "name", name, why);
    if (!name.empty() && !names.insert(name).second) errors.duplicate(one / "name", Value(name));
    int count = 0;
    for (const std::string_view source : kSources) {
      if (json::find(volume, source) == nullptr) continue;
      if (++count > 1) errors.forbidden(one / source, "may not specify more than 1 volume type");
    }
    if (count == 0) errors.required(one, "must specify a volume type");
    const auto need = [&](std::string_view source, std::string_view key) {
      if (const Value* object = json::find(volume, source); object != nullptr && get_string(*object, {key}).empty()) errors.required(one / source / key);
    };
    need("hostPath", "path");
    need("gcePersistentDisk", "pdName");
    need("awsElasticBlockStore", "volumeID");
    need("secret", "secretName");
    need("nfs", "server");
    need("nfs", "path");
    need("persistentVolumeClaim", "claimName");
    need("configMap", "name");
    need("csi", "driver");
    need("azureDisk", "diskName");
    need("cinder", "volumeID");
    if (const std::string_view limit = get_string(volume, {"emptyDir", "sizeLimit"}); !limit.empty())
      if (const auto quantity = Quantity::parse(limit); quantity && quantity->sign() < 0) errors.forbidden(one / "emptyDir" / "sizeLimit", "SizeLimit field must be a valid resource quantity");
    for (const char* source : {"secret", "configMap", "downwardAPI", "projected"})
      if (const Value* mode = json::find(volume, {source, "defaultMode"}); mode != nullptr && (get_int(volume, {source, "defaultMode"}) < 0 || get_int(volume, {source, "defaultMode"}) > 0777))
        errors.invalid(one / source / "defaultMode", *mode, "must be a number between 0 and 0777 (octal), both inclusive");
    if (const Value* ephemeral = json::find(volume, "ephemeral"); ephemeral != nullptr && json::find(*ephemeral, "volumeClaimTemplate") == nullptr) errors.required(one / "ephemeral" / "volumeClaimTemplate");
  }
}

}  // namespace berth::model::validation
