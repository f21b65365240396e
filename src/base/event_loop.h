// A single-threaded run queue with timers: what every component's shell runs on, in production (a thread) and in simulation (virtual time).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <source_location>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace berth {

using Task = std::function<void()>;
enum class TimerId : std::uint64_t { kNone = 0 };

/// Tasks posted to one loop run one after the other, never at once, in the order posted; timers run at or after their time, in order of
/// (time, creation). post, schedule_at and cancel may be called from any thread; tasks run on the loop's own thread.
class EventLoop : public Clock {
 public:
  virtual void post(Task task) = 0;
  virtual TimerId schedule_at(TimePoint when, Task task) = 0;
  TimerId schedule_after(Duration delay, Task task) { return schedule_at(now() + delay, std::move(task)); }
  /// After it returns the task will not start (it may be running when called from another thread). Unknown ids are ignored.
  virtual void cancel(TimerId id) = 0;
  /// Whether what runs now may touch what the loop's tasks touch: it is one of them, or the loop has no thread that runs any.
  [[nodiscard]] virtual bool is_here() const { return true; }
  /// For whoever is called on the loop alone (BERTH_CHECK).
  void assert_on_loop(std::source_location where = std::source_location::current()) const;
};

/// The queue that both loops share. Not thread-safe by itself.
class TimerQueue {
 public:
  TimerId add(TimePoint when, Task task);
  void cancel(TimerId id);
  [[nodiscard]] std::optional<TimePoint> next() const;
  /// Takes the first task due at `now`, or an empty one.
  Task pop_due(TimePoint now);

 private:
  std::uint64_t last_id_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, Task> tasks_;
  std::map<std::uint64_t, TimePoint> times_;
};

/// A loop on its own thread and the system clock. The destructor stops after the running task; tasks still queued are dropped.
class ThreadLoop final : public EventLoop {
 public:
  explicit ThreadLoop(std::string name);
  ~ThreadLoop() override;
  [[nodiscard]] TimePoint now() const override { return clock_.now(); }
  void post(Task task) override;
  TimerId schedule_at(TimePoint when, Task task) override;
  void cancel(TimerId id) override;
  /// Stops after the running task and joins. Must not be called from the loop's own thread. Idempotent.
  void stop();
  [[nodiscard]] bool is_here() const override;

 private:
  void run();
  SystemClock clock_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> queue_ BERTH_GUARDED_BY(mutex_);
  TimerQueue timers_ BERTH_GUARDED_BY(mutex_);
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::atomic<std::thread::id> runner_{};  ///< None before the thread runs tasks, and after.
  std::thread thread_;
};

/// A loop under a virtual clock: nothing runs until run_until or run_ready is called; the order is a function of the calls alone.
class VirtualLoop final : public EventLoop {
 public:
  explicit VirtualLoop(TimePoint start) : now_(start) {}
  [[nodiscard]] TimePoint now() const override { return now_; }
  void post(Task task) override { queue_.push_back(std::move(task)); }
  TimerId schedule_at(TimePoint when, Task task) override { return timers_.add(when, std::move(task)); }
  void cancel(TimerId id) override { timers_.cancel(id); }
  /// Runs posted tasks and timers due until nothing is ready at the present virtual time. Returns how many ran.
  std::size_t run_ready();
  /// Runs everything up to and including `until`, moving the clock from timer to timer; ends with now() == until.
  void run_until(TimePoint until);
  void run_for(Duration d) { run_until(now_ + d); }

 private:
  TimePoint now_;
  std::deque<Task> queue_;
  TimerQueue timers_;
};

}  // namespace berth
