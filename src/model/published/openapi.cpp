#include "model/published/openapi.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "base/json.h"
#include "base/version.h"
#include "model/kinds.h"
#include "model/published/descriptions.h"
#include "model/schema.h"

namespace berth::model {
namespace {

using json::Array;
using json::Object;
using json::Value;
using Kind = TypeRef::Kind;

constexpr std::string_view kQuantityName = "io.k8s.apimachinery.pkg.api.resource.Quantity";
constexpr std::string_view kTimeName = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
constexpr std::string_view kMicroTimeName = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
constexpr std::string_view kIntOrStringName = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

constexpr std::string_view kFieldsName = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
constexpr std::string_view kRawName = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The definition of a field that takes anything; empty for kinds that are not Kubernetes' own.
std::string_view any_name(const TypeDef& type, const FieldDef& field) {
  if (field.name == "fieldsV1") return kFieldsName;
  return type.openapi_name().starts_with("io.k8s.api.") ? kRawName : std::string_view();
}

/// Writes schemas in one dialect: v2 puts references under #/definitions, v3 under #/components/schemas and wraps them in allOf.
class Writer {
 public:
  explicit Writer(bool v3) : v3_(v3), prefix_(v3 ? "#/components/schemas/" : "#/definitions/") {}

  Object reference(std::string_view name) const { return Object{{"$ref", prefix_ + std::string(name)}}; }

  Object wrapped(std::string_view name, bool in_property) const {
    // In v3 a reference with siblings (description, default) is only heard inside allOf.
    if (v3_ && in_property) return Object{{"allOf", Array{reference(name)}}};
    return reference(name);
  }

  Object ref_schema(const TypeRef& ref, bool in_property) const {
    const auto wrapped = [&](std::string_view name) { return this->wrapped(name, in_property); };
    switch (ref.kind) {
      case Kind::kString:
        return Object{{"type", "string"}};
      case Kind::kBytes:
        return Object{{"type", "string"}, {"format", "byte"}};
      case Kind::kInt32:
        return Object{{"type", "integer"}, {"format", "int32"}};
      case Kind::kInt64:
        return Object{{"type", "integer"}, {"format", "int64"}};
      case Kind::kDouble:
        return Object{{"type", "number"}, {"format", "double"}};
      case Kind::kBool:
        return Object{{"type", "boolean"}};
      case Kind::kQuantity:
        return wrapped(kQuantityName);
      case Kind::kTime:
        return wrapped(kTimeName);
      case Kind::kMicroTime:
        return wrapped(kMicroTimeName);
      case Kind::kIntOrString:
        return wrapped(kIntOrStringName);
      case Kind::kStruct:
        return wrapped(ref.type->openapi_name());
      case Kind::kList:
        return Object{{"type", "array"}, {"items", ref_schema(*ref.element, true)}};
      case Kind::kMap:
        return Object{{"type", "object"}, {"additionalProperties", ref_schema(*ref.element, true)}};
      case Kind::kAny:
        return Object{{"type", "object"}};
    }
    return {};
  }

