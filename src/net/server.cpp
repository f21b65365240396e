#include "net/server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "base/log.h"
#include "base/mutex.h"
#include "net/http2_session.h"
#include "net/peer.h"
#include "net/server_session.h"

namespace berth::net {
namespace {

using std::chrono::milliseconds;

/// The sessions of one reactor. Used on its thread only.
struct Shard {
  std::shared_ptr<Reactor> reactor;
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions;
};

/// Open connections by where they come from. Thread-safe.
class AddressCounts {
 public:
  /// False when there are `most` already.
  bool add(const std::string& network, std::size_t most) {
    const MutexLock lock(mutex_);
    auto& count = counts_[network];
    if (count >= most) return false;
    ++count;
    return true;
  }
  void remove(const std::string& network) {
    const MutexLock lock(mutex_);
    if (const auto found = counts_.find(network); found != counts_.end() && --found->second == 0) counts_.erase(found);
  }

 private:
  Mutex mutex_;
  std::unordered_map<std::string, std::size_t> counts_ BERTH_GUARDED_BY(mutex_);
};

/// An IPv4 address, or the 64 bits of an IPv6 one that its owner cannot choose.
std::string network_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return {reinterpret_cast<const char*>(&v6), IN6_IS_ADDR_V4MAPPED(&v6) ? sizeof v6 : sizeof v6 / 2};
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  return {reinterpret_cast<const char*>(&v4), sizeof v4};
}

std::string address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  std::uint16_t port = 0;
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    port = ntohs(v6.sin6_port);
    return fmt::format("[{}]:{}", text.data(), port);
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  port = ntohs(v4.sin_port);
  return fmt::format("{}:{}", text.data(), port);
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

Result<int> listen_on(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const auto service = std::to_string(port);
  const int problem = getaddrinfo(address.empty() ? nullptr : address.c_str(), service.c_str(), &hints, &found);
  if (problem != 0) return invalid(fmt::format("listen address \"{}\": {}", address, gai_strerror(problem)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  int error = 0;
  for (const auto* at = found; at != nullptr; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && ::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, 4096) == 0) return fd;
    error = errno;
    if (fd >= 0) ::close(fd);
  }
  return fail(error == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kUnavailable,
              fmt::format("cannot listen on {}:{}: {}", address, port, std::generic_category().message(error)));
}

/// Whether a certificate of `before` is not among those of `after`.
bool is_any_missing(const std::string& before, const std::string& after) {
  const auto now = read_certificates(after);
  return std::ranges::any_of(read_certificates(before), [&](const auto& one) {
    return std::ranges::none_of(now, [&](const auto& other) { return X509_cmp(one.get(), other.get()) == 0; });
  });
}

class ServerImpl;

class Acceptor final : public EventSink {
 public:
  Acceptor(ServerImpl& server, int fd) : server_(server), fd_(fd) {}
  ~Acceptor() override { close(); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void on_events(std::uint32_t) override;
  void on_tick(MonotonicTime now) override;
  void on_reactor_stop() override {}
  [[nodiscard]] int fd() const { return fd_; }

 private:
  ServerImpl& server_;
  int fd_;
  bool paused_ = false;
};

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerConfig config, Handler& handler, TlsContext tls) : config_(std::move(config)), handler_(handler), tls_(std::move(tls)) {
    bodies_->max_bytes = config_.max_bodies_bytes;
    bodies_->may_send = config_.may_send_body;
  }
  ~ServerImpl() override { stop(0); }

  Result<void> open() {
    auto fd = listen_on(config_.address, config_.port);
    if (!fd) return std::unexpected(fd.error());
    port_ = port_of(*fd);
    acceptor_ = std::make_shared<Acceptor>(*this, *fd);
    for (int i = 0; i < std::max(1, config_.io_threads); ++i) {
      auto shard = std::make_unique<Shard>();
      shard->reactor = Reactor::start(fmt::format("http-{}", i));
      if (!shard->reactor) return fail(ErrorCode::kInternal, "cannot start an I/O thread");
      shards_.push_back(std::move(shard));
    }
    auto& first = *shards_.front()->reactor;
    first.post([this, &first] { first.add(acceptor_->fd(), EPOLLIN, acceptor_); });
    return {};
  }

  [[nodiscard]] std::uint16_t port() const override { return port_; }

  Result<void> set_tls(const TlsServerConfig& config) override {
    auto made = make_server_tls(config, config_.http2);
    if (!made) return std::unexpected(made.error());
    bool is_one_gone = false;
    {
      const MutexLock lock(tls_mutex_);
      tls_ = std::move(*made);
      is_one_gone = config_.tls && (is_any_missing(config_.tls->client_ca_pem, config.client_ca_pem) ||
                                    is_any_missing(config_.tls->front_proxy_ca_pem, config.front_proxy_ca_pem));
      config_.tls = config;
    }
    // Whom an authority vouched for that is none any more is nobody: who still may comes back.
    if (is_one_gone) wind_down(true);
    return {};
  }

