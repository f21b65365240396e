// The audit log's web service: batches, what is tried again, what is lost and counted.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

#include "apiserver/audit/log.h"
#include "net/server.h"

namespace berth::apiserver::audit {
namespace {

/// Notes what is posted; the first answers are as given, the others 200.
class Collector : public net::Handler {
 public:
  explicit Collector(std::deque<int> answers = {}) : answers_(std::move(answers)) {
    net::ServerConfig config;
    config.max_body_bytes = std::size_t{64} << 20;  // What is longer is refused before it is seen here; batches are longer than requests.
    auto server = net::Server::start(config, *this);
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  ~Collector() override { server_.reset(); }
  /// From now on nothing is answered, until it is let go on.
  void hold() { is_held_ = true; }
  void go_on() {
    is_held_ = false;
    is_held_.notify_all();
  }
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    net::HttpResponse response;
    {
      const std::lock_guard lock(mutex_);
      response.status = answers_.empty() ? 200 : answers_.front();
      if (!answers_.empty()) answers_.pop_front();
      posted_.push_back(std::move(request));
      arrived_.notify_all();
    }
    is_held_.wait(true);
    writer->respond(std::move(response));
  }
  std::vector<net::HttpRequest> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(arrived_.wait_for(lock, std::chrono::seconds(20), [&] { return posted_.size() >= count; }));
    return posted_;
  }
  std::vector<net::HttpRequest> posted() {
    const std::lock_guard lock(mutex_);
    return posted_;
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/audit", server_->port()); }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::atomic<bool> is_held_{false};
  std::deque<int> answers_;
  std::vector<net::HttpRequest> posted_;
  std::unique_ptr<net::Server> server_;
};

class AuditWebhook : public ::testing::Test {
 protected:
  std::unique_ptr<Log> start(const Collector& collector, std::size_t batch, std::size_t buffer = 1000,
                             std::optional<std::size_t> buffer_bytes = {}) {
    LogOptions options;
    if (buffer_bytes) options.webhook.buffer_bytes = *buffer_bytes;
    auto policy = parse_policy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n", "p.yaml");
    EXPECT_TRUE(policy) << policy.error().message;
    options.policy = std::make_shared<const Policy>(std::move(*policy));
    options.webhook.http.url = collector.url();
    options.webhook.bearer_token = "t0ken";
    options.webhook.batch_events = batch;
    options.webhook.buffer_events = buffer;
    options.webhook.max_wait = std::chrono::hours(1);
    options.webhook.first_pause = std::chrono::milliseconds(1);
    auto log = Log::start(std::move(options), metrics_);
    EXPECT_TRUE(log) << log.error().message;
    return std::move(*log);
  }
  static void submit(Log& log, int count, std::size_t bytes = 0) {
    for (int i = 0; i < count; ++i) {
      Event event;
      event.fields = {{"kind", "Event"}, {"auditID", std::to_string(i)}};
      if (bytes > 0) event.fields["requestObject"] = std::string(bytes, 'x');
      log.submit(std::move(event));
    }
  }
  double lost() {
    return metrics_
        .counter("apiserver_audit_error_total",
                 "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the "
                 "error.",
                 {{"plugin", "webhook"}})
        .value();
  }
  static std::vector<std::string> ids(const net::HttpRequest& request) {
    const auto list = json::parse(request.body);
    std::vector<std::string> out;
    if (!list) return out;
    for (const auto& item : json::get_array(*list, {"items"})) out.emplace_back(json::get_string(item, {"auditID"}));
    return out;
  }
  metrics::Registry metrics_;
};

TEST_F(AuditWebhook, EventsArriveInBatchesAndInOrder) {
  Collector collector;
  auto log = start(collector, 3);
  submit(*log, 3);
  const auto first = collector.wait_for(1)[0];
  EXPECT_EQ(first.path, "/audit");
  EXPECT_EQ(first.headers.get("Authorization"), "Bearer t0ken");
  EXPECT_EQ(first.headers.get("Content-Type"), "application/json");
  EXPECT_TRUE(first.body.starts_with(R"({"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[)")) << first.body;
  EXPECT_EQ(ids(first), (std::vector<std::string>{"0", "1", "2"}));
  // What is less than a batch goes out when the log ends.
  submit(*log, 2);
  log.reset();
  const auto all = collector.posted();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(ids(all[1]), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(lost(), 0);
}

TEST_F(AuditWebhook, WhatMayPassIsTriedAgain) {
  Collector collector({500, 429, 503});
  auto log = start(collector, 1);
  submit(*log, 1);
  const auto tried = collector.wait_for(4);
  for (const auto& one : tried) EXPECT_EQ(ids(one), std::vector<std::string>{"0"});
  log.reset();
  EXPECT_EQ(collector.posted().size(), 4U);
  EXPECT_EQ(lost(), 0);
}

TEST_F(AuditWebhook, WhatIsRefusedIsLostAndCounted) {
  Collector collector({403, 500, 500, 500, 500});
  auto log = start(collector, 2);
  submit(*log, 2);  // Refused: not tried again.
  collector.wait_for(1);
  submit(*log, 2);  // Four times.
  collector.wait_for(5);
  log.reset();
  EXPECT_EQ(collector.posted().size(), 5U);
  EXPECT_EQ(lost(), 4);
}

TEST_F(AuditWebhook, BytesEndABatchAsEventsDo) {
  Collector collector;
  auto log = start(collector, 1000);
  submit(*log, 9, 1'000'000);  // 8 MiB and some.
  const auto first = ids(collector.wait_for(1)[0]);
  EXPECT_EQ(first.size(), 9U);
  submit(*log, 1, 20'000'000);
  EXPECT_EQ(ids(collector.wait_for(2)[1]).size(), 1U) << "one event is a batch, however long";
  log.reset();
  EXPECT_EQ(lost(), 0);
}

/// While the service hangs no more than the bound waits for it; afterwards there is room again.
TEST_F(AuditWebhook, WhatWaitsIsBoundedInBytes) {
  constexpr std::size_t kMegabyte = 1'000'000;
  Collector collector;
  auto log = start(collector, 1, 1000, 10 * kMegabyte);
  collector.hold();
  submit(*log, 1);
  collector.wait_for(1);  // The batch under way waits for nobody's room.
  submit(*log, 30, kMegabyte);
  log->flush();
  EXPECT_EQ(lost(), 21) << "nine fit below ten megabytes, with what stands around them";
  collector.go_on();
  EXPECT_EQ(collector.wait_for(10).size(), 10U);
  submit(*log, 5, kMegabyte);
  EXPECT_EQ(collector.wait_for(15).size(), 15U);
  log.reset();
  EXPECT_EQ(lost(), 21);
}

/// What a server has unless told otherwise.
TEST(AuditWebhookOptions, SixtyFourMebibytesWait) { EXPECT_EQ(WebhookOptions().buffer_bytes, std::size_t{64} << 20); }

TEST_F(AuditWebhook, AServiceThatIsNotThereHoldsNothingUp) {
  auto gone = std::make_unique<Collector>();
  auto log = start(*gone, 5, 10);
  gone.reset();
  submit(*log, 200);
  log->flush();  // The log's own thread is through with them, whatever the service does.
  log.reset();
  EXPECT_EQ(lost(), 200);
}

}  // namespace
}  // namespace berth::apiserver::audit
