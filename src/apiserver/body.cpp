#include "apiserver/body.h"

#include "model/protobuf.h"

namespace berth::apiserver {

using model::bad_request;

namespace {

void drop_unknown(const Shape& shape, json::Value& value) {
  if (auto* object = value.if_object()) {
    if (!shape.is_known()) return;
    std::vector<std::string> unknown;
    for (auto& [key, member] : *object) {
      const auto below = shape.member(key);
      if (below.is_known()) {
        drop_unknown(below, member);
      } else if (!shape.is_map() && shape.is_struct()) {
        unknown.emplace_back(key);
      }
    }
    for (const auto& key : unknown) object->erase(key);
  } else if (auto* list = value.if_array()) {
    const auto below = shape.element();
    for (auto& element : *list) drop_unknown(below, element);
  }
}

std::string quoted_list(const std::vector<std::string>& unknown, const std::vector<std::string>& duplicates) {
  std::string text;
  const auto add = [&](std::string_view what, const std::string& path) {
    text += fmt::format("{}{} field \"{}\"", text.empty() ? "" : ", ", what, path);
  };
  for (const auto& path : unknown) add("unknown", path);
  for (const auto& path : duplicates) add("duplicate", path);
  return text;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t j = 1; j < length; ++j)
      if ((static_cast<unsigned char>(text[i + j]) & 0xC0) != 0x80) return false;
    i += length;
  }
  return true;
}

}  // namespace

model::ApiResult<json::Value> parse_body(const Request& request, std::string_view kind, std::vector<std::string>* duplicates) {
  if (request.http.headers.get("Content-Type").starts_with("application/vnd.kubernetes.protobuf")) {
    auto decoded = model::decode_protobuf(request.http.body);
    if (!decoded) return std::unexpected(bad_request(decoded.error().message));
    return std::move(*decoded);
  }
  const auto format = body_format(request.http.headers.get("Content-Type"));
  if (!format) return std::unexpected(format.error());
  const auto unreadable = [&](std::string_view why) {
    return std::unexpected(bad_request(fmt::format(
        "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {}", kind, why)));
  };
  if (request.http.body.empty()) return unreadable("unexpected end of JSON input (<empty>)");
  if (!is_utf8(request.http.body)) return unreadable("the body is not valid UTF-8");
  if (*format == Format::kYaml) {
    auto parsed = json::parse_yaml(request.http.body);
    if (!parsed) return std::unexpected(bad_request(fmt::format("error converting YAML to JSON: {}", parsed.error().message)));
    return std::move(*parsed);
  }
  json::ParseOptions options;
  options.duplicates = duplicates;
  auto parsed = json::parse(request.http.body, options);
  if (!parsed) return unreadable(parsed.error().message);
  return std::move(*parsed);
}

model::ApiResult<void> decode_document(Request& request, const model::KindInfo& kind, json::Value& document,
                                       const std::vector<std::string>& duplicates) {
  auto* object = document.if_object();
  if (object == nullptr)
    return std::unexpected(
        bad_request(fmt::format("the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: "
                                "json: cannot unmarshal non-object into Go value",
                                kind.kind)));
  const auto its_version = json::get_string(document, {"apiVersion"});
  const auto its_kind = json::get_string(document, {"kind"});
  if (!its_kind.empty() && its_kind != kind.kind)
    return std::unexpected(bad_request(fmt::format(
        "{} in version \"{}\" cannot be handled as a {}: no kind \"{}\" is accepted by this endpoint", its_kind,
        its_version.substr(its_version.find('/') == std::string_view::npos ? 0 : its_version.find('/') + 1), kind.kind, its_kind)));
  if (!its_version.empty() && its_version != kind.api_version())
    return std::unexpected(bad_request(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})", its_version, kind.api_version())));
  (*object)["apiVersion"] = kind.api_version();
  (*object)["kind"] = kind.kind;
  model::DecodeReport report;
  if (auto decoded = model::decode(kind, document, report); !decoded) return decoded;
  if (!report.unknown_fields.empty() || !duplicates.empty()) {
    if (request.field_validation == FieldValidation::kStrict)
      return std::unexpected(bad_request(fmt::format("{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}", kind.kind,
                                                     kind.version, kind.kind, quoted_list(report.unknown_fields, duplicates))));
    if (request.field_validation == FieldValidation::kWarn) {
      for (const auto& path : report.unknown_fields) request.warnings.push_back(fmt::format("unknown field \"{}\"", path));
      for (const auto& path : duplicates) request.warnings.push_back(fmt::format("duplicate field \"{}\"", path));
      // Who asks for warnings gets Kubernetes' behaviour; who says nothing keeps fields that this server does not know yet (SPEC A3).
      if (request.query.has("fieldValidation")) drop_unknown(Shape::of(kind), document);
    }
  }
  return {};
}

