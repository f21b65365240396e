// Group versions that another API server serves: when they are available, how requests reach it, and what clients see (issue 20, item 2).
#include <future>

#include "apiserver/aggregation/registrations.h"
#include "apiserver/auth/authenticator.h"
#include "base/base64.h"
#include "net/server.h"
#include "security/pki.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/store/store_fixture.h"
#include "tests/support/usage.h"

namespace berth::apiserver::testing {
namespace {

using berth::test::comes_true;

constexpr const char* kServices = "/apis/apiregistration.k8s.io/v1/apiservices";

/// An aggregated API server as somebody would write it: one kind, `jobs`, in shop.example.com/v1.
class ShopServer final : public net::Handler {
 public:
  ShopServer(const security::KeyPair& identity, const std::string& proxy_ca) {
    net::ServerConfig config;
    config.tls = net::TlsServerConfig{identity.certificate_pem, identity.private_key_pem, "", "", {}, proxy_ca};
    server_ = std::move(*net::Server::start(config, *this));
  }
  ~ShopServer() override { server_->stop(0); }
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    const auto answer = [&](int status, std::string body) {
      net::Headers headers;
      headers.add("Content-Type", "application/json");
      writer->respond({.status = status, .headers = std::move(headers), .body = std::move(body)});
    };
    if (request.path == "/apis/shop.example.com/v1")
      return answer(
          is_well ? 200 : 500,
          R"({"kind":"APIResourceList","apiVersion":"v1","groupVersion":"shop.example.com/v1","resources":[{"name":"orders","singularName":"order","namespaced":true,"kind":"Order","verbs":["get","list","watch"],"shortNames":["ord"]},{"name":"orders/status","singularName":"","namespaced":true,"kind":"Order","verbs":["get"]}]})");
    if (request.path == "/openapi/v2")
      return answer(
          200,
          R"({"swagger":"2.0","info":{"title":"shop","version":"1"},"paths":{"/apis/shop.example.com/v1/orders":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/io.k8s.api.core.v1.Pod"}}}}},"/apis/other/v1/x":{}},"definitions":{"com.example.Order":{"type":"object"},"io.k8s.api.core.v1.Pod":{"type":"object","description":"another one"}}})");
    if (request.path == "/openapi/v3")
      return answer(200, R"({"paths":{"apis/shop.example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/shop.example.com/v1?hash=AB"}}})");
    if (request.path == "/openapi/v3/apis/shop.example.com/v1") return answer(200, R"({"openapi":"3.0.0","info":{"title":"shop"}})");
    if (request.query.find("watch=1") != std::string::npos) {
      writer->start_stream(200, {});
      writer->write(make_bytes(std::string("{\"type\":\"ADDED\"}\n")));
      ++open;
      return writer->on_close([this, writer] { --open; });
    }
    if (request.path.ends_with("/elsewhere")) {
      net::Headers headers;
      headers.add("Location", "https://elsewhere.example.com/take");
      return writer->respond({.status = 307, .headers = std::move(headers), .body = "go there"});
    }
    if (request.path.ends_with("/unmodified")) return writer->respond({.status = 304, .headers = {}, .body = ""});
    if (request.path.ends_with("/switch")) {
      net::Headers headers;
      headers.add("Connection", "Upgrade");
      headers.add("Upgrade", "spdy");
      return writer->respond({.status = 101, .headers = std::move(headers), .body = ""});
    }
    {
      const std::lock_guard lock(mutex_);
      last_ = std::move(request);
    }
    answer(200, R"({"kind":"OrderList"})");
  }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  net::HttpRequest last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  std::atomic<bool> is_well{true};
  std::atomic<int> open{0};

 private:
  std::mutex mutex_;
  net::HttpRequest last_;
  std::unique_ptr<net::Server> server_;
};

