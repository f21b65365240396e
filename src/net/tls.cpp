#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <ranges>

#include "base/mutex.h"
#include "net/peer.h"
#include "security/openssl.h"

namespace berth::net {
namespace {

security::Bio bio_of(const std::string& pem) { return security::Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

/// Never asks on the terminal for a passphrase.
int no_passphrase(char*, int, int, void*) { return 0; }

Result<void> use_identity(SSL_CTX* context, const std::string& certificate_pem, const std::string& key_pem) {
  const auto chain = read_certificates(certificate_pem);
  if (chain.empty()) return invalid("certificate: no PEM certificate found");
  const auto bio = bio_of(key_pem);
  const security::Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) {
    ERR_clear_error();
    return invalid("private key: no usable PEM private key found (keys with a passphrase are not supported)");
  }
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) return invalid("certificate: " + take_tls_error());
  for (std::size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context, chain[i].get());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return invalid("private key: it does not belong to the certificate");
  }
  return {};
}

Result<void> trust(SSL_CTX* context, const std::string& ca_pem) {
  const auto authorities = read_certificates(ca_pem);
  if (authorities.empty()) return invalid("certificate authority: no PEM certificate found");
  auto* store = SSL_CTX_get_cert_store(context);
  for (const auto& authority : authorities) X509_STORE_add_cert(store, authority.get());
  ERR_clear_error();  // the same authority twice is no fault
  // As in Go: what stands in a bundle is trusted by itself, whoever signed it.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return {};
}

void set_common(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // Go's order, so Kubernetes': the shorter key is as safe and a tenth faster, which twenty watchers of everything feel.
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  // One read(2) takes all that is there, instead of two a record.
  SSL_CTX_set_read_ahead(context, 1);
}

constexpr unsigned char kHttp11[] = "\x08http/1.1";
constexpr unsigned kHttp11Size = sizeof kHttp11 - 1;

constexpr unsigned char kHttp2First[] = "\x02h2\x08http/1.1";
constexpr unsigned kHttp2FirstSize = sizeof kHttp2First - 1;

/// `ours` is kHttp11 or kHttp2First.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* offered, unsigned offered_size,
                    void* ours) {
  unsigned char* chosen = nullptr;
  const auto size = ours == kHttp2First ? kHttp2FirstSize : kHttp11Size;
  const int result = SSL_select_next_proto(&chosen, out_size, static_cast<unsigned char*>(ours), size, offered, offered_size);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

/// The client's sessions for resumption: the newest few tickets of the one server that a client talks to.
class SessionCache {
 public:
  ~SessionCache() {
    for (auto* session : sessions_) SSL_SESSION_free(session);
  }
  void add(SSL_SESSION* session) {
    MutexLock lock(mutex_);
    sessions_.push_back(session);
    if (sessions_.size() <= kMax) return;
    SSL_SESSION_free(sessions_.front());
    sessions_.pop_front();
  }
  void use_for(SSL* ssl) {
    MutexLock lock(mutex_);
    if (sessions_.empty()) return;
    auto* session = sessions_.back();
    SSL_set_session(ssl, session);
    // A TLS 1.3 ticket is for one use; TLS 1.2 sessions go on being valid, and are handed out anew after their handshake.
    sessions_.pop_back();
    SSL_SESSION_free(session);
  }

 private:
  static constexpr std::size_t kMax = 64;
  Mutex mutex_;
  std::deque<SSL_SESSION*> sessions_ BERTH_GUARDED_BY(mutex_);
};

int session_cache_index() {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* data, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<SessionCache*>(data); });
  return index;
}

SessionCache* cache_of(SSL_CTX* context) { return static_cast<SessionCache*>(SSL_CTX_get_ex_data(context, session_cache_index())); }

int keep_session(SSL* ssl, SSL_SESSION* session) {
  auto* cache = cache_of(SSL_get_SSL_CTX(ssl));
  if (cache == nullptr) return 0;
  cache->add(session);
  return 1;
}

bool is_ip_address(const std::string& name) {
  in6_addr address{};
  return inet_pton(AF_INET, name.c_str(), &address) == 1 || inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

/// Go's names of the suites that this server takes, and OpenSSL's. Those without forward secrecy or authentication are not among them.
constexpr std::pair<std::string_view, const char*> kCipherNames[] = {
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"},
};
/// Go does not let these be chosen from; naming them is no error.
constexpr std::string_view kAlwaysOn[] = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"};

Result<void> set_ciphers(SSL_CTX* context, const std::vector<std::string>& suites) {
  std::string list;
  for (const std::string& suite : suites) {
    if (std::ranges::find(kAlwaysOn, suite) != std::end(kAlwaysOn)) continue;
    const auto found = std::ranges::find(kCipherNames, std::string_view(suite), &std::pair<std::string_view, const char*>::first);
    if (found == std::end(kCipherNames))
      return invalid(fmt::format("cipher suite \"{}\" is not supported; those of TLS 1.2 that are: {}", suite,
                                 fmt::join(kCipherNames | std::views::keys, ", ")));
    list += (list.empty() ? "" : ":") + std::string(found->second);
  }
  if (!list.empty()) SSL_CTX_set_cipher_list(context, list.c_str());
  return {};
}

}  // namespace

