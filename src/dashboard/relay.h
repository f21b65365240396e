// The browser's requests to the cluster's API, sent on with the user's own credentials.
#pragma once
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "client/transport.h"
#include "net/http.h"

namespace berth::dashboard {

/// Why the relay does not send this on; empty: it does. Only the API's paths; only reading, unless `allows_changes`; never what leads into
/// a container, a node or a service (exec, attach, port-forward, proxy), whose answers are not the API server's own.
std::string relay_refusal(const net::HttpRequest& request, bool allows_changes);

/// What goes to the cluster: the body, its type, what is accepted. Nothing else that the browser says about itself or its user.
net::HttpRequest relayed_request(const net::HttpRequest& request);

/// Sends requests on and their answers back, watches included, piece by piece: who reads slowly makes the cluster wait, and nothing piles
/// up here.
class Relay {
 public:
  /// `loop`: where streams are let go; both outlive the relay's requests.
  Relay(std::shared_ptr<client::Transport> transport, EventLoop& loop, bool allows_changes)
      : transport_(std::move(transport)), loop_(loop), allows_changes_(allows_changes) {}
  void handle(const net::HttpRequest& request, std::shared_ptr<net::ResponseWriter> writer);

 private:
  std::shared_ptr<client::Transport> transport_;
  EventLoop& loop_;
  bool allows_changes_;
};

}  // namespace berth::dashboard
