// Security through the API itself: who gets in, who may do what, in Kubernetes' words (SPEC A6).
#include <gtest/gtest.h>

#include "apiserver/auth/auth.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/store/store_fixture.h"

namespace berth::apiserver::testing {
namespace {

/// What is asked first, as a webhook would be: nullopt is no opinion.
class AskedFirst final : public Authorizer {
 public:
  using Opinion = std::function<std::optional<bool>(const UserInfo&, const Attributes&)>;
  AskedFirst(std::shared_ptr<Authorizer> next, Opinion& opinion) : next_(std::move(next)), opinion_(opinion) {}
  Decision authorize(const UserInfo& user, const Attributes& attributes) override {
    const auto said = opinion_ ? opinion_(user, attributes) : std::nullopt;
    return said ? Decision{*said, "as was said"} : next_->authorize(user, attributes);
  }
  UserRules rules_for(const UserInfo& user, const std::string& ns) override { return next_->rules_for(user, ns); }
  std::optional<std::string> check_escalation(const UserInfo& user, const std::string& kind, const json::Value& object,
                                              const json::Value* old_object) override {
    return next_->check_escalation(user, kind, object, old_object);
  }

 private:
  std::shared_ptr<Authorizer> next_;
  Opinion& opinion_;
};

class SecuredServer : public ServerTest {
 protected:
  void SetUp() override {
    auto cache = open_object_cache(store::make_memory_store(), loop_, {}, true);
    ASSERT_TRUE(cache) << cache.error().message;
    auto pki = security::Pki::open({.directory = directory_.file("pki")}, loop_.now());
    ASSERT_TRUE(pki) << pki.error().message;
    auto parts = auth::make_auth({.cache = cache->get(), .clock = &loop_, .service_account_key_pem = pki->service_account_key_pem()});
    ASSERT_TRUE(parts) << parts.error().message;
    parts_ = std::move(*parts);
    ServerOptions options;
    options.cache = std::move(*cache);
    options.loop = &loop_;
    options.authenticator = parts_.authenticator;
    options.authorizer = std::make_shared<AskedFirst>(parts_.authorizer, opinion_);
    options.token_issuer = parts_.tokens;
    options.seed = 42;
    options.single_threaded = true;
    auto server = ApiServer::create(std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    as("admin", {"system:masters"});
  }
  void TearDown() override {
    parts_.aggregation.reset();
    server_.reset();
  }
  void as(std::string name, std::vector<std::string> groups = {}) { peer_ = net::PeerCertificate{std::move(name), std::move(groups)}; }
  void as_nobody() { peer_.reset(); }
  std::string message(const Response& response) { return std::string(json::get_string(response->document(), {"message"})); }
  /// Creates an RBAC object as the present user.
  Response rbac(const std::string& path, const std::string& body) { return post("/apis/rbac.authorization.k8s.io/v1/" + path, body); }
  void grant(const std::string& user, const std::string& cluster_role) {
    as("admin", {"system:masters"});
    auto made =
        rbac("clusterrolebindings",
             R"({"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":")" + user + "-" +
                 cluster_role + R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":")" + cluster_role +
                 R"("},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":")" + user + R"("}]})");
    ASSERT_EQ(made->status, 201) << made->body;
  }

  store::TemporaryDirectory directory_;
  auth::AuthParts parts_;
  AskedFirst::Opinion opinion_;
};

