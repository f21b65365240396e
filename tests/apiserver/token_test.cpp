// serviceaccounts/token: what a token is bound to, whom it is for, and what a node may ask for.
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

/// Tells what it was asked for.
class RecordingIssuer final : public TokenIssuer {
 public:
  model::ApiResult<IssuedToken> issue(const TokenSpec& spec) override {
    issued.push_back(spec);
    return IssuedToken{"token", TimePoint{}};
  }
  std::vector<TokenSpec> issued;
};

class Tokens : public ServerTest {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.token_issuer = issuer_;
    options.authorizer = std::make_shared<PickyAuthorizer>([this](const UserInfo&, const Attributes& attributes) {
      return attributes.verb != "request-serviceaccounts-token-audience" || attributes.resource == extra_audience_;
    });
    start(std::move(options));
    for (const char* account : {"default", "web", "other"})
      create("/api/v1/namespaces/default/serviceaccounts", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", account));
    create("/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  }
  /// On node n1, with these volumes.
  std::string make_pod(const std::string& name, const std::string& volumes = "[]") {
    const auto made = create(kPods, pod(name, fmt::format(R"("serviceAccountName":"web","nodeName":"n1","volumes":{})", volumes)));
    return text(made, {"metadata", "uid"});
  }
  Response ask(const std::string& account, const std::string& pod_name, const std::string& uid, const std::string& audiences = "[]",
               const std::string& api_version = "v1") {
    return post("/api/v1/namespaces/default/serviceaccounts/" + account + "/token",
                fmt::format(R"({{"spec":{{"audiences":{},"boundObjectRef":{{"apiVersion":"{}","kind":"Pod","name":"{}","uid":"{}"}}}}}})",
                            audiences, api_version, pod_name, uid));
  }
  void become_node() { peer_ = net::PeerCertificate{"system:node:n1", {"system:nodes"}}; }

  std::shared_ptr<RecordingIssuer> issuer_ = std::make_shared<RecordingIssuer>();
  std::string extra_audience_ = "-";
};

TEST_F(Tokens, AreBoundToPodsOfTheirAccount) {
  const auto uid = make_pod("p");
  EXPECT_EQ(ask("web", "p", uid)->status, 201);
  auto refused = ask("other", "p", uid);
  EXPECT_STATUS(refused, 400, "BadRequest");
  EXPECT_EQ(text(refused->document(), {"message"}),
            "cannot bind token for serviceaccount \"other\" to pod running with different serviceaccount name.");
  EXPECT_STATUS(ask("web", "p", uid, "[]", "apps/v1"), 400, "BadRequest");
  EXPECT_EQ(issuer_->issued.size(), 1U);
}

TEST_F(Tokens, NodesAskForAudiencesOfTheirPods) {
  const auto uid = make_pod("p", R"([{"name":"t","projected":{"sources":[{"serviceAccountToken":{"path":"t","audience":"vault"}}]}},
                                     {"name":"c","csi":{"driver":"secrets.example.com"}}])");
  create(
      "/apis/storage.k8s.io/v1/csidrivers",
      R"({"metadata":{"name":"secrets.example.com"},"spec":{"volumeLifecycleModes":["Ephemeral"],"tokenRequests":[{"audience":"driver"}]}})");
  become_node();
  EXPECT_EQ(ask("web", "p", uid, R"(["vault"])")->status, 201);
  EXPECT_EQ(ask("web", "p", uid, R"(["driver"])")->status, 201);
  auto refused = ask("web", "p", uid, R"(["bank"])");
  EXPECT_STATUS(refused, 403, "Forbidden");
  EXPECT_NE(
      refused->body.find("audience \\\"bank\\\" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this"),
      std::string::npos)
      << refused->body;
  EXPECT_NE(ask("web", "p", uid, R"(["vault","driver"])")->body.find("node may only request 0 or 1 audiences"), std::string::npos);
  extra_audience_ = "bank";
  EXPECT_EQ(ask("web", "p", uid, R"(["bank"])")->status, 201);
  // Whoever is no node asks for what he likes.
  peer_.reset();
  extra_audience_ = "-";
  EXPECT_EQ(ask("web", "p", uid, R"(["bank"])")->status, 201);
}

}  // namespace
}  // namespace berth::apiserver::testing
