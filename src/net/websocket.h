// WebSockets (RFC 6455) over an upgraded connection, both sides: what exec, attach, port-forward and logs use.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace berth::net {

enum class WebSocketRole { kClient, kServer };

/// Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string websocket_accept_key(std::string_view key);
/// Whether the request asks for a WebSocket (Connection: Upgrade, Upgrade: websocket).
bool is_websocket_request(const HttpRequest& request);
/// The headers of the 101 answer, for ResponseWriter::upgrade. `protocol` (may be empty) is the subprotocol chosen. nullopt: the request is
/// not a well-formed handshake (answer 400).
std::optional<Headers> websocket_answer(const HttpRequest& request, std::string_view protocol);
/// Browsers, which can set no header, bring a bearer token among the protocols that they offer.
constexpr std::string_view kWebsocketTokenPrefix = "base64url.bearer.authorization.k8s.io.";
/// The token that a WebSocket request brings so, decoded; nullopt: none. Empty: one that nobody can have meant (several, badly encoded, or
/// no protocol beside it that could be chosen).
std::optional<std::string> websocket_token(const HttpRequest& request);
/// The offered protocols but the token: it is for this server alone.
std::string without_websocket_token(std::string_view protocols);
/// The first of `supported` that the client offers in Sec-WebSocket-Protocol; empty when none.
std::string choose_websocket_protocol(const HttpRequest& request, const std::vector<std::string>& supported);
/// Adds the handshake's headers for the subprotocols (best first); returns the key, for check_websocket_answer.
std::string add_websocket_headers(HttpRequest& request, const std::vector<std::string>& protocols);
bool check_websocket_answer(const HttpResponse& response, std::string_view key);

/// One message or control frame taken out of the stream.
struct WebSocketMessage {
  enum class Kind { kText, kBinary, kPing, kPong, kClose };
  Kind kind = Kind::kBinary;
  std::string data;        ///< Of kClose: the reason.
  std::uint16_t code = 0;  ///< Of kClose; 1005 when the peer gave none.
};

/// Frames to messages, without I/O. Fragments are joined.
class WebSocketParser {
 public:
  WebSocketParser(WebSocketRole role, std::size_t max_message_bytes) : role_(role), max_message_bytes_(max_message_bytes) {}
  /// Appends what is complete. Returns 0, or the close code (1002, 1007, 1009) that the stream's fault calls for; then feed no more.
  std::uint16_t feed(std::string_view data, std::vector<WebSocketMessage>& out);

 private:
  std::uint16_t take_frame(std::string_view payload, std::vector<WebSocketMessage>& out);

  WebSocketRole role_;
  std::size_t max_message_bytes_;
  std::string buffer_, message_;
  std::uint8_t opcode_ = 0, message_opcode_ = 0;
  bool is_final_ = false;
};

/// One frame. A client's is masked.
std::string websocket_frame(WebSocketRole role, std::uint8_t opcode, std::string_view payload);

/// A WebSocket in use. send, ping, close: from any thread. Pings are answered; the close handshake is done here.
class WebSocket {
 public:
  struct Callbacks {
    std::function<void(WebSocketMessage::Kind kind, std::string data)> on_message;  ///< kText or kBinary only.
    /// Once, last. 1006 when the connection ended without a close frame.
    std::function<void(std::uint16_t code, std::string reason)> on_close;
  };

  /// `callbacks` run on the connection's I/O thread, one at a time; from now on.
  WebSocket(std::unique_ptr<RawStream> stream, WebSocketRole role, Callbacks callbacks, std::size_t max_message_bytes = 16 * 1024 * 1024);
  /// Closes; afterwards no callback runs (must not be destroyed from within one).
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  void send(WebSocketMessage::Kind kind, std::string_view data);
  void ping();
  void close(std::uint16_t code = 1000, std::string_view reason = {});
  [[nodiscard]] std::size_t queued_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::net
