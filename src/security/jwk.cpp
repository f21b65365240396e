#include "security/jwk.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "base/base64.h"
#include "security/jwt.h"
#include "security/openssl.h"

namespace berth::security {
namespace {

using BigNumber = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;
using ParameterBuild = std::unique_ptr<OSSL_PARAM_BLD, FreeWith<OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, FreeWith<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, FreeWith<EVP_PKEY_CTX_free>>;
using VerifyContext = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;
using EcSignature = std::unique_ptr<ECDSA_SIG, FreeWith<ECDSA_SIG_free>>;

const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

Key key_from(const char* type, OSSL_PARAM_BLD* build) {
  const Parameters parameters(OSSL_PARAM_BLD_to_param(build));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    openssl_error();
    return nullptr;
  }
  return Key(key);
}

Key rsa_key(const json::Value& jwk) {
  const auto n = base64url_decode(json::get_string(jwk, {"n"})), e = base64url_decode(json::get_string(jwk, {"e"}));
  constexpr std::size_t kLeastBytes = 256, kMostBytes = 2048;
  if (!n || !e || n->size() < kLeastBytes || n->size() > kMostBytes || e->size() > 8) return nullptr;
  const BigNumber modulus(BN_bin2bn(raw(*n), static_cast<int>(n->size()), nullptr));
  const BigNumber exponent(BN_bin2bn(raw(*e), static_cast<int>(e->size()), nullptr));
  const ParameterBuild build(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
  OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  return key_from("RSA", build.get());
}

Key ec_key(const json::Value& jwk) {
  const std::string curve(json::get_string(jwk, {"crv"}));
  const std::size_t size = curve == "P-256" ? 32 : curve == "P-384" ? 48 : curve == "P-521" ? 66 : 0;
  const auto x = base64url_decode(json::get_string(jwk, {"x"})), y = base64url_decode(json::get_string(jwk, {"y"}));
  if (size == 0 || !x || !y || x->size() != size || y->size() != size) return nullptr;
  const std::string point = '\x04' + *x + *y;
  const ParameterBuild build(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.c_str(), 0);
  OSSL_PARAM_BLD_push_octet_string(build.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size());
  return key_from("EC", build.get());
}

/// The two numbers of an ECDSA signature in DER, as OpenSSL wants them.
std::optional<std::string> ec_der(std::string_view signature) {
  if (signature.empty() || signature.size() % 2 != 0 || signature.size() > 132) return std::nullopt;
  const auto half = static_cast<int>(signature.size() / 2);
  const EcSignature both(ECDSA_SIG_new());
  if (ECDSA_SIG_set0(both.get(), BN_bin2bn(raw(signature), half, nullptr), BN_bin2bn(raw(signature) + half, half, nullptr)) != 1)
    return std::nullopt;
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string out(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return out;
}

/// Whether the algorithm is one of the key's kind: nobody verifies with a public key as if it were a shared secret.
bool fits(std::string_view algorithm, EVP_PKEY* key) {
  const bool is_rsa = algorithm.starts_with("RS") || algorithm.starts_with("PS");
  if (is_rsa) return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
  const int bits = algorithm == "ES256" ? 256 : algorithm == "ES384" ? 384 : algorithm == "ES512" ? 521 : 0;
  return bits != 0 && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC && EVP_PKEY_get_bits(key) == bits;
}

bool is_signed(EVP_PKEY* key, std::string_view algorithm, std::string_view text, std::string_view signature) {
  const EVP_MD* digest = algorithm.ends_with("256") ? EVP_sha256() : algorithm.ends_with("384") ? EVP_sha384() : EVP_sha512();
  std::optional<std::string> der;
  if (algorithm.starts_with("ES")) {
    der = ec_der(signature);
    if (!der) return false;
    signature = *der;
  }
  const VerifyContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* details = nullptr;
  bool ok = EVP_DigestVerifyInit(context.get(), &details, digest, nullptr, key) == 1;
  if (ok && algorithm.starts_with("PS"))
    ok = EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PSS_PADDING) == 1 &&
         EVP_PKEY_CTX_set_rsa_pss_saltlen(details, RSA_PSS_SALTLEN_DIGEST) == 1;
  ok = ok && EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(text), text.size()) == 1;
  if (!ok) openssl_error();
  return ok;
}

}  // namespace

struct KeySet::Entry {
  std::string id;
  Key key;
};

std::optional<TokenHeader> token_header(std::string_view token) {
  const auto dot = token.find('.');
  if (dot == std::string_view::npos || dot > 4096) return std::nullopt;
  const auto text = base64url_decode(token.substr(0, dot));
  const auto header = text ? json::parse(*text, {.max_depth = 16}) : Result<json::Value>(invalid(""));
  if (!header || !header->is_object()) return std::nullopt;
  return TokenHeader{std::string(json::get_string(*header, {"alg"})), std::string(json::get_string(*header, {"kid"})),
                     json::find(*header, "crit") != nullptr || json::find(*header, "b64") != nullptr};
}

Result<KeySet> KeySet::parse(std::string_view jwks) {
  const auto document = json::parse(jwks);
  if (!document || json::find(*document, "keys") == nullptr) return invalid("is no JSON Web Key Set");
  auto keys = std::make_shared<std::vector<Entry>>();
  for (const json::Value& jwk : json::get_array(*document, {"keys"})) {
    if (const auto use = json::get_string(jwk, {"use"}); !use.empty() && use != "sig") continue;
    const auto type = json::get_string(jwk, {"kty"});
    Key key = type == "RSA" ? rsa_key(jwk) : type == "EC" ? ec_key(jwk) : nullptr;
    if (key != nullptr) keys->push_back({std::string(json::get_string(jwk, {"kid"})), std::move(key)});
  }
  KeySet out;
  out.keys_ = std::move(keys);
  return out;
}

std::size_t KeySet::size() const { return keys_->size(); }

bool KeySet::has(std::string_view key_id) const {
  return std::ranges::any_of(*keys_, [&](const Entry& one) { return one.id == key_id; });
}

std::optional<json::Value> KeySet::verify(std::string_view token, const std::vector<std::string>& algorithms) const {
  const auto header = token_header(token);
  if (!header || header->has_extensions || std::ranges::find(algorithms, header->algorithm) == algorithms.end()) return std::nullopt;
  const auto last = token.rfind('.');
  if (last == token.find('.')) return std::nullopt;
  const auto signature = base64url_decode(token.substr(last + 1));
  if (!signature) return std::nullopt;
  for (const Entry& one : *keys_)
    if ((header->key_id.empty() || one.id.empty() || one.id == header->key_id) && fits(header->algorithm, one.key.get()) &&
        is_signed(one.key.get(), header->algorithm, token.substr(0, last), *signature))
      return unverified_claims(token);
  return std::nullopt;
}

}  // namespace berth::security
