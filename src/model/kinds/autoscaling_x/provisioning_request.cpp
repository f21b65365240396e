// ProvisioningRequests: custom resources where they come from, so their status updates move no metadata.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

std::shared_ptr<const KindHooks> provisioning_hooks() {
  static const auto hooks =
      share({.form = kDefault,
             .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
             .rules = Rules{.has_foreign_finalizers = true,
                            .create = validation::provisioning_request,
                            .update = in_turn(validation::provisioning_request, validation::provisioning_request_update)},
             .printer = kDefault,
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
  return hooks;
}

Record provisioning_request(std::string version) {
  Record out("autoscaling.x-k8s.io", std::move(version), "ProvisioningRequest", "provisioningrequests");
  out.shorts({"provreq", "provreqs"}).subs({"status"}).generation();
  return out;
}

}  // namespace

std::vector<KindInfo> autoscaling_x_group() {
  return {provisioning_request("v1").does(provisioning_hooks()),
          provisioning_request("v1beta1").stored_as("autoscaling.x-k8s.io", "v1").does(provisioning_hooks())};
}

}  // namespace berth::model::kinds
