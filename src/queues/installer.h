// Brings the kinds of kueue.x-k8s.io and the policies into a cluster.
#pragma once
#include <functional>
#include <memory>

#include "client/client.h"

namespace berth::queues {

/// Applies what is missing or older, tells the log what it could not, and calls `done` once the kinds are served: any server may refuse the
/// policies (before Kubernetes 1.34 it has none that change objects), and the kinds of a Kueue that is there are left as they are. Runs on
/// the client's loop until `done`, or until the returned object is gone. Without `is_wanted` it only waits for the kinds.
std::shared_ptr<void> install_definitions(client::Client& client, bool is_wanted, std::function<void()> done);

}  // namespace berth::queues
