// TaintNodesByCondition: a new node carries not-ready:NoSchedule until the node life-cycle controller has seen it ready (SPEC D3, E5).
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";

class TaintNodesByCondition final : public AdmissionPlugin {
 public:
  [[nodiscard]] std::string_view name() const override { return "TaintNodesByCondition"; }

  Admitted mutate(AdmissionRequest& request) override {
    if (request.operation != Operation::kCreate || !request.is("", "nodes")) return {};
    for (const auto& taint : json::get_array(request.object, {"spec", "taints"}))
      if (json::get_string(taint, {"key"}) == kNotReady && json::get_string(taint, {"effect"}) == "NoSchedule") return {};
    auto& spec = json::ensure_object(request.object, {"spec"});
    if (!spec["taints"].is_array()) spec["taints"] = json::Array();
    spec["taints"].get_array().push_back(json::Object{{"key", kNotReady}, {"effect", "NoSchedule"}});
    return {};
  }
};

}  // namespace

PluginResult make_taint_nodes_by_condition(const AdmissionContext&) { return std::make_unique<TaintNodesByCondition>(); }

}  // namespace berth::apiserver