  void stop(int grace_ms) override {
    if (std::exchange(stopped_, true)) return;
    if (!shards_.empty()) {
      auto& first = *shards_.front()->reactor;
      first.post([this, &first] {
        first.remove(acceptor_->fd(), acceptor_.get());
        acceptor_->close();  // from now on connecting is refused, instead of waiting in the backlog
      });
    }
    const auto deadline = std::chrono::steady_clock::now() + milliseconds(grace_ms);
    const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
    while (grace_ms > 0 && wind_down(false).answering > 0 && in_time()) std::this_thread::sleep_for(milliseconds(5));
    while (grace_ms > 0 && wind_down(true).open > 0 && in_time()) std::this_thread::sleep_for(milliseconds(5));
    for (auto& shard : shards_) shard->reactor->stop();
  }

  void take(int fd, const sockaddr_storage& address) {
    auto network = network_of(address);
    if (!addresses_.add(network, config_.max_connections_per_address)) {
      ::close(fd);
      return;
    }
    if (connections_.fetch_add(1) >= config_.max_connections) {
      forget(network);
      ::close(fd);
      return;
    }
    auto& shard = *shards_[next_shard_++ % shards_.size()];
    shard.reactor->dispatch([this, &shard, fd, remote = address_text(address), network = std::move(network)]() mutable {
      begin(shard, fd, std::move(remote), std::move(network));
    });
  }

  void watch_acceptor(bool on) {
    shards_.front()->reactor->modify(acceptor_->fd(), acceptor_.get(), on ? static_cast<std::uint32_t>(EPOLLIN) : 0U);
  }

 private:
  struct Count {
    std::size_t open = 0, answering = 0;
  };

  void forget(const std::string& network) {
    --connections_;
    addresses_.remove(network);
  }

  void begin(Shard& shard, int fd, std::string remote, std::string network) {
    const auto tls = [&] {
      const MutexLock lock(tls_mutex_);
      return tls_;
    }();
    auto connection = Connection::accepted(*shard.reactor, fd, tls.get(), std::move(remote));
    if (!connection) return forget(network);
    const SessionTimeouts timeouts{milliseconds(config_.header_timeout_ms), milliseconds(config_.idle_timeout_ms),
                                   milliseconds(config_.write_timeout_ms)};
    const ParserLimits limits{config_.max_header_bytes, config_.max_body_bytes};
    auto session = std::make_shared<ServerSession>(handler_, shard.reactor, limits, timeouts, bodies_);
    if (config_.http2) {
      const Http2Limits http2{.parser = limits, .max_streams = config_.max_streams, .goaway_chance = config_.goaway_chance};
      session->set_http2([this, &shard, http2, timeouts, network] {
        auto next = std::make_shared<Http2Session>(handler_, shard.reactor, http2, timeouts, bodies_);
        keep(shard, next, network);
        return next;
      });
    }
    keep(shard, session, std::move(network));
    session->attach(connection);
    connection->start(session);
  }

  /// A connection counts until it is closed, also after an upgrade.
  void keep(Shard& shard, const std::shared_ptr<Session>& session, std::string network) {
    session->set_on_gone([&shard, raw = session.get()] { shard.sessions.erase(raw); },
                         [this, network = std::move(network)] { forget(network); });
    shard.sessions.emplace(session.get(), session);
  }

  /// Asks every shard to end what can end, and counts what is left.
  Count wind_down(bool end_streams) {
    Count total;
    for (auto& shard : shards_) {
      auto done = std::make_shared<std::promise<Count>>();
      auto result = done->get_future();
      const bool posted = shard->reactor->post([&sessions = shard->sessions, end_streams, done] {
        Count count;
        std::vector<std::shared_ptr<Session>> all;
        for (const auto& [raw, session] : sessions) all.push_back(session);
        for (const auto& session : all) {
          session->wind_down(end_streams);
          if (session->is_answering()) ++count.answering;
        }
        count.open = sessions.size();
        done->set_value(count);
      });
      if (!posted) continue;
      const auto count = result.get();
      total.open += count.open;
      total.answering += count.answering;
    }
    return total;
  }

  ServerConfig config_;
  Handler& handler_;
  std::shared_ptr<BodyRules> bodies_ = std::make_shared<BodyRules>();
  Mutex tls_mutex_;
  TlsContext tls_ BERTH_GUARDED_BY(tls_mutex_);  ///< For connections that come; each holds on to its own.
  std::shared_ptr<Acceptor> acceptor_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::size_t next_shard_ = 0;
  std::atomic<std::size_t> connections_{0};
  AddressCounts addresses_;
  std::uint16_t port_ = 0;
  bool stopped_ = false;
};

void Acceptor::on_events(std::uint32_t) {
  // A bounded number a turn: a flood of connections must not keep the open ones waiting.
  for (int i = 0; i < 64 && !paused_; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      server_.take(fd, address);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The waiting connection would wake us for ever; others must close first. The next tick tries again.
      log::warning("net", "cannot accept a connection: {}", std::generic_category().message(errno));
      paused_ = true;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    }
  }
  if (paused_) server_.watch_acceptor(false);
}

void Acceptor::on_tick(MonotonicTime) {
  if (std::exchange(paused_, false)) server_.watch_acceptor(true);
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ServerConfig config, Handler& handler) {
  TlsContext tls;
  if (config.tls) {
    auto made = make_server_tls(*config.tls, config.http2);
    if (!made) return std::unexpected(made.error());
    tls = std::move(*made);
  }
  auto server = std::make_unique<ServerImpl>(std::move(config), handler, std::move(tls));
  if (auto opened = server->open(); !opened) return std::unexpected(opened.error());
  return server;
}

}  // namespace berth::net
