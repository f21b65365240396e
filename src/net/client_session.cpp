#include "net/client_session.h"

#include <netdb.h>
#include <sys/socket.h>

#include "base/left_threads.h"
#include "base/mutex.h"
#include "net/raw_stream.h"

namespace berth::net {
namespace {

constexpr std::size_t kMaxHeaderBytes = 256 * 1024;
constexpr std::size_t kMaxRefusalBytes = 1024 * 1024;  // What comes instead of an upgrade.
constexpr int kMaxLookups = 32;
constexpr auto kIdleTimeout = std::chrono::seconds(90);  // net/http's default for client-go
constexpr auto kConnectTimeout = std::chrono::seconds(30);
constexpr auto kAddressesKept = std::chrono::seconds(30);

/// Look-ups of names under way in this process, each on a thread of its own: the system's resolver blocks.
std::atomic<int> lookups{0};

ParserLimits limits_of(ClientOp::Kind kind, const ClientPool& pool) {
  switch (kind) {
    case ClientOp::Kind::kStream:
      return {kMaxHeaderBytes, std::numeric_limits<std::size_t>::max()};
    case ClientOp::Kind::kUpgrade:
      return {kMaxHeaderBytes, kMaxRefusalBytes};
    case ClientOp::Kind::kExchange:
      break;
  }
  return {kMaxHeaderBytes, pool.options().max_answer_bytes};
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  Url url;
  auto rest = text;
  if (rest.starts_with("https://"))
    url.is_https = true;
  else if (!rest.starts_with("http://"))
    return invalid(fmt::format("server URL \"{}\": it must begin with https:// or http://", text));
  rest.remove_prefix(url.is_https ? 8 : 7);
  const auto slash = rest.find('/');
  auto authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) url.prefix = rest.substr(slash);
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  url.host_header = authority;
  url.port = url.is_https ? 443 : 80;
  std::string_view port;
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    if (end == std::string_view::npos) return invalid(fmt::format("server URL \"{}\": missing ']'", text));
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    const auto colon = authority.find(':');
    url.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  if (url.host.empty() || url.host.find_first_of("@?#% ") != std::string::npos) {
    return invalid(fmt::format("server URL \"{}\": no usable host name", text));
  }
  if (!port.empty() && port != ":") {  // "host:" is the scheme's own port, as in Go.
    const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), url.port);
    if (port[0] != ':' || error != std::errc() || end != port.data() + port.size() || url.port == 0) {
      return invalid(fmt::format("server URL \"{}\": malformed port", text));
    }
  }
  return url;
}

void ClientOp::fail(std::string why) {
  if (kind == Kind::kStream) {
    GateLock lock(stream->gate);
    if (!stream->is_cancelled && stream->callbacks.on_end) std::exchange(stream->callbacks.on_end, nullptr)(std::move(why));
    return;
  }
  HttpResponse response{.status = 0, .headers = {}, .body = std::move(why)};
  if (kind == Kind::kUpgrade) {
    if (upgraded) std::exchange(upgraded, nullptr)(nullptr, std::move(response));
  } else if (done) {
    std::exchange(done, nullptr)(std::move(response));
  }
}

// --- ClientPool ---

ClientPool::ClientPool(std::shared_ptr<Reactor> reactor, Options options) : reactor_(std::move(reactor)), options_(std::move(options)) {}

void ClientPool::submit(ClientOpPtr op) {
  if (is_shut_down_) return op->fail("the client is closed");
  if (op->kind != ClientOp::Kind::kExchange) return open_connection(std::move(op));
  queue_.push_back(std::move(op));
  run_queue();
}

void ClientPool::run_queue() {
  while (!queue_.empty()) {
    if (!idle_.empty()) {
      const auto session = std::move(idle_.back());
      idle_.pop_back();
      if (!session->is_usable()) {
        session->close("");
        continue;
      }
      auto op = std::move(queue_.front());
      queue_.pop_front();
      session->begin(std::move(op));
    } else if (exchange_connections_ + waiting_for_address_.size() < std::max<std::size_t>(1, options_.max_connections)) {
      auto op = std::move(queue_.front());
      queue_.pop_front();
      open_connection(std::move(op));
    } else {
      return watch_queue();
    }
  }
}

