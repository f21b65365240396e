// PodResizeValidator: a resize that the pod's node could never grant is refused at once (plugin/pkg/admission/podresize).
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"

namespace berth::apiserver {
namespace {

class PodResizeValidator final : public AdmissionPlugin {
 public:
  explicit PodResizeValidator(const AdmissionContext& context) : nodes_(context.mirror("", "nodes")) {}
  [[nodiscard]] std::string_view name() const override { return "PodResizeValidator"; }

  Admitted validate(const AdmissionRequest& request) override {
    if (!request.is("", "pods", "resize") || request.operation != Operation::kUpdate) return {};
    const auto node_name = json::get_string(request.object, {"spec", "nodeName"});
    if (node_name.empty()) return {};
    const auto *before = json::find(request.old_object, "spec"), *after = json::find(request.object, "spec");
    if (before != nullptr && after != nullptr && json::equal(*before, *after)) return {};
    const auto node = nodes_.get("", node_name);
    if (node == nullptr) return std::unexpected(request.forbidden(fmt::format("node \"{}\" not found", node_name)));
    const auto os = json::get_string(*node, {"metadata", "labels", "kubernetes.io/os"}, "linux");
    if (os != "linux")
      return refuse(request, "UnsupportedPlatform",
                    fmt::format("pod resize is only supported on linux nodes, node \"{}\" is \"{}\"", node_name, os));
    const auto requests = pod_total(request.object, "requests");
    const auto allocatable = amounts_of(json::find(*node, {"status", "allocatable"}));
    const auto amount = [](const ResourceAmounts& amounts, std::string_view resource) {
      const auto found = amounts.find(resource);
      return found == amounts.end() ? model::Quantity() : found->second;
    };
    std::string lacks;
    if (const auto asked = amount(requests, "cpu"), there = amount(allocatable, "cpu"); asked > there)
      lacks = fmt::format("cpu, requested: {}, allocatable: {}", asked.milli_value(), there.milli_value());
    if (const auto asked = amount(requests, "memory"), there = amount(allocatable, "memory"); asked > there)
      lacks += fmt::format("{}memory, requested: {}, allocatable: {}", lacks.empty() ? "" : "; ", asked.value(), there.value());
    if (lacks.empty()) return {};
    return refuse(request, "NodeCapacity", "node didn't have enough allocatable resources: " + lacks);
  }

 private:
  static Admitted refuse(const AdmissionRequest& request, std::string cause, const std::string& why) {
    auto status = request.forbidden(why);
    status.causes.push_back({std::move(cause), "", ""});
    return std::unexpected(std::move(status));
  }

  Mirror& nodes_;
};

}  // namespace

PluginResult make_pod_resize(const AdmissionContext& context) { return std::make_unique<PodResizeValidator>(context); }

}  // namespace berth::apiserver
