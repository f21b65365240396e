// NodeEnv: a project's node selector (annotation openshift.io/node-selector, or the cluster's default) becomes its pods' own (SPEC E4).
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kProjectSelectorAnnotation = "openshift.io/node-selector";
constexpr std::string_view kKubernetesAnnotation = "scheduler.alpha.kubernetes.io/node-selector";

class NodeEnv final : public AdmissionPlugin {
 public:
  NodeEnv(Mirror& namespaces, std::map<std::string, std::string> default_selector)
      : namespaces_(namespaces), default_selector_(std::move(default_selector)) {}
  [[nodiscard]] std::string_view name() const override { return "NodeEnv"; }

  bool add_circumstances(const AdmissionRequest& write, Circumstances& circumstances) override {
    if (write.is("", "namespaces")) return false;  // What is told is told each time.
    circumstances.add([this] { return namespaces_.generation(); });
    return true;
  }
  Admitted mutate(AdmissionRequest& request) override {
    if (!applies(request)) return {};
    const auto wanted = selector_of(request);
    if (!wanted) return std::unexpected(wanted.error());
    if (auto checked = check(request, *wanted); !checked || wanted->empty()) return checked;
    auto& selector = json::ensure_object(request.object, {"spec", "nodeSelector"});
    for (const auto& [key, value] : *wanted) selector[key] = value;
    return {};
  }

  Admitted validate(const AdmissionRequest& request) override {
    if (request.is("", "namespaces") && request.warnings != nullptr && !request.object.is_null()) {
      const auto text = json::get_string(request.object, {"metadata", "annotations", kProjectSelectorAnnotation});
      if (!parse_label_map(text) && text != json::get_string(request.old_object, {"metadata", "annotations", kProjectSelectorAnnotation}))
        request.warnings->push_back(
            fmt::format("metadata.annotations[{}]: \"{}\" is not of the form key=value,key=value: the project's pods will be refused",
                        kProjectSelectorAnnotation, text));
    }
    if (!applies(request)) return {};
    const auto wanted = selector_of(request);
    if (!wanted) return std::unexpected(wanted.error());
    return check(request, *wanted);
  }

 private:
  using LabelMap = std::map<std::string, std::string>;
  static bool applies(const AdmissionRequest& request) { return request.is("", "pods") && request.operation == Operation::kCreate; }

  model::ApiResult<LabelMap> selector_of(const AdmissionRequest& request) const {
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

  static Admitted check(const AdmissionRequest& request, const LabelMap& wanted) {
    for (const auto& [key, value] : json::get_object(request.object, {"spec", "nodeSelector"})) {
      const auto found = wanted.find(std::string(key));
      if (found != wanted.end() && value.is_string() && json::as_view(value) != found->second)
        return std::unexpected(request.forbidden("pod node label selector conflicts with its project node label selector"));
    }
    return {};
  }

  Mirror& namespaces_;
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
