// A server on loopback with handlers given as functions, and raw sockets to be rude with.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "net/client.h"
#include "net/server.h"
#include "tests/net/test_certs.h"

namespace berth::net::test {

using Writer = std::shared_ptr<ResponseWriter>;

class FunctionHandler final : public Handler {
 public:
  explicit FunctionHandler(std::function<void(HttpRequest, Writer)> function) : function_(std::move(function)) {}
  void handle(HttpRequest request, Writer writer) override { function_(std::move(request), std::move(writer)); }

 private:
  std::function<void(HttpRequest, Writer)> function_;
};

/// Waits for a claim to become true, told by notify(). The patience only bounds a failure: a loaded machine takes a thousand handshakes of
/// TLS many seconds.
class Signal {
 public:
  void notify() {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  [[nodiscard]] bool wait_for_count(int count, std::chrono::milliseconds timeout = std::chrono::minutes(5)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return count_ >= count; });
  }
  [[nodiscard]] int count() {
    std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

inline HttpRequest make_request(std::string method, std::string path, std::string body = {}) {
  HttpRequest request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.body = std::move(body);
  return request;
}

inline HttpResponse wait_for(HttpClient& client, HttpRequest request) {
  std::promise<HttpResponse> promise;
  auto future = promise.get_future();
  client.send(std::move(request), [&](HttpResponse response) { promise.set_value(std::move(response)); });
  return future.get();
}

/// A plain blocking socket to the server.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    is_connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { ::close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  [[nodiscard]] bool is_connected() const { return is_connected_; }
  void send(std::string_view text) { [[maybe_unused]] const auto sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  void end_sending() { ::shutdown(fd_, SHUT_WR); }
  /// Until the server closes.
  std::string read_to_end() {
    std::string out;
    std::array<char, 65536> buffer;
    while (true) {
      const auto got = ::recv(fd_, buffer.data(), buffer.size(), 0);
      if (got <= 0) return got == 0 ? out : out + "<error>";
      out.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  /// Until `text` was seen.
  std::string read_until(std::string_view text) {
    std::string out;
    char c = 0;
    while (out.find(text) == std::string::npos && ::recv(fd_, &c, 1, 0) == 1) out.push_back(c);
    return out;
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
  bool is_connected_ = false;
};

struct Pki {
  berth::test::Authority authority{"test-ca"};
  berth::test::Identity server = authority.issue("server");
  berth::test::Identity client = authority.issue("alice", {"dev", "ops"});
};
inline const Pki& pki() {
  static const Pki pki;
  return pki;
}

inline TlsServerConfig server_tls() { return {pki().server.certificate_pem, pki().server.key_pem, pki().authority.pem()}; }

/// For many connections at once: on a slow machine even their handshakes take their time.
inline ServerConfig patient() {
  ServerConfig config;
  config.header_timeout_ms = config.idle_timeout_ms = config.write_timeout_ms = 600'000;
  return config;
}

inline std::unique_ptr<Server> start_server(Handler& handler, ServerConfig config = {}, bool tls = false) {
  if (tls) config.tls = server_tls();
  auto server = Server::start(std::move(config), handler);
  EXPECT_TRUE(server) << (server ? "" : server.error().message);
  return server ? std::move(*server) : nullptr;
}

inline std::unique_ptr<HttpClient> make_client(const Server& server, bool tls = false, std::function<void(ClientConfig&)> change = {}) {
  ClientConfig config;
  config.url = fmt::format("{}://127.0.0.1:{}", tls ? "https" : "http", server.port());
  if (tls) config.ca_pem = pki().authority.pem();
  if (change) change(config);
  auto client = HttpClient::create(std::move(config));
  EXPECT_TRUE(client) << (client ? "" : client.error().message);
  return client ? std::move(*client) : nullptr;
}

}  // namespace berth::net::test
