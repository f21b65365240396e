// The server's side of one HTTP/1.1 connection: requests in, one after the other; answers out, from any thread.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/http_parser.h"
#include "net/raw_stream.h"
#include "net/server.h"

namespace berth::net {

class ServerSession;

/// What the handler's writer and the session share of one exchange. The writer may outlive the session.
struct ExchangeState {
  std::shared_ptr<Reactor> reactor;
  std::weak_ptr<ServerSession> session;  ///< Locked on the reactor's thread only.
  std::string method;
  bool keep_alive = true, chunked = true, accepts_gzip = false;

  std::mutex mutex;  ///< Guards what follows.
  bool answered = false, is_stream = false, finished = false, gone = false, flush_posted = false;
  bool client_ended = false;  ///< It sends nothing more; whether it still reads is not known.
  std::vector<Bytes> pending;
  std::function<void()> on_close, on_drain;

  std::atomic<std::size_t> pending_bytes{0};     ///< In `pending`.
  std::atomic<std::size_t> connection_bytes{0};  ///< In the connection's queue.
};

/// An answer ready for the wire.
struct WireAnswer {
  std::string head;
  std::vector<Bytes> body;
  bool closes = false;  ///< The connection ends with it.
};

struct SessionTimeouts {
  std::chrono::milliseconds header, idle, write;
};

/// What the bodies of all sessions of a server share.
struct BodyRules {
  std::size_t max_bytes = SIZE_MAX;
  std::function<bool(const HttpRequest& head)> may_send;
  std::atomic<std::size_t> bytes{0};  ///< Kept of requests that are not complete.
};

class ServerSession final : public Driver, public std::enable_shared_from_this<ServerSession> {
 public:
  ServerSession(Handler& handler, std::shared_ptr<Reactor> reactor, const ParserLimits& limits, SessionTimeouts timeouts,
                std::shared_ptr<BodyRules> bodies);
  ~ServerSession() override { count_body(0); }
  /// Called once each: `gone` when the session is over (closed, or handed on by an upgrade), `freed` when its connection is closed.
  void set_on_gone(std::function<void()> gone, std::function<void()> freed) {
    on_gone_ = std::move(gone);
    on_freed_ = std::move(freed);
  }
  void attach(std::shared_ptr<Connection> connection);

  void on_open() override;
  std::size_t on_input(std::string_view data) override;
  void on_eof() override;
  void on_hangup() override;
  void on_output() override;
  void on_tick(MonotonicTime now) override;
  void on_closed(const std::string& why) override;

  // For the exchange's writer, on the reactor's thread. An exchange that is not the present one is ignored.
  void answer(const std::shared_ptr<ExchangeState>& exchange, WireAnswer answer);
  void start_stream(const std::shared_ptr<ExchangeState>& exchange, std::string head);
  void flush_stream(const std::shared_ptr<ExchangeState>& exchange);
  /// False: there is nothing to switch any more.
  bool switch_protocol(const std::shared_ptr<ExchangeState>& exchange, std::string head, const std::shared_ptr<RawDriver>& driver);
  void abort(const std::shared_ptr<ExchangeState>& exchange);
  /// Ends the exchange when the client has ended its side and the handler wants to know of that instead of answering at length.
  void end_if_abandoned(const std::shared_ptr<ExchangeState>& exchange);

  /// Ends when nothing is under way; then streams are ended in order when `end_streams`.
  void wind_down(bool end_streams);
  /// An exchange is under way that is not a stream.
  [[nodiscard]] bool is_answering() const;

 private:
  void dispatch();
  void refuse(const ParseFailure& failure);
  /// Why no more of the body under way is taken; status 0: go on.
  ParseFailure check_body();
  void count_body(std::size_t bytes);
  void complete(bool closes);
  void resume();
  void note_output();
  void let_go(const std::shared_ptr<ExchangeState>& exchange);

  Handler& handler_;
  std::shared_ptr<Reactor> reactor_;
  SessionTimeouts timeouts_;
  std::function<void()> on_gone_, on_freed_;
  RequestParser parser_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<ExchangeState> current_;
  std::optional<PeerCertificate> peer_;
  std::shared_ptr<BodyRules> bodies_;
  std::size_t counted_bytes_ = 0;  ///< Of this session in bodies_->bytes.
  bool may_send_body_ = false;     ///< Asked for the request under way.
  bool handling_ = false, eof_ = false, winding_down_ = false, request_started_ = false, continue_sent_ = false;
  MonotonicTime waiting_since_{};
};

/// The writer handed to the handler.
std::shared_ptr<ResponseWriter> make_exchange_writer(std::shared_ptr<ExchangeState> state);

}  // namespace berth::net
