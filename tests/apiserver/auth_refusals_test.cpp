// Who is refused: bootstrap tokens and what is wrong with them, rules that only look alike, slices of other nodes, settings that say too
// much.
#include "apiserver/auth/authorization_config.h"
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

}  // namespace
}  // namespace berth::apiserver::auth
