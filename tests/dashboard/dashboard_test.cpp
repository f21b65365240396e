// The whole of it but the browser: a cluster that is a function, the dashboard on a port, a client with cookies.
#include "dashboard/dashboard.h"

#include <gtest/gtest.h>

#include "tests/net/net_fixture.h"

namespace berth::dashboard {
namespace {

class DashboardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_page()) GTEST_SKIP() << kNoPage;
  }
  ~DashboardTest() override { dashboard_.reset(); }

  /// Starts it before `cluster`, opens a session.
  void start(Options options = {}) {
    server_ = *net::Server::start({}, handler_);
    options.transport = *client::make_https_transport({.url = "http://127.0.0.1:" + std::to_string(server_->port())}, std::string("t"));
    start_with(std::move(options));
  }
  void start_with(Options options) {
    auto started = Dashboard::start(std::move(options));
    ASSERT_TRUE(started) << started.error().message;
    dashboard_ = std::move(*started);
    const std::string url = dashboard_->url();
    const auto end = url.find("/?");
    client_ = *net::HttpClient::create({.url = url.substr(0, end)});
    auto opening = net::test::make_request("GET", "/");
    opening.query = url.substr(end + 2);
    const auto opened = ask(opening);
    ASSERT_EQ(opened.status, 200);
    const std::string cookie(opened.headers.get("Set-Cookie"));
    cookie_ = cookie.substr(0, cookie.find(';'));
  }
  net::HttpResponse ask(net::HttpRequest request) {
    if (!cookie_.empty()) request.headers.add("Cookie", cookie_);
    std::promise<net::HttpResponse> answer;
    client_->send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }
  net::HttpResponse ask(std::string method, std::string path, std::string body = {}, std::string query = {}) {
    auto request = net::test::make_request(std::move(method), std::move(path), std::move(body));
    request.query = std::move(query);
    return ask(std::move(request));
  }

  std::unique_ptr<net::StreamHandle> open_stream(net::HttpRequest request, std::function<void(std::string_view)> on_data) {
    request.headers.add("Cookie", cookie_);
    return client_->stream(std::move(request), {.on_header = {}, .on_data = std::move(on_data), .on_end = {}});
  }

  std::function<void(net::HttpRequest, net::test::Writer)> cluster = [](const net::HttpRequest&, const net::test::Writer& writer) {
    writer->respond({.status = 404, .headers = {}, .body = "{}"});
  };

 private:
  net::test::FunctionHandler handler_{
      [this](net::HttpRequest request, net::test::Writer writer) { cluster(std::move(request), std::move(writer)); }};
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<Dashboard> dashboard_;
  std::unique_ptr<net::HttpClient> client_;
  std::string cookie_;
};

