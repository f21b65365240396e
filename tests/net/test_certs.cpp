#include "tests/net/test_certs.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace berth::test {
namespace {

std::string to_text(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return out;
}

std::string certificate_text(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  return to_text(bio);
}

std::string key_text(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  return to_text(bio);
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  auto* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* make_certificate(const std::string& common_name, const std::vector<std::string>& organizations, EVP_PKEY* key, int days,
                       long seconds = 0) {
  static long serial = 1;
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -10L * 86400);
  X509_gmtime_adj(X509_getm_notAfter(certificate), seconds > 0 ? seconds : days * 86400L);
  X509_set_pubkey(certificate, key);
  auto* subject = X509_get_subject_name(certificate);
  const auto add = [&](const char* field, const std::string& value) {
    X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0);
  };
  for (const auto& organization : organizations) add("O", organization);
  add("CN", common_name);
  return certificate;
}

}  // namespace

struct Authority::State {
  EVP_PKEY* key;
  X509* certificate;
};

Authority::Authority(const std::string& name, const Authority* above) : state_(new State{EVP_EC_gen("P-256"), nullptr}) {
  state_->certificate = make_certificate(name, {}, state_->key, 10);
  X509* issuer = above == nullptr ? state_->certificate : above->state_->certificate;
  X509_set_issuer_name(state_->certificate, X509_get_subject_name(issuer));
  add_extension(state_->certificate, issuer, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(state_->certificate, issuer, NID_key_usage, "critical,keyCertSign,digitalSignature");
  add_extension(state_->certificate, issuer, NID_subject_key_identifier, "hash");
  X509_sign(state_->certificate, above == nullptr ? state_->key : above->state_->key, EVP_sha256());
  pem_ = certificate_text(state_->certificate);
}

Authority::~Authority() {
  X509_free(state_->certificate);
  EVP_PKEY_free(state_->key);
  delete state_;
}

Identity Authority::itself() const { return {pem_, key_text(state_->key)}; }

Identity Authority::issue(const std::string& common_name, const std::vector<std::string>& organizations, int days, long seconds) const {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = make_certificate(common_name, organizations, key, days, seconds);
  X509_set_issuer_name(certificate, X509_get_subject_name(state_->certificate));
  add_extension(certificate, state_->certificate, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  X509_sign(certificate, state_->key, EVP_sha256());
  Identity out{certificate_text(certificate), key_text(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return out;
}

}  // namespace berth::test
