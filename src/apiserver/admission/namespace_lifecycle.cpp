// NamespaceLifecycle: nothing is created where there is no namespace or where it is going away; the system's own namespaces stay.
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

class NamespaceLifecycle final : public AdmissionPlugin {
 public:
  explicit NamespaceLifecycle(const AdmissionContext& context) : cache_(context.cache) {}
  [[nodiscard]] std::string_view name() const override { return "NamespaceLifecycle"; }

  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) override {
    circumstances.add([this, key = make_key("", "namespaces", "", request.ns)] {
      const auto found = cache_.get(key);
      return found == nullptr ? 0 : static_cast<std::uint64_t>(found->revision);
    });
    return true;
  }

  // In the mutating pass, so that a missing namespace is what the user hears of first.
  Admitted mutate(AdmissionRequest& request) override {
    if (request.operation == Operation::kDelete && request.is("", "namespaces")) {
      for (std::string_view immortal : {"default", "kube-system", "kube-public"})
        if (request.name == immortal) return std::unexpected(request.forbidden("this namespace may not be deleted"));
    }
    if (request.operation != Operation::kCreate || request.ns.empty() || request.is("", "namespaces")) return {};
    // Access reviews are questions about a namespace, not things in it.
    if (request.kind->is_virtual) return {};
    const auto found = cache_.get(make_key("", "namespaces", "", request.ns));
    if (found == nullptr) return std::unexpected(model::not_found("", "namespaces", request.ns));
    if (found->meta.field("status.phase") != "Terminating") return {};
    auto status = request.forbidden(fmt::format("unable to create new content in namespace {} because it is being terminated", request.ns));
    status.causes.push_back({"NamespaceTerminating", fmt::format("namespace {} is being terminated", request.ns), "metadata.namespace"});
    return std::unexpected(std::move(status));
  }

 private:
  ObjectCache& cache_;
};

}  // namespace

PluginResult make_namespace_lifecycle(const AdmissionContext& context) { return std::make_unique<NamespaceLifecycle>(context); }

}  // namespace berth::apiserver
