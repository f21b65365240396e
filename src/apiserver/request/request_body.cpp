#include "apiserver/request/request_body.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "apiserver/request/element_limit.h"
#include "apiserver/request/typing.h"
#include "base/mutex.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "model/go_words.h"
#include "model/internal_form.h"
#include "model/kind_hooks.h"
#include "model/protobuf/protobuf.h"
#include "model/schema.h"
#include "model/unknown_fields.h"

namespace berth::apiserver {

using model::bad_request;

namespace {

/// Unknown and repeated fields in the order of the text, each in Kubernetes' words and once.
class StrictFindings {
 public:
  StrictFindings(const json::Value& document, const std::vector<std::string>& unknown, const std::vector<std::string>& duplicates,
                 bool tells_repeated_first) {
    if (tells_repeated_first)
      for (const auto& path : duplicates) add({path, path, 0, true});
    std::vector<Sought> sought;
    for (const auto& path : unknown) sought.push_back({path, path, sought.size(), false});
    for (const auto& path : duplicates) sought.push_back({path, path, sought.size(), true});
    if (!duplicates.empty() && !tells_repeated_first) walk(document, sought);
    // All of them when nothing else is to be put in order.
    for (const auto& one : sought)
      if (!one.is_duplicate) add(one);
  }
  std::vector<std::string> lines;

 private:
  /// A finding on the way down: what of its path is left.
  struct Sought {
    std::string_view path, rest;
    std::size_t order = 0;
    bool is_duplicate = false;
  };

  void add(const Sought& found) {
    if (lines.size() < model::kMaxStrictFindings && told_.insert(found.path).second)
      lines.push_back(fmt::format("{} field \"{}\"", found.is_duplicate ? "duplicate" : "unknown", found.path));
  }
  /// Those that lead through `step` ("name" or "[0]").
  static std::vector<Sought> through(const std::vector<Sought>& sought, std::string_view step) {
    std::vector<Sought> below;
    for (auto one : sought) {
      if (!one.rest.starts_with(step)) continue;
      one.rest.remove_prefix(step.size());
      if (!one.rest.empty() && one.rest.front() != '.' && one.rest.front() != '[') continue;
      if (one.rest.starts_with('.')) one.rest.remove_prefix(1);
      below.push_back(one);
    }
    return below;
  }
  void walk(const json::Value& value, const std::vector<Sought>& sought) {
    if (sought.empty()) return;
    if (const auto* list = value.if_array()) {
      for (std::size_t i = 0; i < list->size(); ++i) walk((*list)[i], through(sought, fmt::format("[{}]", i)));
      return;
    }
    const auto* object = value.if_object();
    if (object == nullptr) return;
    std::vector<Sought> repeated;
    for (const auto& [key, member] : *object) {
      const auto below = through(sought, key);
      const auto unknown = std::ranges::find_if(below, [](const Sought& one) { return one.rest.empty() && !one.is_duplicate; });
      // Nobody looks into what is unknown.
      if (unknown != below.end()) {
        add(*unknown);
        continue;
      }
      std::ranges::copy_if(below, std::back_inserter(repeated), [](const Sought& one) { return one.rest.empty(); });
      walk(member, below);
      // In what was said first, and is not there any more.
      for (const auto& one : below)
        if (one.is_duplicate && !one.rest.empty()) add(one);
    }
    // Repeated ones are told after the object's own members, in the order in which they were found.
    std::ranges::sort(repeated, {}, &Sought::order);
    for (const auto& one : repeated) add(one);
  }

