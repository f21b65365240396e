// kube-controller-manager's shell: all controllers on one engine, fed by informers, writing through a client.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "client/client.h"
#include "client/informer.h"
#include "controllers/cluster.h"
#include "controllers/engine.h"

namespace berth::controllers {

struct ManagerOptions {
  EngineOptions engine;
  NodeLifecycleOptions node_lifecycle;
  PodGarbageCollectorOptions pod_gc;
  std::string root_ca_pem;  ///< Published in every namespace; empty: not.
  std::shared_ptr<metrics::Registry> metrics;
};

/// kube-controller-manager's flags by name ("node-monitor-grace-period" → "40s"), as flags and OpenShift's controllerArguments give them. Flags of
/// kube-controller-manager that have no meaning here are accepted; an unknown name or a bad value is an error that names it.
Result<void> apply_arguments(const std::map<std::string, std::vector<std::string>>& arguments, ManagerOptions& options);

/// Lives on its client's loop: construct, start and destroy it there.
class Manager {
 public:
  Manager(client::Client& client, ManagerOptions options);
  ~Manager();
  /// Starts the informers; controllers run when all have synced.
  void start();
  [[nodiscard]] bool is_running() const;
  [[nodiscard]] bool is_idle() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::controllers
