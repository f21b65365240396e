// Traces: the header that joins processes, and what a collector gets over OTLP.
#include <gtest/gtest.h>

#include "net/tracing/handler.h"
#include "net/tracing/tracer.h"
#include "tests/support/span_collector.h"

namespace berth::net::tracing::testing {
namespace {

constexpr std::string_view kHeader = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Traceparent, IsReadAndWrittenAsItCame) {
  const auto context = parse_traceparent(kHeader);
  ASSERT_TRUE(context);
  EXPECT_TRUE(context->is_sampled);
  EXPECT_EQ(format_traceparent(*context), kHeader);
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")->is_sampled);
}

TEST(Traceparent, OfALaterVersionMaySayMore) {
  EXPECT_TRUE(parse_traceparent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
}

TEST(Traceparent, ThatIsMalformedIsNone) {
  for (const char* wrong :
       {"", "00", "zz-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736+00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x"})
    EXPECT_FALSE(parse_traceparent(wrong)) << wrong;
}

class Traces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!collector_.runs()) GTEST_SKIP() << "built without gRPC";
  }
  std::shared_ptr<Tracer> tracer(std::int64_t per_million) {
    return *Tracer::start({.service = "under-test", .endpoint = collector_.endpoint(), .sampling_rate_per_million = per_million});
  }
  berth::testing::SpanCollector collector_;
};

std::string_view id_bytes(const SpanContext& context) {
  return {reinterpret_cast<const char*>(context.trace_id.data()), context.trace_id.size()};
}

TEST_F(Traces, ReachTheCollectorBeforeTheTracerIsGone) {
  auto tracing = tracer(1'000'000);
  auto span = tracing->begin("bind a pod", SpanKind::kClient, std::nullopt);
  span.attributes = {{"k8s.pod.name", "web-1"}, {"http.response.status_code", std::int64_t{201}}};
  span.error = "refused, for the test";
  const auto context = span.context;
  tracing->end(std::move(span));
  tracing.reset();
  const auto taken = collector_.taken();
  for (const std::string_view part : {std::string_view("under-test"), std::string_view("bind a pod"), std::string_view("k8s.pod.name"),
                                      std::string_view("web-1"), std::string_view("refused, for the test"), id_bytes(context)})
    EXPECT_NE(taken.find(part), std::string::npos) << part;
  EXPECT_EQ(collector_.methods().count("/opentelemetry.proto.collector.trace.v1.TraceService/Export"), 1U);
}

TEST_F(Traces, AreNotSentOfWhatIsNotSampled) {
  auto tracing = tracer(0);
  auto span = tracing->begin("never seen", SpanKind::kInternal, std::nullopt);
  EXPECT_FALSE(span.context.is_sampled);
  tracing->end(std::move(span));
  tracing.reset();
  EXPECT_TRUE(collector_.methods().empty());
}

TEST_F(Traces, FollowTheCallersChoice) {
  auto tracing = tracer(0);
  const auto caller = parse_traceparent(kHeader);
  auto span = tracing->begin("asked for", SpanKind::kServer, caller);
  EXPECT_TRUE(span.context.is_sampled);
  EXPECT_EQ(span.context.trace_id, caller->trace_id);
  EXPECT_EQ(span.parent, caller->span_id);
  EXPECT_NE(span.context.span_id, caller->span_id);
  tracing->end(std::move(span));
  tracing.reset();
  EXPECT_NE(collector_.taken().find("asked for"), std::string::npos);
}

constexpr std::string_view kUid = "f47ac10b-58cc-4372-a567-0e02b2c3d479";

TEST_F(Traces, OfAnObjectsWayAreFoundByItsUidAlone) {
  const auto one = tracer(1'000'000), other = tracer(1'000'000);
  const auto way = one->way_of(kUid);
  ASSERT_TRUE(way);
  EXPECT_EQ(format_traceparent(*way), "00-f47ac10b58cc4372a5670e02b2c3d479-f47ac10b58cc4372-01");
  EXPECT_EQ(*way, *other->way_of(kUid)) << "another process finds the same";
  auto first = one->begin_way("Pod default/web", kUid);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->context, *way);
  EXPECT_EQ(first->parent, decltype(first->parent){}) << "nothing stands above it";
  EXPECT_EQ(other->begin("Start pod", SpanKind::kInternal, way).parent, first->context.span_id);
  for (const char* none : {"", "no-uid", "00000000-0000-0000-0000-000000000000", "f47ac10b-58cc-4372-a567-0e02b2c3d4"})
    EXPECT_FALSE(one->way_of(none)) << none;
}

