// PATCH in its four languages. Which documents a patch sees and what its errors are called: apiserver/pkg/endpoints/handlers/patch.go.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/apply/typed_merge.h"
#include "apiserver/patch/json_patch.h"
#include "apiserver/patch/strategic_merge.h"
#include "apiserver/request/element_limit.h"
#include "apiserver/request/typing.h"
#include "apiserver/verbs/verbs.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "model/go_words.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kMaxShownPatch = 16 * 1024;

using Members = std::map<std::string_view, const json::Value*>;

Members sorted_by_name(const json::Object& object) {
  Members out;
  for (const auto& [key, member] : object) out.emplace(std::string_view(key), &member);
  return out;
}

/// As Go's encoder writes it: structs in the order of their fields, for which the numbers of protobuf stand, maps by name.
json::Value as_encoded(const model::TypeRef& ref, const json::Value& value) {
  using Kind = model::TypeRef::Kind;
  if (const auto* list = value.if_array(); list != nullptr && ref.kind == Kind::kList) {
    json::Array out;
    for (const auto& item : *list) out.push_back(as_encoded(*ref.element, item));
    return out;
  }
  const auto* object = value.if_object();
  if (object == nullptr || (ref.kind != Kind::kMap && ref.kind != Kind::kStruct)) return value;
  json::Object out;
  if (ref.kind == Kind::kMap) {
    for (const auto& [key, member] : sorted_by_name(*object)) out.emplace(key, as_encoded(*ref.element, *member));
    return out;
  }
  std::vector<const model::FieldDef*> fields;
  for (const auto& field : ref.type->fields)
    if (object->contains(field.name)) fields.push_back(&field);
  std::ranges::stable_sort(fields, {}, &model::FieldDef::proto);
  for (const auto* field : fields) out.emplace(field->name, as_encoded(field->ref, object->at(field->name)));
  for (const auto& [key, member] : *object) out.emplace(key, member);
  return out;
}

/// As Go's merge patch leaves it: what the patch went into is a map, written by name; the rest stands as it was encoded.
json::Value as_merged(const model::TypeRef& ref, const json::Value& value, const json::Value& patch) {
  const auto *object = value.if_object(), *changes = patch.if_object();
  if (object == nullptr || changes == nullptr) return as_encoded(ref, value);
  json::Object out;
  static const model::TypeRef unknown;
  for (const auto& [key, member] : sorted_by_name(*object)) {
    const auto* field = ref.type == nullptr ? nullptr : ref.type->field(key);
    const auto& inner = field != nullptr ? field->ref : ref.element != nullptr ? *ref.element : unknown;
    const auto* change = changes->if_contains(key);
    out.emplace(key, change == nullptr ? as_encoded(inner, *member) : as_merged(inner, *member, *change));
  }
  return out;
}

/// 422 with what went wrong as a finding on the patched document. `patch`: of a merge patch; of others, nothing that went in anywhere.
model::ApiStatus invalid_patch(const model::KindInfo& kind, const json::Value& patched, const json::Value& patch, std::string detail) {
  const auto* type = model::type_of(kind);
  const model::TypeRef whole{.kind = type == nullptr ? model::TypeRef::Kind::kAny : model::TypeRef::Kind::kStruct, .type = type};
  const auto text = json::serialize(as_merged(whole, patched, patch));
  return model::invalid_object("", "", "",
                               {{model::FieldError::Type::kInvalid, "patch",
                                 json::serialize(json::Value(std::string_view(text).substr(0, kMaxShownPatch))), std::move(detail)}});
}

/// A body that decoding into a Go map refuses; null is an empty map.
model::ApiResult<void> expect_map(const json::Value& patch, std::string_view before) {
  if (patch.is_object() || patch.is_null()) return {};
  return std::unexpected(model::bad_request(
      fmt::format("{}json: cannot unmarshal {} into Go value of type map[string]interface {{}}", before, model::go_json_kind(patch))));
}

