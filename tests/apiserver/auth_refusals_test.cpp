// Who is refused: bootstrap tokens and what is wrong with them, rules that only look alike, slices of other nodes, settings that say too
// much.
#include <fstream>

#include "apiserver/auth/authorization_config.h"
#include "apiserver/auth/default_roles.h"
#include "apiserver/auth/oidc_config.h"
#include "apiserver/auth/rbac_rules.h"
#include "security/bootstrap_token.h"
#include "tests/apiserver/auth_fixture.h"

namespace berth::apiserver::auth {
namespace {

class BootstrapTokens : public AuthFixture {
 protected:
  security::BootstrapToken good() const {
    security::BootstrapToken out;
    out.id = "abcdef";
    out.secret = "0123456789abcdef";
    out.authenticates = true;
    out.expiration = clock_.now() + std::chrono::hours(1);
    out.extra_groups = {"system:bootstrappers:mine"};
    return out;
  }
  /// Who comes with abcdef.0123456789abcdef (or another token) while this is stored; "" for nobody.
  std::string who(json::Value secret, const std::string& token = "abcdef.0123456789abcdef") {
    write_core("secrets", secret);
    net::HttpRequest request;
    request.headers.add("Authorization", "Bearer " + token);
    const auto user = parts_.authenticator->authenticate(request);
    return user ? fmt::format("{} {}", user->name, fmt::join(user->groups, ",")) : "";
  }
};

TEST_F(BootstrapTokens, SpeakForTheirIdAndTheirGroups) {
  EXPECT_EQ(who(security::make_bootstrap_secret(good())),
            "system:bootstrap:abcdef system:bootstrappers,system:bootstrappers:mine,system:authenticated");
}

TEST_F(BootstrapTokens, AreRefusedWhenAnythingIsAmiss) {
  const json::Value fine = security::make_bootstrap_secret(good());
  EXPECT_EQ(who(fine, "abcdef.0123456789abcdee"), "") << "another secret";
  EXPECT_EQ(who(fine, "abcdeg.0123456789abcdef"), "") << "another id";
  auto only_signs = good();
  only_signs.authenticates = false;
  only_signs.signs = true;
  EXPECT_EQ(who(security::make_bootstrap_secret(only_signs)), "") << "for signing alone";
  auto foreign = good();
  foreign.extra_groups = {"system:masters"};
  EXPECT_EQ(who(security::make_bootstrap_secret(foreign)), "") << "a group that is not below system:bootstrappers";
  json::Value leaving = fine;
  json::set(leaving, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(clock_.now())));
  EXPECT_EQ(who(leaving), "") << "it is being deleted";
  json::Value other = fine;
  json::set(other, {"type"}, json::Value("Opaque"));
  EXPECT_EQ(who(other), "") << "another type of Secret";
  json::Value garbled = fine;
  json::set(garbled, {"data", "expiration"}, json::Value("c29vbg=="));
  EXPECT_EQ(who(garbled), "") << "nobody knows until when";
  EXPECT_NE(who(fine), "") << "and is good again";
  clock_.advance(std::chrono::minutes(61));
  EXPECT_EQ(who(fine), "") << "its hour is over";
}

TEST(PolicyRules, WhatOnlyLooksAlikeIsNotAllowed) {
  const auto allows = [](const std::string& resource, const std::string& asked, const std::string& subresource) {
    const PolicyRule rule{{"get"}, {""}, {resource}, {}, {}};
    Attributes attributes;
    attributes.verb = "get";
    attributes.resource = asked;
    attributes.subresource = subresource;
    return rule.allows(attributes);
  };
  EXPECT_TRUE(allows("pods/log", "pods", "log"));
  EXPECT_FALSE(allows("pods/log", "pods", "exe")) << "as long as log";
  EXPECT_FALSE(allows("pods/log", "pods", "og"));
  EXPECT_FALSE(allows("pods/log", "pod", "slog"));
  EXPECT_FALSE(allows("pods/log", "pods", ""));
  EXPECT_FALSE(allows("pods", "pods", "log"));
  EXPECT_TRUE(allows("*/log", "anything", "log"));
  EXPECT_FALSE(allows("*/log", "anything", ""));
  EXPECT_TRUE(allows("*", "pods", "log"));
  EXPECT_TRUE(url_matches("/logs/*", "/logs/a"));
  EXPECT_FALSE(url_matches("/logs", "/logs/a")) << "no star, no more than itself";
  EXPECT_FALSE(url_matches("/logs/*", "/log"));
  EXPECT_TRUE(url_matches("*", "/"));
}

class NodesSlices : public AuthFixture {
 protected:
  void SetUp() override {
    AuthFixture::SetUp();
    for (const std::string node : {"n1", "n2"}) {
      Proposal slice = pod_proposal({.ns = "", .name = "s-" + node, .node = node});
      slice.key = make_key("resource.k8s.io", "resourceslices", "", "s-" + node);
      ASSERT_TRUE(propose_and_wait(*cache_, std::move(slice)).has_value());
    }
  }
};

TEST_F(NodesSlices, AreItsOwn) {
  const auto n1 = user("system:node:n1", {"system:nodes"});
  const std::string slices = " resource.k8s.io:resourceslices";
  for (const std::string verb : {"get", "update", "patch", "delete"}) {
    EXPECT_TRUE(may(n1, verb + slices + " s-n1")) << verb;
    EXPECT_FALSE(may(n1, verb + slices + " s-n2")) << verb;
    EXPECT_FALSE(may(n1, verb + slices + " none")) << verb;
  }
  EXPECT_TRUE(may(n1, "create" + slices));
  for (const std::string verb : {"list", "watch", "deletecollection"}) {
    EXPECT_FALSE(may(n1, verb + slices)) << verb << " of all";
    auto own = ask(verb + slices);
    own.field_selector = "spec.nodeName=n1";
    EXPECT_TRUE(parts_.authorizer->authorize(n1, own).allowed) << verb;
    own.field_selector = "spec.nodeName=n2";
    EXPECT_FALSE(parts_.authorizer->authorize(n1, own).allowed) << verb;
  }
  EXPECT_FALSE(may(n1, "get resource.k8s.io:resourceslices/status s-n1"));
}

TEST(Issuers, AddressesHaveNoUserQueryOrFragment) {
  const auto problem = [](const std::string& issuer, const std::string& more = "") {
    const auto parsed = parse_authentication_config(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {audiences: [a], " + issuer +
            "}\n  claimMappings: {username: {claim: sub, prefix: ''}" + more + "}\n",
        "a.yaml");
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_EQ(problem("url: 'https://id.example/x'"), "");
  for (const char* part : {"?a=b", "#top", "@host"})
    EXPECT_NE(problem(fmt::format("url: 'https://id.example{}'", part)).find("must have no user, query or fragment"), std::string::npos)
        << part;
  for (const char* url : {"http://id.example", "https://"})
    EXPECT_NE(problem(fmt::format("url: '{}'", url)).find("is no URL with https://"), std::string::npos) << url;
  EXPECT_EQ(problem("url: 'https://id.example', discoveryURL: 'https://other.example'"), "");
  const std::string same = problem("url: 'https://id.example', discoveryURL: 'https://id.example'");
  EXPECT_NE(same.find("discoveryURL: must be another than url"), std::string::npos) << same;
  const auto with_key = [&](const std::string& key) {
    return problem("url: 'https://id.example'", ", extra: [{key: '" + key + "', valueExpression: 'claims.sub'}]");
  };
  EXPECT_EQ(with_key("example.com/a"), "");
  for (const char* key : {"kubernetes.io/a", "x.kubernetes.io/a", "k8s.io/a", "x.k8s.io/a"})
    EXPECT_NE(with_key(key).find("is Kubernetes' own"), std::string::npos) << key;
  EXPECT_NE(with_key("example.com/A").find("must be lower case"), std::string::npos);
  EXPECT_NE(with_key("name").find("must be of the form"), std::string::npos);
}

TEST(WebhooksThatAuthenticate, WhatIsRememberedAndHowLongIsWhatTheFileSays) {
  const auto read = [](const std::string& more, const std::string& connection = "type: KubeConfigFile, kubeConfigFile: /k") {
    return parse_authorization_config(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: Node, name: node}\n- {type: "
        "RBAC, "
        "name: rbac}\n- type: Webhook\n  name: hook\n  webhook: {timeout: 30s, subjectAccessReviewVersion: v1, failurePolicy: NoOpinion, "
        "connectionInfo: {" +
            connection + "}" + more + "}\n",
        "z.yaml");
  };
  const auto hook = [&](const std::string& more) {
    const auto parsed = read(more);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed ? parsed->back() : AuthorizerConfig();
  };
  EXPECT_EQ(hook("").authorized_ttl, std::chrono::minutes(5));
  EXPECT_EQ(hook("").unauthorized_ttl, std::chrono::seconds(30));
  EXPECT_EQ(hook("").timeout, std::chrono::seconds(30));
  EXPECT_FALSE(hook("").failure_denies);
  EXPECT_EQ(hook(", authorizedTTL: 7s, unauthorizedTTL: 8s").authorized_ttl, std::chrono::seconds(7));
  EXPECT_EQ(hook(", authorizedTTL: 7s, unauthorizedTTL: 8s").unauthorized_ttl, std::chrono::seconds(8));
  const auto forgets = hook(", cacheAuthorizedRequests: false, cacheUnauthorizedRequests: false");
  EXPECT_EQ(forgets.authorized_ttl, Duration::zero());
  EXPECT_EQ(forgets.unauthorized_ttl, Duration::zero());
  const auto unknown = read("", "type: KubeConfigFile, kubeConfigFile: /k, kubeconfig: /l");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("kubeconfig"), std::string::npos);
  EXPECT_FALSE(read("", "type: KubeConfigFile, kubeConfigFile: k"));
  EXPECT_FALSE(read("", "type: InClusterConfig"));
}

/// What a node may do, case by case; what differs in one word from what it may is refused.
class NodesRights : public AuthFixture {
 protected:
  void SetUp() override {
    AuthFixture::SetUp();
    write_core("pods",
               doc("{metadata: {namespace: dev, name: p1, uid: u1}, spec: {nodeName: n1, serviceAccountName: bot, volumes: [{name: d, "
                   "persistentVolumeClaim: {claimName: data}}, {name: e, ephemeral: {volumeClaimTemplate: {}}}], resourceClaims: "
                   "[{name: g, resourceClaimName: gpu}]}}"));
    write_core("persistentvolumes", doc("{metadata: {name: v1}, spec: {claimRef: {namespace: dev, name: data}}}"));
    write_core("persistentvolumes", doc("{metadata: {name: v2}, spec: {claimRef: {namespace: prod, name: data}}}"));
    write_core("persistentvolumes", doc("{metadata: {name: v3}, spec: {}}"));
    for (const std::string node : {"n1", "n2"}) {
      Proposal attachment = pod_proposal({.ns = "", .name = "a-" + node, .node = node});
      attachment.key = make_key("storage.k8s.io", "volumeattachments", "", "a-" + node);
      ASSERT_TRUE(propose_and_wait(*cache_, std::move(attachment)).has_value());
    }
  }
  const UserInfo n1_ = user("system:node:n1", {"system:nodes"}), n2_ = user("system:node:n2", {"system:nodes"});
  std::string why_not(const std::string& text, const std::string& ns = {}) {
    const auto decision = parts_.authorizer->authorize(n1_, ask(text, ns));
    return decision.allowed ? "(allowed)" : decision.reason;
  }
};

TEST_F(NodesRights, SecretsThatAVolumeOfItsPodsNamesForTheNode) {
  write_core("persistentvolumes", doc("{metadata: {name: v4}, spec: {claimRef: {namespace: dev, name: data}, csi: {driver: d, "
                                      "nodeStageSecretRef: {name: stage, namespace: vault}, nodePublishSecretRef: {name: publish}, "
                                      "controllerExpandSecretRef: {name: expand, namespace: vault}}}}"));
  write_core("persistentvolumes", doc("{metadata: {name: v5}, spec: {claimRef: {namespace: prod, name: data}, csi: {driver: d, "
                                      "nodeStageSecretRef: {name: other, namespace: vault}}}}"));
  EXPECT_TRUE(may(n1_, "get secrets stage", "vault"));
  EXPECT_TRUE(may(n1_, "get secrets publish", "dev")) << "without a namespace it is the claim's";
  EXPECT_FALSE(may(n1_, "get secrets publish", "vault"));
  EXPECT_FALSE(may(n1_, "get secrets expand", "vault")) << "for its controller alone";
  EXPECT_FALSE(may(n1_, "get secrets other", "vault")) << "of a claim that no pod of the node uses";
  EXPECT_FALSE(may(n1_, "get configmaps stage", "vault"));
  EXPECT_FALSE(may(n2_, "get secrets stage", "vault"));
  EXPECT_FALSE(may(n1_, "update secrets stage", "vault"));
}

TEST_F(NodesRights, VolumesAndClaimsOfItsPods) {
  EXPECT_TRUE(may(n1_, "get persistentvolumes v1"));
  EXPECT_FALSE(may(n2_, "get persistentvolumes v1"));
  EXPECT_FALSE(may(n1_, "get persistentvolumes v2")) << "a claim of the same name elsewhere";
  EXPECT_FALSE(may(n1_, "get persistentvolumes v3")) << "of no claim";
  EXPECT_FALSE(may(n1_, "get persistentvolumes none"));
  EXPECT_FALSE(may(n1_, "list persistentvolumes"));
  EXPECT_FALSE(may(n1_, "update persistentvolumes v1"));
  EXPECT_FALSE(may(n1_, "get persistentvolumes/status v1"));
  EXPECT_FALSE(may(n1_, "get persistentvolumes"));
  EXPECT_TRUE(may(n1_, "get storage.k8s.io:volumeattachments a-n1"));
  EXPECT_FALSE(may(n1_, "get storage.k8s.io:volumeattachments a-n2"));
  EXPECT_FALSE(may(n1_, "update storage.k8s.io:volumeattachments a-n1"));
  for (const char* verb : {"get", "update", "patch"}) {
    EXPECT_TRUE(may(n1_, fmt::format("{} persistentvolumeclaims/status data", verb), "dev")) << verb;
    EXPECT_FALSE(may(n2_, fmt::format("{} persistentvolumeclaims/status data", verb), "dev")) << verb;
  }
  EXPECT_FALSE(may(n1_, "delete persistentvolumeclaims/status data", "dev"));
  EXPECT_TRUE(may(n1_, "get persistentvolumeclaims p1-e", "dev")) << "the claim that is made of the pod's template";
  EXPECT_FALSE(may(n1_, "get persistentvolumeclaims other", "dev"));
  EXPECT_TRUE(may(n1_, "get resource.k8s.io:resourceclaims gpu", "dev"));
  EXPECT_FALSE(may(n2_, "get resource.k8s.io:resourceclaims gpu", "dev"));
  EXPECT_FALSE(may(n1_, "list resource.k8s.io:resourceclaims", "dev"));
  EXPECT_FALSE(may(n1_, "get resource.k8s.io:resourceclaims/status gpu", "dev"));
  EXPECT_FALSE(may(n1_, "get resource.k8s.io:deviceclasses x")) << "what stands beside the slices is not decided like them";
  EXPECT_FALSE(may(n1_, "create resource.k8s.io:deviceclasses"));
}

TEST_F(NodesRights, ItsOwnObjectsAlone) {
  for (const char* verb : {"get", "update", "patch", "delete"}) {
    EXPECT_TRUE(may(n1_, fmt::format("{} coordination.k8s.io:leases n1", verb), "kube-node-lease")) << verb;
    EXPECT_TRUE(may(n1_, fmt::format("{} storage.k8s.io:csinodes n1", verb))) << verb;
    EXPECT_FALSE(may(n1_, fmt::format("{} storage.k8s.io:csinodes n2", verb))) << verb;
  }
  EXPECT_TRUE(may(n1_, "create coordination.k8s.io:leases", "kube-node-lease"));
  EXPECT_TRUE(may(n1_, "create storage.k8s.io:csinodes"));
  for (const char* verb : {"list", "watch", "deletecollection"})
    EXPECT_FALSE(may(n1_, fmt::format("{} storage.k8s.io:csinodes", verb))) << verb;
  EXPECT_FALSE(may(n1_, "get storage.k8s.io:csinodes/status n1"));
  // The same words in other groups are other kinds.
  EXPECT_TRUE(may(n1_, "patch topology.node.k8s.io:noderesourcetopologies n1"));
  EXPECT_FALSE(may(n1_, "patch topology.node.k8s.io:noderesourcetopologies n2"))
      << "what is told of another's NUMA nodes is its own matter";
  EXPECT_FALSE(may(n1_, "list topology.node.k8s.io:noderesourcetopologies"));
  for (const char* other : {"get csinodes n1", "get apps:csinodes n1", "get apps:nodes n1", "get apps:pods p1", "get apps:secrets s",
                            "get apps:volumeattachments a-n1", "get apps:persistentvolumes v1", "get apps:persistentvolumeclaims data",
                            "create apps:serviceaccounts/token bot", "get apps:resourceclaims gpu", "get resourceclaims gpu",
                            "get apps:resourceslices s", "create apps:resourceslices"})
    EXPECT_FALSE(may(n1_, other, "dev")) << other;
  EXPECT_FALSE(may(n1_, "get leases n1", "kube-node-lease"));
  EXPECT_FALSE(may(n1_, "get storage.k8s.io:leases n1", "kube-node-lease"));
  EXPECT_FALSE(may(n1_, "get coordination.k8s.io:leases/status n1", "kube-node-lease"));
  EXPECT_TRUE(may(n1_, "get pods p1", "dev"));
  EXPECT_TRUE(may(n1_, "get pods none", "dev")) << "a pod that is gone is told to be gone";
  EXPECT_FALSE(may(n2_, "get pods p1", "dev"));
  EXPECT_TRUE(may(n1_, "create serviceaccounts/token bot", "dev"));
  EXPECT_EQ(why_not("get serviceaccounts/token bot", "dev"), "can only create tokens for individual service accounts");
  EXPECT_EQ(why_not("create serviceaccounts/token", "dev"), "can only create tokens for individual service accounts");
  EXPECT_EQ(why_not("get coordination.k8s.io:leases n1", "dev"), "can only access leases in the \"kube-node-lease\" system namespace");
  EXPECT_EQ(why_not("get nodes n2"), "node 'n1' cannot read 'n2', only its own Node object");
  EXPECT_EQ(why_not("list nodes"), "node 'n1' cannot read 'all nodes', only its own Node object");
  EXPECT_EQ(why_not("list pods", "dev"), "can only list/watch pods with spec.nodeName field selector");
  EXPECT_EQ(why_not("get persistentvolumeclaims other", "dev"), "no relationship found between node 'n1' and this object");
}

/// In a namespace with very many pods the search takes longer than a moment: it is left to a thread that may wait.
TEST_F(NodesRights, AreNotSearchedForAmongThousandsOfPodsAtOnce) {
  const auto& authorizer = parts_.authorizer;
  const auto claim = ask("get persistentvolumeclaims data", "dev");
  ASSERT_TRUE(authorizer->decide_at_once(n1_, claim));
  EXPECT_TRUE(authorizer->decide_at_once(n1_, claim)->allowed);
  for (int i = 0; i < 1000; ++i) put({.ns = "dev", .name = fmt::format("q{}", i), .node = "n2"});
  EXPECT_FALSE(authorizer->decide_at_once(n1_, claim));
  EXPECT_FALSE(authorizer->decide_at_once(n2_, claim)) << "a no is not said in haste either";
  EXPECT_TRUE(authorizer->authorize(n1_, claim).allowed);
  EXPECT_FALSE(authorizer->authorize(n2_, claim).allowed);
  EXPECT_TRUE(authorizer->decide_at_once(n1_, ask("get pods p1", "dev"))) << "what needs no search is decided";
}

TEST_F(NodesRights, AReasonNamesWhoWasGranted) {
  write_rbac("{kind: Role, metadata: {namespace: dev, name: reader}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}");
  write_rbac(
      "{kind: RoleBinding, metadata: {namespace: dev, name: readers}, roleRef: {kind: Role, name: reader}, subjects: [{kind: User, name: "
      "jane}, {kind: Group, name: ops}, {kind: ServiceAccount, name: bot, namespace: ci}]}");
  const auto why = [&](const UserInfo& who) { return parts_.authorizer->authorize(who, ask("get pods x", "dev")).reason; };
  EXPECT_EQ(why(user("jane")), "RBAC: allowed by RoleBinding \"readers/dev\" of Role \"reader\" to User \"jane\"");
  EXPECT_EQ(why(user("joe", {"ops"})), "RBAC: allowed by RoleBinding \"readers/dev\" of Role \"reader\" to Group \"ops\"");
  EXPECT_EQ(why(user("system:serviceaccount:ci:bot")),
            "RBAC: allowed by RoleBinding \"readers/dev\" of Role \"reader\" to ServiceAccount \"bot/ci\"");
}

TEST_F(NodesRights, ManyRolesThatAreNotThereAreNamedInPart) {
  const auto bind = [&](int from, int to) {
    for (int i = from; i < to; ++i)
      write_rbac(fmt::format("{{kind: ClusterRoleBinding, metadata: {{name: b{0}}}, roleRef: {{kind: ClusterRole, name: gone{0}}}, "
                             "subjects: [{{kind: User, name: jane}}]}}",
                             i)
                     .c_str());
  };
  const auto why = [&] { return parts_.authorizer->authorize(user("jane"), ask("get pods x", "dev")).reason; };
  bind(0, 1);
  EXPECT_EQ(why(), "RBAC: clusterrole.rbac.authorization.k8s.io \"gone0\" not found");
  bind(1, 2);
  EXPECT_EQ(why(),
            "RBAC: [clusterrole.rbac.authorization.k8s.io \"gone0\" not found, clusterrole.rbac.authorization.k8s.io \"gone1\" not found]");
  bind(2, 100);
  EXPECT_TRUE(why().ends_with("\"gone99\" not found]")) << why();
  bind(100, 103);
  EXPECT_TRUE(why().ends_with(" not found, and 3 more]")) << why();
}

/// What a server is started with reaches whoever asks who somebody is.
class HandedOn : public AuthFixture {
 protected:
  AuthParts with(const std::function<void(AuthOptions&)>& change) {
    AuthOptions options{
        .cache = cache_.get(), .clock = &clock_, .service_account_key_pem = pki_->service_account_key_pem(), .issuer = "https://issuer"};
    change(options);
    auto made = make_auth(options);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : AuthParts();
  }
  static std::string who(const AuthParts& parts, const net::HttpRequest& request) {
    const auto found = parts.authenticator->authenticate(request);
    return found ? found->name : "";
  }
  static net::HttpRequest request(const std::string& path = "/api", std::optional<net::PeerCertificate> peer = {}) {
    net::HttpRequest out;
    out.method = "GET";
    out.path = path;
    out.peer = std::move(peer);
    return out;
  }
};

TEST_F(HandedOn, WhetherAndWhereAnonymousRequestsAreLetThrough) {
  EXPECT_EQ(who(with([](AuthOptions&) {}), request()), "system:anonymous");
  EXPECT_EQ(who(with([](AuthOptions& o) { o.anonymous = false; }), request()), "");
  const auto parts = with([](AuthOptions& o) { o.anonymous_paths = {"/livez"}; });
  EXPECT_EQ(who(parts, request("/livez")), "system:anonymous");
  EXPECT_EQ(who(parts, request("/api")), "");
}

TEST_F(HandedOn, TheNamesOfFrontProxies) {
  auto asked = request("/api", net::PeerCertificate{.common_name = "proxy", .is_client = false, .is_front_proxy = true});
  asked.headers.add("X-Remote-User", "jane");
  EXPECT_EQ(who(with([](AuthOptions& o) { o.front_proxy.allowed_names = {"proxy"}; }), asked), "jane");
  EXPECT_EQ(who(with([](AuthOptions& o) { o.front_proxy.allowed_names = {"another"}; }), asked), "");
  asked.headers.add("X-Who", "joe");
  EXPECT_EQ(who(with([](AuthOptions& o) { o.front_proxy.username_headers = {"X-Who"}; }), asked), "joe");
}

TEST_F(HandedOn, CertificatesThatWereRevokedAndTokensOfAFile) {
  const auto asked = request("/api", net::PeerCertificate{.common_name = "jane", .serial = "a1b"});
  EXPECT_EQ(who(with([](AuthOptions&) {}), asked), "jane") << "nothing is revoked where there is no file";
  const std::string revoked = directory_.file("revoked");
  std::ofstream(revoked) << "A1B # left\n";
  EXPECT_EQ(who(with([&](AuthOptions& o) { o.revoked_file = revoked; }), asked), "");
  EXPECT_EQ(who(with([&](AuthOptions& o) { o.revoked_file = revoked; }),
                request("/api", net::PeerCertificate{.common_name = "joe", .serial = "a1c"})),
            "joe");
  const std::string tokens = directory_.file("tokens.csv");
  std::ofstream(tokens) << "secret1,max,uid-1\n";
  auto bearer = request();
  bearer.headers.add("Authorization", "Bearer secret1");
  EXPECT_EQ(who(with([&](AuthOptions& o) { o.token_file = tokens; }), bearer), "max");
  EXPECT_EQ(who(with([](AuthOptions&) {}), bearer), "");
}

TEST_F(HandedOn, NobodyIsWaitedForWhereNobodyIsAsked) {
  auto bearer = request();
  bearer.headers.add("Authorization", "Bearer somebody-elses");
  EXPECT_FALSE(with([](AuthOptions&) {}).authenticator->waits_for(bearer));
  bool is_asked = false;
  const auto hook = std::make_shared<WebhookAuthenticator>(
      [&](const json::Value&) -> Result<json::Value> {
        is_asked = true;
        return json::Value(json::Object{{"status", json::Object{{"authenticated", true}, {"user", json::Object{{"username", "ann"}}}}}});
      },
      clock_, std::chrono::minutes(2));
  const auto parts = with([&](AuthOptions& o) { o.webhook = hook; });
  EXPECT_EQ(parts.authenticator->waits_for(bearer), "the authentication webhook");
  EXPECT_EQ(who(parts, bearer), "ann");
  EXPECT_TRUE(is_asked);
  EXPECT_FALSE(parts.authenticator->waits_for(bearer)) << "what is remembered needs no waiting";
  bearer.peer = net::PeerCertificate{.common_name = "jane"};
  bearer.headers.set("Authorization", "Bearer another");
  EXPECT_FALSE(parts.authenticator->waits_for(bearer)) << "a certificate says who it is";
}

TEST(TokenFiles, LinesAreWholeOrRefused) {
  const store::TemporaryDirectory directory;
  const auto problem = [&](const std::string& text) {
    std::ofstream(directory.file("t.csv")) << text;
    const auto read = parse_token_file(directory.file("t.csv"));
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(problem("a,jane,1\nb,joe,2,\"x,y\"\n\n# comment\n"), "");
  EXPECT_EQ(problem(" \ta,jane,1 \t\r\n  \t\r\n  # comment\nb,joe,2,\" x , y ,, \"  \n"), "");
  const auto padded = parse_token_file(directory.file("t.csv"));
  ASSERT_TRUE(padded);
  EXPECT_EQ(padded->at("a").uid, "1") << "what stands around a line is nobody's";
  EXPECT_EQ(padded->at("b").groups, (std::vector<std::string>{"x", "y"}));
  EXPECT_NE(problem("a,jane,1\na,joe,2\n").find(":2: the token is there twice"), std::string::npos);
  EXPECT_NE(problem("a,jane,\"1\n").find(":1:"), std::string::npos) << "a quote that is not closed";
  EXPECT_EQ(problem("a,\"ja\"\"ne\",1\n"), "");
  EXPECT_EQ(parse_token_file(directory.file("t.csv"))->at("a").name, "ja\"ne");
  for (const char* line : {"a", "a,jane", ",jane,1", "a,,1"})
    EXPECT_NE(problem(fmt::format("z,zoe,0\n{}\n", line)).find(":2:"), std::string::npos) << line << ": " << problem(line);
  EXPECT_FALSE(parse_token_file(directory.file("none")));
}

TEST(DefaultRoles, SayWhatTheyAreGatheredBy) {
  constexpr std::string_view kAggregate = "rbac.authorization.k8s.io/aggregate-to-";
  std::map<std::string, std::string> gathered;
  for (const json::Value& object : default_rbac_objects())
    for (const auto& [key, value] : json::get_object(object, {"metadata", "labels"})) {
      const std::string_view label(key.data(), key.size());
      if (label == "kubernetes.io/bootstrapping") continue;
      ASSERT_TRUE(label.starts_with(kAggregate)) << label;
      gathered[std::string(json::get_string(object, {"metadata", "name"}))] = label.substr(kAggregate.size());
    }
  EXPECT_EQ(gathered.at("system:aggregate-to-view"), "view");
  EXPECT_EQ(gathered.at("system:aggregate-to-edit"), "edit");
  EXPECT_EQ(gathered.at("system:aggregate-to-admin"), "admin");
  EXPECT_EQ(gathered.at("view"), "edit");
  EXPECT_EQ(gathered.at("edit"), "admin");
  EXPECT_FALSE(gathered.contains("cluster-admin"));
  EXPECT_FALSE(gathered.contains("system:node"));
}

TEST(Issuers, AnonymousRequestsAreTheFilesMatter) {
  const auto read = [](const std::string& anonymous) {
    return parse_authentication_config("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n" + anonymous, "a.yaml");
  };
  ASSERT_TRUE(read(""));
  EXPECT_FALSE(read("")->anonymous);
  const auto off = read("anonymous: {enabled: false}\n");
  ASSERT_TRUE(off) << off.error().message;
  ASSERT_TRUE(off->anonymous);
  EXPECT_FALSE(off->anonymous->enabled);
  const auto some = read("anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}\n");
  ASSERT_TRUE(some && some->anonymous);
  EXPECT_TRUE(some->anonymous->enabled);
  EXPECT_EQ(some->anonymous->paths, (std::vector<std::string>{"/livez", "/readyz"}));
}

}  // namespace
}  // namespace berth::apiserver::auth
