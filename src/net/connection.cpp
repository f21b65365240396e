#include "net/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/peer.h"

namespace berth::net {
namespace {

constexpr std::size_t kReadBuffer = 64 * 1024;
constexpr std::size_t kTlsRecord = 16 * 1024;
/// Ciphertext handed to the kernel in one call, about.
constexpr std::size_t kSendAtOnce = 128 * 1024;
/// Reads of one connection in one turn: the others of the reactor wait meanwhile.
constexpr int kReadsATurn = 4;
constexpr auto kLingerTime = std::chrono::seconds(2);
/// How long the last bytes of a closed connection may wait for a peer that takes none of them.
constexpr auto kUnreadEnd = std::chrono::seconds(60);
/// Shared pieces below this are copied into one segment with their neighbours.
constexpr std::size_t kCopyBelow = 512;
constexpr std::size_t kJoinUpTo = 16 * 1024;

char* read_buffer() {
  static thread_local std::unique_ptr<char[]> buffer(new char[kReadBuffer]);
  return buffer.get();
}

char* record_buffer() {
  static thread_local std::unique_ptr<char[]> buffer(new char[kTlsRecord]);
  return buffer.get();
}

/// The buffer of ciphertext that a connection of this thread borrows while it sends; idle connections hold none.
std::string& spare_ciphertext() {
  static thread_local std::string buffer;
  return buffer;
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void set_socket_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  // A peer whose machine vanished is noticed within about a minute, as client-go and the API server have it.
  const int idle_seconds = 30, interval_seconds = 10, probes = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace

std::shared_ptr<Connection> Connection::accepted(Reactor& reactor, int fd, SSL_CTX* tls, std::string remote_address) {
  std::shared_ptr<Connection> connection(new Connection(reactor, fd));
  connection->remote_address_ = std::move(remote_address);
  connection->is_server_ = true;
  set_socket_options(fd);
  if (tls != nullptr) {
    connection->ssl_ = SSL_new(tls);
    if (connection->ssl_ == nullptr) return nullptr;
    SSL_set_fd(connection->ssl_, fd);
    SSL_set0_wbio(connection->ssl_, new_ciphertext_queue(connection.get()));
    SSL_set_accept_state(connection->ssl_);
  }
  return connection;
}

std::shared_ptr<Connection> Connection::connecting(Reactor& reactor, const sockaddr* address, unsigned address_size, SSL* ssl) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  std::shared_ptr<Connection> connection(new Connection(reactor, fd));
  connection->ssl_ = ssl;
  connection->state_ = State::kConnecting;
  if (fd < 0) return connection;
  set_socket_options(fd);
  if (ssl != nullptr) {
    SSL_set_fd(ssl, fd);
    SSL_set0_wbio(ssl, new_ciphertext_queue(connection.get()));
    SSL_set_connect_state(ssl);
  }
  // An immediate failure shows again as SO_ERROR or EPOLLHUP: one path for all.
  if (::connect(fd, address, address_size) != 0 && errno != EINPROGRESS) {
    connection->remote_address_ = errno_text(errno);
    ::close(fd);
    connection->fd_ = -1;
  }
  return connection;
}

Connection::~Connection() {
  if (ssl_ != nullptr) SSL_free(ssl_);
  if (fd_ >= 0) ::close(fd_);
}

void Connection::start(std::shared_ptr<Driver> driver) {
  driver_ = std::move(driver);
  write_progress_ = reactor_.now();
  if (fd_ < 0) {
    // Told later: the caller is still setting itself up.
    reactor_.post(
        [self = shared_from_this()] { self->close(self->remote_address_.empty() ? "no socket to be had" : self->remote_address_); });
    return;
  }
  interest_ = state_ == State::kConnecting ? EPOLLOUT : EPOLLIN;
  registered_ = true;
  reactor_.add(fd_, interest_, shared_from_this());
  if (state_ == State::kHandshake && ssl_ == nullptr) open();
}

void Connection::set_driver(std::shared_ptr<Driver> driver) {
  driver_ = std::move(driver);
  if (!offering_) reactor_.post([self = shared_from_this()] { self->resume_input(); });
}

std::optional<PeerCertificate> Connection::peer() const { return ssl_ == nullptr ? std::nullopt : verified_peer(ssl_); }

std::string_view Connection::application_protocol() const {
  if (ssl_ == nullptr) return {};
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

void Connection::on_events(std::uint32_t events) {
  const auto self = shared_from_this();
  if (state_ == State::kConnecting) finish_connect();
  if (waits_for_turn_) return;
  if (state_ == State::kHandshake) {
    if (is_server_ && !reactor_.take_slow_turn()) return queue_handshake();
    handshake();
  }
  if (state_ == State::kLingering) return linger();
  if (state_ != State::kOpen) return;
  if ((events & EPOLLOUT) != 0) flush();
  if (state_ != State::kOpen) return;
  const bool hung_up = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if ((hung_up && eof_) || (events & EPOLLERR) != 0) return close("connection reset: " + socket_error());
  if ((events & (EPOLLIN | EPOLLHUP)) != 0) read_all();
}

void Connection::on_tick(MonotonicTime now) {
  if (state_ == State::kLingering && now >= linger_until_) return close("");
  if (driver_ && state_ != State::kClosed) {
    const auto driver = driver_;
    driver->on_tick(now);
  }
  if (state_ != State::kOpen) return;
  if (closing_ && queued_bytes() > 0 && now - write_progress_ > kUnreadEnd) return close("the peer does not read the end");
  // While nothing is read no event tells of the end.
  if (paused_ && !eof_ && !hangup_told_ && peer_has_ended()) {
    hangup_told_ = true;
    const auto driver = driver_;
    driver->on_hangup();
  }
}

void Connection::on_reactor_stop() {
  registered_ = false;
  close("shutting down");
}

std::string Connection::socket_error() const {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? "by peer" : errno_text(error);
}

void Connection::finish_connect() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return close(errno_text(error));
  state_ = State::kHandshake;
  if (ssl_ == nullptr) open();
}

void Connection::queue_handshake() {
  waits_for_turn_ = true;
  interest_ = 0;
  reactor_.modify(fd_, this, 0);
  reactor_.run_slow([self = shared_from_this()] {
    self->waits_for_turn_ = false;
    if (self->state_ == State::kHandshake) self->handshake();
  });
}

void Connection::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) return open();
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_READ) {
    want_write_ = !send_ciphertext();
    return update_interest();
  }
  switch (error) {
    case SSL_ERROR_SSL:
      if (is_plain_http_error()) {
        static constexpr std::string_view kAnswer =
            "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nThis server speaks HTTPS; the request was plain HTTP.\n";
        [[maybe_unused]] const auto sent = ::send(fd_, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
      }
      send_ciphertext();  // The alert that tells the peer why.
      return close("TLS handshake failed: " + take_tls_error(ssl_));
    default:
      return close("TLS handshake failed: the connection was closed");
  }
}

