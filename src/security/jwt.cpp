#include "security/jwt.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/sha.h>

#include "base/base64.h"
#include "security/openssl.h"

namespace berth::security {
namespace {

using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, FreeWith<ECDSA_SIG_free>>;
using Number = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;

constexpr int kCoordinateBytes = 32;  // P-256

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

/// OpenSSL speaks DER, tokens carry the two numbers side by side.
std::optional<std::string> raw_from_der(const std::string& der) {
  const unsigned char* at = bytes_of(der);
  Signature signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  if (signature == nullptr) return std::nullopt;
  std::string raw(2 * kCoordinateBytes, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  if (BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out, kCoordinateBytes) < 0 ||
      BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out + kCoordinateBytes, kCoordinateBytes) < 0) {
    return std::nullopt;
  }
  return raw;
}

std::optional<std::string> der_from_raw(std::string_view raw) {
  if (raw.size() != 2 * kCoordinateBytes) return std::nullopt;
  Signature signature(ECDSA_SIG_new());
  Number r(BN_bin2bn(bytes_of(raw), kCoordinateBytes, nullptr)), s(BN_bin2bn(bytes_of(raw) + kCoordinateBytes, kCoordinateBytes, nullptr));
  if (signature == nullptr || r == nullptr || s == nullptr || ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return std::nullopt;
  (void)r.release();
  (void)s.release();
  unsigned char* der = nullptr;
  int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string out(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return out;
}

std::string number_parameter(EVP_PKEY* key, const char* name, int pad_to) {
  BIGNUM* raw = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &raw) != 1) return {};
  Number number(raw);
  int size = std::max(pad_to, BN_num_bytes(number.get()));
  std::string bytes(static_cast<std::size_t>(size), '\0');
  BN_bn2binpad(number.get(), reinterpret_cast<unsigned char*>(bytes.data()), size);
  return base64url_encode(bytes);
}

/// A token's three parts, still encoded.
struct Parts {
  std::string_view header, claims, signature, signed_text;
};

std::optional<Parts> split(std::string_view token) {
  auto first = token.find('.');
  auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) return std::nullopt;
  return Parts{token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1), token.substr(0, second)};
}

std::optional<json::Value> decode_object(std::string_view part) {
  auto text = base64url_decode(part);
  if (!text) return std::nullopt;
  auto value = json::parse(*text, {.max_depth = 32});
  if (!value || !value->is_object()) return std::nullopt;
  return std::move(*value);
}

}  // namespace

struct JwtKey::Impl {
  Key key;
  bool is_ec = false;
};

JwtKey::JwtKey(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JwtKey::JwtKey(JwtKey&&) noexcept = default;
JwtKey::~JwtKey() = default;

Result<JwtKey> JwtKey::from_pem(const std::string& pem) {
  const bool is_public = pem.find("PUBLIC KEY-----") != std::string::npos;
  auto key = is_public ? read_public_key(pem, "the service account key") : read_private_key(pem, "the service account signing key");
  if (!key) return std::unexpected(key.error());
  auto impl = std::make_unique<Impl>();
  impl->is_ec = EVP_PKEY_get_base_id(key->get()) == EVP_PKEY_EC;
  if (impl->is_ec ? EVP_PKEY_get_bits(key->get()) != 256 : EVP_PKEY_get_base_id(key->get()) != EVP_PKEY_RSA) {
    return fail(ErrorCode::kInvalid, "the service account signing key must be EC P-256 or RSA");
  }
  impl->key = std::move(*key);
  unsigned char* der = nullptr;
  int size = i2d_PUBKEY(impl->key.get(), &der);
  if (size <= 0) return fail(ErrorCode::kInternal, openssl_error());
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<std::size_t>(size), digest);
  OPENSSL_free(der);
  JwtKey out(std::move(impl));
  out.algorithm_ = out.impl_->is_ec ? "ES256" : "RS256";
  out.key_id_ = base64url_encode({reinterpret_cast<char*>(digest), sizeof digest});
  out.is_private_ = !is_public;
  return out;
}

