// KMS v2: values are encrypted with keys of this server's making, whose seed only a key management service can decrypt
// (kms/apis/v2/api.proto; apiserver/pkg/storage/value/encrypt/envelope/kmsv2).
//
//   k8s:enc:kms:v2:NAME:  EncryptedObject { data: 32 bytes of info, 12 of nonce, AES-256-GCM; key id; encrypted seed; annotations; type }
//   key of a value = HKDF-SHA256 expand(seed, info)
//
//   no seed ──Status, Encrypt──> in use ──Status every minute: same key id──> in use
//      ^                           │ └──another key id: Encrypt a new seed──> in use, what is stored is stale
//      └── error: nothing to write │ no good Status for three minutes: writes are refused, what is known is still read
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "apiserver/encryption/transform.h"
#include "base/clock.h"

namespace berth::apiserver::encryption {

struct KmsOptions {
  std::string name;      ///< Of the provider, in the prefix.
  std::string endpoint;  ///< unix:///path
  Duration timeout = std::chrono::seconds(3);
  Duration poll = std::chrono::seconds(60), good_for = std::chrono::minutes(3);
};

/// A provider whose keys come from elsewhere. Thread-safe.
class KmsProvider : public Provider {
 public:
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// The first seed, if there is none: asks the service and waits for it. Then keeps looking, on a thread of its own.
  virtual Result<void> start() = 0;
  /// Why nothing may be written now; empty: it may. Never waits.
  [[nodiscard]] virtual std::string trouble() const = 0;
  /// Called, from that thread, when the service encrypts with another key from now on.
  virtual void on_rotation(std::function<void()> told) = 0;
};
std::shared_ptr<KmsProvider> make_kms(KmsOptions options);

/// What is stored, without its prefix (EncryptedObject).
struct EncryptedObject {
  std::string data, key_id, encrypted_seed;
  std::map<std::string, std::string> annotations;
  std::int64_t type = 1;  ///< 0: encrypted_seed is the key itself; 1: the seed of keys.
};
std::string encode_encrypted_object(const EncryptedObject& object);
Result<EncryptedObject> decode_encrypted_object(std::string_view bytes);

// The messages of v2.KeyManagementService.
struct KmsStatus {
  std::string version, healthz, key_id;
};
struct KmsEncrypted {
  std::string ciphertext, key_id;
  std::map<std::string, std::string> annotations;
};
std::string encode_kms_status(const KmsStatus& status);
Result<KmsStatus> decode_kms_status(std::string_view bytes);
std::string encode_kms_encrypted(const KmsEncrypted& encrypted);
Result<KmsEncrypted> decode_kms_encrypted(std::string_view bytes);
/// Of messages whose first field is all: EncryptRequest.plaintext, DecryptResponse.plaintext.
std::string encode_kms_bytes(std::string_view first, std::string_view uid);
Result<std::string> decode_kms_bytes(std::string_view bytes);
struct KmsDecrypt {
  std::string ciphertext, uid, key_id;
  std::map<std::string, std::string> annotations;
};
std::string encode_kms_decrypt(const KmsDecrypt& request);
Result<KmsDecrypt> decode_kms_decrypt(std::string_view bytes);

}  // namespace berth::apiserver::encryption
