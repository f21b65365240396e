// A network between a component and the API server that can be cut, and that can be looked at.
#pragma once
#include <set>

#include "base/event_loop.h"
#include "client/transport.h"

namespace berth::integration {

/// For one thread, the loop's. Cutting ends all streams; requests under way are still answered.
class Link final : public client::Transport {
 public:
  explicit Link(EventLoop& loop) : loop_(loop) {}

  /// Where it leads to from now on; null: the server is down, which cuts all streams.
  void lead_to(std::shared_ptr<client::Transport> inner) {
    if (!inner) end_streams();
    inner_ = std::move(inner);
  }

  std::function<void(const net::HttpRequest&)> on_request;

  void cut() {
    is_cut_ = true;
    end_streams();
  }
  void heal() { is_cut_ = false; }

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    if (!is_open()) return loop_.post([done = std::move(done)] { done({.status = 0, .headers = {}, .body = "the network is cut"}); });
    if (on_request) on_request(request);
    inner_->send(std::move(request), std::move(done));
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    auto stream = std::make_shared<Stream>();
    stream->callbacks = std::move(callbacks);
    if (!is_open()) {
      stream->ended = true;
      loop_.post([stream] {
        if (!stream->cancelled && stream->callbacks.on_end) stream->callbacks.on_end("the network is cut");
      });
      return std::make_unique<Handle>(stream);
    }
    net::StreamCallbacks wrapped;
    wrapped.on_header = [stream](int status, const net::Headers& headers) {
      if (!stream->ended && stream->callbacks.on_header) stream->callbacks.on_header(status, headers);
    };
    wrapped.on_data = [stream](std::string_view data) {
      if (!stream->ended && stream->callbacks.on_data) stream->callbacks.on_data(data);
    };
    wrapped.on_end = [stream](std::string error) {
      if (!std::exchange(stream->ended, true) && stream->callbacks.on_end) stream->callbacks.on_end(std::move(error));
    };
    auto inner = inner_->stream(std::move(request), std::move(wrapped));
    stream->inner = std::move(inner);
    std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
    streams_.push_back(stream);
    return std::make_unique<Handle>(stream);
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    inner_->upgrade(std::move(request), std::move(done));
  }

 private:
  [[nodiscard]] bool is_open() const { return !is_cut_ && inner_ != nullptr; }
  void end_streams() {
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
  struct Stream {
    net::StreamCallbacks callbacks;
    std::unique_ptr<net::StreamHandle> inner;
    bool ended = false, cancelled = false;
  };
  struct Handle final : net::StreamHandle {
    explicit Handle(std::shared_ptr<Stream> of) : stream(std::move(of)) {}
    ~Handle() override {
      stream->cancelled = stream->ended = true;
      stream->inner.reset();
      stream->callbacks = {};
    }
    std::shared_ptr<Stream> stream;
  };

  std::shared_ptr<client::Transport> inner_;
  EventLoop& loop_;
  bool is_cut_ = false;
  std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace berth::integration
