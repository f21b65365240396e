// NodeDeclaredFeatureValidator: a change of a running pod that its node's kubelet does not know of is refused at once
// (plugin/pkg/admission/nodedeclaredfeatures; which change needs what: component-helpers/nodedeclaredfeatures).
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

/// Features in the order of their names.
std::vector<std::string> features_of_change(const json::Value& before, const json::Value& after) {
  std::vector<std::string> out;
  const auto resources = [](const json::Value& holder) {
    const json::Value* found = json::find(holder, "resources");
    return found == nullptr ? json::Value(json::Object()) : *found;
  };
  if (!json::equal(resources(before), resources(after))) out.emplace_back("InPlacePodLevelResourcesVerticalScaling");
  const auto &old_init = json::get_array(before, {"initContainers"}), &new_init = json::get_array(after, {"initContainers"});
  for (std::size_t i = 0; i < std::min(old_init.size(), new_init.size()); ++i)
    if (json::get_string(old_init[i], {"restartPolicy"}) != "Always" && !json::equal(resources(old_init[i]), resources(new_init[i]))) {
      out.emplace_back("InPlacePodVerticalScalingInitContainers");
      break;
    }
  return out;
}

class NodeDeclaredFeatureValidator final : public AdmissionPlugin {
 public:
  explicit NodeDeclaredFeatureValidator(const AdmissionContext& context) : nodes_(context.mirror("", "nodes")) {}
  [[nodiscard]] std::string_view name() const override { return "NodeDeclaredFeatureValidator"; }

  Admitted validate(const AdmissionRequest& request) override {
    if (request.operation != Operation::kUpdate || (!request.is("", "pods") && !request.is("", "pods", "resize"))) return {};
    const auto node_name = json::get_string(request.object, {"spec", "nodeName"});
    const auto *before = json::find(request.old_object, "spec"), *after = json::find(request.object, "spec");
    if (node_name.empty() || before == nullptr || after == nullptr) return {};
    auto wanted = features_of_change(*before, *after);
    if (wanted.empty()) return {};
    const auto node = nodes_.get("", node_name);
    if (node == nullptr) return std::unexpected(request.forbidden(fmt::format("node \"{}\" not found", node_name)));
    const auto& declared = json::get_array(*node, {"status", "declaredFeatures"});
    std::erase_if(wanted, [&](const std::string& feature) { return std::ranges::find(declared, json::Value(feature)) != declared.end(); });
    if (wanted.empty()) return {};
    return std::unexpected(request.forbidden(
        fmt::format("pod update requires features {} which are not available on node \"{}\"", fmt::join(wanted, ", "), node_name)));
  }

 private:
  Mirror& nodes_;
};

}  // namespace

PluginResult make_node_declared_features(const AdmissionContext& context) {
  return std::make_unique<NodeDeclaredFeatureValidator>(context);
}

}  // namespace berth::apiserver
