#include "node/agent/object_data.h"

#include "base/base64.h"

namespace berth::node::agent {

std::string decode_base64(std::string_view text) { return base64_decode(text).value_or(""); }
std::string encode_base64(std::string_view bytes) { return base64_encode(bytes); }

Result<std::map<std::string, std::string>> object_data(const std::string& ns, const std::string& name, ObjectKind kind,
                                                       const ObjectSource& objects) {
  const bool secret = kind == ObjectKind::kSecret;
  const auto object = (secret ? objects.secret : objects.config_map)(ns, name);
  if (!object) {
    if (object.error().code == ErrorCode::kNotFound)
      return fail(ErrorCode::kNotFound, fmt::format("{} \"{}\" not found", secret ? "secret" : "configmap", name));
    return std::unexpected(object.error());
  }
  std::map<std::string, std::string> data;
  for (const auto& [key, value] : json::get_object(*object, {"data"}))
    if (value.is_string()) data[std::string(key)] = secret ? decode_base64(json::as_view(value)) : std::string(json::as_view(value));
  for (const auto& [key, value] : json::get_object(*object, {"binaryData"}))
    if (value.is_string()) data[std::string(key)] = decode_base64(json::as_view(value));
  return data;
}

}  // namespace berth::node::agent