class Aggregation : public ::testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::make_unique<ThreadLoop>("aggregation-test");
    auto cache = open_object_cache(store::make_memory_store(), clock_, {}, false);
    ASSERT_TRUE(cache) << cache.error().message;
    ServerOptions options;
    options.cache = std::move(*cache);
    options.loop = loop_.get();
    const auto trusting = std::make_shared<TrustingAuth>("jane");
    options.authenticator = trusting;
    options.authorizer = std::make_shared<PickyAuthorizer>([](const UserInfo&, const Attributes& asked) { return asked.name != "secret"; });
    auto api = ApiServer::create(std::move(options));
    ASSERT_TRUE(api) << api.error().message;
    api_ = std::move(*api);
    server_ = std::move(*net::Server::start({}, *api_));
    api_->serves_on(server_->port());
    client_ = std::move(*net::HttpClient::create({.url = fmt::format("http://127.0.0.1:{}", server_->port())}));
    pki_.emplace(std::move(*security::Pki::open({.directory = directory_.file("pki")}, clock_.now())));
    const auto proxy = pki_->front_proxy(clock_.now());
    ASSERT_TRUE(proxy) << proxy.error().message;
    proxy_ca_ = proxy->ca_pem;
    api_->set_front_proxy(proxy->client.certificate_pem, proxy->client.private_key_pem);
    shop_ = std::make_unique<ShopServer>(*pki_->server_certificate("shop", "shop", {}, {"shop.default.svc"}, clock_.now()), proxy_ca_);
  }
  void TearDown() override {
    client_.reset();
    if (server_) server_->stop(0);
    server_.reset();
    api_.reset();
    shop_.reset();
    if (loop_) loop_->stop();
  }
  net::HttpResponse send(const std::string& method, const std::string& path, const std::string& body = {},
                         std::vector<std::pair<std::string, std::string>> headers = {}) {
    net::HttpRequest request;
    request.method = method;
    const auto question = path.find('?');
    request.path = path.substr(0, question);
    if (question != std::string::npos) request.query = path.substr(question + 1);
    request.body = body;
    if (!body.empty()) request.headers.add("Content-Type", "application/json");
    for (auto& [name, value] : headers) request.headers.add(name, value);
    std::promise<net::HttpResponse> answer;
    client_->send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }
  json::Value read(const std::string& path, const std::string& accept = "application/json") {
    const auto response = send("GET", path, "", {{"Accept", accept}});
    EXPECT_EQ(response.status, 200) << path << ": " << response.body;
    return *json::parse(response.body);
  }
  void service() {
    ASSERT_EQ(send("POST", "/api/v1/namespaces/default/services",
                   R"({"metadata":{"name":"shop"},"spec":{"type":"ExternalName","externalName":"localhost"}})")
                  .status,
              201);
  }
  void registration(int port, const std::string& trust, int priority = 2000) {
    const auto made = send(
        "POST", kServices,
        fmt::format(
            R"({{"metadata":{{"name":"v1.shop.example.com"}},"spec":{{"group":"shop.example.com","version":"v1","groupPriorityMinimum":{},"versionPriority":10,"service":{{"namespace":"default","name":"shop","port":{}}}{}}}}})",
            priority, port, trust));
    ASSERT_EQ(made.status, 201) << made.body;
  }
  std::string trust() const { return fmt::format(R"(,"caBundle":"{}")", base64_encode(pki_->ca_certificate_pem())); }
  /// "True Passed: all checks passed"
  std::string condition(const std::string& name = "v1.shop.example.com") {
    const auto document = read(std::string(kServices) + "/" + name);
    for (const auto& one : json::get_array(document, {"status", "conditions"}))
      return fmt::format("{} {}: {}", json::get_string(one, {"status"}), json::get_string(one, {"reason"}),
                         json::get_string(one, {"message"}));
    return "";
  }
  void expect_condition(const std::string& wanted) {
    EXPECT_TRUE(comes_true([&] { return condition().starts_with(wanted); })) << condition();
  }
  /// The shop is there, and reached: who passes requests on hears of the condition a moment after it can be read.
  void open_shop() {
    service();
    registration(shop_->port(), trust());
    expect_condition("True Passed: all checks passed");
    EXPECT_TRUE(comes_true([&] { return send("GET", "/apis/shop.example.com/v1/orders").status == 200; }));
  }
  SystemClock clock_;
  store::TemporaryDirectory directory_;
  std::optional<security::Pki> pki_;
  std::string proxy_ca_;
  std::unique_ptr<ShopServer> shop_;
  std::unique_ptr<ThreadLoop> loop_;
  std::unique_ptr<ApiServer> api_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<net::HttpClient> client_;
};