void Connection::open() {
  state_ = State::kOpen;
  want_write_ = false;
  update_interest();
  const auto driver = driver_;
  driver->on_open();
  if (state_ == State::kOpen) flush();  // Also the end of the handshake.
  // The last flight of the handshake may have brought the first request with it, into OpenSSL's buffer where epoll does not see it.
  if (state_ == State::kOpen && ssl_ != nullptr && SSL_has_pending(ssl_) == 1) read_all();
}

// --- reading ---

std::size_t Connection::read_some(char* to, std::size_t size, bool& more) {
  more = false;
  if (ssl_ == nullptr) {
    const auto got = ::recv(fd_, to, size, 0);
    if (got > 0) {
      more = static_cast<std::size_t>(got) == size;
      return static_cast<std::size_t>(got);
    }
    if (got == 0)
      eof_ = true;
    else if (!would_block())
      close(errno_text(errno));
    return 0;
  }
  std::size_t filled = 0;
  while (filled < size) {
    ERR_clear_error();
    const int got = SSL_read(ssl_, to + filled, static_cast<int>(size - filled));
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
      more = SSL_has_pending(ssl_) == 1;
      if (!more) break;
      continue;
    }
    more = false;
    const int error = SSL_get_error(ssl_, got);
    if (error == SSL_ERROR_WANT_READ) break;
    if (error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_SYSCALL && errno == 0)) {
      eof_ = true;
    } else if (filled == 0) {
      close(error == SSL_ERROR_SYSCALL ? errno_text(errno) : "TLS: " + take_tls_error(ssl_));
    }
    break;
  }
  return filled;
}

void Connection::read_all() {
  bool more = true;
  for (int turn = 0; more && turn < kReadsATurn; ++turn) {
    if (state_ != State::kOpen || eof_ || closing_ || paused_) break;
    char* buffer = read_buffer();
    const auto size = read_some(buffer, kReadBuffer, more);
    if (size > 0) offer({buffer, size});
  }
  if (state_ != State::kOpen) return;
  if (more && !paused_ && !closing_ && !eof_) {
    // What OpenSSL holds back raises no event.
    reactor_.post([self = shared_from_this()] {
      if (self->state_ == State::kOpen && !self->paused_) self->read_all();
    });
  }
  if (eof_ && !closing_) handle_eof();
  if (state_ == State::kOpen) flush();
}

