// The ends of waits that must end whatever the wall clock does.
//
// gRPC's timers wait for a time of day (abseil's futexes): where somebody sets the clock back by an hour while they do, they stand still
// for that hour. No call's deadline passes then, and no connection that broke is tried again. What is watched here ends by the steady
// clock.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace berth {

/// Thread-safe.
class Deadlines {
 public:
  using Clock = std::chrono::steady_clock;

 private:
  using Waits = std::multimap<Clock::time_point, std::function<void()>>;

 public:
  /// A wait that is watched until this is destroyed, or assigned to.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept : deadlines_(std::exchange(other.deadlines_, nullptr)), at_(other.at_) {}
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { end(); }

   private:
    friend class Deadlines;
    Watch(Deadlines* deadlines, Waits::iterator at) : deadlines_(deadlines), at_(at) {}
    void end();
    Deadlines* deadlines_ = nullptr;
    Waits::iterator at_;
  };

  Deadlines();
  ~Deadlines();
  Deadlines(const Deadlines&) = delete;
  Deadlines& operator=(const Deadlines&) = delete;
  /// The process's own, never destroyed.
  static Deadlines& of_process();

  /// Once `after` has passed `end` is called, unless the watch has gone: on a thread of this object's, once, and never after the watch was
  /// destroyed. It must not wait, nor watch anything.
  [[nodiscard]] Watch watch(Clock::duration after, std::function<void()> end);

 private:
  void run();

  Mutex mutex_;
  CondVar wake_;
  Waits waits_ BERTH_GUARDED_BY(mutex_);
  Clock::time_point next_ BERTH_GUARDED_BY(mutex_) = Clock::time_point::max();  ///< What the thread waits for.
  bool is_stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace berth
