#include "net/websocket.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/base64.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/split.h"
#include "base/utf8.h"
#include "net/http_parser.h"

namespace berth::net {
namespace {

enum Opcode : std::uint8_t { kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };
constexpr std::uint16_t kNormal = 1000, kProtocolError = 1002, kNoCode = 1005, kAbnormal = 1006, kBadData = 1007, kTooBig = 1009;

bool is_valid_close_code(unsigned code) {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != kNoCode && code != kAbnormal) || (code >= 3000 && code <= 4999);
}

}  // namespace

std::string websocket_accept_key(std::string_view key) {
  const auto text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return base64_encode({reinterpret_cast<const char*>(digest.data()), size});
}

bool is_websocket_request(const HttpRequest& request) {
  return has_token(request.headers.get("Connection"), "upgrade") && has_token(request.headers.get("Upgrade"), "websocket");
}

std::optional<Headers> websocket_answer(const HttpRequest& request, std::string_view protocol) {
  const auto key = request.headers.get("Sec-WebSocket-Key");
  if (request.method != "GET" || !is_websocket_request(request) || key.size() != 24 || request.headers.get("Sec-WebSocket-Version") != "13")
    return std::nullopt;
  Headers out;
  out.add("Upgrade", "websocket");
  out.add("Connection", "Upgrade");
  out.add("Sec-WebSocket-Accept", websocket_accept_key(key));
  if (!protocol.empty()) out.add("Sec-WebSocket-Protocol", std::string(protocol));
  return out;
}

namespace {

/// Calls each(protocol) for what a list offers.
template <typename Each>
void for_each_protocol(std::string_view list, const Each& each) {
  for (const auto part : split(list, ','))
    if (const auto one = trim(part); !one.empty()) each(one);
}

}  // namespace

std::optional<std::string> websocket_token(const HttpRequest& request) {
  if (!is_websocket_request(request)) return std::nullopt;
  int tokens = 0, others = 0;
  std::optional<std::string> token;
  for (const auto& [name, value] : request.headers.fields()) {
    if (!equal_ignoring_case(name, "Sec-WebSocket-Protocol")) continue;
    for_each_protocol(value, [&](std::string_view protocol) {
      const bool is_token = protocol.starts_with(kWebsocketTokenPrefix);
      ++(is_token ? tokens : others);
      if (is_token) token = base64url_decode(protocol.substr(kWebsocketTokenPrefix.size()));
    });
  }
  if (tokens == 0) return std::nullopt;
  return tokens == 1 && others > 0 && token && is_utf8(*token) ? std::move(token) : std::string();
}

std::string without_websocket_token(std::string_view protocols) {
  std::string out;
  for_each_protocol(protocols, [&](std::string_view protocol) {
    if (!protocol.starts_with(kWebsocketTokenPrefix)) out.append(out.empty() ? "" : ", ").append(protocol);
  });
  return out;
}

std::string choose_websocket_protocol(const HttpRequest& request, const std::vector<std::string>& supported) {
  for (const auto& protocol : supported) {
    for (const auto& [name, value] : request.headers.fields()) {
      if (equal_ignoring_case(name, "Sec-WebSocket-Protocol") && has_token(value, protocol)) return protocol;
    }
  }
  return {};
}

std::string add_websocket_headers(HttpRequest& request, const std::vector<std::string>& protocols) {
  std::array<unsigned char, 16> nonce{};
  RAND_bytes(nonce.data(), static_cast<int>(nonce.size()));
  auto key = base64_encode({reinterpret_cast<const char*>(nonce.data()), nonce.size()});
  request.method = "GET";
  request.headers.set("Connection", "Upgrade");
  request.headers.set("Upgrade", "websocket");
  request.headers.set("Sec-WebSocket-Version", "13");
  request.headers.set("Sec-WebSocket-Key", key);
  std::string list;
  for (const auto& protocol : protocols) list += (list.empty() ? "" : ", ") + protocol;
  if (!list.empty()) request.headers.set("Sec-WebSocket-Protocol", list);
  return key;
}

