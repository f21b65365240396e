// What a client sends, and what it remembers of answers and events: kept for its time, within its bounds, and forgotten.
#include <gtest/gtest.h>

#include <random>

#include "client/client.h"
#include "client/delegated_auth.h"
#include "client/event_correlator.h"
#include "client/hooked_transport.h"
#include "client/informer_store.h"
#include "client/list_all.h"

namespace berth::client::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const Gvr kDeployments{"apps", "v1", "deployments"};

/// Keeps what it is sent and answers what is next in `answers`, in the end with 200 and {}.
class Script final : public net::Handler {
 public:
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    requests.push_back(std::move(request));
    net::HttpResponse next{.status = 200, .headers = {}, .body = "{}"};
    if (!answers.empty()) {
      next = std::move(answers.front());
      answers.pop_front();
    }
    writer->respond(std::move(next));
  }
  [[nodiscard]] std::string last() const {
    const auto& one = requests.back();
    return fmt::format("{} {}{}{}", one.method, one.path, one.query.empty() ? "" : "?", one.query);
  }
  std::vector<net::HttpRequest> requests;
  std::deque<net::HttpResponse> answers;
};

net::HttpResponse answer(int status, std::string body = "{}", const char* retry_after = nullptr) {
  net::HttpResponse out{.status = status, .headers = {}, .body = std::move(body)};
  if (retry_after != nullptr) out.headers.add("Retry-After", retry_after);
  return out;
}

class Sent : public ::testing::Test {
 protected:
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  Script script;
  std::shared_ptr<Transport> transport = make_in_process_transport(script, {"admin", {}});
  Client client{transport, &loop, "berth-test/1.0"};
  std::optional<ApiResult<json::Value>> result;
  Client::Done keep = [this](ApiResult<json::Value> got) { result = std::move(got); };
};

TEST_F(Sent, EachVerbHasItsMethodPathAndBody) {
  client.get(kDeployments, "ns", "web", keep);
  EXPECT_EQ(script.last(), "GET /apis/apps/v1/namespaces/ns/deployments/web");
  EXPECT_EQ(script.requests.back().headers.get("User-Agent"), "berth-test/1.0");
  EXPECT_EQ(script.requests.back().headers.get("Content-Type"), "") << "there is no body";
  client.create(kDeployments, "ns", json::Object{{"a", 1}}, keep);
  EXPECT_EQ(script.last(), "POST /apis/apps/v1/namespaces/ns/deployments");
  EXPECT_EQ(script.requests.back().headers.get("Content-Type"), "application/json");
  EXPECT_EQ(script.requests.back().body, R"({"a":1})");
  client.update(kDeployments, "ns", "web", json::Object{}, keep, "status");
  EXPECT_EQ(script.last(), "PUT /apis/apps/v1/namespaces/ns/deployments/web/status");
  for (const auto& [type, media] :
       {std::pair(PatchType::kJson, "application/json-patch+json"), std::pair(PatchType::kMerge, "application/merge-patch+json"),
        std::pair(PatchType::kStrategicMerge, "application/strategic-merge-patch+json")}) {
    client.patch(kDeployments, "ns", "web", type, json::Object{}, keep, "scale");
    EXPECT_EQ(script.last(), "PATCH /apis/apps/v1/namespaces/ns/deployments/web/scale");
    EXPECT_EQ(script.requests.back().headers.get("Content-Type"), media);
  }
  client.patch(kDeployments, "ns", "web", PatchType::kApply, json::Object{}, keep);
  EXPECT_EQ(script.last(), "PATCH /apis/apps/v1/namespaces/ns/deployments/web?fieldManager=berth-test&force=true");
  EXPECT_EQ(script.requests.back().headers.get("Content-Type"), "application/apply-patch+yaml");
  client.call({.verb = "deletecollection", .gvr = {"", "v1", "pods"}, .ns = "ns", .query = "labelSelector=a"}, keep);
  EXPECT_EQ(script.last(), "DELETE /api/v1/namespaces/ns/pods?labelSelector=a");
  client.list({"", "v1", "nodes"}, "",
              {.label_selector = "a=b", .field_selector = "c=d", .resource_version = "7", .continue_token = "t/", .limit = 5}, [](auto) {});
  EXPECT_EQ(script.last(), "GET /api/v1/nodes?labelSelector=a%3Db&fieldSelector=c%3Dd&resourceVersion=7&continue=t%2F&limit=5");
}

