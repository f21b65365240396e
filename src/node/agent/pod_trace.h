// What the start of a pod tells a collector: a span from when the node hears of it until it is no longer Pending, and below that one for
// each long thing that the runtime is asked. They stand in the trace of the pod's way (net/tracing/tracer.h).
#pragma once
#include <memory>
#include <string>

#include "base/json.h"
#include "net/tracing/tracer.h"

namespace berth::node::agent {

/// One pod's, used by its thread alone. Without a tracer, and for a pod that ran before (an agent's restart), nothing is told.
class PodTrace {
 public:
  PodTrace(std::shared_ptr<net::tracing::Tracer> tracer, const json::Value& pod, const std::string& node_name);
  /// A pod that goes before it ran was a start that failed.
  ~PodTrace();
  PodTrace(const PodTrace&) = delete;
  PodTrace& operator=(const PodTrace&) = delete;

  /// One thing that is being done, until this goes.
  class Step {
   public:
    Step(net::tracing::Tracer* tracer, std::optional<net::tracing::Span> span) : tracer_(tracer), span_(std::move(span)) {}
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    void fail(const std::string& why);

   private:
    net::tracing::Tracer* const tracer_;
    std::optional<net::tracing::Span> span_;
  };
  /// `what` is the runtime's method; `key` and `value` say of which container or image, by OpenTelemetry's names.
  [[nodiscard]] Step step(std::string what, const char* key = nullptr, std::string value = {}) const;
  /// The pod's phase as it is told the API server; the first that is not Pending ends the span.
  void phase(std::string_view phase, std::string_view reason);

 private:
  const std::shared_ptr<net::tracing::Tracer> tracer_;
  std::optional<net::tracing::Span> span_;
};

}  // namespace berth::node::agent
