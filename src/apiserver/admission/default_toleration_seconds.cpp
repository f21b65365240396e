// DefaultTolerationSeconds: pods stay 300 s on a node that is not ready or unreachable, unless they say otherwise (SPEC D5).
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

class DefaultTolerationSeconds final : public AdmissionPlugin {
 public:
  explicit DefaultTolerationSeconds(const AdmissionContext& context)
      : not_ready_seconds_(context.config.default_not_ready_toleration_seconds),
        unreachable_seconds_(context.config.default_unreachable_toleration_seconds) {}
  [[nodiscard]] std::string_view name() const override { return "DefaultTolerationSeconds"; }

  Admitted mutate(AdmissionRequest& request) override {
    if (!request.is("", "pods") || (request.operation != Operation::kCreate && request.operation != Operation::kUpdate)) return {};
    add(request.object, "node.kubernetes.io/not-ready", not_ready_seconds_);
    add(request.object, "node.kubernetes.io/unreachable", unreachable_seconds_);
    return {};
  }

 private:
  static void add(json::Value& pod, std::string_view key, int seconds) {
    for (const auto& toleration : json::get_array(pod, {"spec", "tolerations"})) {
      const auto its_key = json::get_string(toleration, {"key"});
      const auto effect = json::get_string(toleration, {"effect"});
      if ((its_key == key || its_key.empty()) && (effect == "NoExecute" || effect.empty())) return;
    }
    auto& spec = json::ensure_object(pod, {"spec"});
    if (!spec["tolerations"].is_array()) spec["tolerations"] = json::Array();
    spec["tolerations"].get_array().push_back(
        json::Object{{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", seconds}});
  }

  int not_ready_seconds_, unreachable_seconds_;
};

}  // namespace

PluginResult make_default_toleration_seconds(const AdmissionContext& context) {
  return std::make_unique<DefaultTolerationSeconds>(context);
}

}  // namespace berth::apiserver
