// OpenSSL handles that free themselves, PEM texts to keys and back. For .cpp files only: OpenSSL's headers are heavy.
#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "base/error.h"

namespace berth::security {

template <auto Free>
struct FreeWith {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;

/// What OpenSSL last complained about; empties its queue.
std::string openssl_error();
Result<Key> make_ec_key();
/// `what` names the source in the error.
Result<Key> read_private_key(const std::string& pem, const std::string& what);
Result<Key> read_public_key(const std::string& pem, const std::string& what);
Result<Certificate> read_certificate(const std::string& pem, const std::string& what);
std::string to_pem(EVP_PKEY* key);
std::string to_pem(X509* certificate);

}  // namespace berth::security
