#include "tests/world/process_loop.h"

namespace berth::world {

void ProcessLoop::due(Task task) {
  if (is_stopped_)
    waiting_.push_back(std::move(task));
  else
    task();
}

void ProcessLoop::post(Task task) {
  world_.post([this, task = std::move(task)]() mutable { due(std::move(task)); });
}

TimerId ProcessLoop::schedule_at(TimePoint when, Task task) {
  const std::uint64_t id = ++last_id_;
  timers_[id] = world_.schedule_at(when - skew_, [this, id, task = std::move(task)]() mutable {
    due([this, id, task = std::move(task)] {
      if (timers_.erase(id) > 0) task();
    });
  });
  return TimerId{id};
}

void ProcessLoop::cancel(TimerId id) {
  const auto found = timers_.find(static_cast<std::uint64_t>(id));
  if (found == timers_.end()) return;
  world_.cancel(found->second);
  timers_.erase(found);
}

void ProcessLoop::go_on() {
  is_stopped_ = false;
  for (Task& task : std::exchange(waiting_, {})) post(std::move(task));
}

void Door::send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) {
  if (!home_.is_stopped()) return server_->send(std::move(request), std::move(done));
  home_.post([weak = std::weak_ptr(server_), request = std::move(request), done = std::move(done)]() mutable {
    if (const auto server = weak.lock()) return server->send(std::move(request), std::move(done));
    done({.status = 0, .headers = {}, .body = "the connection was lost"});
  });
}

/// A stream whose server has not heard of it yet.
struct Door::Waiting {
  std::unique_ptr<net::StreamHandle> inner;
};

std::unique_ptr<net::StreamHandle> Door::stream(net::HttpRequest request, net::StreamCallbacks callbacks) {
  if (!home_.is_stopped()) return server_->stream(std::move(request), std::move(callbacks));
  struct Handle final : net::StreamHandle {
    std::shared_ptr<Waiting> waiting = std::make_shared<Waiting>();
  };
  auto handle = std::make_unique<Handle>();
  home_.post([weak = std::weak_ptr(server_), open = std::weak_ptr(handle->waiting), request = std::move(request),
              callbacks = std::move(callbacks)]() mutable {
    const auto waiting = open.lock();
    if (!waiting) return;
    if (const auto server = weak.lock()) {
      waiting->inner = server->stream(std::move(request), std::move(callbacks));
    } else if (callbacks.on_end) {
      callbacks.on_end("the connection was lost");
    }
  });
  return handle;
}

void Door::upgrade(net::HttpRequest, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) {
  home_.post([done = std::move(done)] { done(nullptr, {.status = 0, .headers = {}, .body = "no sessions here"}); });
}

}  // namespace berth::world
