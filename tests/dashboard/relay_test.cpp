#include "dashboard/relay.h"

#include <gtest/gtest.h>

#include "tests/apiserver/server_fixture.h"
#include "tests/net/net_fixture.h"

namespace berth::dashboard {
namespace {

net::HttpRequest asked(std::string method, std::string path) {
  net::HttpRequest out;
  out.method = std::move(method);
  out.path = std::move(path);
  return out;
}

TEST(RelayRules, OnlyTheApiIsReadWithoutAllowChanges) {
  for (const char* path :
       {"/api/v1/pods", "/apis/apps/v1/deployments", "/version", "/api/v1/namespaces/a/pods/p/log", "/api/v1/namespaces/exec/pods/proxy"})
    EXPECT_EQ(relay_refusal(asked("GET", path), false), "") << path;
  for (const char* path : {"/", "/metrics", "/logs/kube-apiserver.log", "/debug/pprof/heap", "/apix/v1"})
    EXPECT_NE(relay_refusal(asked("GET", path), true), "") << path;
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_NE(relay_refusal(asked(method, "/api/v1/nodes/n"), false).find("--allow-changes"), std::string::npos) << method;
    EXPECT_EQ(relay_refusal(asked(method, "/api/v1/nodes/n"), true), "") << method;
  }
  for (const char* method : {"TRACE", "CONNECT", "OPTIONS", "get"})
    EXPECT_NE(relay_refusal(asked(method, "/api/v1/nodes"), true), "") << method;
}

TEST(RelayRules, NothingLeadsIntoContainersNodesAndServices) {
  for (const char* path :
       {"/api/v1/namespaces/a/pods/p/exec", "/api/v1/namespaces/a/pods/p/attach", "/api/v1/namespaces/a/pods/p/portforward",
        "/api/v1/namespaces/a/pods/p/proxy", "/api/v1/namespaces/a/pods/p/proxy/evil.html", "/api/v1/namespaces/a/services/s/proxy/",
        "/api/v1/nodes/n/proxy/run", "/api/v1/proxy/nodes/n", "//api//v1//namespaces//a//pods//p//exec"})
    for (const bool allows : {false, true}) EXPECT_NE(relay_refusal(asked("GET", path), allows), "") << path;
  auto upgrade = asked("GET", "/api/v1/namespaces/a/pods/p/log");
  upgrade.headers.add("Connection", "Upgrade");
  upgrade.headers.add("Upgrade", "websocket");
  EXPECT_NE(relay_refusal(upgrade, true), "");
}

TEST(RelayRules, NothingOfTheBrowserGoesOnButWhatIsAskedFor) {
  auto from = asked("PATCH", "/api/v1/nodes/n");
  from.query = "fieldManager=x";
  from.body = "{}";
  for (const char* name : {"Cookie", "Authorization", "Impersonate-User", "Impersonate-Group", "Origin", "Referer", "X-Remote-User",
                           "X-Forwarded-For", "Host"})
    from.headers.add(name, "secret");
  from.headers.add("Content-Type", "application/merge-patch+json");
  const auto on = relayed_request(from);
  EXPECT_EQ(on.path, from.path);
  EXPECT_EQ(on.query, from.query);
  EXPECT_EQ(on.body, "{}");
  EXPECT_EQ(on.headers.get("Content-Type"), "application/merge-patch+json");
  for (const auto& [name, value] : on.headers.fields()) EXPECT_NE(value, "secret") << name;
}

class RelayTest : public ::testing::Test {
 protected:
  std::function<void(net::HttpRequest, net::test::Writer)> cluster;
  net::test::FunctionHandler handler{
      [this](net::HttpRequest request, net::test::Writer writer) { cluster(std::move(request), std::move(writer)); }};
  std::unique_ptr<net::Server> server = *net::Server::start({}, handler);
  ThreadLoop loop{"relay-test"};
  std::shared_ptr<client::Transport> transport =
      *client::make_https_transport({.url = "http://127.0.0.1:" + std::to_string(server->port())}, std::string("user-token"));
  Relay relay{transport, loop, false};

