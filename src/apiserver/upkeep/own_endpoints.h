// Where pods find this server: the Endpoints and the EndpointSlice of the Service `kubernetes` in `default`, made anew when somebody
// deletes or changes them (pkg/controlplane/reconcilers). For a server that has its store to itself; over a shared one
// cli/roles/server_presence.h keeps them.
#pragma once
#include <memory>
#include <set>

#include "apiserver/ground/ground.h"

namespace berth::apiserver {

/// What they say of servers at these addresses. Nobody mirrors these Endpoints: the slice is the servers' own, loopback or not.
json::Value own_endpoints(const std::set<std::string>& addresses, std::uint16_t port);
json::Value own_slice(const std::set<std::string>& addresses, std::uint16_t port);

/// Looks at once and every ten seconds, on the server's loop, until stop() or destruction.
class OwnEndpoints {
 public:
  explicit OwnEndpoints(Ground& ground);
  ~OwnEndpoints() { stop(); }
  OwnEndpoints(const OwnEndpoints&) = delete;
  OwnEndpoints& operator=(const OwnEndpoints&) = delete;
  /// No look runs when it has returned, nor later. Idempotent.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::apiserver