void Connection::offer(std::string_view data) {
  offering_ = true;
  const bool was_empty = in_.empty();
  if (!was_empty) in_.append(data);
  std::string_view rest = was_empty ? data : std::string_view(in_);
  while (state_ == State::kOpen && !closing_) {
    const auto driver = driver_;
    rest.remove_prefix(driver->on_input(rest));
    if (driver == driver_) break;  // otherwise it handed over to another one, who gets the rest
  }
  offering_ = false;
  if (state_ != State::kOpen || closing_) rest = {};
  if (was_empty)
    in_.assign(rest);
  else
    in_.erase(0, in_.size() - rest.size());
  if (in_.empty() && in_.capacity() > kMaxUnconsumed) in_.shrink_to_fit();
  paused_ = in_.size() >= kMaxUnconsumed;
  update_interest();
}

void Connection::resume_input() {
  if (state_ != State::kOpen || offering_ || closing_) return;
  const auto self = shared_from_this();
  const bool was_paused = paused_;
  if (!in_.empty()) offer({});
  if (state_ != State::kOpen) return;
  if (was_paused && !paused_ && !eof_) return read_all();
  flush();
}

void Connection::handle_eof() {
  update_interest();
  const auto driver = driver_;
  driver->on_eof();
}

bool Connection::peer_has_ended() const {
  pollfd waiting{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&waiting, 1, 0) > 0;
}

bool Connection::has_event_waiting() const {
  char byte = 0;
  return ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || !would_block();
}

// --- writing ---

void Connection::write(std::string bytes) {
  if (state_ == State::kClosed || closing_ || bytes.empty()) return;
  if (queued_bytes() == 0) write_progress_ = reactor_.now();
  out_bytes_ += bytes.size();
  if (!out_.empty() && !out_.back().shared && out_.back().own.size() + bytes.size() <= kJoinUpTo)
    out_.back().own.append(bytes);
  else
    out_.push_back({std::move(bytes), nullptr, 0});
}

void Connection::write(Bytes bytes) {
  if (state_ == State::kClosed || closing_ || bytes->empty()) return;
  if (bytes->size() < kCopyBelow) return write(std::string(*bytes));
  if (queued_bytes() == 0) write_progress_ = reactor_.now();
  out_bytes_ += bytes->size();
  out_.push_back({{}, std::move(bytes), 0});
}

void Connection::write(Bytes bytes, std::size_t at, std::size_t size) {
  if (at == 0 && size == bytes->size()) return write(std::move(bytes));
  if (state_ == State::kClosed || closing_ || size == 0) return;
  if (size < kCopyBelow) return write(bytes->substr(at, size));
  if (queued_bytes() == 0) write_progress_ = reactor_.now();
  out_bytes_ += size;
  out_.push_back({{}, std::move(bytes), at, at + size});
}

void Connection::flush() {
  if (state_ != State::kOpen) return;
  const bool had_output = queued_bytes() > 0;
  want_write_ = had_output && !(ssl_ != nullptr ? flush_tls() : flush_plain());
  if (state_ != State::kOpen) return;
  update_interest();
  if (queued_bytes() == 0 && closing_) {
    state_ = State::kLingering;
    linger_until_ = reactor_.now() + kLingerTime;
    if (ssl_ != nullptr) {
      ERR_clear_error();
      SSL_shutdown(ssl_);
      if (!send_ciphertext() && state_ == State::kClosed) return;
    }
    ::shutdown(fd_, SHUT_WR);
    interest_ = EPOLLIN;
    reactor_.modify(fd_, this, interest_);
    if (eof_) return close("");
    return linger();
  }
  if (had_output) {
    const auto driver = driver_;
    driver->on_output();
  }
}

/// True when all is written; false when the socket is full or the connection closed.
bool Connection::flush_tls() {
  if (ciphertext_.capacity() < spare_ciphertext().capacity()) {
    spare_ciphertext().assign(ciphertext_);
    ciphertext_.swap(spare_ciphertext());
  }
  bool all_sent = send_ciphertext();
  while (all_sent && !out_.empty()) {
    while (!out_.empty() && ciphertext_.size() < kSendAtOnce) {
      // Small pieces share a record.
      std::string_view piece = out_.front().rest();
      if (piece.size() < kTlsRecord && out_.size() > 1) {
        char* record = record_buffer();
        std::size_t filled = 0;
        for (auto it = out_.begin(); it != out_.end() && filled < kTlsRecord; ++it) {
          const auto part = it->rest().substr(0, kTlsRecord - filled);
          std::memcpy(record + filled, part.data(), part.size());
          filled += part.size();
        }
        piece = {record, filled};
      }
      ERR_clear_error();
      const int sent = SSL_write(ssl_, piece.data(), static_cast<int>(std::min(piece.size(), 4 * kTlsRecord)));
      if (sent <= 0) {
        close("TLS: " + take_tls_error(ssl_));
        return false;
      }
      took(static_cast<std::size_t>(sent));
    }
    all_sent = send_ciphertext();
  }
  if (ciphertext_.empty() && state_ != State::kClosed) {
    std::string().swap(spare_ciphertext());
    ciphertext_.swap(spare_ciphertext());
  }
  return all_sent;
}

