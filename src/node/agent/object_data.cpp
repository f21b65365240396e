#include "node/agent/object_data.h"

#include <openssl/evp.h>

namespace berth::node::agent {

std::string decode_base64(std::string_view text) {
  std::string out(text.size() + 3, '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(text.data()),
                                static_cast<int>(text.size()));
  if (n < 0) return {};
  // The padding counts as zero bytes there.
  out.resize(static_cast<std::size_t>(n) - std::min<std::size_t>(static_cast<std::size_t>(n), text.ends_with("==")  ? 2
                                                                                              : text.ends_with('=') ? 1
                                                                                                                    : 0));
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(std::max(n, 0)));
  return out;
}

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
