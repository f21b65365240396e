// A component's own port: health for everybody, metrics and configuration for those whom the API server lets.
#include "client/component_server.h"

#include <gtest/gtest.h>

#include <future>

#include "client/client.h"

namespace berth::client::test {
namespace {

/// An API server that knows one token and allows one user to read /metrics.
class Reviewer final : public net::Handler {
 public:
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    ++asked;
    json::Value review = *json::parse(request.body);
    net::HttpResponse response;
    response.status = is_down ? 503 : 201;
    if (request.path.ends_with("tokenreviews")) {
      const bool good = json::get_string(review, {"spec", "token"}) == "good" || json::get_string(review, {"spec", "token"}) == "weak";
      review.get_object()["status"] = good ? json::Object{{"authenticated", true},
                                                          {"user", json::Object{{"username", json::get_string(review, {"spec", "token"})},
                                                                                {"groups", json::Array{"system:authenticated"}}}}}
                                           : json::Object{{"authenticated", false}};
    } else {
      const bool good = json::get_string(review, {"spec", "user"}) == "good" &&
                        json::get_string(review, {"spec", "nonResourceAttributes", "path"}) == "/metrics";
      review.get_object()["status"] = json::Object{{"allowed", good}};
    }
    response.body = json::serialize(review);
    writer->respond(std::move(response));
  }
  std::atomic<int> asked = 0;
  std::atomic<bool> is_down = false;
};

class ComponentPort : public testing::Test {
 protected:
  ComponentPort() {
    ComponentServerOptions options;
    options.address = "127.0.0.1";
    options.metrics = [] { return std::string("scheduler_pending_pods 3\n"); };
    options.config_name = "componentconfig";
    options.config = [] { return json::Value(json::Object{{"Parallelism", 16}}); };
    options.checks.push_back({"loop", [this] { return loop_failure; }});
    options.checks.push_back({"informer-sync", [this] { return sync_failure; }, true});
    options.transport = make_in_process_transport(reviewer, {"component", {}});
    server = std::move(*ComponentServer::start(std::move(options)));
  }
  net::HttpResponse get(const std::string& target, const std::string& token = {}) {
    auto http = *net::HttpClient::create({.url = fmt::format("https://127.0.0.1:{}", server->port()), .insecure_skip_verify = true});
    net::HttpRequest request;
    request.method = "GET";
    request.path = target.substr(0, target.find('?'));
    if (target.find('?') != std::string::npos) request.query = target.substr(target.find('?') + 1);
    if (!token.empty()) request.headers.add("Authorization", "Bearer " + token);
    std::promise<net::HttpResponse> answer;
    http->send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }

  Reviewer reviewer;
  std::string loop_failure, sync_failure;
  std::unique_ptr<ComponentServer> server;
};

TEST_F(ComponentPort, HealthNeedsNoCredentialsAndNamesWhatFails) {
  EXPECT_EQ(get("/healthz").body, "ok");
  EXPECT_EQ(get("/livez?verbose").body, "[+]ping ok\n[+]loop ok\nlivez check passed\n");
  sync_failure = "not yet";
  EXPECT_EQ(get("/livez").status, 200);
  const auto ready = get("/readyz");
  EXPECT_EQ(ready.status, 500);
  EXPECT_EQ(ready.body, "[+]ping ok\n[+]loop ok\n[-]informer-sync failed: not yet\nreadyz check failed\n");
  EXPECT_EQ(get("/readyz?exclude=informer-sync").status, 200);
  EXPECT_EQ(get("/readyz/loop").body, "ok");
  EXPECT_EQ(get("/readyz/unknown").status, 404);
  EXPECT_EQ(reviewer.asked, 0);
}

TEST_F(ComponentPort, MetricsAreForThoseWhomTheApiServerLets) {
  const auto anonymous = get("/metrics");
  EXPECT_EQ(anonymous.status, 403);
  EXPECT_EQ(json::get_string(*json::parse(anonymous.body), {"message"}),
            "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"");
  EXPECT_EQ(get("/metrics", "bad").status, 401);
  EXPECT_EQ(get("/metrics", "weak").status, 403);
  const auto allowed = get("/metrics", "good");
  EXPECT_EQ(allowed.status, 200);
  EXPECT_TRUE(allowed.body.starts_with("scheduler_pending_pods 3\n")) << allowed.body;
  EXPECT_NE(allowed.body.find("\nprocess_resident_memory_bytes "), std::string::npos) << allowed.body;
  EXPECT_EQ(get("/configz", "good").status, 403);
}

TEST_F(ComponentPort, AnswersOfTheApiServerAreKeptForAWhile) {
  EXPECT_EQ(get("/metrics", "good").status, 200);
  EXPECT_EQ(reviewer.asked, 2);
  reviewer.is_down = true;
  EXPECT_EQ(get("/metrics", "good").status, 200);
  EXPECT_EQ(reviewer.asked, 2);
  EXPECT_EQ(get("/metrics").status, 500);
}

}  // namespace
}  // namespace berth::client::test
