#include "custom/open_api.h"

#include "custom/open_api_paths.h"

namespace berth::custom {
namespace {

using json::Array;
using json::Object;
using json::Value;

bool is_set(const Object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

/// Swagger 2.0 knows no null: what may be one is not required.
void require_no_nullable(Object& object) {
  auto* required = object.if_contains("required");
  if (required == nullptr || !required->is_array()) return;
  const auto* additional = object.if_contains("additionalProperties");
  if (additional != nullptr && additional->is_object() && is_set(additional->get_object(), "nullable")) {
    object.erase("required");
    return;
  }
  const auto* properties = object.if_contains("properties");
  if (properties == nullptr || !properties->is_object()) return;
  Array kept;
  for (const auto& name : required->get_array()) {
    const auto* property = name.is_string() ? properties->get_object().if_contains(json::as_view(name)) : nullptr;
    if (property == nullptr || !property->is_object() || !is_set(property->get_object(), "nullable")) kept.push_back(name);
  }
  if (kept.empty()) {
    object.erase("required");
  } else {
    *required = std::move(kept);
  }
}

/// An integer or a text, said in the words of OpenAPI (apiserver/schema/unfold.go).
void unfold(Object& object) {
  if (!is_set(object, "x-kubernetes-int-or-string")) return;
  const auto pattern = [] { return Array{Object{{"type", "integer"}}, Object{{"type", "string"}}}; };
  const Value wanted = pattern();
  const auto* any = object.if_contains("anyOf");
  const auto* all = object.if_contains("allOf");
  const auto* first =
      all != nullptr && all->is_array() && !all->get_array().empty() ? json::find(all->get_array().front(), "anyOf") : nullptr;
  if ((any != nullptr && json::equal(*any, wanted)) || (first != nullptr && json::equal(*first, wanted))) return;
  if (any == nullptr) {
    object["anyOf"] = pattern();
    return;
  }
  auto& list = object["allOf"];
  if (!list.is_array()) list = Array();
  list.get_array().insert(list.get_array().begin(), Object{{"anyOf", pattern()}});
}

/// What Swagger 2.0 has no word for goes (ToStructuralOpenAPIV2).
void simplify(Value& schema) {
  auto* object = schema.if_object();
  if (object == nullptr) return;
  for (const char* field : {"oneOf", "anyOf", "allOf", "not", "default"}) object->erase(field);
  require_no_nullable(*object);
  const auto flag = [&](std::string_view name) { return is_set(*object, name); };
  if (flag("nullable") || flag("x-kubernetes-preserve-unknown-fields") || flag("x-kubernetes-int-or-string")) {
    for (const char* field : {"type", "items", "properties", "nullable"}) object->erase(field);
  }
  if (auto* items = object->if_contains("items")) simplify(*items);
  if (auto* additional = object->if_contains("additionalProperties")) simplify(*additional);
  if (auto* properties = object->if_contains("properties"); properties != nullptr && properties->is_object())
    for (auto& [name, below] : properties->get_object()) simplify(below);
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

/// What every embedded resource has; and what extensions mean is said in OpenAPI's own words.
void complete(Value& schema, bool v3) {
  auto* object = schema.if_object();
  if (object == nullptr) return;
  if (auto* items = object->if_contains("items")) complete(*items, v3);
  if (auto* additional = object->if_contains("additionalProperties")) complete(*additional, v3);
  if (auto* properties = object->if_contains("properties"); properties != nullptr && properties->is_object())
    for (auto& [name, below] : properties->get_object()) complete(below, v3);
  if (v3) unfold(*object);
  if (!is_set(*object, "x-kubernetes-embedded-resource")) return;
  // kubectl would refuse unknown fields beside known ones.
  if (!v3 && is_set(*object, "x-kubernetes-preserve-unknown-fields")) return;
  auto& properties = (*object)["properties"];
  if (!properties.is_object()) properties = Object();
  add_type_meta(properties.get_object(), v3, kObjectMeta,
                "Standard object's metadata. More info: "
                "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata");
  auto& required = (*object)["required"];
  if (!required.is_array()) required = Array();
  for (const char* name : {"kind", "apiVersion"})
    if (std::ranges::find(required.get_array(), Value(name)) == required.get_array().end()) required.get_array().emplace_back(name);
}

/// x-kubernetes-selectable-fields, where there are any.
void add_selectable(const CustomKind& kind, Object& schema) {
  Array fields;
  for (const auto& [name, path] : kind.selectable) fields.push_back(Object{{"fieldPath", name}});
  if (!fields.empty()) schema["x-kubernetes-selectable-fields"] = std::move(fields);
}

}  // namespace

std::string openapi_name(const model::KindInfo& kind) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = kind.group; !rest.empty();) {
    const auto dot = std::min(rest.find('.'), rest.size());
    parts.insert(parts.begin(), rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return fmt::format("{}.{}.{}", fmt::join(parts, "."), kind.version, kind.kind);
}

void add_openapi(const CustomKind& kind, bool v3, Object& schemas, Object& paths) {
  const auto& info = kind.info;
  const auto gvk = [&](std::string_view name) { return Array{Object{{"group", info.group}, {"kind", name}, {"version", info.version}}}; };
  Value schema =
      kind.version->schema_document.is_object() && !kind.definition->preserves_unknown ? kind.version->schema_document : Value(Object());
  if (!v3) simplify(schema);
  complete(schema, v3);
  auto& object = schema.get_object();
  object["type"] = "object";
  auto& properties = object["properties"];
  if (!properties.is_object()) properties = Object();
  add_type_meta(properties.get_object(), v3, kObjectMeta,
                "Standard object's metadata. More info: "
                "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata");
  object["x-kubernetes-group-version-kind"] = gvk(info.kind);
  add_selectable(kind, object);
  const auto name = openapi_name(info);
  schemas[name] = std::move(schema);
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
  add_selectable(kind, schemas[name + "List"].get_object());
  add_openapi_paths(kind, v3, schemas, paths);
}

}  // namespace berth::custom
