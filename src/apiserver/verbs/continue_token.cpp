#include "apiserver/verbs/continue_token.h"

#include "base/json.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::string_view bytes) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const unsigned char byte : bytes) {
    bits = bits << 8 | byte;
    for (count += 8; count >= 6; count -= 6) out += kAlphabet[bits >> (count - 6) & 63];
  }
  if (count > 0) out += kAlphabet[bits << (6 - count) & 63];
  return out;
}

std::optional<std::string> decode(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 255);
    }
  }
  return out;
}

}  // namespace

std::string ContinueToken::render() const {
  return encode(json::serialize(json::Object{{"v", "meta.k8s.io/v1"}, {"rv", revision}, {"start", after}}));
}

Result<ContinueToken> ContinueToken::parse(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  const auto decoded = decode(text);
  const auto document = decoded ? json::parse(*decoded) : Result<json::Value>(invalid(""));
  if (!document || !document->is_object()) return invalid(fmt::format("continue token \"{}\" cannot be read", text.substr(0, 64)));
  if (json::get_string(*document, {"v"}) != "meta.k8s.io/v1") return invalid("server does not recognize this encoded version");
  ContinueToken token;
  token.revision = json::get_int(*document, {"rv"});
  token.after = json::get_string(*document, {"start"});
  if (token.revision == 0) return invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (token.after.empty()) return invalid("encoded start key empty (version meta.k8s.io/v1)");
  return token;
}

}  // namespace berth::apiserver
