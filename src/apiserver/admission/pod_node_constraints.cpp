// PodNodeConstraints: who may not bind pods may not choose nodes by name or by blacklisted labels either (SPEC E2).
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"

namespace berth::apiserver {
namespace {

class PodNodeConstraints final : public AdmissionPlugin {
 public:
  PodNodeConstraints(Authorizer& authorizer, std::set<std::string, std::less<>> blacklist)
      : authorizer_(authorizer), blacklist_(std::move(blacklist)) {}
  [[nodiscard]] std::string_view name() const override { return "PodNodeConstraints"; }

  Admitted validate(const AdmissionRequest& request) override {
    if (!request.subresource.empty()) return {};
    // A bound pod has a node name that its user never chose: only creation is judged. Templates are judged whenever they change.
    const bool is_pod = request.kind->kind == "Pod";
    if (request.operation != Operation::kCreate && (is_pod || request.operation != Operation::kUpdate)) return {};
    const auto* spec = pod_spec_of(request.kind->kind, request.object);
    if (spec == nullptr) return {};
    if (request.operation == Operation::kUpdate) {
      const auto* old_spec = pod_spec_of(request.kind->kind, request.old_object);
      if (old_spec != nullptr && json::equal(*spec, *old_spec)) return {};
    }
    const bool by_name = !json::get_string(*spec, {"nodeName"}).empty();
    std::string labels;
    for (const auto& [key, value] : json::get_object(*spec, {"nodeSelector"}))
      if (blacklist_.contains(std::string_view(key))) labels += (labels.empty() ? "" : " ") + std::string(key);
    if ((!by_name && labels.empty()) || may_bind(request)) return {};
    std::string what = by_name && labels.empty() ? "nodeName"
                       : by_name                 ? fmt::format("nodeName and label(s) [{}]", labels)
                                                 : fmt::format("label(s) [{}]", labels);
    return std::unexpected(request.forbidden(fmt::format("node selection by {} is prohibited by policy for your role", what)));
  }

 private:
  bool may_bind(const AdmissionRequest& request) {
    Attributes attributes;
    attributes.verb = "create";
    attributes.version = "v1";
    attributes.resource = "pods";
    attributes.subresource = "binding";
    attributes.ns = request.ns;
    attributes.name = request.kind->kind == "Pod" ? request.name : "";
    return authorizer_.authorize(*request.user, attributes).allowed;
  }

  Authorizer& authorizer_;
  std::set<std::string, std::less<>> blacklist_;
};

}  // namespace

PluginResult make_pod_node_constraints(const AdmissionContext& context) {
  std::set<std::string, std::less<>> blacklist;
  if (const auto found = context.config.plugin_config.find("PodNodeConstraints"); found != context.config.plugin_config.end()) {
    for (const auto& label : json::get_array(found->second, {"nodeSelectorLabelBlacklist"})) {
      if (!label.is_string()) return invalid("nodeSelectorLabelBlacklist: must be a list of label keys");
      blacklist.emplace(json::as_view(label));
    }
  } else {
    blacklist = {"kubernetes.io/hostname"};  // The plugin's own default when it is only enabled by name.
  }
  return std::make_unique<PodNodeConstraints>(context.authorizer, std::move(blacklist));
}

}  // namespace berth::apiserver
