// PriorityLevelConfigurations and FlowSchemas in a running server: made, kept, and what requests are judged by.
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>

#include "apiserver/flow/controller.h"
#include "base/event_loop.h"
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver {
namespace {

using testing::RecordedResponse;

constexpr std::string_view kGroup = "/apis/flowcontrol.apiserver.k8s.io/v1/";

/// A server with threads. What somebody else does is waited for by watching the objects.
class FlowObjectsServer : public ::testing::Test {
 protected:
  void start(std::function<void(ServerOptions&)> change = {}) {
    auto cache = open_object_cache(store::make_memory_store(), loop_, {}, false);
    ASSERT_TRUE(cache);
    ServerOptions options;
    options.cache = std::move(*cache);
    options.loop = &loop_;
    const auto trusting = std::make_shared<TrustingAuth>();
    options.authenticator = trusting;
    options.authorizer = trusting;
    if (change) change(options);
    auto server = ApiServer::create(std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    for (const char* plural : {"flowschemas", "prioritylevelconfigurations"}) {
      WatchFilter filter;
      filter.prefix = make_prefix("flowcontrol.apiserver.k8s.io", plural);
      watches_.push_back(server_->cache().watch(std::move(filter), 0, true, bell_));
    }
  }
  ~FlowObjectsServer() override { watches_.clear(); }

  std::shared_ptr<RecordedResponse> send(std::string method, std::string_view path, std::string body = {}, std::string user = "admin",
                                         std::string type = "application/json", std::string accept = "application/json") {
    net::HttpRequest request;
    request.method = std::move(method);
    request.path = path;
    if (const auto question = request.path.find('?'); question != std::string::npos) {
      request.query = request.path.substr(question + 1);
      request.path.resize(question);
    }
    request.body = std::move(body);
    request.headers.add("Content-Type", std::move(type));
    request.headers.add("Accept", std::move(accept));
    std::vector<std::string> groups{"system:authenticated"};
    if (user == "admin") groups.emplace_back("system:masters");
    request.peer = net::PeerCertificate{std::move(user), std::move(groups)};
    auto response = std::make_shared<RecordedResponse>();
    std::promise<void> answered;
    response->on_close([&answered] { answered.set_value(); });
    server_->handle(std::move(request), response);
    answered.get_future().wait();
    return response;
  }
  json::Value object(std::string_view plural, std::string_view name) {
    const auto found = server_->cache().get(fmt::format("/flowcontrol.apiserver.k8s.io/{}//{}", plural, name));
    const auto parsed = found == nullptr ? std::nullopt : std::optional(json::parse(found->text().here()));
    return parsed && *parsed ? **parsed : json::Value();
  }
  std::string uid(std::string_view plural, std::string_view name) {
    return std::string(json::get_string(object(plural, name), {"metadata", "uid"}));
  }
  std::string dangling(std::string_view schema) {
    const auto document = object("flowschemas", schema);
    for (const auto& condition : json::get_array(document, {"status", "conditions"}))
      if (json::get_string(condition, {"type"}) == "Dangling") return std::string(json::get_string(condition, {"status"}));
    return {};
  }
  /// Asked again after every change of an object.
  bool comes(const std::function<bool()>& holds) { return bell_->wait(holds); }
  std::string level_of_answer(const std::string& user) {
    return std::string(send("GET", "/api/v1/namespaces", {}, user)->headers.get("X-Kubernetes-PF-PriorityLevel-UID"));
  }
  /// Flow control has heard of everything that was written before.
  void settle() {
    std::promise<void> ran;
    loop_.post([&] { ran.set_value(); });
    ran.get_future().wait();
  }

  struct Bell final : WatchSink {
    std::mutex mutex;
    std::condition_variable rings;
    int rung = 0;
    bool deliver(const WatchEvent&) override {
      const std::lock_guard lock(mutex);
      ++rung;
      rings.notify_all();
      return true;
    }
    bool wait(const std::function<bool()>& holds) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      for (;;) {
        std::unique_lock lock(mutex);
        const int heard = rung;
        lock.unlock();
        if (holds()) return true;
        lock.lock();
        if (!rings.wait_until(lock, end, [&] { return rung != heard; })) return false;
      }
    }
  };
  ThreadLoop loop_{"test"};
  std::unique_ptr<ApiServer> server_;
  std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::vector<std::unique_ptr<Watch>> watches_;
};

const std::string kLevels = std::string(kGroup) + "prioritylevelconfigurations", kSchemas = std::string(kGroup) + "flowschemas";

std::string schema_for(const std::string& user, const std::string& level, int precedence = 500) {
  return fmt::format(
      R"({{"metadata":{{"name":"of-{0}"}},"spec":{{"matchingPrecedence":{2},"priorityLevelConfiguration":{{"name":"{1}"}},"rules":[{{)"
      R"("subjects":[{{"kind":"User","user":{{"name":"{0}"}}}}],"resourceRules":[{{"verbs":["*"],"apiGroups":["*"],"resources":["*"],)"
      R"("namespaces":["*"],"clusterScope":true}}]}}]}}}})",
      user, level, precedence);
}

std::string level_called(const std::string& name, int shares, const std::string& response = R"({"type":"Reject"})") {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"type":"Limited","limited":{{"nominalConcurrencyShares":{},"limitResponse":{}}}}}}})", name,
      shares, response);
}

