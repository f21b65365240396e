#include "security/bootstrap_token.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>

#include "base/base64.h"
#include "base/split.h"

namespace berth::security {
namespace {

constexpr std::string_view kTokenAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr std::size_t kIdLength = 6, kSecretLength = 16, kLongestGroupTail = 256;

bool is_token_text(std::string_view text, std::size_t length) {
  return text.size() == length && text.find_first_not_of(kTokenAlphabet) == std::string_view::npos;
}

std::string data_of(const json::Value& secret, std::string_view key) {
  return base64_decode(json::get_string(secret, {"data", key})).value_or("");
}

std::string random_text(std::size_t length) {
  std::string out;
  while (out.size() < length) {
    unsigned char byte = 0;
    // Bytes beyond the last whole multiple would make some characters likelier.
    if (RAND_bytes(&byte, 1) == 1 && byte < 252) out += kTokenAlphabet[byte % kTokenAlphabet.size()];
  }
  return out;
}

}  // namespace

std::optional<TokenParts> split_bootstrap_token(std::string_view token) {
  const auto dot = token.find('.');
  if (dot == std::string_view::npos || !is_token_text(token.substr(0, dot), kIdLength) ||
      !is_token_text(token.substr(dot + 1), kSecretLength))
    return std::nullopt;
  return TokenParts{std::string(token.substr(0, dot)), std::string(token.substr(dot + 1))};
}

bool is_bootstrap_group(std::string_view group) {
  constexpr std::string_view kPrefix = "system:bootstrappers:";
  if (!group.starts_with(kPrefix)) return false;
  group.remove_prefix(kPrefix.size());
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !group.empty() && group.size() <= kLongestGroupTail && is_plain(group.back()) &&
         std::ranges::all_of(group, [&](char c) { return is_plain(c) || c == ':' || c == '-'; });
}

std::optional<BootstrapToken> read_bootstrap_secret(const json::Value& secret) {
  if (json::get_string(secret, {"type"}) != kBootstrapTokenType) return std::nullopt;
  BootstrapToken out;
  out.id = data_of(secret, "token-id");
  out.secret = data_of(secret, "token-secret");
  out.description = data_of(secret, "description");
  out.authenticates = data_of(secret, "usage-bootstrap-authentication") == "true";
  out.signs = data_of(secret, "usage-bootstrap-signing") == "true";
  if (const std::string text = data_of(secret, "expiration"); !text.empty()) {
    out.expiration = parse_rfc3339(text);
    out.has_bad_expiration = !out.expiration;
  }
  const std::string groups = data_of(secret, "auth-extra-groups");
  for (const std::string& group : groups.empty() ? std::vector<std::string>() : berth::split(groups, ',').list<std::string>()) {
    if (!is_bootstrap_group(group)) out.trouble = "auth-extra-groups names a group that is not below system:bootstrappers:";
    out.extra_groups.push_back(group);
  }
  if (!is_token_text(out.id, kIdLength) || !is_token_text(out.secret, kSecretLength))
    out.trouble = "token-id or token-secret is not of a token's form";
  else if (json::get_string(secret, {"metadata", "name"}) != std::string(kBootstrapTokenPrefix) + out.id)
    out.trouble = "the Secret is not named bootstrap-token-ID";
  return out;
}

json::Value make_bootstrap_secret(const BootstrapToken& token) {
  json::Object data{{"token-id", base64_encode(token.id)}, {"token-secret", base64_encode(token.secret)}};
  if (token.authenticates) data["usage-bootstrap-authentication"] = base64_encode("true");
  if (token.signs) data["usage-bootstrap-signing"] = base64_encode("true");
  if (!token.description.empty()) data["description"] = base64_encode(token.description);
  if (token.expiration) data["expiration"] = base64_encode(format_rfc3339(*token.expiration));
  if (!token.extra_groups.empty()) data["auth-extra-groups"] = base64_encode(fmt::format("{}", fmt::join(token.extra_groups, ",")));
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", json::Object{{"name", std::string(kBootstrapTokenPrefix) + token.id}, {"namespace", kBootstrapTokenNamespace}}},
      {"type", kBootstrapTokenType},
      {"data", std::move(data)}};
}

TokenParts random_bootstrap_token() { return {random_text(kIdLength), random_text(kSecretLength)}; }

std::string detached_signature(std::string_view content, const TokenParts& token) {
  const std::string header = base64url_encode(json::serialize(json::Object{{"alg", "HS256"}, {"kid", token.id}}));
  const std::string signed_text = header + "." + base64url_encode(content);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), token.secret.data(), static_cast<int>(token.secret.size()), reinterpret_cast<const unsigned char*>(signed_text.data()),
       signed_text.size(), digest, &size);
  return header + ".." + base64url_encode({reinterpret_cast<char*>(digest), size});
}

}  // namespace berth::security
