// A single-threaded run queue with timers: what every component's shell runs on, in production (a thread) and in simulation (virtual time).
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "base/clock.h"

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
  [[nodiscard]] bool in_loop_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  void run();
  SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  TimerQueue timers_;
  bool stopping_ = false;
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
