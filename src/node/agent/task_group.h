// Short tasks on threads of their own, and a destructor that waits for them.
#pragma once
#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

namespace berth::node::agent {

/// Thread-safe. Must outlive nothing that its tasks use.
class TaskGroup {
 public:
  TaskGroup() = default;
  ~TaskGroup() { wait(); }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Until no task is under way.
  void wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return running_ == 0; });
  }

  void run(std::function<void()> task) { run_up_to(std::numeric_limits<int>::max(), std::move(task)); }

  /// False, and nothing runs, when `max` tasks are under way.
  bool run_up_to(int max, std::function<void()> task) {
    {
      std::lock_guard lock(mutex_);
      if (running_ >= max) return false;
      ++running_;
    }
    std::thread([this, task = std::move(task)] {
      task();
      std::lock_guard lock(mutex_);
      if (--running_ == 0) idle_.notify_all();
    }).detach();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  int running_ = 0;
};

}  // namespace berth::node::agent
