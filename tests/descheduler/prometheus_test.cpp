// Usage from Prometheus: what its answers mean, what is asked, and what a policy must say.
#include "descheduler/prometheus.h"

#include <fmt/format.h>

#include <mutex>

#include "net/server.h"
#include "tests/descheduler/world.h"

namespace berth::descheduler::test {
namespace {

json::Value vector_of(std::string_view samples) {
  return yaml("{status: success, data: {resultType: vector, result: " + std::string(samples) + "}}");
}

TEST(Prometheus, SamplesBecomeWholePercent) {
  const auto usage =
      usage_of_answer(vector_of("[{metric: {instance: n1}, value: [1.5, '0.479']}, {metric: {instance: n2}, value: [1.5, '1']}]"));
  ASSERT_TRUE(usage) << usage.error().message;
  EXPECT_EQ(*usage, (Amounts{{"n1", 47}, {"n2", 100}}));
}

TEST(Prometheus, AnswersThatMeanNothingAreRefusedInTheOriginalsWords) {
  const auto why = [](const json::Value& answer) {
    const auto usage = usage_of_answer(answer);
    return usage ? "" : usage.error().message;
  };
  EXPECT_EQ(why(vector_of("[{metric: {node: n1}, value: [1, '0.5']}]")), "The collected metrics sample is missing 'instance' key");
  EXPECT_EQ(why(vector_of("[{metric: {instance: n1}, value: [1, '47']}]")),
            "The collected metrics sample for \"n1\" has value 47 outside of <0; 1> interval");
  EXPECT_NE(why(vector_of("[{metric: {instance: n1}, value: [1, 'NaN']}]")).find("has value nan outside"), std::string::npos);
  EXPECT_EQ(why(yaml("{status: success, data: {resultType: matrix, result: []}}")),
            "expected query results to be of type \"vector\", got \"matrix\" instead");
  EXPECT_EQ(why(yaml("{status: error, errorType: bad_data, error: parse error}")),
            "unable to capture prometheus metrics: bad_data: parse error");
  EXPECT_NE(why(vector_of("[{metric: {instance: n1}, value: [1]}]")), "");
  EXPECT_NE(why(json::Value("text")), "");
}

TEST(Prometheus, UrlsAreCheckedBeforeAnythingRuns) {
  EXPECT_EQ(why_not_prometheus_url(""), "prometheus URL is required when prometheus is enabled");
  EXPECT_EQ(why_not_prometheus_url("http://example.com:-80"),
            "error parsing prometheus URL: parse \"http://example.com:-80\": invalid port \":-80\" after host");
  for (const char* good : {"http://prometheus.example:9090", "https://p", "http://[::1]:9090/prefix", "https://10.0.0.1:443/"})
    EXPECT_EQ(why_not_prometheus_url(good), "") << good;
  for (const char* bad : {"prometheus:9090", "ftp://p", "http://", "://p", "http://[::1:9090", "http://a b", "http://p:9x"})
    EXPECT_NE(why_not_prometheus_url(bad), "") << bad;
}

/// A server that answers as Prometheus does, and keeps what it was asked.
class FakePrometheus final : public net::Handler {
 public:
  FakePrometheus() { server_ = std::move(*net::Server::start({}, *this)); }
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    const std::lock_guard lock(mutex_);
    path = request.path;
    query = request.query;
    authorization = std::string(request.headers.get("Authorization"));
    writer->respond({status, {}, body});
  }
  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}", server_->port()); }

  std::string path, query, authorization;
  int status = 200;
  std::string body = R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"n1"},"value":[1,"0.5"]}]}})";

 private:
  std::mutex mutex_;
  std::unique_ptr<net::Server> server_;
};

TEST(Prometheus, IsAskedWithTheTokenAndTheQueryAsItStands) {
  FakePrometheus server;
  const auto usage = ask_prometheus({.url = server.url() + "/prom", .token = "secret"}, "avg by (instance) (x{mode!='idle'}[1m] + 1)");
  ASSERT_TRUE(usage) << usage.error().message;
  EXPECT_EQ(*usage, (Amounts{{"n1", 50}}));
  EXPECT_EQ(server.path, "/prom/api/v1/query");
  EXPECT_EQ(server.query, "query=avg%20by%20%28instance%29%20%28x%7Bmode%21%3D%27idle%27%7D%5B1m%5D%20%2B%201%29");
  EXPECT_EQ(server.authorization, "Bearer secret");
}

TEST(Prometheus, WhatFailsIsSaidWithTheServersName) {
  FakePrometheus server;
  server.status = 400;
  server.body = R"({"status":"error","errorType":"bad_data","error":"1:3: parse error"})";
  auto usage = ask_prometheus({.url = server.url()}, "up{");
  ASSERT_FALSE(usage);
  EXPECT_NE(usage.error().message.find("bad_data: 1:3: parse error"), std::string::npos) << usage.error().message;
  EXPECT_NE(usage.error().message.find(server.url()), std::string::npos);
  server.status = 401;
  server.body = "who are you?\n";
  usage = ask_prometheus({.url = server.url()}, "up");
  ASSERT_FALSE(usage);
  EXPECT_NE(usage.error().message.find("HTTP 401: who are you?"), std::string::npos) << usage.error().message;
  server.status = 200;
  server.body = "<html>";
  EXPECT_FALSE(ask_prometheus({.url = server.url()}, "up"));
}

constexpr std::string_view kProvider = "metricsProviders: [{source: Prometheus, prometheus: {url: 'http://p:9090'}}]\n";
constexpr std::string_view kArgs =
    "{thresholds: {MetricResource: 20}, targetThresholds: {MetricResource: 50}, metricsUtilization: {source: Prometheus, prometheus: "
    "{query: q}}";