TEST_F(Aggregation, ConditionsSayWhyNobodyAnswers) {
  registration(443, "");
  expect_condition(R"(False ServiceNotFound: service/shop in "default" is not present)");
  const auto refused = send("GET", "/apis/shop.example.com/v1/orders");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body, "service unavailable\n");
  ASSERT_EQ(
      send("POST", "/api/v1/namespaces/default/services", R"({"metadata":{"name":"shop"},"spec":{"ports":[{"name":"web","port":80}]}})")
          .status,
      201);
  expect_condition(R"(False ServicePortError: service/shop in "default" is not listening on port 443)");
  ASSERT_EQ(send("DELETE", std::string(kServices) + "/v1.shop.example.com").status, 200);
  registration(80, "");
  expect_condition(R"(False EndpointsNotFound: cannot find endpointslices for service/shop in "default")");
  const auto slice =
      R"({"metadata":{"name":"shop-1","labels":{"kubernetes.io/service-name":"shop"}},"addressType":"IPv4","ports":[{"name":"other","port":1}],"endpoints":[{"addresses":["192.0.2.1"]}]})";
  ASSERT_EQ(send("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice).status, 201);
  expect_condition(R"(False MissingEndpoints: endpointslices for service/shop in "default" have no addresses with port name "web")");
  EXPECT_EQ(condition("v1.apps"), "True Local: Local APIServices are always available");
  // Discovery shows what is registered, so that clients say what is missing and not that there is nothing.
  EXPECT_NE(json::serialize(read("/apis")).find("shop.example.com"), std::string::npos);
}

TEST_F(Aggregation, RequestsGoOnAsTheUser) {
  open_shop();
  const auto answer = send("GET", "/apis/shop.example.com/v1/namespaces/default/orders?limit=5", "",
                           {{"X-Remote-User", "system:admin"}, {"X-Remote-Group", "system:masters"}, {"Authorization", "Bearer mine"}});
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body, R"({"kind":"OrderList"})");
  const auto seen = shop_->last();
  EXPECT_EQ(seen.path, "/apis/shop.example.com/v1/namespaces/default/orders");
  EXPECT_EQ(seen.query, "limit=5");
  EXPECT_EQ(seen.headers.get("X-Remote-User"), "jane");
  EXPECT_EQ(seen.headers.get("Authorization"), "") << "the user's credentials are not for others";
  std::vector<std::string> groups;
  for (const auto& [name, value] : seen.headers.fields())
    if (name == "X-Remote-Group") groups.push_back(value);
  EXPECT_EQ(groups, (std::vector<std::string>{"system:masters", "system:authenticated"}));
  ASSERT_TRUE(seen.peer);
  EXPECT_EQ(seen.peer->common_name, "front-proxy-client");
  EXPECT_TRUE(seen.peer->is_front_proxy);
  EXPECT_FALSE(seen.peer->is_client);
  EXPECT_EQ(send("GET", "/apis/shop.example.com/v1/namespaces/default/orders/secret").status, 403) << "asked here first";
  EXPECT_EQ(send("PATCH", "/apis/shop.example.com/v1/namespaces/default/orders/a", R"({"x":1})").status, 200);
  EXPECT_EQ(shop_->last().method + shop_->last().body, R"(PATCH{"x":1})");
}

/// CVE-2022-3172: the client would follow, with its credentials.
TEST_F(Aggregation, NobodyIsLedElsewhere) {
  open_shop();
  const std::string orders = "/apis/shop.example.com/v1/namespaces/default/orders";
  const auto refused = send("GET", orders + "/elsewhere");
  EXPECT_EQ(refused.status, 502);
  EXPECT_EQ(refused.body, "the backend attempted to redirect this request, which is not permitted");
  EXPECT_EQ(refused.headers.get("Location"), "");
  EXPECT_EQ(send("GET", orders + "/unmodified").status, 304) << "which leads nowhere";
  const auto switched = send("GET", orders + "/switch");
  EXPECT_EQ(switched.status, 503);
  EXPECT_EQ(switched.body, "backend tried to switch protocol \"spdy\" when \"\" was requested\n");
  // Asked for a session, it may refuse, but not send the client away.
  std::promise<net::HttpResponse> answer;
  net::HttpRequest request;
  request.method = "GET";
  request.path = orders + "/elsewhere";
  request.headers.add("Connection", "Upgrade");
  request.headers.add("Upgrade", "websocket");
  const auto call_off = client_->upgrade(std::move(request), [&](std::unique_ptr<net::RawStream> stream, net::HttpResponse response) {
    EXPECT_EQ(stream, nullptr);
    answer.set_value(std::move(response));
  });
  const auto answered = answer.get_future().get();
  EXPECT_EQ(answered.status, 503);
  EXPECT_EQ(answered.body, "invalid upgrade response: status code 307\n");
  EXPECT_EQ(answered.headers.get("Location"), "");
  EXPECT_EQ(send("GET", orders).status, 200) << "and it goes on";
}

