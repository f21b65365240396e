// Who is served when there is more to do than time: seats per priority level, fair queues in front of them, and a few threads for what
// takes longer than a moment, so that accepting connections, TLS, health and small requests are never behind it (SPEC I9; KEP-1040).
//
//   request ─ classify ─┬─ exempt, small ────────────────────────> on the caller's thread
//                       ├─ small, seats free, thread not worn out > on the caller's thread
//                       ├─ otherwise ── fair queue of its level ──> on a worker: levels by their shares, flows in turn
//                       └─ no room, or waited too long ───────────> 429
//
// The levels and schemas are the cluster's objects (apiserver/upkeep/flow_objects.h tells them); before they are read, and where the
// mandatory ones are missing, the built-in ones stand in for them.
#pragma once
#include <thread>

#include "apiserver/flow/level.h"
#include "apiserver/flow/schemas.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace berth::apiserver::flow {

struct Limits {
  int inflight_read = 400, inflight_mutating = 200;  ///< Their sum is shared out among the levels, as in Kubernetes.
  int workers = 2;
  std::chrono::milliseconds longest_wait{15'000};      ///< In a queue.
  std::size_t waiting_bytes = std::size_t{256} << 20;  ///< Of all that wait: their bodies, and some KiB each.
  /// Without fairness there are no schemas: reads and writes have their own limits, what is beyond is refused, whoever asks
  /// (--enable-priority-and-fairness=false; members of system:masters are let through).
  bool is_fair = true;
};

/// Levels and schemas as requests are judged by them. Immutable; who holds one keeps its levels.
struct Configuration {
  struct Place {
    PriorityLevel config;
    std::shared_ptr<Level> level;
    int nominal = 0;  ///< Its part of the seats, as configured.
  };
  struct Schema {
    FlowSchema config;
    std::size_t place = 0;  ///< Of its level.
    FlowMetrics metrics;
  };
  std::vector<Place> places;
  std::vector<Schema> schemas;  ///< In the order in which they are asked; the last takes everybody.
};

/// Where a request belongs.
struct Classified {
  std::shared_ptr<const Configuration> held;  ///< Null: nowhere, there is no flow control.
  const Configuration::Schema* schema = nullptr;
  std::string flow;    ///< Who shares a queue within schema and level.
  bool grows = false;  ///< A controller makes an object: it can wait while memory is needed for users.
  /// Who shares seats with the others of the level; 0 where the schema does not tell them apart.
  [[nodiscard]] std::uint64_t sharer() const { return flow.empty() ? 0 : flow_hash(schema->config.name, flow); }
  [[nodiscard]] const Configuration::Place& place() const { return held->places[schema->place]; }
  [[nodiscard]] Level& level() const { return *place().level; }
};

/// What the process has left of its memory (upkeep/memory_guard.h): when it is tight, controllers make no objects; when it is short,
/// nothing new begins but what is the cluster's own, and goes on without making more.
enum class Memory : std::uint8_t { kAmple, kTight, kShort };

/// What a request was, for whoever looks at what waits.
struct Description {
  std::string user, verb, path, ns, name, api_version, resource, subresource;
};

struct Work {
  Classified where;
  double cost_us = 0;                         ///< Estimated processor time.
  std::size_t bytes = 0;                      ///< Of its body.
  int seats = 1;                              ///< 0: ends only when its client goes (a session); not counted.
  std::chrono::milliseconds longest_wait{0};  ///< Where the client has less patience than the server; 0: as Limits.
  /// Serves the request; who does it makes Seats of `where` and `seats` first.
  std::function<void()> run;
  /// Answers 429; `reason` as in Kubernetes' metric: "queue-full", "time-out", "concurrency-limit". The client is told to come back after
  /// so many seconds.
  std::function<void(std::string_view reason, int retry_after)> reject;
  /// Frees what a refused request holds: who does not stop asking has his answer a second later.
  std::function<void()> shrink;
  std::function<Description()> describe;  ///< May be empty.
};

class Controller;

/// What an executing request occupies, given back when this goes or is reset.
class Seats {
 public:
  Seats() = default;
  Seats(Controller& controller, Classified where, int count)
      : controller_(&controller), where_(std::move(where)), count_(count), begun_(std::chrono::steady_clock::now()) {}
  Seats(Seats&& other) noexcept
      : controller_(std::exchange(other.controller_, nullptr)),
        where_(std::move(other.where_)),
        count_(other.count_),
        begun_(other.begun_) {}
  Seats& operator=(Seats&& other) noexcept;
  ~Seats() { reset(); }
  void reset();

