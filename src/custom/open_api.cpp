#include "custom/open_api.h"

#include "base/split.h"
#include "custom/open_api_paths.h"

namespace berth::custom {
namespace {

using json::Array;
using json::Object;
using json::Value;

bool has_flag(const Object& schema, std::string_view name) {
  const auto* value = schema.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

template <typename Change>
void for_each_below(Object& schema, Change change) {
  for (const char* name : {"items", "additionalProperties"})
    if (auto* below = schema.if_contains(name); below != nullptr && below->is_object()) change(below->get_object());
  if (auto* properties = schema.if_contains("properties"); properties != nullptr && properties->is_object())
    for (auto& [name, below] : properties->get_object())
      if (below.is_object()) change(below.get_object());
}

/// Fields that may be null are not asked for: Swagger 2.0 knows no null.
void waive_nullable(Object& schema) {
  auto* required = schema.if_contains("required");
  const auto* properties = schema.if_contains("properties");
  if (required == nullptr || !required->is_array() || properties == nullptr || !properties->is_object()) return;
  Array left;
  for (const auto& name : required->get_array()) {
    const auto* below = name.is_string() ? properties->get_object().if_contains(name.get_string()) : nullptr;
    if (below == nullptr || !below->is_object() || !has_flag(below->get_object(), "nullable")) left.push_back(name);
  }
  if (left.empty())
    schema.erase("required");
  else
    *required = std::move(left);
}

/// What Swagger 2.0 has no word for goes, and what kubectl would read as "nothing else" (apiextensions' ToStructuralOpenAPIV2).
void simplify(Object& schema) {
  for (const char* field : {"oneOf", "anyOf", "allOf", "not"}) schema.erase(field);
  waive_nullable(schema);
  const bool is_open = has_flag(schema, "x-kubernetes-preserve-unknown-fields"), is_nullable = has_flag(schema, "nullable");
  if (is_open || is_nullable)
    for (const char* field : {"items", "properties"}) schema.erase(field);
  if (is_nullable)
    for (const char* field : {"type", "nullable"}) schema.erase(field);
  const auto* type = schema.if_contains("type");
  if (type != nullptr && type->is_string()) {
    const bool is_bare_array = type->get_string() == "array" && !schema.contains("items");
    if (is_bare_array || (is_open && type->get_string() == "object")) schema.erase("type");
  }
  for_each_below(schema, simplify);
}

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
                           kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

Object meta_reference(bool v3, std::string_view name, std::string_view text) {
  Object out{{"description", text}};
  if (v3) {
    out["allOf"] = Array{Object{{"$ref", openapi_reference(true, name)}}};
  } else {
    out["$ref"] = openapi_reference(false, name);
  }
  return out;
}

void add_type_meta(Object& properties, bool v3, std::string_view metadata, std::string_view metadata_text) {
  properties["apiVersion"] = Object{{"description",
                                     "APIVersion defines the versioned schema of this representation of an object. Servers should convert "
                                     "recognized schemas to the latest "
                                     "internal value, and may reject unrecognized values. More info: "
                                     "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"},
                                    {"type", "string"}};
  properties["kind"] = Object{
      {"description",
       "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client "
       "submits requests to. Cannot be updated. In CamelCase. More info: "
       "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"},
      {"type", "string"}};
  properties["metadata"] = meta_reference(v3, metadata, metadata_text);
}

constexpr std::string_view kMetadataText =
    "Standard object's metadata. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Objects within objects have the fields of every object; in Swagger 2.0 not where anything else is allowed beside them, for kubectl
/// would refuse that then.
void complete_embedded(Object& schema, bool v3) {
  for_each_below(schema, [&](Object& below) { complete_embedded(below, v3); });
  if (!has_flag(schema, "x-kubernetes-embedded-resource") || (!v3 && has_flag(schema, "x-kubernetes-preserve-unknown-fields"))) return;
  add_type_meta(json::ensure_object(schema["properties"], {}), v3, kObjectMeta, kMetadataText);
  auto& required = schema["required"];
  if (!required.is_array()) required = Array();
  for (const char* name : {"kind", "apiVersion"})
    if (std::ranges::find(required.get_array(), Value(name)) == required.get_array().end()) required.get_array().emplace_back(name);
}

/// The schema of one version as it is published. Where unknown fields are kept, Swagger 2.0 is told an object and no more: of properties
/// kubectl would conclude that there are no others.
Object schema_of(const CustomKind& kind, bool v3) {
  const auto& document = kind.version->schema_document;
  Object schema = document.is_object() && !kind.definition->preserves_unknown ? document.get_object() : Object();
  const bool is_open = kind.definition->preserves_unknown || has_flag(schema, "x-kubernetes-preserve-unknown-fields");
  if (!document.is_object() || (!v3 && is_open)) return {{"type", "object"}};
  if (!v3) simplify(schema);
  schema["type"] = "object";
  add_type_meta(json::ensure_object(schema["properties"], {}), v3, kObjectMeta, kMetadataText);
  complete_embedded(schema, v3);
  return schema;
}

}  // namespace

std::string openapi_name(const model::KindInfo& kind) {
  auto parts = words(kind.group, '.').list();
  std::ranges::reverse(parts);
  return fmt::format("{}.{}.{}", fmt::join(parts, "."), kind.version, kind.kind);
}

void add_openapi(const CustomKind& kind, bool v3, Object& schemas, Object& paths) {
  const auto& info = kind.info;
  const auto gvk = [&](std::string_view name) { return Array{Object{{"group", info.group}, {"kind", name}, {"version", info.version}}}; };
  Object object = schema_of(kind, v3);
  object["x-kubernetes-group-version-kind"] = gvk(info.kind);
  Array selectable;
  for (const std::string& path : kind.version->selectable)
    selectable.push_back(Object{{"fieldPath", path.substr(path.starts_with('.') ? 1 : 0)}});
  if (!selectable.empty()) object["x-kubernetes-selectable-fields"] = std::move(selectable);
  const auto name = openapi_name(info);
  schemas[name] = std::move(object);
  Object list_properties;
  add_type_meta(list_properties, v3, kListMeta,
                "Standard list metadata. More info: "
                "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds");
  list_properties["items"] =
      Object{{"description",
              fmt::format("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
                          info.plural)},
             {"type", "array"},
             {"items", Object{{"$ref", openapi_reference(v3, name)}}}};
  schemas[name + "List"] = Object{{"description", fmt::format("{} is a list of {}", info.list_kind, info.kind)},
                                  {"type", "object"},
                                  {"required", Array{"items"}},
                                  {"properties", std::move(list_properties)},
                                  {"x-kubernetes-group-version-kind", gvk(info.list_kind)}};
  add_openapi_paths(kind, v3, schemas, paths);
}

}  // namespace berth::custom
