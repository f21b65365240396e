// TLS contexts from PEM texts.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "net/client.h"
#include "net/server.h"

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace berth::net {

using TlsContext = std::shared_ptr<SSL_CTX>;

/// TLS 1.2 or newer, ALPN http/1.1 and, when `http2`, before it h2. The error names the part of the configuration that is unusable.
Result<TlsContext> make_server_tls(const TlsServerConfig& config, bool http2 = false);
/// Go's names, as of kube-apiserver's --tls-min-version and --tls-cipher-suites; the error lists what may stand there.
Result<void> check_tls_settings(const std::string& min_version, const std::vector<std::string>& cipher_suites);
/// Verifies the server against ca_pem (empty: the system's store) unless insecure_skip_verify.
Result<TlsContext> make_client_tls(const ClientConfig& config);
/// A connection's TLS state for the client: server name indication and the name to verify (a DNS name or an IP address).
SSL* new_client_session(SSL_CTX* context, const std::string& server_name, bool verify);
/// The thread's queued OpenSSL errors as words, emptying the queue. With `ssl`, a failed verification is told in full.
std::string take_tls_error(SSL* ssl = nullptr);
/// The peer spoke plain HTTP: looks at the queued errors without emptying the queue.
bool is_plain_http_error();

}  // namespace berth::net
