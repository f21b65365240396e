#include "net/http_parser.h"

namespace berth::net {
namespace {

bool is_token_char(char c) {
  static constexpr auto kTable = [] {
    std::array<bool, 256> table{};
    for (int u = 0; u < 256; ++u)
      table[static_cast<std::size_t>(u)] = (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || (u >= '0' && u <= '9');
    for (const char mark : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<unsigned char>(mark)] = true;
    return table;
  }();
  return kTable[static_cast<unsigned char>(c)];
}

bool is_token(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char); }

/// Visible characters, spaces, tabs and bytes above ASCII; no other control characters.
bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u == '\t' || (u >= 0x20 && u != 0x7f);
  });
}

/// The next line without its CRLF; nullopt-like empty `ok` when a bare LF or CR stands in it.
bool next_line(std::string_view& text, std::string_view& line) {
  const auto end = text.find("\r\n");
  line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  return line.find_first_of("\r\n") == std::string_view::npos;
}

/// Adds all fields; the message says what is wrong with the first bad one.
std::string parse_fields(std::string_view text, Headers& headers) {
  while (!text.empty()) {
    std::string_view line;
    if (!next_line(text, line)) return "a header line ends without CR LF";
    if (line.empty()) return "an empty line within the header";
    if (line.front() == ' ' || line.front() == '\t') return "folded header lines are not accepted";
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return "a header line without a colon";
    const auto name = line.substr(0, colon);
    if (!is_token(name)) return "a header name with a character that is not allowed";
    const auto value = trim(line.substr(colon + 1));
    if (!is_field_value(value)) return "a header value with a control character";
    headers.add(std::string(name), std::string(value));
  }
  return {};
}

struct Framing {
  std::string problem;
  bool is_chunked = false;
  std::optional<std::uint64_t> length;
};

/// Content-Length and Transfer-Encoding, refused where they could be read in two ways.
Framing read_framing(const Headers& headers) {
  Framing out;
  bool has_encoding = false;
  for (const auto& [name, value] : headers.fields()) {
    if (equal_ignoring_case(name, "Content-Length")) {
      std::uint64_t length = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
      if (value.empty() || error != std::errc() || end != value.data() + value.size()) {
        out.problem = "a malformed Content-Length";
      } else if (out.length && *out.length != length) {
        out.problem = "two different Content-Length headers";
      }
      out.length = length;
    } else if (equal_ignoring_case(name, "Transfer-Encoding")) {
      if (has_encoding || !equal_ignoring_case(value, "chunked")) out.problem = "an unsupported Transfer-Encoding";
      has_encoding = out.is_chunked = true;
    }
  }
  if (out.is_chunked && out.length) out.problem = "both Content-Length and Transfer-Encoding";
  return out;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

// --- BodyDecoder ---

void BodyDecoder::start(Mode mode, std::uint64_t length, const ParserLimits& limits) {
  mode_ = mode;
  limits_ = limits;
  failure_ = {};
  remaining_ = length;
  total_ = 0;
  overhead_ = 0;
  digits_ = 0;
  line_is_empty_ = true;
  after_cr_ = false;
  switch (mode) {
    case Mode::kNone:
      state_ = State::kDone;
      break;
    case Mode::kLength:
      state_ = length == 0 ? State::kDone : State::kData;
      if (length > limits.max_body_bytes) fail(413, fmt::format("Request entity too large: limit is {}", limits.max_body_bytes));
      break;
    case Mode::kChunked:
      state_ = State::kChunkSize;
      remaining_ = 0;
      break;
    case Mode::kUntilClose:
      state_ = State::kData;
      remaining_ = std::numeric_limits<std::uint64_t>::max();
      break;
  }
}

void BodyDecoder::fail(int status, std::string message) {
  state_ = State::kFailed;
  failure_ = {status, std::move(message)};
}

void BodyDecoder::take(std::string_view data, std::string& out) {
  out.append(data);
  total_ += data.size();
  remaining_ -= data.size();
  if (total_ > limits_.max_body_bytes) fail(413, fmt::format("Request entity too large: limit is {}", limits_.max_body_bytes));
}

std::size_t BodyDecoder::feed(std::string_view data, std::string& out) {
  std::size_t at = 0;
  while (at < data.size() && state_ != State::kDone && state_ != State::kFailed) {
    if (state_ == State::kData || state_ == State::kChunkData) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, data.size() - at));
      take(data.substr(at, size), out);
      at += size;
      if (state_ != State::kFailed && remaining_ == 0) state_ = state_ == State::kData ? State::kDone : State::kChunkDataCr;
    } else {
      if (++overhead_ > limits_.max_header_bytes && (state_ == State::kChunkExtension || state_ == State::kTrailer)) {
        fail(431, "the chunk extensions or trailers are too large");
        break;
      }
      if (!feed_framing(data[at])) fail(400, "malformed chunked encoding");
      ++at;
    }
  }
  return at;
}

