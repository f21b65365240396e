// What a volume can be of (validateVolumeSource and the function of each source). Projected volumes: projected_volume.cpp.
#include "model/validation/volume_sources.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/go/strings.h"
#include "base/split.h"
#include "model/quantity.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

void need(const Value& source, std::string_view key, const Path& at, Errors& errors) {
  if (get_string(source, {key}).empty()) errors.required(at / key);
}

void label(std::string_view text, const Path& at, Errors& errors) {
  if (const std::string why = check_dns1123_label(text); !why.empty()) errors.invalid(at, text, why);
}

/// A reference to a secret needs a name, where there is a reference.
void secret_name(const Value& source, const Path& at, Errors& errors) {
  const Path here = at / "secretRef";
  if (const Value* ref = json::find(source, "secretRef")) need(*ref, "name", here, errors);
}

void empty_dir(const Value& source, const Path& at, Errors& errors) {
  const std::string_view limit = get_string(source, {"sizeLimit"});
  if (limit.empty()) return;
  if (const auto quantity = Quantity::parse(limit); quantity && quantity->sign() < 0)
    errors.forbidden(at / "sizeLimit", "SizeLimit field must be a valid resource quantity");
}

void host_path(const Value& source, const Path& at, Errors& errors) {
  static const Strings kTypes = {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"};
  const std::string_view path = get_string(source, {"path"}), type = get_string(source, {"type"});
  if (path.empty()) return errors.required(at / "path");
  if (path_goes_up(path)) errors.invalid(at / "path", path, "must not contain '..'");
  if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) errors.not_supported(at / "type", type, kTypes);
}

void git_repo(const Value& source, const Path& at, Errors& errors) {
  need(source, "repository", at, errors);
  descending_path(get_string(source, {"directory"}), at / "directory", errors);
}

void partitioned(const Value& source, const Path& at, Errors& errors) {
  if (const std::int64_t partition = get_int(source, {"partition"}); partition < 0 || partition > 255)
    errors.invalid(at / "partition", Value(partition), "must be between 1 and 255, inclusive");  // Though 0 is fine: none.
}

void gce_disk(const Value& source, const Path& at, Errors& errors) {
  need(source, "pdName", at, errors);
  partitioned(source, at, errors);
}

void aws_disk(const Value& source, const Path& at, Errors& errors) {
  need(source, "volumeID", at, errors);
  partitioned(source, at, errors);
}

void key_map(const Value& source, std::string_view name, const Path& at, Errors& errors) {
  need(source, name, at, errors);
  file_mode(source, "defaultMode", at, errors);
  key_items(source, at, errors);
}
void secret(const Value& source, const Path& at, Errors& errors) { key_map(source, "secretName", at, errors); }
void config_map(const Value& source, const Path& at, Errors& errors) { key_map(source, "name", at, errors); }

void nfs(const Value& source, const Path& at, Errors& errors) {
  need(source, "server", at, errors);
  need(source, "path", at, errors);
  if (const std::string_view path = get_string(source, {"path"}); !path.starts_with('/'))
    errors.invalid(at / "path", path, "must be an absolute path");
}

bool is_iscsi_name(std::string_view text) {
  static const re2::RE2 kIqn(R"(iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$)"), kEui("^eui.[A-Za-z0-9]{16}$"),
      kNaa("^naa.[A-Za-z0-9]{32}$");
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), text.starts_with("iqn")   ? kIqn
                                                                            : text.starts_with("eui") ? kEui
                                                                                                      : kNaa);
}

void iscsi_name(const Value& source, std::string_view key, bool is_persistent, const Path& at, Errors& errors) {
  const std::string_view name = get_string(source, {key});
  if (!name.starts_with("iqn") && !name.starts_with("eui") && !name.starts_with("naa"))
    errors.invalid(at, name, is_persistent ? "must be valid format" : "must be valid format starting with iqn, eui, or naa");
  else if (!is_iscsi_name(name))
    errors.invalid(at, name, "must be valid format");
}

