#include "apiserver/encryption/transform.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

namespace berth::apiserver::encryption {
namespace {

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype([](EVP_CIPHER_CTX* context) { EVP_CIPHER_CTX_free(context); })>;

const unsigned char* as_bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* as_bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::string random_bytes(std::size_t count) {
  std::string out(count, '\0');
  if (RAND_bytes(as_bytes(out), static_cast<int>(count)) != 1) std::abort();  // Without randomness nothing may be written.
  return out;
}

std::unexpected<Error> unreadable(std::string_view provider, std::string_view key) {
  ERR_clear_error();
  return fail(ErrorCode::kCorrupt,
              fmt::format("it does not decrypt with the {} key \"{}\": the key was exchanged for another under the same "
                          "name, or the data is damaged",
                          provider, key));
}

/// What the three with keys share: the prefix, and which key is meant.
class KeyedProvider : public Provider {
 public:
  KeyedProvider(std::string name, std::vector<Key> keys)
      : name_(std::move(name)), prefix_(fmt::format("{}{}:v1:", kPrefix, name_)), keys_(std::move(keys)) {}
  [[nodiscard]] bool wrote(std::string_view stored) const override { return stored.starts_with(prefix_); }
  [[nodiscard]] Result<Plain> decrypt(std::string_view stored, std::string_view context) const override {
    stored.remove_prefix(prefix_.size());
    const auto colon = stored.find(':');
    const std::string_view name = stored.substr(0, colon);
    if (colon == std::string_view::npos) return fail(ErrorCode::kCorrupt, "its prefix names no key");
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i].name != name) continue;
      auto value = open(keys_[i], stored.substr(colon + 1), context);
      if (!value) return std::unexpected(value.error());
      return Plain{std::move(*value), i != 0};
    }
    return fail(ErrorCode::kCorrupt, fmt::format("it is encrypted with the {} key \"{}\", which is not there", name_, name));
  }
  [[nodiscard]] Result<std::string> encrypt(std::string_view value, std::string_view context) const override {
    auto sealed = seal(keys_.front(), value, context);
    if (!sealed) return sealed;
    return prefix_ + keys_.front().name + ":" + *sealed;
  }

 protected:
  virtual Result<std::string> open(const Key& key, std::string_view sealed, std::string_view context) const = 0;
  virtual Result<std::string> seal(const Key& key, std::string_view value, std::string_view context) const = 0;
  const std::string name_, prefix_;
  const std::vector<Key> keys_;
};

class AesCbc final : public KeyedProvider {
 public:
  explicit AesCbc(std::vector<Key> keys) : KeyedProvider("aescbc", std::move(keys)) {}

 protected:
  static const EVP_CIPHER* cipher_of(const Key& key) {
    return key.secret.size() == 16 ? EVP_aes_128_cbc() : key.secret.size() == 24 ? EVP_aes_192_cbc() : EVP_aes_256_cbc();
  }
  Result<std::string> open(const Key& key, std::string_view sealed, std::string_view) const override {
    constexpr std::size_t kBlock = 16;
    if (sealed.size() < 2 * kBlock || sealed.size() % kBlock != 0) return unreadable(name_, key.name);
    const Cipher context(EVP_CIPHER_CTX_new());
    std::string out(sealed.size(), '\0');
    int size = 0, rest = 0;
    const bool ok =
        EVP_DecryptInit_ex(context.get(), cipher_of(key), nullptr, as_bytes(std::string_view(key.secret)), as_bytes(sealed)) == 1 &&
        EVP_DecryptUpdate(context.get(), as_bytes(out), &size, as_bytes(sealed.substr(kBlock)), static_cast<int>(sealed.size() - kBlock)) ==
            1 &&
        EVP_DecryptFinal_ex(context.get(), as_bytes(out) + size, &rest) == 1;
    if (!ok) return unreadable(name_, key.name);
    out.resize(static_cast<std::size_t>(size + rest));
    return out;
  }
  Result<std::string> seal(const Key& key, std::string_view value, std::string_view) const override {
    constexpr std::size_t kBlock = 16;
    std::string out = random_bytes(kBlock);
    out.resize(kBlock + value.size() + kBlock);
    const Cipher context(EVP_CIPHER_CTX_new());
    int size = 0, rest = 0;
    const bool ok =
        EVP_EncryptInit_ex(context.get(), cipher_of(key), nullptr, as_bytes(std::string_view(key.secret)), as_bytes(out)) == 1 &&
        EVP_EncryptUpdate(context.get(), as_bytes(out) + kBlock, &size, as_bytes(value), static_cast<int>(value.size())) == 1 &&
        EVP_EncryptFinal_ex(context.get(), as_bytes(out) + kBlock + size, &rest) == 1;
    if (!ok) return fail(ErrorCode::kInternal, "AES-CBC fails");
    out.resize(kBlock + static_cast<std::size_t>(size + rest));
    return out;
  }
};