bool BodyDecoder::feed_framing(char c) {
  switch (state_) {
    case State::kChunkSize:
      if (const int value = hex_value(c); value >= 0) {
        if (++digits_ > 15) return false;
        remaining_ = remaining_ * 16 + static_cast<unsigned>(value);
        return true;
      }
      if (digits_ == 0) return false;
      if (c == ';')
        state_ = State::kChunkExtension;
      else if (c == '\r')
        state_ = State::kChunkSizeEnd;
      else
        return false;
      return true;
    case State::kChunkExtension:
      if (c == '\r') state_ = State::kChunkSizeEnd;
      return c != '\n';
    case State::kChunkSizeEnd:
      digits_ = 0;
      overhead_ = 0;
      state_ = remaining_ == 0 ? State::kTrailer : State::kChunkData;
      line_is_empty_ = true;
      return c == '\n';
    case State::kChunkDataCr:
      state_ = State::kChunkDataLf;
      return c == '\r';
    case State::kChunkDataLf:
      state_ = State::kChunkSize;
      return c == '\n';
    case State::kTrailer:
      // Trailers are read and dropped.
      if (after_cr_) {
        after_cr_ = false;
        if (c != '\n') return false;
        if (line_is_empty_) state_ = State::kDone;
        line_is_empty_ = true;
      } else if (c == '\r') {
        after_cr_ = true;
      } else {
        line_is_empty_ = false;
        return c != '\n';
      }
      return true;
    default:
      return false;
  }
}

bool BodyDecoder::end_of_input() {
  if (mode_ == Mode::kUntilClose && state_ == State::kData) state_ = State::kDone;
  return state_ == State::kDone;
}

// --- HeadCollector ---

HeadCollector::Outcome HeadCollector::feed(std::string_view data, std::size_t& consumed, std::string_view& head) {
  static constexpr std::string_view kEnd = "\r\n\r\n";
  // Lines that end in bare line feeds never show kEnd: hand them on at once, the line parser refuses them in words.
  static constexpr std::string_view kBareEnd = "\n\n";
  if (buffer_.empty()) {
    auto end = data.find(kEnd);
    if (const auto bare = data.substr(0, end).find(kBareEnd); bare != std::string_view::npos) {
      consumed = bare + kBareEnd.size();
      head = data.substr(0, consumed);
      return Outcome::kComplete;
    }
    if (end != std::string_view::npos) {
      consumed = end + kEnd.size();
      head = data.substr(0, end);
      return consumed > max_bytes_ ? Outcome::kTooLarge : Outcome::kComplete;
    }
  }
  const auto before = buffer_.size();
  const auto room = max_bytes_ + 1 - std::min(before, max_bytes_ + 1);
  buffer_.append(data.substr(0, room));
  const auto from = before < 3 ? 0 : before - 3;
  const auto end = buffer_.find(kEnd, from);
  if (buffer_.find(kBareEnd, from) < end) {
    consumed = std::min(data.size(), room);
    head = buffer_;
    return Outcome::kComplete;
  }
  if (end == std::string::npos) {
    consumed = std::min(data.size(), room);
    return buffer_.size() > max_bytes_ ? Outcome::kTooLarge : Outcome::kNeedMore;
  }
  consumed = end + kEnd.size() - before;
  buffer_.resize(end);
  head = buffer_;
  return end + kEnd.size() > max_bytes_ ? Outcome::kTooLarge : Outcome::kComplete;
}

// --- RequestParser ---

