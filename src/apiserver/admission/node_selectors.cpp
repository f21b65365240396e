#include "apiserver/admission/node_selectors.h"

namespace berth::apiserver {
namespace {

bool is_new_pod(const AdmissionRequest& request) { return request.is("", "pods") && request.operation == Operation::kCreate; }

}  // namespace

bool NodeSelectorPlugin::add_circumstances(const AdmissionRequest& write, Circumstances& circumstances) {
  if (write.is("", "namespaces")) return false;  // What is told is told each time.
  circumstances.add([this] { return namespaces_.generation(); });
  return true;
}

Admitted NodeSelectorPlugin::mutate(AdmissionRequest& request) {
  if (!is_new_pod(request)) return {};
  const auto wanted = selector_of(request);
  if (!wanted) return std::unexpected(wanted.error());
  if (auto held = hold(request, *wanted); !held || wanted->empty()) return held;
  auto& selector = json::ensure_object(request.object, {"spec", "nodeSelector"});
  for (const auto& [key, value] : *wanted) selector[key] = value;
  return judge(request);
}

Admitted NodeSelectorPlugin::validate(const AdmissionRequest& request) {
  if (request.is("", "namespaces") && request.caller.warnings != nullptr && !request.object.is_null()) tell(request);
  if (!is_new_pod(request)) return {};
  const auto wanted = selector_of(request);
  if (!wanted) return std::unexpected(wanted.error());
  if (auto held = hold(request, *wanted); !held) return held;
  return judge(request);
}

Admitted NodeSelectorPlugin::hold(const AdmissionRequest& request, const LabelMap& wanted) const {
  for (const auto& [key, value] : json::get_object(request.object, {"spec", "nodeSelector"})) {
    const auto found = wanted.find(std::string(key));
    if (found != wanted.end() && value.is_string() && json::as_view(value) != found->second)
      return std::unexpected(request.forbidden(conflict_));
  }
  return {};
}

}  // namespace berth::apiserver