  Object type_schema(const TypeDef& type) const {
    Object properties;
    Array required;
    for (const FieldDef& field : type.fields) {
      Object property = field.ref.kind == Kind::kAny && !any_name(type, field).empty() ? wrapped(any_name(type, field), true)
                                                                                       : ref_schema(field.ref, true);
      const std::string_view text = describe(type.name, field.name);
      property["description"] = text.empty() ? std::string_view(field.name) : text;
      const auto& values = enum_values(type.name, field.name);
      if (!values.empty()) {
        Array list;
        for (const std::string_view value : values) list.emplace_back(value);
        // A list's items are what has these words.
        Object& holder = field.ref.kind == Kind::kList ? property["items"].get_object() : property;
        holder["enum"] = std::move(list);
      }
      if (field.patch_merge || field.patch_retain_keys || field.patch_replace)
        property["x-kubernetes-patch-strategy"] = field.patch_replace                            ? "replace"
                                                  : field.patch_merge && field.patch_retain_keys ? "merge,retainKeys"
                                                  : field.patch_merge                            ? "merge"
                                                                                                 : "retainKeys";
      if (!field.patch_merge_key.empty()) property["x-kubernetes-patch-merge-key"] = field.patch_merge_key;
      if (field.ref.kind == Kind::kList) {
        if (field.list_type == FieldDef::ListType::kMap) {
          property["x-kubernetes-list-type"] = "map";
          property["x-kubernetes-list-map-keys"] = Array(field.list_keys.begin(), field.list_keys.end());
        } else {
          property["x-kubernetes-list-type"] = field.list_type == FieldDef::ListType::kSet ? "set" : "atomic";
        }
      }
      if (field.is_atomic && field.ref.kind != Kind::kAny) property["x-kubernetes-map-type"] = "atomic";
      if (field.is_granular) property["x-kubernetes-map-type"] = "granular";
      properties[field.name] = std::move(property);
      if (field.required) required.emplace_back(field.name);
    }
    const std::string_view text = describe(type.name, "");
    Object out{{"description", text.empty() ? std::string_view(type.name).substr(type.name.rfind('.') + 1) : text}, {"type", "object"}};
    if (!properties.empty()) out["properties"] = std::move(properties);
    if (!required.empty()) out["required"] = std::move(required);
    if (type.is_atomic) out["x-kubernetes-map-type"] = "atomic";
    return out;
  }

  Object scalar_definition(std::string_view name) const {
    if (name == kFieldsName) return Object{{"description", "A set of fields, as a tree of their names."}, {"type", "object"}};
    if (name == kRawName) return Object{{"description", "An object of any kind."}, {"type", "object"}};
    // In v3 both forms are said; kubectl explain then shows the definition's name as the type.
    const auto either = [&](Object out, std::string_view other) {
      if (!v3_) {
        out["type"] = "string";
        return out;
      }
      out["oneOf"] = other == "number" ? Array{Object{{"type", "string"}}, Object{{"type", "number"}}}
                                       : Array{Object{{"type", "integer"}}, Object{{"type", "string"}}};
      return out;
    };
    if (name == kTimeName || name == kMicroTimeName)
      return Object{{"description", "A point in time, RFC 3339."}, {"type", "string"}, {"format", "date-time"}};
    if (name == kIntOrStringName)
      return either(Object{{"description", "A number or a string such as a percentage or a port name."}, {"format", "int-or-string"}},
                    "integer");
    return either(Object{{"description", "An amount: a number with an optional suffix (m, k, M, G, Ki, Mi, Gi, …)."}}, "number");
  }

  /// A kind's type with its group-version-kinds, and its list.
  void add_kind(Object& schemas, const KindInfo& kind) const {
    const TypeDef& type = *type_of(kind);
    const Object gvk{{"group", kind.group}, {"kind", kind.kind}, {"version", kind.version}};
    Object& schema = add_type(schemas, type);
    if (!schema.contains("x-kubernetes-group-version-kind")) schema["x-kubernetes-group-version-kind"] = Array();
    Array& gvks = schema["x-kubernetes-group-version-kind"].get_array();
    if (std::find(gvks.begin(), gvks.end(), Value(gvk)) == gvks.end()) gvks.push_back(gvk);
    if (kind.is_virtual && !kind.has_verb("list")) return;
    const std::string list = type.openapi_name() + "List";
    if (schemas.contains(list)) return;
    add_type(schemas, *find_type("meta.v1.ListMeta"));
    TypeRef item{Kind::kStruct, &type, nullptr};
    TypeRef metadata{Kind::kStruct, find_type("meta.v1.ListMeta"), nullptr};
    Object properties{{"apiVersion", Object{{"type", "string"}, {"description", describe("", "apiVersion")}}},
                      {"items", Object{{"type", "array"}, {"items", ref_schema(item, true)}, {"description", "The objects."}}},
                      {"kind", Object{{"type", "string"}, {"description", describe("", "kind")}}}};
    Object meta_property = ref_schema(metadata, true);
    meta_property["description"] = "List metadata.";
    properties["metadata"] = std::move(meta_property);
    schemas[list] = Object{
        {"description", kind.kind + "List"},
        {"type", "object"},
        {"properties", std::move(properties)},
        {"required", Array{"items"}},
        {"x-kubernetes-group-version-kind", Array{Object{{"group", kind.group}, {"kind", kind.list_kind}, {"version", kind.version}}}}};
  }

