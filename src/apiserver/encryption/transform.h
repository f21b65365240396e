// How a value is stored: as it is, or encrypted, with Kubernetes' own prefixes and layouts, so that each reads what the other wrote
// (apiserver/pkg/storage/value/encrypt).
//
//   aescbc      k8s:enc:aescbc:v1:NAME:     16 bytes of IV, then AES-CBC with PKCS#7 padding
//   aesgcm      k8s:enc:aesgcm:v1:NAME:     12 bytes of nonce, then AES-GCM and its tag; the record's key is authenticated
//   secretbox   k8s:enc:secretbox:v1:NAME:  24 bytes of nonce, then XSalsa20-Poly1305 (NaCl's secretbox)
//   kms         k8s:enc:kms:v2:NAME:        kms.h
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace berth::apiserver::encryption {

inline constexpr std::string_view kPrefix = "k8s:enc:";

struct Key {
  std::string name, secret;
};

struct Plain {
  std::string value;
  bool is_stale = false;  ///< Not what this provider would write now: another key, or none.
};

/// Thread-safe.
class Provider {
 public:
  virtual ~Provider() = default;
  /// Whether a stored value is of this kind, by its prefix.
  [[nodiscard]] virtual bool wrote(std::string_view stored) const = 0;
  /// `context`: what the value belongs to. The error names the key that is missing or wrong, never its content.
  [[nodiscard]] virtual Result<Plain> decrypt(std::string_view stored, std::string_view context) const = 0;
  [[nodiscard]] virtual Result<std::string> encrypt(std::string_view value, std::string_view context) const = 0;
};

std::shared_ptr<const Provider> make_identity();
std::shared_ptr<const Provider> make_aescbc(std::vector<Key> keys);
std::shared_ptr<const Provider> make_aesgcm(std::vector<Key> keys);
std::shared_ptr<const Provider> make_secretbox(std::vector<Key> keys);

/// AES-GCM: 12 bytes of nonce, then the text and its tag; `context` is authenticated.
Result<std::string> aesgcm_seal(std::string_view key, std::string_view value, std::string_view context);
Result<std::string> aesgcm_open(std::string_view key, std::string_view sealed, std::string_view context);

/// NaCl's secretbox with a key of 32 bytes and a nonce of 24: 16 bytes of tag, then the text.
std::string secretbox_seal(std::string_view key, std::string_view nonce, std::string_view text);
Result<std::string> secretbox_open(std::string_view key, std::string_view nonce, std::string_view sealed);

}  // namespace berth::apiserver::encryption