/// A decoder's complaint in the words of the converter that strategic merge patches go through (runtime.FromUnstructured).
std::string converter_reason(const BodyRefusal& refusal) {
  using Is = model::DecodeError::Is;
  if (!refusal.error || refusal.error->is == Is::kOther) return refusal.reason;
  if (refusal.error->is == Is::kBase64) return fmt::format("error decoding from json: {}", refusal.reason);
  const auto& [found, type] = std::tie(refusal.error->found, refusal.error->wanted);
  const bool is_number = found.starts_with("number");
  const std::string_view source = found == "object"                                   ? "map"
                                  : found == "array"                                  ? "slice"
                                  : is_number && found.find('.') != std::string::npos ? "float64"
                                  : is_number                                         ? "int64"
                                                                                      : std::string_view(found);
  if (type.starts_with("map[")) return fmt::format("cannot restore map from {}", source);
  if (type.starts_with("[]")) return fmt::format("cannot restore slice from {}", source);
  const bool is_integer = type.starts_with("int");
  if ((source == "int64" && type == "string") || (source == "float64" && is_integer))
    return fmt::format("cannot convert {} to {}", source, type);
  if (is_integer || type == "string" || type == "bool" || type == "float64") return fmt::format("unrecognized type: {}", type);
  return fmt::format("cannot restore struct from: {}", source);
}

/// What an error may show: the patched document to those who may read it, to others their own patch. (Who may patch but not read an object
/// is stopped by admission, which comes later: a node at other nodes' pods.)
json::Value shown_to(Authorizer& authorizer, const Request& request, json::Value patched) {
  if (authorizer.authorize(request.user, attributes_of(request, "get")).allowed) return patched;
  auto patch = json::parse(request.http.body);
  return patch ? std::move(*patch) : json::Value(json::Object());
}

/// What every patched document goes through before it is an update like any other. `patch`: what was merged into it, as a merge patch or,
/// where `is_strategic`, as a strategic one; null for operations.
model::ApiResult<json::Value> finish_patched(Authorizer& authorizer, const RequestPtr& request, const model::KindInfo& kind,
                                             const json::Value& current, json::Value patched, const Repeated& repeated,
                                             const json::Value* patch = nullptr, bool is_strategic = false) {
  static const json::Value nothing{json::Object()};
  const auto refused = [&](const std::string& reason) {
    const auto shown = shown_to(authorizer, *request, std::move(patched));
    return std::unexpected(invalid_patch(kind, shown, patch == nullptr ? nothing : *patch, reason));
  };
  if (!patched.is_object()) return refused("the patched document is not an object");
  if (is_strategic) {
    // A typed object knows what it is, whatever the patch says.
    patched.get_object()["apiVersion"] = kind.api_version();
    patched.get_object()["kind"] = kind.kind;
  }
  if (auto many = Typing::of(*request).refuse_many_elements(patched)) return std::unexpected(std::move(*many));
  if (auto decoded = decode_document(*request, kind, patched, repeated, true, [&] { return std::optional(current); }); !decoded) {
    auto& refusal = decoded.error();
    if (refusal.is == BodyRefusal::Is::kOtherType) return std::unexpected(std::move(refusal.status));
    if (!is_strategic) return refused(refusal.reason);
    return std::unexpected(model::invalid_object(
        "", "", "",
        {{model::FieldError::Type::kInvalid, "patch", json::serialize(json::Value(model::go_value(*patch))), converter_reason(refusal)}}));
  }
  model::apply_defaults(kind, patched);
  if (json::get_string(patched, {"metadata", "name"}).empty()) return std::unexpected(no_name(request->info.name));
  // An object of the cluster has no namespace, whatever is said.
  if (!kind.namespaced) json::erase(patched, {"metadata", "namespace"});
  for (const char* field : {"namespace", "name"}) {
    const auto before = json::get_string(current, {"metadata", field});
    const auto after = json::get_string(patched, {"metadata", field});
    if (before == after) continue;
    if (std::string_view(field) == "namespace") return std::unexpected(other_namespace());
    return std::unexpected(other_name(after, before));
  }
  return patched;
}

using ChangePtr = std::unique_ptr<const Change>;

/// Whether a merge patch names nothing but the status, and of the metadata anything but the field owners.
bool names_status_alone(const json::Value& patch) {
  static constexpr std::array<std::string_view, 4> kPlain = {"apiVersion", "kind", "metadata", "status"};
  for (const auto& [key, value] : patch.get_object()) {
    const std::string_view name(key);
    if (std::ranges::find(kPlain, name) == kPlain.end()) return false;
    if (name != "metadata") continue;
    if (!value.is_object()) return false;
    for (const auto& [field, member] : value.get_object())
      if (std::string_view(field) == "managedFields" || std::string_view(field).starts_with('$')) return false;
  }
  return true;
}

