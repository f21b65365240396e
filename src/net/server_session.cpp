#include "net/server_session.h"

#include "base/log.h"
#include "base/mutex.h"

namespace berth::net {
namespace {

/// Answers waiting for a slow reader, beyond which no further pipelined request is taken up.
constexpr std::size_t kMaxUnsentAnswers = 1024 * 1024;
void append_chunk_size(std::string& out, std::size_t size) { fmt::format_to(std::back_inserter(out), "{:x}\r\n", size); }

}  // namespace

ServerSession::ServerSession(Handler& handler, std::shared_ptr<Reactor> reactor, const ParserLimits& limits, SessionTimeouts timeouts,
                             std::shared_ptr<BodyRules> bodies)
    : handler_(handler), reactor_(std::move(reactor)), timeouts_(timeouts), parser_(limits), body_gate_(std::move(bodies)) {}

void ServerSession::attach(std::shared_ptr<Connection> connection) {
  connection_ = std::move(connection);
  waiting_since_ = reactor_->now();
}

void ServerSession::on_open() {
  if (make_http2_ && connection_->application_protocol() == "h2") return hand_over_to_http2();
  peer_ = connection_->peer();
  waiting_since_ = reactor_->now();
}

void ServerSession::hand_over_to_http2() {
  const auto keep = shared_from_this();
  const auto next = std::exchange(make_http2_, nullptr)();
  const auto connection = std::exchange(connection_, nullptr);
  next->attach(connection);
  connection->set_driver(next);
  next->on_open();
  if (on_gone_) std::exchange(on_gone_, nullptr)();
  on_freed_ = nullptr;  // The next one tells.
}

std::optional<std::size_t> ServerSession::look_for_http2(std::string_view data) {
  static constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n";
  if (!make_http2_ || !connection_ || connection_->is_encrypted() || !parser_.is_idle()) return std::nullopt;
  if (data.starts_with(kPreface)) {
    hand_over_to_http2();
    return 0;
  }
  if (kPreface.starts_with(data)) return 0;  // The rest is still to come.
  make_http2_ = nullptr;
  return std::nullopt;
}

std::size_t ServerSession::on_input(std::string_view data) {
  if (const auto taken = look_for_http2(data)) return *taken;
  std::size_t at = 0;
  handling_ = true;
  while (at < data.size() && !current_ && connection_ && connection_->is_open() && connection_->queued_bytes() < kMaxUnsentAnswers) {
    at += parser_.feed(data.substr(at));
    if (const auto failure = check_body(); failure.status != 0) {
      refuse(failure);
      at = data.size();
    } else if (parser_.state() == RequestParser::State::kDone) {
      dispatch();
    } else if (parser_.state() == RequestParser::State::kFailed) {
      refuse(parser_.failure());
      at = data.size();
    } else if (!parser_.is_idle()) {
      if (!std::exchange(request_started_, true)) waiting_since_ = reactor_->now();
      if (parser_.state() == RequestParser::State::kBody && parser_.expects_continue() && parser_.body_bytes() == 0 &&
          !std::exchange(continue_sent_, true)) {
        connection_->write(std::string("HTTP/1.1 100 Continue\r\n\r\n"));
      }
    }
  }
  handling_ = false;
  return at;
}

void ServerSession::dispatch() {
  auto exchange = std::make_shared<ExchangeState>();
  exchange->keep_alive = parser_.keep_alive() && !winding_down_;
  exchange->chunked = !parser_.is_http_1_0();
  auto request = parser_.take();
  exchange->reactor = reactor_;
  exchange->session = weak_from_this();
  exchange->method = request.method;
  for (const auto& [name, value] : request.headers.fields()) {
    if (name.size() == 15 && equal_ignoring_case(name, "Accept-Encoding")) exchange->accepts_gzip = has_token(value, "gzip");
  }
  request.peer = peer_;
  request.remote_address = connection_->remote_address();
  request_started_ = continue_sent_ = false;
  current_ = exchange;
  try {
    handler_.handle(std::move(request), make_exchange_writer(std::move(exchange)));
  } catch (const std::exception& error) {
    // The writer was dropped on the way up and has answered 500; one bad request must not end the server.
    log::error("net", "the request handler failed: {}", error.what());
  }
}

ParseFailure ServerSession::check_body() {
  if (parser_.state() != RequestParser::State::kBody) {
    body_gate_.end();
    return {};
  }
  return body_gate_.take(parser_.body_bytes(), [this] {
    auto head = head_of(parser_.request());
    head.peer = peer_;
    head.remote_address = connection_->remote_address();
    return head;
  });
}

void ServerSession::refuse(const ParseFailure& failure) {
  const auto body = refusal_body(failure);
  connection_->write(fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                                 failure.status, reason_phrase(failure.status), body.size(), body));
  connection_->close_after_flush();
}

void ServerSession::answer(const std::shared_ptr<ExchangeState>& exchange, WireAnswer answer) {
  if (exchange != current_ || !connection_) return;
  connection_->write(std::move(answer.head.text));
  for (auto& part : answer.body) connection_->write(std::move(part));
  complete(answer.closes);
}

void ServerSession::start_stream(const std::shared_ptr<ExchangeState>& exchange, WireHead head) {
  if (exchange != current_ || !connection_) return;
  connection_->write(std::move(head.text));
  if (eof_) return connection_->close("");
  flush_stream(exchange);
}