void ClientPool::watch_queue() {
  if (std::exchange(is_watching_queue_, true)) return;
  reactor_->run_after(Reactor::kTick, [self = shared_from_this()] {
    self->is_watching_queue_ = false;
    const auto now = self->reactor_->now();
    std::vector<ClientOpPtr> late;
    std::erase_if(self->queue_, [&](const ClientOpPtr& op) {
      if (op->deadline > now) return false;
      late.push_back(op);
      return true;
    });
    for (const auto& op : late) op->fail("timeout: no connection to the server became free in time");
    if (!self->queue_.empty()) self->watch_queue();
  });
}

std::vector<ClientPool::Address> ClientPool::resolve(const std::string& host, std::uint16_t port, bool numeric_only, std::string& problem) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric_only ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  const int result = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (result != 0) {
    problem = fmt::format("cannot look up host {}: {}", host, gai_strerror(result));
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  std::vector<Address> out;
  for (const auto* at = found; at != nullptr; at = at->ai_next) {
    out.push_back({std::string(reinterpret_cast<const char*>(at->ai_addr), at->ai_addrlen)});
  }
  return out;
}

void ClientPool::open_connection(ClientOpPtr op) {
  if (addresses_.empty() || reactor_->now() > addresses_until_) {
    std::string problem;
    const auto& url = options_.url;
    if (!is_resolving_) addresses_ = resolve(url.host, url.port, true, problem);
    addresses_until_ = MonotonicTime::max();
    if (addresses_.empty()) {
      if (!is_resolving_ && lookups.fetch_add(1) >= kMaxLookups) {
        --lookups;
        return op->fail(fmt::format("cannot look up host {}: too many names are being looked up", url.host));
      }
      waiting_for_address_.push_back(std::move(op));
      if (std::exchange(is_resolving_, true)) return;
      // The system's resolver blocks, for seconds when the network is away, and cannot be interrupted.
      LeavableThread([self = shared_from_this()] {
        std::string why;
        auto found = resolve(self->options_.url.host, self->options_.url.port, false, why);
        --lookups;
        self->reactor_->post(
            [self, found = std::move(found), why = std::move(why)]() mutable { self->resolved(std::move(found), std::move(why)); });
      }).leave();
      return;
    }
  }
  // Judged anew each time: what this machine's addresses are changes.
  auto allowed = addresses_;
  if (const auto refusal = drop_refused(allowed); !refusal.empty()) return op->fail(refusal);
  addresses_ = std::move(allowed);
  const auto stream = op->stream;
  auto session = std::make_shared<ClientSession>(shared_from_this(), std::move(op));
  if (stream) stream->session = session;
  sessions_.insert(session);
  if (session->is_exchange()) ++exchange_connections_;
  connect(session, 0);
}

std::string ClientPool::drop_refused(std::vector<Address>& addresses) const {
  if (!options_.refuse_address) return {};
  std::string refusal;
  std::erase_if(addresses, [&](const Address& one) {
    const auto address = SocketAddress::of(*reinterpret_cast<const sockaddr*>(one.bytes.data()));
    auto why = address ? options_.refuse_address(*address) : std::string("neither IPv4 nor IPv6");
    if (why.empty()) return false;
    refusal = std::move(why);
    return true;
  });
  return addresses.empty() ? refusal : std::string();
}

void ClientPool::resolved(std::vector<Address> addresses, std::string problem) {
  is_resolving_ = false;
  if (auto refusal = drop_refused(addresses); !refusal.empty()) problem = std::move(refusal);
  addresses_ = std::move(addresses);
  addresses_until_ = reactor_->now() + kAddressesKept;
  for (auto& op : std::exchange(waiting_for_address_, {})) {
    if (is_shut_down_)
      op->fail("the client is closed");
    else if (addresses_.empty())
      op->fail(problem);
    else
      open_connection(std::move(op));
  }
  run_queue();
}