class JsonPatch final : public Change {
 public:
  JsonPatch(Authorizer& authorizer, const RequestPtr& request, const model::KindInfo& kind,
            std::vector<patch::JsonPatchOperation> operations)
      : authorizer_(authorizer), request_(request), kind_(kind), operations_(std::move(operations)) {}

  [[nodiscard]] model::ApiResult<json::Value> made_of(const json::Value& current) const override {
    auto patched = current;
    if (auto applied = patch::apply_json_patch(patched, operations_); !applied) return std::unexpected(model::unprocessable());
    return finish_patched(authorizer_, request_, kind_, current, std::move(patched), {});
  }

 private:
  Authorizer& authorizer_;
  RequestPtr request_;
  const model::KindInfo& kind_;
  std::vector<patch::JsonPatchOperation> operations_;
};

model::ApiResult<ChangePtr> json_patch(Authorizer& authorizer, const RequestPtr& request, const model::KindInfo& kind) {
  auto parsed = parse_patch(*request, kDecodingPatch);
  if (!parsed) return std::unexpected(parsed.error());
  auto& document = parsed->document;
  if (document.is_null()) document = json::Array();
  auto operations = patch::parse_json_patch(document);
  if (!operations) return std::unexpected(operations.error());
  return std::make_unique<JsonPatch>(authorizer, request, kind, std::move(*operations));
}

/// 1e1 is 10 here: the converter takes a whole number however it is written.
void make_whole(json::Value& value) {
  if (auto* object = value.if_object()) {
    for (auto& [key, member] : *object) make_whole(member);
  } else if (auto* list = value.if_array()) {
    for (auto& element : *list) make_whole(element);
  } else if (const auto* number = value.if_double(); number != nullptr && std::trunc(*number) == *number && std::abs(*number) < 1e15) {
    value = static_cast<std::int64_t>(*number);
  }
}

/// A merge patch, or a strategic one.
class MergePatch final : public Change {
 public:
  MergePatch(Authorizer& authorizer, const RequestPtr& request, const model::KindInfo& kind, ParsedPatch patch, bool is_strategic)
      : authorizer_(authorizer), request_(request), kind_(kind), patch_(std::move(patch)), is_strategic_(is_strategic) {}

  [[nodiscard]] model::ApiResult<json::Value> made_of(const json::Value& current) const override {
    auto patched = current;
    if (!is_strategic_)
      patch::apply_merge_patch(patched, patch_.document);
    else if (auto applied = patch::apply_strategic_merge(Shape::of(kind_), patched, patch_.document); !applied)
      return std::unexpected(std::move(applied.error()));
    return finish_patched(authorizer_, request_, kind_, current, std::move(patched), patch_.repeated, &patch_.document, is_strategic_);
  }
  [[nodiscard]] Choice part() const override { return names_status_alone(patch_.document) ? status_part : nullptr; }

 private:
  Authorizer& authorizer_;
  RequestPtr request_;
  const model::KindInfo& kind_;
  ParsedPatch patch_;
  bool is_strategic_;
};

model::ApiResult<ChangePtr> merge_patch(Authorizer& authorizer, const RequestPtr& request, const model::KindInfo& kind, bool is_strategic) {
  const auto before = is_strategic ? std::string_view() : kDecodingPatch;
  auto parsed = parse_patch(*request, before);
  if (!parsed) return std::unexpected(parsed.error());
  auto& document = parsed->document;
  if (auto map = expect_map(document, before); !map) return std::unexpected(map.error());
  if (document.is_null() && !is_strategic) return std::unexpected(model::bad_request("Invalid JSON Patch"));
  if (document.is_null()) document = json::Object();
  if (is_strategic) make_whole(document);
  return std::make_unique<MergePatch>(authorizer, request, kind, std::move(*parsed), is_strategic);
}

/// The configuration of an apply.
struct Configuration {
  json::Value written;   ///< As the client wrote it.
  json::Value document;  ///< Decoded, with the names of the path filled in.
};