TEST_F(FlowObjectsServer, KubernetesObjectsAreThereFromTheStart) {
  start();
  std::set<std::string> names;
  const auto listed = send("GET", kLevels)->document();
  for (const auto& item : json::get_array(listed, {"items"})) names.emplace(json::get_string(item, {"metadata", "name"}));
  EXPECT_EQ(names, (std::set<std::string>{"catch-all", "exempt", "global-default", "leader-election", "node-high", "system",
                                          "workload-high", "workload-low"}));
  const auto probes = object("flowschemas", "probes");
  EXPECT_EQ(json::get_string(probes, {"metadata", "annotations", "apf.kubernetes.io/autoupdate-spec"}), "true");
  EXPECT_EQ(dangling("probes"), "False");
  const auto table = send("GET", kLevels + "/workload-low", {}, "admin", {}, "application/json;as=Table;v=v1;g=meta.k8s.io")->document();
  const auto& cells = json::get_array(json::get_array(table, {"rows"})[0], {"cells"});
  EXPECT_EQ(json::serialize(json::Array(cells.begin(), cells.begin() + 6)), R"(["workload-low","Limited",100,128,6,50])");
}

TEST_F(FlowObjectsServer, MandatoryObjectsCannotBeChangedAndComeBack) {
  start();
  const auto merge = [&](std::string_view path, std::string body) {
    return send("PATCH", path, std::move(body), "admin", "application/merge-patch+json");
  };
  const auto changed = merge(kSchemas + "/catch-all", R"({"spec":{"matchingPrecedence":9000}})");
  EXPECT_EQ(changed->status, 422);
  EXPECT_NE(changed->body.find("spec of 'catch-all' must equal the fixed value"), std::string::npos) << changed->body;
  EXPECT_EQ(merge(kLevels + "/exempt", R"({"spec":{"exempt":{"lendablePercent":50}}})")->status, 200);
  const auto before = uid("prioritylevelconfigurations", "catch-all");
  EXPECT_EQ(send("DELETE", kLevels + "/catch-all")->status, 200);
  EXPECT_TRUE(comes([&] {
    const auto now = uid("prioritylevelconfigurations", "catch-all");
    return !now.empty() && now != before;
  }));
  EXPECT_EQ(json::get_int(object("prioritylevelconfigurations", "exempt"), {"spec", "exempt", "lendablePercent"}), 50);
}

TEST_F(FlowObjectsServer, SuggestedObjectsAreKeptUnlessSomebodySaysOtherwise) {
  start();
  const auto merge = [&](std::string body) {
    return send("PATCH", kLevels + "/workload-low", std::move(body), "admin", "application/merge-patch+json")->status;
  };
  const auto shares = [&] {
    return json::get_int(object("prioritylevelconfigurations", "workload-low"), {"spec", "limited", "nominalConcurrencyShares"});
  };
  EXPECT_EQ(merge(R"({"spec":{"limited":{"nominalConcurrencyShares":7}}})"), 200);
  EXPECT_TRUE(comes([&] { return shares() == 100; }));
  EXPECT_EQ(
      merge(
          R"({"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"limited":{"nominalConcurrencyShares":7}}})"),
      200);
  settle();
  settle();
  EXPECT_EQ(shares(), 7);
  EXPECT_EQ(send("POST", kSchemas,
                 R"({"metadata":{"name":"left-over","annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},)"
                 R"("spec":{"priorityLevelConfiguration":{"name":"system"}}})")
                ->status,
            201);
  EXPECT_TRUE(comes([&] { return object("flowschemas", "left-over").is_null(); }));
}

