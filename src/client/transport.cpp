#include "client/transport.h"

#include "base/gate.h"
#include "base/mutex.h"

namespace berth::client {
namespace {

using net::HttpRequest;
using net::HttpResponse;

class HttpsTransport final : public Transport {
 public:
  HttpsTransport(std::unique_ptr<net::HttpClient> http, TokenSource token) : http_(std::move(http)), token_(std::move(token)) {}

  void send(HttpRequest request, std::function<void(HttpResponse)> done) override {
    authorize(request);
    http_->send(std::move(request), std::move(done));
  }
  std::unique_ptr<net::StreamHandle> stream(HttpRequest request, net::StreamCallbacks callbacks) override {
    authorize(request);
    return http_->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, HttpResponse)> done) override {
    authorize(request);
    http_->upgrade(std::move(request), std::move(done));
  }

 private:
  void authorize(HttpRequest& request) const {
    if (!token_ || !request.headers.get("Authorization").empty()) return;
    if (auto token = token_(); !token.empty()) request.headers.add("Authorization", "Bearer " + token);
  }

  std::unique_ptr<net::HttpClient> http_;
  TokenSource token_;
};

/// Where an in-process answer goes.
struct Exchange {
  Gate gate;             ///< Of whoever listens, and of the state below.
  bool is_gone = false;  ///< Answered in full, or nobody listens any more.
  bool is_answered = false, is_stream = false;
  std::function<void(HttpResponse)> done;  ///< Of send and upgrade.
  net::StreamCallbacks stream;             ///< Of stream.
  HttpResponse collected;                  ///< A stream's answer to send.
  std::size_t max_collected = SIZE_MAX;    ///< Bytes of its body; more fails it.
  std::function<void()> on_close;

  /// Ends the exchange; the handler's on_close runs without the lock.
  void close() {
    std::function<void()> closed;
    {
      GateLock lock(gate);
      is_gone = true;
      closed = std::exchange(on_close, nullptr);
    }
    if (closed) closed();
  }

  void deliver(HttpResponse response) {
    {
      GateLock lock(gate);
      if (is_gone) return;
      if (done) {
        std::exchange(done, nullptr)(std::move(response));
      } else {
        if (stream.on_header) stream.on_header(response.status, response.headers);
        if (!response.body.empty() && stream.on_data && !is_gone) stream.on_data(response.body);
        end_stream("");
      }
    }
    close();
  }