 private:
  Controller* controller_ = nullptr;
  Classified where_;
  int count_ = 0;
  std::chrono::steady_clock::time_point begun_;
};

/// Thread-safe. The destructor waits for tasks that run; what waits is dropped.
class Controller {
 public:
  Controller(const Limits& limits, metrics::Registry& registry);
  ~Controller() { stop(); }
  [[nodiscard]] bool is_fair() const { return limits_.is_fair; }
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// From now on requests are judged by these; built-in mandatory ones are added where they are missing, schemas without their level take
  /// nobody. What waits or runs goes on in the level that it was in, also when that is gone. Nothing without fairness.
  void configure(std::vector<PriorityLevel> levels, std::vector<FlowSchema> schemas);
  /// Shares the seats out anew by what the levels needed since the last time (every ten seconds in Kubernetes).
  void rebalance();

  [[nodiscard]] Classified classify(const UserInfo& user, const Attributes& attributes) const;
  /// The most seats that one request of the level may have (max_seats.go).
  [[nodiscard]] static int most_seats(const Classified& where);

  /// Runs it now, later, or refuses it.
  void submit(Work work);
  /// Runs it on a worker when its turn comes, whatever waits: the rest of something that has begun. `reject` is not called; the seats are
  /// counted anew, so the caller has given back its own.
  void post(Work work);
  /// What submit asks first, for callers that need no Work when the answer is yes: then they run it themselves, make Seats and say what it
  /// took (spent).
  [[nodiscard]] bool runs_here(const Classified& where, double cost_us, int seats);
  /// The calling thread gave its time since `from` to small work.
  static void spent(std::chrono::steady_clock::time_point from);
  /// The request that some work was is answered; it took so many seconds.
  void finish(const Classified& where, int seats, double seconds);
  /// From now on requests are refused ("memory") by what there is of it.
  void set_memory(Memory memory) { memory_ = memory; }
  void stop();

  // What /debug/api_priority_and_fairness shows, as Kubernetes writes it: a line each, fields divided by ",\t" and padded.
  [[nodiscard]] std::string dump_priority_levels() const;
  [[nodiscard]] std::string dump_queues() const;
  /// What waits; what runs is only counted, in the dump of the levels.
  [[nodiscard]] std::string dump_requests(bool with_details) const;

  /// Work beyond this never runs on the caller's thread.
  static constexpr double kHeavyUs = 2'000;

 private:
  using Clock = std::chrono::steady_clock;
  struct Exempt {
    std::shared_ptr<Level> level;
    int seats = 0;
    std::function<void()> run;
  };

  [[nodiscard]] std::shared_ptr<const Configuration> present() const { return configuration_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_shed(const Classified& where) const {
    const Memory memory = memory_.load(std::memory_order_relaxed);
    return (memory != Memory::kAmple && where.grows) || (memory == Memory::kShort && !where.level().is_vital);
  }
  void work(bool only_exempt);
  std::function<void()> take(bool only_exempt) BERTH_REQUIRES(mutex_);
  void enqueue(Work work) BERTH_REQUIRES(mutex_);
  Waiting make_waiting(const std::shared_ptr<Work>& work);
  /// Whether the flow was refused so often in this second that its answers are kept back.
  static bool is_flood(Level& level, std::uint64_t flow);
  int note_refused(Level& level, bool is_late);
  void refuse_later(Work work, std::string_view reason, int retry_after);
  void answer_refused() BERTH_REQUIRES(mutex_);
  void refuse_expired() BERTH_REQUIRES(mutex_);
  /// A level that is there already keeps what waits in it.
  std::shared_ptr<Level> level_for(const PriorityLevel& config) BERTH_REQUIRES(mutex_);
  void share_out() BERTH_REQUIRES(mutex_);
  void set_weights() BERTH_REQUIRES(mutex_);
  [[nodiscard]] FlowMetrics metrics_of(const std::string& schema, const std::string& level);
  void count_dispatched(const Classified& where, int seats) const;

  const Limits limits_;
  metrics::Registry& registry_;
  std::atomic<std::shared_ptr<const Configuration>> configuration_;
  std::atomic<Memory> memory_{Memory::kAmple};
  mutable Mutex mutex_;
  CondVar wake_, wake_exempt_;
  std::vector<std::shared_ptr<Level>> levels_
      BERTH_GUARDED_BY(mutex_);  ///< The present ones, and those that are gone until nothing is in them.
  double nominal_sum_ BERTH_GUARDED_BY(mutex_) = 0;
  metrics::Gauge* fair_fraction_ = nullptr;
  std::deque<Exempt> exempt_ BERTH_GUARDED_BY(mutex_);
  std::deque<std::pair<Clock::time_point, std::function<void()>>> refused_ BERTH_GUARDED_BY(mutex_);  ///< By time.
  double virtual_time_ BERTH_GUARDED_BY(mutex_) = 0;
  std::size_t waiting_bytes_ BERTH_GUARDED_BY(mutex_) = 0;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::apiserver::flow
