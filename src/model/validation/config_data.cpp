// ConfigMaps, Secrets and ControllerRevisions (ValidateConfigMap, ValidateSecret, apps' validateControllerRevision).
#include <fmt/format.h>

#include "base/base64.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;

constexpr std::size_t kMaxBytes = 1024 * 1024;

std::size_t decoded_size(std::string_view text) {
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  return text.size() / 4 * 3 - std::min(padding, text.size());
}

/// Why the bytes are no JSON object, as Go's decoder says it; empty when they are one.
std::string object_problem(std::string_view bytes) {
  const auto first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "unexpected end of JSON input";
  if (const auto parsed = json::parse(bytes)) {
    if (parsed->is_object() || parsed->is_null()) return {};
    const char* word = parsed->is_array() ? "array" : parsed->is_string() ? "string" : parsed->is_bool() ? "bool" : "number";
    return fmt::format("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", word);
  }
  if (std::string_view("{[\"-0123456789tfn").find(bytes[first]) == std::string_view::npos)
    return fmt::format("invalid character '{}' looking for beginning of value", bytes[first]);
  return "unexpected end of JSON input";
}

void key_of(const Path& at, std::string_view name, Errors& errors) {
  if (const std::string why = check_config_map_key(name); !why.empty()) errors.invalid(Path::map_key(at, name), name, why);
}

/// What each type of secret has to hold.
void typed_secret(const Value& doc, Errors& errors) {
  const std::string_view type = get_string(doc, {"type"});
  const Path data("data");
  const auto has = [&](std::string_view key) { return json::find(doc, {"data", key}) != nullptr; };
  const auto need = [&](std::string_view key) {
    if (!has(key)) errors.required(Path::map_key(data, key));
  };
  const auto need_json = [&](std::string_view key) {
    need(key);
    if (!has(key)) return;
    const auto bytes = base64_decode(get_string(doc, {"data", key}));
    if (const std::string why = object_problem(bytes ? *bytes : ""); !why.empty())
      errors.invalid(Path::map_key(data, key), "<secret contents redacted>", why);
  };
  if (type == "kubernetes.io/tls") need("tls.crt"), need("tls.key");
  if (type == "kubernetes.io/dockerconfigjson") need_json(".dockerconfigjson");
  if (type == "kubernetes.io/dockercfg") need_json(".dockercfg");
  if (type == "kubernetes.io/ssh-auth" && get_string(doc, {"data", "ssh-privatekey"}).empty())
    errors.required(Path::map_key(data, "ssh-privatekey"));
  if (type == "kubernetes.io/basic-auth" && !has("username") && !has("password")) need("username"), need("password");
  if (type == "kubernetes.io/service-account-token" &&
      get_string(doc, {"metadata", "annotations", "kubernetes.io/service-account.name"}).empty()) {
    const Path meta("metadata");
    const Path annotations = meta / "annotations";
    errors.required(Path::map_key(annotations, "kubernetes.io/service-account.name"));
  }
}

bool differs(const Value& old, const Value& doc, std::string_view key) {
  const Value *before = json::find(old, key), *after = json::find(doc, key);
  const auto is_empty = [](const Value* map) { return map == nullptr || (map->is_object() && map->get_object().empty()); };
  if (is_empty(before) || is_empty(after)) return is_empty(before) != is_empty(after);
  return !json::equal(*before, *after);
}

}  // namespace

void config_map(const Value& doc, Errors& errors) {
  const json::Object &data = get_object(doc, {"data"}), &binary = get_object(doc, {"binaryData"});
  const Path data_at("data"), binary_at("binaryData");
  std::size_t bytes = 0;
  for (const auto& [key, value] : data) {
    const std::string_view name(key.data(), key.size());
    key_of(data_at, name, errors);
    if (binary.contains(name)) errors.invalid(Path::map_key(data_at, name), name, "duplicate of key present in binaryData");
    bytes += value.is_string() ? value.get_string().size() : 0;
  }
  for (const auto& [key, value] : binary) {
    const std::string_view name(key.data(), key.size());
    key_of(binary_at, name, errors);
    bytes += value.is_string() ? decoded_size(json::as_view(value)) : 0;
  }
  if (bytes > kMaxBytes) errors.too_long(Path(""), kMaxBytes);
}

void secret(const Value& doc, Errors& errors) {
  const Path at("data");
  std::size_t bytes = 0;
  for (const auto& [key, value] : get_object(doc, {"data"})) {
    key_of(at, {key.data(), key.size()}, errors);
    bytes += value.is_string() ? decoded_size(json::as_view(value)) : 0;
  }
  if (bytes > kMaxBytes) errors.too_long(at, kMaxBytes);
  typed_secret(doc, errors);
}

void config_data_update(const Value& old, const Value& doc, bool is_secret, Errors& errors) {
  if (is_secret) immutable(old, doc, {"type"}, Path("type"), errors);
  if (!get_bool(old, {"immutable"})) return;
  constexpr std::string_view kFixed = "field is immutable when `immutable` is set";
  if (!get_bool(doc, {"immutable"})) errors.forbidden(Path("immutable"), kFixed);
  for (const char* key : {"data", "binaryData"})
    if (differs(old, doc, key)) errors.forbidden(Path(key), kFixed);
}

void controller_revision(const Value* old, const Value& doc, Errors& errors) {
  if (const std::int64_t revision = get_int(doc, {"revision"}); revision < 0) errors.invalid(Path("revision"), Value(revision), kNegative);
  const Value* data = json::find(doc, "data");
  if (old != nullptr)
    immutable(*old, doc, {"data"}, Path("data"), errors);
  else if (data == nullptr || data->is_null())
    errors.required(Path("data"), "data is mandatory");
  else if (!data->is_object())
    errors.required(Path("data"), "data must be a valid JSON object");
}

}  // namespace berth::model::validation
