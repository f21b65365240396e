#include "tests/world/wire.h"

#include <algorithm>

namespace berth::world {
namespace {

constexpr Duration kRefused = std::chrono::milliseconds(1);
constexpr Duration kGivesUp = std::chrono::seconds(10);   // Who waits for an answer that was lost.
constexpr Duration kPatience = std::chrono::seconds(20);  // Who waits for a server that does not answer.

}  // namespace

struct Wire::Exchange {
  std::function<void(net::HttpResponse)> done;
  Wire& wire;
  EventLoop& home;
  std::string creates;  ///< A creation's path.
  void finish(net::HttpResponse response) {
    auto then = std::exchange(done, nullptr);
    const bool is_in_doubt = response.status == 0 || response.status >= 500;
    if (then && is_in_doubt && !creates.empty() && wire.on_doubt) wire.on_doubt(creates);
    if (then) home.post([then = std::move(then), response = std::move(response)]() mutable { then(std::move(response)); });
  }
};

struct Wire::Stream {
  net::StreamCallbacks callbacks;
  std::unique_ptr<net::StreamHandle> inner;
  bool is_dead = false;  ///< Nothing of it comes through any more.
  bool is_over = false;  ///< Its end was told, or nobody listens.
  TimePoint last{};      ///< Of what is on its way: later pieces never overtake.
};

struct Wire::Handle final : net::StreamHandle {
  explicit Handle(StreamPtr of) : stream(std::move(of)) {}
  ~Handle() override {
    stream->is_dead = stream->is_over = true;
    stream->inner.reset();
    stream->callbacks = {};
  }
  StreamPtr stream;
};

Duration Wire::delay() {
  const auto span = static_cast<std::uint64_t>((most_delay - least_delay).count());
  return least_delay + Duration(static_cast<std::int64_t>(span == 0 ? 0 : random_.below(span)));
}

void Wire::lead_to(std::shared_ptr<client::Transport> server) {
  ++epoch_;
  end_streams(kRefused);
  server_ = std::move(server);
}

void Wire::cut() {
  if (std::exchange(is_cut_, true)) return;
  ++epoch_;
  end_streams(kGivesUp / 2);
}

void Wire::lose(const ExchangePtr& exchange, Duration after) {
  loop_.schedule_after(after, [exchange] { exchange->finish({.status = 0, .headers = {}, .body = "the connection was lost"}); });
}

void Wire::send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) {
  if (on_send) on_send(request);
  auto exchange = std::make_shared<Exchange>(std::move(done), *this, home_, request.method == "POST" ? request.path : std::string());
  if (is_dumb) return lose(exchange, kRefused);
  lose(exchange, kPatience);
  if (is_cut_ || random_.uniform() < loses_requests) return lose(exchange, kGivesUp);
  if (server_ == nullptr) return lose(exchange, kRefused);
  loop_.schedule_after(delay(), [this, exchange, epoch = epoch_, request = std::move(request)]() mutable {
    if (epoch != epoch_ || server_ == nullptr) return lose(exchange, kRefused);
    server_->send(std::move(request), [this, exchange, epoch](net::HttpResponse response) {
      // It is done by now, whatever becomes of the answer.
      if (random_.uniform() < loses_answers) return lose(exchange, kGivesUp);
      loop_.schedule_after(delay(), [this, exchange, epoch, response = std::move(response)]() mutable {
        if (epoch != epoch_) response = {.status = 0, .headers = {}, .body = "the connection was lost"};
        exchange->finish(std::move(response));
      });
    });
  });
}

void Wire::deliver(const StreamPtr& stream, std::function<void()> what) {
  stream->last = std::max(stream->last, loop_.now() + delay());
  loop_.schedule_at(stream->last, [&home = home_, stream, what = std::move(what)]() mutable {
    home.post([stream, what = std::move(what)] {
      if (!stream->is_dead) what();
    });
  });
}

void Wire::lose(const StreamPtr& stream, Duration after) {
  stream->is_dead = true;
  loop_.schedule_after(after, [&home = home_, stream] {
    home.post([stream] {
      stream->inner.reset();
      if (!std::exchange(stream->is_over, true) && stream->callbacks.on_end) stream->callbacks.on_end("the connection was lost");
    });
  });
}

std::unique_ptr<net::StreamHandle> Wire::stream(net::HttpRequest request, net::StreamCallbacks callbacks) {
  auto stream = std::make_shared<Stream>();
  stream->callbacks = std::move(callbacks);
  if (is_cut_ || server_ == nullptr) {
    lose(stream, is_cut_ ? kGivesUp : kRefused);
    return std::make_unique<Handle>(stream);
  }
  net::StreamCallbacks wrapped;
  wrapped.on_header = [this, stream](int status, const net::Headers& headers) {
    deliver(stream, [stream, status, headers] {
      if (stream->callbacks.on_header) stream->callbacks.on_header(status, headers);
    });
  };
  wrapped.on_data = [this, stream](std::string_view data) {
    deliver(stream, [stream, kept = std::string(data)] {
      if (stream->callbacks.on_data) stream->callbacks.on_data(kept);
    });
  };
  wrapped.on_end = [this, stream](std::string error) {
    deliver(stream, [stream, error = std::move(error)] {
      stream->is_dead = true;
      if (!std::exchange(stream->is_over, true) && stream->callbacks.on_end) stream->callbacks.on_end(error);
    });
  };
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
  stream->inner = server_->stream(std::move(request), std::move(wrapped));
  return std::make_unique<Handle>(stream);
}

void Wire::upgrade(net::HttpRequest, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) {
  loop_.post([done = std::move(done)] { done(nullptr, {.status = 0, .headers = {}, .body = "no sessions here"}); });
}

void Wire::end_streams(Duration noticed_after) {
  for (const auto& weak : std::exchange(streams_, {})) {
    const StreamPtr stream = weak.lock();
    if (!stream || stream->is_dead) continue;
    lose(stream, noticed_after);
    // The server's end goes with the server; a client that is cut off is not known to it for as long.
    if (server_ != nullptr && noticed_after == kRefused) stream->inner.reset();
  }
}

}  // namespace berth::world