std::string refusal(const std::string& args, std::string_view top = kProvider) {
  const auto policy = parse_policy(one_plugin("LowNodeUtilization", args, "{}", std::string(top)), "p");
  return policy ? "" : policy.error().message;
}

TEST(Prometheus, ThePolicySaysWhereAndWhatToAsk) {
  const auto policy = parse_policy(one_plugin("LowNodeUtilization", std::string(kArgs) + "}", "{}",
                                              "metricsProviders: [{source: Prometheus, prometheus: {url: 'https://p', authToken: "
                                              "{secretReference: {namespace: monitoring, name: token}}}}]\n"),
                                   "p");
  ASSERT_TRUE(policy) << policy.error().message;
  ASSERT_TRUE(policy->prometheus);
  EXPECT_EQ(policy->prometheus->url, "https://p");
  EXPECT_EQ(policy->prometheus->secret_namespace, "monitoring");
  EXPECT_EQ(policy->prometheus_queries(), std::set<std::string>{"q"});
  EXPECT_FALSE(policy->needs_metrics());
}

TEST(Prometheus, BrokenSettingsAreRefused) {
  const auto says = [](const std::string& message, std::string_view words) { return message.find(words) != std::string::npos; };
  const std::string args = std::string(kArgs) + "}";
  EXPECT_EQ(refusal(args), "");
  EXPECT_TRUE(
      says(refusal(args, "metricsProviders: [{source: Prometheus}]\n"), "prometheus configuration is required when prometheus source"));
  EXPECT_TRUE(says(refusal(args, "metricsProviders: [{source: Prometheus, prometheus: {}}]\n"), "prometheus URL is required"));
  EXPECT_TRUE(says(refusal(args, "metricsProviders: [{source: Prometheus, prometheus: {url: 'https://p', authToken: {}}}]\n"),
                   "prometheus authToken secret is expected to be set when authToken field is"));
  EXPECT_TRUE(says(
      refusal(args, "metricsProviders: [{source: Prometheus, prometheus: {url: 'https://p', authToken: {secretReference: {name: x}}}}]\n"),
      "prometheus authToken secret reference does not set both namespace and name"));
  EXPECT_TRUE(says(refusal(args, ""), "there is no provider"));
  EXPECT_TRUE(
      says(refusal("{thresholds: {MetricResource: 20}, targetThresholds: {MetricResource: 50}, metricsUtilization: {source: Prometheus}}"),
           "prometheus property is missing"));
  EXPECT_TRUE(
      says(refusal("{thresholds: {MetricResource: 20}, targetThresholds: {MetricResource: 50}, metricsUtilization: {source: Prometheus, "
                   "prometheus: {query: ''}}}"),
           "prometheus query is missing"));
  EXPECT_TRUE(says(
      refusal("{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, metricsUtilization: {source: Prometheus, prometheus: {query: q}}}"),
      "thresholds are expected to specify a single instance of \"MetricResource\" resource, got [cpu] instead"));
}

World measured(std::string_view usage) {
  World world;
  world.node("n1").node("n2").node("n3").pods("a", 3, "n1").pods("b", 3, "n2").pods("c", 1, "n3");
  Amounts amounts;
  const json::Value percents = yaml(usage);
  for (const auto& [name, value] : percents.get_object()) amounts[std::string(name)] = value.get_int64();
  world.snapshot().queried_usage.emplace("q", amounts);
  return world;
}

TEST(Prometheus, WithoutALimitOnePodOfEachNodeThatIsAboveGoes) {
  World world = measured("{n1: 90, n2: 60, n3: 10}");
  world.options.check = PlacementCheck::kOff;
  EXPECT_EQ(evicted(world.run(one_plugin("LowNodeUtilization", std::string(kArgs) + "}", "{}", std::string(kProvider)))),
            (Names{"a-0", "b-0"}));
  World limited = measured("{n1: 90, n2: 60, n3: 10}");
  limited.options.check = PlacementCheck::kOff;
  EXPECT_EQ(evicted(limited.run(
                one_plugin("LowNodeUtilization", std::string(kArgs) + ", evictionLimits: {node: 2}}", "{}", std::string(kProvider)))),
            (Names{"a-0", "a-1", "b-0", "b-1"}));
}

TEST(Prometheus, DeviationsCountFromTheAverage) {
  World world = measured("{n1: 80, n2: 40, n3: 30}");  // On average 50.
  world.options.check = PlacementCheck::kOff;
  const std::string args =
      "{thresholds: {MetricResource: 5}, targetThresholds: {MetricResource: 20}, useDeviationThresholds: true, metricsUtilization: "
      "{source: "
      "Prometheus, prometheus: {query: q}}}";
  EXPECT_EQ(evicted(world.run(one_plugin("LowNodeUtilization", args, "{}", std::string(kProvider)))), Names{"a-0"});
}

TEST(Prometheus, ANodeWithoutASampleEndsTheStrategyAndSaysWhy) {
  World world = measured("{n1: 90, n2: 60, 'n3:9100': 10}");
  const CycleResult result = world.run(one_plugin("LowNodeUtilization", std::string(kArgs) + "}", "{}", std::string(kProvider)));
  EXPECT_TRUE(result.removals.empty());
  ASSERT_EQ(result.runs.size(), 1U);
  EXPECT_EQ(result.runs[0].error,
            "unable to find metric entry for n3: there is one for n3:9100; the label instance must be the node's name (label_replace)");
}

}  // namespace
}  // namespace berth::descheduler::test
