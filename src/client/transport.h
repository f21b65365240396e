// The seam between clients and servers: requests go out, responses and streams come back; over HTTPS or straight into the pipeline.
#pragma once
#include "net/client.h"
#include "net/http.h"

namespace berth::client {

/// Thread-safe. Callbacks come from the transport's thread (in process: from whatever thread commits), never from within send itself unless
/// the transport says it is synchronous.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) = 0;
  virtual std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) = 0;
  virtual void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) = 0;
  /// The server is in this process: no connection can be lost unnoticed, and there is no other server to move to.
  [[nodiscard]] virtual bool is_in_process() const { return false; }
};

/// Gives the bearer token for a request, or an empty one. Called from any thread.
using TokenSource = std::function<std::string()>;

/// Over the network.
Result<std::shared_ptr<Transport>> make_https_transport(net::ClientConfig config, std::string bearer_token);
Result<std::shared_ptr<Transport>> make_https_transport(net::ClientConfig config, TokenSource token);
/// Straight into a handler (which must outlive it); synchronous when the handler is: then callbacks run within send and stream. As the user
/// named (groups "system:masters" and the like are given as the peer certificate's organizations).
std::shared_ptr<Transport> make_in_process_transport(net::Handler& handler, net::PeerCertificate identity);

}  // namespace berth::client
