#include <filesystem>
#include <future>

#include "apiserver/admission/webhook_config.h"
#include "base/base64.h"
#include "net/server.h"
#include "security/pki.h"
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

/// An admission webhook as a user would write it: answers what `decide` makes of the review's request.
class HookHandler final : public net::Handler {
 public:
  using Decide = std::function<json::Object(const json::Value& request)>;
  explicit HookHandler(Decide decide) : decide_(std::move(decide)) {}
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    const auto review = json::parse(request.body);
    net::HttpResponse response;
    response.headers.add("Content-Type", "application/json");
    auto answer = decide_(review->at("request"));
    answer["uid"] = review->at("request").at("uid");
    response.body =
        json::serialize(json::Object{{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(answer)}});
    ++calls;
    writer->respond(std::move(response));
  }
  std::atomic<int> calls{0};

 private:
  Decide decide_;
};

class Webhooks : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    directory_ = std::filesystem::temp_directory_path() / fmt::format("berth-webhook-test-{}", ::getpid());
    security::PkiOptions options;
    options.directory = directory_;
    auto pki = security::Pki::open(options, SystemClock().now());
    ASSERT_TRUE(pki) << pki.error().message;
    ca_ = pki->ca_certificate_pem();
    tls_ = {pki->server().certificate_pem, pki->server().private_key_pem, ""};
  }
  void TearDown() override {
    ServerTest::TearDown();
    hook_.reset();
    std::filesystem::remove_all(directory_);
  }
  void serve(HookHandler::Decide decide) {
    handler_ = std::make_unique<HookHandler>(std::move(decide));
    net::ServerConfig config;
    config.tls = tls_;
    config.io_threads = 1;
    auto server = net::Server::start(config, *handler_);
    ASSERT_TRUE(server) << server.error().message;
    hook_ = std::move(*server);
  }
  void configure(const std::string& kind, const std::string& more = "", const std::string& failure_policy = "Fail") {
    const auto body = fmt::format(
        R"({{"metadata":{{"name":"w"}},"webhooks":[{{"name":"hook.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"{}","timeoutSeconds":5,
          "clientConfig":{{"url":"https://127.0.0.1:{}/check","caBundle":"{}"}},"rules":[{{"operations":["CREATE","UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}}]{}}}]}})",
        failure_policy, hook_ ? hook_->port() : 1, base64_encode(ca_), more);
    auto response = post(fmt::format("/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations", kind), body);
    ASSERT_EQ(response->status, 201) << response->body;
  }
  /// Sends and waits for the answer, which comes from the webhook client's thread.
  Response send_and_wait(const std::string& method, const std::string& path, const std::string& body) {
    net::HttpRequest request;
    request.method = method;
    const auto question = path.find('?');
    request.path = path.substr(0, question);
    if (question != std::string::npos) request.query = path.substr(question + 1);
    request.body = body;
    request.headers.add("Content-Type", "application/json");
    auto response = std::make_shared<RecordedResponse>();
    std::promise<void> answered;
    response->on_close([&answered] { answered.set_value(); });
    server_->handle(std::move(request), response);
    EXPECT_EQ(answered.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    return response;
  }
  std::filesystem::path directory_;
  std::string ca_;
  net::TlsServerConfig tls_;
  std::unique_ptr<HookHandler> handler_;
  std::unique_ptr<net::Server> hook_;
};

/// What answers for a webhook may send as much as it likes; the server reads what a patch could need.
TEST_F(Webhooks, AnAnswerThatIsTooLongIsAFailure) {
  serve([](const json::Value&) { return json::Object{{"allowed", true}, {"more", std::string(7 << 20, 'x')}}; });
  configure("validating");
  const auto refused = send_and_wait("POST", "/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(refused->status, 500) << refused->body.substr(0, 500);
  EXPECT_NE(refused->body.find("6291456"), std::string::npos) << refused->body.substr(0, 500);
}

/// Holds what it is asked until it is let go.
class SilentHandler final : public net::Handler {
 public:
  void handle(net::HttpRequest, std::shared_ptr<net::ResponseWriter> writer) override {
    const std::lock_guard lock(mutex_);
    asked_.push_back(std::move(writer));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<net::ResponseWriter>> asked_;
};

/// Who waits a second for an answer is not kept five by a webhook that says nothing.
TEST_F(Webhooks, AreWaitedForNoLongerThanTheRequestIs) {
  SilentHandler silent;
  net::ServerConfig config;
  config.tls = tls_;
  config.io_threads = 1;
  auto server = net::Server::start(config, silent);
  ASSERT_TRUE(server) << server.error().message;
  hook_ = std::move(*server);
  configure("validating");
  const auto refused = send_and_wait("POST", "/api/v1/namespaces/default/configmaps?timeout=1s", R"({"metadata":{"name":"a"}})");
  EXPECT_STATUS(refused, 500, "InternalError");
  EXPECT_NE(text(refused->document(), {"message"}).find("/check?timeout=1s\": context deadline exceeded"), std::string::npos)
      << text(refused->document(), {"message"});
  hook_.reset();
}

/// exec reaches a webhook as a CONNECT whose object are the options, and what it makes of them is what the node is asked for.
TEST_F(Webhooks, ASessionIsAskedForAndChanged) {
  std::string reached;
  ServerOptions options;
  options.node_backend = [&](const std::string&, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
    reached = request.path + "?" + request.query;
    writer->respond({.status = 200, .headers = {}, .body = ""});
    return true;
  };
  start(std::move(options));
  create(kPods, pod("web", R"("nodeName":"n1")"));
  serve([](const json::Value& request) {
    EXPECT_EQ(json::get_string(request, {"operation"}), "CONNECT");
    EXPECT_EQ(json::get_string(request, {"kind", "kind"}), "PodExecOptions");
    EXPECT_EQ(json::get_string(request, {"kind", "version"}), "v1");
    EXPECT_EQ(json::get_string(request, {"resource", "resource"}), "pods");
    EXPECT_EQ(json::get_string(request, {"subResource"}), "exec");
    EXPECT_EQ(json::get_string(request, {"name"}), "web");
    EXPECT_TRUE(request.at("options").is_null());
    EXPECT_EQ(json::serialize(request.at("object")),
              R"({"kind":"PodExecOptions","apiVersion":"v1","stdout":true,"container":"c","command":["sh","-c","id"]})");
    return json::Object{{"allowed", true},
                        {"patchType", "JSONPatch"},
                        {"patch", base64_encode(R"([{"op":"replace","path":"/command","value":["true"]}])")}};
  });
  configure("mutating", R"(,"matchConditions":[])");
  ASSERT_EQ(patch("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/w",
                  R"([{"op":"replace","path":"/webhooks/0/rules/0/operations","value":["CONNECT"]},
                      {"op":"replace","path":"/webhooks/0/rules/0/resources","value":["pods/exec"]}])",
                  "json")
                ->status,
            200);
  const auto done = send_and_wait("POST", std::string(kPods) + "/web/exec?command=sh&command=-c&command=id&container=c&stdout=true", "");
  EXPECT_EQ(done->status, 200) << done->body;
  EXPECT_EQ(reached, "/exec/default/web/c?output=1&command=true");
  hook_->stop(0);
  EXPECT_EQ(send_and_wait("POST", std::string(kPods) + "/web/exec?command=ls", "")->status, 500) << "it must say yes";
}

TEST_F(Webhooks, ValidatingRefusesInItsOwnWords) {
  serve([](const json::Value& request) {
    EXPECT_EQ(json::get_string(request, {"operation"}), "CREATE");
    EXPECT_EQ(json::get_string(request, {"userInfo", "username"}), "system:admin");
    if (json::get_string(request, {"object", "data", "x"}) == "bad")
      return json::Object{{"allowed", false}, {"status", json::Object{{"message", "x is bad"}, {"code", 403}}}};
    return json::Object{{"allowed", true}, {"warnings", json::Array{"think again"}}};
  });
  configure("validating");
  auto refused = send_and_wait("POST", kMaps, config_map("a", R"({"x":"bad"})"));
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(text(refused->document(), {"message"}), "admission webhook \"hook.example.com\" denied the request: x is bad");
  auto passed = send_and_wait("POST", kMaps, config_map("b", R"({"x":"good"})"));
  EXPECT_EQ(passed->status, 201) << passed->body;
  EXPECT_EQ(passed->headers.get("Warning"), "299 - \"think again\"");
  EXPECT_EQ(handler_->calls, 2);
  create("/api/v1/namespaces/default/secrets", R"({"metadata":{"name":"s"}})");
  EXPECT_EQ(handler_->calls, 2) << "no rule, no call";
}

TEST_F(Webhooks, MutatingPatchesTheObject) {
  serve([](const json::Value&) {
    return json::Object{{"allowed", true},
                        {"patchType", "JSONPatch"},
                        {"patch", base64_encode(R"([{"op":"add","path":"/metadata/labels","value":{"team":"blue"}}])")}};
  });
  configure("mutating");
  auto made = send_and_wait("POST", kMaps, config_map("a"));
  EXPECT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(text(made->document(), {"metadata", "labels", "team"}), "blue");
}

/// Who changes an object on its way makes no other object of it (rest.BeforeCreate, rest.BeforeUpdate).
TEST_F(Webhooks, MutatingMovesNothing) {
  std::string change;
  serve([&](const json::Value&) {
    if (change.empty()) return json::Object{{"allowed", true}};
    return json::Object{{"allowed", true}, {"patchType", "JSONPatch"}, {"patch", base64_encode("[" + change + "]")}};
  });
  configure("mutating");
  ASSERT_EQ(post("/api/v1/namespaces", R"({"metadata":{"name":"other"}})")->status, 201);
  const auto set = [](const std::string& path, const std::string& value) {
    return fmt::format(R"({{"op":"add","path":"{}","value":"{}"}})", path, value);
  };
  const auto create_with = [&](std::string with) {
    change = std::move(with);
    return send_and_wait("POST", kMaps, config_map("a"));
  };
  constexpr std::string_view kElsewhere = "the namespace of the provided object does not match the namespace sent on the request";
  auto refused = create_with(set("/metadata/namespace", "other"));
  EXPECT_STATUS(refused, 400, "BadRequest");
  EXPECT_EQ(text(refused->document(), {"message"}), kElsewhere);
  EXPECT_EQ(get("/api/v1/namespaces/other/configmaps/a")->status, 404);
  EXPECT_GE(create_with(set("/kind", "Secret"))->status, 400);
  EXPECT_GE(create_with(set("/apiVersion", "v2"))->status, 400);
  EXPECT_EQ(get("/api/v1/namespaces/default/secrets/a")->status, 404);
  EXPECT_EQ(text(create_with(set("/metadata/resourceVersion", "7"))->document(), {"message"}),
            "resourceVersion should not be set on objects to be created");
  // The store minds it, after everybody else: what is wrong with the object is said before.
  EXPECT_STATUS(create_with(set("/metadata/resourceVersion", "7") + "," + set("/metadata/name", "B_")), 422, "Invalid");
  // What only the system gives is the system's all the same; another name is the object's.
  auto made = create_with(set("/metadata/uid", "mine") + "," + set("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z") + "," +
                          set("/metadata/name", "b"));
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_NE(text(made->document(), {"metadata", "uid"}), "mine");
  EXPECT_EQ(json::find(made->document(), {"metadata", "deletionTimestamp"}), nullptr);
  EXPECT_EQ(get(std::string(kMaps) + "/a")->status, 404);
  EXPECT_EQ(get(std::string(kMaps) + "/b")->status, 200);

  const std::string before = get(std::string(kMaps) + "/b")->body;
  const auto update_with = [&](std::string with) {
    change = std::move(with);
    return send_and_wait("PUT", std::string(kMaps) + "/b", config_map("b", R"({"x":"y"})"));
  };
  EXPECT_EQ(text(update_with(set("/metadata/namespace", "other"))->document(), {"message"}), kElsewhere);
  for (const auto& [field, value] : {std::pair("name", "c"), {"uid", "mine"}}) {
    refused = update_with(set(fmt::format("/metadata/{}", field), value));
    EXPECT_STATUS(refused, 422, "Invalid");
    EXPECT_NE(refused->body.find(fmt::format(R"(metadata.{}: Invalid value: \"{}\": field is immutable)", field, value)), std::string::npos)
        << refused->body;
  }
  EXPECT_STATUS(update_with(set("/metadata/resourceVersion", "1")), 409, "Conflict");
  EXPECT_GE(update_with(set("/kind", "Secret"))->status, 400);
  EXPECT_EQ(get(std::string(kMaps) + "/b")->body, before) << "nothing of it was stored";
  EXPECT_EQ(get(std::string(kMaps) + "/c")->status, 404);
  made = update_with(set("/metadata/creationTimestamp", "2001-01-01T00:00:00Z") + "," +
                     R"({"op":"remove","path":"/metadata/resourceVersion"})");
  ASSERT_EQ(made->status, 200) << made->body;
  EXPECT_EQ(text(made->document(), {"metadata", "creationTimestamp"}), text(*json::parse(before), {"metadata", "creationTimestamp"}));
}

/// A patch can make more of an object than a request could have sent.
TEST_F(Webhooks, MutatingMakesNothingThatIsTooLarge) {
  serve([](const json::Value&) {
    const auto part = [](int i) {
      return fmt::format(R"({{"op":"add","path":"/metadata/annotations/a{}","value":"{}"}})", i, std::string(400'000, 'x'));
    };
    std::string operations = R"([{"op":"add","path":"/metadata/annotations","value":{}})";
    for (int i = 0; i < 8; ++i) operations += "," + part(i);
    return json::Object{{"allowed", true}, {"patchType", "JSONPatch"}, {"patch", base64_encode(operations + "]")}};
  });
  configure("mutating");
  const auto refused = send_and_wait("POST", kMaps, config_map("a"));
  EXPECT_STATUS(refused, 413, "RequestEntityTooLarge");
  EXPECT_TRUE(text(refused->document(), {"message"}).starts_with("Request entity too large: limit is 3145728")) << refused->body;
}

/// What a webhook makes of the audiences is what the token is for, not only what the answer says.
TEST_F(Webhooks, MutatingATokenRequestChangesTheToken) {
  class Issuer final : public TokenIssuer {
   public:
    model::ApiResult<IssuedToken> issue(const TokenSpec& spec) override {
      audiences = spec.audiences;
      return IssuedToken{"token", TimePoint{}};
    }
    std::vector<std::string> audiences;
  };
  const auto issuer = std::make_shared<Issuer>();
  ServerOptions options;
  options.token_issuer = issuer;
  start(std::move(options));
  serve([](const json::Value&) {
    return json::Object{{"allowed", true},
                        {"patchType", "JSONPatch"},
                        {"patch", base64_encode(R"([{"op":"add","path":"/spec/audiences","value":["changed"]}])")}};
  });
  create("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"a"}})");
  configure("mutating");
  ASSERT_EQ(patch("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/w",
                  R"([{"op":"replace","path":"/webhooks/0/rules/0/resources","value":["serviceaccounts/token"]}])", "json")
                ->status,
            200);
  auto made = send_and_wait("POST", "/api/v1/namespaces/default/serviceaccounts/a/token", R"({"spec":{"audiences":["asked"]}})");
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(json::get_array(made->document(), {"spec", "audiences"})[0].as_string(), "changed");
  EXPECT_EQ(issuer->audiences, std::vector<std::string>{"changed"});
}

TEST_F(Webhooks, TheirUrlsArePlacesAndNothingElse) {
  int count = 0;
  const auto refusal = [&](const std::string& url) {
    auto response =
        post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
             fmt::format(R"({{"metadata":{{"name":"u{}"}},"webhooks":[{{"name":"hook.example.com","admissionReviewVersions":["v1"],
                           "sideEffects":"None","clientConfig":{{"url":"{}"}},"rules":[]}}]}})",
                         ++count, url));
    return response->status == 201 ? std::string() : text(response->document(), {"message"});
  };
  EXPECT_NE(refusal("http://h/x").find("'https' is the only allowed URL scheme; desired format: https://host[/path]"), std::string::npos);
  EXPECT_NE(refusal("https:///x").find("host must be specified"), std::string::npos);
  EXPECT_NE(refusal("https://me:secret@h/x").find("user information is not permitted in the URL"), std::string::npos);
  EXPECT_NE(refusal("https://h/x#y").find("fragments are not permitted in the URL"), std::string::npos);
  EXPECT_NE(refusal("https://h/x?y=z").find("query parameters are not permitted in the URL"), std::string::npos);
  EXPECT_EQ(refusal("https://h:8443/x"), "");
  EXPECT_EQ(refusal("https://[::1]:8443/x"), "");
  EXPECT_NE(
      refusal("https://[::1").find("url must be a valid URL: parse \"https://[::1\": missing ']' in host; desired format: https://host"),
      std::string::npos)
      << refusal("https://[::1");
  EXPECT_NE(refusal("https://a b").find("invalid character \" \" in host name"), std::string::npos);
  EXPECT_NE(refusal("https://h:port/x").find("invalid port \":port\" after host"), std::string::npos);
  EXPECT_NE(refusal("https://h/%zz").find("invalid URL escape"), std::string::npos);
}

