// A component of a world as a process that is killed and started again, wired as its role in src/cli/roles wires it.
#pragma once
#include <memory>
#include <string>

#include "autoscaler/runner.h"
#include "client/informer.h"
#include "client/leadership.h"
#include "controllers/manager.h"
#include "node/simulated/simulated_nodes.h"
#include "pools/runner.h"
#include "scheduler/scheduler.h"
#include "tests/world/world.h"

namespace berth::world {

/// Whoever leads does so by a Lease.
struct World::Component {
  std::string name;
  Process* process = nullptr;
  bool is_wanted = false;
  // A scheduler's.
  std::unique_ptr<client::Leadership> leadership;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<client::InformerFactory> informers;
  std::unique_ptr<scheduler::Scheduler> scheduler;
  // Controllers', nodes', an autoscaler's with its pools.
  std::unique_ptr<controllers::ControllerManager> manager;
  std::unique_ptr<node::simulated::SimulatedNodes> nodes;
  std::unique_ptr<client::Client> pools_client;
  std::unique_ptr<pools::Runner> pools;
  std::unique_ptr<autoscaler::Runner> autoscaler;

  void kill() {
    leadership.reset();
    scheduler.reset();
    informers.reset();
    manager.reset();
    nodes.reset();
    pools.reset();
    autoscaler.reset();
    pools_client.reset();
    client.reset();
  }
  [[nodiscard]] bool runs() const { return scheduler || manager || nodes || autoscaler; }
};

}  // namespace berth::world
