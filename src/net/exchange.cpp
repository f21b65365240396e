// The handler's side of an exchange: builds the wire form on the caller's thread and hands it to the session's reactor.
#include "net/exchange.h"

#include <zlib.h>

#include <ctime>

#include "base/mutex.h"

namespace berth::net {

Bytes gzip(const std::vector<Bytes>& parts) {
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return nullptr;
  std::string out;
  std::array<char, 64 * 1024> buffer;
  auto pump = [&](int mode) {
    int result = Z_OK;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = buffer.size();
      result = deflate(&stream, mode);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    return result;
  };
  for (const auto& part : parts) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part->data()));
    stream.avail_in = static_cast<uInt>(part->size());
    pump(Z_NO_FLUSH);
  }
  const bool done = pump(Z_FINISH) == Z_STREAM_END;
  deflateEnd(&stream);
  return done ? make_bytes(std::move(out)) : nullptr;
}
namespace {

constexpr std::size_t kGzipFrom = 128 * 1024;  // apiserver/pkg/endpoints/handlers/responsewriters: defaultGzipThresholdBytes
constexpr std::size_t kAnswerDrainedBelow = 256 * 1024;

/// `Sun, 06 Nov 1994 08:49:37 GMT`, formatted once a second and thread.
std::string_view http_date() {
  static thread_local std::time_t formatted = 0;
  static thread_local std::string text;
  const auto now = std::time(nullptr);
  if (now != formatted) {
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    std::tm utc{};
    gmtime_r(&now, &utc);
    text = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday, kMonths[utc.tm_mon], utc.tm_year + 1900,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
    formatted = now;
  }
  return text;
}

/// A value must not end its line: what a handler copied from a request could otherwise forge headers.
void append_value(std::string& out, std::string_view value) {
  const auto start = out.size();
  out.append(value);
  if (value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos) return;
  for (auto i = start; i < out.size(); ++i) {
    if (out[i] == '\r' || out[i] == '\n' || out[i] == '\0') out[i] = ' ';
  }
}

bool is_of_the_connection(std::string_view name) {
  for (const std::string_view one : {"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "Content-Length"})
    if (one.size() == name.size() && equal_ignoring_case(one, name)) return true;
  return false;
}

std::string lower_case(std::string_view name) {
  std::string out(name);
  for (auto& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

WireHead make_http2_head(int status, const Headers& headers) {
  WireHead head;
  head.fields.reserve(headers.fields().size() + 3);
  head.fields.emplace_back(":status", std::to_string(status));
  for (const auto& [name, value] : headers.fields()) {
    if (is_of_the_connection(name)) continue;
    std::string clean;
    append_value(clean, value);
    head.fields.emplace_back(lower_case(name), std::move(clean));
  }
  if (headers.get("Date").empty()) head.fields.emplace_back("date", http_date());
  return head;
}

std::string make_head(int status, const Headers& headers) {
  std::string out;
  out.reserve(256);
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  for (const auto& [name, value] : headers.fields()) {
    if (equal_ignoring_case(name, "Content-Length") || equal_ignoring_case(name, "Transfer-Encoding")) continue;
    append_value(out, name);
    out += ": ";
    append_value(out, value);
    out += "\r\n";
  }
  if (headers.get("Date").empty()) out.append("Date: ").append(http_date()).append("\r\n");
  return out;
}

std::size_t total_size(const std::vector<Bytes>& parts) {
  std::size_t size = 0;
  for (const auto& part : parts) size += part->size();
  return size;
}

/// Whether anything follows an answer's head: what stood there would be read as the next answer.
bool may_have_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string_view refusal_reason(int code) {
  switch (code) {
    case 401:
      return "Unauthorized";
    case 429:
      return "TooManyRequests";
    case 413:
      return "RequestEntityTooLarge";
    case 500:
      return "InternalError";
    default:
      return "BadRequest";
  }
}

void append_json_string(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
}

class ExchangeWriter final : public ResponseWriter {
 public:
  explicit ExchangeWriter(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}

  ~ExchangeWriter() override {
    MutexLock lock(state_->mutex);
    const bool answered = state_->answered;
    const bool cut_off = state_->is_stream && !state_->finished && !state_->gone;
    lock.unlock();
    if (!answered) {
      HttpResponse response{.status = 500};
      response.headers.add("Content-Type", "application/json");
      response.body =
          R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the request was dropped without an answer","reason":"InternalError","code":500})";
      respond(std::move(response));
    } else if (cut_off) {
      with_session([](Session& session, const auto& state) { session.abort(state); });
    }
  }

  void respond(HttpResponse response) override {
    std::vector<Bytes> parts;
    const int status = response.status;
    if (!response.body.empty()) parts.push_back(make_bytes(std::move(response.body)));
    respond_shared(status, std::move(response.headers), std::move(parts));
  }

  void respond_shared(int status, Headers headers, std::vector<Bytes> parts) override {
    if (!claim(false)) return;
    auto size = total_size(parts);
    if (size >= kGzipFrom && state_->accepts_gzip && headers.get("Content-Encoding").empty()) {
      if (auto packed = gzip(parts)) {
        size = packed->size();
        parts.assign(1, std::move(packed));
        headers.add("Content-Encoding", "gzip");
        headers.add("Vary", "Accept-Encoding");
      }
    }
    WireAnswer answer;
    answer.closes = !state_->keep_alive || has_token(headers.get("Connection"), "close");
    const bool with_body = may_have_body(status);
    if (state_->is_http2) return respond_http2(std::move(answer), status, headers, with_body ? std::move(parts) : std::vector<Bytes>{});
    auto& head = answer.head.text;
    head = make_head(status, headers);
    if (with_body) fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n", size);
    if (answer.closes && headers.get("Connection").empty()) head += "Connection: close\r\n";
    head += "\r\n";
    if (with_body && state_->method != "HEAD") {
      // Small answers travel as one piece: one segment, one record, one packet.
      if (size <= 8 * 1024) {
        for (const auto& part : parts) head += *part;
      } else {
        answer.body = std::move(parts);
      }
    }
    hand_in(std::move(answer));
  }

  void start_stream(int status, Headers headers) override {
    if (!claim(true)) return;
    const bool has_body = may_have_body(status) && state_->method != "HEAD";
    WireHead wire;
    if (state_->is_http2) {
      wire = make_http2_head(status, headers);
    } else {
      wire.text = make_head(status, headers);
      auto& head = wire.text;
      if (has_body && state_->chunked) head += "Transfer-Encoding: chunked\r\n";
      if (has_body && (!state_->keep_alive || !state_->chunked)) head += "Connection: close\r\n";
      head += "\r\n";
    }
    if (!has_body) {
      // No length is known and none is needed: the answer ends with its head.
      MutexLock lock(state_->mutex);
      state_->has_body = false;
      state_->finished = true;
    }
    with_session([wire = std::move(wire)](Session& session, const auto& state) mutable { session.start_stream(state, std::move(wire)); });
  }

  bool write(Bytes chunk) override {
    if (chunk->empty()) return true;
    bool post = false;
    {
      MutexLock lock(state_->mutex);
      if (state_->gone) return false;
      if (!state_->is_stream || state_->finished) return !state_->finished;
      state_->pending_bytes += chunk->size();
      state_->pending.push_back(std::move(chunk));
      post = !std::exchange(state_->flush_posted, true);
    }
    if (post) post_flush();
    return true;
  }

  [[nodiscard]] std::size_t queued_bytes() const override { return state_->pending_bytes + state_->connection_bytes; }

  void on_drain(std::function<void()> more) override {
    {
      MutexLock lock(state_->mutex);
      if (state_->gone) return;
      state_->on_drain = std::move(more);
    }
    if (queued_bytes() < kAnswerDrainedBelow) post_flush();
  }

  void finish() override {
    {
      MutexLock lock(state_->mutex);
      if (!state_->is_stream || std::exchange(state_->finished, true)) return;
    }
    post_flush();
  }

  void on_close(std::function<void()> closed) override {
    {
      MutexLock lock(state_->mutex);
      if (!state_->gone) {
        state_->on_close = std::move(closed);
        if (state_->client_ended) post_end();
        return;
      }
    }
    closed();
  }

  std::unique_ptr<RawStream> upgrade(Headers headers) override {
    if (!state_->chunked || state_->is_http2) return nullptr;  // HTTP/1.0 and HTTP/2 know no upgrade
    if (!claim(false)) return nullptr;
    {
      MutexLock lock(state_->mutex);
      if (state_->gone) return nullptr;
    }
    auto driver = std::make_shared<RawDriver>();
    auto stream = make_raw_stream(state_->reactor, driver);
    auto head = make_head(101, headers) + "\r\n";
    state_->reactor->dispatch([state = state_, head = std::move(head), driver]() mutable {
      const auto session = state->session.lock();
      // The client may have gone meanwhile: then the stream is at its end.
      if (!session || !session->switch_protocol(state, std::move(head), driver)) driver->on_closed("");
    });
    return stream;
  }

 private:
  void respond_http2(WireAnswer answer, int status, const Headers& headers, std::vector<Bytes> parts) {
    answer.head = make_http2_head(status, headers);
    if (may_have_body(status)) answer.head.fields.emplace_back("content-length", std::to_string(total_size(parts)));
    if (state_->method != "HEAD") answer.body = std::move(parts);
    hand_in(std::move(answer));
  }

  void hand_in(WireAnswer answer) {
    with_session([answer = std::move(answer)](Session& session, const auto& state) mutable { session.answer(state, std::move(answer)); });
  }

  /// True for the first of respond, start_stream, upgrade.
  bool claim(bool stream) {
    MutexLock lock(state_->mutex);
    if (std::exchange(state_->answered, true)) return false;
    state_->is_stream = stream;
    return true;
  }

  template <typename F>
  void with_session(F use) {
    state_->reactor->dispatch([state = state_, use = std::move(use)]() mutable {
      if (const auto session = state->session.lock()) use(*session, state);
    });
  }

  /// Always posted, also from the reactor's own thread: chunks written in one go then share one flush.
  void post_flush() {
    state_->reactor->post([state = state_] {
      if (const auto session = state->session.lock()) session->flush_stream(state);
    });
  }

  void post_end() {
    state_->reactor->post([state = state_] {
      if (const auto session = state->session.lock()) session->end_if_abandoned(state);
    });
  }

  std::shared_ptr<ExchangeState> state_;
};

}  // namespace

void Session::let_go(const std::shared_ptr<ExchangeState>& exchange) {
  std::function<void()> closed, drain;
  {
    MutexLock lock(exchange->mutex);
    exchange->gone = true;
    closed = std::exchange(exchange->on_close, nullptr);
    drain = std::exchange(exchange->on_drain, nullptr);
    exchange->pending.clear();
    exchange->pending_bytes = 0;
    exchange->connection_bytes = 0;
  }
  if (closed) closed();
}

void Session::note_output(const std::shared_ptr<ExchangeState>& exchange, std::size_t queued_bytes) {
  exchange->connection_bytes = queued_bytes;
  if (queued_bytes + exchange->pending_bytes >= kAnswerDrainedBelow) return;
  std::function<void()> drain;
  {
    MutexLock lock(exchange->mutex);
    drain = std::exchange(exchange->on_drain, nullptr);
  }
  if (drain) drain();
}

std::string refusal_body(const ParseFailure& failure) {
  std::string body = R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")";
  append_json_string(body, failure.message);
  fmt::format_to(std::back_inserter(body), R"(","reason":"{}","code":{}}})", refusal_reason(failure.status), failure.status);
  return body;
}

std::shared_ptr<ResponseWriter> make_exchange_writer(std::shared_ptr<ExchangeState> state) {
  return std::make_shared<ExchangeWriter>(std::move(state));
}

}  // namespace berth::net
