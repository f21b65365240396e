// The shell around all controllers: a work queue a controller, the execution of plans, and the guard that keeps a key from being looked at
// again before the cache shows what it wrote.
//
//      event --> on_event --> queued --(cooldown, backoff)--> reconcile --> plan --> writes in flight --> waiting for the cache --> idle
//                               ^                                                        | failure: backoff 5 ms .. 1000 s            |
//                               +--------------------------------------------------------+------------ dirty meanwhile ---------------+
//                               +----------- the server is short of memory: 1 .. 32 s ---+
//
// What plans under way hold is bounded: a plan by itself (controller.h), all together by bytes_in_flight.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/lifeline.h"
#include "base/metrics.h"
#include "controllers/controller.h"

namespace berth::controllers {

/// Where writes go: a client in production, a fake in tests. `done` must come on the engine's loop, never from within send.
class Api {
 public:
  virtual ~Api() = default;
  virtual void send(const Write& write, std::function<void(ApiResult<json::Value>)> done) = 0;
  /// Records an event from a controller; correlation and throttling are the receiver's.
  virtual void note(std::string_view controller, const EventNote& note) = 0;
};

struct EngineOptions {
  Duration backoff_base = std::chrono::milliseconds(5);
  Duration backoff_max = std::chrono::seconds(1000);
  /// How long a key waits to see its own writes before it goes on without, and perhaps makes them again: as long as Kubernetes' controllers
  /// trust what they expect (ExpectationsTimeout).
  Duration visibility_timeout = std::chrono::minutes(5);
  int writes_in_flight = 256;  ///< Per plan.
  /// No step starts while the plans under way hold more than this, of bodies as text.
  std::size_t bytes_in_flight = std::size_t{32} << 20;
  bool trace = false;                           ///< A log line a step.
  std::set<std::string, std::less<>> disabled;  ///< Controllers switched off.
};

/// Lives on one loop. All members must be called there.
class Engine {
 public:
  Engine(EventLoop& loop, Api& api, EngineOptions options, metrics::Registry* metrics);
  ~Engine();

  /// Before start.
  void add(ControllerPtr controller);
  /// The kinds that somebody watches.
  [[nodiscard]] std::vector<Kind> watched_kinds() const;
  [[nodiscard]] bool wants_custom_kinds() const { return !custom_watchers_.empty(); }
  /// From now on objects of this kind may be observed; controllers that watch custom kinds hear of them. `kind` outlives the engine.
  void add_custom_kind(Kind kind);
  /// All of the kind's objects have been observed.
  void filled_custom_kind(Kind kind);
  /// No more are. `are_gone`: its objects were deleted; otherwise they are no longer looked at as this kind.
  void drop_custom_kind(Kind kind, bool are_gone);
  /// A change from a watch. May come before start: then only the cache and the controllers' indexes take it.
  void observe(Kind kind, ObjectRef object, bool is_delete);
  /// All caches are filled: steps may run.
  void start();
  /// No step starts until resume(); changes go on being observed.
  void pause() { is_paused_ = true; }
  void resume();
  /// No step starts any more; answers still outstanding are ignored. For the loss of leadership and for shutdown.
  void stop();

  [[nodiscard]] const Cache& cache() const { return cache_; }
  /// True when no key is queued for now, in flight or waiting (delayed keys do not count).
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  /// Of the plans under way.
  [[nodiscard]] std::size_t bytes_in_flight() const { return bytes_in_flight_; }

 private:
  struct Key;
  struct Queue;
  struct Run;
  class Sink;
  void enqueue(Queue& queue, const std::string& key, Duration delay);
  void make_ready(Queue& queue, Key& key);
  void drain();
  void post_drain();
  void step(Queue& queue, Key& key);
  void pump(const std::shared_ptr<Run>& run);
  void answered(const std::shared_ptr<Run>& run, std::size_t index, ApiResult<json::Value> result);
  void done(Run& run, std::size_t index, const ApiResult<json::Value>& result);
  void failed(Run& run, Write& write, const ApiStatus& status);
  void finish(const std::shared_ptr<Run>& run);
  void count_waits(Run& run) const;
  void hold(const std::shared_ptr<Run>& run);
  void settle(Queue& queue, Key& key, Run& run);
  void release_waiters(const Event& event);

  EventLoop& loop_;
  Api& api_;
  EngineOptions options_;
  metrics::Registry* metrics_;
  Cache cache_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::size_t turn_ = 0;  ///< Whose queue is looked at next.
  std::unordered_map<Kind, std::vector<Queue*>> watchers_;
  std::vector<Queue*> custom_watchers_;  ///< Of all custom kinds.
  std::unordered_map<Kind, std::multimap<std::int64_t, std::shared_ptr<Run>>> revision_waiters_;
  std::unordered_multimap<std::string, std::shared_ptr<Run>> deletion_waiters_;  ///< By uid.
  bool started_ = false, stopped_ = false, is_paused_ = false, drain_posted_ = false;
  std::uint64_t steps_ = 0;
  std::size_t bytes_in_flight_ = 0;
  Lifeline lifeline_;
};

}  // namespace berth::controllers