TEST_F(Traces, OfWaysAreSampledAlikeByAllWithOneRate) {
  const auto none = tracer(0), half = tracer(500'000), other_half = tracer(500'000);
  EXPECT_FALSE(none->way_of(kUid)->is_sampled);
  int sampled = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto uid = fmt::format("f47ac10b-58cc-4372-a567-{:012x}", i * 7'654'321'987LL);
    EXPECT_EQ(half->way_of(uid)->is_sampled, other_half->way_of(uid)->is_sampled);
    sampled += half->way_of(uid)->is_sampled ? 1 : 0;
  }
  EXPECT_GT(sampled, 400);
  EXPECT_LT(sampled, 600);
}

TEST_F(Traces, TellWhatOfAnotherTraceCausedASpan) {
  auto tracing = tracer(1'000'000);
  auto span = *tracing->begin_way("Pod default/web", kUid);
  span.caused_by = parse_traceparent(kHeader);
  tracing->end(std::move(span));
  tracing.reset();
  EXPECT_NE(collector_.taken().find(id_bytes(*parse_traceparent(kHeader))), std::string::npos);
}

/// Answers 503 and notes what header it was given.
class Inner final : public Handler {
 public:
  void handle(HttpRequest request, std::shared_ptr<ResponseWriter> writer) override {
    given = std::string(request.headers.get(kTraceparent));
    writer->respond({503, {}, "busy"});
  }
  std::string given;
};

class Answer final : public ResponseWriter {
 public:
  void respond(HttpResponse response) override { status = response.status; }
  void respond_shared(int, Headers, std::vector<Bytes>) override {}
  void start_stream(int, Headers) override {}
  bool write(Bytes) override { return true; }
  [[nodiscard]] std::size_t queued_bytes() const override { return 0; }
  void on_drain(std::function<void()>) override {}
  void finish() override {}
  void on_close(std::function<void()>) override {}
  std::unique_ptr<RawStream> upgrade(Headers) override { return nullptr; }
  int status = 0;
};

TEST_F(Traces, OfARequestHandTheServersOwnSpanOn) {
  auto tracing = tracer(0);
  Inner inner;
  const auto answer = std::make_shared<Answer>();
  {
    TracedHandler traced(inner, tracing);
    HttpRequest request;
    request.method = "POST";
    request.path = "/api/v1/namespaces/shop/pods";
    request.headers.add("Traceparent", std::string(kHeader));
    traced.handle(std::move(request), answer);
  }
  EXPECT_EQ(answer->status, 503);
  const auto given = parse_traceparent(inner.given), caller = parse_traceparent(kHeader);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->trace_id, caller->trace_id);
  EXPECT_NE(given->span_id, caller->span_id);
  tracing.reset();
  const auto taken = collector_.taken();
  for (const char* part : {"POST /api/v1/namespaces/shop/pods", "503 Service Unavailable", "http.response.status_code"})
    EXPECT_NE(taken.find(part), std::string::npos) << part;
}

TEST_F(Traces, AreLostQuietlyWhereNobodyListens) {
  const std::string nobody = "127.0.0.1:1";
  auto tracing = *Tracer::start({.service = "under-test", .endpoint = nobody, .sampling_rate_per_million = 1'000'000});
  tracing->end(tracing->begin("lost", SpanKind::kInternal, std::nullopt));
  tracing.reset();
  EXPECT_TRUE(collector_.methods().empty());
}

TEST(TraceScope, IsTheThreadsOwnAndNests) {
  EXPECT_EQ(current(), nullptr);
  const auto outer = *parse_traceparent(kHeader);
  {
    const Scope scope(outer);
    ASSERT_NE(current(), nullptr);
    EXPECT_EQ(*current(), outer);
    SpanContext other = outer;
    other.is_sampled = false;
    {
      const Scope nested(other);
      EXPECT_EQ(*current(), other);
    }
    EXPECT_EQ(*current(), outer);
  }
  EXPECT_EQ(current(), nullptr);
}

}  // namespace
}  // namespace berth::net::tracing::testing