void iscsi_of(const Value& source, bool is_persistent, const Path& at, Errors& errors) {
  need(source, "targetPortal", at, errors);
  need(source, "iqn", at, errors);
  if (!get_string(source, {"iqn"}).empty()) iscsi_name(source, "iqn", is_persistent, at / "iqn", errors);
  if (const std::int64_t lun = get_int(source, {"lun"}); lun < 0 || lun > 255)
    errors.invalid(at / "lun", Value(lun), "must be between 0 and 255, inclusive");
  if ((get_bool(source, {"chapAuthDiscovery"}) || get_bool(source, {"chapAuthSession"})) && json::find(source, "secretRef") == nullptr)
    errors.required(at / "secretRef");
  const Path secret = at / "secretRef";
  if (is_persistent && json::find(source, "secretRef") != nullptr && get_string(source, {"secretRef", "name"}).empty())
    errors.required(secret / "name");
  if (json::find(source, "initiatorName") != nullptr) iscsi_name(source, "initiatorName", is_persistent, at / "initiatorname", errors);
}

void iscsi(const Value& source, const Path& at, Errors& errors) { iscsi_of(source, false, at, errors); }
void persistent_iscsi(const Value& source, const Path& at, Errors& errors) { iscsi_of(source, true, at, errors); }

void glusterfs(const Value& source, const Path& at, Errors& errors) {
  need(source, "endpoints", at, errors);
  need(source, "path", at, errors);
  const Value* ns = json::find(source, "endpointsNamespace");
  if (ns == nullptr || !ns->is_string()) return;
  if (ns->get_string().empty())
    errors.invalid(at / "endpointsNamespace", "", "if the endpointnamespace is set, it must be a valid namespace name");
  else
    label(json::as_view(*ns), at / "endpointsNamespace", errors);
}

void flocker(const Value& source, const Path& at, Errors& errors) {
  const std::string_view name = get_string(source, {"datasetName"}), uuid = get_string(source, {"datasetUUID"});
  if (name.empty() && uuid.empty()) errors.required(at, "one of datasetName and datasetUUID is required");
  if (!name.empty() && !uuid.empty()) errors.invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously");
  if (name.find('/') != std::string_view::npos) errors.invalid(at / "datasetName", name, "must not contain '/'");
}

void claim(const Value& source, const Path& at, Errors& errors) { need(source, "claimName", at, errors); }

void rbd(const Value& source, const Path& at, Errors& errors) {
  if (get_array(source, {"monitors"}).empty()) errors.required(at / "monitors");
  need(source, "image", at, errors);
}

void cinder(const Value& source, const Path& at, Errors& errors) {
  need(source, "volumeID", at, errors);
  secret_name(source, at, errors);
}

void ceph(const Value& source, const Path& at, Errors& errors) {
  if (get_array(source, {"monitors"}).empty()) errors.required(at / "monitors");
}

/// host:port, with an IPv6 address in brackets.
bool is_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) return host.find(']') == host.size() - 1;
  return host.find_first_of(":[]") == std::string_view::npos && text.substr(colon).find_first_of("[]") == std::string_view::npos;
}

void quobyte(const Value& source, const Path& at, Errors& errors) {
  static constexpr std::string_view kPairs = "must be a host:port pair or multiple pairs separated by commas";
  const std::string_view registry = get_string(source, {"registry"});
  if (registry.empty()) {
    errors.required(at / "registry", kPairs);
  } else if (get_string(source, {"tenant"}).size() >= 65) {
    errors.required(at / "tenant", "must be a UUID and may not exceed a length of 64 characters");
  } else {
    for (const auto pair : split(registry, ','))
      if (!is_host_port(pair)) errors.invalid(at / "registry", registry, kPairs);
  }
  need(source, "volume", at, errors);
}

