// HTTP/2 and HTTP/1.1 server over TLS or plain TCP.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/http.h"

namespace berth::net {

struct TlsServerConfig {
  std::string certificate_pem;  ///< Chain, leaf first.
  std::string private_key_pem;
  std::string client_ca_pem;               ///< Client certificates signed by these are verified; empty: none is asked for. Never required.
  std::string min_version;                 ///< "VersionTLS12" (also when empty) or "VersionTLS13".
  std::vector<std::string> cipher_suites;  ///< Of TLS 1.2, by Go's names; empty: all that are safe.
  std::string front_proxy_ca_pem;          ///< The same, of proxies that say in headers for whom they ask (PeerCertificate); empty: none.
};

struct ServerConfig {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free one; Server::port() says which.
  std::optional<TlsServerConfig> tls;
  int io_threads = 2;
  std::size_t max_body_bytes = 3 * 1024 * 1024;      ///< More is answered 413.
  std::size_t max_header_bytes = 64 * 1024;          ///< More is answered 431.
  std::size_t max_connections = 20'000;              ///< More are closed at once.
  std::size_t max_connections_per_address = 15'000;  ///< The same, of one IPv4 address or IPv6 network of 64 bits.
  int header_timeout_ms = 20'000;                    ///< A request whose header or body comes slower is dropped.
  int idle_timeout_ms = 120'000;                     ///< Keep-alive connections without a request.
  int write_timeout_ms = 60'000;                     ///< A reader that takes nothing for so long is dropped.
  bool http2 = true;                                 ///< Beside HTTP/1.1: by ALPN; without TLS with prior knowledge.
  std::uint32_t max_streams = 100;                   ///< Of one HTTP/2 connection at a time, as kube-apiserver has it.
  double goaway_chance = 0;                          ///< Of an HTTP/2 request ending its connection in order (--goaway-chance).
  std::size_t max_bodies_bytes = 1U << 30;           ///< Of all bodies that are under way together; more is answered 429.
  /// Asked on an I/O thread before more than the first 16 KiB of a body are kept; the request is complete but for its body. False: 401, so
  /// that strangers cannot fill the memory. Null: everybody may.
  std::function<bool(const HttpRequest& head)> may_send_body;
};

/// Whether the text holds certificates that others can be verified against.
Result<void> check_authority(const std::string& ca_pem);

/// Owns its threads and sockets; the destructor closes everything. The handler must outlive it.
class Server {
 public:
  static Result<std::unique_ptr<Server>> start(ServerConfig config, Handler& handler);
  virtual ~Server() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// Connections from now on are shown this, and what it trusts; those that are open go on, but where an authority is gone: then they end
  /// with what is under way, watches at once. The error leaves all as it was. Not on I/O threads.
  virtual Result<void> set_tls(const TlsServerConfig& config) = 0;
  /// Stops accepting, lets answers under way end for up to `grace_ms`, then closes.
  virtual void stop(int grace_ms) = 0;
};

}  // namespace berth::net