model::ApiResult<Configuration> read_configuration(Request& request, const model::KindInfo& kind) {
  if (!is_utf8(request.http.body))
    return std::unexpected(model::bad_request("error decoding YAML: error converting YAML to JSON: yaml: the body is not valid UTF-8"));
  // JSON is YAML, and read as JSON a tenth of the work; what of it is odd is left to the YAML reader's words.
  std::vector<std::string> repeated;
  const auto document_of = [&](const std::string& body) -> Expected<json::Value, json::YamlFault> {
    std::vector<std::string> duplicates;
    json::ParseOptions strict;
    strict.duplicates = &duplicates;
    if (body.starts_with('{'))
      if (auto document = json::parse(body, strict); document && duplicates.empty()) return std::move(*document);
    return json::read_first_yaml(body, request.field_validation == FieldValidation::kIgnore ? nullptr : &repeated);
  };
  auto document = document_of(request.http.body);
  if (!document)
    return std::unexpected(
        model::bad_request(fmt::format("error decoding YAML: error converting YAML to JSON: {}", document.error().go_words)));
  json::Value config = document->is_null() ? json::Value(json::Object()) : std::move(*document);
  if (!config.is_object())
    return std::unexpected(model::bad_request(
        fmt::format("error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type "
                    "map[string]interface {{}}",
                    model::go_json_kind(config))));
  if (auto many = Typing::of(request).refuse_many_elements(config)) return std::unexpected(std::move(*many));
  const auto given_version = json::get_string(config, {"apiVersion"});
  const auto given_kind = json::get_string(config, {"kind"});
  if (given_version != kind.api_version() || given_kind != kind.kind)
    return std::unexpected(model::bad_request(fmt::format(
        "invalid object type: {}{}, Kind={}", given_version.find('/') == std::string_view::npos ? "/" : "", given_version, given_kind)));
  if (const auto* owners = json::find(config, {"metadata", "managedFields"}); owners != nullptr && owners->is_array())
    return std::unexpected(model::bad_request("metadata.managedFields must be nil"));
  if (auto wrong = apply::check_typed(kind, config)) {
    model::ApiStatus status;
    status.code = 500;
    const auto ns = json::get_string(config, {"metadata", "namespace"});
    status.message =
        fmt::format("failed to create typed patch object ({}/{}; {}, Kind={}): {}", ns, json::get_string(config, {"metadata", "name"}),
                    kind.group.empty() ? "/" + kind.version : kind.api_version(), kind.kind, *wrong);
    return std::unexpected(std::move(status));
  }
  Configuration out;
  out.written = config;
  if (auto decoded = decode_document(request, kind, config, {}, false); !decoded) return std::unexpected(std::move(decoded.error().status));
  if (!repeated.empty() && request.field_validation == FieldValidation::kStrict)
    return std::unexpected(model::bad_request(fmt::format(
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}", fmt::join(repeated, "\n  "))));
  for (auto& line : repeated) request.warnings.push_back(std::move(line));
  const auto name = json::get_string(config, {"metadata", "name"});
  if (!name.empty() && name != request.info.name) return std::unexpected(other_name(name, request.info.name));
  auto& metadata = json::ensure_object(config, {"metadata"});
  metadata["name"] = request.info.name;
  if (kind.namespaced) {
    const auto ns = json::get_string(config, {"metadata", "namespace"});
    if (!ns.empty() && ns != request.info.ns) return std::unexpected(other_namespace());
    metadata["namespace"] = request.info.ns;
  }
  out.document = std::move(config);
  return out;
}

/// Who moves from client-side to server-side apply and back must find the annotation as the last apply left it: where it is, kubectl's
/// own applies keep it (managedfields/internal/lastapplied.go).
void keep_last_applied(json::Value& merged, const json::Value& written) {
  constexpr std::string_view kAnnotation = "kubectl.kubernetes.io/last-applied-configuration";
  constexpr std::size_t kMaxAnnotationBytes = 256 * 1024;
  auto* annotations = json::find(merged, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object() || !annotations->get_object().contains(kAnnotation)) return;
  auto configuration = written;
  json::erase(configuration, {"metadata", "managedFields"});
  json::erase(configuration, {"metadata", "annotations", kAnnotation});
  auto text = json::serialize(by_name(std::move(configuration))) + "\n";
  std::size_t size = text.size();
  for (const auto& [key, value] : annotations->get_object())
    if (std::string_view(key) != kAnnotation) size += key.size() + (value.is_string() ? json::as_view(value).size() : 0);
  auto& map = annotations->get_object();
  if (size > kMaxAnnotationBytes) {
    map.erase(kAnnotation);
  } else {
    map[kAnnotation] = std::move(text);
  }
}

/// What the applier wants of the object.
class Applied final : public Change {
 public:
  Applied(WritePipeline& writes, const RequestPtr& request, Configuration wanted)
      : ground_(writes.ground), request_(request), wanted_(std::move(wanted)) {}

  [[nodiscard]] model::ApiResult<json::Value> made_of(const json::Value& current) const override {
    const auto& kind = *request_->kind;
    const auto& subresource = request_->info.subresource;
    const apply::Writer writer{request_->field_manager, subresource, ground_.loop.now()};
    auto merged = apply::apply(kind, current, wanted_.document, wanted_.written, writer, request_->force);
    if (!merged) return merged;
    if (subresource.empty() && request_->field_manager == "kubectl") keep_last_applied(*merged, wanted_.written);
    // Zeros and defaults come back where the prune took a field away.
    model::fill_always_written(kind, *merged);
    model::apply_defaults(kind, *merged);
    return merged;
  }
  [[nodiscard]] std::optional<model::ApiResult<json::Value>> made_anew() const override {
    if (!request_->info.subresource.empty()) return std::nullopt;
    if (auto refused = refuse_creation(ground_, *request_)) return std::unexpected(std::move(*refused));
    if (const auto uid = json::get_string(wanted_.document, {"metadata", "uid"}); !uid.empty())
      return std::unexpected(
          model::conflict(request_->kind->group, request_->kind->plural, request_->info.name,
                          fmt::format("uid mismatch: the provided object specified uid {}, and no existing object was found", uid)));
    auto fresh = made_of(json::Value(json::Object()));
    if (fresh) json::erase(*fresh, {"metadata", "resourceVersion"});  // Of no object that is not there yet.
    return fresh;
  }

 private:
  const Ground& ground_;
  RequestPtr request_;
  Configuration wanted_;
};

/// What cannot be said of a patch of this language.
model::ApiStatus invalid_patch_option(model::FieldError::Type type, std::string_view field, std::string_view why) {
  return model::invalid_object("meta.k8s.io", "PatchOptions", "", {{type, std::string(field), "", std::string(why)}});
}

model::ApiResult<ChangePtr> change_of(Authorizer& authorizer, const RequestPtr& request, const model::KindInfo& kind) {
  const auto type = media_type(request->http.headers.get("Content-Type"));
  if (auto refused = Typing::of(*request).refuse_patch(type)) return std::unexpected(std::move(*refused));
  if (type == "application/json-patch+json") return json_patch(authorizer, request, kind);
  return merge_patch(authorizer, request, kind, type == "application/strategic-merge-patch+json");
}

}  // namespace

namespace steps {

StepResult decode_patch(WritePipeline& writes, const WritePtr& operation) {
  const auto& request = operation->request;
  auto change = change_of(*writes.ground.options.authorizer, request, *operation->kind);
  const bool is_of_type = change || change.error().code != 415;
  if (is_of_type && request->query.has("force"))
    return std::unexpected(invalid_patch_option(model::FieldError::Type::kForbidden, "force", "may not be specified for non-apply patch"));
  if (!change) return std::unexpected(std::move(change.error()));
  operation->decoded.change = std::move(*change);
  return Flow::kNext;
}

StepResult decode_apply(WritePipeline& writes, const WritePtr& operation) {
  const auto& request = operation->request;
  if (!request->field_manager_given)
    return std::unexpected(invalid_patch_option(model::FieldError::Type::kRequired, "fieldManager", "is required for apply patch"));
  auto config = read_configuration(*request, *operation->kind);
  if (!config) return std::unexpected(std::move(config.error()));
  operation->decoded.change = std::make_unique<Applied>(writes, request, std::move(*config));
  return Flow::kNext;
}

}  // namespace steps
}  // namespace berth::apiserver
