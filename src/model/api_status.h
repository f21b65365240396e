// metav1.Status as a value: the API's one way to fail, in the server and in the client.
#pragma once
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/json.h"

namespace berth::model {

struct StatusCause {
  std::string reason;  ///< "FieldValueRequired", "DisruptionBudget", …
  std::string message;
  std::string field;
};

/// A failed request. `reason` is metav1.StatusReason ("NotFound", "AlreadyExists", "Conflict", "Invalid", "Forbidden", "BadRequest",
/// "Unauthorized", "Expired", "TooManyRequests", …). Code 0 means the server could not be reached (reason "TransportError").
struct [[nodiscard]] ApiStatus {
  int code = 500;
  std::string reason;
  std::string message;
  std::string group, kind, name, uid;  ///< details
  std::vector<StatusCause> causes;
  int retry_after_seconds = 0;
  bool shows_details = false;  ///< `details` is there even when it is empty, as in answers that no resource gave.

  [[nodiscard]] json::Value to_json() const;
  static ApiStatus from_json(int http_code, std::string_view body);
  [[nodiscard]] bool is(std::string_view r) const { return reason == r; }
};

template <typename T>
using ApiResult = Expected<T, ApiStatus>;

// Kubernetes' standard errors with its words (apimachinery/pkg/api/errors). `resource` is the plural, `group` may be empty.
ApiStatus not_found(std::string_view group, std::string_view resource, std::string_view name);
ApiStatus already_exists(std::string_view group, std::string_view resource, std::string_view name);
ApiStatus conflict(std::string_view group, std::string_view resource, std::string_view name, std::string_view why);
/// The well-known "the object has been modified; please apply your changes to the latest version and try again".
ApiStatus modified_conflict(std::string_view group, std::string_view resource, std::string_view name);
ApiStatus forbidden(std::string_view group, std::string_view resource, std::string_view name, std::string_view why);
ApiStatus bad_request(std::string_view message);
ApiStatus unauthorized();
ApiStatus expired(std::string_view message);
ApiStatus internal_error(std::string_view message);
ApiStatus too_many_requests(std::string_view message, int retry_after_seconds);
/// What the router of a real API server says: no such path, no such method there, no such body type.
ApiStatus unknown_path();
ApiStatus method_not_allowed();
ApiStatus unknown_patch_type();
/// 422 without a finding: a JSON patch that does not apply.
ApiStatus unprocessable();
ApiStatus method_not_supported(std::string_view group, std::string_view resource, std::string_view verb);
ApiStatus unsupported_media_type(std::string_view message);
ApiStatus not_acceptable(std::string_view message);

/// One finding of validation, as field.Error: renders `spec.x: Invalid value: "v": detail`.
struct FieldError {
  enum class Type { kRequired, kInvalid, kDuplicate, kForbidden, kNotSupported, kNotFound, kTooLong, kTooMany, kTypeInvalid, kInternal };
  Type type = Type::kInvalid;
  std::string field;  ///< "spec.containers[0].name"
  std::string value;  ///< Already rendered as Go's %#v-like JSON (quoted strings); empty for Required and Forbidden.
  std::string detail;
  [[nodiscard]] std::string render() const;
};
using FieldErrors = std::vector<FieldError>;
/// 422 Invalid: `Kind.group "name" is invalid: …` with one error in line, several as `[a, b]`, causes filled.
ApiStatus invalid_object(std::string_view group, std::string_view kind, std::string_view name, const FieldErrors& errors);

}  // namespace berth::model
