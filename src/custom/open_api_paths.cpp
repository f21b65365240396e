#include "custom/open_api_paths.h"

#include "base/split.h"
#include "custom/open_api.h"

namespace berth::custom {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.", kScale = "io.k8s.api.autoscaling.v1.Scale";
constexpr std::string_view kPatches[] = {"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"};

/// A word with its first letter large.
std::string titled(std::string_view word) {
  std::string out(word);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

/// "recExampleCom" of "rec.example.com".
std::string group_words(std::string_view group) {
  std::string out;
  for (const auto word : words(group, '.')) out += out.empty() ? std::string(word) : titled(word);
  return out;
}

/// Plurals have no article.
std::string with_article(std::string_view noun) {
  if (noun.ends_with('s') && !noun.ends_with("ss")) return std::string(noun);
  const bool is_vowel = !noun.empty() && std::string_view("AEIOUaeiou").find(noun.front()) != std::string_view::npos;
  return fmt::format("{} {}", is_vowel ? "an" : "a", noun);
}

struct Parameter {
  std::string_view name, type, description;
};
constexpr Parameter kListParameters[] = {
    {"allowWatchBookmarks", "boolean", "A watch may send BOOKMARK events."},
    {"continue", "string", "Where a list that was given in parts goes on: the token of the part before."},
    {"fieldSelector", "string", "Only objects whose fields match."},
    {"labelSelector", "string", "Only objects whose labels match."},
    {"limit", "integer", "How many objects a part of the list has at most."},
    {"resourceVersion", "string", "The revision that the answer starts from."},
    {"resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan."},
    {"sendInitialEvents", "boolean", "A watch begins with what is there."},
    {"shardSelector", "string", "Only objects of one shard."},
    {"timeoutSeconds", "integer", "How long the call may last."},
    {"watch", "boolean", "Changes are sent as they happen."}};
constexpr Parameter kWriteParameters[] = {
    {"dryRun", "string", "All: everything is done but storing."},
    {"fieldManager", "string", "Who owns the fields that are written."},
    {"fieldValidation", "string", "What is done about unknown and doubled fields: Ignore, Warn, Strict."}};
constexpr Parameter kForce{"force", "boolean", "An apply takes fields from other managers."};
constexpr Parameter kDeleteParameters[] = {
    {"dryRun", "string", "All: everything is done but storing."},
    {"gracePeriodSeconds", "integer", "How long the object has before it goes."},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean", "An object that cannot be read is deleted all the same."},
    {"orphanDependents", "boolean", "Deprecated: what propagationPolicy says."},
    {"propagationPolicy", "string", "What becomes of dependents: Orphan, Background, Foreground."}};
constexpr Parameter kRevision{"resourceVersion", "string", "The revision that the answer starts from."};
constexpr Parameter kPretty{"pretty", "string", "'true': the answer is indented."};

class Paths {
 public:
  Paths(const CustomKind& kind, bool v3) : info_(kind.info), v3_(v3) {}

  Object collection() const {
    Object out = everything();
    out["post"] = operation("post", "create", fmt::format("create {}", with_article(info_.kind)), "", own(), {200, 201, 202}, own());
    auto removal = operation("deletecollection", "delete", fmt::format("delete collection of {}", info_.kind), "", kStatus, {200});
    removal["operationId"] = operation_id("delete", "Collection", "");
    removal["parameters"] = queries(kListParameters);
    out["delete"] = std::move(removal);
    out["parameters"] = Array();
    if (info_.namespaced) out["parameters"].get_array().push_back(namespace_parameter());
    out["parameters"].get_array().push_back(query(kPretty));
    return out;
  }

  /// Of all namespaces: its parameters stand beside the operation.
  Object all_namespaces() const {
    auto listing = everything()["get"].get_object();
    listing.erase("parameters");
    listing["operationId"] = operation_id("list", "", "ForAllNamespaces", false);
    Array parameters;
    for (const auto& one : kListParameters) {
      if (one.name == "resourceVersion") parameters.push_back(query(kPretty));
      parameters.push_back(query(one));
    }
    return {{"get", std::move(listing)}, {"parameters", std::move(parameters)}};
  }

  /// An object, or with `part` ("status", "scale") a part of it.
  Object object(std::string_view part) const {
    const auto schema = part == "scale" ? std::string(kScale) : own();
    const auto of = part.empty() ? "the specified " + info_.kind : fmt::format("{} of the specified {}", part, info_.kind);
    const auto end = titled(part);
    Object out;
    out["get"] = operation("get", "read", "read " + of, end, schema, {200});
    out["get"].get_object()["parameters"] = Array{query(kRevision)};
    out["put"] = operation("put", "replace", "replace " + of, end, schema, {200, 201}, schema);
    if (part.empty()) out["delete"] = removal();
    out["patch"] = operation("patch", "patch", "partially update " + of, end, schema, {200}, kPatch);
    out["patch"].get_object()["parameters"].get_array().push_back(query(kForce));
    out["parameters"] = Array{in_path("name", fmt::format("name of the {}", info_.kind))};
    if (info_.namespaced) out["parameters"].get_array().push_back(namespace_parameter());
    out["parameters"].get_array().push_back(query(kPretty));
    return out;
  }

 private:
  inline static const std::string kStatus = std::string(kMeta) + "Status", kPatch = std::string(kMeta) + "Patch",
                                  kDeleteOptions = std::string(kMeta) + "DeleteOptions";

  [[nodiscard]] std::string own() const { return openapi_name(info_); }
  [[nodiscard]] Object everything() const {
    auto listing = operation("list", "list", fmt::format("list objects of kind {}", info_.kind), "", own() + "List", {200});
    listing["parameters"] = queries(kListParameters);
    return {{"get", std::move(listing)}};
  }
  [[nodiscard]] Object removal() const {
    auto out = operation("delete", "delete", fmt::format("delete {}", with_article(info_.kind)), "", kStatus, {200, 202}, kDeleteOptions);
    auto parameters = queries(kDeleteParameters);
    if (!v3_) parameters.insert(parameters.begin(), body(kDeleteOptions, false));
    out["parameters"] = std::move(parameters);
    if (v3_) out["requestBody"].get_object().erase("required");
    return out;
  }

  [[nodiscard]] std::string operation_id(std::string_view verb, std::string_view what, std::string_view end,
                                         bool in_namespace = true) const {
    return fmt::format("{}{}{}{}{}{}{}", verb, titled(group_words(info_.group)), titled(info_.version), what,
                       info_.namespaced && in_namespace ? "Namespaced" : "", info_.kind, end);
  }

  [[nodiscard]] Object value(std::string_view schema) const { return {{"schema", Object{{"$ref", openapi_reference(v3_, schema)}}}}; }
  [[nodiscard]] Object json_or_yaml(std::string_view schema) const {
    return {{"application/json", value(schema)}, {"application/yaml", value(schema)}};
  }

  [[nodiscard]] Object operation(std::string_view action, std::string_view verb, std::string description, std::string_view end,
                                 const std::string& answer, std::initializer_list<int> codes, const std::string& asked = {}) const {
    Object out{{"tags", Array{fmt::format("{}_{}", group_words(info_.group), info_.version)}},
               {"description", std::move(description)},
               {"operationId", operation_id(verb, "", end)}};
    if (!v3_) {
      out["consumes"] = asked == kPatch ? Array(std::begin(kPatches), std::end(kPatches)) : Array{"application/json", "application/yaml"};
      out["produces"] = Array{"application/json", "application/yaml"};
      out["schemes"] = Array{"https"};
    }
    if (!asked.empty()) out["parameters"] = queries(kWriteParameters);
    if (!asked.empty() && v3_)
      out["requestBody"] = Object{{"content", asked == kPatch ? patches() : json_or_yaml(asked)}, {"required", true}};
    if (!asked.empty() && !v3_) {
      auto& parameters = out["parameters"].get_array();
      parameters.insert(parameters.begin(), body(asked, true));
    }
    Object responses;
    for (const int code : codes) {
      Object one{{"description", code == 200 ? "OK" : code == 201 ? "Created" : "Accepted"}};
      if (v3_) {
        one["content"] = json_or_yaml(answer);
      } else {
        one["schema"] = Object{{"$ref", openapi_reference(false, answer)}};
      }
      responses[std::to_string(code)] = std::move(one);
    }
    responses["401"] = Object{{"description", "Unauthorized"}};
    out["responses"] = std::move(responses);
    out["x-kubernetes-action"] = action;
    out["x-kubernetes-group-version-kind"] = Object{{"group", info_.group}, {"version", info_.version}, {"kind", info_.kind}};
    return out;
  }
  [[nodiscard]] Object patches() const {
    return {{"application/apply-patch+yaml", value(kPatch)},
            {"application/json-patch+json", value(kPatch)},
            {"application/merge-patch+json", value(kPatch)}};
  }

  [[nodiscard]] static Object body(std::string_view schema, bool is_required) {
    Object out{{"name", "body"}, {"in", "body"}};
    if (is_required) out["required"] = true;
    out["schema"] = Object{{"$ref", openapi_reference(false, schema)}};
    return out;
  }
  [[nodiscard]] Object parameter(std::string_view name, std::string_view in, std::string_view description, std::string_view type) const {
    Object out{{"name", name}, {"in", in}, {"description", description}};
    if (in == "path") out["required"] = true;
    if (v3_) {
      out["schema"] = Object{{"type", type}, {"uniqueItems", true}};
    } else {
      out["uniqueItems"] = true;
      out["type"] = type;
    }
    return out;
  }
  [[nodiscard]] Object query(const Parameter& one) const { return parameter(one.name, "query", one.description, one.type); }
  template <std::size_t N>
  [[nodiscard]] Array queries(const Parameter (&list)[N]) const {
    Array out;
    for (const auto& one : list) out.push_back(query(one));
    return out;
  }
  [[nodiscard]] Object in_path(std::string_view name, std::string_view description) const {
    return parameter(name, "path", description, "string");
  }
  [[nodiscard]] Object namespace_parameter() const {
    return in_path("namespace", "object name and auth scope, such as for teams and projects");
  }

  const model::KindInfo& info_;
  bool v3_;
};

/// Schemas of answers that no kind of a group has. References are those of 3.0.
constexpr std::string_view kAnswers = R"({
"io.k8s.apimachinery.pkg.apis.meta.v1.Patch": {"description": "The body of a patch.", "type": "object"},
"io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause": {"description": "One of several reasons of an error.", "type": "object", "properties": {
  "field": {"type": "string"}, "message": {"type": "string"}, "reason": {"type": "string"}}},
"io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails": {"description": "What an answer is about.", "type": "object", "properties": {
  "causes": {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause"}, "x-kubernetes-list-type": "atomic"},
  "group": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}, "retryAfterSeconds": {"type": "integer", "format": "int32"}, "uid": {"type": "string"}}},
"io.k8s.apimachinery.pkg.apis.meta.v1.Status": {"description": "The answer of a call that returns no object.", "type": "object", "properties": {
  "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "code": {"type": "integer", "format": "int32"}, "message": {"type": "string"}, "reason": {"type": "string"}, "status": {"type": "string"},
  "details": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails"}, "metadata": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}}},
"io.k8s.api.autoscaling.v1.ScaleSpec": {"description": "How many replicas there shall be.", "type": "object", "properties": {"replicas": {"type": "integer", "format": "int32"}}},
"io.k8s.api.autoscaling.v1.ScaleStatus": {"description": "How many replicas there are.", "type": "object", "required": ["replicas"], "properties": {
  "replicas": {"type": "integer", "format": "int32"}, "selector": {"type": "string"}}},
"io.k8s.api.autoscaling.v1.Scale": {"description": "How many replicas an object has.", "type": "object", "properties": {
  "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
  "spec": {"$ref": "#/components/schemas/io.k8s.api.autoscaling.v1.ScaleSpec"}, "status": {"$ref": "#/components/schemas/io.k8s.api.autoscaling.v1.ScaleStatus"}}}
})";

/// References in the form of 2.0.
void to_v2(Value& value) {
  constexpr std::string_view kPrefix = "#/components/schemas/";
  if (auto* object = value.if_object()) {
    for (auto& [key, member] : *object) {
      const auto* text = member.if_string();
      if (key == "$ref" && text != nullptr && std::string_view(*text).starts_with(kPrefix)) {
        member = openapi_reference(false, std::string_view(*text).substr(kPrefix.size()));
      } else {
        to_v2(member);
      }
    }
  } else if (auto* list = value.if_array()) {
    for (auto& element : *list) to_v2(element);
  }
}

}  // namespace

std::string openapi_reference(bool v3, std::string_view name) {
  return fmt::format("{}{}", v3 ? "#/components/schemas/" : "#/definitions/", name);
}

void add_openapi_paths(const CustomKind& kind, bool v3, Object& schemas, Object& paths) {
  static const Value answers = *json::parse(kAnswers);
  const bool has_scale = kind.version->scale.has_value();
  for (const auto& [name, schema] : answers.get_object()) {
    if (schemas.contains(name) || (!has_scale && std::string_view(name).starts_with(kScale))) continue;
    auto& slot = schemas[name] = schema;
    if (!v3) to_v2(slot);
  }
  const auto& info = kind.info;
  const Paths of(kind, v3);
  const auto all = fmt::format("/apis/{}/{}/{}", info.group, info.version, info.plural);
  const auto at = info.namespaced ? fmt::format("/apis/{}/{}/namespaces/{{namespace}}/{}", info.group, info.version, info.plural) : all;
  if (info.namespaced) paths[all] = of.all_namespaces();
  paths[at] = of.collection();
  paths[at + "/{name}"] = of.object("");
  if (has_scale) paths[at + "/{name}/scale"] = of.object("scale");
  if (kind.version->has_status) paths[at + "/{name}/status"] = of.object("status");
}

}  // namespace berth::custom
