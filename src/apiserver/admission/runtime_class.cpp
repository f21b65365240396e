// RuntimeClass: a pod's runtime class brings its overhead, node selector and tolerations (plugin/pkg/admission/runtimeclass).
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"

namespace berth::apiserver {
namespace {

class RuntimeClass final : public AdmissionPlugin {
 public:
  explicit RuntimeClass(const AdmissionContext& context) : classes_(context.mirror("node.k8s.io", "runtimeclasses")) {}
  [[nodiscard]] std::string_view name() const override { return "RuntimeClass"; }

  bool add_circumstances(const AdmissionRequest&, Circumstances& circumstances) override {
    circumstances.add([this] { return classes_.generation(); });
    return true;
  }

  Admitted mutate(AdmissionRequest& request) override {
    if (!request.is("", "pods") || request.operation != Operation::kCreate) return {};
    const std::string class_name(json::get_string(request.object, {"spec", "runtimeClassName"}));
    if (class_name.empty()) return {};
    const auto runtime_class = classes_.get("", class_name);
    if (runtime_class == nullptr)
      return std::unexpected(request.forbidden(fmt::format("pod rejected: RuntimeClass \"{}\" not found", class_name)));
    auto& spec = json::ensure_object(request.object, {"spec"});
    if (const auto* overhead = json::find(*runtime_class, {"overhead", "podFixed"})) {
      const auto* own = json::find(request.object, {"spec", "overhead"});
      if (own != nullptr && amounts_of(own) != amounts_of(overhead))
        return std::unexpected(request.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"));
      spec["overhead"] = *overhead;
    }
    for (const auto& [key, value] : json::get_object(*runtime_class, {"scheduling", "nodeSelector"})) {
      const auto* own = json::find(request.object, {"spec", "nodeSelector", std::string_view(key)});
      if (own != nullptr && !json::equal(*own, value))
        return std::unexpected(
            request.forbidden(fmt::format("conflict: runtimeClass.scheduling.nodeSelector[{0}] = {1}; pod.spec.nodeSelector[{0}] = {2}",
                                          std::string_view(key), json::get_string(value, {}), json::get_string(*own, {}))));
      json::ensure_object(request.object, {"spec", "nodeSelector"})[key] = value;
    }
    if (const auto& own = json::get_array(*runtime_class, {"scheduling", "tolerations"}); !own.empty()) {
      auto all = json::get_array(request.object, {"spec", "tolerations"});
      all.insert(all.end(), own.begin(), own.end());
      json::ensure_object(request.object, {"spec"})["tolerations"] = merge_tolerations(all);
    }
    return {};
  }

  Admitted validate(const AdmissionRequest& request) override {
    if (!request.is("", "pods") || request.operation != Operation::kCreate) return {};
    const auto* own = json::find(request.object, {"spec", "overhead"});
    const auto runtime_class = classes_.get("", json::get_string(request.object, {"spec", "runtimeClassName"}));
    const auto* overhead = runtime_class == nullptr ? nullptr : json::find(*runtime_class, {"overhead", "podFixed"});
    if (overhead == nullptr && own != nullptr)
      return std::unexpected(request.forbidden("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"));
    if (overhead != nullptr && amounts_of(own) != amounts_of(overhead))
      return std::unexpected(request.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"));
    return {};
  }

 private:
  Mirror& classes_;
};

}  // namespace

PluginResult make_runtime_class(const AdmissionContext& context) { return std::make_unique<RuntimeClass>(context); }

}  // namespace berth::apiserver
