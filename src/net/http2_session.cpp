#include "net/http2_session.h"

// Longer than a file should be: one connection's state machine, every part of which nghttp2 calls back with the same session.

#include <nghttp2/nghttp2.h>

#include <random>

#include "base/log.h"
#include "base/mutex.h"

namespace berth::net {
namespace {

constexpr std::uint32_t kStreamWindow = 256 * 1024;  // As kube-apiserver has it: most bodies fit at once.
constexpr std::int32_t kConnectionWindow = 1024 * 1024;
/// Unsent of a connection's answers, with what is expected of those under way, beyond which no further request of it is taken up.
constexpr std::size_t kMaxUnreadAnswers = 16 * 1024 * 1024;
/// Handed to the socket's queue at a time: the rest waits on its streams, so that none is behind another's list.
constexpr std::size_t kMaxInSocketQueue = 256 * 1024;
/// Exchanges under work, those of reset streams included, for each that may be open.
constexpr std::size_t kMaxLivingPerStream = 4;
constexpr auto kGoawayWait = std::chrono::seconds(1);
constexpr int kTicksPerCheck = 10;
constexpr std::uint8_t kGoawayPing[8] = {'b', 'e', 'r', 't', 'h', 'b', 'y', 'e'};

std::string_view view_of(const std::uint8_t* data, std::size_t size) { return {reinterpret_cast<const char*>(data), size}; }

nghttp2_nv field_of(std::string_view name, std::string_view value) {
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())), reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
          name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

/// Before anybody knows how long an answer is: a read's may be long, another's is about what was sent.
std::size_t expected_answer(const HttpRequest& request) {
  constexpr std::size_t kOfRead = 1024 * 1024, kLeast = 4096;
  return request.method == "GET" ? kOfRead : kLeast + request.body.size();
}

bool happens(double chance) {
  if (chance <= 0) return false;
  static thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<>(0, 1)(random) < chance;
}

}  // namespace

struct Http2Session::Callbacks {
  static Http2Session& of(void* user) { return *static_cast<Http2Session*>(user); }