void fibre_channel(const Value& source, const Path& at, Errors& errors) {
  const json::Array &wwns = get_array(source, {"targetWWNs"}), &wwids = get_array(source, {"wwids"});
  const Value* lun = json::find(source, "lun");
  if (wwns.empty() && wwids.empty()) errors.required(at / "targetWWNs", "must specify either targetWWNs or wwids, but not both");
  if (!wwns.empty() && !wwids.empty())
    errors.invalid(at / "targetWWNs", Value(wwns), "targetWWNs and wwids can not be specified simultaneously");
  if (wwns.empty()) return;
  if (lun == nullptr)
    errors.required(at / "lun", "lun is required if targetWWNs is specified");
  else if (get_int(source, {"lun"}) < 0 || get_int(source, {"lun"}) > 255)
    errors.invalid(at / "lun", *lun, "must be between 0 and 255, inclusive");
}

void flex_volume(const Value& source, const Path& at, Errors& errors) {
  need(source, "driver", at, errors);
  const Path options = at / "options";
  for (const auto& [raw_key, value] : get_object(source, {"options"})) {
    const std::string_view key(raw_key.data(), raw_key.size());
    const std::string name = "." + go::to_lower(key.substr(0, key.find('/')));
    if (name.ends_with(".kubernetes.io") || name.ends_with(".k8s.io"))
      errors.invalid(Path::map_key(options, key), key, "kubernetes.io and k8s.io namespaces are reserved");
  }
}

void azure_file(const Value& source, const Path& at, Errors& errors) {
  need(source, "secretName", at, errors);
  need(source, "shareName", at, errors);
}

void azure_disk(const Value& source, const Path& at, Errors& errors) {
  need(source, "diskName", at, errors);
  need(source, "diskURI", at, errors);
  supported_value(source, "cachingMode", at, {"None", "ReadOnly", "ReadWrite"}, errors, true);
  supported_value(source, "kind", at, {"Dedicated", "Managed", "Shared"}, errors, true);
  const Value* kind = json::find(source, "kind");
  const std::string_view uri = get_string(source, {"diskURI"});
  if (kind == nullptr) return;
  if (*kind == "Managed") {
    if (!uri.starts_with("/subscriptions/"))
      errors.not_supported(at / "diskURI", uri,
                           {"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"});
  } else if (!uri.starts_with("https://")) {
    errors.not_supported(at / "diskURI", uri, {"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"});
  }
}

void vsphere(const Value& source, const Path& at, Errors& errors) { need(source, "volumePath", at, errors); }
void photon(const Value& source, const Path& at, Errors& errors) { need(source, "pdID", at, errors); }
void portworx(const Value& source, const Path& at, Errors& errors) { need(source, "volumeID", at, errors); }

void storage_os(const Value& source, const Path& at, Errors& errors) {
  const std::string_view name = get_string(source, {"volumeName"}), ns = get_string(source, {"volumeNamespace"});
  if (name.empty())
    errors.required(at / "volumeName");
  else
    label(name, at / "volumeName", errors);
  if (!ns.empty()) label(ns, at / "volumeNamespace", errors);
  secret_name(source, at, errors);
}

void scale_io(const Value& source, const Path& at, Errors& errors) {
  for (const char* key : {"gateway", "system", "volumeName"}) need(source, key, at, errors);
}

void csi(const Value& source, const Path& at, Errors& errors) {
  csi_driver_name(get_string(source, {"driver"}), at / "driver", errors);
  const Value* secret = json::find(source, "nodePublishSecretRef");
  if (secret == nullptr) return;
  const std::string_view name = get_string(*secret, {"name"});
  const Path here = at / "nodePublishSecretRef";
  if (name.empty())
    errors.required(here / "name");
  else if (const std::string why = check_dns1123_subdomain(name); !why.empty())
    errors.invalid(at / "name", name, why);
}

void ephemeral(const Value& source, const Path& at, Errors& errors) {
  const Value* claim_template = json::find(source, "volumeClaimTemplate");
  const Path here = at / "volumeClaimTemplate";
  if (claim_template == nullptr) return errors.required(here);
  const Path metadata = here / "metadata";
  if (const Value* map = json::find(*claim_template, {"metadata", "annotations"})) annotations(*map, metadata / "annotations", errors);
  if (const Value* map = json::find(*claim_template, {"metadata", "labels"})) labels(*map, metadata / "labels", errors);
  for (const auto& [raw_key, value] : get_object(*claim_template, {"metadata"})) {
    const std::string_view key(raw_key.data(), raw_key.size());
    const bool is_set = !value.is_null() && value != "";
    if (is_set && key != "labels" && key != "annotations" && key != "creationTimestamp")
      errors.forbidden(metadata / (key == "uid" ? "uID" : key), "cannot be set");
  }
  claim_spec(*claim_template, here / "spec", errors);
}

