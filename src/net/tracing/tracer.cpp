#include "net/tracing/tracer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "base/hex.h"
#include "base/log.h"
#include "base/mutex.h"
#include "net/grpc.h"

namespace berth::net::tracing {
namespace {

constexpr const char* kExport = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
constexpr std::size_t kMostInBatch = 512;
constexpr int kExportTimeoutMs = 10'000, kLastExportTimeoutMs = 2'000;
constexpr auto kComplaintEvery = std::chrono::minutes(1);

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// Lower-case hexadecimal digits, not all of them zero.
template <std::size_t Size>
bool read_id(std::string_view text, std::array<std::uint8_t, Size>& id) {
  bool is_zero = true;
  for (std::size_t i = 0; i < Size; ++i) {
    const int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    id[i] = static_cast<std::uint8_t>(high << 4 | low);
    is_zero = is_zero && id[i] == 0;
  }
  return !is_zero;
}

template <std::size_t Size>
std::string hex_of(const std::array<std::uint8_t, Size>& id) {
  return hex(id);
}

std::mt19937_64& random_source() {
  static thread_local std::mt19937_64 source{std::random_device()()};
  return source;
}

template <std::size_t Size>
void fill_id(std::array<std::uint8_t, Size>& id) {
  for (std::size_t i = 0; i < Size; i += 8) {
    const std::uint64_t bits = random_source()() | 1;  // Never all zero.
    for (std::size_t k = 0; k < 8; ++k) id[i + k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
}

thread_local const SpanContext* the_current = nullptr;

}  // namespace

std::optional<SpanContext> parse_traceparent(std::string_view header) {
  // 00-TRACE-SPAN-FLAGS; later versions may say more behind.
  constexpr std::size_t kLength = 55;
  if (header.size() < kLength || header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  const int high = hex_value(header[0]), low = hex_value(header[1]);
  if (high < 0 || low < 0 || (high == 15 && low == 15)) return std::nullopt;
  const bool is_first_version = high == 0 && low == 0;
  if (header.size() > kLength && (is_first_version || header[kLength] != '-')) return std::nullopt;
  SpanContext out;
  if (!read_id(header.substr(3, 32), out.trace_id) || !read_id(header.substr(36, 16), out.span_id)) return std::nullopt;
  if (hex_value(header[53]) < 0 || hex_value(header[54]) < 0) return std::nullopt;
  out.is_sampled = (hex_value(header[54]) & 1) != 0;
  return out;
}

std::string format_traceparent(const SpanContext& context) {
  return fmt::format("00-{}-{}-{}", hex_of(context.trace_id), hex_of(context.span_id), context.is_sampled ? "01" : "00");
}

const SpanContext* current() { return the_current; }
Scope::Scope(const SpanContext& context) : context_(context), before_(the_current) { the_current = &context_; }
Scope::~Scope() { the_current = before_; }

struct Tracer::Impl {
  TracerOptions options;
  std::unique_ptr<GrpcCalls> calls;
  Mutex mutex;
  CondVar wake;
  std::vector<Span> waiting BERTH_GUARDED_BY(mutex);
  std::uint64_t dropped BERTH_GUARDED_BY(mutex) = 0;
  bool is_stopping BERTH_GUARDED_BY(mutex) = false;
  std::atomic<bool> gives_up{false};
  std::chrono::steady_clock::time_point complained{};
  std::thread thread;

  void run() {
    for (;;) {
      std::vector<Span> batch;
      bool is_last = false;
      {
        MutexLock lock(mutex);
        wake.wait_for(mutex, std::chrono::milliseconds(options.batch_ms),
                      [&]() BERTH_REQUIRES(mutex) { return is_stopping || waiting.size() >= kMostInBatch; });
        const auto count = std::min(waiting.size(), kMostInBatch);
        batch.assign(std::make_move_iterator(waiting.begin()),
                     std::make_move_iterator(waiting.begin() + static_cast<std::ptrdiff_t>(count)));
        waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
        is_last = is_stopping && waiting.empty();
      }
      if (!batch.empty()) send(batch);
      if (is_last || gives_up) return;
    }
  }

  void send(const std::vector<Span>& batch) {
    const int timeout = gives_up ? kLastExportTimeoutMs : kExportTimeoutMs;
    const auto answer = calls->call(kExport, encode_otlp(options.service, batch), timeout, &gives_up);
    std::uint64_t lost = 0;
    {
      const MutexLock lock(mutex);
      lost = std::exchange(dropped, 0);
      if (!answer) lost += batch.size();
    }
    const auto now = std::chrono::steady_clock::now();
    if (lost == 0 || (complained.time_since_epoch().count() != 0 && now - complained < kComplaintEvery)) return;
    complained = now;
    log::warning(
        "tracing", "{} spans are lost: {}", lost,
        answer ? std::string("more come than the collector takes") : fmt::format("{}: {}", options.endpoint, answer.error().message));
  }
};

Result<std::shared_ptr<Tracer>> Tracer::start(TracerOptions options) {
  auto calls = GrpcCalls::open({.target = options.endpoint, .ca_pem = {}, .certificate_pem = {}, .private_key_pem = {}});
  if (!calls) return std::unexpected(calls.error());
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->calls = std::move(*calls);
  auto* const running = impl.get();
  impl->thread = std::thread([running] { running->run(); });
  return std::shared_ptr<Tracer>(new Tracer(std::move(impl)));
}

Tracer::Tracer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Tracer::~Tracer() {
  std::jthread watchdog([this](const std::stop_token& done) {
    std::mutex mutex;
    std::condition_variable_any patience;
    std::unique_lock lock(mutex);
    if (!patience.wait_for(lock, done, std::chrono::milliseconds(kLastExportTimeoutMs), [&] { return done.stop_requested(); }))
      impl_->gives_up = !done.stop_requested();
  });
  {
    const MutexLock lock(impl_->mutex);
    impl_->is_stopping = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

Span Tracer::begin(std::string name, SpanKind kind, const std::optional<SpanContext>& parent) {
  Span span;
  span.name = std::move(name);
  span.kind = kind;
  if (parent) {
    span.context.trace_id = parent->trace_id;
    span.context.is_sampled = parent->is_sampled;
    span.parent = parent->span_id;
  } else {
    fill_id(span.context.trace_id);
    constexpr std::uint64_t kMillion = 1'000'000;
    span.context.is_sampled = static_cast<std::int64_t>(random_source()() % kMillion) < impl_->options.sampling_rate_per_million;
  }
  fill_id(span.context.span_id);
  span.start_ns = now_ns();
  return span;
}

std::optional<SpanContext> Tracer::way_of(std::string_view uid) const {
  std::string digits(uid);
  std::erase(digits, '-');
  SpanContext out;
  if (digits.size() != 2 * out.trace_id.size() || !read_id(digits, out.trace_id)) return std::nullopt;
  std::copy_n(out.trace_id.begin(), out.span_id.size(), out.span_id.begin());
  if (out.span_id == decltype(out.span_id){}) return std::nullopt;
  std::uint64_t share = 0;  // Of the last eight bytes, as OpenTelemetry's sampler by trace id takes it.
  for (std::size_t i = 8; i < out.trace_id.size(); ++i) share = share << 8 | out.trace_id[i];
  constexpr std::uint64_t kMillion = 1'000'000;
  out.is_sampled = static_cast<std::int64_t>(share % kMillion) < impl_->options.sampling_rate_per_million;
  return out;
}

std::optional<Span> Tracer::begin_way(std::string name, std::string_view uid) const {
  const auto way = way_of(uid);
  if (!way) return std::nullopt;
  Span span;
  span.name = std::move(name);
  span.context = *way;
  span.start_ns = now_ns();
  return span;
}

void Tracer::end(Span span) {
  if (!span.context.is_sampled) return;
  span.end_ns = now_ns();
  bool is_full = false;
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->waiting.size() >= impl_->options.max_waiting) {
      ++impl_->dropped;
      return;
    }
    impl_->waiting.push_back(std::move(span));
    is_full = impl_->waiting.size() == kMostInBatch;
  }
  if (is_full) impl_->wake.notify_one();
}

}  // namespace berth::net::tracing
