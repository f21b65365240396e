#include "model/off_fields.h"

namespace berth::model {
namespace {

using Kind = TypeRef::Kind;

/// Of one document.
class Dropping {
 public:
  explicit Dropping(Features features) : features_(features) {}

  void below(const TypeRef& ref, const json::Value* old, json::Value& value) const {
    if (ref.kind == Kind::kStruct && value.is_object()) {
      in(*ref.type, old, value.get_object());
    } else if (ref.kind == Kind::kList && value.is_array()) {
      const json::Array* before = old != nullptr && old->is_array() ? &old->get_array() : nullptr;
      std::size_t i = 0;
      for (json::Value& item : value.get_array()) {
        below(*ref.element, before != nullptr && i < before->size() ? &(*before)[i] : nullptr, item);
        ++i;
      }
    } else if (ref.kind == Kind::kMap && value.is_object()) {
      for (auto& [key, member] : value.get_object()) below(*ref.element, old == nullptr ? nullptr : json::find(*old, key), member);
    }
  }

 private:
  void in(const TypeDef& type, const json::Value* old, json::Object& object) const {
    for (const FieldDef& field : type.fields) {
      if (!field.is_off && !field.ref.holds_off_fields()) continue;
      const auto found = object.find(field.name);
      if (found == object.end()) continue;
      const json::Value* before = old == nullptr ? nullptr : json::find(*old, field.name);
      if (field.is_off && !stays(type, field, before)) {
        object.erase(found);
        continue;
      }
      const bool had_some = found->value().is_object() && !found->value().get_object().empty();
      below(field.ref, before, found->value());
      if (had_some && field.name == "lifecycle" && found->value().get_object().empty()) object.erase(found);
    }
  }

  [[nodiscard]] bool stays(const TypeDef& type, const FieldDef& field, const json::Value* before) const {
    const Feature feature = feature_of(type, field);
    return feature != Feature::kNone && (has(features_, feature) || (before != nullptr && !before->is_null()));
  }

  Features features_;
};

}  // namespace

void drop_off_fields(const KindInfo& kind, Features features, const json::Value* old, json::Value& doc) {
  if (const TypeDef* type = type_of(kind); type != nullptr && type->holds_off_fields)
    Dropping(features).below(TypeRef{Kind::kStruct, type}, old, doc);
}

}  // namespace berth::model