  /// The type and everything it refers to.
  Object& add_type(Object& schemas, const TypeDef& type) const {
    const std::string name = type.openapi_name();
    if (!schemas.contains(name)) {
      schemas[name] = type_schema(type);
      for (const FieldDef& field : type.fields) {
        add_ref(schemas, field.ref);
        if (const auto any = any_name(type, field); field.ref.kind == Kind::kAny && !any.empty() && !schemas.contains(any))
          schemas[any] = scalar_definition(any);
      }
    }
    return schemas[name].get_object();
  }

 private:
  void add_ref(Object& schemas, const TypeRef& ref) const {
    const auto add_scalar = [&](std::string_view name) {
      if (!schemas.contains(name)) schemas[name] = scalar_definition(name);
    };
    switch (ref.kind) {
      case Kind::kStruct:
        add_type(schemas, *ref.type);
        break;
      case Kind::kList:
      case Kind::kMap:
        add_ref(schemas, *ref.element);
        break;
      case Kind::kQuantity:
        add_scalar(kQuantityName);
        break;
      case Kind::kTime:
        add_scalar(kTimeName);
        break;
      case Kind::kMicroTime:
        add_scalar(kMicroTimeName);
        break;
      case Kind::kIntOrString:
        add_scalar(kIntOrStringName);
        break;
      default:
        break;
    }
  }

