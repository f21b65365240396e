#include "security/openssl.h"

#include <openssl/ec.h>

namespace berth::security {
namespace {

std::string text_of(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(std::max(size, 0L))};
}

Bio reader(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

}  // namespace

std::string openssl_error() {
  std::string text;
  while (unsigned long code = ERR_get_error()) {
    char line[256];
    ERR_error_string_n(code, line, sizeof line);
    text = line;
  }
  return text.empty() ? "no detail" : text;
}

Result<Key> make_ec_key() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return fail(ErrorCode::kInternal, "cannot make a P-256 key: " + openssl_error());
  return key;
}

Result<Key> read_private_key(const std::string& pem, const std::string& what) {
  Bio bio = reader(pem);
  // No password callback: an encrypted key is an error instead of a question on the terminal.
  Key key(PEM_read_bio_PrivateKey(
      bio.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
  if (key == nullptr) return fail(ErrorCode::kCorrupt, fmt::format("{}: not a private key in PEM form: {}", what, openssl_error()));
  return key;
}

Result<Key> read_public_key(const std::string& pem, const std::string& what) {
  Bio bio = reader(pem);
  Key key(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr) return fail(ErrorCode::kCorrupt, fmt::format("{}: not a public key in PEM form: {}", what, openssl_error()));
  return key;
}

Result<Certificate> read_certificate(const std::string& pem, const std::string& what) {
  Bio bio = reader(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return fail(ErrorCode::kCorrupt, fmt::format("{}: not a certificate in PEM form: {}", what, openssl_error()));
  return certificate;
}

std::string to_pem(EVP_PKEY* key) {
  Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(bio.get());
}

std::string to_pem(X509* certificate) {
  Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return text_of(bio.get());
}

}  // namespace berth::security
