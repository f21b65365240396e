// The shape of an HTTP exchange, without sockets: what the server's handlers see, what transports send, what tests fake.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"

namespace berth::net {

/// Header fields in order; names compare without case.
class Headers {
 public:
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  void set(std::string_view name, std::string value);
  /// The first field's value, or empty.
  [[nodiscard]] std::string_view get(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& fields() const& { return fields_; }
  /// Of headers that nobody else holds: by value, so that a loop over `headers_back(from).fields()` reads what is still there.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> fields() && { return std::move(fields_); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// The verified client certificate's subject: CN is the user, each O a group (Kubernetes x509 authentication). It was good when its
/// connection, or the session that this goes on with, began: whether it still is each request asks anew.
struct PeerCertificate {
  std::string common_name;
  std::vector<std::string> organizations;
  std::string serial;       ///< Lower-case hexadecimal digits; empty where no certificate was shown (in process).
  std::string fingerprint;  ///< SHA-256 of the whole, the same way.
  /// Which of a server's authorities vouch for it (TlsServerConfig): those of clients, those of front proxies, or both.
  bool is_client = true, is_front_proxy = false;
  /// The time in which it and all that vouch for it are good.
  TimePoint not_before = TimePoint::min(), not_after = TimePoint::max();
};

struct HttpRequest {
  std::string method;
  std::string path;   ///< Percent-decoded, never with "." or ".." segments.
  std::string query;  ///< Raw, without '?'.
  Headers headers;
  std::string body;
  std::optional<PeerCertificate> peer;
  std::string remote_address;
};

struct HttpResponse {
  int status = 200;  ///< 0: the exchange failed below HTTP; `body` says how.
  Headers headers;
  std::string body;
};

/// The raw byte stream after a protocol upgrade (exec, attach, port-forward). Threading: one reader, one writer.
class RawStream {
 public:
  virtual ~RawStream() = default;
  virtual void async_read(std::function<void(std::string data, bool eof)> done) = 0;
  virtual void write(std::string data) = 0;
  /// Sends what is queued, then closes. Destruction does the same.
  virtual void close() = 0;
  /// Bytes written and not yet taken by the socket: a writer that produces without end waits while this is large.
  [[nodiscard]] virtual std::size_t queued_bytes() const { return 0; }
  /// Calls `more` once, when queued_bytes() is below a quarter megabyte or the stream is over; at once where that is so already.
  virtual void on_drain(std::function<void()> more) { more(); }
  /// Calls `ended` once when the peer has ended or is gone, whether or not all it sent was read.
  virtual void on_end(std::function<void()> /*ended*/) {}
  /// From now on the stream is closed when no byte went either way for `idle`, or when the peer took nothing of what waits for it for
  /// `unread`. Zero: never. A stream that was closed and whose last bytes nobody takes ends after a minute in any case.
  virtual void set_patience(std::chrono::milliseconds /*idle*/, std::chrono::milliseconds /*unread*/) {}
};

/// The answering side of one request. May be used from any thread, by one at a time. Exactly one of respond, start_stream, upgrade is
/// called, once. Dropping the last reference without answering answers 500.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;
  virtual void respond(HttpResponse response) = 0;
  /// A list or object whose bytes are shared with others: sent without a copy.
  virtual void respond_shared(int status, Headers headers, std::vector<Bytes> parts) = 0;
  /// Starts a chunked answer of unknown length.
  virtual void start_stream(int status, Headers headers) = 0;
  /// Queues one chunk; false when the peer is gone (then stop). Each `write` is flushed as soon as the socket takes it.
  virtual bool write(Bytes chunk) = 0;
  /// The peer is in this process and takes events of a watch as they are (StreamCallbacks::on_event), instead of their text.
  [[nodiscard]] virtual bool takes_events() const { return false; }
  /// Requires takes_events(); otherwise as `write`.
  virtual bool write_event(std::string_view /*type*/, const KeptTextRef& /*object*/) { return false; }
  /// Bytes queued and not yet taken by the socket: the producer's measure of a slow reader.
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  /// Calls once, from the I/O thread, when queued_bytes() falls below a quarter megabyte: to produce more without holding it in memory.
  virtual void on_drain(std::function<void()> more) = 0;
  virtual void finish() = 0;
  /// Calls once when the peer is gone (when this is asked before answering: also when it ends its side) or the answer is complete.
  virtual void on_close(std::function<void()> closed) = 0;
  /// Switches protocols (101 with `headers`) and hands over the connection; null when that is impossible (in process, HTTP error).
  virtual std::unique_ptr<RawStream> upgrade(Headers headers) = 0;
};

/// Serves requests. `handle` is called from I/O threads and must not block long; the answer may come later from any thread.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual void handle(HttpRequest request, std::shared_ptr<ResponseWriter> writer) = 0;
};

/// Query parameters in order, percent-decoded ('+' is a space).
std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query);
std::string percent_encode(std::string_view text);
std::optional<std::string> percent_decode(std::string_view text);
/// The path of a request target, decoded and normalised: "." and ".." resolved, doubled slashes joined. nullopt when it is malformed,
/// climbs above the root, or hides a '/' or NUL behind an escape.
std::optional<std::string> decode_path(std::string_view raw);
bool equal_ignoring_case(std::string_view a, std::string_view b);
/// Whether a comma-separated header value has the token (without case): `Connection: keep-alive, Upgrade`.
bool has_token(std::string_view list, std::string_view token);
/// "Not Found" for 404.
std::string_view reason_phrase(int status);

}  // namespace berth::net