  static int on_begin_frame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
    return of(user).pay_frame(frame->type, frame->length) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    return of(user).begin_stream(frame->hd.stream_id) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    auto* stream = of(user).find(frame->hd.stream_id);
    if (stream != nullptr && !stream->has_head) of(user).take_field(*stream, view_of(name, name_size), view_of(value, value_size));
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& self = of(user);
    if (frame->hd.type == NGHTTP2_RST_STREAM) self.pay_reset();
    if (frame->hd.type == NGHTTP2_SETTINGS) self.greeted_ = true;
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 && self.goaway_begun_ &&
        std::memcmp(frame->ping.opaque_data, kGoawayPing, sizeof kGoawayPing) == 0)
      self.finish_goaway();
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    auto* stream = self.find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !stream->has_head)
      self.take_head(*stream, ends);
    else if (ends)
      self.take_end(*stream);
    return self.connection_ ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data, std::size_t size, void* user) {
    auto* stream = of(user).find(id);
    return stream == nullptr || of(user).take_body(*stream, view_of(data, size)) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  static int on_invalid(nghttp2_session*, const nghttp2_frame*, int, void* user) {
    of(user).pay_reset();
    return 0;
  }
  static int on_stream_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    of(user).end_stream(id);
    return 0;
  }
  static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    auto& self = of(user);
    const auto type = frame->hd.type;
    // A stream that we end for the peer's fault is as cheap for it as one that it resets.
    if (type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR && frame->rst_stream.error_code != NGHTTP2_CANCEL)
      self.pay_reset();
    if ((type != NGHTTP2_HEADERS && type != NGHTTP2_DATA) || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    // Answered before the request was there (RFC 9113 8.1): the rest of it is not wanted.
    const auto* stream = self.find(frame->hd.stream_id);
    if (stream != nullptr && !stream->is_complete)
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
  }
  static int on_not_sent(nghttp2_session* session, const nghttp2_frame* frame, int, void*) {
    if (frame->hd.type == NGHTTP2_HEADERS)
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_INTERNAL_ERROR);
    return 0;
  }

  /// How much of the next DATA frame there is; send_data gives it.
  static ssize_t measure(nghttp2_session*, std::int32_t id, std::uint8_t*, std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                         void* user) {
    auto* stream = of(user).find(id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (stream->out_bytes == 0 && !stream->is_ended) {
      stream->is_deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    const auto part = std::min(size, stream->out_bytes);
    if (part > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (part == stream->out_bytes && stream->is_ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(part);
  }
  static int send_data(nghttp2_session*, nghttp2_frame* frame, const std::uint8_t* header, std::size_t size, nghttp2_data_source*,
                       void* user) {
    auto* stream = of(user).find(frame->hd.stream_id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return of(user).send_part(*stream, header, size) ? 0 : NGHTTP2_ERR_WOULDBLOCK;
  }

  /// Frames of types that nobody knows are passed over; they are only counted, by on_begin_frame.
  static int pass_over(nghttp2_session*, const nghttp2_frame_hd*, const std::uint8_t*, std::size_t, void*) { return NGHTTP2_ERR_CANCEL; }
  static int unpack_nothing(nghttp2_session*, void**, const nghttp2_frame_hd*, void*) { return NGHTTP2_ERR_CANCEL; }

  static const nghttp2_session_callbacks* all() {
    static const nghttp2_session_callbacks* const made = [] {
      nghttp2_session_callbacks* out = nullptr;
      nghttp2_session_callbacks_new(&out);
      nghttp2_session_callbacks_set_on_begin_frame_callback(out, on_begin_frame);
      nghttp2_session_callbacks_set_on_begin_headers_callback(out, on_begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(out, on_header);
      nghttp2_session_callbacks_set_on_frame_recv_callback(out, on_frame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(out, on_data);
      nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(out, on_invalid);
      nghttp2_session_callbacks_set_on_stream_close_callback(out, on_stream_close);
      nghttp2_session_callbacks_set_on_frame_send_callback(out, on_sent);
      nghttp2_session_callbacks_set_on_frame_not_send_callback(out, on_not_sent);
      nghttp2_session_callbacks_set_send_data_callback(out, send_data);
      nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(out, pass_over);
      nghttp2_session_callbacks_set_unpack_extension_callback(out, unpack_nothing);
      return out;
    }();
    return made;
  }

  static const nghttp2_option* options() {
    static const nghttp2_option* const made = [] {
      nghttp2_option* out = nullptr;
      nghttp2_option_new(&out);
      nghttp2_option_set_no_closed_streams(out, 1);
      nghttp2_option_set_max_outbound_ack(out, 200);
      for (unsigned type = 10; type < 256; ++type) nghttp2_option_set_user_recv_extension_type(out, static_cast<std::uint8_t>(type));
      return out;
    }();
    return made;
  }
};

Http2Session::Http2Session(Handler& handler, std::shared_ptr<Reactor> reactor, const Http2Limits& limits, SessionTimeouts timeouts,
                           std::shared_ptr<BodyRules> bodies)
    : handler_(handler), reactor_(std::move(reactor)), limits_(limits), timeouts_(timeouts), bodies_(std::move(bodies)) {
  nghttp2_session_server_new2(&session_, Callbacks::all(), this, Callbacks::options());
}

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

void Http2Session::attach(std::shared_ptr<Connection> connection) {
  connection_ = std::move(connection);
  idle_since_ = reactor_->now();
}

void Http2Session::on_open() {
  peer_ = connection_->peer();
  idle_since_ = reactor_->now();
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits_.parser.max_header_bytes)},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  schedule_pump();
}

Http2Session::Stream* Http2Session::find(std::int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

Http2Session::Stream* Http2Session::find(const std::shared_ptr<ExchangeState>& exchange) {
  auto* stream = connection_ ? find(exchange->stream_id) : nullptr;
  return stream != nullptr && stream->exchange == exchange ? stream : nullptr;
}

// --- input ---

std::size_t Http2Session::on_input(std::string_view data) {
  const auto keep = shared_from_this();
  if (!connection_ || !connection_->is_open()) return data.size();
  const auto taken = nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(data.data()), data.size());
  if (!connection_) return data.size();
  if (taken < 0) {
    // What the library found wrong it says in a GOAWAY of its own; after calm_down one is queued.
    pump();
    if (connection_) connection_->close_after_flush();
    return data.size();
  }
  schedule_pump();
  return static_cast<std::size_t>(taken);
}

bool Http2Session::pay_frame(std::uint8_t type, std::size_t length) {
  if (!connection_) return false;
  static constexpr std::size_t kWorthItsFrame = 256;
  if (type == NGHTTP2_HEADERS || (type == NGHTTP2_DATA && length >= kWorthItsFrame)) return true;
  if (budget_.frames.take(reactor_->now())) return true;
  calm_down("too many frames that bring nothing");
  return false;
}

void Http2Session::pay_reset() {
  if (!budget_.resets.take(reactor_->now())) calm_down("too many streams were reset");
}

void Http2Session::calm_down(const char* why) {
  if (connection_) log::warning("net", "HTTP/2 connection of {} is ended: {}", connection_->remote_address(), why);
  goaway_begun_ = goaway_finished_ = true;
  nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
}

bool Http2Session::begin_stream(std::int32_t id) {
  if (!connection_) return false;
  if (living_->load(std::memory_order_relaxed) >= kMaxLivingPerStream * limits_.max_streams) {
    reset(id, NGHTTP2_REFUSED_STREAM);
    return true;
  }
  auto stream = std::make_unique<Stream>(bodies_);
  stream->id = id;
  stream->since = reactor_->now();
  streams_.emplace(id, std::move(stream));
  // All in turn: by itself the library would send one answer to its end before it begins the next.
  const nghttp2_extpri in_turn{.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
  nghttp2_session_change_extpri_stream_priority(session_, id, &in_turn, 1);
  return true;
}

void Http2Session::take_field(Stream& stream, std::string_view name, std::string_view value) {
  static constexpr std::size_t kPerField = 32;  // RFC 9113 6.5.2
  stream.header_bytes += name.size() + value.size() + kPerField;
  if (stream.header_bytes > limits_.parser.max_header_bytes) return;
  if (name == ":method") {
    stream.request.method = value;
  } else if (name == ":path") {
    stream.target = value;
  } else if (name == ":authority") {
    stream.authority = value;
  } else if (name == "cookie") {
    stream.cookies.append(stream.cookies.empty() ? "" : "; ").append(value);
  } else if (!name.starts_with(':')) {
    stream.request.headers.add(std::string(name), std::string(value));
  }
}

void Http2Session::take_head(Stream& stream, bool ends) {
  stream.has_head = true;
  stream.is_complete = ends;
  auto& request = stream.request;
  if (stream.header_bytes > limits_.parser.max_header_bytes)
    return refuse(stream, {431, fmt::format("the request's header is larger than {} bytes", limits_.parser.max_header_bytes)});
  if (request.method == "CONNECT") return refuse(stream, {405, "this server is no proxy"});
  if (!read_target(stream.target, request)) return refuse(stream, {400, "malformed path in the request line"});
  if (!stream.authority.empty()) request.headers.set("host", std::exchange(stream.authority, {}));
  if (request.headers.get("host").empty()) return refuse(stream, {400, "missing required Host header"});
  if (!stream.cookies.empty()) request.headers.add("cookie", std::exchange(stream.cookies, {}));
  stream.target = {};
  request.peer = peer_;
  request.remote_address = connection_->remote_address();
  if (ends) return dispatch(stream);
  if (const auto expected = request.headers.get("expect"); !expected.empty()) {
    if (!equal_ignoring_case(expected, "100-continue")) return refuse(stream, {417, "only Expect: 100-continue is known"});
    const nghttp2_nv go_on[] = {field_of(":status", "100")};
    nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream.id, nullptr, go_on, 1, nullptr);
  }
}

bool Http2Session::take_body(Stream& stream, std::string_view data) {
  if (!connection_) return false;
  if (stream.is_refused || stream.exchange) return true;  // Nobody wants it any more.
  stream.request.body.append(data);
  if (const auto failure = check_body(stream); failure.status != 0) refuse(stream, failure);
  return true;
}

ParseFailure Http2Session::check_body(Stream& stream) {
  const auto& request = stream.request;
  if (request.body.size() > limits_.parser.max_body_bytes)
    return {413, fmt::format("the request's body is larger than {} bytes", limits_.parser.max_body_bytes)};
  return stream.body_gate.take(request.body.size(), [&] { return head_of(request); });
}

void Http2Session::take_end(Stream& stream) {
  if (std::exchange(stream.is_complete, true) || stream.is_refused) return;
  dispatch(stream);
}

void Http2Session::dispatch(Stream& stream) {
  // A body that is held back counts on.
  if (!has_room_for(stream)) return held_.push_back(stream.id);
  stream.body_gate.end();
  expect(stream, expected_answer(stream.request));
  auto exchange = std::make_shared<ExchangeState>();
  exchange->reactor = reactor_;
  exchange->session = weak_from_this();
  exchange->is_http2 = true;
  exchange->stream_id = stream.id;
  exchange->living = living_;
  ++*living_;
  auto request = std::exchange(stream.request, HttpRequest{});
  exchange->method = request.method;
  exchange->accepts_gzip = has_token(request.headers.get("accept-encoding"), "gzip");
  stream.exchange = exchange;
  if (happens(limits_.goaway_chance)) begin_goaway();
  try {
    handler_.handle(std::move(request), make_exchange_writer(std::move(exchange)));
  } catch (const std::exception& error) {
    // The writer was dropped on the way up and has answered 500; one bad request must not end the server.
    log::error("net", "the request handler failed: {}", error.what());
  }
}

bool Http2Session::has_room_for(const Stream& stream) const {
  return unsent_bytes_ + expected_bytes_ == 0 || unsent_bytes_ + expected_bytes_ + expected_answer(stream.request) <= kMaxUnreadAnswers;
}

void Http2Session::expect(Stream& stream, std::size_t bytes) { expected_bytes_ += bytes - std::exchange(stream.expected_bytes, bytes); }

void Http2Session::dispatch_held() {
  while (!held_.empty() && connection_) {
    auto* stream = find(held_.front());
    if (stream != nullptr && !has_room_for(*stream)) return;
    held_.pop_front();
    if (stream != nullptr) dispatch(*stream);
  }
}

void Http2Session::refuse(Stream& stream, const ParseFailure& failure) {
  stream.is_refused = true;
  stream.body_gate.end();
  const bool has_body = stream.request.method != "HEAD";
  stream.request = {};
  auto body = refusal_body(failure);
  WireHead head;
  head.fields = {
      {":status", std::to_string(failure.status)}, {"content-type", "application/json"}, {"content-length", std::to_string(body.size())}};
  send_head(stream, head, has_body);
  if (has_body) queue(stream, make_bytes(std::move(body)));
  end_output(stream);
  if (failure.status == 401) begin_goaway();
}

void Http2Session::end_stream(std::int32_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const auto stream = std::move(found->second);
  streams_.erase(found);
  expect(*stream, 0);
  unsent_bytes_ -= stream->out_bytes;
  idle_since_ = reactor_->now();
  if (stream->exchange) let_go(stream->exchange);
  schedule_pump();  // It may have been the last one of a connection that ends.
}

// --- output ---

void Http2Session::answer(const std::shared_ptr<ExchangeState>& exchange, WireAnswer answer) {
  auto* stream = find(exchange);
  if (stream == nullptr) return;
  const bool has_body = !answer.body.empty();
  // Who is not known gets no connection on which asking costs nothing (Kubernetes' UnauthenticatedHTTP2DOSMitigation).
  if (answer.closes || answer.head.fields.front().second == "401") begin_goaway();
  send_head(*stream, answer.head, has_body);
  for (auto& part : answer.body) queue(*stream, std::move(part));
  end_output(*stream);
}

void Http2Session::start_stream(const std::shared_ptr<ExchangeState>& exchange, WireHead head) {
  auto* stream = find(exchange);
  if (stream == nullptr) return;
  bool has_body = true;
  {
    const MutexLock lock(exchange->mutex);
    has_body = exchange->has_body;
  }
  send_head(*stream, head, has_body);
  flush_stream(exchange);
}

void Http2Session::flush_stream(const std::shared_ptr<ExchangeState>& exchange) {
  auto* stream = find(exchange);
  if (stream == nullptr) return;
  std::vector<Bytes> chunks;
  bool finished = false;
  {
    const MutexLock lock(exchange->mutex);
    exchange->flush_posted = false;
    chunks.swap(exchange->pending);
    finished = exchange->finished;
  }
  std::size_t size = 0;
  for (auto& chunk : chunks) {
    size += chunk->size();
    queue(*stream, std::move(chunk));
  }
  exchange->connection_bytes = stream->out_bytes;
  exchange->pending_bytes -= size;
  if (finished) end_output(*stream);
  // When there was nothing to write nothing is sent either, and whoever waits for an empty queue is told here.
  if (!finished && stream->out_bytes == 0) note_output(exchange, 0);
}

void Http2Session::abort(const std::shared_ptr<ExchangeState>& exchange) {
  if (const auto* stream = find(exchange); stream != nullptr) reset(stream->id, NGHTTP2_INTERNAL_ERROR);
}

void Http2Session::reset(std::int32_t id, std::uint32_t code) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
  schedule_pump();
}

void Http2Session::send_head(Stream& stream, const WireHead& head, bool has_body) {
  std::vector<nghttp2_nv> fields;
  fields.reserve(head.fields.size());
  for (const auto& [name, value] : head.fields) fields.push_back(field_of(name, value));
  const nghttp2_data_provider body{.source = {}, .read_callback = Callbacks::measure};
  expect(stream, 0);  // From here on it is known.
  stream.was_answered = true;
  stream.since = reactor_->now();
  const int problem = nghttp2_submit_response(session_, stream.id, fields.data(), fields.size(), has_body ? &body : nullptr);
  if (problem != 0) reset(stream.id, NGHTTP2_INTERNAL_ERROR);
  schedule_pump();
}

void Http2Session::queue(Stream& stream, Bytes bytes) {
  if (bytes->empty()) return;
  if (stream.out_bytes == 0) stream.since = reactor_->now();
  stream.out_bytes += bytes->size();
  unsent_bytes_ += bytes->size();
  stream.out.push_back(std::move(bytes));
  wake(stream);
}

void Http2Session::end_output(Stream& stream) {
  stream.is_ended = true;
  wake(stream);
}

void Http2Session::wake(Stream& stream) {
  if (std::exchange(stream.is_deferred, false)) nghttp2_session_resume_data(session_, stream.id);
  schedule_pump();
}

bool Http2Session::send_part(Stream& stream, const std::uint8_t* frame_header, std::size_t size) {
  static constexpr std::size_t kFrameHeader = 9;
  if (!connection_) return true;
  if (connection_->queued_bytes() >= kMaxInSocketQueue) {
    socket_is_full_ = true;
    return false;
  }
  connection_->write(std::string(view_of(frame_header, kFrameHeader)));
  stream.out_bytes -= size;
  unsent_bytes_ -= size;
  stream.since = reactor_->now();
  budget_.frames.give(static_cast<double>(size) * Http2Budget::kFramesPerByteSent);
  progressed_.push_back(stream.id);
  while (size > 0) {
    auto& first = stream.out.front();
    const auto part = std::min(size, first->size() - stream.out_at);
    const bool is_rest = stream.out_at + part == first->size();
    connection_->write(is_rest ? std::move(first) : first, stream.out_at, part);
    size -= part;
    stream.out_at += part;
    if (is_rest) {
      stream.out.pop_front();
      stream.out_at = 0;
    }
  }
  return true;
}

void Http2Session::schedule_pump() {
  if (std::exchange(pump_scheduled_, true)) return;
  reactor_->run_at_end_of_batch([self = shared_from_this()] { self->pump(); });
}

void Http2Session::pump() {
  pump_scheduled_ = false;
  if (!connection_ || !connection_->is_open() || std::exchange(is_pumping_, true)) return;
  const auto keep = shared_from_this();
  socket_is_full_ = false;
  while (connection_ && !socket_is_full_) {
    if (connection_->queued_bytes() >= kMaxInSocketQueue) {
      socket_is_full_ = true;
      break;
    }
    const std::uint8_t* data = nullptr;
    const auto size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) {
      is_pumping_ = false;
      return connection_->close(nghttp2_strerror(static_cast<int>(size)));
    }
    if (size == 0) break;
    connection_->write(std::string(view_of(data, static_cast<std::size_t>(size))));
  }
  is_pumping_ = false;
  if (connection_) connection_->flush();
  const auto progressed = std::exchange(progressed_, {});
  for (const auto id : progressed)
    if (const auto* stream = find(id); connection_ && stream != nullptr && stream->exchange) {
      const auto exchange = stream->exchange;
      note_output(exchange, stream->out_bytes);
    }
  dispatch_held();
  close_when_done();
}

void Http2Session::on_output() {
  if (socket_is_full_ && connection_ && connection_->queued_bytes() < kMaxInSocketQueue) schedule_pump();
}

// --- the end ---

void Http2Session::begin_goaway() {
  if (std::exchange(goaway_begun_, true)) return;
  // In two steps (RFC 9113 6.8): what the peer sent before it heard of the first is still served.
  nghttp2_submit_shutdown_notice(session_);
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, kGoawayPing);
  goaway_since_ = reactor_->now();
  schedule_pump();
}

void Http2Session::finish_goaway() {
  if (std::exchange(goaway_finished_, true)) return;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR, nullptr, 0);
  schedule_pump();
}