  std::unordered_set<std::string_view> told_;
};

std::string strict_findings(const Repeated& repeated, const std::vector<std::string>& lines) {
  std::string out;
  if (!repeated.lines.empty()) out = fmt::format("yaml: unmarshal errors:\n  {}", fmt::join(repeated.lines, "\n  "));
  return fmt::format("{}{}{}", out, out.empty() || lines.empty() ? "" : ", ", fmt::join(lines, ", "));
}

/// The Go package of a kind's internal type.
std::string_view internal_package(std::string_view group) {
  if (group.empty() || group == "events.k8s.io") return "core";
  return group.substr(0, group.find('.'));
}

constexpr std::string_view kNoType =
    "Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// Why a document cannot even be asked for its kind; empty when it can.
std::string kind_unreadable(const json::Value& document) {
  if (!document.is_object()) return fmt::format("json: cannot unmarshal {} into {}", model::go_json_kind(document), kNoType);
  for (const std::string_view field : {"apiVersion", "kind"}) {
    const auto* value = json::find(document, {field});
    if (value != nullptr && !value->is_string() && !value->is_null())
      return fmt::format("json: cannot unmarshal {} into Go struct field .{} of type string", model::go_json_kind(*value), field);
  }
  return {};
}

}  // namespace

json::Value by_name(json::Value value) {
  if (auto* list = value.if_array()) {
    for (auto& element : *list) element = by_name(std::move(element));
  } else if (auto* object = value.if_object()) {
    std::map<std::string, json::Value> members;
    for (auto& [key, member] : *object) members.emplace(std::string(key), by_name(std::move(member)));
    object->clear();
    for (auto& [key, member] : members) (*object)[key] = std::move(member);
  }
  return value;
}

std::string internal_go_type(const model::KindInfo& kind) { return fmt::format("{}.{}", internal_package(kind.group), kind.kind); }

std::optional<BodyRefusal> check_type(const json::Value& document, std::string_view group, std::string_view version,
                                      std::string_view kind) {
  const auto given_version = json::get_string(document, {"apiVersion"});
  const auto given_kind = json::get_string(document, {"kind"});
  const auto [its_group, its_version] = given_version.empty() ? std::pair(group, version) : split_version(given_version);
  const auto its_kind = given_kind.empty() ? kind : given_kind;
  if (its_group == group && its_version == version && its_kind == kind) return std::nullopt;
  const auto wanted = group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
  const bool is_definition = group == "apiextensions.k8s.io";
  const bool is_known = (is_definition && its_group == group && its_version == "v1beta1" && its_kind == kind) ||
                        model::find_kind(its_group, its_version, its_kind) != nullptr || its_kind == "List";
  if (is_known && its_group == group && its_kind == kind)
    return bad_request(fmt::format("the API version in the data ({}) does not match the expected API version ({})", given_version, wanted));
  std::string why =
      is_known ? fmt::format("converting ({}.{}) to ({}.{}): unknown conversion", its_version, its_kind, internal_package(group), kind)
               : fmt::format(R"(no kind "{}" is registered for version "{}" in scheme "k8s.io/{}")", its_kind,
                             its_group.empty() ? std::string(its_version) : fmt::format("{}/{}", its_group, its_version),
                             is_definition                       ? "apiextensions-apiserver/pkg/apiserver/apiserver.go:55"
                             : group == "apiregistration.k8s.io" ? "kube-aggregator/pkg/apiserver/scheme/scheme.go:28"
                                                                 : "kubernetes/pkg/api/legacyscheme/scheme.go:30");
  BodyRefusal refusal(bad_request(fmt::format(R"({} in version "{}" cannot be handled as a {}: {})", its_kind, its_version, kind, why)));
  refusal.is = BodyRefusal::Is::kUnreadable;
  refusal.reason = std::move(why);
  return refusal;
}

model::ApiResult<json::Value> parse_body(Request& request, std::string_view kind, Repeated* repeated) {
  if (request.read_ahead) return *std::exchange(request.read_ahead, std::nullopt);
  const std::string_view body = request.http.body;
  const auto& typing = Typing::of(request);
  const auto unreadable = [&](std::string_view why) {
    if (kind == "DeleteOptions") return std::unexpected(bad_request(why));
    return std::unexpected(bad_request(
        fmt::format("the object provided is unrecognized (must be of type {}): {} ({})", kind, why, model::body_summary(body))));
  };
  constexpr std::string_view kNoKind = "couldn't get version/kind; json parse error: ";
  if (request.http.headers.get("Content-Type").starts_with("application/vnd.kubernetes.protobuf")) {
    if (auto refused = kind == "DeleteOptions" ? std::nullopt : typing.refuse_protobuf()) return std::unexpected(std::move(*refused));
    if (!body.starts_with(std::string_view("k8s\0", 4)))
      return unreadable("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    auto decoded = model::decode_protobuf(body);
    if (!decoded) return std::unexpected(bad_request(decoded.error().message));
    if (auto many = may_have_many_elements(body.size()) ? typing.refuse_many_elements(*decoded) : std::nullopt)
      return std::unexpected(std::move(*many));
    return std::move(*decoded);
  }
  const auto format = body_format(request.http.headers.get("Content-Type"));
  if (!format) return std::unexpected(format.error());
  if (!is_utf8(body)) return unreadable(fmt::format("{}the body is not valid UTF-8", kNoKind));
  std::optional<json::Value> document;
  if (*format == Format::kYaml) {
    auto parsed = json::read_first_yaml(body, repeated == nullptr ? nullptr : &repeated->lines);
    if (!parsed) return unreadable(parsed.error().go_words);
    // Only the first document counts, and none is an empty object.
    document = parsed->is_null() ? json::Value(json::Object()) : by_name(std::move(*parsed));
  } else {
    json::ParseOptions options;
    if (repeated != nullptr) options.duplicates = &repeated->fields;
    auto parsed = json::parse(body, options);
    if (!parsed) {
      const auto in_go_words = model::go_json_error(body);
      return unreadable(std::string(kNoKind) + (in_go_words.empty() ? parsed.error().message : in_go_words));
    }
    document = parsed->is_null() ? json::Value(json::Object()) : std::move(*parsed);
  }
  if (const auto why = kind_unreadable(*document); !why.empty()) return unreadable(std::string(kNoKind) + why);
  // Aliases make many of a short text.
  if (*format == Format::kYaml || may_have_many_elements(body.size()))
    if (auto many = typing.refuse_many_elements(*document)) return std::unexpected(std::move(*many));
  return std::move(*document);
}

Taken<void> decode_document(Request& request, const model::KindInfo& kind, json::Value& document, const Repeated& repeated, bool fills,
                            const StoredDocument& stored) {
  auto* object = document.if_object();
  const auto& typing = Typing::of(request, kind);
  if (object == nullptr)
    return std::unexpected(bad_request(fmt::format("the object provided is unrecognized (must be of type {}): {}{}", kind.kind,
                                                   "couldn't get version/kind; json parse error: ", kind_unreadable(document))));
  if (auto wrong = typing.check_type(request, kind, document)) return std::unexpected(std::move(*wrong));
  (*object)["apiVersion"] = kind.api_version();
  (*object)["kind"] = kind.kind;
  model::DecodeReport report;
  request.empty = {};
  if (auto decoded = fills ? model::decode(kind, document, report, request.empty) : model::decode(kind, document, report, false); !decoded)
    return std::unexpected(BodyRefusal(kind, std::move(decoded.error())));
  // What the server itself keeps and shows is no mistake of who sends it back.
  std::optional<json::Value> before;
  if (!report.unknown_fields.empty() && stored && !report.is_dropped) {
    before = stored();
    if (before) report.unknown_fields = model::unknown_fields(kind, document, &*before);
  }
  if (report.unknown_fields.empty() && repeated.fields.empty() && repeated.lines.empty()) return {};
  const StrictFindings findings(document, report.unknown_fields, repeated.fields, typing.tells_repeated_first());
  if (request.field_validation == FieldValidation::kStrict)
    return std::unexpected(
        BodyRefusal(BodyRefusal::Is::kStrict, kind, "strict decoding error: " + strict_findings(repeated, findings.lines)));
  if (request.field_validation == FieldValidation::kWarn) {
    for (const auto& line : repeated.lines) request.warnings.push_back(line);
    for (const auto& line : findings.lines) request.warnings.push_back(line);
  }
  // Who sends the parameter gets Kubernetes' behaviour, and so does a patch (kubectl's has no parameter: a typo would stay for ever). Who
  // writes a whole object and says nothing keeps fields that this server does not know yet (SPEC A3).
  if (!report.unknown_fields.empty() && !report.is_dropped && (request.query.has("fieldValidation") || request.info.verb == "patch"))
    model::drop_unknown_fields(kind, document, before ? &*before : nullptr);
  // A status is nobody's to write into an object: where the kind has none, it is not kept either.
  else if (const auto* type = model::type_of(kind); !typing.is_shown_whole() && type != nullptr && type->field("status") == nullptr)
    object->erase("status");
  return {};
}

/// An owner that is named twice in the same words counts once, and who sent it is told.
void deduplicate_owners(Request& request, json::Value& document) {
  auto* owners = json::find(document, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array() || owners->get_array().size() < 2) return;
  json::Array once;
  std::vector<std::string> twice;
  std::unordered_set<std::string> seen;
  for (auto& owner : owners->get_array()) {
    if (seen.insert(json::serialize(model::sorted_members(owner))).second)
      once.push_back(owner);
    else
      twice.emplace_back(json::get_string(owner, {"uid"}));
  }
  if (twice.empty()) return;
  *owners = std::move(once);
  request.warnings.push_back(
      fmt::format(".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such "
                  "requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
                  fmt::join(twice, ", ")));
}

const model::KindInfo& unserved_kind(std::string_view group, std::string_view version, std::string_view kind, std::string_view type) {
  static Mutex mutex;
  static std::map<std::array<std::string_view, 4>, model::KindInfo> made BERTH_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  const auto [at, is_new] = made.try_emplace({group, version, kind, type});
  if (!is_new) return at->second;
  model::KindInfo& out = at->second;
  out.group = group;
  out.version = version;
  out.kind = kind;
  model::Form form;
  form.type = {model::find_type(type), [](const model::TypeDef*) {}};
  auto hooks = std::make_shared<model::KindHooks>(model::KindHooks::all_default());
  hooks->form = std::move(form);
  out.hooks = std::move(hooks);
  return out;
}

/// Looking for duplicates is a pass of its own: for those who say that they want to know.
static bool looks_for_duplicates(const Request& request) {
  return request.query.has("fieldValidation") && request.field_validation != FieldValidation::kIgnore;
}

Taken<json::Value> decode_unserved_body(Request& request, const model::KindInfo& kind, const model::KindInfo* older) {
  Repeated repeated;
  auto document = parse_body(request, kind.kind, looks_for_duplicates(request) ? &repeated : nullptr);
  if (!document) return std::unexpected(std::move(document.error()));
  const bool is_older = older != nullptr && json::get_string(*document, {"apiVersion"}) == older->api_version();
  if (auto decoded = decode_document(request, is_older ? *older : kind, *document, repeated, false); !decoded)
    return std::unexpected(std::move(decoded.error()));
  return std::move(*document);
}

model::ApiResult<json::Value> decode_object_body(Request& request, const StoredDocument& stored) {
  Repeated repeated;
  auto document = parse_body(request, request.kind->kind, looks_for_duplicates(request) ? &repeated : nullptr);
  if (!document) return document;
  if (auto decoded = decode_document(request, *request.kind, *document, repeated, true, stored); !decoded)
    return std::unexpected(std::move(decoded.error().status));
  model::apply_defaults(*request.kind, *document);
  deduplicate_owners(request, *document);
  return document;
}

model::ApiStatus no_name(std::string_view on_url) {
  return bad_request(fmt::format("the name of the object ({} based on URL) was undeterminable: name must be provided", on_url));
}

model::ApiStatus other_name(std::string_view name, std::string_view on_url) {
  return bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, on_url));
}