  bool v3_;
  std::string prefix_;
};

std::string base_path(const KindInfo& kind) {
  return kind.group.empty() ? "/api/" + kind.version : "/apis/" + kind.group + "/" + kind.version;
}

/// The operations of one path. kubectl finds a kind's fieldValidation and dryRun support by its patch operation.
Object operations(const KindInfo& kind, const Writer& writer, bool v3, bool on_object) {
  const Object gvk{{"group", kind.group}, {"kind", kind.kind}, {"version", kind.version}};
  const auto parameter = [&](const char* name, const char* description) {
    Object out{{"name", name}, {"in", "query"}, {"description", description}, {"uniqueItems", true}};
    if (v3)
      out["schema"] = Object{{"type", "string"}, {"uniqueItems", true}};
    else
      out["type"] = "string";
    return out;
  };
  const auto operation = [&](const char* method, std::string_view verb, bool writes) {
    Object out{{"description", fmt::format("{} {}", verb, kind.kind)},
               {"operationId", fmt::format("{}{}{}{}", method, kind.group.empty() ? "Core" : "", kind.version, kind.kind)}};
    Array parameters;
    if (writes) {
      parameters.push_back(parameter("dryRun", "All: nothing is stored."));
      parameters.push_back(parameter("fieldManager", "Who owns the fields that are set."));
      parameters.push_back(parameter("fieldValidation", "Ignore, Warn or Strict."));
    }
    const std::string name = type_of(kind)->openapi_name();
    if (v3)
      out["responses"] = Object{
          {"200", Object{{"description", "OK"}, {"content", Object{{"application/json", Object{{"schema", writer.reference(name)}}}}}}}};
    else
      out["responses"] = Object{{"200", Object{{"description", "OK"}, {"schema", writer.reference(name)}}}};
    out["parameters"] = std::move(parameters);
    out["x-kubernetes-action"] = verb;
    out["x-kubernetes-group-version-kind"] = gvk;
    if (!v3) out["produces"] = Array{"application/json", "application/yaml"};
    if (!v3)
      out["consumes"] = verb == "patch" ? Array{"application/json-patch+json", "application/merge-patch+json",
                                                "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
                                        : Array{"*/*"};
    return out;
  };
  Object out;
  if (on_object) {
    if (kind.has_verb("get")) out["get"] = operation("read", "get", false);
    if (kind.has_verb("update")) out["put"] = operation("replace", "put", true);
    if (kind.has_verb("patch")) out["patch"] = operation("patch", "patch", true);
    if (kind.has_verb("delete")) out["delete"] = operation("delete", "delete", true);
  } else {
    if (kind.has_verb("list")) out["get"] = operation("list", "list", false);
    if (kind.has_verb("create")) out["post"] = operation("create", "post", true);
  }
  return out;
}

Object paths_of(const std::function<bool(const KindInfo&)>& wanted, const Writer& writer, bool v3) {
  Object paths;
  for (const KindInfo& kind : all_kinds()) {
    if (!wanted(kind)) continue;
    const std::string collection = base_path(kind) + (kind.namespaced ? "/namespaces/{namespace}/" : "/") + kind.plural;
    paths[collection] = operations(kind, writer, v3, false);
    paths[collection + "/{name}"] = operations(kind, writer, v3, true);
  }
  return paths;
}

Object info() { return Object{{"title", "Kubernetes"}, {"version", kKubernetesVersion}}; }

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

std::string path_of_group_version(std::string_view group, std::string_view version) {
  return group.empty() ? fmt::format("api/{}", version) : fmt::format("apis/{}/{}", group, version);
}

/// All v3 documents by path ("apis/apps/v1").
const std::map<std::string, Bytes>& v3_documents() {
  static const std::map<std::string, Bytes> documents = [] {
    std::map<std::string, Bytes> out;
    const Writer writer(true);
    std::set<std::pair<std::string, std::string>> seen;
    for (const KindInfo& one : all_kinds()) {
      if (!seen.emplace(one.group, one.version).second) continue;
      Object schemas;
      for (const KindInfo& kind : all_kinds())
        if (kind.group == one.group && kind.version == one.version) writer.add_kind(schemas, kind);
      writer.add_type(schemas, *find_type("meta.v1.DeleteOptions"));
      writer.add_type(schemas, *find_type("meta.v1.Status"));
      Value document =
          Object{{"openapi", "3.0.0"},
                 {"info", info()},
                 {"paths", paths_of([&](const KindInfo& k) { return k.group == one.group && k.version == one.version; }, writer, true)},
                 {"components", Object{{"schemas", std::move(schemas)}}}};
      out[path_of_group_version(one.group, one.version)] = make_bytes(json::serialize(document));
    }
    return out;
  }();
  return documents;
}

}  // namespace

Bytes openapi_v2() {
  static const Bytes document = [] {
    const Writer writer(false);
    Object definitions;
    for (const KindInfo& kind : all_kinds()) writer.add_kind(definitions, kind);
    writer.add_type(definitions, *find_type("meta.v1.DeleteOptions"));
    writer.add_type(definitions, *find_type("meta.v1.Status"));
    return make_bytes(json::serialize(Object{{"swagger", "2.0"},
                                             {"info", info()},
                                             {"paths", paths_of([](const KindInfo&) { return true; }, writer, false)},
                                             {"definitions", std::move(definitions)}}));
  }();
  return document;
}

Bytes openapi_v3_index() {
  static const Bytes index = [] {
    Object paths;
    for (const auto& [path, document] : v3_documents())
      paths[path] = Object{{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={:016X}", path, hash_of(*document))}};
    return make_bytes(json::serialize(Object{{"paths", std::move(paths)}}));
  }();
  return index;
}

Bytes openapi_v3(std::string_view group, std::string_view version) {
  const auto found = v3_documents().find(path_of_group_version(group, version));
  return found == v3_documents().end() ? nullptr : found->second;
}

}  // namespace berth::model
