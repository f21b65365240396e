#include "custom/open_api.h"

#include "custom/open_api_paths.h"

namespace berth::custom {
namespace {

using json::Array;
using json::Object;
using json::Value;

/// What Swagger 2.0 has no word for goes (ToStructuralOpenAPIV2).
void simplify(Value& schema) {
  auto* object = schema.if_object();
  if (object == nullptr) return;
  for (const char* field : {"oneOf", "anyOf", "allOf", "not", "default", "x-kubernetes-validations"}) object->erase(field);
  const auto flag = [&](std::string_view name) {
    const auto* value = object->if_contains(name);
    return value != nullptr && value->is_bool() && value->get_bool();
  };
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
  auto& object = schema.get_object();
  object["type"] = "object";
  auto& properties = object["properties"];
  if (!properties.is_object()) properties = Object();
  add_type_meta(properties.get_object(), v3, kObjectMeta,
                "Standard object's metadata. More info: "
                "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata");
  object["x-kubernetes-group-version-kind"] = gvk(info.kind);
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
  add_openapi_paths(kind, v3, schemas, paths);
}

}  // namespace berth::custom
