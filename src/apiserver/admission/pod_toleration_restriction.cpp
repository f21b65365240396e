// PodTolerationRestriction: a namespace's default tolerations and whitelist; pods with a QoS class above BestEffort tolerate memory
// pressure (SPEC D5; plugin/pkg/admission/podtolerationrestriction).
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kMemoryPressure = "node.kubernetes.io/memory-pressure";
constexpr std::string_view kDefaultsAnnotation = "scheduler.alpha.kubernetes.io/defaultTolerations";
constexpr std::string_view kWhitelistAnnotation = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

bool is_same(const json::Value& a, const json::Value& b) {
  const auto op = [](const json::Value& t) { return json::get_string(t, {"operator"}, "Equal"); };
  const auto text = [](const json::Value& t, std::string_view field) { return json::get_string(t, {field}); };
  return text(a, "key") == text(b, "key") && text(a, "value") == text(b, "value") && text(a, "effect") == text(b, "effect") &&
         op(a) == op(b);
}

/// `wide` tolerates all that `narrow` does.
bool is_covered_by_whitelist(const json::Value& wide, const json::Value& narrow) {
  const auto* seconds = json::find(wide, "tolerationSeconds");
  if (is_same(wide, narrow) && seconds == nullptr) return true;
  if (seconds != nullptr) {
    const auto* narrow_seconds = json::find(narrow, "tolerationSeconds");
    if (narrow_seconds == nullptr || json::get_int(narrow, {"tolerationSeconds"}) > json::get_int(wide, {"tolerationSeconds"}))
      return false;
  }
  const auto effect = json::get_string(wide, {"effect"});
  if (!effect.empty() && effect != json::get_string(narrow, {"effect"})) return false;
  const auto key = json::get_string(wide, {"key"});
  if (!key.empty() && key != json::get_string(narrow, {"key"})) return false;
  if (json::get_string(wide, {"operator"}) == "Exists") return true;
  return !key.empty() && json::get_string(narrow, {"operator"}, "Equal") == "Equal" &&
         json::get_string(wide, {"value"}) == json::get_string(narrow, {"value"});
}

class PodTolerationRestriction final : public AdmissionPlugin {
 public:
  explicit PodTolerationRestriction(const AdmissionContext& context) : namespaces_(context.mirror("", "namespaces")) {
    if (const auto found = context.config.plugin_config.find("PodTolerationRestriction"); found != context.config.plugin_config.end()) {
      default_ = json::get_array(found->second, {"default"});
      whitelist_ = json::get_array(found->second, {"whitelist"});
    }
  }
  [[nodiscard]] std::string_view name() const override { return "PodTolerationRestriction"; }

  bool add_circumstances(const AdmissionRequest&, Circumstances& circumstances) override {
    circumstances.add([this] { return namespaces_.generation(); });
    return true;
  }
  Admitted mutate(AdmissionRequest& request) override {
    if (!is_of_pod(request)) return {};
    json::Array extra;
    if (request.operation == Operation::kCreate) {
      auto from_namespace = annotation(request, kDefaultsAnnotation);
      if (!from_namespace) return std::unexpected(from_namespace.error());
      extra = *from_namespace ? **from_namespace : default_;
    }
    const auto& own = json::get_array(request.object, {"spec", "tolerations"});
    for (const auto& mine : own)
      for (const auto& theirs : extra)
        if (!json::get_string(theirs, {"key"}).empty() && conflicts(mine, theirs))
          return std::unexpected(request.forbidden("namespace tolerations and pod tolerations conflict"));
    if (model::pod_qos_class(request.object) != "BestEffort")
      extra.push_back(json::Object{{"key", kMemoryPressure}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
    for (auto& toleration : extra) {
      const auto& now = json::get_array(request.object, {"spec", "tolerations"});
      if (std::any_of(now.begin(), now.end(), [&](const auto& t) { return is_covered_by_whitelist(t, toleration); })) continue;
      auto& spec = json::ensure_object(request.object, {"spec"});
      if (!spec["tolerations"].is_array()) spec["tolerations"] = json::Array();
      spec["tolerations"].get_array().push_back(std::move(toleration));
    }
    return {};
  }

  Admitted validate(const AdmissionRequest& request) override {
    if (!is_of_pod(request)) return {};
    auto from_namespace = annotation(request, kWhitelistAnnotation);
    if (!from_namespace) return std::unexpected(from_namespace.error());
    const json::Array& whitelist = *from_namespace ? **from_namespace : whitelist_;
    if (whitelist.empty()) return {};
    for (const auto& toleration : json::get_array(request.object, {"spec", "tolerations"}))
      if (std::none_of(whitelist.begin(), whitelist.end(), [&](const auto& w) { return is_covered_by_whitelist(w, toleration); }))
        return std::unexpected(request.forbidden(
            fmt::format("pod tolerations (possibly merged with namespace default tolerations) conflict with its {} whitelist",
                        *from_namespace ? "namespace" : "cluster")));
    return {};
  }

 private:
  /// A pod written back as its author has it gets again on update what it got when it was made.
  static bool is_of_pod(const AdmissionRequest& request) {
    return request.is("", "pods") && (request.operation == Operation::kCreate || request.operation == Operation::kUpdate);
  }

  static bool conflicts(const json::Value& a, const json::Value& b) {
    return json::get_string(a, {"key"}) == json::get_string(b, {"key"}) &&
           json::get_string(a, {"effect"}) == json::get_string(b, {"effect"}) &&
           json::get_string(a, {"operator"}, "Equal") == json::get_string(b, {"operator"}, "Equal") &&
           json::get_string(a, {"value"}) == json::get_string(b, {"value"}) && !is_covered_by_whitelist(a, b) &&
           !is_covered_by_whitelist(b, a);
  }

  /// The tolerations in a namespace's annotation; nullopt without one.
  model::ApiResult<std::optional<json::Array>> annotation(const AdmissionRequest& request, std::string_view key) {
    const auto ns = namespaces_.get("", request.ns);
    const auto* text = ns ? json::find(*ns, {"metadata", "annotations", key}) : nullptr;
    if (text == nullptr || !text->is_string()) return std::optional<json::Array>();
    if (json::as_view(*text).empty()) return std::optional<json::Array>(json::Array());
    auto parsed = json::parse(json::as_view(*text));
    if (!parsed || !parsed->is_array())
      return std::unexpected(request.forbidden(fmt::format("namespace annotation {} is not a list of tolerations", key)));
    return std::optional<json::Array>(std::move(parsed->get_array()));
  }

  Mirror& namespaces_;
  json::Array default_, whitelist_;
};

}  // namespace

PluginResult make_pod_toleration_restriction(const AdmissionContext& context) {
  return std::make_unique<PodTolerationRestriction>(context);
}

}  // namespace berth::apiserver