TEST_F(Webhooks, FailurePolicyDecidesWhenNobodyAnswers) {
  configure("validating");
  auto failed = send_and_wait("POST", kMaps, config_map("a"));
  EXPECT_EQ(failed->status, 500);
  EXPECT_TRUE(text(failed->document(), {"message"})
                  .starts_with("Internal error occurred: failed calling webhook \"hook.example.com\": failed to call webhook: Post "
                               "\"https://127.0.0.1:1/check?timeout=5s\""))
      << failed->body;
  remove("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/w");
  configure("validating", "", "Ignore");
  EXPECT_EQ(send_and_wait("POST", kMaps, config_map("a"))->status, 201);
}

TEST_F(Webhooks, SelectorsAndMatchConditions) {
  serve([](const json::Value&) { return json::Object{{"allowed", false}}; });
  configure(
      "validating",
      R"(,"objectSelector":{"matchLabels":{"guard":"on"}},"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["default"]}]})");
  EXPECT_EQ(post(kMaps, config_map("a"))->status, 201);
  auto refused = send_and_wait("POST", kMaps, config_map("b", "{}", R"({"guard":"on"})"));
  EXPECT_EQ(refused->status, 400);
  EXPECT_EQ(text(refused->document(), {"message"}), "admission webhook \"hook.example.com\" denied the request without explanation");
}