bool check_websocket_answer(const HttpResponse& response, std::string_view key) {
  return response.status == 101 && has_token(response.headers.get("Upgrade"), "websocket") &&
         response.headers.get("Sec-WebSocket-Accept") == websocket_accept_key(key);
}

std::string websocket_frame(WebSocketRole role, std::uint8_t opcode, std::string_view payload) {
  std::string out;
  out.reserve(payload.size() + 14);
  out.push_back(static_cast<char>(0x80 | opcode));
  const std::uint8_t mask_bit = role == WebSocketRole::kClient ? 0x80 : 0;
  const auto big_endian = [&](std::uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i) & 255));
  };
  if (payload.size() < 126) {
    out.push_back(static_cast<char>(mask_bit | payload.size()));
  } else if (payload.size() < 65536) {
    out.push_back(static_cast<char>(mask_bit | 126));
    big_endian(payload.size(), 2);
  } else {
    out.push_back(static_cast<char>(mask_bit | 127));
    big_endian(payload.size(), 8);
  }
  if (mask_bit == 0) return out.append(payload);
  std::array<unsigned char, 4> mask{};
  RAND_bytes(mask.data(), static_cast<int>(mask.size()));
  out.append(reinterpret_cast<char*>(mask.data()), mask.size());
  for (std::size_t i = 0; i < payload.size(); ++i) out.push_back(static_cast<char>(static_cast<unsigned char>(payload[i]) ^ mask[i % 4]));
  return out;
}

// --- WebSocketParser ---

std::uint16_t WebSocketParser::feed(std::string_view data, std::vector<WebSocketMessage>& out) {
  buffer_.append(data);
  std::size_t at = 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(buffer_[at + i]); };
  std::uint16_t fault = 0;
  while (fault == 0 && buffer_.size() - at >= 2) {
    const std::size_t available = buffer_.size() - at;
    is_final_ = (byte(0) & 0x80) != 0;
    opcode_ = byte(0) & 15;
    const bool is_masked = (byte(1) & 0x80) != 0, is_control = (opcode_ & 8) != 0;
    std::uint64_t size = byte(1) & 127;
    if ((byte(0) & 0x70) != 0 || is_masked != (role_ == WebSocketRole::kServer) || (is_control && (!is_final_ || size > 125)) ||
        (opcode_ > kBinary && opcode_ < kClose) || opcode_ > kPong) {
      fault = kProtocolError;
      break;
    }
    const std::size_t size_bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
    const std::size_t head = 2 + size_bytes + (is_masked ? 4 : 0);
    if (available < 2 + size_bytes) break;
    if (size_bytes > 0) {
      size = 0;
      for (std::size_t i = 0; i < size_bytes; ++i) size = size << 8 | byte(2 + i);
    }
    if (size > max_message_bytes_ || message_.size() + size > max_message_bytes_) {
      fault = kTooBig;
      break;
    }
    if (available < head + size) break;
    std::string payload = buffer_.substr(at + head, size);
    if (is_masked) {
      for (std::size_t i = 0; i < payload.size(); ++i)
        payload[i] = static_cast<char>(static_cast<unsigned char>(payload[i]) ^ byte(head - 4 + i % 4));
    }
    at += head + size;
    fault = take_frame(payload, out);
  }
  buffer_.erase(0, at);
  return fault;
}

std::uint16_t WebSocketParser::take_frame(std::string_view payload, std::vector<WebSocketMessage>& out) {
  switch (opcode_) {
    case kPing:
      out.push_back({WebSocketMessage::Kind::kPing, std::string(payload)});
      return 0;
    case kPong:
      out.push_back({WebSocketMessage::Kind::kPong, std::string(payload)});
      return 0;
    case kClose: {
      if (payload.size() == 1) return kProtocolError;
      WebSocketMessage message{WebSocketMessage::Kind::kClose, {}, kNoCode};
      if (payload.size() >= 2) {
        message.code = static_cast<std::uint16_t>(static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]));
        message.data = payload.substr(2);
        if (!is_valid_close_code(message.code)) return kProtocolError;
        if (!is_utf8(message.data)) return kBadData;
      }
      out.push_back(std::move(message));
      return 0;
    }
    default:
      break;
  }
  // A continuation without a beginning, or a beginning within a message.
  if ((opcode_ == kContinuation) == (message_opcode_ == 0)) return kProtocolError;
  if (opcode_ != kContinuation) message_opcode_ = opcode_;
  message_.append(payload);
  if (!is_final_) return 0;
  const bool is_text = std::exchange(message_opcode_, std::uint8_t{0}) == kText;
  if (is_text && !is_utf8(message_)) return kBadData;
  out.push_back({is_text ? WebSocketMessage::Kind::kText : WebSocketMessage::Kind::kBinary, std::exchange(message_, {})});
  return 0;
}

