// The audit log: which requests, how much of them, at which stages; files that are rotated, a service that gets batches, queues with a
// bound.
#include <filesystem>
#include <fstream>

#include "apiserver/audit/log.h"
#include "apiserver/audit/policy.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/store/store_fixture.h"

namespace berth::apiserver::testing {
namespace {

std::string problem_of(const std::string& policy) {
  const auto parsed = audit::parse_policy("apiVersion: audit.k8s.io/v1\nkind: Policy\n" + policy, "p.yaml");
  return parsed ? "none" : parsed.error().message;
}

class AuditTest : public ServerTest {
 protected:
  void SetUp() override {}
  /// Starts a server whose audit log is a file.
  void audited(const std::string& rules, audit::LogOptions options = {}) {
    auto policy = audit::parse_policy("apiVersion: audit.k8s.io/v1\nkind: Policy\n" + rules, "p.yaml");
    ASSERT_TRUE(policy) << policy.error().message;
    options.policy = std::make_shared<const audit::Policy>(std::move(*policy));
    options.file.path = directory_.file("audit.log");
    auto log = audit::Log::start(std::move(options), metrics_);
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
    ServerOptions server;
    server.audit = log_;
    start(std::move(server));
  }
  std::vector<json::Value> events() {
    log_->flush();
    std::vector<json::Value> out;
    std::ifstream in(directory_.file("audit.log"));
    for (std::string line; std::getline(in, line);) {
      auto parsed = json::parse(line);
      EXPECT_TRUE(parsed) << line;
      if (parsed) out.push_back(std::move(*parsed));
    }
    return out;
  }
  std::vector<std::string> seen() {
    std::vector<std::string> out;
    for (const json::Value& event : events())
      out.push_back(fmt::format("{} {} {} {}", text(event, {"verb"}), text(event, {"objectRef", "resource"}), text(event, {"stage"}),
                                text(event, {"level"})));
    return out;
  }
  std::string log_text() {
    log_->flush();
    std::ifstream in(directory_.file("audit.log"));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::string secret(const std::string& value) {
    return R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"password":")" + value + R"("}})";
  }
  static constexpr const char* kSecrets = "/api/v1/namespaces/default/secrets";

  store::TemporaryDirectory directory_;
  metrics::Registry metrics_;
  std::shared_ptr<audit::Log> log_;
};

TEST_F(AuditTest, TheFirstRuleThatMatchesSaysHowMuch) {
  audited(R"(
rules:
- level: None
  users: [nobody-else]
- level: RequestResponse
  resources: [{group: "", resources: [configmaps]}]
  omitStages: [RequestReceived]
- level: None
  resources: [{group: ""}]
- level: Metadata
  nonResourceURLs: ["/version*"]
)");
  create(kMaps, config_map("a", R"({"k":"v"})"));
  read(kPods);
  read("/version");
  read("/apis");
  EXPECT_EQ(seen(), (std::vector<std::string>{"create configmaps ResponseComplete RequestResponse", "get  RequestReceived Metadata",
                                              "get  ResponseComplete Metadata"}));
  const json::Value made = events()[0];
  EXPECT_EQ(text(made, {"kind"}), "Event");
  EXPECT_EQ(text(made, {"apiVersion"}), "audit.k8s.io/v1");
  EXPECT_EQ(text(made, {"requestURI"}), kMaps);
  EXPECT_EQ(text(made, {"user", "username"}), "system:admin");
  EXPECT_EQ(text(made, {"objectRef", "name"}), "a");
  EXPECT_EQ(text(made, {"objectRef", "namespace"}), "default");
  EXPECT_EQ(text(made, {"objectRef", "apiVersion"}), "v1");
  EXPECT_EQ(json::get_int(made, {"responseStatus", "code"}), 201);
  EXPECT_EQ(text(made, {"requestObject", "data", "k"}), "v");
  EXPECT_EQ(text(made, {"responseObject", "data", "k"}), "v");
  EXPECT_EQ(text(made, {"annotations", "authorization.k8s.io/decision"}), "allow");
  EXPECT_EQ(text(made, {"stageTimestamp"}), "2026-01-02T03:04:05.000000Z");
}