std::size_t RequestParser::feed(std::string_view data) {
  std::size_t at = 0;
  if (state_ == State::kHead) {
    // RFC 9112 2.2: an empty line before the request line is ignored.
    while (head_.is_empty() && at < data.size() && data[at] == (after_leading_cr_ ? '\n' : '\r')) {
      after_leading_cr_ = !after_leading_cr_;
      ++at;
    }
    if (at == data.size()) return at;
    if (std::exchange(after_leading_cr_, false)) {
      fail(400, "malformed request line");
      return at;
    }
    std::size_t consumed = 0;
    std::string_view head;
    switch (head_.feed(data.substr(at), consumed, head)) {
      case HeadCollector::Outcome::kNeedMore:
        return at + consumed;
      case HeadCollector::Outcome::kTooLarge:
        fail(431, fmt::format("the request's header is larger than {} bytes", limits_.max_header_bytes));
        return at;
      case HeadCollector::Outcome::kComplete:
        parse_head(head);
        head_.clear();
    }
    at += consumed;
  }
  if (state_ == State::kBody) {
    at += body_.feed(data.substr(at), request_.body);
    if (body_.is_done()) state_ = State::kDone;
    if (body_.failure().status != 0) fail(body_.failure().status, body_.failure().message);
  }
  return at;
}

HttpRequest RequestParser::take() {
  state_ = State::kHead;
  return std::exchange(request_, HttpRequest{});
}

void RequestParser::fail(int status, std::string message) {
  state_ = State::kFailed;
  failure_ = {status, std::move(message)};
}

bool read_target(std::string_view target, HttpRequest& request) {
  // Absolute form, which proxies send: the authority says nothing to us.
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const auto slash = target.find_first_of("/?", scheme.size());
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
    break;
  }
  const auto question = target.find('?');
  auto path = target == "*" && request.method == "OPTIONS" ? std::optional<std::string>("*") : decode_path(target.substr(0, question));
  if (!path) return false;
  request.path = std::move(*path);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  return true;
}

bool RequestParser::parse_request_line(std::string_view line) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return fail(400, "malformed request line"), false;
  const auto method = line.substr(0, first);
  auto target = line.substr(first + 1, last - first - 1);
  const auto version = line.substr(last + 1);
  if (!is_token(method) || target.empty() || target.find(' ') != std::string_view::npos || !is_field_value(target) ||
      target.find('\t') != std::string_view::npos) {
    return fail(400, "malformed request line"), false;
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool is_http = version.starts_with("HTTP/") && version.size() == 8;
    return fail(is_http ? 505 : 400, is_http ? "only HTTP/1.0 and HTTP/1.1 are spoken here" : "malformed request line"), false;
  }
  is_http_1_0_ = version == "HTTP/1.0";
  request_.method = method;
  if (!read_target(target, request_)) return fail(400, "malformed path in the request line"), false;
  return true;
}

void RequestParser::parse_head(std::string_view head) {
  request_ = {};
  const auto line_end = head.find("\r\n");
  const auto line = head.substr(0, line_end);
  if (!parse_request_line(line)) return;
  auto problem = parse_fields(line_end == std::string_view::npos ? std::string_view{} : head.substr(line_end + 2), request_.headers);
  if (!problem.empty()) return fail(400, std::move(problem));
  choose_body();
}

void RequestParser::choose_body() {
  const auto framing = read_framing(request_.headers);
  if (!framing.problem.empty()) return fail(400, framing.problem);
  int hosts = 0;
  bool close = false, keep = false;
  expects_continue_ = false;
  for (const auto& [name, value] : request_.headers.fields()) {
    if (name.size() == 4 && equal_ignoring_case(name, "Host")) ++hosts;
    if (name.size() == 10 && equal_ignoring_case(name, "Connection")) {
      close = close || has_token(value, "close");
      keep = keep || has_token(value, "keep-alive");
    }
    if (name.size() == 6 && equal_ignoring_case(name, "Expect")) {
      if (!equal_ignoring_case(value, "100-continue")) return fail(417, "only Expect: 100-continue is known");
      expects_continue_ = !is_http_1_0_;
    }
  }
  if (hosts > 1 || (hosts == 0 && !is_http_1_0_))
    return fail(400, hosts > 1 ? "more than one Host header" : "missing required Host header");
  keep_alive_ = is_http_1_0_ ? keep && !close : !close;
  if (framing.is_chunked && is_http_1_0_) return fail(400, "Transfer-Encoding in an HTTP/1.0 request");
  const auto mode = framing.is_chunked ? BodyDecoder::Mode::kChunked : BodyDecoder::Mode::kLength;
  body_.start(mode, framing.length.value_or(0), limits_);
  if (body_.failure().status != 0) return fail(body_.failure().status, body_.failure().message);
  // The sender's word alone reserves no more than a page or two: a thousand liars would otherwise hold gigabytes.
  request_.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(framing.length.value_or(0), 16 * 1024)));
  state_ = body_.is_done() ? State::kDone : State::kBody;
}

