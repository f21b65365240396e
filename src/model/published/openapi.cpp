#include "model/published/openapi.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>

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

/// What may stand in the query of a request: name, type, what it says.
struct QueryParameter {
  const char *name, *type, *text;
};
constexpr QueryParameter kOfWrites[] = {{"dryRun", "string", "All: nothing is stored."},
                                        {"fieldManager", "string", "Who owns the fields that are set."},
                                        {"fieldValidation", "string", "Ignore, Warn or Strict."}};
constexpr QueryParameter kOfApplies[] = {{"force", "boolean", "Takes over fields that others own. Of an apply alone."}};
constexpr QueryParameter kOfDeletions[] = {{"dryRun", "string", "All: nothing is deleted."},
                                           {"gracePeriodSeconds", "integer", "How long the object may take to end; 0: at once."},
                                           {"orphanDependents", "boolean", "Old form of propagationPolicy."},
                                           {"propagationPolicy", "string", "Orphan, Background or Foreground."}};
constexpr QueryParameter kOfLists[] = {{"allowWatchBookmarks", "boolean", "A watch is told from time to time how far it is."},
                                       {"continue", "string", "Where an earlier page ended."},
                                       {"fieldSelector", "string", "Which objects, by their fields."},
                                       {"labelSelector", "string", "Which objects, by their labels."},
                                       {"limit", "integer", "How many at most."},
                                       {"resourceVersion", "string", "How new the answer must be, or where a watch begins."},
                                       {"resourceVersionMatch", "string", "Exact or NotOlderThan."},
                                       {"sendInitialEvents", "boolean", "A watch begins with what there is."},
                                       {"timeoutSeconds", "integer", "How long it may take."},
                                       {"watch", "boolean", "Changes as they come."}};
constexpr const char* kPatchTypes[] = {"application/json-patch+json", "application/merge-patch+json",
                                       "application/strategic-merge-patch+json", "application/apply-patch+yaml"};

/// The operations of one path. kubectl finds a kind's fieldValidation and dryRun support by its patch operation.
class Operations {
 public:
  Operations(const KindInfo& kind, const Writer& writer, bool v3)
      : kind_(kind), writer_(writer), v3_(v3), item_(type_of(kind)->openapi_name()) {}

  Object on_object() const {
    Object out;
    if (kind_.has_verb("get")) out["get"] = operation("read", "get", item_, {});
    if (kind_.has_verb("update")) out["put"] = with_body(operation("replace", "put", item_, {kOfWrites}), reference(item_), true);
    if (kind_.has_verb("patch"))
      out["patch"] = with_body(operation("patch", "patch", item_, {kOfWrites, kOfApplies}), patch_schema(), true);
    if (kind_.has_verb("delete"))
      out["delete"] = with_body(operation("delete", "delete", find_type("meta.v1.Status")->openapi_name(), {kOfDeletions}),
                                reference(find_type("meta.v1.DeleteOptions")->openapi_name()), false);
    return out;
  }
  Object on_collection() const {
    Object out;
    if (kind_.has_verb("list")) out["get"] = operation("list", "list", item_ + "List", {kOfLists});
    if (kind_.has_verb("create")) out["post"] = with_body(operation("create", "post", item_, {kOfWrites}), reference(item_), true);
    return out;
  }

 private:
  Object reference(std::string_view name) const { return writer_.reference(name); }
  static Object patch_schema() { return Object{{"type", "object"}}; }

  Object parameter(const QueryParameter& of) const {
    Object out{{"name", of.name}, {"in", "query"}, {"description", of.text}, {"uniqueItems", true}};
    if (v3_)
      out["schema"] = Object{{"type", of.type}, {"uniqueItems", true}};
    else
      out["type"] = of.type;
    return out;
  }

  Object operation(const char* method, std::string_view verb, std::string_view answer,
                   std::initializer_list<std::span<const QueryParameter>> lists) const {
    Object out{{"description", fmt::format("{} {}", verb, kind_.kind)},
               {"operationId", fmt::format("{}{}{}{}", method, kind_.group.empty() ? "Core" : "", kind_.version, kind_.kind)}};
    Array parameters;
    for (const auto& list : lists)
      for (const QueryParameter& one : list) parameters.push_back(parameter(one));
    if (!parameters.empty()) out["parameters"] = std::move(parameters);
    if (v3_)
      out["responses"] =
          Object{{"200", Object{{"description", "OK"}, {"content", Object{{"application/json", Object{{"schema", reference(answer)}}}}}}}};
    else
      out["responses"] = Object{{"200", Object{{"description", "OK"}, {"schema", reference(answer)}}}};
    out["x-kubernetes-action"] = verb;
    out["x-kubernetes-group-version-kind"] = Object{{"group", kind_.group}, {"kind", kind_.kind}, {"version", kind_.version}};
    if (!v3_) {
      out["produces"] = Array{"application/json", "application/yaml"};
      out["consumes"] = verb == "patch" ? Array(std::begin(kPatchTypes), std::end(kPatchTypes)) : Array{"*/*"};
    }
    return out;
  }

  Object with_body(Object operation, Object schema, bool is_required) const {
    if (!v3_) {
      Object body{{"name", "body"}, {"in", "body"}, {"schema", std::move(schema)}};
      if (is_required) body["required"] = true;
      if (!operation.contains("parameters")) operation["parameters"] = Array();
      operation["parameters"].get_array().push_back(std::move(body));
      return operation;
    }
    Object content;
    if (operation["x-kubernetes-action"] == "patch")
      for (const char* type : kPatchTypes) content[type] = Object{{"schema", schema}};
    else
      content["*/*"] = Object{{"schema", std::move(schema)}};
    Object body{{"content", std::move(content)}};
    if (is_required) body["required"] = true;
    operation["requestBody"] = std::move(body);
    return operation;
  }

  const KindInfo& kind_;
  const Writer& writer_;
  const bool v3_;
  const std::string item_;
};

/// What stands in the path itself.
Array path_parameters(bool is_namespaced, bool has_name, bool v3) {
  Array out;
  const auto add = [&](const char* name, const char* text) {
    Object one{{"name", name}, {"in", "path"}, {"description", text}, {"required", true}, {"uniqueItems", true}};
    if (v3)
      one["schema"] = Object{{"type", "string"}, {"uniqueItems", true}};
    else
      one["type"] = "string";
    out.push_back(std::move(one));
  };
  if (has_name) add("name", "The object's name.");
  if (is_namespaced) add("namespace", "The namespace of the objects.");
  return out;
}

Object paths_of(const std::function<bool(const KindInfo&)>& wanted, const Writer& writer, bool v3) {
  Object paths;
  for (const KindInfo& kind : all_kinds()) {
    if (!wanted(kind)) continue;
    const std::string collection = base_path(kind) + (kind.namespaced ? "/namespaces/{namespace}/" : "/") + kind.plural;
    const Operations operations(kind, writer, v3);
    for (const bool on_object : {false, true}) {
      Object path = on_object ? operations.on_object() : operations.on_collection();
      if (Array parameters = path_parameters(kind.namespaced, on_object, v3); !parameters.empty())
        path["parameters"] = std::move(parameters);
      paths[on_object ? collection + "/{name}" : collection] = std::move(path);
    }
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
