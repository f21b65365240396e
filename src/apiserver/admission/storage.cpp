// DefaultStorageClass, StorageObjectInUseProtection and PersistentVolumeClaimResize.
#include "apiserver/admission/plugins.h"
#include "model/quantity.h"

namespace berth::apiserver {
namespace {

class DefaultStorageClass final : public AdmissionPlugin {
 public:
  explicit DefaultStorageClass(const AdmissionContext& context) : classes_(context.mirror("storage.k8s.io", "storageclasses")) {}
  [[nodiscard]] std::string_view name() const override { return "DefaultStorageClass"; }

  bool add_circumstances(const AdmissionRequest&, Circumstances& circumstances) override {
    circumstances.add([this] { return classes_.generation(); });
    return true;
  }
  Admitted mutate(AdmissionRequest& request) override {
    if (!request.is("", "persistentvolumeclaims") || request.operation != Operation::kCreate) return {};
    // An explicit "" asks for no class at all.
    if (json::find(request.object, {"spec", "storageClassName"}) != nullptr) return {};
    if (json::find(request.object, {"metadata", "annotations", "volume.beta.kubernetes.io/storage-class"}) != nullptr) return {};
    const auto best =
        default_class(classes_, {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"});
    if (best != nullptr) json::ensure_object(request.object, {"spec"})["storageClassName"] = json::get_string(*best, {"metadata", "name"});
    return {};
  }

 private:
  Mirror& classes_;
};

class StorageObjectInUseProtection final : public AdmissionPlugin {
 public:
  [[nodiscard]] std::string_view name() const override { return "StorageObjectInUseProtection"; }

  Admitted mutate(AdmissionRequest& request) override {
    if (request.operation != Operation::kCreate) return {};
    if (request.is("", "persistentvolumes")) add_finalizer(request.object, "kubernetes.io/pv-protection");
    if (request.is("", "persistentvolumeclaims")) add_finalizer(request.object, "kubernetes.io/pvc-protection");
    if (request.is("storage.k8s.io", "volumeattributesclasses")) add_finalizer(request.object, "kubernetes.io/vac-protection");
    return {};
  }
};

class PersistentVolumeClaimResize final : public AdmissionPlugin {
 public:
  explicit PersistentVolumeClaimResize(const AdmissionContext& context) : classes_(context.mirror("storage.k8s.io", "storageclasses")) {}
  [[nodiscard]] std::string_view name() const override { return "PersistentVolumeClaimResize"; }

  Admitted validate(const AdmissionRequest& request) override {
    if (!request.is("", "persistentvolumeclaims") || request.operation != Operation::kUpdate) return {};
    const auto size = [](const json::Value& claim) {
      return model::Quantity::parse(json::get_string(claim, {"spec", "resources", "requests", "storage"})).value_or(model::Quantity());
    };
    if (size(request.object) <= size(request.old_object)) return {};
    if (json::get_string(request.old_object, {"status", "phase"}) != "Bound")
      return std::unexpected(request.forbidden("Only bound persistent volume claims can be expanded"));
    const auto class_name = json::get_string(request.object, {"spec", "storageClassName"});
    const auto storage_class = class_name.empty() ? nullptr : classes_.get("", class_name);
    if (storage_class != nullptr && json::get_bool(*storage_class, {"allowVolumeExpansion"})) return {};
    return std::unexpected(request.forbidden(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"));
  }

 private:
  Mirror& classes_;
};

}  // namespace

PluginResult make_default_storage_class(const AdmissionContext& context) { return std::make_unique<DefaultStorageClass>(context); }
PluginResult make_storage_object_in_use_protection(const AdmissionContext&) { return std::make_unique<StorageObjectInUseProtection>(); }
PluginResult make_persistent_volume_claim_resize(const AdmissionContext& context) {
  return std::make_unique<PersistentVolumeClaimResize>(context);
}

}  // namespace berth::apiserver
