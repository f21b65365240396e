#include "net/reactor.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/left_threads.h"
#include "base/mutex.h"

namespace berth::net {

Reactor::Reactor() = default;

std::shared_ptr<Reactor> Reactor::start(std::string name) {
  std::shared_ptr<Reactor> reactor(new Reactor());
  reactor->epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  reactor->wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (reactor->epoll_fd_ < 0 || reactor->wake_fd_ < 0) return nullptr;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  epoll_ctl(reactor->epoll_fd_, EPOLL_CTL_ADD, reactor->wake_fd_, &event);
  // The thread keeps the reactor alive: the last outside owner may let go from within a callback on this very thread.
  reactor->thread_ = std::make_unique<LeavableThread>([reactor, name = std::move(name)] {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    // Signals are other threads' business; OpenSSL's write(2) to a closed socket must give EPIPE, not SIGPIPE.
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGPROF);  // base/cpu_profile.h samples each thread on itself.
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    reactor->run();
  });
  return reactor;
}

Reactor::~Reactor() {
  if (epoll_fd_ >= 0) ::close(epoll_fd_);
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

bool Reactor::post(Task task) {
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    posted_.push_back(std::move(task));
    wake = !std::exchange(wake_sent_, true);
  }
  if (wake) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
  }
  return true;
}

void Reactor::dispatch(Task task) {
  if (in_thread())
    task();
  else
    post(std::move(task));
}

void Reactor::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
  }
  if (in_thread())
    thread_->leave();
  else if (thread_->joinable())
    thread_->join();
}

void Reactor::add(int fd, std::uint32_t events, std::shared_ptr<EventSink> sink) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = sink.get();
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
  sinks_.emplace(sink.get(), std::move(sink));
}

void Reactor::modify(int fd, EventSink* sink, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = sink;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
}

void Reactor::remove(int fd, EventSink* sink) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  const auto found = sinks_.find(sink);
  if (found == sinks_.end()) return;
  // Freed only at the end of the batch: the caller is usually the sink itself.
  run_at_end_of_batch([keep = std::move(found->second)] {});
  sinks_.erase(found);
}

void Reactor::run_after(std::chrono::milliseconds delay, Task task) {
  timers_.emplace(std::chrono::steady_clock::now() + delay, std::move(task));
}

int Reactor::wait_ms() const {
  if (!slow_.empty()) return 0;
  auto until = sinks_.empty() ? now_ + std::chrono::hours(1) : next_tick_;
  if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(until - now_).count() + 1;
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

void Reactor::run() {
  thread_id_ = std::this_thread::get_id();
  now_ = next_tick_ = std::chrono::steady_clock::now();
  std::array<epoll_event, 256> events;
  while (true) {
    const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), wait_ms());
    now_ = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == nullptr) continue;
      auto* sink = static_cast<EventSink*>(event.data.ptr);
      if (const auto found = sinks_.find(sink); found != sinks_.end()) sink->on_events(event.events);
    }
    run_posted();
    run_timers();
    if (now_ >= next_tick_) {
      next_tick_ = now_ + kTick;
      std::vector<std::shared_ptr<EventSink>> all;
      all.reserve(sinks_.size());
      for (const auto& [raw, sink] : sinks_) all.push_back(sink);
      for (const auto& sink : all) {
        if (sinks_.contains(sink.get())) sink->on_tick(now_);
      }
    }
    run_slow_turns();
    run_end_of_batch();
    MutexLock lock(mutex_);
    if (stopping_) break;
  }
  // What was posted before the stop is done first; what ends may begin something new, and that ends too.
  run_posted();
  while (!sinks_.empty()) {
    auto sinks = std::exchange(sinks_, {});
    for (auto& [raw, sink] : sinks) sink->on_reactor_stop();
    run_posted();
  }
  run_end_of_batch();
  timers_.clear();
  slow_.clear();
  // The system may give this thread's id to another one, which is not this reactor's.
  thread_id_ = std::thread::id{};
}

void Reactor::run_posted() {
  {
    MutexLock lock(mutex_);
    if (wake_sent_) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(wake_fd_, &count, sizeof count);
      wake_sent_ = false;
    }
    running_.swap(posted_);
  }
  for (auto& task : running_) task();
  running_.clear();
}

void Reactor::run_timers() {
  while (!timers_.empty() && timers_.begin()->first <= now_) {
    auto task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
  }
}

void Reactor::run_slow_turns() {
  for (; slow_turns_left_ > 0 && !slow_.empty(); --slow_turns_left_) {
    auto task = std::move(slow_.front());
    slow_.pop_front();
    task();
  }
  slow_turns_left_ = kSlowTurns;
}

void Reactor::run_end_of_batch() {
  // By index: a task may queue further ones.
  for (std::size_t i = 0; i < end_of_batch_.size(); ++i) {
    auto task = std::move(end_of_batch_[i]);
    task();
  }
  end_of_batch_.clear();
}

}  // namespace berth::net
