#include "model/validation/pod_annotations.h"

namespace berth::model::validation {

void pod_annotations_update(const Value& old, const Value& doc, Errors& errors) {
  constexpr std::string_view kMirror = "kubernetes.io/config.mirror", kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
  const Path metadata("metadata");
  const Path at = metadata / "annotations";
  const json::Object &before = json::get_object(old, {"metadata", "annotations"}),
                     &after = json::get_object(doc, {"metadata", "annotations"});
  for (const auto& [key, value] : before) {
    const Value* now = after.if_contains(key);
    if (now != nullptr && json::equal(*now, value)) continue;
    if (key.starts_with(kAppArmor)) errors.forbidden(Path::map_key(at, key), "may not remove or update AppArmor annotations");
    if (key == kMirror) errors.forbidden(Path::map_key(at, key), "may not remove or update mirror pod annotation");
  }
  for (const auto& [key, value] : after) {
    if (before.contains(key)) continue;
    if (key.starts_with(kAppArmor)) errors.forbidden(Path::map_key(at, key), "may not add AppArmor annotations");
    if (key == kMirror) errors.forbidden(Path::map_key(at, key), "may not add mirror pod annotation");
  }
}

}  // namespace berth::model::validation