TEST_F(Webhooks, MatchConditionsDecideAndMustCompile) {
  serve([](const json::Value&) { return json::Object{{"allowed", false}}; });
  const std::string path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const auto wrong = post(
      path,
      R"({"metadata":{"name":"cel"},"webhooks":[{"name":"c.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{"url":"https://127.0.0.1:1/"},"matchConditions":[{"name":"a","expression":"nope"},{"name":"b","expression":"1"}]}]})");
  EXPECT_STATUS(wrong, 422, "Invalid");
  EXPECT_NE(
      wrong->body.find(
          "webhooks[0].matchConditions[0].expression: Invalid value: \\\"nope\\\": compilation failed: ERROR: <input>:1:1: undeclared "
          "reference to 'nope' (in container '')"),
      std::string::npos)
      << wrong->body;
  EXPECT_NE(wrong->body.find("must evaluate to bool but got int"), std::string::npos) << wrong->body;
  configure("validating", R"json(,"matchConditions":[{"name":"named","expression":"object.metadata.name.startsWith('guarded')"},
    {"name":"not-system","expression":"!request.userInfo.groups.exists(g, g == 'nobody')"}])json");
  EXPECT_EQ(send_and_wait("POST", kMaps, config_map("free"))->status, 201);
  EXPECT_EQ(send_and_wait("POST", kMaps, config_map("guarded"))->status, 400);
  remove(path + "/w");
  configure("validating", R"(,"matchConditions":[{"name":"broken","expression":"object.metadata.nope == 1"}])");
  const auto failed = send_and_wait("POST", kMaps, config_map("c"));
  EXPECT_EQ(failed->status, 403);
  EXPECT_EQ(text(failed->document(), {"message"}),
            "configmaps \"c\" is forbidden: expression 'object.metadata.nope == 1' resulted in error: no such key: nope");
}