TEST_F(Sent, ADeletionSaysWhatItMeans) {
  const auto body = [&](const DeleteOptions& options) {
    client.remove(kDeployments, "ns", "web", options, keep);
    EXPECT_EQ(script.last(), "DELETE /apis/apps/v1/namespaces/ns/deployments/web");
    return script.requests.back().body;
  };
  const std::string head = R"({"kind":"DeleteOptions","apiVersion":"v1",)";
  EXPECT_EQ(body({}), "");
  EXPECT_EQ(body({.grace_period_seconds = 0}), head + R"("gracePeriodSeconds":0})");
  EXPECT_EQ(body({.propagation = Propagation::kBackground}), head + R"("propagationPolicy":"Background"})");
  EXPECT_EQ(body({.propagation = Propagation::kForeground}), head + R"("propagationPolicy":"Foreground"})");
  EXPECT_EQ(body({.propagation = Propagation::kOrphan}), head + R"("propagationPolicy":"Orphan"})");
  EXPECT_EQ(body({.precondition_uid = "u"}), head + R"("preconditions":{"uid":"u"}})");
  EXPECT_EQ(body({.precondition_resource_version = "5"}), head + R"("preconditions":{"resourceVersion":"5"}})");
  EXPECT_EQ(body({.dry_run = true}), head + R"("dryRun":["All"]})");
}

/// The server names a time: then the call comes again, so many times, and no sooner.
TEST_F(Sent, WhoIsAskedToComeAgainDoes) {
  script.answers = {answer(429, "{}", "3"), answer(503, "{}", "0"), answer(200, R"({"ok":true})")};
  client.get(kDeployments, "ns", "web", keep);
  loop.run_ready();
  EXPECT_EQ(script.requests.size(), 1U);
  loop.run_for(std::chrono::milliseconds(2900));
  EXPECT_EQ(script.requests.size(), 1U);
  loop.run_for(std::chrono::milliseconds(200));
  EXPECT_EQ(script.requests.size(), 2U);
  EXPECT_FALSE(result);
  loop.run_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(script.requests.size(), 3U) << "at least a second passes";
  ASSERT_TRUE(result && *result);
  EXPECT_TRUE(json::get_bool(**result, {"ok"}));
}

TEST_F(Sent, OthersAreAnsweredAsTheyAre) {
  for (const auto& [status, retry] :
       {std::pair<int, const char*>(429, nullptr), std::pair<int, const char*>(500, nullptr), std::pair<int, const char*>(409, "1")}) {
    script.answers = {answer(status, "{}", retry)};
    const auto before = script.requests.size();
    result.reset();
    client.get(kDeployments, "ns", "web", keep);
    loop.run_for(minutes(5));
    EXPECT_EQ(script.requests.size(), before + 1) << status;
    ASSERT_TRUE(result);
    ASSERT_FALSE(*result);
    EXPECT_EQ(result->error().code, status);
  }
  // Who does not want to come again is told when he might.
  script.answers = {answer(429, "{}", "7")};
  Call once{.verb = "get", .gvr = kDeployments, .ns = "ns", .name = "web"};
  once.comes_again = false;
  result.reset();
  client.call(std::move(once), keep);
  loop.run_for(minutes(5));
  ASSERT_TRUE(result && !*result);
  EXPECT_EQ(result->error().retry_after_seconds, 7);
  // In the end a server that always asks for it is told of.
  script.answers.clear();
  for (int i = 0; i < 100; ++i) script.answers.push_back(answer(429, "{}", "1"));
  const auto before = script.requests.size();
  result.reset();
  client.get(kDeployments, "ns", "web", keep);
  loop.run_for(minutes(60));
  ASSERT_TRUE(result && !*result);
  EXPECT_LT(script.requests.size() - before, 15U);
  EXPECT_GT(script.requests.size() - before, 5U);
}

