#include "model/off_fields.h"

namespace berth::model {
namespace {

using Kind = TypeRef::Kind;

void drop_below(const TypeRef& ref, json::Value& value);

void drop_in(const TypeDef& type, json::Object& object) {
  for (const FieldDef& field : type.fields) {
    if (!field.is_off && !field.ref.holds_off_fields()) continue;
    const auto found = object.find(field.name);
    if (found == object.end()) continue;
    if (field.is_off) {
      object.erase(found);
      continue;
    }
    const bool had_some = found->value().is_object() && !found->value().get_object().empty();
    drop_below(field.ref, found->value());
    if (had_some && field.name == "lifecycle" && found->value().get_object().empty()) object.erase(found);
  }
}

void drop_below(const TypeRef& ref, json::Value& value) {
  if (ref.kind == Kind::kStruct && value.is_object()) {
    drop_in(*ref.type, value.get_object());
  } else if (ref.kind == Kind::kList && value.is_array()) {
    for (json::Value& item : value.get_array()) drop_below(*ref.element, item);
  } else if (ref.kind == Kind::kMap && value.is_object()) {
    for (auto& [key, member] : value.get_object()) drop_below(*ref.element, member);
  }
}

}  // namespace

void drop_off_fields(const KindInfo& kind, json::Value& doc) {
  if (const TypeDef* type = type_of(kind); type != nullptr && type->holds_off_fields) drop_below(TypeRef{Kind::kStruct, type}, doc);
}

}  // namespace berth::model