Result<void> check_authority(const std::string& ca_pem) {
  if (read_certificates(ca_pem).empty()) return invalid("no PEM certificate found");
  return {};
}

Result<void> check_tls_settings(const std::string& min_version, const std::vector<std::string>& cipher_suites) {
  if (!min_version.empty() && min_version != "VersionTLS12" && min_version != "VersionTLS13")
    return invalid(fmt::format("TLS version \"{}\" is not supported; those that are: VersionTLS12, VersionTLS13 (older ones are unsafe)",
                               min_version));
  const TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  return set_ciphers(context.get(), cipher_suites);
}

Result<TlsContext> make_server_tls(const TlsServerConfig& config, bool http2) {
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return fail(ErrorCode::kInternal, "TLS: " + take_tls_error());
  set_common(context.get());
  // Of TLS 1.2 what Go's servers offer by default and browsers still do not call weak: forward secret and authenticated, no CBC.
  SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");
  if (config.min_version == "VersionTLS13") SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  if (!config.cipher_suites.empty())
    if (auto set = set_ciphers(context.get(), config.cipher_suites); !set) return std::unexpected(set.error());
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, const_cast<unsigned char*>(http2 ? kHttp2First : kHttp11));
  SSL_CTX_set_num_tickets(context.get(), 1);
  // Sessions are with their clients, in tickets: none is kept here.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  static constexpr unsigned char kContextId[] = "berth";
  SSL_CTX_set_session_id_context(context.get(), kContextId, sizeof kContextId - 1);
  if (auto used = use_identity(context.get(), config.certificate_pem, config.private_key_pem); !used) return std::unexpected(used.error());
  for (const std::string* pem : {&config.client_ca_pem, &config.front_proxy_ca_pem}) {
    if (pem->empty()) continue;
    if (auto trusted = trust(context.get(), *pem); !trusted) return std::unexpected(trusted.error());
    for (const auto& authority : read_certificates(*pem)) SSL_CTX_add_client_CA(context.get(), authority.get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  remember_peers(context.get(), config);
  return context;
}

Result<TlsContext> make_client_tls(const ClientConfig& config) {
  TlsContext context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (!context) return fail(ErrorCode::kInternal, "TLS: " + take_tls_error());
  set_common(context.get());
  SSL_CTX_set_alpn_protos(context.get(), kHttp11, kHttp11Size);
  // Lists and watches come in many records: several in one read. Buffers are given back while nothing comes.
  SSL_CTX_set_default_read_buffer_len(context.get(), 64 * 1024);
  SSL_CTX_set_ex_data(context.get(), session_cache_index(), new SessionCache());
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context.get(), keep_session);
  if (!config.certificate_pem.empty()) {
    auto used = use_identity(context.get(), config.certificate_pem, config.private_key_pem);
    if (!used) return invalid("client " + used.error().message);
  }
  if (!config.insecure_skip_verify) {
    if (config.ca_pem.empty()) {
      SSL_CTX_set_default_verify_paths(context.get());
    } else if (auto trusted = trust(context.get(), config.ca_pem); !trusted) {
      return std::unexpected(trusted.error());
    }
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  return context;
}

SSL* new_client_session(SSL_CTX* context, const std::string& server_name, bool verify) {
  SSL* ssl = SSL_new(context);
  if (ssl == nullptr) return nullptr;
  auto* parameters = SSL_get0_param(ssl);
  if (is_ip_address(server_name)) {
    if (verify) X509_VERIFY_PARAM_set1_ip_asc(parameters, server_name.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl, server_name.c_str());
    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (verify) SSL_set1_host(ssl, server_name.c_str());
  }
  if (auto* cache = cache_of(context)) cache->use_for(ssl);
  return ssl;
}

std::string take_tls_error(SSL* ssl) {
  std::string out;
  while (const auto code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (!out.empty()) out += "; ";
    out += reason != nullptr ? reason : fmt::format("error {:x}", code);
  }
  if (ssl != nullptr) {
    if (const auto verdict = SSL_get_verify_result(ssl); verdict != X509_V_OK) {
      out += fmt::format(" ({})", X509_verify_cert_error_string(verdict));
    }
  }
  return out.empty() ? "unknown TLS error" : out;
}

bool is_plain_http_error() {
  const auto code = ERR_peek_error();
  return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST;
}

}  // namespace berth::net