  ~RelayTest() override { transport.reset(); }
};

/// Tells when it was answered; takes nothing while it stalls.
class Browser final : public net::ResponseWriter {
 public:
  void respond(net::HttpResponse response) override {
    std::lock_guard lock(mutex);
    status = response.status;
    headers = response.headers;
    body = response.body;
    is_finished = true;
    answered.notify();
  }
  void respond_shared(int, net::Headers, std::vector<Bytes>) override {}
  void start_stream(int code, net::Headers fields) override {
    std::lock_guard lock(mutex);
    status = code;
    headers = std::move(fields);
  }
  bool write(Bytes chunk) override {
    std::lock_guard lock(mutex);
    body += *chunk;
    queued += stalls ? chunk->size() : 0;
    return true;
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return queued; }
  void on_drain(std::function<void()> more) override {
    {
      std::lock_guard lock(mutex);
      drain = std::move(more);
    }
    held.notify();
  }
  void finish() override {
    is_finished = true;
    answered.notify();
  }
  void on_close(std::function<void()> callback) override { closed = std::move(callback); }
  std::unique_ptr<net::RawStream> upgrade(net::Headers) override { return nullptr; }

  std::mutex mutex;
  std::atomic<bool> stalls{false}, is_finished{false};
  std::atomic<std::size_t> queued{0};
  int status = 0;
  net::Headers headers;
  std::string body;
  std::function<void()> drain, closed;
  net::test::Signal answered, held;
};

TEST_F(RelayTest, AnswersAreDataAndTheUsersCredentialsAreTheKubeconfigs) {
  std::string authorization;
  cluster = [&](const net::HttpRequest& request, const net::test::Writer& writer) {
    authorization = request.headers.get("Authorization");
    net::HttpResponse response;
    response.headers.add("Content-Type", "text/html");
    response.headers.add("Set-Cookie", "berth-dashboard=stolen");
    response.headers.add("Access-Control-Allow-Origin", "*");
    response.body = "<script>alert(1)</script>";
    writer->respond(std::move(response));
  };
  auto browser = std::make_shared<Browser>();
  auto request = asked("GET", "/api/v1/pods");
  request.headers.add("Authorization", "Bearer someone-elses");
  relay.handle(request, browser);
  ASSERT_TRUE(browser->answered.wait_for_count(1));
  EXPECT_EQ(authorization, "Bearer user-token");
  EXPECT_EQ(browser->headers.get("Content-Type"), "application/octet-stream");
  EXPECT_EQ(browser->headers.get("Set-Cookie"), "");
  EXPECT_EQ(browser->headers.get("Access-Control-Allow-Origin"), "");
  EXPECT_NE(browser->headers.get("Content-Security-Policy"), "");
  EXPECT_EQ(browser->body, "<script>alert(1)</script>");
}

TEST_F(RelayTest, SlowBrowserMakesTheClusterWaitAndGetsEverythingInTheEnd) {
  constexpr std::size_t kChunk = 256 * 1024, kChunks = 64;  // 16 MB
  std::atomic<std::size_t> made{0};
  net::test::Signal is_full;
  struct Endless : std::enable_shared_from_this<Endless> {
    net::test::Writer writer;
    std::atomic<std::size_t>* made = nullptr;
    net::test::Signal* is_full = nullptr;
    void pump() {
      while (*made < kChunks) {
        if (writer->queued_bytes() > 4 * kChunk) {
          writer->on_drain([self = shared_from_this()] { self->pump(); });
          is_full->notify();
          return;
        }
        writer->write(make_bytes(std::string(kChunk, 'x')));
        ++*made;
      }
      writer->finish();
    }
  };
  cluster = [&](const net::HttpRequest&, net::test::Writer writer) {
    auto endless = std::make_shared<Endless>();
    endless->writer = std::move(writer);
    endless->made = &made;
    endless->is_full = &is_full;
    endless->writer->start_stream(200, {});
    endless->pump();
  };
  auto browser = std::make_shared<Browser>();
  browser->stalls = true;
  relay.handle(asked("GET", "/api/v1/pods"), browser);
  ASSERT_TRUE(browser->held.wait_for_count(1));
  ASSERT_TRUE(is_full.wait_for_count(1));
  EXPECT_LT(browser->queued.load(), 2U << 20) << "what is held here";
  EXPECT_FALSE(browser->is_finished);
  browser->stalls = false;
  browser->queued = 0;
  std::function<void()> drain;
  {
    std::lock_guard lock(browser->mutex);
    drain = std::exchange(browser->drain, nullptr);
  }
  drain();
  ASSERT_TRUE(browser->answered.wait_for_count(1));
  EXPECT_EQ(browser->body.size(), kChunk * kChunks);
}

TEST_F(RelayTest, ClusterThatIsGoneIsSaid) {
  server.reset();
  auto browser = std::make_shared<Browser>();
  relay.handle(asked("GET", "/api/v1/pods"), browser);
  ASSERT_TRUE(browser->answered.wait_for_count(1));
  EXPECT_EQ(browser->status, 502);
  EXPECT_NE(browser->body.find("the cluster does not answer"), std::string::npos) << browser->body;
}

}  // namespace
}  // namespace berth::dashboard