void ServerSession::flush_stream(const std::shared_ptr<ExchangeState>& exchange) {
  if (exchange != current_ || !connection_) return;
  std::vector<Bytes> chunks;
  bool finished = false, has_body = true;
  {
    MutexLock lock(exchange->mutex);
    exchange->flush_posted = false;
    chunks.swap(exchange->pending);
    finished = exchange->finished;
    has_body = exchange->has_body;
  }
  std::size_t size = 0;
  for (auto& chunk : chunks) {
    size += chunk->size();
    if (!exchange->chunked) {
      connection_->write(std::move(chunk));
      continue;
    }
    std::string frame;
    append_chunk_size(frame, chunk->size());
    connection_->write(std::move(frame));
    connection_->write(std::move(chunk));
    connection_->write(std::string("\r\n"));
  }
  exchange->connection_bytes = connection_->queued_bytes();
  exchange->pending_bytes -= size;
  if (finished) {
    if (exchange->chunked && has_body) connection_->write(std::string("0\r\n\r\n"));
    return complete(!exchange->keep_alive || !exchange->chunked);
  }
  connection_->flush();
  // When there was nothing to write no socket event follows, and whoever waits for an empty queue is told here.
  if (connection_) note_output();
}

bool ServerSession::switch_protocol(const std::shared_ptr<ExchangeState>& exchange, std::string head,
                                    const std::shared_ptr<RawDriver>& driver) {
  if (exchange != current_ || !connection_) return false;
  const auto connection = std::exchange(connection_, nullptr);
  const auto keep = shared_from_this();
  connection->write(std::move(head));
  connection->set_driver(driver);
  current_.reset();
  let_go(exchange);
  driver->set_on_freed(std::exchange(on_freed_, nullptr));
  driver->attach(connection);
  if (eof_) driver->on_eof();
  if (on_gone_) std::exchange(on_gone_, nullptr)();
  return true;
}

void ServerSession::abort(const std::shared_ptr<ExchangeState>& exchange) {
  if (exchange != current_ || !connection_) return;
  connection_->close("the answer was cut off");
}

void ServerSession::complete(bool closes) {
  const auto exchange = std::exchange(current_, nullptr);
  waiting_since_ = reactor_->now();
  request_started_ = false;
  if (closes || winding_down_) connection_->close_after_flush();
  let_go(exchange);
  if (handling_ || !connection_) return;  // on_input goes on by itself
  resume();
}

void ServerSession::resume() {
  const auto keep = shared_from_this();
  connection_->resume_input();
  if (connection_ && connection_->is_open()) connection_->flush();
  if (connection_ && eof_ && !current_) connection_->close_after_flush();
}

void ServerSession::on_eof() {
  eof_ = true;
  if (!current_) return connection_->close_after_flush();
  {
    MutexLock lock(current_->mutex);
    current_->client_ended = true;
  }
  end_if_abandoned(current_);
}

void ServerSession::end_if_abandoned(const std::shared_ptr<ExchangeState>& exchange) {
  if (exchange != current_ || !connection_) return;
  bool is_abandoned = false;
  {
    // A client may end its side and still read the answer. A stream has no end of its own, so there the end means that nobody listens; and
    // where the handler waits for somebody else meanwhile (on_close), that may be for ever.
    MutexLock lock(exchange->mutex);
    is_abandoned = exchange->client_ended && (exchange->is_stream || (exchange->on_close && !exchange->answered));
  }
  if (is_abandoned) connection_->close("the client ended the stream");
}

void ServerSession::on_hangup() {
  if (!current_) return;
  MutexLock lock(current_->mutex);
  const bool waits = current_->is_stream || (current_->on_close && !current_->answered);
  lock.unlock();
  if (waits) connection_->close("the client has gone");
}

void ServerSession::on_output() {
  note_output();
  if (current_ || handling_ || !connection_ || connection_->queued_bytes() > 0 || !connection_->has_unread_input()) return;
  reactor_->post([self = shared_from_this()] {
    if (self->connection_ && !self->current_) self->resume();
  });
}

void ServerSession::note_output() {
  if (!current_ || !connection_) return;
  const auto exchange = current_;
  Session::note_output(exchange, connection_->queued_bytes());
}

void ServerSession::on_tick(MonotonicTime now) {
  if (!connection_) return;
  if (connection_->queued_bytes() > 0) {
    if (now - connection_->last_write_progress() > timeouts_.write) connection_->close("the client does not read");
    return;
  }
  if (current_) return;
  const bool is_idle = connection_->is_open() && parser_.is_idle();
  auto allowed = is_idle ? timeouts_.idle : timeouts_.header;
  if (!is_idle) allowed += std::chrono::milliseconds(parser_.body_bytes() * 1000 / BodyPace::kMinBytesPerSecond);
  if (now - waiting_since_ > allowed) connection_->close(is_idle ? "" : "the request came too slowly");
}

void ServerSession::on_closed(const std::string&) {
  const auto keep = shared_from_this();
  connection_.reset();
  if (const auto exchange = std::exchange(current_, nullptr)) let_go(exchange);
  if (on_gone_) std::exchange(on_gone_, nullptr)();
  if (on_freed_) std::exchange(on_freed_, nullptr)();
}

bool ServerSession::is_answering() const {
  if (!current_) return connection_ && connection_->queued_bytes() > 0;
  MutexLock lock(current_->mutex);
  return !current_->is_stream;
}

void ServerSession::wind_down(bool end_streams) {
  if (!connection_) return;
  winding_down_ = true;
  if (!current_) return connection_->is_open() ? connection_->close_after_flush() : connection_->close("");
  if (!end_streams) return;
  const auto exchange = current_;
  {
    MutexLock lock(exchange->mutex);
    if (!exchange->is_stream) return;
    exchange->finished = true;
  }
  flush_stream(exchange);
}

}  // namespace berth::net
