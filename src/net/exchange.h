// One request and its answer, on the server's side, whatever version of HTTP it came by: what the handler's writer and the session share.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "net/body_gate.h"
#include "net/connection.h"
#include "net/http.h"
#include "net/http_parser.h"
#include "net/raw_stream.h"

namespace berth::net {

class Session;

/// Level 1, as the API server has it; nullptr when zlib fails.
Bytes gzip(const std::vector<Bytes>& parts);

/// Threading: what the mutex guards from anywhere, the rest set before the handler sees it.
struct ExchangeState {
  std::shared_ptr<Reactor> reactor;
  std::weak_ptr<Session> session;  ///< Locked on the reactor's thread only.
  std::string method;
  bool keep_alive = true, chunked = true, accepts_gzip = false;
  bool is_http2 = false;
  std::int32_t stream_id = 0;                        ///< Of HTTP/2.
  std::shared_ptr<std::atomic<std::size_t>> living;  ///< Counts these; may be null.

  Mutex mutex;  ///< Guards what follows.
  bool answered BERTH_GUARDED_BY(mutex) = false, is_stream BERTH_GUARDED_BY(mutex) = false, finished BERTH_GUARDED_BY(mutex) = false,
                gone BERTH_GUARDED_BY(mutex) = false, flush_posted BERTH_GUARDED_BY(mutex) = false;
  bool client_ended BERTH_GUARDED_BY(mutex) = false;  ///< It sends nothing more; whether it still reads is not known.
  std::vector<Bytes> pending BERTH_GUARDED_BY(mutex);
  std::function<void()> on_close BERTH_GUARDED_BY(mutex), on_drain BERTH_GUARDED_BY(mutex);
  bool has_body BERTH_GUARDED_BY(mutex) = true;  ///< Of a stream: without one nothing follows its head, not even the last chunk.

  std::atomic<std::size_t> pending_bytes{0};     ///< In `pending`.
  std::atomic<std::size_t> connection_bytes{0};  ///< In the session's queue.

  ExchangeState() = default;
  ExchangeState(const ExchangeState&) = delete;
  ExchangeState& operator=(const ExchangeState&) = delete;
  ~ExchangeState() {
    if (living) --*living;
  }
};

/// The head of an answer, made on the thread that answers.
struct WireHead {
  std::string text;                                         ///< HTTP/1.1: start line and fields.
  std::vector<std::pair<std::string, std::string>> fields;  ///< HTTP/2: `:status` first, names in lower case, none of a connection.
};

/// An answer ready for the wire.
struct WireAnswer {
  WireHead head;
  std::vector<Bytes> body;
  bool closes = false;  ///< The connection ends with it.
};

struct SessionTimeouts {
  std::chrono::milliseconds header, idle, write;
};

/// The server's side of one connection. Everything on the reactor's thread.
class Session : public Driver {
 public:
  /// Called once each: `gone` when the session is over (closed, or handed on by a change of protocol), `freed` when its connection is
  /// closed.
  void set_on_gone(std::function<void()> gone, std::function<void()> freed) {
    on_gone_ = std::move(gone);
    on_freed_ = std::move(freed);
  }
  virtual void attach(std::shared_ptr<Connection> connection) = 0;

  // For the exchange's writer. An exchange that is not under way is ignored.
  virtual void answer(const std::shared_ptr<ExchangeState>& exchange, WireAnswer answer) = 0;
  virtual void start_stream(const std::shared_ptr<ExchangeState>& exchange, WireHead head) = 0;
  virtual void flush_stream(const std::shared_ptr<ExchangeState>& exchange) = 0;
  /// False: there is nothing to switch any more, or no way to.
  virtual bool switch_protocol(const std::shared_ptr<ExchangeState>& exchange, std::string head,
                               const std::shared_ptr<RawDriver>& driver) = 0;
  virtual void abort(const std::shared_ptr<ExchangeState>& exchange) = 0;
  /// Ends the exchange when the client has ended its side and the handler wants to know of that instead of answering at length.
  virtual void end_if_abandoned(const std::shared_ptr<ExchangeState>& exchange) = 0;

  /// Ends when nothing is under way; then streams are ended in order when `end_streams`.
  virtual void wind_down(bool end_streams) = 0;
  /// An exchange is under way that is not a stream.
  [[nodiscard]] virtual bool is_answering() const = 0;

 protected:
  /// The exchange is over: whoever waits for that is told, and what waits to be sent is dropped.
  static void let_go(const std::shared_ptr<ExchangeState>& exchange);
  /// Tells the producer that waits for it, when little of the exchange waits to be sent.
  static void note_output(const std::shared_ptr<ExchangeState>& exchange, std::size_t queued_bytes);

  std::function<void()> on_gone_, on_freed_;
};

/// The Status that a request is refused with below the handlers.
std::string refusal_body(const ParseFailure& failure);

/// The writer handed to the handler.
std::shared_ptr<ResponseWriter> make_exchange_writer(std::shared_ptr<ExchangeState> state);

}  // namespace berth::net
