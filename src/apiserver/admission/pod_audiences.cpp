#include "apiserver/admission/pod_audiences.h"

#include "apiserver/cache/object_codec.h"

namespace berth::apiserver {
namespace {

/// Drivers that do the work of volume kinds that were Kubernetes' own (k8s.io/csi-translation-lib).
constexpr std::pair<std::string_view, std::string_view> kMigrated[] = {{"awsElasticBlockStore", "ebs.csi.aws.com"},
                                                                       {"azureDisk", "disk.csi.azure.com"},
                                                                       {"azureFile", "file.csi.azure.com"},
                                                                       {"cinder", "cinder.csi.openstack.org"},
                                                                       {"gcePersistentDisk", "pd.csi.storage.gke.io"},
                                                                       {"portworxVolume", "pxd.portworx.com"},
                                                                       {"vsphereVolume", "csi.vsphere.vmware.com"}};

/// The driver of a pod's volume or a PersistentVolume's spec; empty: none.
std::string_view driver_of(const json::Value& source) {
  if (const auto driver = json::get_string(source, {"csi", "driver"}); !driver.empty()) return driver;
  for (const auto& [field, driver] : kMigrated)
    if (json::find(source, field) != nullptr) return driver;
  return {};
}

bool driver_uses(const ObjectCache& cache, std::string_view driver, std::string_view audience) {
  if (driver.empty()) return false;
  const auto object = cache.get(make_key("storage.k8s.io", "csidrivers", "", driver));
  if (object == nullptr) return false;
  const auto document = decode_object(*object);
  return std::ranges::any_of(json::get_array(document, {"spec", "tokenRequests"}),
                             [&](const json::Value& one) { return json::get_string(one, {"audience"}) == audience; });
}

bool claim_uses(const ObjectCache& cache, std::string_view ns, std::string_view name, std::string_view audience) {
  const auto claim = cache.get(make_key("", "persistentvolumeclaims", ns, name));
  if (claim == nullptr) return false;
  const auto bound = decode_object(*claim);
  const auto volume = cache.get(make_key("", "persistentvolumes", "", json::get_string(bound, {"spec", "volumeName"})));
  if (volume == nullptr) return false;
  const auto document = decode_object(*volume);
  const auto* spec = json::find(document, {"spec"});
  return spec != nullptr && driver_uses(cache, driver_of(*spec), audience);
}

}  // namespace

bool pod_uses_audience(const ObjectCache& cache, const json::Value& pod, std::string_view ns, std::string_view audience) {
  std::set<std::string, std::less<>> asked;  // Each driver and claim once, however many volumes name it.
  for (const auto& volume : json::get_array(pod, {"spec", "volumes"})) {
    for (const auto& source : json::get_array(volume, {"projected", "sources"}))
      if (json::find(source, "serviceAccountToken") != nullptr && json::get_string(source, {"serviceAccountToken", "audience"}) == audience)
        return true;
    if (const auto driver = driver_of(volume); asked.emplace(driver).second && driver_uses(cache, driver, audience)) return true;
    std::string claim(json::get_string(volume, {"persistentVolumeClaim", "claimName"}));
    if (json::find(volume, "ephemeral") != nullptr)
      claim = fmt::format("{}-{}", json::get_string(pod, {"metadata", "name"}), json::get_string(volume, {"name"}));
    if (!claim.empty() && asked.emplace("/" + claim).second && claim_uses(cache, ns, claim, audience)) return true;
  }
  return false;
}

}  // namespace berth::apiserver