model::ApiStatus other_namespace() {
  return bad_request("the namespace of the provided object does not match the namespace sent on the request");
}

model::ApiResult<void> match_path(const Request& request, json::Value& document, bool name_in_path) {
  auto& metadata = json::ensure_object(document, {"metadata"});
  if (request.kind->namespaced) {
    const auto ns = json::get_string(document, {"metadata", "namespace"});
    if (ns.empty()) {
      metadata["namespace"] = request.info.ns;
    } else if (ns != request.info.ns) {
      return std::unexpected(other_namespace());
    }
  } else {
    metadata.erase("namespace");
  }
  if (!name_in_path) return {};
  const auto name = json::get_string(document, {"metadata", "name"});
  if (name.empty()) return std::unexpected(no_name(request.info.name));
  if (name != request.info.name) {
    return std::unexpected(other_name(name, request.info.name));
  }
  return {};
}

model::ApiResult<ParsedPatch> parse_patch(const Request& request, std::string_view before) {
  ParsedPatch out;
  json::ParseOptions options;
  if (request.field_validation != FieldValidation::kIgnore) options.duplicates = &out.repeated.fields;
  auto patch = json::parse(request.http.body, options);
  if (patch) {
    if (may_have_many_elements(request.http.body.size()))
      if (auto many = Typing::of(request).refuse_many_elements(*patch)) return std::unexpected(std::move(*many));
    out.document = std::move(*patch);
    return out;
  }
  const auto why = model::go_json_error(request.http.body);
  return std::unexpected(bad_request(fmt::format("{}{}", before, why.empty() ? patch.error().message : why)));
}

