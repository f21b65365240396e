// The server's side of one HTTP/1.1 connection: requests in, one after the other; answers out, from any thread.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/exchange.h"
#include "net/server.h"

namespace berth::net {

class ServerSession final : public Session, public std::enable_shared_from_this<ServerSession> {
 public:
  ServerSession(Handler& handler, std::shared_ptr<Reactor> reactor, const ParserLimits& limits, SessionTimeouts timeouts,
                std::shared_ptr<BodyRules> bodies);
  /// Gives what takes over when the peer speaks HTTP/2: by ALPN, or with prior knowledge where there is no TLS. Without it only HTTP/1.1 is
  /// spoken.
  void set_http2(std::function<std::shared_ptr<Session>()> make) { make_http2_ = std::move(make); }
  void attach(std::shared_ptr<Connection> connection) override;

  void on_open() override;
  std::size_t on_input(std::string_view data) override;
  void on_eof() override;
  void on_hangup() override;
  void on_output() override;
  void on_tick(MonotonicTime now) override;
  void on_closed(const std::string& why) override;

  void answer(const std::shared_ptr<ExchangeState>& exchange, WireAnswer answer) override;
  void start_stream(const std::shared_ptr<ExchangeState>& exchange, WireHead head) override;
  void flush_stream(const std::shared_ptr<ExchangeState>& exchange) override;
  bool switch_protocol(const std::shared_ptr<ExchangeState>& exchange, std::string head, const std::shared_ptr<RawDriver>& driver) override;
  void abort(const std::shared_ptr<ExchangeState>& exchange) override;
  void end_if_abandoned(const std::shared_ptr<ExchangeState>& exchange) override;
  void wind_down(bool end_streams) override;
  [[nodiscard]] bool is_answering() const override;

 private:
  void dispatch();
  void refuse(const ParseFailure& failure);
  /// Why no more of the body under way is taken; status 0: go on.
  ParseFailure check_body();
  void complete(bool closes);
  void resume();
  void note_output();
  void hand_over_to_http2();
  /// Looks at the first bytes of a connection without TLS: nullopt when they are HTTP/1.1's, otherwise how many of them are consumed.
  std::optional<std::size_t> look_for_http2(std::string_view data);

  Handler& handler_;
  std::shared_ptr<Reactor> reactor_;
  SessionTimeouts timeouts_;
  std::function<std::shared_ptr<Session>()> make_http2_;
  RequestParser parser_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<ExchangeState> current_;
  std::optional<PeerCertificate> peer_;
  BodyGate body_gate_;
  bool handling_ = false, eof_ = false, winding_down_ = false, request_started_ = false, continue_sent_ = false;
  MonotonicTime waiting_since_{};
};

}  // namespace berth::net
