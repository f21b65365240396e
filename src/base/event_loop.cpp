#include "base/event_loop.h"

#include <pthread.h>

namespace berth {

TimerId TimerQueue::add(TimePoint when, Task task) {
  const std::uint64_t id = ++last_id_;
  tasks_.emplace(std::pair(when, id), std::move(task));
  times_.emplace(id, when);
  return static_cast<TimerId>(id);
}

void TimerQueue::cancel(TimerId id) {
  const auto found = times_.find(static_cast<std::uint64_t>(id));
  if (found == times_.end()) return;
  tasks_.erase({found->second, found->first});
  times_.erase(found);
}

std::optional<TimePoint> TimerQueue::next() const {
  if (tasks_.empty()) return std::nullopt;
  return tasks_.begin()->first.first;
}

Task TimerQueue::pop_due(TimePoint now) {
  if (tasks_.empty() || tasks_.begin()->first.first > now) return {};
  auto node = tasks_.extract(tasks_.begin());
  times_.erase(node.key().second);
  return std::move(node.mapped());
}

ThreadLoop::ThreadLoop(std::string name) : thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

ThreadLoop::~ThreadLoop() { stop(); }

void ThreadLoop::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ThreadLoop::post(Task task) {
  bool was_empty;
  {
    std::lock_guard lock(mutex_);
    was_empty = queue_.empty();
    queue_.push_back(std::move(task));
  }
  if (was_empty) wake_.notify_one();
}

TimerId ThreadLoop::schedule_at(TimePoint when, Task task) {
  TimerId id;
  bool first;
  {
    std::lock_guard lock(mutex_);
    id = timers_.add(when, std::move(task));
    first = *timers_.next() == when;
  }
  if (first) wake_.notify_one();
  return id;
}

void ThreadLoop::cancel(TimerId id) {
  std::lock_guard lock(mutex_);
  timers_.cancel(id);
}

void ThreadLoop::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (Task due = timers_.pop_due(clock_.now())) {
      lock.unlock();
      due();
      due = nullptr;  // What it captured is released before the lock is taken.
      lock.lock();
      continue;
    }
    if (!queue_.empty()) {
      // The whole queue at once: producers then take the lock uncontended. Timers wait for one round.
      std::deque<Task> batch;
      batch.swap(queue_);
      lock.unlock();
      while (!batch.empty()) {
        Task task = std::move(batch.front());
        batch.pop_front();
        task();
      }
      lock.lock();
      continue;
    }
    if (const auto next = timers_.next()) {
      const Duration delay = *next - clock_.now();
      if (delay > Duration(0)) wake_.wait_for(lock, delay);
    } else {
      wake_.wait(lock);
    }
  }
}

std::size_t VirtualLoop::run_ready() {
  std::size_t count = 0;
  while (true) {
    Task task;
    if (!queue_.empty()) {
      task = std::move(queue_.front());
      queue_.pop_front();
    } else {
      task = timers_.pop_due(now_);
    }
    if (!task) return count;
    task();
    ++count;
  }
}

void VirtualLoop::run_until(TimePoint until) {
  while (true) {
    run_ready();
    const auto next = timers_.next();
    if (!next || *next > until) break;
    now_ = std::max(now_, *next);
  }
  now_ = std::max(now_, until);
}

}  // namespace berth