void Http2Session::close_when_done() {
  if (!connection_ || nghttp2_session_want_write(session_) != 0) return;
  if ((goaway_finished_ && streams_.empty()) || nghttp2_session_want_read(session_) == 0) connection_->close_after_flush();
}

void Http2Session::on_eof() { connection_->close("the client has gone"); }

void Http2Session::on_hangup() { connection_->close("the client has gone"); }

void Http2Session::on_tick(MonotonicTime now) {
  if (!connection_) return;
  if (connection_->queued_bytes() > 0 && now - connection_->last_write_progress() > timeouts_.write)
    return connection_->close("the client does not read");
  if (goaway_begun_ && !goaway_finished_ && now - goaway_since_ > kGoawayWait) finish_goaway();
  if (!streams_.empty()) {
    if (++ticks_ % kTicksPerCheck == 0) check_streams(now);
    return;
  }
  if (!greeted_ && now - idle_since_ > timeouts_.header) return connection_->close("the client does not speak HTTP/2");
  if (now - idle_since_ > timeouts_.idle) begin_goaway();
}

void Http2Session::check_streams(MonotonicTime now) {
  std::vector<std::int32_t> late;
  for (const auto& [id, stream] : streams_) {
    const auto age = now - stream->since;
    const bool is_unread = stream->out_bytes > 0 && age > timeouts_.write;
    const auto allowed = timeouts_.header + std::chrono::milliseconds(stream->request.body.size() * 1000 / BodyPace::kMinBytesPerSecond);
    const bool comes_too_slowly = !stream->is_complete && !stream->was_answered && age > allowed;
    if (is_unread || comes_too_slowly) late.push_back(id);
  }
  for (const auto id : late) reset(id, NGHTTP2_CANCEL);
}