model::ApiResult<json::Value> decode_object_body(Request& request) {
  std::vector<std::string> duplicates;
  // Looking for duplicates is a pass of its own: for those who say that they want to know.
  const bool looks = request.query.has("fieldValidation") && request.field_validation != FieldValidation::kIgnore;
  auto document = parse_body(request, request.kind->kind, looks ? &duplicates : nullptr);
  if (!document) return document;
  if (auto decoded = decode_document(request, *request.kind, *document, duplicates); !decoded) return std::unexpected(decoded.error());
  model::apply_defaults(*request.kind, *document);
  return document;
}

model::ApiResult<void> match_path(const Request& request, json::Value& document, bool name_in_path) {
  auto& metadata = json::ensure_object(document, {"metadata"});
  if (request.kind->namespaced) {
    const auto ns = json::get_string(document, {"metadata", "namespace"});
    if (ns.empty()) {
      metadata["namespace"] = request.info.ns;
    } else if (ns != request.info.ns) {
      return std::unexpected(bad_request("the namespace of the provided object does not match the namespace sent on the request"));
    }
  } else {
    metadata.erase("namespace");
  }
  if (!name_in_path) return {};
  const auto name = json::get_string(document, {"metadata", "name"});
  if (name.empty()) {
    metadata["name"] = request.info.name;
  } else if (name != request.info.name) {
    return std::unexpected(
        bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, request.info.name)));
  }
  return {};
}

model::ApiResult<json::Value> read_delete_options(const Request& request) {
  json::Value options = json::Object();
  if (!request.http.body.empty()) {
    auto body = parse_body(request, "DeleteOptions");
    if (!body) return body;
    if (!body->is_object()) return std::unexpected(bad_request("the body of a DELETE must be DeleteOptions"));
    options = std::move(*body);
    const auto kind = json::get_string(options, {"kind"});
    if (!kind.empty() && kind != "DeleteOptions")
      return std::unexpected(bad_request(fmt::format("{} cannot be handled as DeleteOptions", kind)));
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
  model::FieldErrors errors;
  const auto* grace = json::find(options, "gracePeriodSeconds");
  if (grace != nullptr && !grace->is_int64()) return std::unexpected(bad_request("gracePeriodSeconds: must be a whole number"));
  const auto* policy = json::find(options, "propagationPolicy");
  if (policy != nullptr && json::find(options, "orphanDependents") != nullptr)
    errors.push_back({model::FieldError::Type::kInvalid, "propagationPolicy", json::serialize(*policy),
                      "orphanDependents and deletionPropagation cannot be both set"});
  if (policy != nullptr && json::get_string(options, {"propagationPolicy"}) != "Foreground" &&
      json::get_string(options, {"propagationPolicy"}) != "Background" && json::get_string(options, {"propagationPolicy"}) != "Orphan")
    errors.push_back({model::FieldError::Type::kNotSupported, "propagationPolicy", json::serialize(*policy),
                      "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""});
  const auto& dry_runs = json::get_array(options, {"dryRun"});
  if (!std::ranges::all_of(dry_runs, [](const json::Value& one) { return one.is_string() && json::as_view(one) == "All"; })) {
    std::string list;
    for (const auto& one : dry_runs) list += (list.empty() ? "" : ", ") + json::serialize(one);
    errors.push_back({model::FieldError::Type::kNotSupported, "dryRun", fmt::format("[]string{{{}}}", list), "supported values: \"All\""});
  }
  if (!errors.empty()) return std::unexpected(model::invalid_object("meta.k8s.io", "DeleteOptions", "", errors));
  return options;
}

}  // namespace berth::apiserver
