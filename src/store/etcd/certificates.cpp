#ifdef BERTH_WITH_ETCD
#include "store/etcd/certificates.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "security/openssl.h"
#include "security/validity.h"

namespace berth::store::etcd {
namespace {

using ContextHandle = std::unique_ptr<SSL_CTX, security::FreeWith<SSL_CTX_free>>;

security::Bio text_of(const std::string& pem) { return security::Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

security::Certificate first_certificate(const std::string& pem) {
  const auto bio = text_of(pem);
  return security::Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

/// "--etcd-certfile FILE", as far as it is known.
std::string place(std::string_view flag, const std::string& file) { return fmt::format("{}{}{}", flag, file.empty() ? "" : " ", file); }

/// OpenSSL's last error that has words, and its reason.
struct LastError {
  int reason = 0;
  std::string words;
  /// The peer said so.
  [[nodiscard]] bool is_alert() const { return reason >= SSL_AD_REASON_OFFSET; }
};
LastError last_error() {
  LastError out;
  for (unsigned long code = ERR_get_error(); code != 0; code = ERR_get_error())
    if (const char* words = ERR_reason_error_string(code)) out = {ERR_GET_REASON(code), words};
  return out;
}

/// A context with the options' authority and certificate.
ContextHandle client_context(const EtcdOptions& options) {
  ContextHandle context(SSL_CTX_new(TLS_client_method()));
  const auto authority = text_of(options.ca_pem);
  for (;;) {
    const security::Certificate one(PEM_read_bio_X509(authority.get(), nullptr, nullptr, nullptr));
    if (one == nullptr) break;
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), one.get());
  }
  if (options.ca_pem.empty()) SSL_CTX_set_default_verify_paths(context.get());
  if (!options.certificate_pem.empty()) {
    SSL_CTX_use_certificate(context.get(), first_certificate(options.certificate_pem).get());
    const auto bio = text_of(options.key_pem);
    const security::Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
    SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  // With TLS 1.3 a refused client certificate shows only with the first answer; 1.2 tells it in the handshake.
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  ERR_clear_error();
  return context;
}

/// The certificate over which a handshake failed, as the other side showed it; OpenSSL forgets it.
struct Refused {
  std::string pem;
};

int keep_refused(int is_good, X509_STORE_CTX* check) {
  if (is_good == 1) return 1;
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (auto* refused = static_cast<Refused*>(SSL_get_app_data(ssl)))
    if (X509* certificate = X509_STORE_CTX_get_current_cert(check)) refused->pem = security::to_pem(certificate);
  return 0;
}

/// Of a handshake that this side gave up.
std::string why_refused(long verdict, const Refused& refused, const std::string& host, const EtcdOptions& options) {
  if (verdict == X509_V_ERR_CERT_HAS_EXPIRED || verdict == X509_V_ERR_CERT_NOT_YET_VALID) {
    const auto fault = security::check_dates(refused.pem, SystemClock().now());
    return fmt::format("what etcd shows is no good: {}; then start etcd again", fault ? "its dates are not" : fault.error().message);
  }
  const std::string shown = security::subject_of(refused.pem);
  if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)
    return fmt::format("etcd's certificate, of {}, is not for {}: use a name or address that is in it", shown, host);
  return fmt::format(
      "etcd's certificate, of {}, is not signed by {} ({}): give the authority that signed it", shown,
      options.ca_pem.empty() ? "anybody whom this machine trusts (--etcd-cafile is not given)" : place("--etcd-cafile", options.ca_file),
      X509_verify_cert_error_string(verdict));
}

}  // namespace

std::string explain_tls(const std::string& host_port, const EtcdOptions& options) {
  const auto context = client_context(options);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, keep_refused);
  Refused refused;
  const security::Bio bio(BIO_new_ssl_connect(context.get()));
  SSL* ssl = nullptr;
  BIO_get_ssl(bio.get(), &ssl);
  if (ssl == nullptr) return "";
  SSL_set_app_data(ssl, &refused);
  const std::string host = host_port.substr(0, host_port.rfind(':'));
  X509_VERIFY_PARAM* names = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(names, host.c_str()) != 1) X509_VERIFY_PARAM_set1_host(names, host.c_str(), 0);
  SSL_set_tlsext_host_name(ssl, host.c_str());
  BIO_set_conn_hostname(bio.get(), host_port.c_str());
  ERR_clear_error();
  if (BIO_do_connect(bio.get()) == 1 && BIO_do_handshake(bio.get()) == 1) return "";
  const long verdict = SSL_get_verify_result(ssl);
  const LastError error = last_error();
  if (verdict != X509_V_OK) return why_refused(verdict, refused, host, options);
  if (error.reason == SSL_R_WRONG_VERSION_NUMBER) return "it does not speak TLS: write http:// for it";
  const std::string& words = error.words;
  if (error.is_alert())
    return options.certificate_pem.empty()
               ? fmt::format("etcd refuses a client without certificate ({}): give --etcd-certfile and --etcd-keyfile", words)
               : fmt::format("etcd refuses the certificate of {} in {} ({}): give one that its --trusted-ca-file signed, for clients",
                             security::subject_of(options.certificate_pem), place("--etcd-certfile", options.certificate_file), words);
  return words;
}

}  // namespace berth::store::etcd

namespace berth::store {

Result<void> check_etcd_certificates(const EtcdOptions& options) {
  const auto of = [](std::string_view flag, const std::string& file, std::string_view what) {
    return invalid(fmt::format("{}: {}", etcd::place(flag, file), what));
  };
  if (options.certificate_pem.empty() != options.key_pem.empty())
    return invalid("--etcd-certfile and --etcd-keyfile belong together: one of them is missing");
  const TimePoint now = SystemClock().now();
  if (!options.ca_pem.empty()) {
    if (etcd::first_certificate(options.ca_pem) == nullptr)
      return of("--etcd-cafile", options.ca_file, "there is no certificate (PEM) in it");
    if (const auto good = security::check_authorities(options.ca_pem, now); !good)
      return of("--etcd-cafile", options.ca_file, good.error().message);
  }
  if (options.certificate_pem.empty()) return {};
  if (etcd::first_certificate(options.certificate_pem) == nullptr)
    return of("--etcd-certfile", options.certificate_file, "there is no certificate (PEM) in it");
  if (const auto key = security::read_private_key(options.key_pem, ""); !key)
    return of("--etcd-keyfile", options.key_file, "there is no private key (PEM) in it");
  if (const auto good = security::check_identity(options.certificate_pem, options.key_pem, now); !good)
    return of("--etcd-certfile", fmt::format("{}, --etcd-keyfile {}", options.certificate_file, options.key_file), good.error().message);
  return {};
}

}  // namespace berth::store
#endif