TEST_F(Sent, HooksSeeWhatGoesAndWhatComes) {
  std::vector<int> seen;
  Client hooked(with_hooks(transport, {.before = [](net::HttpRequest& request) { request.headers.add("X-Hook", "on"); },
                                       .answered =
                                           [&](int status, const net::Headers& headers) {
                                             seen.push_back(status);
                                             EXPECT_EQ(headers.get("Retry-After"), "9");
                                           }}),
                nullptr, "t");
  script.answers = {answer(404, "{}", "9")};
  EXPECT_FALSE(hooked.get_and_wait(kDeployments, "ns", "web"));
  EXPECT_EQ(script.requests.back().headers.get("X-Hook"), "on");
  EXPECT_EQ(seen, (std::vector<int>{404}));
  Client plain(with_hooks(transport, {}), nullptr, "t");
  EXPECT_TRUE(plain.get_and_wait(kDeployments, "ns", "web"));
}

TEST_F(Sent, AListIsReadPageByPage) {
  const auto pages = [&] {
    script.requests.clear();
    script.answers = {answer(200, R"({"metadata":{"continue":"t&1"},"items":[{"metadata":{"name":"a"}},5,{"metadata":{"name":"b"}}]})"),
                      answer(200, R"({"metadata":{},"items":[{"metadata":{"name":"c"}}]})")};
  };
  std::vector<std::string> names;
  pages();
  ASSERT_TRUE(list_all(client, "apps", "deployments", [&](const json::Value& one) {
    EXPECT_EQ(json::get_string(one, {"kind"}), "Deployment");
    names.emplace_back(json::get_string(one, {"metadata", "name"}));
  }));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_EQ(script.requests.size(), 2U);
  EXPECT_EQ(script.last(), "GET /apis/apps/v1/deployments?limit=500&continue=t%261");
  pages();
  std::vector<std::string> texts;
  ASSERT_TRUE(list_all_texts(client, "apps", "deployments", [&](std::string_view one) { texts.emplace_back(one); }));
  EXPECT_EQ(texts,
            (std::vector<std::string>{R"({"metadata":{"name":"a"}})", R"({"metadata":{"name":"b"}})", R"({"metadata":{"name":"c"}})"}));
  EXPECT_EQ(script.last(), "GET /apis/apps/v1/deployments?limit=500&continue=t%261");
  texts.clear();
  script.answers = {answer(200, R"({"metadata":{"continue":"t1"},"items":[{"metadata":{"name":"a"}}]})"),
                    answer(410, R"({"kind":"Status","code":410,"reason":"Expired","metadata":{"continue":"t2"}})"),
                    answer(200, R"({"metadata":{},"items":[{"metadata":{"name":"b"}}]})")};
  ASSERT_TRUE(list_all_texts(client, "apps", "deployments", [&](std::string_view one) { texts.emplace_back(one); }))
      << "it goes on with what there is";
  EXPECT_EQ(texts, (std::vector<std::string>{R"({"metadata":{"name":"a"}})", R"({"metadata":{"name":"b"}})"}));
  EXPECT_EQ(script.last(), "GET /apis/apps/v1/deployments?limit=500&continue=t2");
  const auto fails = [&](net::HttpResponse first) {
    script.answers = {std::move(first)};
    const auto whole = list_all_texts(client, "apps", "deployments", [](std::string_view) {});
    return whole ? 200 : whole.error().code;
  };
  EXPECT_EQ(fails(answer(403)), 403);
  EXPECT_EQ(fails(answer(410)), 410) << "there is nothing to go on with";
  EXPECT_EQ(fails(answer(200, "nonsense")), 0);
  EXPECT_EQ(fails(answer(200, R"({"items":5})")), 0);
  EXPECT_EQ(fails(answer(200, R"({"items":null})")), 200);
  EXPECT_EQ(list_all(client, "apps", "nonsense", [](const json::Value&) {}).error().code, 404);
  script.answers = {answer(500)};
  EXPECT_EQ(list_all(client, "apps", "deployments", [](const json::Value&) {}).error().code, 500);
}