/// The rights to escalate and to bind come from whomever the configuration asks about rights, and can be denied by the first of them.
TEST_F(SecuredServer, TheRightToGrantMoreIsAskedOfTheWholeChain) {
  const auto role_of = [](const std::string& name, const char* resource = "nodes") {
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"rules":[{{"apiGroups":[""],"resources":["{}"],"verbs":["get"]}}]}})", name,
                       resource);
  };
  const auto binding_of = [](const std::string& name, const std::string& role) {
    return fmt::format(
        R"({{"metadata":{{"name":"{}"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"{}"}},
                            "subjects":[{{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"x"}}]}})",
        name, role);
  };
  const std::string roles = "namespaces/default/roles", bindings = "namespaces/default/rolebindings";
  grant("ada", "admin");
  rbac("clusterroles", R"({"metadata":{"name":"escalator"},"rules":[{"apiGroups":["rbac.authorization.k8s.io"],
                           "resources":["roles","clusterroles"],"verbs":["escalate","bind"]}]})");
  as("ada");
  EXPECT_EQ(rbac(roles, role_of("a"))->status, 403);
  EXPECT_EQ(rbac(bindings, binding_of("a", "cluster-admin"))->status, 403);
  EXPECT_EQ(rbac(bindings, binding_of("a", "view"))->status, 201) << "she holds all of it";
  // By somebody else's word.
  std::vector<std::string> asked;
  opinion_ = [&](const UserInfo& user, const Attributes& of) -> std::optional<bool> {
    if (user.name != "ada" || (of.verb != "escalate" && of.verb != "bind")) return std::nullopt;
    asked.push_back(fmt::format("{} {} {}/{}", of.verb, of.resource, of.ns, of.name));
    return true;
  };
  EXPECT_EQ(rbac(roles, role_of("a"))->status, 201);
  EXPECT_EQ(send("PUT", "/apis/rbac.authorization.k8s.io/v1/" + roles + "/a", role_of("a", "persistentvolumes"))->status, 200);
  EXPECT_EQ(rbac(bindings, binding_of("b", "cluster-admin"))->status, 201);
  EXPECT_EQ(rbac(roles, role_of("b", "pods"))->status, 201) << "what she holds is nobody's question";
  EXPECT_EQ(asked,
            (std::vector<std::string>{"escalate roles default/", "escalate roles default/a", "bind clusterroles default/cluster-admin"}));
  // RBAC's word counts where nobody before it has one, and not where somebody denies.
  opinion_ = nullptr;
  grant("ada", "escalator");
  as("ada");
  EXPECT_EQ(rbac(roles, role_of("c"))->status, 201);
  EXPECT_EQ(rbac(bindings, binding_of("c", "cluster-admin"))->status, 201);
  opinion_ = [](const UserInfo&, const Attributes& of) -> std::optional<bool> {
    return of.verb == "escalate" || of.verb == "bind" ? std::optional(false) : std::nullopt;
  };
  EXPECT_EQ(rbac(roles, role_of("d"))->status, 403);
  EXPECT_EQ(rbac(bindings, binding_of("d", "cluster-admin"))->status, 403);
}

TEST_F(SecuredServer, AnonymousGetsNothingButHealth) {
  as_nobody();
  for (const char* path : {"/healthz", "/livez", "/readyz", "/version"}) EXPECT_EQ(get(path)->status, 200) << path;
  for (const char* path : {"/api", "/apis", "/metrics", "/openapi/v3", "/api/v1/pods", "/api/v1/namespaces/default/pods/x"}) {
    EXPECT_EQ(get(path)->status, 403) << path;
  }
  EXPECT_EQ(message(get("/api/v1/namespaces/default/pods")),
            "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"");
  EXPECT_EQ(message(get("/metrics")), "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"");
  auto refused = send("GET", "/api/v1/pods", "", "", {{"Authorization", "Bearer wrong"}});
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(message(refused), "Unauthorized");
}

TEST_F(SecuredServer, RolesOpenWhatTheySay) {
  as("jane");
  EXPECT_EQ(get("/api")->status, 200);
  EXPECT_EQ(get("/api/v1/pods")->status, 403);
  grant("jane", "view");
  as("jane");
  EXPECT_EQ(get("/api/v1/pods")->status, 200);
  EXPECT_EQ(get("/api/v1/namespaces/default/secrets")->status, 403);
  auto refused = post("/api/v1/namespaces/default/configmaps", R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"}})");
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(message(refused),
            "configmaps is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\"");
}

TEST_F(SecuredServer, CanIAnswers) {
  grant("jane", "view");
  as("jane");
  const auto can = [&](const std::string& verb, const std::string& resource) {
    auto review = post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        R"({"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"namespace":"default","verb":")" +
            verb + R"(","resource":")" + resource + R"("}}})");
    EXPECT_EQ(review->status, 201) << review->body;
    return json::get_bool(review->document(), {"status", "allowed"});
  };
  EXPECT_TRUE(can("list", "pods"));
  EXPECT_FALSE(can("delete", "pods"));
  auto who =
      post("/apis/authentication.k8s.io/v1/selfsubjectreviews", R"({"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"})");
  EXPECT_EQ(json::get_string(who->document(), {"status", "userInfo", "username"}), "jane") << who->body;
}

