// Simulated nodes against an API server: the shell around Fleet (SPEC F1, D4; issue 2 "Simulated nodes").
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "client/client.h"
#include "net/http.h"
#include "node/simulated/fleet.h"

namespace berth::net::tracing {
class Tracer;
}

namespace berth::node::simulated {

/// Runs programs of berth's own roles for containers of simulated nodes.
class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;
  /// `pod` is the whole object. Both functions may be called from any thread, `ended` once and last, also after a stop.
  virtual void start(const ProgramOrder& order, json::Value pod, std::function<void(std::string)> wrote,
                     std::function<void(int)> ended) = 0;
  virtual void stop(const ProgramOrder& order) = 0;
};

struct SimulatedNodesOptions {
  FleetOptions fleet;
  NodeTemplate node_template;
  int nodes = 3;
  std::string prefix = "node-";  ///< Names are prefix + 1, 2, …
  int zones = 3;                 ///< "zone-a", "zone-b", …, taken in turn.
  std::string region = "region-1";
  int max_writes_in_flight = 256;
  std::shared_ptr<ProgramRunner> programs;       ///< Null: containers with berth's roles do nothing.
  std::shared_ptr<net::tracing::Tracer> tracer;  ///< Whose trace of a pod's way the first news of the pod belong to; null: none.
};

/// Plays the machines of one fleet: makes `nodes` Node objects where they are missing, takes over those that an earlier process of the same
/// fleet name left, and runs the pods bound to any of them. Lives on its client's loop: construct, start and destroy it there (or while the
/// loop does not run). The client must have a loop and outlive it.
class SimulatedNodes {
 public:
  SimulatedNodes(client::Client& client, SimulatedNodesOptions options);
  ~SimulatedNodes();
  SimulatedNodes(const SimulatedNodes&) = delete;
  SimulatedNodes& operator=(const SimulatedNodes&) = delete;

  void start();
  /// FleetOptions::steady_heartbeats from now on; on the loop.
  void set_steady_heartbeats(bool steady);
  /// What is played; on the loop.
  [[nodiscard]] const Fleet& fleet() const;
  /// Nodes that have reported status and lease. Any thread.
  [[nodiscard]] std::size_t ready_nodes() const;
  /// All nodes played. Any thread.
  [[nodiscard]] std::size_t node_count() const;

  /// The kubelet's endpoints of the fleet's nodes, for a server in the same process: /containerLogs/NS/POD/CONTAINER, /healthz
  /// (kubelet_endpoints.h). False, with both arguments untouched, for nodes that are not of this fleet. Thread-safe; answers from the loop.
  /// Stays callable after this object is gone (then false).
  using Backend = std::function<bool(const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer)>;
  [[nodiscard]] Backend backend();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::node::simulated