std::optional<model::ApiStatus> check_delete_options(const json::Value& options) {
  const auto wrong_type = [&](std::string_view field, std::string_view type) {
    return bad_request(fmt::format("json: cannot unmarshal {} into Go struct field DeleteOptions.{} of type {}",
                                   model::go_json_kind(*json::find(options, {field})), field, type));
  };
  const auto* grace = json::find(options, "gracePeriodSeconds");
  if (grace != nullptr && !grace->is_int64() && !grace->is_null()) return wrong_type("gracePeriodSeconds", "int64");
  const auto* dry_run = json::find(options, "dryRun");
  if (dry_run != nullptr && !dry_run->is_array() && !dry_run->is_null()) return wrong_type("dryRun", "[]string");
  const auto* preconditions = json::find(options, "preconditions");
  if (preconditions != nullptr && !preconditions->is_object() && !preconditions->is_null())
    return wrong_type("preconditions", "v1.Preconditions");
  const auto* policy = json::find(options, "propagationPolicy");
  if (policy != nullptr && !policy->is_string() && !policy->is_null()) return wrong_type("propagationPolicy", "v1.DeletionPropagation");
  model::FieldErrors errors;
  const auto word = json::get_string(options, {"propagationPolicy"});
  if (policy != nullptr && json::find(options, "orphanDependents") != nullptr)
    errors.push_back({model::FieldError::Type::kInvalid, "propagationPolicy", json::serialize(*policy),
                      "orphanDependents and deletionPropagation cannot be both set"});
  if (policy != nullptr && !policy->is_null() && word != "Foreground" && word != "Background" && word != "Orphan")
    errors.push_back({model::FieldError::Type::kNotSupported, "propagationPolicy", json::serialize(*policy),
                      "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""});
  const auto& dry_runs = json::get_array(options, {"dryRun"});
  if (!std::ranges::all_of(dry_runs, [](const json::Value& one) { return one.is_string() && json::as_view(one) == "All"; }))
    errors.push_back({model::FieldError::Type::kNotSupported, "dryRun", json::serialize(*dry_run), "supported values: \"All\""});
  if (errors.empty()) return std::nullopt;
  return model::invalid_object("meta.k8s.io", "DeleteOptions", "", errors);
}

model::ApiResult<json::Value> read_delete_options(Request& request) {
  json::Value options = json::Object();
  if (!request.http.body.empty()) {
    auto body = parse_body(request, "DeleteOptions");
    if (!body) return body;
    options = std::move(*body);
    const auto kind = json::get_string(options, {"kind"});
    if (!kind.empty() && kind != "DeleteOptions") {
      const auto version = json::get_string(options, {"apiVersion"});
      return std::unexpected(bad_request(fmt::format(
          R"(no kind "{}" is registered for version "{}" in scheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27")",
          kind, version.empty() ? "v1" : version)));
    }
  } else {
    auto& object = options.get_object();
    if (const auto grace = request.query.get("gracePeriodSeconds"); !grace.empty()) {
      std::int64_t seconds = 0;
      const auto [end, error] = std::from_chars(grace.data(), grace.data() + grace.size(), seconds);
      if (error != std::errc() || end != grace.data() + grace.size())
        return std::unexpected(bad_request(fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", grace)));
      object["gracePeriodSeconds"] = seconds;
    }
    if (const auto policy = request.query.get("propagationPolicy"); !policy.empty()) object["propagationPolicy"] = policy;
    if (request.query.has("orphanDependents")) object["orphanDependents"] = request.query.flag("orphanDependents");
  }
  if (auto wrong = check_delete_options(options)) return std::unexpected(std::move(*wrong));
  return options;
}

}  // namespace berth::apiserver
