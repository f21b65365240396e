// The kinds beside nodes and pods that placement consults, and under which API version a server serves them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "scheduler/wakeup.h"

namespace berth::scheduler {

struct Consulted {
  std::string kind;
  client::Gvr gvr;
  ClusterEvent event;
};

/// Asks the server's discovery which of the kinds it serves, each under the newest version that this scheduler reads (policy/v1 before
/// policy/v1beta1, …), and calls `done` once on the client's loop. A server that does not answer is asked again until it does; a kind it
/// does not have is left out, unless a definition may make it later: whoever follows that one looks for it again and again. `is_wanted` is
/// asked before each new round: false ends it without a call.
void discover_consulted(client::Client& client, std::function<bool()> is_wanted, std::function<void(std::vector<Consulted>)> done);

}  // namespace berth::scheduler
