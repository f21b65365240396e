// Short tasks on threads of their own, and a destructor that waits for them.
#pragma once
#include <functional>
#include <limits>
#include <list>
#include <thread>

#include "base/mutex.h"

namespace berth::node::agent {

/// Thread-safe. Must outlive nothing that its tasks use.
class TaskGroup {
 public:
  TaskGroup() = default;
  ~TaskGroup() {
    wait();
    join_ended();
  }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Until no task is under way. Not from within one.
  void wait() {
    MutexLock lock(mutex_);
    idle_.wait(mutex_, [this]() BERTH_REQUIRES(mutex_) { return running_.empty(); });
  }

  void run(std::function<void()> task) { run_up_to(std::numeric_limits<int>::max(), std::move(task)); }

  /// False, and nothing runs, when `max` tasks are under way.
  bool run_up_to(int max, std::function<void()> task) {
    join_ended();
    const MutexLock lock(mutex_);
    if (static_cast<std::int64_t>(running_.size()) >= max) return false;
    const auto place = running_.emplace(running_.end());
    // It takes itself out only when it has the mutex: when its place is filled.
    *place = std::thread([this, place, task = std::move(task)]() mutable {
      task();
      task = nullptr;
      const MutexLock end(mutex_);
      ended_.splice(ended_.end(), running_, place);
      if (running_.empty()) idle_.notify_all();
    });
    return true;
  }

 private:
  /// Threads whose task is over have nothing left to wait for.
  void join_ended() {
    std::list<std::thread> ended;
    {
      const MutexLock lock(mutex_);
      ended.swap(ended_);
    }
    for (auto& thread : ended) thread.join();
  }

  Mutex mutex_;
  CondVar idle_;
  std::list<std::thread> running_ BERTH_GUARDED_BY(mutex_), ended_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::node::agent