/// What stands below a pod is shown to webhooks as the kind that was sent.
TEST_F(Webhooks, SubresourcesAreShownAsWhatTheyAre) {
  std::mutex mutex;
  std::vector<std::string> seen;
  serve([&](const json::Value& request) {
    const std::lock_guard lock(mutex);
    seen.push_back(fmt::format("{} {} {} {}", json::get_string(request, {"subResource"}), json::get_string(request, {"kind", "kind"}),
                               json::get_string(request, {"object", "apiVersion"}), json::get_string(request, {"object", "kind"})));
    return json::Object{{"allowed", true}};
  });
  const auto made = post(
      "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
      fmt::format(
          R"({{"metadata":{{"name":"w"}},"webhooks":[{{"name":"hook.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","timeoutSeconds":5,
          "clientConfig":{{"url":"https://127.0.0.1:{}/check","caBundle":"{}"}},"rules":[{{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods/eviction","pods/binding"]}}]}}]}})",
          hook_->port(), base64_encode(ca_)));
  ASSERT_EQ(made->status, 201) << made->body;
  const std::string pods = "/api/v1/namespaces/default/pods";
  ASSERT_EQ(post(pods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})")->status, 201);
  const auto bound = send_and_wait("POST", pods + "/p/binding", R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})");
  EXPECT_EQ(bound->status, 201) << bound->body;
  const auto gone = send_and_wait("POST", pods + "/p/eviction", R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}})");
  EXPECT_EQ(gone->status, 201) << gone->body;
  EXPECT_EQ(seen, (std::vector<std::string>{"binding Binding v1 Binding", "eviction Eviction policy/v1 Eviction"}));
}

}  // namespace
}  // namespace berth::apiserver::testing
