// DefaultIngressClass and DenyServiceExternalIPs (plugin/pkg/admission/network).
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

class DefaultIngressClass final : public AdmissionPlugin {
 public:
  explicit DefaultIngressClass(const AdmissionContext& context) : classes_(context.mirror("networking.k8s.io", "ingressclasses")) {}
  [[nodiscard]] std::string_view name() const override { return "DefaultIngressClass"; }

  bool add_circumstances(const AdmissionRequest&, Circumstances& circumstances) override {
    circumstances.add([this] { return classes_.generation(); });
    return true;
  }

  Admitted mutate(AdmissionRequest& request) override {
    if (!request.is("networking.k8s.io", "ingresses") || request.operation != Operation::kCreate) return {};
    if (json::find(request.object, {"spec", "ingressClassName"}) != nullptr) return {};
    if (json::find(request.object, {"metadata", "annotations", "kubernetes.io/ingress.class"}) != nullptr) return {};
    const auto best = default_class(classes_, {"ingressclass.kubernetes.io/is-default-class"});
    if (best != nullptr) json::ensure_object(request.object, {"spec"})["ingressClassName"] = json::get_string(*best, {"metadata", "name"});
    return {};
  }

 private:
  Mirror& classes_;
};

class DenyServiceExternalIPs final : public AdmissionPlugin {
 public:
  [[nodiscard]] std::string_view name() const override { return "DenyServiceExternalIPs"; }

  Admitted validate(const AdmissionRequest& request) override {
    if (!request.is("", "services")) return {};
    if (request.operation != Operation::kCreate && request.operation != Operation::kUpdate) return {};
    // What is there may stay or go.
    const auto& before = json::get_array(request.old_object, {"spec", "externalIPs"});
    for (const auto& address : json::get_array(request.object, {"spec", "externalIPs"}))
      if (std::none_of(before.begin(), before.end(), [&](const auto& old) { return json::equal(old, address); }))
        return std::unexpected(request.forbidden("Use of external IPs is denied by admission control"));
    return {};
  }
};

}  // namespace

PluginResult make_default_ingress_class(const AdmissionContext& context) { return std::make_unique<DefaultIngressClass>(context); }
PluginResult make_deny_service_external_ips(const AdmissionContext&) { return std::make_unique<DenyServiceExternalIPs>(); }

}  // namespace berth::apiserver
