#include "apiserver/reads/continue_token.h"

#include "base/json.h"
#include "model/go_words.h"

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

/// `bad`: the first byte that cannot be read, where there is one.
std::optional<std::string> decode(std::string_view text, std::size_t& bad) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  // The last of four makes no byte alone.
  const bool is_cut = text.size() % 4 == 1;
  for (bad = 0; bad < text.size(); ++bad) {
    if (is_cut && bad + 1 == text.size()) return std::nullopt;
    const auto value = kAlphabet.find(text[bad]);
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
  std::size_t bad = 0;
  const auto decoded = decode(text, bad);
  if (!decoded) return invalid(fmt::format("illegal base64 data at input byte {}", bad));
  const auto document = json::parse(*decoded);
  if (!document) {
    const auto why = model::go_json_error(*decoded);
    return invalid(why.empty() ? document.error().message : why);
  }
  if (!document->is_object())
    return invalid(fmt::format("json: cannot unmarshal {} into Go value of type storage.continueToken", model::go_json_kind(*document)));
  if (const auto version = json::get_string(*document, {"v"}); version != "meta.k8s.io/v1")
    return invalid(fmt::format("server does not recognize this encoded version {}", version));
  if (const auto* revision = json::find(*document, "rv"); revision != nullptr && !revision->is_int64())
    return invalid(
        fmt::format("json: cannot unmarshal {} into Go struct field continueToken.rv of type int64", model::go_json_kind(*revision)));
  ContinueToken token;
  token.revision = json::get_int(*document, {"rv"});
  token.after = json::get_string(*document, {"start"});
  if (token.revision == 0) return invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (token.after.empty()) return invalid("encoded start key empty (version meta.k8s.io/v1)");
  // No token of this server's leads out of its list.
  for (std::string_view rest = token.after;;) {
    const auto slash = rest.find('/');
    if (const auto part = rest.substr(0, slash); part == ".." || part == ".") return invalid(token.after);
    if (slash == std::string_view::npos) return token;
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace berth::apiserver
