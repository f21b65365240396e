// Who is served when there is more to do than time: seats per priority level, fair queues in front of them, and a few threads for what
// takes longer than a moment, so that accepting connections, TLS, health and small requests are never behind it (SPEC I9; KEP-1040).
//
//   request ─ classify ─┬─ exempt, small ────────────────────────> on the caller's thread
//                       ├─ small, seats free, thread not worn out > on the caller's thread
//                       ├─ otherwise ── fair queue of its level ──> on a worker: levels by their shares, flows in turn
//                       └─ no room, or waited too long ───────────> 429
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

#include "apiserver/flow/fair_queue.h"
#include "apiserver/flow/schemas.h"
#include "base/metrics.h"

namespace berth::apiserver::flow {

struct Limits {
  int inflight_read = 400, inflight_mutating = 200;  ///< Their sum is shared out among the levels, as in Kubernetes.
  int workers = 2;
  std::chrono::milliseconds longest_wait{15'000};      ///< In a queue.
  std::size_t waiting_bytes = std::size_t{256} << 20;  ///< Of the bodies of all that wait.
};

struct Work {
  Classified where;
  double cost_us = 0;     ///< Estimated processor time.
  std::size_t bytes = 0;  ///< Of its body.
  int seats = 1;          ///< 0: ends only when its client goes (a watch, a session); not counted.
  /// Serves the request; who does it makes Seats of `where` and `seats` first.
  std::function<void()> run;
  /// Answers 429; `reason` as in Kubernetes' metric: "queue-full", "time-out", "concurrency-limit".
  std::function<void(std::string_view reason)> reject;
  /// Frees what a refused request holds: who does not stop asking has his answer a second later.
  std::function<void()> shrink;
};

class Controller;

/// What an executing request occupies, given back when this goes or is reset.
class Seats {
 public:
  Seats() = default;
  Seats(Controller& controller, Classified where, int count) : controller_(&controller), where_(std::move(where)), count_(count) {}
  Seats(Seats&& other) noexcept
      : controller_(std::exchange(other.controller_, nullptr)), where_(std::move(other.where_)), count_(other.count_) {}
  Seats& operator=(Seats&& other) noexcept;
  ~Seats() { reset(); }
  void reset();

 private:
  Controller* controller_ = nullptr;
  Classified where_;
  int count_ = 0;
};

/// Thread-safe. The destructor waits for tasks that run; what waits is dropped.
class Controller {
 public:
  Controller(const Limits& limits, metrics::Registry& registry);
  ~Controller() { stop(); }
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

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
  /// The request that some work was is answered.
  void finish(const Classified& where, int seats);
  /// From now on what is neither exempt nor the cluster's own is refused ("memory"), until it is set back.
  void set_overloaded(bool overloaded) { overloaded_ = overloaded; }
  [[nodiscard]] bool is_overloaded() const { return overloaded_; }
  void stop();

  /// Work beyond this never runs on the caller's thread.
  static constexpr double kHeavyUs = 2'000;

 private:
  struct Level {
    explicit Level(const PriorityLevel& config) : queue(config.queues, config.hand_size, config.queue_length_limit) {}
    FairQueue queue;
    int limit = 0, seats = 0;
    double finish = 0;                         ///< In virtual time, as a queue's.
    std::array<std::uint16_t, 256> refused{};  ///< By flow, in the present second.
    std::int64_t second = 0;
    metrics::Gauge *executing = nullptr, *waiting = nullptr;
  };
  struct Counters {
    metrics::Counter *dispatched = nullptr, *queue_full = nullptr, *time_out = nullptr, *limit = nullptr, *memory = nullptr;
  };
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool is_shed(const Classified& where) const {
    return overloaded_.load(std::memory_order_relaxed) && !default_levels()[where.level].is_vital;
  }
  void work(bool only_exempt);
  std::function<void()> take(bool only_exempt);
  [[nodiscard]] bool has_room(const Level& level, int seats) const { return level.seats == 0 || level.seats + seats <= level.limit; }
  void enqueue(std::unique_lock<std::mutex>& lock, Work work);
  /// Whether the flow was refused so often in this second that its answers are kept back.
  static bool is_flood(Level& level, std::uint64_t flow);
  void refuse_later(Work work, std::string_view reason);
  void answer_refused(std::unique_lock<std::mutex>& lock);
  Counters& counters_of(const FlowSchema& schema) { return counters_[static_cast<std::size_t>(&schema - default_schemas().data())]; }

  const Limits limits_;
  std::vector<Counters> counters_;  ///< By schema.
  std::atomic<bool> overloaded_{false};
  std::mutex mutex_;
  std::condition_variable wake_, wake_exempt_;
  std::vector<Level> levels_;
  std::deque<std::function<void()>> exempt_;
  std::deque<std::pair<Clock::time_point, std::function<void()>>> refused_;  ///< By time.
  double virtual_time_ = 0;
  std::size_t waiting_bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::apiserver::flow