Result<std::vector<JwtKey>> JwtKey::all_from_pem(const std::string& pem) {
  std::vector<JwtKey> out;
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ";
  for (std::size_t start = pem.find(kBegin); start != std::string::npos;) {
    const std::size_t end = pem.find(kEnd, start);
    const std::size_t next = end == std::string::npos ? end : pem.find(kBegin, end);
    auto key = from_pem(pem.substr(start, next == std::string::npos ? next : next - start));
    if (!key) return std::unexpected(key.error());
    out.push_back(std::move(*key));
    start = next;
  }
  if (out.empty()) return invalid("the service account keys: there is no key in PEM form");
  return out;
}

Result<std::string> JwtKey::sign(const json::Object& claims) const {
  if (!is_private_) return fail(ErrorCode::kInternal, "a public key cannot sign tokens");
  std::string token = base64url_encode(json::serialize(json::Object{{"alg", algorithm_}, {"kid", key_id_}}));
  token += '.';
  token += base64url_encode(json::serialize(claims));
  DigestContext context(EVP_MD_CTX_new());
  std::size_t size = 0;
  std::string signature;
  bool ok = EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, impl_->key.get()) == 1 &&
            EVP_DigestSign(context.get(), nullptr, &size, bytes_of(token), token.size()) == 1;
  if (ok) {
    signature.resize(size);
    ok = EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes_of(token), token.size()) == 1;
    signature.resize(size);
  }
  if (!ok) return fail(ErrorCode::kInternal, "cannot sign a token: " + openssl_error());
  if (impl_->is_ec) {
    auto raw = raw_from_der(signature);
    if (!raw) return fail(ErrorCode::kInternal, "cannot sign a token: " + openssl_error());
    signature = std::move(*raw);
  }
  return token + '.' + base64url_encode(signature);
}

std::optional<json::Value> JwtKey::verify(std::string_view token) const {
  auto parts = split(token);
  if (!parts) return std::nullopt;
  auto header = decode_object(parts->header);
  if (!header || json::get_string(*header, {"alg"}) != algorithm_) return std::nullopt;
  // Extensions that whoever reads it must know: none is known here.
  if (json::find(*header, "crit") != nullptr) return std::nullopt;
  if (const auto* id = json::find(*header, "kid"); id != nullptr && (!id->is_string() || json::as_view(*id) != key_id_))
    return std::nullopt;
  auto signature = base64url_decode(parts->signature);
  if (signature && impl_->is_ec) signature = der_from_raw(*signature);
  if (!signature) return std::nullopt;
  DigestContext context(EVP_MD_CTX_new());
  bool good = EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, impl_->key.get()) == 1 &&
              EVP_DigestVerify(context.get(), bytes_of(*signature), signature->size(), bytes_of(parts->signed_text),
                               parts->signed_text.size()) == 1;
  if (!good) {
    openssl_error();
    return std::nullopt;
  }
  return decode_object(parts->claims);
}

json::Object JwtKey::public_keys() const {
  json::Object key{{"use", "sig"}, {"kid", key_id_}, {"alg", algorithm_}};
  if (impl_->is_ec) {
    key["kty"] = "EC";
    key["crv"] = "P-256";
    key["x"] = number_parameter(impl_->key.get(), OSSL_PKEY_PARAM_EC_PUB_X, kCoordinateBytes);
    key["y"] = number_parameter(impl_->key.get(), OSSL_PKEY_PARAM_EC_PUB_Y, kCoordinateBytes);
  } else {
    key["kty"] = "RSA";
    key["n"] = number_parameter(impl_->key.get(), OSSL_PKEY_PARAM_RSA_N, 1);
    key["e"] = number_parameter(impl_->key.get(), OSSL_PKEY_PARAM_RSA_E, 1);
  }
  return {{"keys", json::Array{std::move(key)}}};
}

std::optional<json::Value> unverified_claims(std::string_view token) {
  auto parts = split(token);
  return parts ? decode_object(parts->claims) : std::nullopt;
}

}  // namespace berth::security
