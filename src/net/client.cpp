#include "net/client.h"

#include "base/mutex.h"
#include "net/client_session.h"
#include "net/onward.h"

namespace berth::net {
namespace {

/// Everything that may stand in a path as it is (RFC 3986 pchar and '/').
std::string encode_path(std::string_view path) {
  static constexpr std::string_view kPlain = "/-._~!$&'()*+,;=:@";
  std::string out;
  out.reserve(path.size());
  for (const char c : path) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kPlain.find(c) != std::string_view::npos;
    if (is_plain)
      out.push_back(c);
    else
      out += percent_encode(std::string_view(&c, 1));
  }
  return out;
}

class StreamHandleImpl final : public StreamHandle {
 public:
  StreamHandleImpl(std::shared_ptr<ClientPool> pool, ClientOpPtr op) : pool_(std::move(pool)), op_(std::move(op)) {}
  void pause() override { op_->stream->is_paused = true; }
  void resume() override {
    pool_->reactor().post([pool = pool_, op = op_] { pool->resume(op); });
  }
  ~StreamHandleImpl() override {
    StreamCallbacks dropped;
    {
      GateLock lock(op_->stream->gate);
      op_->stream->is_cancelled = true;
      dropped = std::exchange(op_->stream->callbacks, {});
    }
    pool_->reactor().post([pool = pool_, op = op_] { pool->cancel(op); });
  }

 private:
  std::shared_ptr<ClientPool> pool_;
  ClientOpPtr op_;
};

class HttpClientImpl final : public HttpClient {
 public:
  explicit HttpClientImpl(ClientConfig config, Url url) : config_(std::move(config)), url_(std::move(url)) {}

  ~HttpClientImpl() override {
    for (const auto& pool : pools_) {
      pool->reactor().post([pool] { pool->shut_down(); });
      if (config_.reactor == nullptr) pool->reactor().stop();
    }
  }

  Result<void> open() {
    TlsContext tls;
    if (url_.is_https) {
      auto made = make_client_tls(config_);
      if (!made) return std::unexpected(made.error());
      tls = std::move(*made);
    }
    const int threads = config_.reactor != nullptr ? 1 : std::max(1, config_.io_threads);
    const auto per_thread = static_cast<std::size_t>((std::max(1, config_.max_connections) + threads - 1) / threads);
    const ClientPool::Options options{.url = url_,
                                      .tls = std::move(tls),
                                      .server_name = config_.server_name.empty() ? url_.host : config_.server_name,
                                      .verify = !config_.insecure_skip_verify,
                                      .max_connections = per_thread,
                                      .max_answer_bytes = config_.max_answer_bytes,
                                      .refuse_address = config_.refuse_address,
                                      .node_name = config_.node_name};
    for (int i = 0; i < threads; ++i) {
      auto reactor = config_.reactor != nullptr ? config_.reactor : Reactor::start(fmt::format("http-client-{}", i));
      if (!reactor) return fail(ErrorCode::kInternal, "cannot start an I/O thread");
      pools_.push_back(std::make_shared<ClientPool>(std::move(reactor), options));
    }
    return {};
  }

  void send(HttpRequest request, std::function<void(HttpResponse)> done) override {
    auto op = make_op(ClientOp::Kind::kExchange, std::move(request));
    op->done = std::move(done);
    op->deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(config_.timeout_ms);
    start(std::move(op));
  }

  std::unique_ptr<StreamHandle> stream(HttpRequest request, StreamCallbacks callbacks) override {
    auto op = make_op(ClientOp::Kind::kStream, std::move(request));
    op->stream = std::make_shared<StreamControl>();
    op->stream->callbacks = std::move(callbacks);
    auto pool = start(op);
    return std::make_unique<StreamHandleImpl>(std::move(pool), std::move(op));
  }

  std::function<void()> upgrade(HttpRequest request, std::function<void(std::unique_ptr<RawStream>, HttpResponse)> done) override {
    auto op = make_op(ClientOp::Kind::kUpgrade, std::move(request));
    op->upgraded = std::move(done);
    op->deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(config_.timeout_ms);
    const auto pool = start(op);
    return [weak_pool = std::weak_ptr(pool), weak_op = std::weak_ptr(op)] {
      const auto owner = weak_pool.lock();
      const auto cancelled = weak_op.lock();
      if (owner && cancelled) owner->reactor().post([owner, cancelled] { owner->cancel(cancelled); });
    };
  }

 private:
  ClientOpPtr make_op(ClientOp::Kind kind, HttpRequest request) const {
    auto op = std::make_shared<ClientOp>();
    op->kind = kind;
    auto& wire = op->wire;
    wire.reserve(512 + request.body.size());
    wire.append(request.method)
        .append(" ")
        .append(url_.prefix)
        .append(encode_path(request.path.empty() && url_.prefix.empty() ? "/" : request.path));
    if (!request.query.empty()) wire.append("?").append(request.query);
    wire.append(" HTTP/1.1\r\nHost: ").append(url_.host_header).append("\r\n");
    // Callers pass fields on that they were given: the framing and what belongs to the connection are this client's alone.
    const bool upgrades = kind == ClientOp::Kind::kUpgrade;
    if (upgrades) request.body.clear();
    for (const auto& [name, value] : request.headers.fields()) {
      const bool switches = upgrades && (equal_ignoring_case(name, "Connection") || equal_ignoring_case(name, "Upgrade"));
      const bool closes = equal_ignoring_case(name, "Connection") && equal_ignoring_case(value, "close");
      if (is_hop_by_hop(name) && !switches && !closes) continue;
      wire.append(name).append(": ");
      for (const char c : value) wire.push_back(c == '\r' || c == '\n' ? ' ' : c);
      wire.append("\r\n");
    }
    const bool has_body = !request.body.empty() || request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
    if (has_body) fmt::format_to(std::back_inserter(wire), "Content-Length: {}\r\n", request.body.size());
    wire.append("\r\n").append(request.body);
    op->is_replayable = request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
    op->method = std::move(request.method);
    return op;
  }

  std::shared_ptr<ClientPool> start(ClientOpPtr op) {
    const auto& pool = pools_[next_.fetch_add(1, std::memory_order_relaxed) % pools_.size()];
    if (!pool->reactor().post([pool, op] { pool->submit(op); })) op->fail("the client is closed");
    return pool;
  }

  ClientConfig config_;
  Url url_;
  std::vector<std::shared_ptr<ClientPool>> pools_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::create(ClientConfig config) {
  auto url = parse_url(config.url);
  if (!url) return std::unexpected(url.error());
  auto client = std::make_unique<HttpClientImpl>(std::move(config), std::move(*url));
  if (auto opened = client->open(); !opened) return std::unexpected(opened.error());
  return client;
}

}  // namespace berth::net
