// HTTP/1.1 client with keep-alive connections, over TLS or plain TCP.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "net/http.h"

namespace berth::net {

class Reactor;
struct SocketAddress;

struct ClientConfig {
  std::string url;  ///< scheme://host[:port], optionally with a path that goes before every request's.
  std::string ca_pem;
  std::string certificate_pem, private_key_pem;  ///< Client certificate, or empty.
  bool insecure_skip_verify = false;
  std::string server_name;   ///< SNI and verification name when it differs from the URL's host.
  int max_connections = 64;  ///< For exchanges; streams have connections of their own.
  int timeout_ms = 60'000;   ///< Per exchange; streams have none.
  int io_threads = 1;
  std::size_t max_answer_bytes = std::size_t{1} << 30;  ///< Of the body of an exchange; more fails it. Streams have no limit.
  /// The I/O thread, shared with other clients; null: threads of this client's own. Then what is under way when the client is destroyed
  /// ends soon after, not before.
  std::shared_ptr<Reactor> reactor;
  /// Asked on an I/O thread of every address before it is connected to, after names were resolved: why it must not be; empty: it may.
  std::function<std::string(const SocketAddress& address)> refuse_address;
  /// When not empty and the server's certificate calls itself a node's (system:node:NAME), it must be this name.
  std::string node_name;
};

/// A response that arrives in pieces. Callbacks come from the client's I/O thread, one at a time.
struct StreamCallbacks {
  std::function<void(int status, const Headers&)> on_header;
  std::function<void(std::string_view data)> on_data;
  /// Of a watch whose server is in this process: an event's type and its object's bytes, shared with the server, in place of the line that
  /// says the same. Unset: every event comes as text. A transport that changes what comes by leaves it unset.
  std::function<void(std::string_view type, const KeptTextRef& object)> on_event;
  std::function<void(std::string error)> on_end;  ///< Once, last; empty: the peer ended it in order.
};

/// Cancels its stream when destroyed; afterwards no callback runs (must not be destroyed from within a callback of its own).
class StreamHandle {
 public:
  virtual ~StreamHandle() = default;
  /// Holds the peer back: soon no on_data comes (what was read already may), and what the peer sends waits in the kernel. Both may be
  /// called from within callbacks.
  virtual void pause() {}
  virtual void resume() {}
};

/// Thread-safe. The destructor cancels what is under way.
class HttpClient {
 public:
  static Result<std::unique_ptr<HttpClient>> create(ClientConfig config);
  virtual ~HttpClient() = default;
  /// `done` is called once from an I/O thread; status 0 means a transport failure described in the body. A GET, HEAD or OPTIONS is
  /// repeated on a fresh connection when a kept-alive one was closed before any byte of the answer came; others are not, as the server may
  /// have acted on them. The request's path is encoded here; Host, Content-Length and the like are added.
  virtual void send(HttpRequest request, std::function<void(HttpResponse)> done) = 0;
  virtual std::unique_ptr<StreamHandle> stream(HttpRequest request, StreamCallbacks callbacks) = 0;
  /// Opens a connection of its own for a protocol upgrade; `done` gets the stream on 101, otherwise null and the response (of at most a
  /// megabyte). The function that is returned calls the attempt off; it may be called at any time, or never.
  virtual std::function<void()> upgrade(HttpRequest request, std::function<void(std::unique_ptr<RawStream>, HttpResponse)> done) = 0;
};

}  // namespace berth::net