TEST_F(AuditTest, MetadataNeverTellsWhatIsInABody) {
  audited("rules: [{level: Metadata}]\n");
  create(kSecrets, secret("hunter2"));
  read(std::string(kSecrets) + "/s");
  read(kSecrets);
  patch(std::string(kSecrets) + "/s", R"({"stringData":{"password":"hunter3"}})");
  post("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"bot"}})");
  post("/apis/authentication.k8s.io/v1/tokenreviews",
       R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"hunter4"}})");
  const std::string all = log_text();
  EXPECT_EQ(all.find("hunter"), std::string::npos) << all;
  EXPECT_EQ(all.find("aHVudGVy"), std::string::npos) << "not in base64 either";
  EXPECT_GE(events().size(), 12u);
}

TEST_F(AuditTest, AnErrorIsToldByItsStatus) {
  audited("omitStages: [RequestReceived]\nrules: [{level: Metadata}]\n");
  EXPECT_EQ(get(std::string(kPods) + "/missing")->status, 404);
  const json::Value event = events().at(0);
  EXPECT_EQ(text(event, {"responseStatus", "reason"}), "NotFound");
  EXPECT_EQ(json::get_int(event, {"responseStatus", "code"}), 404);
  EXPECT_EQ(json::find(event, {"responseObject"}), nullptr);
}

TEST_F(AuditTest, ARefusalIsToldWithItsReason) {
  ServerOptions options;
  audited("omitStages: [RequestReceived]\nrules: [{level: Metadata}]\n");
  options.audit = log_;
  options.authorizer = std::make_shared<PickyAuthorizer>([](const UserInfo&, const Attributes&) { return false; });
  start(std::move(options));
  EXPECT_EQ(get(kPods)->status, 403);
  const json::Value event = events().at(0);
  EXPECT_EQ(text(event, {"annotations", "authorization.k8s.io/decision"}), "forbid");
  EXPECT_EQ(json::get_int(event, {"responseStatus", "code"}), 403);
}

TEST_F(AuditTest, AWatchHasThreeStages) {
  audited("rules: [{level: Metadata}]\n");
  auto watch = get(std::string(kMaps) + "?watch=1&timeoutSeconds=5");
  EXPECT_EQ(seen(), (std::vector<std::string>{"watch configmaps RequestReceived Metadata", "watch configmaps ResponseStarted Metadata"}));
  loop_.run_for(std::chrono::seconds(10));
  watch.reset();
  EXPECT_EQ(seen().back(), "watch configmaps ResponseComplete Metadata");
}

TEST_F(AuditTest, WhoActsForWhomIsTold) {
  audited("omitStages: [RequestReceived]\nrules: [{level: Metadata}]\n");
  send("GET", kPods, "", "", {{"Impersonate-User", "jane"}, {"User-Agent", "curl/8"}, {"X-Forwarded-For", "192.0.2.1, 192.0.2.2"}});
  const json::Value event = events().at(0);
  EXPECT_EQ(text(event, {"user", "username"}), "system:admin");
  EXPECT_EQ(text(event, {"impersonatedUser", "username"}), "jane");
  EXPECT_EQ(text(event, {"userAgent"}), "curl/8");
  EXPECT_EQ(json::serialize(*json::find(event, "sourceIPs")), R"(["192.0.2.1","192.0.2.2"])");
}