TEST_F(Aggregation, DiscoveryAndOpenApiAreMergedAndWithdrawn) {
  open_shop();
  constexpr const char* kAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  const auto list = read("/apis", kAggregated);
  const auto& items = json::get_array(list, {"items"});
  const auto shop = std::ranges::find_if(items, [](const auto& one) {
    return json::get_string(one, {"metadata", "name"}) == "shop.example.com";
  });
  ASSERT_NE(shop, items.end());
  EXPECT_EQ(
      json::serialize(shop->at("versions")),
      R"([{"version":"v1","resources":[{"resource":"orders","responseKind":{"group":"shop.example.com","version":"v1","kind":"Order"},"scope":"Namespaced","singularResource":"order","verbs":["get","list","watch"],"shortNames":["ord"],"subresources":[{"subresource":"status","responseKind":{"group":"shop.example.com","version":"v1","kind":"Order"},"verbs":["get"]}]}],"freshness":"Current"}])");
  EXPECT_EQ(json::get_string(read("/apis/shop.example.com"), {"preferredVersion", "groupVersion"}), "shop.example.com/v1");
  EXPECT_EQ(json::get_array(read("/apis/shop.example.com/v1"), {"resources"}).size(), 2U);
  EXPECT_TRUE(comes_true([&] { return json::find(read("/openapi/v2"), {"definitions", "com.example.Order"}) != nullptr; }));
  const auto openapi = read("/openapi/v2");
  EXPECT_EQ(json::get_string(openapi, {"paths", "/apis/shop.example.com/v1/orders", "get", "responses", "200", "schema", "$ref"}),
            "#/definitions/io.k8s.api.core.v1.Pod_v2")
      << "another definition under the same name does not replace this server's";
  EXPECT_NE(json::find(openapi, {"definitions", "io.k8s.api.core.v1.Pod", "properties", "spec"}), nullptr);
  EXPECT_EQ(json::find(openapi, {"paths", "/apis/other/v1/x"}), nullptr) << "only what was registered";
  EXPECT_TRUE(comes_true([&] {
    return json::get_string(read("/openapi/v3"), {"paths", "apis/shop.example.com/v1", "serverRelativeURL"}) ==
           "/openapi/v3/apis/shop.example.com/v1?hash=AB";
  }));
  EXPECT_EQ(json::get_string(read("/openapi/v3/apis/shop.example.com/v1"), {"info", "title"}), "shop");

  ASSERT_EQ(send("DELETE", std::string(kServices) + "/v1.shop.example.com").status, 200);
  EXPECT_TRUE(comes_true([&] { return json::serialize(read("/apis", kAggregated)).find("shop.example.com") == std::string::npos; }));
  EXPECT_EQ(json::find(read("/openapi/v2"), {"definitions", "com.example.Order"}), nullptr);
  EXPECT_EQ(send("GET", "/apis/shop.example.com/v1").status, 404);
  EXPECT_EQ(send("GET", "/apis/shop.example.com/v1/namespaces/default/orders").status, 404);
}

TEST_F(Aggregation, OnlyWhoTheBundleVouchesForIsBelieved) {
  service();
  const auto stranger = security::Pki::open({.directory = directory_.file("stranger")}, clock_.now());
  registration(shop_->port(), fmt::format(R"(,"caBundle":"{}")", base64_encode(stranger->ca_certificate_pem())));
  expect_condition(fmt::format(
      "False FailedDiscoveryCheck: failing or missing response from https://localhost:{}/apis/shop.example.com/v1: Get", shop_->port()));
  EXPECT_EQ(send("GET", "/apis/shop.example.com/v1/orders").status, 503);
  ASSERT_EQ(send("DELETE", std::string(kServices) + "/v1.shop.example.com").status, 200);
  registration(shop_->port(), R"(,"insecureSkipTLSVerify":true)");
  expect_condition("True Passed");
  shop_->is_well = false;
  EXPECT_TRUE(comes_true([&] { return condition().starts_with("False FailedDiscoveryCheck"); }, std::chrono::seconds(20)));
  EXPECT_NE(condition().find("bad status from https://localhost"), std::string::npos) << condition();
}