TEST_F(DashboardTest, ServesThePageUnderAStrictPolicy) {
  start();
  for (const auto& [path, type] :
       {std::pair("/", "text/html"), std::pair("/app.js", "text/javascript"), std::pair("/style.css", "text/css")}) {
    const auto answer = ask("GET", path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_TRUE(answer.headers.get("Content-Type").starts_with(type)) << path;
    EXPECT_NE(answer.headers.get("Content-Security-Policy").find("default-src 'none'"), std::string::npos);
    EXPECT_LT(answer.body.size(), 500'000U);
    auto again = net::test::make_request("GET", path);
    again.headers.add("If-None-Match", std::string(answer.headers.get("ETag")));
    EXPECT_EQ(ask(again).status, 304);
  }
  EXPECT_EQ(ask("POST", "/app.js").status, 405);
}

TEST_F(DashboardTest, QuestionsAreAnsweredAndTheirErrorsAreWords) {
  Options options;
  options.answers.what_if = [](const json::Value& question) -> Answer {
    if (json::find(question, "each") != nullptr) return std::unexpected(Failure(model::forbidden("", "pods", "", "not yours")));
    if (json::find(question, "changes") == nullptr) return invalid("no changes");
    return json::Value(json::Object{{"asked", question}});
  };
  options.answers.explain = [](const std::string& ns, const std::string& pod) -> Answer {
    return fail(ErrorCode::kNotFound, ns + "/" + pod + " is not there");
  };
  start(std::move(options));
  EXPECT_EQ(ask("POST", "/berth/what-if", R"({"changes":[]})").body, R"({"asked":{"changes":[]}})");
  EXPECT_EQ(ask("POST", "/berth/what-if", "{}").status, 422);
  EXPECT_EQ(ask("POST", "/berth/what-if", "{").status, 400);
  const auto refused = ask("POST", "/berth/what-if", R"({"each":"node"})");
  EXPECT_EQ(refused.status, 403) << "the cluster's refusal is passed on";
  EXPECT_EQ(json::get_string(*json::parse(refused.body), {"message"}), model::forbidden("", "pods", "", "not yours").message);
  EXPECT_EQ(ask("GET", "/berth/what-if").status, 404);
  const auto missing = ask("GET", "/berth/explain", "", "namespace=a&pod=b");
  EXPECT_EQ(missing.status, 404);
  EXPECT_NE(missing.body.find("a/b is not there"), std::string::npos);
  EXPECT_EQ(ask("GET", "/berth/explain", "", "pod=b").status, 400);
  EXPECT_EQ(ask("GET", "/berth/metrics").status, 404) << "nobody gave them";
}

TEST_F(DashboardTest, RecordingIsReadWithoutACluster) {
  start_with({});
  EXPECT_EQ(ask("GET", "/berth/live").status, 404);
  const auto rows = ask("POST", "/berth/recording",
                        "{\"recording\":\"berth/v1\",\"start\":\"1970-01-01T00:00:00Z\"}\n" + std::string(100'000, ' ') +
                            "\n{\"at\":1,\"type\":\"ADDED\",\"object\":{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}}\n");
  EXPECT_EQ(rows.status, 200);
  EXPECT_NE(rows.body.find("{\"kind\":\"node\",\"name\":\"n\",\"t\":1}\n"), std::string::npos) << rows.body;
  EXPECT_EQ(ask("POST", "/berth/recording", "hello").status, 422);
  EXPECT_EQ(ask("POST", "/berth/recording", "").status, 422);
}

/// A cluster with one node, whose pods nobody may list.
void answer_small(const net::HttpRequest& request, const net::test::Writer& writer, std::vector<net::test::Writer>& watches) {
  net::HttpResponse response;
  response.headers.add("Content-Type", "application/json");
  if (request.path == "/api/v1/pods") {
    response.status = 403;
    response.body = R"({"kind":"Status","code":403,"reason":"Forbidden","message":"pods is forbidden"})";
  } else if (request.query.find("watch=true") != std::string::npos) {
    writer->start_stream(200, response.headers);
    if (request.path == "/api/v1/nodes")
      writer->write(make_bytes(
          R"({"type":"MODIFIED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","resourceVersion":"6"},"spec":{"unschedulable":true}}})"
          "\n"
          R"({"type":"DELETED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"m","resourceVersion":"7"}}})"
          "\n"));
    return watches.push_back(writer);
  } else if (request.path == "/api/v1/nodes") {
    response.body =
        R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"m","resourceVersion":"4"}},{"metadata":{"name":"n","resourceVersion":"5"}}]})";
  } else {
    response.body = R"({"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]})";
  }
  writer->respond(std::move(response));
}

TEST_F(DashboardTest, LiveRowsFollowTheClusterAndSayWhatMayNotBeSeen) {
  std::mutex mutex;
  std::vector<net::test::Writer> watches;
  cluster = [&](const net::HttpRequest& request, const net::test::Writer& writer) {
    std::lock_guard lock(mutex);
    answer_small(request, writer, watches);
  };
  start();
  std::string lines;
  net::test::Signal more;
  auto request = net::test::make_request("GET", "/berth/live");
  const auto has = [&](std::string_view text) {
    std::lock_guard lock(mutex);
    return lines.find(text) != std::string::npos;
  };
  const auto stream = open_stream(std::move(request), [&](std::string_view data) {
    {
      std::lock_guard lock(mutex);
      lines += data;
    }
    more.notify();
  });
  for (const std::string_view text :
       {R"({"kind":"node","name":"n","cordoned":true})", R"("synced":true)", "pods is forbidden", R"({"gone":"node","name":"m"})"})
    for (int i = 1; !has(text); ++i) ASSERT_TRUE(more.wait_for_count(i)) << text << " in " << lines;
}

TEST_F(DashboardTest, AUserOfOneNamespaceSeesThatOneAndIsTold) {
  std::mutex mutex;
  std::vector<net::test::Writer> watches;
  cluster = [&](const net::HttpRequest& request, const net::test::Writer& writer) {
    std::lock_guard lock(mutex);
    if (request.path != "/api/v1/namespaces/team/pods" || request.query.find("watch=true") != std::string::npos)
      return answer_small(request, writer, watches);
    net::HttpResponse response;
    response.headers.add("Content-Type", "application/json");
    response.body =
        R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"mine","namespace":"team","resourceVersion":"4"}}]})";
    writer->respond(std::move(response));
  };
  start({.own_ns = "team"});
  std::string lines;
  net::test::Signal more;
  const auto has = [&](std::string_view text) {
    std::lock_guard lock(mutex);
    return lines.find(text) != std::string::npos;
  };
  const auto stream = open_stream(net::test::make_request("GET", "/berth/live"), [&](std::string_view data) {
    {
      std::lock_guard lock(mutex);
      lines += data;
    }
    more.notify();
  });
  for (const std::string_view text : {R"("ns":"team","name":"mine")", R"("what":"pods","message":"pods is forbidden","only":"team")"})
    for (int i = 1; !has(text); ++i) ASSERT_TRUE(more.wait_for_count(i)) << text << " in " << lines;
}

}  // namespace
}  // namespace berth::dashboard