TEST_F(AuditTest, ResourcesAreNamedWithTheirSubresources) {
  const auto level = [&](const std::string& resources, Attributes asked) {
    const auto policy = audit::parse_policy(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request, resources: [{group: '', resources: " + resources + "}]}]",
        "p");
    EXPECT_TRUE(policy);
    return policy->decide({}, asked).level == audit::Level::kRequest;
  };
  const Attributes pods{.verb = "get", .resource = "pods"}, log{.verb = "get", .resource = "pods", .subresource = "log"};
  EXPECT_TRUE(level("[pods]", pods));
  EXPECT_FALSE(level("[pods]", log));
  EXPECT_TRUE(level("['pods/*']", log));
  EXPECT_TRUE(level("['pods/*']", pods));
  EXPECT_TRUE(level("['*/log']", log));
  EXPECT_FALSE(level("['*/log']", pods));
  EXPECT_TRUE(level("['*']", log));
}

TEST_F(AuditTest, ManagedFieldsAreLeftOutWhereThatIsAsked) {
  audited("omitStages: [RequestReceived]\nrules: [{level: RequestResponse, omitManagedFields: true}]\n");
  create(kMaps, config_map("a"));
  EXPECT_EQ(json::find(events().at(0), {"responseObject", "metadata", "managedFields"}), nullptr);
}

TEST_F(AuditTest, MistakesInAPolicyAreNamedByTheirPlace) {
  EXPECT_NE(problem_of("rules: [{level: Everything}]").find("p.yaml:3: rules[0].level: \"Everything\" is no level"), std::string::npos)
      << problem_of("rules: [{level: Everything}]");
  EXPECT_NE(problem_of("rules: [{level: Metadata, verb: [get]}]").find("did you mean \"verbs\"?"), std::string::npos);
  EXPECT_NE(problem_of("rules: [{level: Metadata, nonResourceURLs: [healthz]}]").find("must begin with a '/'"), std::string::npos);
  EXPECT_NE(problem_of("rules: [{level: Metadata, nonResourceURLs: ['/a'], namespaces: [x]}]").find("make two of it"), std::string::npos);
  EXPECT_NE(problem_of("rules: [{level: Metadata, resources: [{group: '', resourceNames: [x]}]}]").find("needs at least one entry"),
            std::string::npos);
  EXPECT_NE(problem_of("omitStages: [Received]\nrules: [{level: Metadata}]").find("is no stage"), std::string::npos);
  EXPECT_NE(problem_of("rules: []").find("rules: there are none"), std::string::npos);
}

TEST_F(AuditTest, AFullQueueDropsAndCounts) {
  audit::LogOptions options;
  options.queue_events = 0;
  audited("rules: [{level: Metadata}]\n", std::move(options));
  EXPECT_EQ(get(kPods)->status, 200);
  log_->flush();
  EXPECT_NE(metrics_.expose().find("apiserver_audit_error_total{plugin=\"buffered\"} 2"), std::string::npos) << metrics_.expose();
}

TEST(AuditFile, IsRotatedAndOldOnesGo) {
  store::TemporaryDirectory directory;
  auto file = audit::RotatedFile::open({.path = directory.file("log/audit.log"), .max_backups = 2, .max_megabytes = 1});
  ASSERT_TRUE(file) << file.error().message;
  TimePoint now = *parse_rfc3339("2026-01-02T03:04:05Z");
  const std::string half(600 * 1024, 'x');
  for (int i = 0; i < 6; ++i, now += std::chrono::seconds(1)) ASSERT_TRUE((*file)->append(half, now));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.file("log"))) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"audit-2026-01-02T03-04-09.000.log", "audit-2026-01-02T03-04-10.000.log", "audit.log"}));
}

TEST(AuditFile, GoesOnWhereOthersMovedItAway) {
  store::TemporaryDirectory directory;
  const std::string path = directory.file("audit.log");
  auto file = audit::RotatedFile::open({.path = path});
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->append("one\n", {}));
  std::filesystem::rename(path, path + ".1");
  ASSERT_TRUE((*file)->append("two\n", {}));
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "two");
}

}  // namespace
}  // namespace berth::apiserver::testing
