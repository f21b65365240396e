// HTTP/1.1 client with keep-alive connections, over TLS or plain TCP.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "net/http.h"

namespace berth::net {

struct ClientConfig {
  std::string url;  ///< scheme://host[:port], optionally with a path that goes before every request's.
  std::string ca_pem;
  std::string certificate_pem, private_key_pem;  ///< Client certificate, or empty.
  bool insecure_skip_verify = false;
  std::string server_name;   ///< SNI and verification name when it differs from the URL's host.
  int max_connections = 64;  ///< For exchanges; streams have connections of their own.
  int timeout_ms = 60'000;   ///< Per exchange; streams have none.
  int io_threads = 1;
};

/// A response that arrives in pieces. Callbacks come from the client's I/O thread, one at a time.
struct StreamCallbacks {
  std::function<void(int status, const Headers&)> on_header;
  std::function<void(std::string_view data)> on_data;
  std::function<void(std::string error)> on_end;  ///< Once, last; empty: the peer ended it in order.
};

/// Cancels its stream when destroyed; afterwards no callback runs (must not be destroyed from within a callback of its own).
class StreamHandle {
 public:
  virtual ~StreamHandle() = default;
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
  /// Opens a connection of its own for a protocol upgrade; `done` gets the stream on 101, otherwise null and the response.
  virtual void upgrade(HttpRequest request, std::function<void(std::unique_ptr<RawStream>, HttpResponse)> done) = 0;
};

}  // namespace berth::net
