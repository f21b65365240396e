// Where pods find this server: the Endpoints and the EndpointSlice of the Service `kubernetes` in `default`, made anew when somebody
// deletes or changes them (pkg/controlplane/reconcilers). For a server that has its store to itself; over a shared one
// cli/roles/server_presence.h keeps them.
#pragma once
#include <memory>

#include "apiserver/ground/ground.h"

namespace berth::apiserver {

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
