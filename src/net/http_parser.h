// Incremental HTTP/1.1 message parsing (RFC 9112), without I/O: bytes in, messages out. Strict where leniency lets two parties
// read one byte stream differently (request smuggling): bare line feeds, folded headers, both lengths, spaces before the colon.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http.h"

namespace berth::net {

/// Without blanks and tabs at its ends.
std::string_view trim(std::string_view text);

struct ParserLimits {
  std::size_t max_header_bytes = 64 * 1024;  ///< Start line and fields; and each of trailers and chunk headers taken together.
  std::size_t max_body_bytes = 3 * 1024 * 1024;
};

/// Why a message was refused: the HTTP status a server answers, and words for people.
struct ParseFailure {
  int status = 0;  ///< 0: none.
  std::string message;
};

/// Decodes a message's body as it arrives.
class BodyDecoder {
 public:
  enum class Mode { kNone, kLength, kChunked, kUntilClose };

  void start(Mode mode, std::uint64_t length, const ParserLimits& limits);
  /// Consumes what belongs to the body and appends the content to `out`; returns the bytes consumed.
  std::size_t feed(std::string_view data, std::string& out);
  [[nodiscard]] bool is_done() const { return state_ == State::kDone; }
  [[nodiscard]] const ParseFailure& failure() const { return failure_; }
  [[nodiscard]] Mode mode() const { return mode_; }
  /// The peer closed: true when the body is complete by that.
  bool end_of_input();

 private:
  enum class State { kData, kChunkSize, kChunkExtension, kChunkSizeEnd, kChunkData, kChunkDataCr, kChunkDataLf, kTrailer, kDone, kFailed };
  void fail(int status, std::string message);
  bool feed_framing(char c);
  void take(std::string_view data, std::string& out);

  Mode mode_ = Mode::kNone;
  State state_ = State::kDone;
  std::uint64_t remaining_ = 0;
  std::uint64_t total_ = 0;
  std::size_t overhead_ = 0;
  int digits_ = 0;
  bool line_is_empty_ = true, after_cr_ = false;
  ParserLimits limits_;
  ParseFailure failure_;
};

/// Collects the head of a message (start line and fields up to the empty line).
class HeadCollector {
 public:
  explicit HeadCollector(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  enum class Outcome { kNeedMore, kComplete, kTooLarge };
  /// kComplete: `head` is the text without the final empty line; it points into `data` or into this object, until the next call.
  Outcome feed(std::string_view data, std::size_t& consumed, std::string_view& head);
  [[nodiscard]] bool is_empty() const { return buffer_.empty(); }
  void clear() { buffer_.clear(); }

 private:
  std::size_t max_bytes_;
  std::string buffer_;
};

/// Path and query of a request target (its origin, absolute or asterisk form) for `request`, whose method is known. False: malformed.
bool read_target(std::string_view target, HttpRequest& request);

/// One request after the other of a connection. After kDone take the request, then feed on.
class RequestParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  explicit RequestParser(ParserLimits limits) : limits_(limits), head_(limits.max_header_bytes) {}
  /// Returns the bytes consumed: all, or less when the message is done or has failed.
  std::size_t feed(std::string_view data);
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const ParseFailure& failure() const { return failure_; }
  /// No byte of a request has come since the last one.
  [[nodiscard]] bool is_idle() const { return state_ == State::kHead && head_.is_empty(); }
  [[nodiscard]] const HttpRequest& request() const { return request_; }
  [[nodiscard]] HttpRequest take();
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }
  [[nodiscard]] bool is_http_1_0() const { return is_http_1_0_; }
  [[nodiscard]] std::size_t body_bytes() const { return request_.body.size(); }

 private:
  void fail(int status, std::string message);
  void parse_head(std::string_view head);
  bool parse_request_line(std::string_view line);
  void choose_body();

  ParserLimits limits_;
  HeadCollector head_;
  BodyDecoder body_;
  State state_ = State::kHead;
  ParseFailure failure_;
  HttpRequest request_;
  bool keep_alive_ = true, expects_continue_ = false, is_http_1_0_ = false, after_leading_cr_ = false;
};

/// One response after the other. `expect` names the request's method first (a HEAD's answer has no body).
class ResponseParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  explicit ResponseParser(ParserLimits limits) : limits_(limits), head_(limits.max_header_bytes) {}
  void expect(std::string_view method);
  std::size_t feed(std::string_view data);
  /// The peer closed the connection.
  void end_of_input();
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const ParseFailure& failure() const { return failure_; }
  [[nodiscard]] bool has_started() const { return started_; }
  /// Status and fields are complete from kBody on; `body` grows, and may be taken (cleared) at any time.
  [[nodiscard]] HttpResponse& response() { return response_; }
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }

 private:
  void fail(std::string message);
  void parse_head(std::string_view head);

  ParserLimits limits_;
  HeadCollector head_;
  BodyDecoder body_;
  State state_ = State::kHead;
  ParseFailure failure_;
  HttpResponse response_;
  bool keep_alive_ = true, started_ = false, is_head_request_ = false;
};

}  // namespace berth::net