// --- WebSocket ---

struct WebSocket::State : std::enable_shared_from_this<WebSocket::State> {
  State(std::unique_ptr<RawStream> s, WebSocketRole r, Callbacks c, std::size_t max)
      : stream(std::move(s)), role(r), callbacks(std::move(c)), parser(r, max) {}

  std::unique_ptr<RawStream> stream;
  const WebSocketRole role;
  Gate gate;  ///< Of the callbacks.
  Callbacks callbacks;
  Mutex send_mutex;
  bool is_close_sent BERTH_GUARDED_BY(send_mutex) = false;
  WebSocketParser parser;  // on the I/O thread only

  void read() {
    stream->async_read([self = shared_from_this()](std::string data, bool eof) { self->take(data, eof); });
  }

  void send(std::uint8_t opcode, std::string_view payload) {
    MutexLock lock(send_mutex);
    if (is_close_sent) return;
    is_close_sent = opcode == kClose;
    stream->write(websocket_frame(role, opcode, payload));
  }

  void send_close(std::uint16_t code, std::string_view reason) {
    std::string payload;
    if (code != kNoCode) {
      payload.push_back(static_cast<char>(code >> 8));
      payload.push_back(static_cast<char>(code & 255));
      payload.append(reason.substr(0, 123));
    }
    send(kClose, payload);
  }

  void finish(std::uint16_t code, std::string reason) {
    stream->close();
    GateLock lock(gate);
    callbacks.on_message = nullptr;
    if (callbacks.on_close) std::exchange(callbacks.on_close, nullptr)(code, std::move(reason));
  }

  void take(std::string_view data, bool eof) {
    std::vector<WebSocketMessage> messages;
    const auto fault = parser.feed(data, messages);
    for (auto& message : messages) {
      switch (message.kind) {
        case WebSocketMessage::Kind::kText:
        case WebSocketMessage::Kind::kBinary: {
          GateLock lock(gate);
          if (callbacks.on_message) callbacks.on_message(message.kind, std::move(message.data));
          break;
        }
        case WebSocketMessage::Kind::kPing:
          send(kPong, message.data);
          break;
        case WebSocketMessage::Kind::kPong:
          break;
        case WebSocketMessage::Kind::kClose:
          send_close(message.code, {});
          return finish(message.code, std::move(message.data));
      }
    }
    if (fault != 0) {
      send_close(fault, {});
      return finish(fault, "protocol error");
    }
    if (eof) return finish(kAbnormal, "the connection was closed");
    read();
  }
};

WebSocket::WebSocket(std::unique_ptr<RawStream> stream, WebSocketRole role, Callbacks callbacks, std::size_t max_message_bytes)
    : state_(std::make_shared<State>(std::move(stream), role, std::move(callbacks), max_message_bytes)) {
  state_->read();
}

WebSocket::~WebSocket() {
  {
    GateLock lock(state_->gate);
    state_->callbacks = {};
  }
  state_->send_close(kNormal, {});
  state_->stream->close();
}

void WebSocket::send(WebSocketMessage::Kind kind, std::string_view data) {
  state_->send(kind == WebSocketMessage::Kind::kText ? kText : kBinary, data);
}
void WebSocket::ping() { state_->send(kPing, {}); }
void WebSocket::close(std::uint16_t code, std::string_view reason) { state_->send_close(code, reason); }
std::size_t WebSocket::queued_bytes() const { return state_->stream->queued_bytes(); }

}  // namespace berth::net
