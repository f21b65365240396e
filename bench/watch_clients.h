// Clients that watch, over either version of HTTP: as little as a client can be, so that what is measured is the server.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct ssl_st;
struct ssl_ctx_st;
struct nghttp2_session;

namespace berth::bench {

struct WatchClientsOptions {
  std::uint16_t port = 0;
  std::string certificate_pem, private_key_pem;            ///< The clients' own, as kubelets have one.
  std::function<std::string(int client, int watch)> path;  ///< With its query.
  std::string marker;                                      ///< A text that every event has once.
  int clients = 0, watches = 10;
  bool http2 = true;  ///< One connection a client; otherwise one a watch.
};

/// Opens the connections one after the other, then reads what comes of all. One thread.
class WatchClients {
 public:
  explicit WatchClients(WatchClientsOptions options) : options_(std::move(options)) {}
  ~WatchClients();
  WatchClients(const WatchClients&) = delete;
  WatchClients& operator=(const WatchClients&) = delete;

  /// Empty, or what went wrong. Returns when every watch has its 200.
  std::string open();
  /// Reads until `events` were seen in all, or nothing came for 30 seconds; how many were seen since the last call.
  std::size_t read(std::size_t events);
  /// Takes what comes for so long; how many events that were.
  std::size_t idle(double seconds);
  [[nodiscard]] std::size_t connections() const { return links_.size(); }

 private:
  struct Link {
    int fd = -1;
    ssl_st* ssl = nullptr;
    nghttp2_session* session = nullptr;
    std::size_t answers = 0;
    std::string tail;  ///< The end of the last read, where a marker may have begun.
  };
  std::string connect(Link& link);
  std::string ask(Link& link, int number);
  std::string ask_http2(Link& link, int client);
  bool read_link(Link& link);
  /// Waits so long for input and takes it; false when nothing came.
  bool take(int wait_ms);
  void flush(Link& link);
  void count(Link& link, const char* data, std::size_t size);

  WatchClientsOptions options_;
  int epoll_ = -1;
  ssl_ctx_st* context_ = nullptr;
  std::vector<std::unique_ptr<Link>> links_;
  Link* reading_ = nullptr;  ///< Whose input is being taken apart.
  std::size_t seen_ = 0;
};

}  // namespace berth::bench
