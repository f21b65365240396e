#include "base/event_loop.h"

#include <pthread.h>

#include "base/check.h"
#include "base/mutex.h"

namespace berth {

void EventLoop::assert_on_loop(std::source_location where) const {
  if (is_here()) [[likely]]
    return;
  check_failed(where.file_name(), static_cast<int>(where.line()), "loop.is_here()",
               fmt::format("{} runs beside the loop's thread", where.function_name()));
}

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
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ThreadLoop::post(Task task) {
  bool was_empty;
  {
    MutexLock lock(mutex_);
    was_empty = queue_.empty();
    queue_.push_back(std::move(task));
  }
  if (was_empty) wake_.notify_one();
}

TimerId ThreadLoop::schedule_at(TimePoint when, Task task) {
  TimerId id;
  bool first;
  {
    MutexLock lock(mutex_);
    id = timers_.add(when, std::move(task));
    first = *timers_.next() == when;
  }
  if (first) wake_.notify_one();
  return id;
}

void ThreadLoop::cancel(TimerId id) {
  MutexLock lock(mutex_);
  timers_.cancel(id);
}

bool ThreadLoop::is_here() const {
  const auto runner = runner_.load(std::memory_order_acquire);
  return runner == std::this_thread::get_id() || runner == std::thread::id();
}

void ThreadLoop::run() {
  runner_.store(std::this_thread::get_id(), std::memory_order_release);
  MutexLock lock(mutex_);
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
      if (delay > Duration(0)) wake_.wait_for(mutex_, delay);
    } else {
      wake_.wait(mutex_);
    }
  }
  runner_.store(std::thread::id(), std::memory_order_release);
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