void image(const Value& source, const Path& at, Errors& errors, bool is_pod) {
  if (is_pod) need(source, "reference", at, errors);
  supported_value(source, "pullPolicy", at, {"Always", "IfNotPresent", "Never"}, errors, true);
}

struct Source {
  std::string_view key;
  void (*check)(const Value&, const Path&, Errors&);
  std::string_view shown = {};        ///< Where Kubernetes writes the name of a second source in another way.
  std::string_view shown_below = {};  ///< And where it writes the source's own fields in another way.
};
/// In Kubernetes' order: the first that is there is checked, every other one is too many.
constexpr Source kSourceChecks[] = {{"emptyDir", empty_dir},
                                    {"hostPath", host_path},
                                    {"gitRepo", git_repo},
                                    {"gcePersistentDisk", gce_disk, "", "persistentDisk"},
                                    {"awsElasticBlockStore", aws_disk},
                                    {"secret", secret},
                                    {"nfs", nfs},
                                    {"iscsi", iscsi},
                                    {"glusterfs", glusterfs},
                                    {"flocker", flocker},
                                    {"persistentVolumeClaim", claim},
                                    {"rbd", rbd},
                                    {"cinder", cinder},
                                    {"cephfs", ceph, "cephFS"},
                                    {"quobyte", quobyte},
                                    {"downwardAPI", downward_api_volume, "downwarAPI"},
                                    {"fc", fibre_channel},
                                    {"flexVolume", flex_volume},
                                    {"configMap", config_map},
                                    {"azureFile", azure_file},
                                    {"vsphereVolume", vsphere},
                                    {"photonPersistentDisk", photon},
                                    {"portworxVolume", portworx},
                                    {"azureDisk", azure_disk},
                                    {"storageos", storage_os},
                                    {"projected", projected_volume},
                                    {"scaleIO", scale_io},
                                    {"csi", csi},
                                    {"ephemeral", ephemeral},
                                    {"image", nullptr}};

void reference_of_volume(const Value& source, std::string_view key, const Path& at, Errors& errors) {
  const Value* ref = json::find(source, key);
  if (ref == nullptr) return;
  const Path here = at / key;
  const std::string_view name = get_string(*ref, {"name"}), ns = get_string(*ref, {"namespace"});
  if (name.empty())
    errors.required(here / "name");
  else if (const std::string why = check_dns1123_subdomain(name); !why.empty())
    errors.invalid(here / "name", name, why);
  if (ns.empty())
    errors.required(here / "namespace");
  else
    label(ns, here / "namespace", errors);
}

void persistent_csi(const Value& source, const Path& at, Errors& errors) {
  csi_driver_name(get_string(source, {"driver"}), at / "driver", errors);
  need(source, "volumeHandle", at, errors);
  for (const char* key : {"controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"})
    reference_of_volume(source, key, at, errors);
}

void local(const Value& source, const Path& at, Errors& errors) {
  const std::string_view path = get_string(source, {"path"});
  if (path.empty()) return errors.required(at / "path");
  if (path_goes_up(path)) errors.invalid(at / "path", path, "must not contain '..'");
}

void persistent_azure_file(const Value& source, const Path& at, Errors& errors) {
  azure_file(source, at, errors);
  if (const Value* ns = json::find(source, "secretNamespace"); ns != nullptr && *ns == "") errors.required(at / "secretNamespace");
}

/// A volume's secret stands in a namespace of its own.
void secret_namespace(const Value& source, const Path& at, Errors& errors) {
  if (const Value* secret = json::find(source, "secretRef"); secret != nullptr && get_string(*secret, {"namespace"}).empty())
    errors.required(at / "secretRef" / "namespace");
}

