// JSON Web Tokens in compact form: signing, verifying, and the key's public form (RFC 7515, 7517, 7518).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::security {

/// One private key and the algorithm that goes with it: ES256 for EC P-256, RS256 for RSA. Thread-safe after construction.
class JwtKey {
 public:
  /// A private key, or a public one, which verifies alone.
  static Result<JwtKey> from_pem(const std::string& pem);
  /// Every key of a text, in its order; at least one.
  static Result<std::vector<JwtKey>> all_from_pem(const std::string& pem);
  JwtKey(JwtKey&&) noexcept;
  ~JwtKey();

  [[nodiscard]] Result<std::string> sign(const json::Object& claims) const;
  /// The claims when the signature is this key's and the header says so; nullopt otherwise. Nothing else is checked.
  [[nodiscard]] std::optional<json::Value> verify(std::string_view token) const;
  /// The JSON Web Key Set with the public key.
  [[nodiscard]] json::Object public_keys() const;
  [[nodiscard]] const std::string& algorithm() const { return algorithm_; }
  [[nodiscard]] bool can_sign() const { return is_private_; }

 private:
  struct Impl;
  explicit JwtKey(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  std::string algorithm_, key_id_;
  bool is_private_ = true;
};

/// The claims without any check; nullopt when the token is malformed.
std::optional<json::Value> unverified_claims(std::string_view token);

}  // namespace berth::security
