#include "base/deadlines.h"

#include "base/mutex.h"

namespace berth {

Deadlines::Watch& Deadlines::Watch::operator=(Watch&& other) noexcept {
  if (this == &other) return *this;
  end();
  deadlines_ = std::exchange(other.deadlines_, nullptr);
  at_ = other.at_;
  return *this;
}

void Deadlines::Watch::end() {
  if (deadlines_ == nullptr) return;
  const MutexLock lock(deadlines_->mutex_);
  deadlines_->waits_.erase(at_);
  deadlines_ = nullptr;
}

Deadlines::Deadlines() : thread_([this] { run(); }) {}

Deadlines::~Deadlines() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Deadlines& Deadlines::of_process() {
  static auto* const deadlines = new Deadlines;
  return *deadlines;
}

Deadlines::Watch Deadlines::watch(Clock::duration after, std::function<void()> end) {
  const MutexLock lock(mutex_);
  const auto at = waits_.emplace(Clock::now() + after, std::move(end));
  if (at->first < next_) wake_.notify_all();
  return {this, at};
}

void Deadlines::run() {
  MutexLock lock(mutex_);
  while (!is_stopping_) {
    const auto now = Clock::now();
    auto at = waits_.begin();
    for (; at != waits_.end() && at->first <= now; ++at)
      if (at->second) std::exchange(at->second, nullptr)();
    // Those stay in front until their watches go: what is next is behind them.
    next_ = at == waits_.end() ? Clock::time_point::max() : at->first;
    if (at == waits_.end())
      wake_.wait(mutex_);
    else
      wake_.wait_until(mutex_, next_);
  }
}

}  // namespace berth
