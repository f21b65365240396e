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

TEST_F(Tokens, SecondsAreAWholeNumber) {
  const auto ask_for = [&](const std::string& seconds) {
    return post("/api/v1/namespaces/default/serviceaccounts/web/token", R"({"spec":{"expirationSeconds":)" + seconds + "}}");
  };
  EXPECT_EQ(ask_for("600")->status, 201);
  EXPECT_EQ(ask_for("null")->status, 201);
  for (const char* wrong : {"600.5", "\"600\"", "1e999", "[]", "9223372036854775808"}) EXPECT_EQ(ask_for(wrong)->status, 400) << wrong;
  EXPECT_EQ(text(ask_for("600.5")->document(), {"message"}),
            "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: json: cannot unmarshal number 600.5 into Go struct field "
            "TokenRequestSpec.spec.expirationSeconds of type int64");
  EXPECT_EQ(ask_for("599")->status, 422);
  EXPECT_EQ(issuer_->issued.size(), 2U);
}

/// A pod that could shed its mirror annotation would open to its node what it names (the node authorizer looks at other pods only).
TEST_F(Tokens, AMirrorPodStaysOne) {
  create(kPods, R"({"metadata":{"name":"m","annotations":{"kubernetes.io/config.mirror":"h","x":"y"}},
                    "spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}})");
  create(kPods, pod("p", R"("nodeName":"n1")"));
  const auto changed = [&](const std::string& path, const std::string& annotations) {
    const auto answer = patch(std::string(kPods) + path, R"({"metadata":{"annotations":)" + annotations + "}}");
    return answer->status == 200 ? std::string("fine") : text(answer->document(), {"message"});
  };
  const std::string at = "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: ";
  for (const std::string path : {"/m/status", "/m"}) {
    EXPECT_NE(changed(path, R"({"kubernetes.io/config.mirror":null})").find(at + "may not remove or update mirror pod annotation"),
              std::string::npos);
    EXPECT_NE(changed(path, R"({"kubernetes.io/config.mirror":"other"})").find(at + "may not remove or update mirror pod annotation"),
              std::string::npos);
    EXPECT_NE(changed(path, "null").find(at + "may not remove or update"), std::string::npos);
    EXPECT_EQ(changed(path, R"({"x":"z"})"), "fine");
  }
  EXPECT_NE(changed("/p/status", R"({"kubernetes.io/config.mirror":"h"})").find(at + "may not add mirror pod annotation"),
            std::string::npos);
  EXPECT_NE(changed("/p", R"({"container.apparmor.security.beta.kubernetes.io/c":"unconfined"})").find("may not add AppArmor annotations"),
            std::string::npos);
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