TEST_F(Aggregation, AWatchIsPassedOnAsItComes) {
  open_shop();
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/apis/shop.example.com/v1/orders";
  request.query = "watch=1";
  std::promise<std::string> first;
  std::atomic<bool> is_told{false};
  net::StreamCallbacks callbacks;
  callbacks.on_header = [](int status, const net::Headers&) { EXPECT_EQ(status, 200); };
  callbacks.on_data = [&](std::string_view data) {
    if (!is_told.exchange(true)) first.set_value(std::string(data));
  };
  callbacks.on_end = [](const std::string&) {};
  auto stream = client_->stream(std::move(request), std::move(callbacks));
  EXPECT_EQ(first.get_future().get(), "{\"type\":\"ADDED\"}\n");
  EXPECT_EQ(shop_->open, 1);
  stream.reset();
  EXPECT_TRUE(comes_true([&] { return shop_->open == 0; })) << "who goes takes the other half along";
}

/// A Service that leads back here would have the server ask itself for ever.
TEST_F(Aggregation, NeverTheServerItself) {
  service();
  registration(server_->port(), R"(,"insecureSkipTLSVerify":true)");
  expect_condition("False FailedDiscoveryCheck");
  EXPECT_NE(condition().find("is this API server itself"), std::string::npos) << condition();
}

/// What this server serves by itself comes back when the registration of another goes.
TEST_F(Aggregation, ABuiltInGroupCanBeHandedOverAndComesBack) {
  service();
  const auto patched = send(
      "PUT", std::string(kServices) + "/v1.shop.example.com",
      R"({"metadata":{"name":"v1.shop.example.com"},"spec":{"group":"shop.example.com","version":"v1","groupPriorityMinimum":1,"versionPriority":1}})");
  EXPECT_EQ(patched.status, 404);
  ASSERT_EQ(send("DELETE", std::string(kServices) + "/v2.autoscaling").status, 200);
  EXPECT_TRUE(comes_true([&] { return send("GET", std::string(kServices) + "/v2.autoscaling").status == 200; }));
  EXPECT_EQ(send("GET", "/apis/autoscaling/v2/horizontalpodautoscalers").status, 200);
}

TEST(FrontProxy, HeadersSpeakForWhomTheProxyAsks) {
  auto authenticator = auth::make_authenticator({.front_proxy = {.allowed_names = {"front-proxy-client"}}});
  net::HttpRequest request;
  request.peer = net::PeerCertificate{.common_name = "front-proxy-client", .is_client = false, .is_front_proxy = true};
  for (const auto& [name, value] :
       {std::pair("X-Remote-User", "jane"), std::pair("x-remote-group", "dev"), std::pair("X-Remote-Group", "ops"),
        std::pair("X-Remote-Uid", "7"), std::pair("X-Remote-Extra-Acme.com%2Fproject", "x")})
    request.headers.add(name, value);
  const auto user = authenticator->authenticate(request);
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "jane");
  EXPECT_EQ(user->uid, "7");
  EXPECT_EQ(user->groups, (std::vector<std::string>{"dev", "ops", "system:authenticated"}));
  EXPECT_EQ(user->extra.at("acme.com/project"), std::vector<std::string>{"x"});
  request.peer->common_name = "somebody";
  EXPECT_FALSE(authenticator->authenticate(request)) << "a name that is not allowed is nobody";
  request.peer = net::PeerCertificate{.common_name = "mallory"};
  EXPECT_EQ(authenticator->authenticate(request)->name, "mallory") << "a client's headers say nothing";
  request.peer = std::nullopt;
  EXPECT_EQ(authenticator->authenticate(request)->name, "system:anonymous");
}

TEST(FrontProxy, VersionsComeInKubernetesOrder) {
  std::vector<std::string> versions{"foo10", "v1alpha1", "v3beta1",  "v11",      "v12alpha1", "v10",
                                    "v2",    "foo1",     "v11beta2", "v10beta3", "v11alpha2"};
  std::ranges::sort(versions, aggregation::is_newer_version);
  EXPECT_EQ(versions, (std::vector<std::string>{"v11", "v10", "v2", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "v1alpha1",
                                                "foo1", "foo10"}));
}

}  // namespace
}  // namespace berth::apiserver::testing
