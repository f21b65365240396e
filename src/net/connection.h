// One TCP connection, plain or under TLS, on one reactor: non-blocking reads, a write queue, and the end of both.
//
//   kConnecting --> kHandshake --> kOpen --> kLingering --> kClosed
//        (client only)  (TLS only)     close_after_flush()
//
// Every state can fall to kClosed. What the connection is used for is its driver's business; an upgrade swaps the driver.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "net/reactor.h"
#include "net/tls.h"

struct sockaddr;
using BIO = struct bio_st;

namespace berth::net {

/// The user of a connection. All calls come on the reactor's thread.
class Driver {
 public:
  virtual ~Driver() = default;
  /// The connection is usable.
  virtual void on_open() {}
  /// More input, not consumed ones first. Returns how many bytes were consumed; the rest is offered again with the next input or
  /// resume_input.
  virtual std::size_t on_input(std::string_view data) = 0;
  /// The peer will send nothing more.
  virtual void on_eof() = 0;
  /// The peer has ended or gone while input of it waits unread: on_eof comes when that is read, which may be never.
  virtual void on_hangup() {}
  /// The socket took bytes from the write queue.
  virtual void on_output() {}
  virtual void on_tick(MonotonicTime /*now*/) {}
  /// Once, last. `why` is empty when this side closed in order.
  virtual void on_closed(const std::string& why) = 0;
};

class Connection final : public EventSink, public std::enable_shared_from_this<Connection> {
 public:
  /// Takes over an accepted socket. `tls` may be null.
  static std::shared_ptr<Connection> accepted(Reactor& reactor, int fd, SSL_CTX* tls, std::string remote_address);
  /// Starts to connect; a failure comes as on_closed. `ssl` (may be null) is taken over.
  static std::shared_ptr<Connection> connecting(Reactor& reactor, const sockaddr* address, unsigned address_size, SSL* ssl);
  ~Connection() override;

  /// Registers with the reactor and starts.
  void start(std::shared_ptr<Driver> driver);
  /// Replaces the driver; unread input is offered to the new one.
  void set_driver(std::shared_ptr<Driver> driver);

  /// Queues bytes; flush sends them.
  void write(std::string bytes);
  void write(Bytes bytes);
  /// Queues a part of shared bytes.
  void write(Bytes bytes, std::size_t at, std::size_t size);
  /// Writes as much as the socket takes; the rest follows by itself.
  void flush();
  [[nodiscard]] std::size_t queued_bytes() const { return out_bytes_ + ciphertext_.size() - ciphertext_at_; }
  /// When the socket last took something, or the queue was empty.
  [[nodiscard]] MonotonicTime last_write_progress() const { return write_progress_; }

  /// The kernel holds input, an end or an error that was not read yet.
  [[nodiscard]] bool has_event_waiting() const;
  [[nodiscard]] bool has_unread_input() const { return !in_.empty(); }
  /// Offers input that was not consumed, and reads on when reading had paused.
  void resume_input();
  /// Sends what is queued, ends the sending side, reads (and drops) for up to two seconds until the peer ends too, so that it can
  /// read the last answer, then closes.
  void close_after_flush();
  void close(const std::string& why);
  [[nodiscard]] bool is_closed() const { return state_ == State::kClosed; }
  [[nodiscard]] bool is_open() const { return state_ == State::kOpen; }
  [[nodiscard]] bool at_eof() const { return eof_; }
  [[nodiscard]] Reactor& reactor() const { return reactor_; }
  [[nodiscard]] const std::string& remote_address() const { return remote_address_; }
  [[nodiscard]] std::optional<PeerCertificate> peer() const;
  [[nodiscard]] bool is_encrypted() const { return ssl_ != nullptr; }
  /// What ALPN has chosen; empty when nothing.
  [[nodiscard]] std::string_view application_protocol() const;

  void on_events(std::uint32_t events) override;
  void on_tick(MonotonicTime now) override;
  void on_reactor_stop() override;

 private:
  enum class State { kConnecting, kHandshake, kOpen, kLingering, kClosed };
  struct Segment {
    std::string own;
    Bytes shared;
    std::size_t at = 0;
    std::size_t end = std::string::npos;  ///< Of `shared`, when a part of it is meant.
    [[nodiscard]] std::string_view rest() const { return std::string_view(shared ? *shared : own).substr(at, end - at); }
  };

  Connection(Reactor& reactor, int fd) : reactor_(reactor), fd_(fd) {}
  void finish_connect();
  void handshake();
  /// Waits for its turn among the handshakes of a flood.
  void queue_handshake();
  void open();
  void read_all();
  /// Bytes read; 0 at the end, when nothing is there, or when the connection closed.
  std::size_t read_some(char* to, std::size_t size, bool& more);
  void offer(std::string_view data);
  void handle_eof();
  bool flush_tls();
  /// Sends what OpenSSL made; false when the socket is full or the connection closed.
  bool send_ciphertext();
  /// Gives a record that OpenSSL made to the queue of ciphertext.
  static int take_ciphertext(BIO* bio, const char* data, int size);
  static BIO* new_ciphertext_queue(Connection* connection);
  bool flush_plain();
  void took(std::size_t size);
  void linger();
  [[nodiscard]] bool peer_has_ended() const;
  void update_interest();
  std::string socket_error() const;

  static constexpr std::size_t kMaxUnconsumed = 64 * 1024;

  Reactor& reactor_;
  int fd_;
  SSL* ssl_ = nullptr;
  State state_ = State::kHandshake;
  bool registered_ = false, eof_ = false, want_write_ = false, paused_ = false, closing_ = false, offering_ = false,
       waits_for_turn_ = false, is_server_ = false, hangup_told_ = false;
  std::uint32_t interest_ = 0;
  std::shared_ptr<Driver> driver_;
  std::string in_;
  std::deque<Segment> out_;
  std::size_t out_bytes_ = 0;
  /// Records on their way: many go to the kernel in one call. Bounded, as plain text is encrypted only while this is short.
  std::string ciphertext_;
  std::size_t ciphertext_at_ = 0;
  MonotonicTime write_progress_{}, linger_until_{};
  std::string remote_address_;
};

}  // namespace berth::net