void Http2Session::on_closed(const std::string&) {
  const auto keep = shared_from_this();
  connection_.reset();
  auto streams = std::exchange(streams_, {});
  held_.clear();
  for (auto& [id, stream] : streams) {
    if (stream->exchange) let_go(stream->exchange);
  }
  if (on_gone_) std::exchange(on_gone_, nullptr)();
  if (on_freed_) std::exchange(on_freed_, nullptr)();
}

bool Http2Session::is_answering() const {
  if (!connection_) return false;
  if (!goaway_finished_ || !held_.empty() || connection_->queued_bytes() > 0) return true;
  return std::ranges::any_of(streams_, [](const auto& entry) {
    const auto& exchange = entry.second->exchange;
    if (!exchange) return true;
    const MutexLock lock(exchange->mutex);
    return !exchange->is_stream;
  });
}

void Http2Session::wind_down(bool end_streams) {
  if (!connection_) return;
  begin_goaway();
  if (!end_streams) return close_when_done();
  finish_goaway();
  std::vector<std::shared_ptr<ExchangeState>> ending;
  for (const auto& [id, stream] : streams_) {
    if (!stream->exchange) continue;
    const MutexLock lock(stream->exchange->mutex);
    if (stream->exchange->is_stream && !std::exchange(stream->exchange->finished, true)) ending.push_back(stream->exchange);
  }
  for (const auto& exchange : ending) flush_stream(exchange);
  close_when_done();
}

}  // namespace berth::net
