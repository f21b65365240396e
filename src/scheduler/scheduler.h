// The scheduler as a shell around the queue and the placement engine: informers in, bindings, conditions and events out (SPEC B9, B10, C2,
// C4).
//
//   pod without a node --> queue --> engine decides --> assume --> (volumes) --> bind (asynchronous) --> the watch confirms
//                            ^           | nothing fits                               | refused
//                            |           +--> condition, event, perhaps preemption    +--> forget, try again after a backoff
//                            +-- an event that could help
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/metrics.h"
#include "placement/engine.h"
#include "placement/preemption.h"
#include "scheduler/config/config.h"
#include "scheduler/extender.h"
#include "scheduler/queue.h"
#include "scheduler/worker.h"

namespace berth::net::tracing {
class Tracer;
}

namespace berth::client {
class Client;
class InformerFactory;
}  // namespace berth::client

namespace berth::scheduler {

struct GroupOptions;
struct GroupsSeen;
struct SchedulerOptions {
  std::vector<placement::Profile> profiles;  ///< One per schedulerName; all of one era. Empty: the default profile of 1.36.
  QueueOptions queue;
  placement::EngineOptions engine;
  placement::PreemptionOptions preemption;
  std::vector<config::Extender> extenders;
  /// How extenders are asked, and what runs what may take long (asking them, looks at the cluster); empty: over HTTP, on threads of the
  /// scheduler's own. Tests give both.
  Extenders::Post extender_post;
  Worker::Executor aside;
  std::size_t max_bindings_in_flight = 512;    ///< Bindings under way at once; the cycle waits beyond.
  std::size_t cycles_per_turn = 128;           ///< Decisions made before the loop gets to other work.
  std::shared_ptr<const GroupOptions> groups;  ///< Null: all of them are on.
  std::string host = "berth";                  ///< The machine's name: events are reported by SCHEDULERNAME-HOST.
  std::shared_ptr<metrics::Registry> metrics;  ///< Made when null.
  /// A span from a decision to its binding, and the client's requests below it; null: nothing is traced.
  std::shared_ptr<net::tracing::Tracer> tracer;
  /// Sees every preemption before it is carried out, with the cluster it was planned on (simulations judge it). What it makes of the choice
  /// is carried out: tests break a rule on purpose that way. May be empty.
  std::function<void(const placement::Cluster&, const placement::PodInfoPtr& preemptor, placement::Candidate& choice)> on_preemption;
};

/// Lives on the client's loop: construct, start and destroy it there. Restart-safe at any moment: what counts is in the API.
class Scheduler {
 public:
  /// The error names the profile or plugin that is wrong.
  static Result<std::unique_ptr<Scheduler>> create(client::Client& client, client::InformerFactory& informers, SchedulerOptions options);
  ~Scheduler();

  /// Subscribes to the informers (which the caller starts); decisions begin when they have synced and lead() was called.
  void start();
  /// With leader election: begins and stops deciding. Without: call lead(true) at once.
  void lead(bool is_leader);
  /// A look at the cluster as decisions are made on it. `look` runs on a thread of its own, on a fork of what is there now, while decisions
  /// go on; what it returns runs on the loop. One look after the other.
  using Look = std::function<std::function<void()>(const placement::Cluster& cluster)>;
  void consult(Look look);
  /// All groups as they are now, and what there is to explain of the one with this key ("namespace/name"): its members without a place.
  [[nodiscard]] std::shared_ptr<const GroupsSeen> see_groups(const std::string& key);
  /// Memory is short: what makes decisions faster is given back, and made anew as it is needed.
  void forget();
  [[nodiscard]] bool has_synced() const;
  [[nodiscard]] const placement::Cluster& cluster() const;
  [[nodiscard]] SchedulingQueue::Sizes queue_sizes() const;
  [[nodiscard]] metrics::Registry& metrics();

 private:
  struct Impl;
  explicit Scheduler(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::scheduler
