// The server's side of one HTTP/2 connection (RFC 9113, by nghttp2): many exchanges at a time, each on its stream.
//
//   a stream:  kHead --> kBody --> (kHeld) --> kHandled --> gone
//                 every state can fall to gone: reset by either side, or the connection ends
//
// Memory a connection can hold: of requests that come, what BodyRules allows all of them together; of answers, what the producers put in
// (they see queued_bytes() of their stream). Past kMaxUnreadAnswers, unread and expected ones together, complete requests are held back
// until the peer has read more.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/exchange.h"
#include "net/http2_budget.h"
#include "net/server.h"

struct nghttp2_session;

namespace berth::net {

struct Http2Limits {
  ParserLimits parser;
  std::uint32_t max_streams = 100;
  double goaway_chance = 0;  ///< Of each request ending the connection in order.
};

class Http2Session final : public Session, public std::enable_shared_from_this<Http2Session> {
 public:
  Http2Session(Handler& handler, std::shared_ptr<Reactor> reactor, const Http2Limits& limits, SessionTimeouts timeouts,
               std::shared_ptr<BodyRules> bodies);
  ~Http2Session() override;
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
  bool switch_protocol(const std::shared_ptr<ExchangeState>&, std::string, const std::shared_ptr<RawDriver>&) override { return false; }
  void abort(const std::shared_ptr<ExchangeState>& exchange) override;
  void end_if_abandoned(const std::shared_ptr<ExchangeState>&) override {}
  void wind_down(bool end_streams) override;
  [[nodiscard]] bool is_answering() const override;

 private:
  struct Callbacks;  ///< nghttp2's, which end here.
  friend struct Callbacks;

  struct Stream {
    explicit Stream(std::shared_ptr<BodyRules> rules) : body_gate(std::move(rules)) {}
    std::int32_t id = 0;
    HttpRequest request;  ///< While it comes.
    std::string authority, target, cookies;
    BodyGate body_gate;
    std::size_t header_bytes = 0;
    bool has_head = false, is_complete = false, is_refused = false;
    std::shared_ptr<ExchangeState> exchange;  ///< Once it is handled.
    std::deque<Bytes> out;
    std::size_t out_at = 0, out_bytes = 0;  ///< Sent of the first; unsent of all.
    std::size_t expected_bytes = 0;         ///< Of the answer, while somebody works on it.
    bool is_ended = false, is_deferred = false, was_answered = false;
    MonotonicTime since{};  ///< Of the request's beginning; then when the peer last took something, or nothing waited.
  };

  Stream* find(std::int32_t id);
  Stream* find(const std::shared_ptr<ExchangeState>& exchange);

  // Input.
  bool begin_stream(std::int32_t id);
  void take_field(Stream& stream, std::string_view name, std::string_view value);
  void take_head(Stream& stream, bool ends);
  bool take_body(Stream& stream, std::string_view data);
  ParseFailure check_body(Stream& stream);
  void take_end(Stream& stream);
  void dispatch(Stream& stream);
  void dispatch_held();
  [[nodiscard]] bool has_room_for(const Stream& stream) const;
  void expect(Stream& stream, std::size_t bytes);
  void refuse(Stream& stream, const ParseFailure& failure);
  void end_stream(std::int32_t id);
  [[nodiscard]] bool pay_frame(std::uint8_t type, std::size_t length);
  void pay_reset();
  void calm_down(const char* why);

  // Output.
  void send_head(Stream& stream, const WireHead& head, bool has_body);
  void queue(Stream& stream, Bytes bytes);
  void end_output(Stream& stream);
  void wake(Stream& stream);
  /// The next part of a body, for the frame whose header is given; false: the socket has enough for now.
  bool send_part(Stream& stream, const std::uint8_t* frame_header, std::size_t size);
  void schedule_pump();
  void pump();
  void reset(std::int32_t id, std::uint32_t code);

  // The end.
  void begin_goaway();
  void finish_goaway();
  void close_when_done();
  void check_streams(MonotonicTime now);

  Handler& handler_;
  std::shared_ptr<Reactor> reactor_;
  Http2Limits limits_;
  SessionTimeouts timeouts_;
  std::shared_ptr<BodyRules> bodies_;
  std::shared_ptr<Connection> connection_;
  std::optional<PeerCertificate> peer_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<std::int32_t, std::unique_ptr<Stream>> streams_;
  std::deque<std::int32_t> held_;         ///< Complete requests that wait until more of the answers is read.
  std::vector<std::int32_t> progressed_;  ///< Streams of which the present pump sent something.
  std::size_t unsent_bytes_ = 0, expected_bytes_ = 0;
  /// Exchanges that somebody still works on, also those whose streams were reset.
  std::shared_ptr<std::atomic<std::size_t>> living_ = std::make_shared<std::atomic<std::size_t>>(0);
  Http2Budget budget_;
  bool pump_scheduled_ = false, is_pumping_ = false, socket_is_full_ = false, greeted_ = false;
  bool goaway_begun_ = false, goaway_finished_ = false;
  int ticks_ = 0;
  MonotonicTime goaway_since_{}, idle_since_{};
};

}  // namespace berth::net
