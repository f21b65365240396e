// NodeEnv: a project's node selector (annotation openshift.io/node-selector, or the cluster's default) becomes its pods' own (SPEC E4).
#include "apiserver/admission/node_selectors.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kProjectSelectorAnnotation = "openshift.io/node-selector";
constexpr std::string_view kKubernetesAnnotation = "scheduler.alpha.kubernetes.io/node-selector";

class NodeEnv final : public NodeSelectorPlugin {
 public:
  NodeEnv(Mirror& namespaces, LabelMap default_selector)
      : NodeSelectorPlugin(namespaces, "pod node label selector conflicts with its project node label selector"),
        default_selector_(std::move(default_selector)) {}
  [[nodiscard]] std::string_view name() const override { return "NodeEnv"; }

 private:
  void tell(const AdmissionRequest& request) const override {
    const auto text = json::get_string(request.object, {"metadata", "annotations", kProjectSelectorAnnotation});
    if (!parse_label_map(text) && text != json::get_string(request.old_object, {"metadata", "annotations", kProjectSelectorAnnotation}))
      request.caller.warnings->push_back(
          fmt::format("metadata.annotations[{}]: \"{}\" is not of the form key=value,key=value: the project's pods will be refused",
                      kProjectSelectorAnnotation, text));
  }

  model::ApiResult<LabelMap> selector_of(const AdmissionRequest& request) const override {
    const auto ns = namespaces_.get("", request.ns);
    if (ns == nullptr) return LabelMap();
    const auto* annotation = json::find(*ns, {"metadata", "annotations", kProjectSelectorAnnotation});
    if (annotation == nullptr || !annotation->is_string()) {
      // Who uses Kubernetes' own annotation has left the project default behind.
      return json::find(*ns, {"metadata", "annotations", kKubernetesAnnotation}) != nullptr ? LabelMap() : default_selector_;
    }
    auto labels = parse_label_map(json::as_view(*annotation));
    if (!labels)
      return std::unexpected(request.forbidden(fmt::format("project annotation {} is not a label selector", kProjectSelectorAnnotation)));
    return *labels;
  }

  LabelMap default_selector_;
};

}  // namespace

PluginResult make_node_env(const AdmissionContext& context) {
  auto selector = parse_label_map(context.config.default_node_selector);
  if (!selector)
    return invalid(fmt::format("defaultNodeSelector: \"{}\" is not of the form key=value,…", context.config.default_node_selector));
  return std::make_unique<NodeEnv>(context.mirror("", "namespaces"), std::move(*selector));
}

}  // namespace berth::apiserver