/// An API server that knows tokens by name and lets users read what they are called.
class Reviewer final : public net::Handler {
 public:
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    const json::Value review = *json::parse(request.body);
    json::Value out = review;
    if (request.path.ends_with("tokenreviews")) {
      ++tokens;
      const std::string token(json::get_string(review, {"spec", "token"}));
      json::set(out, {"status"},
                json::Object{{"authenticated", token != "bad"},
                             {"user", json::Object{{"username", token}, {"uid", "u"}, {"groups", json::Array{"g", token + "s"}}}}});
    } else {
      ++accesses;
      last = review;
      const auto user = json::get_string(review, {"spec", "user"});
      json::set(out, {"status"},
                json::Object{{"allowed", json::get_string(review, {"spec", "nonResourceAttributes", "path"}) == fmt::format("/{}", user)}});
    }
    writer->respond({.status = is_down ? 500 : 201, .headers = {}, .body = json::serialize(out)});
  }
  int tokens = 0, accesses = 0;
  bool is_down = false;
  json::Value last;
};

class Delegated : public ::testing::Test {
 protected:
  /// The refusal's code; 0: it is allowed.
  int ask(const std::string& path, const std::string& header, const char* verb = "get") {
    net::HttpRequest request;
    request.path = path;
    if (!header.empty()) request.headers.add("Authorization", header);
    return code_of(request, verb);
  }
  int code_of(const net::HttpRequest& request, const char* verb = "get") {
    int code = -1;
    auth.check(request, verb, [&](std::optional<DelegatedAuth::Refusal> refusal) { code = refusal ? refusal->code : 0; });
    return code;
  }
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  Reviewer reviewer;
  DelegatedAuth auth{make_in_process_transport(reviewer, {"component", {}}), loop};
};

TEST_F(Delegated, AnswersAreKeptForTenSecondsAndAskedAgainThen) {
  EXPECT_EQ(ask("/jane", "Bearer jane"), 0);
  EXPECT_EQ(ask("/jane", "bearer jane"), 0) << "a scheme has no case";
  EXPECT_EQ(std::pair(reviewer.tokens, reviewer.accesses), std::pair(1, 1));
  EXPECT_EQ(ask("/other", "Bearer jane"), 403);
  EXPECT_EQ(ask("/jane", "Bearer jane", "post"), 0);
  EXPECT_EQ(reviewer.accesses, 3) << "another path and another verb are other questions";
  loop.run_for(std::chrono::milliseconds(9900));
  EXPECT_EQ(ask("/other", "Bearer jane"), 403);
  EXPECT_EQ(reviewer.accesses, 3) << "a no is kept, too";
  loop.run_for(std::chrono::milliseconds(200));
  EXPECT_EQ(ask("/jane", "Bearer jane"), 0);
  EXPECT_EQ(std::pair(reviewer.tokens, reviewer.accesses), std::pair(2, 4));
  EXPECT_EQ(json::serialize(*json::find(reviewer.last, "spec")),
            R"({"user":"jane","uid":"u","groups":["g","janes"],"nonResourceAttributes":{"path":"/jane","verb":"get"}})");
}

TEST_F(Delegated, ABadTokenIsNobodyAndRemembered) {
  EXPECT_EQ(ask("/bad", "Bearer bad"), 401);
  EXPECT_EQ(ask("/bad", "Bearer bad"), 401);
  EXPECT_EQ(std::pair(reviewer.tokens, reviewer.accesses), std::pair(1, 0));
  EXPECT_EQ(ask("/x", "Basic jane"), 403) << "another scheme is no token";
  EXPECT_EQ(ask("/system:anonymous", ""), 0) << "and no token is everybody's";
}

TEST_F(Delegated, WhatCouldNotBeAskedIsNotRemembered) {
  reviewer.is_down = true;
  EXPECT_EQ(ask("/jane", "Bearer jane"), 401);
  reviewer.is_down = false;
  EXPECT_EQ(ask("/jane", "Bearer jane"), 0);
  reviewer.is_down = true;
  EXPECT_EQ(ask("/more", "Bearer jane"), 500);
  reviewer.is_down = false;
  EXPECT_EQ(ask("/more", "Bearer jane"), 403);
}