bool Connection::send_ciphertext() {
  while (ciphertext_at_ < ciphertext_.size()) {
    const auto sent = ::send(fd_, ciphertext_.data() + ciphertext_at_, ciphertext_.size() - ciphertext_at_, MSG_NOSIGNAL);
    if (sent < 0) {
      if (!would_block()) close(errno_text(errno));
      return false;
    }
    write_progress_ = reactor_.now();
    ciphertext_at_ += static_cast<std::size_t>(sent);
  }
  ciphertext_.clear();
  ciphertext_at_ = 0;
  return true;
}

int Connection::take_ciphertext(BIO* bio, const char* data, int size) {
  static_cast<Connection*>(BIO_get_data(bio))->ciphertext_.append(data, static_cast<std::size_t>(size));
  return size;
}

BIO* Connection::new_ciphertext_queue(Connection* connection) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ciphertext queue");
    BIO_meth_set_write(made, take_ciphertext);
    // OpenSSL flushes after each flight of a handshake; we send when it returns.
    BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH ? 1 : 0; });
    return made;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, connection);
  BIO_set_init(bio, 1);
  return bio;
}

bool Connection::flush_plain() {
  while (!out_.empty()) {
    std::array<iovec, 32> parts;
    std::size_t count = 0, size = 0;
    for (auto it = out_.begin(); it != out_.end() && count < parts.size(); ++it, ++count) {
      const auto rest = it->rest();
      parts[count] = {const_cast<char*>(rest.data()), rest.size()};
      size += rest.size();
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const auto sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (would_block()) return false;
      close(errno_text(errno));
      return false;
    }
    took(static_cast<std::size_t>(sent));
    if (static_cast<std::size_t>(sent) < size) return false;
  }
  return true;
}

void Connection::took(std::size_t size) {
  if (ssl_ == nullptr) write_progress_ = reactor_.now();
  out_bytes_ -= size;
  while (size > 0) {
    auto& front = out_.front();
    const auto rest = front.rest().size();
    if (size < rest) {
      front.at += size;
      return;
    }
    size -= rest;
    out_.pop_front();
  }
}

// --- the end ---

void Connection::close_after_flush() {
  if (closing_ || state_ == State::kClosed) return;
  if (state_ != State::kOpen) return close("");
  closing_ = true;
  in_.clear();
  if (!offering_)
    flush();
  else
    reactor_.post([self = shared_from_this()] { self->flush(); });
}

void Connection::linger() {
  for (int turn = 0; turn < kReadsATurn; ++turn) {
    const auto got = ::recv(fd_, read_buffer(), kReadBuffer, 0);
    if (got > 0) continue;
    if (got < 0 && would_block()) return;
    return close("");
  }
}

void Connection::close(const std::string& why) {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  state_ = State::kClosed;
  if (std::exchange(registered_, false)) reactor_.remove(fd_, this);
  if (ssl_ != nullptr) {
    if (why.empty() && !closing_) {
      ERR_clear_error();
      SSL_shutdown(ssl_);
      // The goodbye, if the socket takes it; nobody waits for it.
      [[maybe_unused]] const auto sent =
          ::send(fd_, ciphertext_.data() + ciphertext_at_, ciphertext_.size() - ciphertext_at_, MSG_NOSIGNAL);
    }
    SSL_free(std::exchange(ssl_, nullptr));
  }
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  out_.clear();
  out_bytes_ = 0;
  ciphertext_.clear();
  ciphertext_at_ = 0;
  if (const auto driver = std::move(driver_)) driver->on_closed(why);
}

void Connection::update_interest() {
  if (state_ == State::kClosed || state_ == State::kLingering || !registered_) return;
  const bool read = !eof_ && !paused_ && !closing_;
  const std::uint32_t wanted = (read ? static_cast<std::uint32_t>(EPOLLIN) : 0) | (want_write_ ? static_cast<std::uint32_t>(EPOLLOUT) : 0);
  if (wanted == interest_) return;
  interest_ = wanted;
  reactor_.modify(fd_, this, wanted);
}

}  // namespace berth::net
