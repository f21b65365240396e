#include "net/tracing/handler.h"

#include <fmt/format.h>

namespace berth::net::tracing {
namespace {

/// Ends the span with the answer's head; a watch or a session is a span until then, not for as long as it lasts.
class TracedWriter final : public ResponseWriter {
 public:
  TracedWriter(std::shared_ptr<ResponseWriter> inner, std::shared_ptr<Tracer> tracer, Span span)
      : inner_(std::move(inner)), tracer_(std::move(tracer)), span_(std::move(span)) {}
  ~TracedWriter() override { end(0); }
  TracedWriter(const TracedWriter&) = delete;
  TracedWriter& operator=(const TracedWriter&) = delete;

  void respond(HttpResponse response) override {
    end(response.status);
    inner_->respond(std::move(response));
  }
  void respond_shared(int status, Headers headers, std::vector<Bytes> parts) override {
    end(status);
    inner_->respond_shared(status, std::move(headers), std::move(parts));
  }
  void start_stream(int status, Headers headers) override {
    end(status);
    inner_->start_stream(status, std::move(headers));
  }
  bool write(Bytes chunk) override { return inner_->write(std::move(chunk)); }
  [[nodiscard]] bool takes_events() const override { return inner_->takes_events(); }
  bool write_event(std::string_view type, const KeptTextRef& object) override { return inner_->write_event(type, object); }
  [[nodiscard]] std::size_t queued_bytes() const override { return inner_->queued_bytes(); }
  void on_drain(std::function<void()> more) override { inner_->on_drain(std::move(more)); }
  void finish() override { inner_->finish(); }
  void on_close(std::function<void()> closed) override { inner_->on_close(std::move(closed)); }
  std::unique_ptr<RawStream> upgrade(Headers headers) override {
    auto stream = inner_->upgrade(std::move(headers));
    if (stream != nullptr) end(101);
    return stream;
  }

 private:
  void end(int status) {
    if (!span_) return;
    Span span = std::move(*span_);
    span_.reset();
    span.attributes.emplace_back("http.response.status_code", std::int64_t{status});
    if (status == 0) span.error = "not answered";
    if (status >= 500) span.error = fmt::format("{} {}", status, reason_phrase(status));
    tracer_->end(std::move(span));
  }

  std::shared_ptr<ResponseWriter> inner_;
  std::shared_ptr<Tracer> tracer_;
  std::optional<Span> span_;
};

}  // namespace

void TracedHandler::handle(HttpRequest request, std::shared_ptr<ResponseWriter> writer) {
  Span span = tracer_->begin(fmt::format("{} {}", request.method, request.path), SpanKind::kServer,
                             parse_traceparent(request.headers.get(kTraceparent)));
  request.headers.set(kTraceparent, format_traceparent(span.context));
  if (!span.context.is_sampled) return inner_.handle(std::move(request), std::move(writer));
  span.attributes.emplace_back("http.request.method", request.method);
  span.attributes.emplace_back("url.path", request.path);
  if (!request.query.empty()) span.attributes.emplace_back("url.query", request.query);
  if (const auto agent = request.headers.get("User-Agent"); !agent.empty())
    span.attributes.emplace_back("user_agent.original", std::string(agent));
  if (!request.remote_address.empty()) span.attributes.emplace_back("client.address", request.remote_address);
  inner_.handle(std::move(request), std::make_shared<TracedWriter>(std::move(writer), tracer_, std::move(span)));
}

}  // namespace berth::net::tracing
