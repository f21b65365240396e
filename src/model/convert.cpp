// Between the API versions that share one storage.
#include "model/kind_hooks.h"

namespace berth::model {

void convert(const KindInfo& from, const KindInfo& to, json::Value& doc) {
  if (!doc.is_object() || (from.group == to.group && from.version == to.version)) return;
  if (const auto& up = hooks_of(from).form->to_storage; up && from.stored != nullptr) up(doc);
  if (const auto& down = hooks_of(to).form->from_storage; down && to.stored != nullptr) down(doc);
  doc.get_object()["apiVersion"] = to.api_version();
  doc.get_object()["kind"] = to.kind;
}

}  // namespace berth::model