// --- ResponseParser ---

void ResponseParser::expect(std::string_view method) {
  state_ = State::kHead;
  response_ = {};
  head_.clear();
  failure_ = {};
  started_ = false;
  is_head_request_ = method == "HEAD";
}

std::size_t ResponseParser::feed(std::string_view data) {
  std::size_t at = 0;
  while (state_ == State::kHead && at < data.size()) {
    started_ = true;
    std::size_t consumed = 0;
    std::string_view head;
    switch (head_.feed(data.substr(at), consumed, head)) {
      case HeadCollector::Outcome::kNeedMore:
        return at + consumed;
      case HeadCollector::Outcome::kTooLarge:
        fail("the response's header is too large");
        return at;
      case HeadCollector::Outcome::kComplete:
        parse_head(head);
        head_.clear();
    }
    at += consumed;
  }
  if (state_ == State::kBody) {
    at += body_.feed(data.substr(at), response_.body);
    if (body_.is_done()) state_ = State::kDone;
    if (body_.failure().status == 413)
      fail(fmt::format("the response is larger than {} bytes", limits_.max_body_bytes));
    else if (body_.failure().status != 0)
      fail(body_.failure().message);
  }
  return at;
}

void ResponseParser::end_of_input() {
  if (state_ == State::kBody && body_.end_of_input()) {
    state_ = State::kDone;
    keep_alive_ = false;
  } else if (state_ != State::kDone) {
    fail(started_ ? "unexpected EOF: the connection was closed in the middle of a response"
                  : "EOF: the connection was closed without a response");
  }
}

void ResponseParser::fail(std::string message) {
  state_ = State::kFailed;
  keep_alive_ = false;
  failure_ = {400, std::move(message)};
}

void ResponseParser::parse_head(std::string_view head) {
  const auto line_end = head.find("\r\n");
  const auto line = head.substr(0, line_end);
  int status = 0;
  const bool is_http = line.size() >= 12 && (line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 "));
  if (is_http) std::from_chars(line.data() + 9, line.data() + 12, status);
  if (status < 100 || status > 999 || (line.size() > 12 && line[12] != ' '))
    return fail("the answer is not HTTP/1.1: malformed status line");
  response_.status = status;
  response_.headers = {};
  auto problem = parse_fields(line_end == std::string_view::npos ? std::string_view{} : head.substr(line_end + 2), response_.headers);
  if (!problem.empty()) return fail(std::move(problem));
  if (status < 200 && status != 101) return;  // interim: the final head follows
  const auto framing = read_framing(response_.headers);
  if (!framing.problem.empty()) return fail(framing.problem);
  const auto connection = response_.headers.get("Connection");
  keep_alive_ = line.starts_with("HTTP/1.1") ? !has_token(connection, "close") : has_token(connection, "keep-alive");
  auto mode = BodyDecoder::Mode::kUntilClose;
  if (is_head_request_ || status == 204 || status == 304 || status == 101)
    mode = BodyDecoder::Mode::kNone;
  else if (framing.is_chunked)
    mode = BodyDecoder::Mode::kChunked;
  else if (framing.length)
    mode = BodyDecoder::Mode::kLength;
  if (mode == BodyDecoder::Mode::kUntilClose) keep_alive_ = false;
  body_.start(mode, framing.length.value_or(0), limits_);
  if (body_.failure().status != 0) return fail(fmt::format("the response is larger than {} bytes", limits_.max_body_bytes));
  state_ = body_.is_done() ? State::kDone : State::kBody;
}

}  // namespace berth::net
