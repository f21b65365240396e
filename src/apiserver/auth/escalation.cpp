// Refuses writes of RBAC objects that grant more than their writer has (Kubernetes does this in the storage of those kinds:
// pkg/registry/rbac/clusterrole/policybased and its siblings). Not an admission plugin by Kubernetes' names, so it cannot be switched off.
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

class RbacEscalation final : public AdmissionPlugin {
 public:
  explicit RbacEscalation(Authorizer& authorizer) : authorizer_(authorizer) {}
  [[nodiscard]] std::string_view name() const override { return "RBACEscalation"; }

  // In the validating pass: what mutating webhooks added is judged as well.
  Admitted validate(const AdmissionRequest& request) override {
    if (request.kind->group != "rbac.authorization.k8s.io" || !request.subresource.empty()) return {};
    if (request.operation != Operation::kCreate && request.operation != Operation::kUpdate) return {};
    const json::Value* old_object = request.old_object.is_object() ? &request.old_object : nullptr;
    auto complaint = authorizer_.check_escalation(*request.user, request.kind->kind, request.object, old_object);
    if (complaint) return std::unexpected(request.forbidden(*complaint));
    return {};
  }

 private:
  Authorizer& authorizer_;
};

}  // namespace

PluginResult make_rbac_escalation(const AdmissionContext& context) { return std::make_unique<RbacEscalation>(context.authorizer); }

}  // namespace berth::apiserver
