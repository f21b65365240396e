// Traces of requests as OpenTelemetry has them: spans are begun and ended anywhere, gathered, and sent to a collector by OTLP over gRPC.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace berth::net::tracing {

/// What goes from one process to the next in the header `traceparent` (W3C Trace Context, version 00).
struct SpanContext {
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};
  bool is_sampled = false;
  friend bool operator==(const SpanContext&, const SpanContext&) = default;
};
inline constexpr const char* kTraceparent = "traceparent";
/// nullopt: absent or malformed; a trace of its own is begun then, as the specification says.
std::optional<SpanContext> parse_traceparent(std::string_view header);
std::string format_traceparent(const SpanContext& context);

enum class SpanKind { kInternal = 1, kServer = 2, kClient = 3 };

/// One span, owned by whoever works on what it measures. Times are of the machine's clock.
struct Span {
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  SpanContext context;
  std::array<std::uint8_t, 8> parent{};  ///< All zero: the first of its trace.
  std::int64_t start_ns = 0, end_ns = 0;
  std::vector<std::pair<std::string, std::variant<std::string, std::int64_t>>> attributes;
  std::string error;                     ///< Not empty: what was measured failed.
  std::optional<SpanContext> caused_by;  ///< A span of another trace (OpenTelemetry's link).
};

struct TracerOptions {
  std::string service;                      ///< service.name: "berth-server", "berth-scheduler"
  std::string endpoint = "localhost:4317";  ///< Of the collector: host:port, without TLS.
  std::int64_t sampling_rate_per_million = 0;
  std::size_t max_waiting = 8192;  ///< Spans; more are dropped, and counted in the log.
  int batch_ms = 1000;             ///< How long a span waits for others.
};

/// Thread-safe. The destructor sends what waits, for two seconds at most.
class Tracer {
 public:
  /// kUnavailable when this program was built without gRPC. Nobody has to listen at the endpoint: what cannot be sent is dropped.
  static Result<std::shared_ptr<Tracer>> start(TracerOptions options);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// A span that begins now. Below a parent it is sampled as that is; without one, at the configured rate. What is not sampled has a
  /// context all the same, which tells the next process not to sample either.
  [[nodiscard]] Span begin(std::string name, SpanKind kind, const std::optional<SpanContext>& parent);
  /// The first span of an object's way through the cluster, in which processes have a part that never call each other (server, scheduler,
  /// node): its trace's id is the object's uid, its own the first half of that, so that each finds it without being told. Sampled by the
  /// uid at the configured rate: processes with one rate decide alike. nullopt: that is no uid.
  [[nodiscard]] std::optional<SpanContext> way_of(std::string_view uid) const;
  /// That span itself: who made the object tells it.
  [[nodiscard]] std::optional<Span> begin_way(std::string name, std::string_view uid) const;
  /// It ends now; of what is not sampled nothing is kept.
  void end(Span span);

 private:
  struct Impl;
  explicit Tracer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The span that this thread works for at the moment, for clients that it calls; null: none.
const SpanContext* current();
/// Makes `context` the current one as long as it lives.
class Scope {
 public:
  explicit Scope(const SpanContext& context);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  SpanContext context_;
  const SpanContext* before_;
};

/// opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest (opentelemetry-proto 1.x), as far as it is used.
std::string encode_otlp(std::string_view service, const std::vector<Span>& spans);

}  // namespace berth::net::tracing
