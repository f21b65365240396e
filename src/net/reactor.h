// One I/O thread: an epoll set, a queue of tasks from other threads, and one-shot timers. Connections live on one reactor for life.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace berth {
class LeavableThread;
}

namespace berth::net {

using MonotonicTime = std::chrono::steady_clock::time_point;

/// What owns a file descriptor registered with a reactor. Called on the reactor's thread; kept alive by the reactor while registered.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// `events` are epoll's bits.
  virtual void on_events(std::uint32_t events) = 0;
  /// Called every Reactor::kTick or a little later, for deadlines.
  virtual void on_tick(MonotonicTime now) = 0;
  /// The reactor stops: give up at once. The sink is unregistered already.
  virtual void on_reactor_stop() = 0;
};

/// post and in_thread may be called from any thread, everything else from the reactor's own. Tasks posted after stop are dropped.
class Reactor : public std::enable_shared_from_this<Reactor> {
 public:
  using Task = std::move_only_function<void()>;
  static constexpr std::chrono::milliseconds kTick{100};

  /// Starts the thread.
  static std::shared_ptr<Reactor> start(std::string name);
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  /// Runs the task on the reactor's thread, in the order posted. False (and the task is dropped) after stop.
  bool post(Task task);
  /// Runs the task at once when already on the thread, otherwise posts it.
  void dispatch(Task task);
  [[nodiscard]] bool in_thread() const { return std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed); }
  /// Ends the thread after the running task and joins it; called from the thread itself it leaves it to end. Idempotent.
  void stop();

  void add(int fd, std::uint32_t events, std::shared_ptr<EventSink> sink);
  void modify(int fd, EventSink* sink, std::uint32_t events);
  /// The sink gets no further event, not even from the batch being worked on.
  void remove(int fd, EventSink* sink);
  void run_after(std::chrono::milliseconds delay, Task task);
  /// Runs the task once after the present batch of events and tasks: the place to write out what they queued.
  void run_at_end_of_batch(Task task) { end_of_batch_.push_back(std::move(task)); }
  /// For what takes long and comes in floods (handshakes): true for the first few in a batch. The others go to run_slow, a few a batch, so
  /// that what is open is never behind them.
  bool take_slow_turn() { return slow_.empty() && slow_turns_left_-- > 0; }
  void run_slow(Task task) { slow_.push_back(std::move(task)); }
  /// The time at the start of the batch.
  [[nodiscard]] MonotonicTime now() const { return now_; }

 private:
  Reactor();
  void run();
  void run_posted();
  void run_timers();
  void run_end_of_batch();
  void run_slow_turns();
  int wait_ms() const;

  int epoll_fd_ = -1, wake_fd_ = -1;
  Mutex mutex_;
  std::vector<Task> posted_ BERTH_GUARDED_BY(mutex_);
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false, wake_sent_ BERTH_GUARDED_BY(mutex_) = false;
  std::unique_ptr<LeavableThread> thread_;
  std::atomic<std::thread::id> thread_id_;

  std::unordered_map<EventSink*, std::shared_ptr<EventSink>> sinks_;
  std::multimap<MonotonicTime, Task> timers_;
  std::vector<Task> running_, end_of_batch_;
  static constexpr int kSlowTurns = 8;  // Two milliseconds of handshakes.
  std::deque<Task> slow_;
  int slow_turns_left_ = kSlowTurns;
  MonotonicTime now_{}, next_tick_{};
};

}  // namespace berth::net
