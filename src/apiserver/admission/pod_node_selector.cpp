// PodNodeSelector: node selectors by namespace annotation, a cluster default, and a whitelist per namespace (SPEC E3).
#include "apiserver/admission/node_selectors.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"
#include "base/split.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kNodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector";
constexpr std::string_view kProjectAnnotation = "openshift.io/node-selector";
constexpr std::string_view kClusterDefault = "clusterDefaultNodeSelector";

class PodNodeSelector final : public NodeSelectorPlugin {
 public:
  using Selectors = std::map<std::string, LabelMap>;
  PodNodeSelector(Mirror& namespaces, Selectors selectors)
      : NodeSelectorPlugin(namespaces, "pod node label selector conflicts with its namespace node label selector"),
        selectors_(std::move(selectors)) {}
  [[nodiscard]] std::string_view name() const override { return "PodNodeSelector"; }

 private:
  /// Kubernetes takes a project's selector that no pod can have; whoever gives it is told (the documents' 16.5.4 has such pods refused).
  void tell(const AdmissionRequest& request) const override {
    const auto text_of = [](const json::Value& ns, std::string_view annotation) {
      return std::string(json::get_string(ns, {"metadata", "annotations", annotation}));
    };
    const std::string text = text_of(request.object, kNodeSelectorAnnotation), project = text_of(request.object, kProjectAnnotation);
    if (text.empty() ||
        (text == text_of(request.old_object, kNodeSelectorAnnotation) && project == text_of(request.old_object, kProjectAnnotation)))
      return;
    const auto warn = [&](std::string_view why) {
      request.caller.warnings->push_back(
          fmt::format("metadata.annotations[{}]: {}: the project's pods will be refused", kNodeSelectorAnnotation, why));
    };
    const auto labels = parse_label_map(text);
    if (!labels) return warn(fmt::format("\"{}\" is not of the form key=value,key=value", text));
    const auto whitelist = selectors_.find(std::string(json::get_string(request.object, {"metadata", "name"})));
    const auto project_labels = parse_label_map(project);
    for (const auto& [key, value] : *labels) {
      const auto is_other = [&](const LabelMap& all, bool must_be_there) {
        const auto found = all.find(key);
        return found == all.end() ? must_be_there : found->second != value;
      };
      if (whitelist != selectors_.end() && !whitelist->second.empty() && is_other(whitelist->second, true))
        warn(fmt::format("{}={} conflicts with the namespace's whitelist ({})", key, value, render_label_map(whitelist->second)));
      if (project_labels && is_other(*project_labels, false))
        warn(fmt::format("{}={} conflicts with {} ({})", key, value, kProjectAnnotation, project));
    }
  }

  model::ApiResult<LabelMap> selector_of(const AdmissionRequest& request) const override {
    const auto ns = namespaces_.get("", request.ns);
    const auto* annotation = ns ? json::find(*ns, {"metadata", "annotations", kNodeSelectorAnnotation}) : nullptr;
    if (annotation != nullptr && annotation->is_string()) {
      auto labels = parse_label_map(json::as_view(*annotation));
      if (!labels) {
        model::ApiStatus broken;  // A plain error in Kubernetes: 500 without a reason.
        broken.message = "invalid selector: [" + bad_label(json::as_view(*annotation)) + "]";
        return std::unexpected(std::move(broken));
      }
      return *labels;
    }
    const auto found = selectors_.find(std::string(kClusterDefault));
    return found == selectors_.end() ? LabelMap() : found->second;
  }

  /// The first part that is no key=value, its pieces as Go prints a list of them.
  static std::string bad_label(std::string_view text) {
    std::string part;
    for (const auto one : split(text, ',')) {
      part = one;
      if (std::ranges::count(part, '=') == 1) continue;
      std::ranges::replace(part, '=', ' ');
      break;
    }
    return part;
  }

  [[nodiscard]] Admitted judge(const AdmissionRequest& request) const override {
    const auto whitelist = selectors_.find(request.ns);
    if (whitelist == selectors_.end() || whitelist->second.empty()) return {};
    for (const auto& [key, value] : json::get_object(request.object, {"spec", "nodeSelector"})) {
      const auto allowed = whitelist->second.find(std::string(key));
      if (allowed == whitelist->second.end() || !value.is_string() || json::as_view(value) != allowed->second)
        return std::unexpected(request.forbidden("pod node label selector labels conflict with its namespace whitelist"));
    }
    return {};
  }

  Selectors selectors_;  ///< By namespace, and kClusterDefault.
};

}  // namespace

PluginResult make_pod_node_selector(const AdmissionContext& context) {
  PodNodeSelector::Selectors selectors;
  const auto configured = context.config.plugin_config.find("PodNodeSelector");
  if (configured != context.config.plugin_config.end()) {
    for (const auto& [ns, text] : json::get_object(configured->second, {"podNodeSelectorPluginConfig"})) {
      auto labels = text.is_string() ? parse_label_map(json::as_view(text)) : std::nullopt;
      if (!labels)
        return invalid(
            fmt::format("podNodeSelectorPluginConfig.{}: {} is not of the form key=value,…", std::string_view(ns), json::serialize(text)));
      selectors[std::string(ns)] = std::move(*labels);
    }
  }
  return std::make_unique<PodNodeSelector>(context.mirror("", "namespaces"), std::move(selectors));
}

}  // namespace berth::apiserver