bool ClientPool::connect(const std::shared_ptr<ClientSession>& session, std::size_t index) {
  if (index >= addresses_.size() || is_shut_down_) return false;
  const auto& address = addresses_[index].bytes;
  SSL* ssl = options_.tls ? new_client_session(options_.tls.get(), options_.server_name, options_.verify) : nullptr;
  auto connection =
      Connection::connecting(*reactor_, reinterpret_cast<const sockaddr*>(address.data()), static_cast<unsigned>(address.size()), ssl);
  session->attach(connection);
  connection->start(session);
  return true;
}

void ClientPool::release(const std::shared_ptr<ClientSession>& session) {
  if (queue_.empty() || is_shut_down_) {
    idle_.push_back(session);
    return;
  }
  auto op = std::move(queue_.front());
  queue_.pop_front();
  session->begin(std::move(op));
}

void ClientPool::gone(const std::shared_ptr<ClientSession>& session, const ClientOpPtr& op, bool repeat) {
  if (sessions_.erase(session) > 0 && session->is_exchange()) --exchange_connections_;
  std::erase(idle_, session);
  if (op && repeat && !is_shut_down_) open_connection(op);
  if (!is_shut_down_) run_queue();
}

void ClientPool::cancel(const ClientOpPtr& op) {
  if (std::erase(waiting_for_address_, op) > 0) return op->fail("cancelled");
  for (const auto& session : sessions_) {
    if (session->op() != op) continue;
    const auto keep = session;
    return keep->close("cancelled");
  }
}

void ClientPool::resume(const ClientOpPtr& op) {
  op->stream->is_paused = false;
  if (const auto session = op->stream->session.lock(); session && session->op() == op) session->resume();
}

void ClientPool::shut_down() {
  is_shut_down_ = true;
  for (const auto& op : std::exchange(queue_, {})) op->fail("the client is closed");
  for (const auto& op : std::exchange(waiting_for_address_, {})) op->fail("the client is closed");
  for (const auto& session : std::vector(sessions_.begin(), sessions_.end())) session->close("the client is closed");
}

// --- ClientSession ---

ClientSession::ClientSession(std::shared_ptr<ClientPool> pool, ClientOpPtr op)
    : pool_(std::move(pool)),
      op_(std::move(op)),
      parser_(limits_of(op_->kind, *pool_)),
      is_exchange_(op_->kind == ClientOp::Kind::kExchange),
      connect_until_(pool_->reactor().now() + kConnectTimeout) {
  parser_.expect(op_->method);
}

void ClientSession::on_open() {
  was_open_ = true;
  if (const auto& node = pool_->options().node_name; !node.empty()) {
    constexpr std::string_view kNodes = "system:node:";
    const auto peer = connection_->peer();
    if (peer && peer->common_name.starts_with(kNodes) && peer->common_name != fmt::format("{}{}", kNodes, node))
      return connection_->close(fmt::format("what answers there is {}, not node {}", peer->common_name, node));
  }
  // A replayable request is kept for a second sending.
  connection_->write(op_->is_replayable ? std::string(op_->wire) : std::move(op_->wire));
}

void ClientSession::begin(ClientOpPtr op) {
  op_ = std::move(op);
  is_reused_ = true;
  parser_.expect(op_->method);
  connection_->write(op_->is_replayable ? std::string(op_->wire) : std::move(op_->wire));
  connection_->flush();
}

bool ClientSession::is_usable() const {
  if (!connection_ || !connection_->is_open() || connection_->at_eof()) return false;
  // The peer may have closed since; asking the kernel is worth it only when there was time for that.
  return pool_->reactor().now() - idle_since_ < std::chrono::seconds(1) || !connection_->has_event_waiting();
}

void ClientSession::close(const std::string& why) {
  const auto keep = shared_from_this();
  if (connection_) connection_->close(why);
}

