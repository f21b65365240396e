#include "client/traced_transport.h"

#include <fmt/format.h>

namespace berth::client {
namespace {

namespace tracing = net::tracing;

class TracedTransport final : public Transport {
 public:
  TracedTransport(std::shared_ptr<Transport> inner, std::shared_ptr<tracing::Tracer> tracer)
      : inner_(std::move(inner)), tracer_(std::move(tracer)) {}

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    const auto* const parent = tracing::current();
    if (parent == nullptr) return inner_->send(std::move(request), std::move(done));
    auto span = tracer_->begin(fmt::format("{} {}", request.method, request.path), tracing::SpanKind::kClient, *parent);
    span.attributes.emplace_back("http.request.method", request.method);
    span.attributes.emplace_back("url.path", request.path);
    request.headers.set(tracing::kTraceparent, tracing::format_traceparent(span.context));
    inner_->send(
        std::move(request), [tracer = tracer_, span = std::move(span), done = std::move(done)](net::HttpResponse response) mutable {
          span.attributes.emplace_back("http.response.status_code", std::int64_t{response.status});
          if (response.status == 0 || response.status >= 400)
            span.error = response.status == 0 ? response.body : fmt::format("{} {}", response.status, net::reason_phrase(response.status));
          tracer->end(std::move(span));
          done(std::move(response));
        });
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    return inner_->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    inner_->upgrade(std::move(request), std::move(done));
  }
  [[nodiscard]] bool is_in_process() const override { return inner_->is_in_process(); }

 private:
  std::shared_ptr<Transport> inner_;
  std::shared_ptr<tracing::Tracer> tracer_;
};

}  // namespace

std::shared_ptr<Transport> with_tracing(std::shared_ptr<Transport> inner, std::shared_ptr<tracing::Tracer> tracer) {
  return std::make_shared<TracedTransport>(std::move(inner), std::move(tracer));
}

}  // namespace berth::client