  void end_stream(std::string error) {
    if (!is_gone && stream.on_end) std::exchange(stream.on_end, nullptr)(std::move(error));
  }
};

class InProcessWriter final : public net::ResponseWriter {
 public:
  explicit InProcessWriter(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  ~InProcessWriter() override {
    GateLock lock(exchange_->gate);
    if (!exchange_->is_answered) {
      exchange_->is_answered = true;
      lock.unlock();
      exchange_->deliver({.status = 500, .headers = {}, .body = "the request was dropped without an answer"});
    } else if (exchange_->is_stream && !exchange_->is_gone) {
      if (exchange_->done)
        std::exchange(exchange_->done, nullptr)({.status = 0, .headers = {}, .body = "unexpected EOF: the answer was cut off"});
      else
        exchange_->end_stream("unexpected EOF: the answer was cut off");
      lock.unlock();
      exchange_->close();
    }
  }

  void respond(HttpResponse response) override {
    if (claim(false)) exchange_->deliver(std::move(response));
  }

  void respond_shared(int status, net::Headers headers, std::vector<Bytes> parts) override {
    HttpResponse response{.status = status, .headers = std::move(headers), .body = {}};
    std::size_t size = 0;
    for (const auto& part : parts) size += part->size();
    response.body.reserve(size);
    for (const auto& part : parts) response.body += *part;
    respond(std::move(response));
  }

  void start_stream(int status, net::Headers headers) override {
    if (!claim(true)) return;
    GateLock lock(exchange_->gate);
    if (exchange_->is_gone) return;
    if (exchange_->done)
      exchange_->collected = {.status = status, .headers = std::move(headers), .body = {}};
    else if (exchange_->stream.on_header)
      exchange_->stream.on_header(status, headers);
  }

  bool write(Bytes chunk) override {
    GateLock lock(exchange_->gate);
    if (exchange_->is_gone || !exchange_->is_stream) return false;
    if (exchange_->done && exchange_->collected.body.size() + chunk->size() > exchange_->max_collected) {
      exchange_->collected = {};
      std::exchange(exchange_->done, nullptr)(
          {.status = 0, .headers = {}, .body = fmt::format("the answer is longer than {} bytes", exchange_->max_collected)});
      lock.unlock();
      exchange_->close();
      return false;
    }
    if (exchange_->done)
      exchange_->collected.body += *chunk;
    else if (!chunk->empty() && exchange_->stream.on_data)
      exchange_->stream.on_data(*chunk);
    return !exchange_->is_gone;
  }

  [[nodiscard]] bool takes_events() const override {
    const GateLock lock(exchange_->gate);
    return static_cast<bool>(exchange_->stream.on_event);
  }
  bool write_event(std::string_view type, const KeptTextRef& object) override {
    const GateLock lock(exchange_->gate);
    if (exchange_->is_gone || !exchange_->is_stream) return false;
    if (exchange_->stream.on_event) exchange_->stream.on_event(type, object);
    return !exchange_->is_gone;
  }

  [[nodiscard]] std::size_t queued_bytes() const override { return 0; }

  void on_drain(std::function<void()> more) override {
    // Nothing is ever queued. A producer that asks again from within is run in a loop, not deeper and deeper on the stack.
    pending_drain_ = std::move(more);
    if (std::exchange(is_draining_, true)) return;
    while (pending_drain_) std::exchange(pending_drain_, nullptr)();
    is_draining_ = false;
  }

  void finish() override {
    {
      GateLock lock(exchange_->gate);
      if (!exchange_->is_stream || exchange_->is_gone) return;
      if (exchange_->done)
        std::exchange(exchange_->done, nullptr)(std::move(exchange_->collected));
      else
        exchange_->end_stream("");
    }
    exchange_->close();
  }

  void on_close(std::function<void()> closed) override {
    {
      GateLock lock(exchange_->gate);
      if (!exchange_->is_gone) {
        exchange_->on_close = std::move(closed);
        return;
      }
    }
    closed();
  }

  std::unique_ptr<net::RawStream> upgrade(net::Headers) override { return nullptr; }

 private:
  bool claim(bool stream) {
    GateLock lock(exchange_->gate);
    if (std::exchange(exchange_->is_answered, true)) return false;
    exchange_->is_stream = stream;
    return true;
  }

  std::shared_ptr<Exchange> exchange_;
  std::function<void()> pending_drain_;
  bool is_draining_ = false;
};

class InProcessStream final : public net::StreamHandle {
 public:
  explicit InProcessStream(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~InProcessStream() override {
    net::StreamCallbacks dropped;
    {
      GateLock lock(exchange_->gate);
      exchange_->is_gone = true;
      dropped = std::exchange(exchange_->stream, {});
    }
    exchange_->close();
  }

 private:
  std::shared_ptr<Exchange> exchange_;
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(net::Handler& handler, net::PeerCertificate identity) : handler_(handler), identity_(std::move(identity)) {}

  void send(HttpRequest request, std::function<void(HttpResponse)> done) override {
    auto exchange = std::make_shared<Exchange>();
    exchange->done = std::move(done);
    // What is behind a proxy is somebody else's word, and as long as they like.
    constexpr std::size_t kMaxProxied = 16 * 1024 * 1024;
    if (request.path.find("/proxy/") != std::string::npos) exchange->max_collected = kMaxProxied;
    handle(std::move(request), std::move(exchange));
  }
  std::unique_ptr<net::StreamHandle> stream(HttpRequest request, net::StreamCallbacks callbacks) override {
    auto exchange = std::make_shared<Exchange>();
    exchange->stream = std::move(callbacks);
    handle(std::move(request), exchange);
    return std::make_unique<InProcessStream>(std::move(exchange));
  }
  void upgrade(HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, HttpResponse)> done) override {
    send(std::move(request), [done = std::move(done)](HttpResponse response) { done(nullptr, std::move(response)); });
  }
  [[nodiscard]] bool is_in_process() const override { return true; }

 private:
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
    request.peer = identity_;
    request.remote_address = "127.0.0.1:0";
    handler_.handle(std::move(request), std::make_shared<InProcessWriter>(std::move(exchange)));
  }

  net::Handler& handler_;
  net::PeerCertificate identity_;
};

}  // namespace

Result<std::shared_ptr<Transport>> make_https_transport(net::ClientConfig config, std::string bearer_token) {
  TokenSource token;
  if (!bearer_token.empty()) token = [bearer_token = std::move(bearer_token)] { return bearer_token; };
  return make_https_transport(std::move(config), std::move(token));
}

Result<std::shared_ptr<Transport>> make_https_transport(net::ClientConfig config, TokenSource token) {
  auto http = net::HttpClient::create(std::move(config));
  if (!http) return std::unexpected(http.error());
  return std::make_shared<HttpsTransport>(std::move(*http), std::move(token));
}

std::shared_ptr<Transport> make_in_process_transport(net::Handler& handler, net::PeerCertificate identity) {
  return std::make_shared<InProcessTransport>(handler, std::move(identity));
}

}  // namespace berth::client
