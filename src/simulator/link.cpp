#include "simulator/link.h"

#include <algorithm>
#include <utility>

namespace berth::simulator {

struct Link::Stream {
  net::StreamCallbacks callbacks;
  std::unique_ptr<net::StreamHandle> inner;
  bool ended = false, cancelled = false;
  TimePoint last{};  ///< Of what was delayed: later pieces never overtake.
};

struct Link::Handle final : net::StreamHandle {
  explicit Handle(std::shared_ptr<Stream> of) : stream(std::move(of)) {}
  ~Handle() override {
    stream->cancelled = stream->ended = true;
    stream->inner.reset();
    stream->callbacks = {};
  }
  std::shared_ptr<Stream> stream;
};

namespace {

bool is_event_write(const net::HttpRequest& request) {
  if (request.method != "POST" && request.method != "PATCH") return false;
  // Not the group's name in /apis/events.k8s.io/v1/namespaces/…/events.
  const std::size_t ns = request.path.find("/namespaces/"), at = request.path.find("/events", ns == std::string::npos ? 0 : ns);
  return ns != std::string::npos && at != std::string::npos && (at + 7 == request.path.size() || request.path[at + 7] == '/');
}

}  // namespace

Link::Link(EventLoop& loop, std::uint64_t seed) : loop_(loop), random_(seed, "link"), evictions_(std::make_shared<std::int64_t>(0)) {}

void Link::lead_to(std::shared_ptr<client::Transport> inner) {
  if (!inner) end_streams();
  inner_ = std::move(inner);
}

void Link::cut() {
  is_cut_ = true;
  end_streams();
}

std::function<void(net::HttpResponse)> Link::counted(const net::HttpRequest& request, std::function<void(net::HttpResponse)> done) {
  if (request.method != "POST" || !request.path.ends_with("/eviction") || request.query.find("dryRun") != std::string::npos) return done;
  return [counter = evictions_, accepted = on_eviction ? on_eviction(request.path) : nullptr,
          done = std::move(done)](net::HttpResponse response) {
    if (response.status >= 200 && response.status < 300) {
      ++*counter;
      if (accepted) accepted();
    }
    done(std::move(response));
  };
}

void Link::send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) {
  if (!is_open()) return loop_.post([done = std::move(done)] { done({.status = 0, .headers = {}, .body = "the network is cut"}); });
  if (on_event && is_event_write(request)) {
    if (request.method == "POST") on_event(request.body);
    return done({.status = request.method == "POST" ? 201 : 200, .headers = {}, .body = std::move(request.body)});
  }
  if (failing_ > 0 && random_.uniform() < failing_)
    return loop_.post([done = std::move(done)] {
      done({.status = 503,
            .headers = {},
            .body =
                R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","message":"injected","code":503})"});
    });
  if (on_request) on_request(request);
  if (delay_ > Duration(0))
    done = lifeline_.guard([this, done = std::move(done), delay = delay_](net::HttpResponse response) {
      loop_.schedule_after(delay, [done, response = std::move(response)]() mutable { done(std::move(response)); });
    });
  // Counted when the server accepts, not when the answer arrives.
  done = counted(request, std::move(done));
  inner_->send(std::move(request), std::move(done));
}

void Link::deliver(const std::shared_ptr<Stream>& stream, std::function<void()> what) {
  const TimePoint now = loop_.now();
  if (delay_ == Duration(0) && stream->last <= now) return what();
  stream->last = std::max(stream->last, now + delay_);
  loop_.schedule_at(stream->last, [stream, what = std::move(what)] {
    if (!stream->cancelled) what();
  });
}

net::StreamCallbacks Link::wrap(const std::shared_ptr<Stream>& stream) {
  net::StreamCallbacks wrapped;
  wrapped.on_header = [this, stream](int status, const net::Headers& headers) {
    if (!stream->ended)
      deliver(stream, [stream, status, headers] {
        if (stream->callbacks.on_header) stream->callbacks.on_header(status, headers);
      });
  };
  wrapped.on_data = [this, stream](std::string_view data) {
    if (stream->ended) return;
    if (delay_ == Duration(0) && stream->last <= loop_.now()) {
      if (stream->callbacks.on_data) stream->callbacks.on_data(data);
      return;
    }
    deliver(stream, [stream, kept = std::string(data)] {
      if (!stream->ended && stream->callbacks.on_data) stream->callbacks.on_data(kept);
    });
  };
  if (stream->callbacks.on_event)
    wrapped.on_event = [this, stream](std::string_view type, const KeptTextRef& object) {
      if (stream->ended) return;
      if (delay_ == Duration(0) && stream->last <= loop_.now()) return stream->callbacks.on_event(type, object);
      deliver(stream, [stream, type = std::string(type), object] {
        if (!stream->ended) stream->callbacks.on_event(type, object);
      });
    };
  wrapped.on_end = [this, stream](std::string error) {
    if (stream->ended) return;
    deliver(stream, [stream, error = std::move(error)] {
      if (!std::exchange(stream->ended, true) && stream->callbacks.on_end) stream->callbacks.on_end(error);
    });
  };
  return wrapped;
}

std::unique_ptr<net::StreamHandle> Link::stream(net::HttpRequest request, net::StreamCallbacks callbacks) {
  auto stream = std::make_shared<Stream>();
  stream->callbacks = std::move(callbacks);
  if (!is_open()) {
    stream->ended = true;
    loop_.post([stream] {
      if (!stream->cancelled && stream->callbacks.on_end) stream->callbacks.on_end("the network is cut");
    });
    return std::make_unique<Handle>(stream);
  }
  stream->inner = inner_->stream(std::move(request), wrap(stream));
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
  return std::make_unique<Handle>(stream);
}

void Link::upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) {
  if (!is_open())
    return loop_.post([done = std::move(done)] { done(nullptr, {.status = 0, .headers = {}, .body = "the network is cut"}); });
  inner_->upgrade(std::move(request), std::move(done));
}

void Link::end_streams() {
  for (const auto& weak : std::exchange(streams_, {})) {
    const std::shared_ptr<Stream> stream = weak.lock();
    if (!stream || stream->ended) continue;
    stream->ended = true;
    stream->inner.reset();
    loop_.post([stream] {
      if (!stream->cancelled && stream->callbacks.on_end) stream->callbacks.on_end("the network is cut");
    });
  }
}

}  // namespace berth::simulator
