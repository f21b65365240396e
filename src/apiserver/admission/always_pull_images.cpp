// AlwaysPullImages: every container's image is pulled by whoever runs it (off unless configured).
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

class AlwaysPullImages final : public AdmissionPlugin {
 public:
  [[nodiscard]] std::string_view name() const override { return "AlwaysPullImages"; }

  Admitted mutate(AdmissionRequest& request) override {
    if (!request.is("", "pods") || (request.operation != Operation::kCreate && request.operation != Operation::kUpdate)) return {};
    for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
      auto* containers = json::find(request.object, {"spec", list});
      if (containers == nullptr || !containers->is_array()) continue;
      for (auto& container : containers->get_array())
        if (container.is_object()) container.get_object()["imagePullPolicy"] = "Always";
    }
    return {};
  }
};

}  // namespace

PluginResult make_always_pull_images(const AdmissionContext&) { return std::make_unique<AlwaysPullImages>(); }

}  // namespace berth::apiserver