class AesGcm final : public KeyedProvider {
 public:
  explicit AesGcm(std::vector<Key> keys) : KeyedProvider("aesgcm", std::move(keys)) {}

 protected:
  Result<std::string> open(const Key& key, std::string_view sealed, std::string_view context) const override {
    auto out = aesgcm_open(key.secret, sealed, context);
    if (!out) return unreadable(name_, key.name);
    return out;
  }
  Result<std::string> seal(const Key& key, std::string_view value, std::string_view context) const override {
    return aesgcm_seal(key.secret, value, context);
  }
};

class Secretbox final : public KeyedProvider {
 public:
  explicit Secretbox(std::vector<Key> keys) : KeyedProvider("secretbox", std::move(keys)) {}

 protected:
  static constexpr std::size_t kNonce = 24;
  Result<std::string> open(const Key& key, std::string_view sealed, std::string_view) const override {
    if (sealed.size() < kNonce) return unreadable(name_, key.name);
    auto out = secretbox_open(key.secret, sealed.substr(0, kNonce), sealed.substr(kNonce));
    if (!out) return unreadable(name_, key.name);
    return out;
  }
  Result<std::string> seal(const Key& key, std::string_view value, std::string_view) const override {
    const std::string nonce = random_bytes(kNonce);
    return nonce + secretbox_seal(key.secret, nonce, value);
  }
};

class Identity final : public Provider {
 public:
  [[nodiscard]] bool wrote(std::string_view stored) const override { return !stored.starts_with(kPrefix); }
  [[nodiscard]] Result<Plain> decrypt(std::string_view stored, std::string_view) const override {
    return Plain{std::string(stored), false};
  }
  [[nodiscard]] Result<std::string> encrypt(std::string_view value, std::string_view) const override { return std::string(value); }
};

}  // namespace

namespace {

constexpr std::size_t kGcmNonce = 12, kGcmTag = 16;

const EVP_CIPHER* gcm_of(std::string_view key) {
  return key.size() == 16 ? EVP_aes_128_gcm() : key.size() == 24 ? EVP_aes_192_gcm() : EVP_aes_256_gcm();
}

}  // namespace

Result<std::string> aesgcm_open(std::string_view key, std::string_view sealed, std::string_view context) {
  if (sealed.size() < kGcmNonce + kGcmTag) return fail(ErrorCode::kCorrupt, "too short");
  const Cipher cipher(EVP_CIPHER_CTX_new());
  std::string tag(sealed.substr(sealed.size() - kGcmTag));
  const std::string_view text = sealed.substr(kGcmNonce, sealed.size() - kGcmNonce - kGcmTag);
  std::string out(text.size() + kGcmTag, '\0');
  int size = 0, rest = 0;
  const bool ok = EVP_DecryptInit_ex(cipher.get(), gcm_of(key), nullptr, as_bytes(key), as_bytes(sealed)) == 1 &&
                  EVP_DecryptUpdate(cipher.get(), nullptr, &size, as_bytes(context), static_cast<int>(context.size())) == 1 &&
                  EVP_DecryptUpdate(cipher.get(), as_bytes(out), &size, as_bytes(text), static_cast<int>(text.size())) == 1 &&
                  EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(kGcmTag), tag.data()) == 1 &&
                  EVP_DecryptFinal_ex(cipher.get(), as_bytes(out) + size, &rest) == 1;
  if (!ok) {
    ERR_clear_error();
    return fail(ErrorCode::kCorrupt, "it does not decrypt");
  }
  out.resize(static_cast<std::size_t>(size + rest));
  return out;
}

Result<std::string> aesgcm_seal(std::string_view key, std::string_view value, std::string_view context) {
  std::string out = random_bytes(kGcmNonce);
  out.resize(kGcmNonce + value.size() + kGcmTag);
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int size = 0, rest = 0;
  const bool ok =
      EVP_EncryptInit_ex(cipher.get(), gcm_of(key), nullptr, as_bytes(key), as_bytes(out)) == 1 &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &size, as_bytes(context), static_cast<int>(context.size())) == 1 &&
      EVP_EncryptUpdate(cipher.get(), as_bytes(out) + kGcmNonce, &size, as_bytes(value), static_cast<int>(value.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), as_bytes(out) + kGcmNonce + size, &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(kGcmTag), out.data() + kGcmNonce + size + rest) == 1;
  if (!ok) return fail(ErrorCode::kInternal, "AES-GCM fails");
  return out;
}

std::shared_ptr<const Provider> make_identity() { return std::make_shared<Identity>(); }
std::shared_ptr<const Provider> make_aescbc(std::vector<Key> keys) { return std::make_shared<AesCbc>(std::move(keys)); }
std::shared_ptr<const Provider> make_aesgcm(std::vector<Key> keys) { return std::make_shared<AesGcm>(std::move(keys)); }
std::shared_ptr<const Provider> make_secretbox(std::vector<Key> keys) { return std::make_shared<Secretbox>(std::move(keys)); }

}  // namespace berth::apiserver::encryption
