#include "model/api_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/utf8.h"

namespace berth::model {
namespace {

/// More are nobody's to read: a body of megabytes that is wrong everywhere is told by its beginning.
constexpr std::size_t kMostErrorsTold = 1000;

/// "pods" or "deployments.apps": schema.GroupResource.String().
std::string group_resource(std::string_view group, std::string_view resource) {
  return group.empty() ? std::string(resource) : fmt::format("{}.{}", resource, group);
}

ApiStatus make(int code, std::string_view reason, std::string message) {
  ApiStatus status;
  status.code = code;
  status.reason = reason;
  status.message = std::move(message);
  return status;
}

ApiStatus make_for(int code, std::string_view reason, std::string message, std::string_view group, std::string_view resource,
                   std::string_view name) {
  ApiStatus status = make(code, reason, std::move(message));
  status.group = group;
  status.kind = resource;
  status.name = name;
  return status;
}

/// apimachinery's NewGenericServerResponse for no resource in particular.
ApiStatus generic(int code, std::string_view reason, std::string message) {
  ApiStatus status = make(code, reason, std::move(message));
  status.shows_details = true;
  return status;
}

std::string_view cause_reason(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::kRequired:
      return "FieldValueRequired";
    case FieldError::Type::kInvalid:
      return "FieldValueInvalid";
    case FieldError::Type::kDuplicate:
      return "FieldValueDuplicate";
    case FieldError::Type::kForbidden:
      return "FieldValueForbidden";
    case FieldError::Type::kNotSupported:
      return "FieldValueNotSupported";
    case FieldError::Type::kNotFound:
      return "FieldValueNotFound";
    case FieldError::Type::kTooLong:
      return "FieldValueTooLong";
    case FieldError::Type::kTooMany:
      return "FieldValueTooMany";
    case FieldError::Type::kTypeInvalid:
      return "FieldValueTypeInvalid";
    case FieldError::Type::kInternal:
      return "InternalError";
  }
  return "";
}

/// The part after "field: ": what a StatusCause's message holds.
std::string error_body(const FieldError& error) {
  std::string_view words;
  bool with_value = true;
  switch (error.type) {
    case FieldError::Type::kRequired:
      words = "Required value", with_value = false;
      break;
    case FieldError::Type::kInvalid:
      words = "Invalid value";
      break;
    case FieldError::Type::kDuplicate:
      words = "Duplicate value";
      break;
    case FieldError::Type::kForbidden:
      words = "Forbidden", with_value = false;
      break;
    case FieldError::Type::kNotSupported:
      words = "Unsupported value";
      break;
    case FieldError::Type::kNotFound:
      words = "Not found";
      break;
    case FieldError::Type::kTooLong:
      words = "Too long", with_value = false;
      break;
    case FieldError::Type::kTooMany:
      words = "Too many";
      break;
    case FieldError::Type::kTypeInvalid:
      words = "Invalid value";
      break;
    case FieldError::Type::kInternal:
      words = "Internal error", with_value = false;
      break;
  }
  if (error.value.empty()) with_value = false;
  std::string out(words);
  if (with_value) out += ": " + error.value;
  if (!error.detail.empty()) out += ": " + error.detail;
  return out;
}

std::string_view reason_of_code(int code) {
  switch (code) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 406:
      return "NotAcceptable";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "RequestEntityTooLarge";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    case 500:
      return "InternalError";
    default:
      return "";
  }
}

}  // namespace

namespace {

/// What quotes a user's text may be as long as that: nobody reads the rest.
std::string bounded(std::string_view text) {
  constexpr std::size_t kMost = 256 * 1024;
  if (text.size() <= kMost) return to_utf8(text);
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return to_utf8(text.substr(0, end)) + "...";
}

}  // namespace

json::Value ApiStatus::to_json() const {
  json::Object out{{"kind", "Status"},
                   {"apiVersion", "v1"},
                   {"metadata", json::Object()},
                   {"status", code >= 200 && code < 300 ? "Success" : "Failure"}};
  if (!message.empty()) out["message"] = bounded(message);
  if (!reason.empty()) out["reason"] = reason;
  json::Object details;
  if (!name.empty()) details["name"] = to_utf8(name);
  if (!group.empty()) details["group"] = group;
  if (!kind.empty()) details["kind"] = kind;
  if (!uid.empty()) details["uid"] = uid;
  if (!causes.empty()) {
    json::Array list;
    for (const StatusCause& cause : causes) {
      json::Object one;
      if (!cause.reason.empty()) one["reason"] = cause.reason;
      if (!cause.message.empty()) one["message"] = to_utf8(cause.message);
      if (!cause.field.empty()) one["field"] = to_utf8(cause.field);
      list.push_back(std::move(one));
    }
    details["causes"] = std::move(list);
  }
  if (retry_after_seconds > 0) details["retryAfterSeconds"] = retry_after_seconds;
  if (shows_details || !details.empty()) out["details"] = std::move(details);
  out["code"] = code;
  return out;
}