TEST_F(FlowObjectsServer, ASchemaWithoutItsLevelTakesNobodyUntilItIsThere) {
  start();
  const auto usual = uid("prioritylevelconfigurations", "global-default");
  EXPECT_EQ(level_of_answer("mallory"), usual);
  ASSERT_EQ(send("POST", kSchemas, schema_for("mallory", "own"))->status, 201);
  EXPECT_TRUE(comes([&] { return dangling("of-mallory") == "True"; }));
  EXPECT_EQ(level_of_answer("mallory"), usual);
  ASSERT_EQ(send("POST", kLevels, level_called("own", 5))->status, 201);
  EXPECT_TRUE(comes([&] { return dangling("of-mallory") == "False"; }));
  const auto own = uid("prioritylevelconfigurations", "own");
  EXPECT_EQ(level_of_answer("mallory"), own);
  EXPECT_EQ(level_of_answer("jane"), usual);
  // The numerically lower precedence takes a request.
  auto lower = schema_for("mallory", "workload-low", 400);
  lower.replace(lower.find("of-mallory"), 10, "earlier");
  ASSERT_EQ(send("POST", kSchemas, lower)->status, 201);
  EXPECT_TRUE(comes([&] { return dangling("earlier") == "False"; }));
  EXPECT_EQ(level_of_answer("mallory"), uid("prioritylevelconfigurations", "workload-low"));
  ASSERT_EQ(send("DELETE", kSchemas + "/earlier")->status, 200);
  ASSERT_EQ(send("DELETE", kLevels + "/own")->status, 200);
  EXPECT_TRUE(comes([&] { return dangling("of-mallory") == "True"; }));
  EXPECT_EQ(level_of_answer("mallory"), usual);
}

TEST_F(FlowObjectsServer, WhatIsWrongIsSaidInKubernetesWords) {
  start();
  const auto refused = [&](const std::string& path, std::string body, std::string_view why) {
    const auto answer = send("POST", path, std::move(body));
    EXPECT_EQ(answer->status, 422);
    EXPECT_NE(answer->body.find(why), std::string::npos) << answer->body;
  };
  refused(kSchemas, schema_for("jane", "system", 1), "only the schema named 'exempt' may have matchingPrecedence 1");
  refused(kSchemas, schema_for("jane", "system", 10001), "spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000");
  refused(kSchemas,
          R"({"metadata":{"name":"x"},"spec":{"priorityLevelConfiguration":{"name":"system"},"rules":[{"subjects":[{"kind":"User"}]}]}})",
          "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'");
  refused(kLevels, level_called("x", -1), "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer");
  refused(kLevels, level_called("x", 1, R"({"type":"Queue","queuing":{"queues":512,"handSize":8}})"),
          "required entropy bits of deckSize 512 and handSize 8 should not be greater than 60");
  refused(kLevels, R"({"metadata":{"name":"x"},"spec":{"type":"Exempt"}})", "must be 'Exempt' if and only if `name` is 'exempt'");
}

TEST_F(FlowObjectsServer, TenMillionQueuesCostNothing) {
  start();
  ASSERT_EQ(send("POST", kLevels, level_called("wide", 1, R"({"type":"Queue","queuing":{"queues":10000000,"handSize":2}})"))->status, 201);
  ASSERT_EQ(send("POST", kSchemas, schema_for("mallory", "wide"))->status, 201);
  EXPECT_TRUE(comes([&] { return dangling("of-mallory") == "False"; }));
  EXPECT_EQ(send("GET", "/api/v1/namespaces", {}, "mallory", {}, "application/yaml")->status, 200);
  const auto dump = send("GET", "/debug/api_priority_and_fairness/dump_priority_levels");
  EXPECT_TRUE(dump->body.starts_with("PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ")) << dump->body;
  EXPECT_NE(dump->body.find("\nwide,"), std::string::npos) << dump->body;
}

TEST_F(FlowObjectsServer, WithoutFairnessTheObjectsAreWithoutEffect) {
  start([](ServerOptions& options) { options.priority_and_fairness = false; });
  const auto answer = send("GET", "/api/v1/namespaces", {}, "jane");
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->headers.get("X-Kubernetes-PF-PriorityLevel-UID"), "");
  EXPECT_FALSE(object("flowschemas", "exempt").is_null());
}

}  // namespace
}  // namespace berth::apiserver