void persistent_cinder(const Value& source, const Path& at, Errors& errors) {
  cinder(source, at, errors);
  secret_namespace(source, at, errors);
}

void persistent_storage_os(const Value& source, const Path& at, Errors& errors) {
  storage_os(source, at, errors);
  secret_namespace(source, at, errors);
}

constexpr Source kPersistentSources[] = {{"hostPath", host_path},
                                         {"gcePersistentDisk", gce_disk, "", "persistentDisk"},
                                         {"awsElasticBlockStore", aws_disk},
                                         {"glusterfs", glusterfs},
                                         {"flocker", flocker},
                                         {"nfs", nfs},
                                         {"rbd", rbd},
                                         {"quobyte", quobyte},
                                         {"cephfs", ceph, "cephFS"},
                                         {"iscsi", persistent_iscsi},
                                         {"cinder", persistent_cinder},
                                         {"fc", fibre_channel},
                                         {"flexVolume", flex_volume},
                                         {"azureFile", persistent_azure_file},
                                         {"vsphereVolume", vsphere},
                                         {"photonPersistentDisk", photon},
                                         {"portworxVolume", portworx},
                                         {"azureDisk", azure_disk},
                                         {"scaleIO", scale_io},
                                         {"local", local},
                                         {"storageos", persistent_storage_os},
                                         {"csi", persistent_csi}};

}  // namespace

void persistent_volume_source(const Value& spec, const Path& at, Errors& errors) {
  bool found = false;
  for (const Source& one : kPersistentSources) {
    const Value* source = json::find(spec, one.key);
    if (source == nullptr) continue;
    if (std::exchange(found, true) && one.key != "flexVolume") {  // Which Kubernetes does not count.
      errors.forbidden(at / (one.shown.empty() ? one.key : one.shown), "may not specify more than 1 volume type");
      continue;
    }
    one.check(*source, at / (one.shown_below.empty() ? one.key : one.shown_below), errors);
    if (one.key == "local" && json::find(spec, "nodeAffinity") == nullptr)
      errors.required(at / "nodeAffinity", "Local volume requires node affinity");
  }
  if (!found) errors.required(at, "must specify a volume type");
}

void csi_driver_name(std::string_view name, const Path& at, Errors& errors) {
  if (name.empty()) return errors.required(at);
  if (name.size() > 63) errors.too_long(at, 63);
  if (const std::string why = check_dns1123_subdomain(go::to_lower(name)); !why.empty()) errors.invalid(at, name, why);
}

void volume_source(const Value& volume, std::string_view pod_name, bool is_pod, const Path& at, Errors& errors) {
  const std::string_view name = get_string(volume, {"name"});
  bool found = false;
  for (const Source& one : kSourceChecks) {
    const Value* source = json::find(volume, one.key);
    if (source == nullptr) continue;
    if (found) {
      errors.forbidden(at / (one.shown.empty() ? one.key : one.shown), "may not specify more than 1 volume type");
    } else if (one.check == nullptr) {
      image(*source, at / one.key, errors, is_pod);
    } else {
      one.check(*source, at / (one.shown_below.empty() ? one.key : one.shown_below), errors);
    }
    if (one.key == "iscsi" && json::find(*source, "initiatorName") != nullptr &&
        name.size() + 1 + get_string(*source, {"targetPortal"}).size() > 64)
      errors.invalid(at / "name", name,
                     "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.");
    if (one.key == "ephemeral" && !found && !pod_name.empty() && !name.empty()) {
      const std::string claim_name = fmt::format("{}-{}", pod_name, name);
      const std::string why = check_dns1123_subdomain(claim_name);
      for (const auto sentence : words(why, '\n'))
        errors.invalid(at / "name", name, fmt::format("PVC name {}: {}", json::serialize(Value(claim_name)), sentence));
    }
    found = true;
  }
  if (!found) errors.required(at, "must specify a volume type");
}

}  // namespace berth::model::validation