ApiStatus ApiStatus::from_json(int http_code, std::string_view body) {
  ApiStatus status;
  status.code = http_code;
  const auto document = http_code == 0 ? Result<json::Value>(invalid("")) : json::parse(body);
  if (!document || json::get_string(*document, {"kind"}) != "Status") {
    status.reason = http_code == 0 ? "TransportError" : std::string(reason_of_code(http_code));
    status.message = body.substr(0, 2048);
    return status;
  }
  status.reason = json::get_string(*document, {"reason"});
  status.message = json::get_string(*document, {"message"});
  status.group = json::get_string(*document, {"details", "group"});
  status.kind = json::get_string(*document, {"details", "kind"});
  status.name = json::get_string(*document, {"details", "name"});
  status.uid = json::get_string(*document, {"details", "uid"});
  status.retry_after_seconds = static_cast<int>(json::get_int(*document, {"details", "retryAfterSeconds"}));
  for (const json::Value& cause : json::get_array(*document, {"details", "causes"}))
    status.causes.push_back({std::string(json::get_string(cause, {"reason"})), std::string(json::get_string(cause, {"message"})),
                             std::string(json::get_string(cause, {"field"}))});
  return status;
}

ApiStatus not_found(std::string_view group, std::string_view resource, std::string_view name) {
  return make_for(404, "NotFound", fmt::format("{} \"{}\" not found", group_resource(group, resource), name), group, resource, name);
}

ApiStatus already_exists(std::string_view group, std::string_view resource, std::string_view name) {
  return make_for(409, "AlreadyExists", fmt::format("{} \"{}\" already exists", group_resource(group, resource), name), group, resource,
                  name);
}

ApiStatus conflict(std::string_view group, std::string_view resource, std::string_view name, std::string_view why) {
  return make_for(409, "Conflict",
                  fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", group_resource(group, resource), name, why), group,
                  resource, name);
}

ApiStatus modified_conflict(std::string_view group, std::string_view resource, std::string_view name) {
  return conflict(group, resource, name, "the object has been modified; please apply your changes to the latest version and try again");
}

ApiStatus forbidden(std::string_view group, std::string_view resource, std::string_view name, std::string_view why) {
  const std::string what = resource.empty() ? "forbidden"
                           : name.empty()   ? fmt::format("{} is forbidden", group_resource(group, resource))
                                            : fmt::format("{} \"{}\" is forbidden", group_resource(group, resource), name);
  return make_for(403, "Forbidden", fmt::format("{}: {}", what, why), group, resource, name);
}

ApiStatus bad_request(std::string_view message) { return make(400, "BadRequest", std::string(message)); }
ApiStatus unauthorized() { return make(401, "Unauthorized", "Unauthorized"); }
ApiStatus expired(std::string_view message) { return make(410, "Expired", std::string(message)); }

ApiStatus internal_error(std::string_view message) {
  ApiStatus status = make(500, "InternalError", fmt::format("Internal error occurred: {}", message));
  status.causes.push_back({"", std::string(message), ""});
  return status;
}

ApiStatus too_many_requests(std::string_view message, int retry_after_seconds) {
  ApiStatus status = make(429, "TooManyRequests", std::string(message));
  status.retry_after_seconds = retry_after_seconds;
  return status;
}

ApiStatus unknown_path() { return generic(404, "NotFound", "the server could not find the requested resource"); }
ApiStatus method_not_allowed() {
  return generic(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
}
ApiStatus unknown_patch_type() { return generic(415, "UnsupportedMediaType", "415: Unsupported Media Type"); }
ApiStatus unprocessable() { return generic(422, "Invalid", "the server rejected our request due to an error in our request"); }

ApiStatus method_not_supported(std::string_view group, std::string_view resource, std::string_view verb) {
  ApiStatus status =
      make(405, "MethodNotAllowed", fmt::format("{} is not supported on resources of kind \"{}\"", verb, group_resource(group, resource)));
  status.group = group;
  status.kind = resource;
  return status;
}

ApiStatus unsupported_media_type(std::string_view message) { return make(415, "UnsupportedMediaType", std::string(message)); }
ApiStatus not_acceptable(std::string_view message) { return make(406, "NotAcceptable", std::string(message)); }

std::string FieldError::render() const { return field.empty() ? error_body(*this) : field + ": " + error_body(*this); }

ApiStatus invalid_object(std::string_view group, std::string_view kind, std::string_view name, const FieldErrors& errors) {
  if (kind == "Event") group = {};  // Of whatever group they were asked for, they are kept as the core's.
  std::vector<std::string> texts;
  std::unordered_set<std::string> seen;
  const std::size_t told = std::min(errors.size(), kMostErrorsTold);
  for (const FieldError& error : errors | std::views::take(told))
    if (std::string text = error.render(); seen.insert(text).second) texts.push_back(std::move(text));
  if (errors.size() > told) texts.push_back(fmt::format("and {} more", errors.size() - told));
  const std::string all = texts.size() == 1 ? texts[0] : fmt::format("[{}]", fmt::join(texts, ", "));
  ApiStatus status =
      make_for(422, "Invalid", fmt::format("{} \"{}\" is invalid: {}", group_resource(group, kind), name, all), group, kind, name);
  for (const FieldError& error : errors | std::views::take(told))
    status.causes.push_back({std::string(cause_reason(error.type)), error_body(error), error.field});
  return status;
}

}  // namespace berth::model
