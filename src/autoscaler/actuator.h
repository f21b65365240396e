// Carries the autoscaler's actions out: taints, evictions and events; what becomes of machines is the provider's. Lives on its client's
// loop.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "autoscaler/autoscaler.h"
#include "autoscaler/cluster_cache.h"
#include "autoscaler/provider.h"
#include "client/client.h"
#include "client/event_recorder.h"

namespace berth::autoscaler {

struct ActuatorCallbacks {
  std::function<void(const std::string& group, std::int64_t nodes)> grown;
  std::function<void(const std::string& group, const std::string& message)> grow_failed;
  std::function<void(const std::string& node, bool was_empty, bool succeeded)> removal_ended;
  std::function<void(std::int64_t pods)> evicted;
  std::function<void(std::int64_t pods)> evictions_failed{};
  /// Why a removal under way may not go on; empty: it may. Asked before each of its steps: what it was decided on may hold no more.
  std::function<std::string(const NodeRemoval& removal)> why_not{};
  /// A clock that nobody sets, for how long removals take; without it the loop's.
  std::function<Duration()> steady_clock{};
};

/// The removal of a node:
///
///   taint -> pods read -> evict (again while budgets refuse) -> wait until they are gone -> pods read again -> mark the machine -> one
///   replica less
///
/// The scheduler may bind a pod to the node before it sees the taint: what the server has there is read after the taint, and again before
/// the machine is marked. A pod that was not judged, a `why_not`, and whatever else fails, takes the marks off the machine and the node
/// again; the node stays.
class Actuator {
 public:
  /// `cache` and `events` must outlive it.
  Actuator(client::Client& client, const ClusterCache& cache, client::EventRecorder& events, ActuatorCallbacks callbacks,
           std::shared_ptr<Provider> provider);
  ~Actuator();
  Actuator(const Actuator&) = delete;
  Actuator& operator=(const Actuator&) = delete;

  void carry_out(const Actions& actions, const Options& options);
  /// Takes away what an earlier autoscaler left on nodes: they are judged anew.
  void clean_up();
  /// What events without a pod or node are about.
  void set_status_object(client::ObjectReference object);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::autoscaler