TEST_F(SecuredServer, NobodyEscalates) {
  as("admin", {"system:masters"});
  ASSERT_EQ(
      rbac("clusterroles", R"({"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"rbac-writer"},"rules":[
      {"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles","clusterrolebindings"],"verbs":["create","get","update","patch"]}]})")
          ->status,
      201);
  grant("eve", "rbac-writer");
  as("eve");
  auto role = rbac("clusterroles", R"({"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"mine"},"rules":[
      {"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]})");
  EXPECT_EQ(role->status, 403) << role->body;
  EXPECT_EQ(message(role),
            "clusterroles.rbac.authorization.k8s.io \"mine\" is forbidden: user \"eve\" (groups=[\"system:authenticated\"]) is attempting "
            "to grant RBAC "
            "permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}");
  auto binding =
      rbac("clusterrolebindings", R"({"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"mine"},
      "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
      "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"eve"}]})");
  EXPECT_EQ(binding->status, 403) << binding->body;
  EXPECT_EQ(get("/api/v1/namespaces/default/secrets")->status, 403);
}

TEST_F(SecuredServer, ServiceAccountTokensWorkUntilTheAccountGoes) {
  as("admin", {"system:masters"});
  ASSERT_EQ(post("/api/v1/namespaces/default/serviceaccounts", R"({"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"bot"}})")
                ->status,
            201);
  auto issued = post("/api/v1/namespaces/default/serviceaccounts/bot/token",
                     R"({"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"expirationSeconds":3600}})");
  ASSERT_EQ(issued->status, 201) << issued->body;
  std::string token(json::get_string(issued->document(), {"status", "token"}));
  ASSERT_FALSE(token.empty());
  const auto with_token = [&](const std::string& path) {
    as_nobody();
    return send("GET", path, "", "", {{"Authorization", "Bearer " + token}});
  };
  EXPECT_EQ(with_token("/api")->status, 200);
  EXPECT_EQ(message(with_token("/api/v1/nodes")),
            "nodes is forbidden: User \"system:serviceaccount:default:bot\" cannot list resource \"nodes\" in API group \"\" at the "
            "cluster scope");
  as("admin", {"system:masters"});
  auto review = post("/apis/authentication.k8s.io/v1/tokenreviews",
                     R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":")" + token + R"("}})");
  EXPECT_TRUE(json::get_bool(review->document(), {"status", "authenticated"})) << review->body;
  EXPECT_EQ(send("DELETE", "/api/v1/namespaces/default/serviceaccounts/bot")->status, 200);
  EXPECT_EQ(with_token("/api")->status, 401);
}

TEST_F(SecuredServer, ImpersonationIsForThoseWhoMay) {
  as("admin", {"system:masters"});
  auto as_jane = send("GET", "/api/v1/pods", "", "", {{"Impersonate-User", "jane"}});
  EXPECT_EQ(as_jane->status, 403);
  EXPECT_EQ(message(as_jane), "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" at the cluster scope");
  as("jane");
  auto refused = send("GET", "/api/v1/pods", "", "", {{"Impersonate-User", "admin"}, {"Impersonate-Group", "system:masters"}});
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(message(refused),
            "users \"admin\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope");
}

TEST_F(SecuredServer, NodesAreHeldToThemselves) {
  as("admin", {"system:masters"});
  for (const char* name : {"n1", "n2"}) {
    ASSERT_EQ(post("/api/v1/nodes", std::string(R"({"kind":"Node","apiVersion":"v1","metadata":{"name":")") + name + R"("}})")->status,
              201);
  }
  as("system:node:n1", {"system:nodes"});
  EXPECT_EQ(get("/api/v1/nodes/n1")->status, 200);
  EXPECT_EQ(get("/api/v1/nodes/n2")->status, 403);
  EXPECT_EQ(get("/api/v1/nodes")->status, 403);
  EXPECT_EQ(get("/api/v1/nodes?fieldSelector=metadata.name%3Dn1")->status, 200);
  EXPECT_EQ(get("/api/v1/pods")->status, 403) << "berth:node-policies is bound by who wants it";
  EXPECT_EQ(get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")->status, 200);
  EXPECT_EQ(get("/api/v1/namespaces/default/secrets")->status, 403);
  EXPECT_EQ(send("DELETE", "/api/v1/nodes/n1")->status, 403);
}

}  // namespace
}  // namespace berth::apiserver::testing
