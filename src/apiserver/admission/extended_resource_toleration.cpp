// ExtendedResourceToleration: pods that ask for an extended resource tolerate the taint of its name (off unless enabled).
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

bool is_extended(std::string_view resource) {
  return resource.find('/') != std::string_view::npos && resource.find("kubernetes.io/") == std::string_view::npos &&
         !resource.starts_with("requests.");
}

class ExtendedResourceToleration final : public AdmissionPlugin {
 public:
  [[nodiscard]] std::string_view name() const override { return "ExtendedResourceToleration"; }

  Admitted mutate(AdmissionRequest& request) override {
    if (!request.is("", "pods") || (request.operation != Operation::kCreate && request.operation != Operation::kUpdate)) return {};
    std::set<std::string> resources;
    for (std::string_view list : {"containers", "initContainers"})
      for (const auto& container : json::get_array(request.object, {"spec", list}))
        for (const auto& [resource, amount] : json::get_object(container, {"resources", "requests"}))
          if (is_extended(resource)) resources.emplace(resource);
    if (resources.empty()) return {};
    std::set<std::string, std::less<>> tolerated;
    for (const auto& t : json::get_array(request.object, {"spec", "tolerations"}))
      if (json::get_string(t, {"operator"}) == "Exists" && json::get_string(t, {"effect"}) == "NoSchedule")
        tolerated.emplace(json::get_string(t, {"key"}));
    auto& tolerations = json::ensure_object(request.object, {"spec"})["tolerations"];
    if (!tolerations.is_array()) tolerations = json::Array();
    for (const auto& resource : resources)
      if (!tolerated.contains(resource))
        tolerations.get_array().push_back(json::Object{{"key", resource}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
    return {};
  }
};

}  // namespace

PluginResult make_extended_resource_toleration(const AdmissionContext&) { return std::make_unique<ExtendedResourceToleration>(); }

}  // namespace berth::apiserver