TEST_F(Delegated, CertificatesNeedNoReviewOfTokens) {
  net::HttpRequest request;
  request.path = "/jane";
  request.peer = net::PeerCertificate{.common_name = "jane", .organizations = {"dev"}};
  EXPECT_EQ(code_of(request), 0);
  EXPECT_EQ(json::serialize(json::get_array(reviewer.last, {"spec", "groups"})), R"(["dev","system:authenticated"])");
  request.peer->organizations = {"system:masters"};
  request.path = "/anything";
  EXPECT_EQ(code_of(request), 0) << "masters are not asked about";
  EXPECT_EQ(std::pair(reviewer.tokens, reviewer.accesses), std::pair(0, 1));
}

TEST_F(Delegated, ManyQuestionsAreNotKeptForEver) {
  for (int i = 0; i < 1001; ++i) EXPECT_EQ(ask(fmt::format("/{}", i), "Bearer jane"), 403);
  EXPECT_EQ(reviewer.accesses, 1001);
  EXPECT_EQ(ask("/1000", "Bearer jane"), 403);
  EXPECT_EQ(reviewer.accesses, 1001);
  EXPECT_EQ(ask("/0", "Bearer jane"), 403);
  EXPECT_EQ(reviewer.accesses, 1002) << "the first of more than a thousand is asked for again";
}

TEST(Undelegated, WithoutAServerOnlyMastersMay) {
  const VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  DelegatedAuth auth(nullptr, loop);
  const auto code = [&](const net::HttpRequest& request) {
    int out = -1;
    auth.check(request, "get", [&](std::optional<DelegatedAuth::Refusal> refusal) { out = refusal ? refusal->code : 0; });
    return out;
  };
  net::HttpRequest request;
  request.path = "/metrics";
  EXPECT_EQ(code(request), 403);
  request.headers.add("Authorization", "Bearer x");
  EXPECT_EQ(code(request), 401);
  request.peer = net::PeerCertificate{.common_name = "root", .organizations = {"system:masters"}};
  EXPECT_EQ(code(request), 0);
}

ObjectRef object(const std::string& ns, const std::string& name, const std::string& node, int revision) {
  return std::make_shared<Object>(json::Value(json::Object{
      {"metadata",
       json::Object{
           {"name", name}, {"namespace", ns}, {"resourceVersion", std::to_string(revision)}, {"labels", json::Object{{"node", node}}}}}}));
}

/// Whatever comes, changes and goes in whatever order: each index has what a look at everything finds.
TEST(InformerStore, IndexesAgreeWithALookAtEverything) {
  std::mt19937 random(11);
  InformerStore store;
  const auto by_node = [](const Object& one) {
    const std::string* node = one.labels().get("node");
    return node == nullptr || node->empty() ? std::vector<std::string>{} : std::vector<std::string>{*node, "all"};
  };
  store.add_index("node", by_node);
  std::map<std::pair<std::string, std::string>, ObjectRef> plain;
  for (int step = 0; step < 3000; ++step) {
    const std::string ns = fmt::format("n{}", random() % 3), name = fmt::format("o{}", random() % 12);
    const auto known = plain.find({ns, name});
    const ObjectRef before = known == plain.end() ? nullptr : known->second;
    if (random() % 3 == 0) {
      EXPECT_EQ(store.erase(ns, name), before);
      plain.erase({ns, name});
    } else {
      const auto made = object(ns, name, random() % 4 == 0 ? "" : fmt::format("k{}", random() % 3), step);
      EXPECT_EQ(store.put(made), before);
      plain[{ns, name}] = made;
    }
    if (step == 1000) store.add_index("node", by_node);
    ASSERT_EQ(store.size(), plain.size());
    std::vector<ObjectRef> all, in_n1, on_k1, with_node;
    for (const auto& [key, one] : plain) {
      all.push_back(one);
      if (key.first == "n1") in_n1.push_back(one);
      const auto keys = by_node(*one);
      if (!keys.empty()) with_node.push_back(one);
      if (!keys.empty() && keys[0] == "k1") on_k1.push_back(one);
    }
    std::vector<ObjectRef> visited, visited_in_n1;
    store.for_each([&](const ObjectRef& one) { visited.push_back(one); });
    store.for_each_in("n1", [&](const ObjectRef& one) { visited_in_n1.push_back(one); });
    ASSERT_EQ(store.all(), all) << step;
    ASSERT_EQ(visited, all) << step;
    ASSERT_EQ(visited_in_n1, in_n1) << step;
    ASSERT_EQ(store.by_index("node", "k1"), on_k1) << step;
    ASSERT_EQ(store.by_index("node", "all"), with_node) << step;
    ASSERT_EQ(store.get(ns, name), plain.contains({ns, name}) ? plain.at({ns, name}) : nullptr);
  }
  EXPECT_TRUE(store.by_index("another", "k1").empty());
  EXPECT_TRUE(store.by_index("node", "k9").empty());
}

