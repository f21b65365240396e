// One process's own time: a process that is stopped (SIGSTOP) runs nothing, and everything that was due meanwhile happens once it goes on;
// its clock may be wrong by as much as its machine's was when it started.
#pragma once
#include <deque>
#include <unordered_map>

#include "base/event_loop.h"
#include "client/transport.h"

namespace berth::world {

/// Over the world's loop, which outlives it. For that loop's thread.
class ProcessLoop final : public EventLoop {
 public:
  explicit ProcessLoop(EventLoop& world) : world_(world) {}

  [[nodiscard]] TimePoint now() const override { return world_.now() + skew_; }
  void post(Task task) override;
  TimerId schedule_at(TimePoint when, Task task) override;
  void cancel(TimerId id) override;

  void stop() { is_stopped_ = true; }
  /// What was due meanwhile happens now, in the order in which it was due.
  void go_on();
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }
  /// The clock of a process that starts: within a process it never jumps (SystemClock).
  void set_skew(Duration skew) { skew_ = skew; }

 private:
  void due(Task task);
  EventLoop& world_;
  bool is_stopped_ = false;
  Duration skew_{};
  std::deque<Task> waiting_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, TimerId> timers_;  ///< Those that have not run, and the world's timer of each.
};

/// A server's door: who comes while its process is stopped waits before it.
class Door final : public client::Transport {
 public:
  Door(ProcessLoop& home, std::shared_ptr<client::Transport> server) : home_(home), server_(std::move(server)) {}

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override;
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override;
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override;
  /// The server is gone.
  void close() { server_.reset(); }

 private:
  struct Waiting;
  ProcessLoop& home_;
  std::shared_ptr<client::Transport> server_;
};

}  // namespace berth::world
