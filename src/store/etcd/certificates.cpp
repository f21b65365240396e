#ifdef BERTH_WITH_ETCD
#include "store/etcd/certificates.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <ctime>

namespace berth::store::etcd {
namespace {

using CertificateHandle = std::unique_ptr<X509, decltype(&X509_free)>;
using KeyHandle = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using BioHandle = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using ContextHandle = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

BioHandle text_of(const std::string& pem) { return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free_all}; }

CertificateHandle first_certificate(const std::string& pem) {
  const auto bio = text_of(pem);
  return {PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free};
}

std::string end_of(const X509* certificate) {
  std::tm time{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time);
  return fmt::format("{:04}-{:02}-{:02}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday);
}

Result<void> check_dates(const X509* certificate, std::string_view flag) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    return invalid(
        fmt::format("{}: the certificate has expired on {}: renew it where etcd's certificates are made", flag, end_of(certificate)));
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    return invalid(fmt::format("{}: the certificate is not valid yet: is this machine's clock right?", flag));
  return {};
}

std::string last_error() {
  std::string words;
  for (unsigned long code = ERR_get_error(); code != 0; code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (reason != nullptr) words = reason;
  }
  return words;
}

/// A context with the options' authority and certificate.
ContextHandle client_context(const EtcdOptions& options) {
  ContextHandle context{SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
  const auto authority = text_of(options.ca_pem);
  for (;;) {
    const CertificateHandle one{PEM_read_bio_X509(authority.get(), nullptr, nullptr, nullptr), X509_free};
    if (one == nullptr) break;
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), one.get());
  }
  if (options.ca_pem.empty()) SSL_CTX_set_default_verify_paths(context.get());
  if (!options.certificate_pem.empty()) {
    SSL_CTX_use_certificate(context.get(), first_certificate(options.certificate_pem).get());
    const auto bio = text_of(options.key_pem);
    const KeyHandle key{PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
    SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  // With TLS 1.3 a refused client certificate shows only with the first answer; 1.2 tells it in the handshake.
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  ERR_clear_error();
  return context;
}

}  // namespace

Result<void> check_certificates(const EtcdOptions& options) {
  if (options.certificate_pem.empty() != options.key_pem.empty())
    return invalid("--etcd-certfile and --etcd-keyfile belong together: one of them is missing");
  if (!options.ca_pem.empty()) {
    const auto authority = first_certificate(options.ca_pem);
    if (authority == nullptr) return invalid("--etcd-cafile: there is no certificate (PEM) in it");
    if (auto dates = check_dates(authority.get(), "--etcd-cafile"); !dates) return dates;
  }
  if (options.certificate_pem.empty()) return {};
  const auto certificate = first_certificate(options.certificate_pem);
  if (certificate == nullptr) return invalid("--etcd-certfile: there is no certificate (PEM) in it");
  const auto bio = text_of(options.key_pem);
  const KeyHandle key{PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
  ERR_clear_error();
  if (key == nullptr) return invalid("--etcd-keyfile: there is no private key (PEM) in it");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return invalid("--etcd-keyfile is not the key of --etcd-certfile: give the two files that were made together");
  }
  return check_dates(certificate.get(), "--etcd-certfile");
}

std::string explain_tls(const std::string& host_port, const EtcdOptions& options) {
  const auto context = client_context(options);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const BioHandle bio{BIO_new_ssl_connect(context.get()), BIO_free_all};
  SSL* ssl = nullptr;
  BIO_get_ssl(bio.get(), &ssl);
  if (ssl == nullptr) return "";
  const std::string host = host_port.substr(0, host_port.rfind(':'));
  X509_VERIFY_PARAM* names = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(names, host.c_str()) != 1) X509_VERIFY_PARAM_set1_host(names, host.c_str(), 0);
  SSL_set_tlsext_host_name(ssl, host.c_str());
  BIO_set_conn_hostname(bio.get(), host_port.c_str());
  ERR_clear_error();
  if (BIO_do_connect(bio.get()) == 1 && BIO_do_handshake(bio.get()) == 1) return "";
  const long verdict = SSL_get_verify_result(ssl);
  const std::string words = last_error();
  if (verdict == X509_V_ERR_CERT_HAS_EXPIRED) return "etcd's own certificate has expired: renew it there, and start etcd again";
  if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)
    return fmt::format("etcd's certificate is not for {}: use a name or address that is in it", host);
  if (verdict != X509_V_OK)
    return fmt::format("etcd's certificate is not signed by --etcd-cafile ({}): give the authority that signed it",
                       X509_verify_cert_error_string(verdict));
  if (words.find("wrong version number") != std::string::npos) return "it does not speak TLS: write http:// for it";
  if (words.find("alert") != std::string::npos || words.find("certificate") != std::string::npos)
    return fmt::format("etcd refuses {} ({}): give one that its --trusted-ca-file signed",
                       options.certificate_pem.empty() ? "a client without certificate (--etcd-certfile, --etcd-keyfile)"
                                                       : "the certificate in --etcd-certfile",
                       words);
  return words;
}

}  // namespace berth::store::etcd
#endif
