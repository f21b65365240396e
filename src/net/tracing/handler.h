// A span around each request that a handler serves.
#pragma once
#include "net/http.h"
#include "net/tracing/tracer.h"

namespace berth::net::tracing {

/// Serves by `inner`, which must outlive it. What comes with a sampled traceparent goes on in that trace; `inner` finds its own span's in
/// the header, to hand on to whom it asks.
class TracedHandler final : public Handler {
 public:
  TracedHandler(Handler& inner, std::shared_ptr<Tracer> tracer) : inner_(inner), tracer_(std::move(tracer)) {}
  void handle(HttpRequest request, std::shared_ptr<ResponseWriter> writer) override;

 private:
  Handler& inner_;
  std::shared_ptr<Tracer> tracer_;
};

}  // namespace berth::net::tracing
