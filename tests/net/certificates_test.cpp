// What is read of a request for a certificate, and what is signed of it.
#include "net/certificates.h"

#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include "security/openssl.h"
#include "tests/net/test_certs.h"

namespace berth::net::test {
namespace {

/// With subject alternative names in OpenSSL's words.
std::string request_with(const std::string& names) {
  const auto key = *security::make_ec_key();
  const std::unique_ptr<X509_REQ, security::FreeWith<X509_REQ_free>> request(X509_REQ_new());
  X509_NAME* subject = X509_REQ_get_subject_name(request.get());
  X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("system:nodes"), -1, -1, 0);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("system:node:n1"), -1, -1, 0);
  X509_REQ_set_pubkey(request.get(), key.get());
  STACK_OF(X509_EXTENSION)* extensions = sk_X509_EXTENSION_new_null();
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
  EXPECT_NE(extension, nullptr) << names;
  sk_X509_EXTENSION_push(extensions, extension);
  X509_REQ_add_extensions(request.get(), extensions);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  X509_REQ_sign(request.get(), key.get(), EVP_sha256());
  const security::Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_REQ(bio.get(), request.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

TEST(CertificateRequests, NamesOfOtherKindsAreSeenAndNotSigned) {
  const auto plain = read_certificate_request(request_with("DNS:n1,IP:10.0.0.1"));
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->has_other_names);
  const berth::test::Authority authority("ca");
  for (const char* names : {"otherName:1.3.6.1.4.1.311.20.2.3;UTF8:root@example.com", "RID:1.2.3.4", "DNS:n1,RID:1.2.3.4"}) {
    const auto facts = read_certificate_request(request_with(names));
    ASSERT_TRUE(facts) << names;
    EXPECT_TRUE(facts->has_other_names) << names;
    const auto signer = authority.itself();
    const auto certificate = sign_certificate({signer.certificate_pem, signer.key_pem}, *facts,
                                              {{"client auth"}, SystemClock().now(), SystemClock().now() + std::chrono::hours(1)});
    ASSERT_TRUE(certificate) << certificate.error().message;
    const auto read = *security::read_certificate(*certificate, "it");
    const std::unique_ptr<GENERAL_NAMES, security::FreeWith<GENERAL_NAMES_free>> list(
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(read.get(), NID_subject_alt_name, nullptr, nullptr)));
    for (int i = 0; list != nullptr && i < sk_GENERAL_NAME_num(list.get()); ++i)
      EXPECT_EQ(sk_GENERAL_NAME_value(list.get(), i)->type, GEN_DNS) << names;
    EXPECT_EQ(read_certificate_facts(*certificate)->names.size(), std::string_view(names).starts_with("DNS") ? 1U : 0U) << names;
  }
}

}  // namespace
}  // namespace berth::net::test