std::size_t ClientSession::on_input(std::string_view data) {
  if (!op_) {
    // Bytes that nobody asked for: the peer and we disagree about where a message ends.
    connection_->close("unexpected data on an idle connection");
    return data.size();
  }
  std::size_t at = 0;
  while (at < data.size() && op_) {
    if (is_paused()) return at;
    at += parser_.feed(data.substr(at));
    if (op_->kind == ClientOp::Kind::kUpgrade && parser_.state() == ResponseParser::State::kDone && parser_.response().status == 101) {
      hand_over();
      return at;
    }
    if (op_->kind == ClientOp::Kind::kStream) progress_stream();
    if (!op_) break;
    if (parser_.state() == ResponseParser::State::kFailed) {
      connection_->close(parser_.failure().message);
      return data.size();
    }
    if (parser_.state() == ResponseParser::State::kDone) {
      finish(at < data.size());
      return data.size();
    }
  }
  return data.size();
}

void ClientSession::resume() {
  const auto keep = shared_from_this();
  if (!connection_ || !connection_->is_open()) return;
  connection_->resume_input();
  if (eof_waits_ && !is_paused() && connection_ && !connection_->has_unread_input()) on_eof();
}

void ClientSession::progress_stream() {
  const auto state = parser_.state();
  if (state != ResponseParser::State::kBody && state != ResponseParser::State::kDone) return;
  auto& response = parser_.response();
  const auto stream = op_->stream;
  GateLock lock(stream->gate);
  if (stream->is_cancelled) {
    response.body.clear();
    return;
  }
  if (!std::exchange(header_told_, true) && stream->callbacks.on_header) stream->callbacks.on_header(response.status, response.headers);
  if (!response.body.empty() && !stream->is_cancelled && stream->callbacks.on_data) stream->callbacks.on_data(response.body);
  response.body.clear();
}

void ClientSession::finish(bool leftover) {
  const auto keep = shared_from_this();
  const auto op = std::exchange(op_, nullptr);
  auto response = std::move(parser_.response());
  if (parser_.keep_alive() && !leftover && is_exchange_ && !connection_->at_eof()) {
    idle_since_ = pool_->reactor().now();
    pool_->release(keep);
  } else {
    connection_->close("");
  }
  switch (op->kind) {
    case ClientOp::Kind::kExchange:
      std::exchange(op->done, nullptr)(std::move(response));
      break;
    case ClientOp::Kind::kUpgrade:
      std::exchange(op->upgraded, nullptr)(nullptr, std::move(response));
      break;
    case ClientOp::Kind::kStream:
      op->fail("");
      break;
  }
}

void ClientSession::hand_over() {
  const auto keep = shared_from_this();
  const auto op = std::exchange(op_, nullptr);
  const auto connection = std::exchange(connection_, nullptr);
  auto driver = std::make_shared<RawDriver>();
  connection->set_driver(driver);
  driver->attach(connection);
  pool_->gone(keep, nullptr, false);
  std::exchange(op->upgraded, nullptr)(make_raw_stream(pool_->reactor_ptr(), driver), std::move(parser_.response()));
}

void ClientSession::on_eof() {
  const auto keep = shared_from_this();
  if (!op_) return connection_->close("");
  eof_waits_ = is_paused() && connection_->has_unread_input();
  if (eof_waits_) return;
  parser_.end_of_input();
  if (parser_.state() == ResponseParser::State::kDone)
    finish(true);
  else
    connection_->close(parser_.failure().message);
}

void ClientSession::on_tick(MonotonicTime now) {
  const auto keep = shared_from_this();
  if (!was_open_ && now > connect_until_) return connection_->close("connection timed out");
  if (op_ && now > op_->deadline) return connection_->close("timeout awaiting the response");
  if (!op_ && now - idle_since_ > kIdleTimeout) connection_->close("");
}

void ClientSession::on_closed(const std::string& why) {
  const auto keep = shared_from_this();
  connection_.reset();
  if (!was_open_ && op_ && pool_->connect(keep, ++address_index_)) return;
  const auto op = std::exchange(op_, nullptr);
  const bool repeat = op && is_reused_ && op->is_replayable && !parser_.has_started() && why != "cancelled";
  pool_->gone(keep, op, repeat);
  if (op && !repeat) {
    op->fail(was_open_ ? why : fmt::format("cannot connect to {}: {}", pool_->options().url.host_header, why));
  }
}

}  // namespace berth::net