class Correlated : public ::testing::Test {
 protected:
  std::optional<CoreEvent> tell(const std::string& message, const std::string& name = "p", const std::string& reason = "R") {
    CoreEvent event;
    event.involved.kind = "Pod";
    event.involved.name = name;
    event.involved.uid = "u-" + name;
    event.reason = reason;
    event.message = message;
    event.name = fmt::format("e{}", ++number);
    event.first = event.last = now;
    return correlator.correlate(std::move(event), now, fmt::format("combined{}", number));
  }
  EventCorrelator correlator;
  TimePoint now = *parse_rfc3339("2026-01-05T10:00:00Z");
  int number = 0;
};

TEST_F(Correlated, TheSameAgainIsCountedUnderItsFirstName) {
  const auto first = tell("m");
  now += seconds(5);
  const auto again = tell("m");
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->count, 1);
  EXPECT_EQ(again->count, 2);
  EXPECT_EQ(again->name, first->name);
  EXPECT_EQ(again->first, first->first);
  EXPECT_EQ(tell("other")->count, 1);
  EXPECT_EQ(tell("m", "q")->count, 1);
  EXPECT_EQ(tell("m", "p", "Other")->count, 1);
}

TEST_F(Correlated, TenDifferentOnesWithinTenMinutesAreOne) {
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(tell(std::to_string(i))->is_combined) << i;
  const auto tenth = tell("9");
  EXPECT_TRUE(tenth->is_combined);
  EXPECT_EQ(tenth->message, "(combined from similar events): 9");
  EXPECT_EQ(tenth->name, "combined10");
  now += minutes(1);
  const auto next = tell("10");
  EXPECT_TRUE(next->is_combined);
  EXPECT_EQ(next->count, 2);
  EXPECT_EQ(next->name, "combined10");
  now += minutes(10) + seconds(1);
  EXPECT_FALSE(tell("11")->is_combined) << "after ten minutes of quiet they are single again";
}

TEST_F(Correlated, OneObjectHasTwentyFiveAndThenOneInFiveMinutes) {
  int told = 0;
  for (int i = 0; i < 40; ++i) told += tell("m").has_value();
  EXPECT_EQ(told, 25);
  EXPECT_TRUE(tell("m", "q")) << "another's are not counted with them";
  now += seconds(299);
  EXPECT_FALSE(tell("m"));
  now += seconds(1);
  EXPECT_TRUE(tell("m"));
  EXPECT_FALSE(tell("m"));
  now += std::chrono::hours(24);
  told = 0;
  for (int i = 0; i < 40; ++i) told += tell("m").has_value();
  EXPECT_EQ(told, 25) << "never more than that at once";
}

TEST(LruCaches, KeepWhatWasUsedLast) {
  LruCache<int> cache(2);
  cache.get_or_make("a") = 1;
  cache.get_or_make("b") = 2;
  ASSERT_NE(cache.get("a"), nullptr);
  std::vector<int> evicted;
  cache.get_or_make("c", [&](int& value) { evicted.push_back(value); }) = 3;
  EXPECT_EQ(evicted, (std::vector<int>{2}));
  EXPECT_EQ(cache.get("b"), nullptr);
  EXPECT_EQ(*cache.get("a"), 1);
  cache.erase_if([](int value) { return value == 1; });
  EXPECT_EQ(cache.get("a"), nullptr);
  EXPECT_EQ(*cache.get("c"), 3);
}

}  // namespace
}  // namespace berth::client::test
