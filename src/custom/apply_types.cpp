#include "custom/apply_types.h"

#include <deque>

namespace berth::custom {
namespace {

using model::FieldDef;
using model::TypeDef;
using model::TypeRef;
using RefKind = TypeRef::Kind;

/// Everything that the types of one schema point to.
struct ApplyTypes {
  std::deque<TypeDef> structs;
  std::deque<TypeRef> refs;
};

class ApplyTypeBuilder {
 public:
  ApplyTypeBuilder(ApplyTypes& types, bool is_open) : types_(types), is_open_(is_open) {}

  const TypeDef* structure(const Schema& schema, bool is_resource) {
    types_.structs.emplace_back();
    TypeDef& type = types_.structs.back();
    type.is_open = is_open_ || schema.preserves_unknown;
    type.is_atomic = schema.map_type == "atomic";
    if (is_resource) {
      for (const char* name : {"apiVersion", "kind"}) type.fields.push_back(named(name, {RefKind::kString, nullptr, nullptr}));
      type.fields.push_back(named("metadata", {RefKind::kStruct, model::find_type("meta.v1.ObjectMeta"), nullptr}));
    }
    for (const auto& [name, property] : schema.properties) {
      if (is_resource && (name == "apiVersion" || name == "kind" || name == "metadata")) continue;
      type.fields.push_back(field(name, property));
    }
    // The fields stay where they are from here on.
    for (const FieldDef& one : type.fields) type.by_name[one.name] = &one;
    return &type;
  }

 private:
  static FieldDef named(const std::string& name, TypeRef ref) {
    FieldDef out;
    out.name = name;
    out.ref = ref;
    return out;
  }

  FieldDef field(const std::string& name, const Schema& schema) {
    FieldDef out = named(name, ref(schema));
    if (schema.list_type == "set") out.list_type = FieldDef::ListType::kSet;
    if (schema.list_type == "map") {
      out.list_type = FieldDef::ListType::kMap;
      out.list_keys = schema.list_map_keys;
      for (const auto& key : out.list_keys)
        if (const auto* below = schema.items == nullptr ? nullptr : schema.items->property(key); below != nullptr && below->default_value)
          out.list_key_defaults.emplace(key, *below->default_value);
    }
    out.is_atomic = schema.map_type == "atomic";
    return out;
  }

  TypeRef ref(const Schema& schema) {
    if (schema.is_int_or_string) return {RefKind::kIntOrString, nullptr, nullptr};
    if (schema.type == "string") return {RefKind::kString, nullptr, nullptr};
    if (schema.type == "integer") return {RefKind::kInt64, nullptr, nullptr};
    if (schema.type == "number") return {RefKind::kDouble, nullptr, nullptr};
    if (schema.type == "boolean") return {RefKind::kBool, nullptr, nullptr};
    if (schema.type == "array") return {RefKind::kList, nullptr, element(schema.items.get())};
    if (schema.type != "object") return {RefKind::kAny, nullptr, nullptr};
    if (schema.additional != nullptr || schema.additional_allowed.value_or(false))
      return {RefKind::kMap, nullptr, element(schema.additional.get())};
    // Of what is kept unknown, members are owned one by one and lists whole.
    if (schema.properties.empty() && !schema.is_embedded && (schema.preserves_unknown || is_open_))
      return {RefKind::kAny, nullptr, nullptr};
    return {RefKind::kStruct, structure(schema, schema.is_embedded), nullptr};
  }

  const TypeRef* element(const Schema* schema) {
    TypeRef made = schema == nullptr ? TypeRef{} : ref(*schema);
    types_.refs.push_back(made);
    return &types_.refs.back();
  }

  ApplyTypes& types_;
  bool is_open_;
};

}  // namespace

std::shared_ptr<const TypeDef> apply_type(const Schema& schema, bool preserves_unknown) {
  auto types = std::make_shared<ApplyTypes>();
  const TypeDef* root = ApplyTypeBuilder(*types, preserves_unknown).structure(schema, true);
  return {std::move(types), root};
}

}  // namespace berth::custom
