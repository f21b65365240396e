// A thread beside the scheduling loop for calls that block: HTTP extenders, which may take seconds to answer.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"

namespace berth::scheduler {

/// Runs jobs one after the other, in order, and brings what follows from each back to the loop. The destructor waits for the running job
/// and drops the others.
class Worker {
 public:
  using Executor = std::function<void(std::function<void()>)>;
  /// `loop` must outlive it. `executor` runs the jobs in a thread's place (tests, under a virtual clock); empty: a thread of that name
  /// does.
  Worker(EventLoop& loop, std::string name, Executor executor = {})
      : loop_(loop), executor_(std::move(executor)), thread_(executor_ ? nullptr : std::make_unique<ThreadLoop>(std::move(name))) {}

  /// `job` runs on the worker's thread: what it looks at must be its own (forks, shared immutable objects). What it returns runs on the
  /// loop.
  void run(std::function<std::function<void()>()> job) {
    auto task = [&loop = loop_, job = std::move(job)] { loop.post(job()); };
    if (thread_)
      thread_->post(std::move(task));
    else
      executor_(std::move(task));
  }

 private:
  EventLoop& loop_;
  Executor executor_;
  std::unique_ptr<ThreadLoop> thread_;
};

}  // namespace berth::scheduler
