// Tokens of other issuers, and web services that are asked who somebody is and what he may.
#include <gtest/gtest.h>

#include <future>

#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/authorization_config.h"
#include "apiserver/auth/oidc.h"
#include "security/jwt.h"
#include "security/openssl.h"
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::auth {
namespace {

constexpr const char* kHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
constexpr const char* kIssuer = "jwt:\n- issuer: {url: 'https://id.example', audiences: [berth]}\n";

std::string problem_of(const std::string& text) {
  const auto parsed = parse_authentication_config(kHead + text, "a.yaml");
  return parsed ? "none" : parsed.error().message;
}

security::JwtKey new_key() {
  auto made = security::make_ec_key();
  auto key = security::JwtKey::from_pem(security::to_pem(made->get()));
  EXPECT_TRUE(key);
  return std::move(*key);
}

class OtherIssuers : public ::testing::Test {
 protected:
  void configure(const std::string& mappings) {
    auto parsed = parse_authentication_config(std::string(kHead) + kIssuer + mappings, "a.yaml");
    ASSERT_TRUE(parsed) << parsed.error().message;
    issuer_ = std::make_unique<OidcIssuer>(
        parsed->issuers.front(),
        [this](const std::string& url, const std::string&) -> Result<std::string> {
          ++fetched_;
          if (is_down_) return fail(ErrorCode::kUnavailable, "connection refused");
          if (url == "https://id.example/.well-known/openid-configuration")
            return std::string(R"({"issuer":"https://id.example","jwks_uri":"https://id.example/keys"})");
          if (url == "https://id.example/keys") return json::serialize(key_->public_keys());
          return fail(ErrorCode::kUnavailable, "HTTP 404");
        },
        loop_);
  }
  json::Object claims(json::Object more = {}) {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(loop_.now().time_since_epoch()).count();
    json::Object out{{"iss", "https://id.example"}, {"aud", "berth"}, {"sub", "jane"}, {"exp", now + 600}, {"nbf", now}};
    for (auto& [key, value] : more) out[key] = value;
    return out;
  }
  /// The user's name and groups, or what is wrong.
  std::string who(const json::Object& given) {
    const auto user = issuer_->verify(*key_->sign(given));
    return user ? fmt::format("{} {}", user->name, fmt::join(user->groups, ",")) : user.error().message;
  }
  VirtualLoop loop_{*parse_rfc3339("2026-01-02T03:04:05Z")};
  std::optional<security::JwtKey> key_ = new_key();
  std::unique_ptr<OidcIssuer> issuer_;
  int fetched_ = 0;
  bool is_down_ = false;
};

TEST_F(OtherIssuers, ClaimsBecomeAUser) {
  configure("  claimMappings: {username: {claim: sub, prefix: 'oidc:'}, groups: {claim: teams, prefix: 'oidc:'}}\n");
  EXPECT_EQ(who(claims({{"teams", json::Array{"dev", "ops"}}})), "oidc:jane oidc:dev,oidc:ops");
  EXPECT_EQ(who(claims({{"teams", "dev"}})), "oidc:jane oidc:dev");
  EXPECT_EQ(who(claims()), "oidc:jane ");
  EXPECT_EQ(fetched_, 2) << "keys are kept";
}

TEST_F(OtherIssuers, AnIssuerThatDoesNotAnswerIsNotAskedByEverybody) {
  configure("  claimMappings: {username: {claim: sub, prefix: ''}}\n");
  is_down_ = true;
  const auto token = *key_->sign(claims());
  EXPECT_TRUE(issuer_->must_fetch(token));
  EXPECT_EQ(who(claims()), "connection refused");
  const int asked = fetched_;
  EXPECT_FALSE(issuer_->must_fetch(token)) << "nobody waits again so soon";
  EXPECT_EQ(who(claims()), "the issuer's keys could not be had yet");
  EXPECT_EQ(fetched_, asked);
  loop_.run_for(std::chrono::seconds(5));
  is_down_ = false;
  EXPECT_TRUE(issuer_->must_fetch(token));
  EXPECT_EQ(who(claims()), "jane ");
}

TEST_F(OtherIssuers, ExpressionsMapAndJudge) {
  configure(
      "  claimMappings:\n"
      "    username: {expression: 'claims.sub + \"@\" + claims.tenant'}\n"
      "    groups: {expression: 'claims.roles.split(\",\")'}\n"
      "    extra: [{key: example.com/tenant, valueExpression: claims.tenant}]\n"
      "  claimValidationRules:\n"
      "  - {expression: 'claims.tenant != \"bad\"', message: no bad tenants}\n"
      "  - {claim: hd, requiredValue: example.com}\n"
      "  userValidationRules:\n"
      "  - {expression: \"!user.username.startsWith('system:')\", message: that name is the cluster's}\n");
  const auto with = [&](json::Object more) {
    more["hd"] = "example.com";
    more["roles"] = "a,b";
    return who(claims(std::move(more)));
  };
  EXPECT_EQ(with({{"tenant", "t1"}}), "jane@t1 a,b");
  EXPECT_NE(with({{"tenant", "bad"}}).find("no bad tenants"), std::string::npos);
  EXPECT_EQ(with({{"tenant", "t"}, {"sub", "system:admin"}}), "that name is the cluster's");
  EXPECT_NE(with({}).find("no such key: tenant"), std::string::npos);
  EXPECT_EQ(who(claims({{"tenant", "t"}, {"roles", "a"}, {"hd", "other.com"}})), "the required claim \"hd\" has another value");
}

TEST_F(OtherIssuers, WhatIsMappedToNoTextIsNobodysName) {
  configure("  claimMappings: {username: {expression: claims.name}, groups: {expression: claims.teams}}\n");
  EXPECT_EQ(who(claims({{"name", "jane"}, {"teams", json::Array{"dev"}}})), "jane dev");
  EXPECT_EQ(who(claims({{"name", 5}, {"teams", "dev"}})), "expression 'claims.name' gives no text");
  EXPECT_EQ(who(claims({{"name", json::Array{"jane"}}, {"teams", "dev"}})), "expression 'claims.name' gives no text");
  EXPECT_NE(who(claims({{"name", "jane"}, {"teams", 5}})), "jane ");
  configure("  claimMappings: {username: {claim: name, prefix: ''}, groups: {claim: teams, prefix: ''}}\n");
  const std::string neither = "the claim \"teams\" is neither a text nor a list of texts";
  EXPECT_EQ(who(claims({{"name", "jane"}, {"teams", 5}})), neither);
  EXPECT_EQ(who(claims({{"name", "jane"}, {"teams", json::Array{"dev", 5}}})), neither);
  EXPECT_EQ(who(claims({{"name", "jane"}, {"teams", json::Array{}}})), "jane ");
  EXPECT_EQ(who(claims({{"name", "jane"}, {"teams", json::Array{"dev", "ops"}}})), "jane dev,ops");
}

TEST_F(OtherIssuers, WhatIsWrongWithATokenIsNotBelieved) {
  configure("  claimMappings: {username: {claim: sub, prefix: ''}}\n");
  EXPECT_EQ(who(claims()), "jane ");
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(loop_.now().time_since_epoch()).count();
  EXPECT_EQ(who(claims({{"exp", now - 1}})), "it has expired");
  EXPECT_EQ(who(claims({{"nbf", now + 3600}})), "it is not valid yet");
  EXPECT_EQ(who(claims({{"aud", json::Array{"others"}}})), "it is for others, not for berth");
  EXPECT_EQ(who(claims({{"sub", ""}})), "the user name is empty");
  auto no_end = claims();
  no_end.erase("exp");
  EXPECT_EQ(who(no_end), "it has no exp");
  const std::string good = *key_->sign(claims());
  const auto judged = [&](const std::string& token) {
    const auto user = issuer_->verify(token);
    return user ? "believed" : user.error().message;
  };
  std::string forged = good;
  forged[good.find('.') + 5] ^= 1;
  EXPECT_EQ(judged(forged), "its signature is none of the issuer's");
  EXPECT_EQ(judged(*new_key().sign(claims())), "its signature is none of the issuer's");
  // {"alg":"none"} and {"alg":"HS256"}
  const std::string body = good.substr(good.find('.'), good.rfind('.') - good.find('.') + 1);
  EXPECT_NE(judged("eyJhbGciOiJub25lIn0" + body), "believed");
  EXPECT_NE(judged("eyJhbGciOiJIUzI1NiJ9" + body + good.substr(good.rfind('.') + 1)), "believed");
  for (const char* bad : {"", ".", "..", "a.b", "a.b.c", "eyJhbGciOiJFUzI1NiJ9.."}) EXPECT_NE(judged(bad), "believed") << bad;
}

TEST_F(OtherIssuers, NewKeysAreFetchedButNotForEveryForgery) {
  configure("  claimMappings: {username: {claim: sub, prefix: ''}}\n");
  EXPECT_EQ(who(claims()), "jane ");
  key_.emplace(new_key());
  EXPECT_NE(who(claims()), "jane ") << "asked a moment ago";
  loop_.run_for(std::chrono::seconds(6));
  EXPECT_EQ(who(claims()), "jane ");
  const int before = fetched_;
  for (int i = 0; i < 20; ++i) static_cast<void>(issuer_->verify(*new_key().sign(claims())));
  EXPECT_EQ(fetched_, before);
  is_down_ = true;
  loop_.run_for(std::chrono::minutes(1));
  EXPECT_EQ(who(claims({{"exp", std::int64_t{4} << 32}})), "jane ") << "keys that are known go on being good";
}

TEST_F(OtherIssuers, KeysThatAreKnownDecideWhereNewOnesCannotBeHad) {
  configure("  claimMappings: {username: {claim: sub, prefix: ''}}\n");
  EXPECT_EQ(who(claims()), "jane ");
  is_down_ = true;
  loop_.run_for(std::chrono::seconds(10));
  const int before = fetched_;
  const auto forged = issuer_->verify(*new_key().sign(claims()));
  ASSERT_FALSE(forged);
  EXPECT_EQ(forged.error().message, "its signature is none of the issuer's");
  EXPECT_EQ(fetched_, before + 1) << "its key might have been new";
}

TEST_F(OtherIssuers, AClockThatWasSetBackKeepsNobodyFromAsking) {
  struct HandClock final : Clock {
    TimePoint time = *parse_rfc3339("2026-01-02T03:04:05Z");
    [[nodiscard]] TimePoint now() const override { return time; }
  } clock;
  configure("  claimMappings: {username: {claim: sub, prefix: ''}}\n");
  auto parsed =
      parse_authentication_config(std::string(kHead) + kIssuer + "  claimMappings: {username: {claim: sub, prefix: ''}}\n", "a.yaml");
  ASSERT_TRUE(parsed);
  OidcIssuer issuer(
      parsed->issuers.front(), [](const std::string&, const std::string&) -> Result<std::string> { return invalid("away"); }, clock);
  const auto token = *key_->sign(claims());
  EXPECT_FALSE(issuer.verify(token));
  EXPECT_FALSE(issuer.must_fetch(token)) << "asked just now";
  clock.time -= std::chrono::hours(1);
  EXPECT_TRUE(issuer.must_fetch(token));
}

TEST_F(OtherIssuers, GroupsWithoutANameAreNone) {
  configure("  claimMappings: {username: {claim: sub, prefix: ''}, groups: {expression: 'claims.roles.split(\",\")'}}\n");
  EXPECT_EQ(who(claims({{"roles", ",dev,,ops,"}})), "jane dev,ops");
  EXPECT_EQ(who(claims({{"roles", ""}})), "jane ");
}

TEST_F(OtherIssuers, AnAddressMustBeVerified) {
  configure("  claimMappings: {username: {claim: email, prefix: ''}}\n");
  EXPECT_EQ(who(claims({{"email", "j@x.org"}, {"email_verified", true}})), "j@x.org ");
  EXPECT_EQ(who(claims({{"email", "j@x.org"}, {"email_verified", false}})), "the email address is not verified");
}

TEST(AuthenticationConfigurations, MistakesAreNamedByTheirPlace) {
  const std::string mapped = "  claimMappings: {username: {claim: sub, prefix: ''}}\n";
  EXPECT_EQ(problem_of(kIssuer + mapped), "none");
  EXPECT_NE(problem_of("jwt: [{issuer: {url: 'http://x', audiences: [a]}}]")
                .find("a.yaml:3: jwt[0].issuer.url: \"http://x\" is no URL with https://"),
            std::string::npos);
  EXPECT_NE(problem_of(std::string(kIssuer) + "  claimMappings: {username: {claim: sub}}\n").find("prefix: missing"), std::string::npos);
  EXPECT_NE(problem_of(std::string(kIssuer) + "  claimMappings: {username: {expression: 'claims.'}}\n").find("compilation failed"),
            std::string::npos);
  EXPECT_NE(problem_of(std::string(kIssuer) + "  claimMappings: {username: {expression: '1 + 1'}}\n").find("must evaluate to string"),
            std::string::npos);
  EXPECT_NE(problem_of(std::string(kIssuer) + "  claimMappings: {username: {expression: claims.email}}\n").find("email_verified"),
            std::string::npos);
  EXPECT_NE(problem_of(kIssuer + mapped + "  claimRules: []\n").find("unknown field"), std::string::npos);
  EXPECT_NE(problem_of("jwt: [{issuer: {url: 'https://x', audiences: [a, b]}, claimMappings: {username: {claim: s, prefix: ''}}}]")
                .find("audienceMatchPolicy: missing"),
            std::string::npos);
}

class AskedServices : public ::testing::Test {
 protected:
  PostReview service() {
    return [this](const json::Value& review) -> Result<json::Value> {
      asked_.push_back(review);
      if (is_down_) return fail(ErrorCode::kUnavailable, "connection refused");
      return answer_;
    };
  }
  VirtualLoop loop_{*parse_rfc3339("2026-01-02T03:04:05Z")};
  std::vector<json::Value> asked_;
  json::Value answer_ = json::Object{};
  bool is_down_ = false;
};

TEST_F(AskedServices, TokensAreReviewedAndAnswersKept) {
  WebhookAuthenticator webhook(service(), loop_, std::chrono::minutes(2));
  answer_ = json::Object{
      {"status", json::Object{{"authenticated", true}, {"user", json::Object{{"username", "jane"}, {"groups", json::Array{"dev"}}}}}}};
  EXPECT_FALSE(webhook.remembered("t", {}));
  const auto user = webhook.authenticate("t", {});
  ASSERT_TRUE(user);
  EXPECT_EQ(user->user.name, "jane");
  EXPECT_EQ(json::get_string(asked_[0], {"spec", "token"}), "t");
  EXPECT_TRUE(webhook.authenticate("t", {}));
  EXPECT_EQ(asked_.size(), 1U);
  loop_.run_for(std::chrono::minutes(3));
  answer_ = json::Object{{"status", json::Object{{"authenticated", false}}}};
  EXPECT_FALSE(webhook.authenticate("t", {}));
  is_down_ = true;
  EXPECT_FALSE(webhook.authenticate("u", {}));
  EXPECT_FALSE(webhook.remembered("u", {})) << "what could not be asked is asked again";
}

TEST_F(AskedServices, AnAnswerWithoutANameIsNone) {
  WebhookAuthenticator webhook(service(), loop_, std::chrono::minutes(2));
  const auto says = [&](const std::string& token, json::Value status) {
    answer_ = json::Object{{"status", std::move(status)}};
    const auto user = webhook.authenticate(token, {"api"});
    return user ? user->user.name : user.error().message;
  };
  const std::string nobody = "the authentication webhook names no user";
  EXPECT_EQ(says("a", json::Object{{"authenticated", true}}), nobody);
  EXPECT_EQ(says("b", json::Object{{"authenticated", true}, {"user", json::Object{}}}), nobody);
  EXPECT_EQ(says("c", json::Object{{"authenticated", true}, {"user", json::Object{{"username", ""}}}}), nobody);
  EXPECT_EQ(says("d", json::Object{{"authenticated", true}, {"user", nullptr}}), nobody);
  EXPECT_EQ(says("e", json::Object{{"authenticated", false}, {"error", "out of date"}}), "out of date");
  EXPECT_EQ(says("f", json::Object{{"authenticated", false}}), "the authentication webhook does not know the token");
  const json::Object jane{{"username", "jane"}};
  EXPECT_EQ(says("g", json::Object{{"authenticated", true}, {"user", jane}, {"audiences", json::Array{5, "api"}}}), "jane");
  EXPECT_EQ(says("h", json::Object{{"authenticated", true}, {"user", jane}, {"audiences", json::Array{5}}}),
            "the authentication webhook knows the token for other audiences");
  EXPECT_EQ(says("i", json::Object{{"authenticated", true}, {"user", jane}, {"audiences", json::Array{}}}), "jane");
}

TEST_F(AskedServices, ATokenIsForWhatBothSay) {
  WebhookAuthenticator webhook(service(), loop_, std::chrono::minutes(2));
  answer_ = json::Object{
      {"status",
       json::Object{{"authenticated", true}, {"user", json::Object{{"username", "jane"}}}, {"audiences", json::Array{"api", "vault"}}}}};
  const auto found = webhook.authenticate("t", {"vault", "other"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->audiences, (std::vector<std::string>{"vault"}));
  EXPECT_FALSE(webhook.authenticate("t", {"other"}));
}

TEST(AnswersKept, LastNoLongerWhenTheClockIsSetBack) {
  class Settable final : public Clock {
   public:
    [[nodiscard]] TimePoint now() const override { return at; }
    TimePoint at = *parse_rfc3339("2026-01-02T03:04:05Z");
  } clock;
  AnswerCache<int> cache(clock);
  cache.put("q", 1, std::chrono::minutes(5));
  EXPECT_TRUE(cache.find("q"));
  clock.at -= std::chrono::hours(1);
  EXPECT_FALSE(cache.find("q"));
  cache.put("q", 1, std::chrono::minutes(5));
  clock.at += std::chrono::hours(24 * 400);
  EXPECT_FALSE(cache.find("q"));
}

TEST_F(AskedServices, TheFirstWithAnOpinionDecides) {
  auto nobody = std::make_shared<testing::PickyAuthorizer>([](const UserInfo& user, const Attributes&) { return user.name == "known"; });
  const auto chain = [&](bool failure_denies, bool first) {
    WebhookAuthorizerOptions options{.name = "hook", .post = service(), .failure_denies = failure_denies};
    auto program =
        cel::compile("has(request.resourceAttributes) && request.resourceAttributes.namespace == 'shop'", access_review_environment());
    EXPECT_TRUE(program) << program.error().text;
    options.conditions.emplace_back("c", std::move(*program));
    const AuthorizerChain::Link hook{AuthorizerConfig::Type::kWebhook, std::make_shared<WebhookAuthorizer>(std::move(options), loop_)};
    const AuthorizerChain::Link built_in{AuthorizerConfig::Type::kBuiltIn, nullptr};
    return AuthorizerChain(nobody, first ? std::vector{hook, built_in} : std::vector{built_in, hook});
  };
  const Attributes shop{.verb = "get", .resource = "pods", .ns = "shop"}, other{.verb = "get", .resource = "pods", .ns = "other"};
  const UserInfo jane{"jane", "", {}, {}}, known{"known", "", {}, {}}, master{"m", "", {"system:masters"}, {}};
  {
    AuthorizerChain ask_last = chain(false, false);
    answer_ = json::Object{{"status", json::Object{{"allowed", true}, {"reason", "by the hook"}}}};
    EXPECT_TRUE(ask_last.decide_at_once(known, shop)) << "who is allowed already need not be asked about";
    EXPECT_FALSE(ask_last.decide_at_once(jane, shop));
    EXPECT_TRUE(ask_last.may_ask(jane));
    EXPECT_FALSE(ask_last.may_ask(master));
    EXPECT_TRUE(ask_last.authorize(jane, shop).allowed);
    EXPECT_TRUE(ask_last.decide_at_once(jane, shop)) << "it is remembered";
    EXPECT_FALSE(ask_last.authorize(jane, other).allowed) << "the condition does not hold";
    EXPECT_EQ(asked_.size(), 1U);
    EXPECT_EQ(json::get_string(asked_[0], {"spec", "resourceAttributes", "namespace"}), "shop");
  }
  {
    AuthorizerChain ask_first = chain(false, true);
    answer_ = json::Object{{"status", json::Object{{"allowed", false}, {"denied", true}, {"reason", "closed"}}}};
    const auto decision = ask_first.authorize(known, shop);
    EXPECT_FALSE(decision.allowed) << "denied, though RBAC would allow it";
    EXPECT_EQ(decision.reason, "closed");
    EXPECT_TRUE(ask_first.authorize(master, shop).allowed);
  }
  is_down_ = true;
  EXPECT_TRUE(chain(false, true).authorize(known, shop).allowed) << "no opinion: the next is asked";
  EXPECT_FALSE(chain(true, true).authorize(known, shop).allowed);
}

TEST_F(AskedServices, AnswersAreKeptByWhatTheySay) {
  WebhookAuthorizer hook(
      {.name = "hook", .post = service(), .authorized_ttl = std::chrono::seconds(100), .unauthorized_ttl = std::chrono::seconds(10)},
      loop_);
  const Attributes shop{.verb = "get", .resource = "pods", .ns = "shop"};
  const auto says = [&](const char* who, bool allowed, bool denied) {
    answer_ = json::Object{{"status", json::Object{{"allowed", allowed}, {"denied", denied}}}};
    return hook.authorize({who, "", {}, {}}, shop).verdict;
  };
  const auto is_kept = [&](const char* who) { return hook.remembered({who, "", {}, {}}, shop).has_value(); };
  EXPECT_EQ(says("yes", true, false), Verdict::kAllow);
  EXPECT_EQ(says("no", false, true), Verdict::kDeny);
  EXPECT_EQ(says("both", true, true), Verdict::kDeny);
  EXPECT_EQ(says("neither", false, false), Verdict::kNoOpinion);
  for (const char* who : {"yes", "no", "both", "neither"}) EXPECT_TRUE(is_kept(who)) << who;
  loop_.run_for(std::chrono::seconds(20));
  for (const char* who : {"no", "both", "neither"}) EXPECT_FALSE(is_kept(who)) << who;
  EXPECT_TRUE(is_kept("yes"));
  loop_.run_for(std::chrono::seconds(90));
  EXPECT_FALSE(is_kept("yes"));
  is_down_ = true;
  EXPECT_EQ(hook.authorize({"away", "", {}, {}}, shop).verdict, Verdict::kNoOpinion);
  EXPECT_FALSE(is_kept("away")) << "what could not be asked is asked again";
}

TEST_F(AskedServices, LinksThatAllowOrDenyEverythingDoSoInTheirTurn) {
  using Type = AuthorizerConfig::Type;
  auto built_in = std::make_shared<testing::PickyAuthorizer>([](const UserInfo& user, const Attributes&) { return user.name == "known"; });
  const auto hook = std::make_shared<WebhookAuthorizer>(WebhookAuthorizerOptions{.name = "hook", .post = service()}, loop_);
  const auto chain = [&](std::vector<Type> types) {
    std::vector<AuthorizerChain::Link> links;
    for (const Type type : types) links.push_back({type, type == Type::kWebhook ? hook : nullptr});
    return std::make_unique<AuthorizerChain>(built_in, links);
  };
  const Attributes shop{.verb = "get", .resource = "pods", .ns = "shop"};
  const UserInfo jane{"jane", "", {}, {}}, known{"known", "", {}, {}}, master{"m", "", {"system:masters"}, {}};

  const auto open = chain({Type::kBuiltIn, Type::kAlwaysAllow, Type::kWebhook});
  EXPECT_TRUE(open->authorize(jane, shop).allowed);
  EXPECT_TRUE(open->decide_at_once(jane, shop)->allowed);
  EXPECT_FALSE(open->may_ask(jane)) << "the webhook's turn never comes";

  const auto shut = chain({Type::kAlwaysDeny});
  EXPECT_FALSE(shut->authorize(known, shop).allowed);
  EXPECT_EQ(shut->authorize(known, shop).reason, "Everything is forbidden.");
  EXPECT_FALSE(shut->decide_at_once(known, shop)->allowed);
  EXPECT_TRUE(shut->authorize(master, shop).allowed);

  const auto denies_first = chain({Type::kAlwaysDeny, Type::kBuiltIn});
  EXPECT_TRUE(denies_first->authorize(known, shop).allowed) << "who has no opinion leaves it to the next";
  EXPECT_TRUE(denies_first->authorize(jane, shop).reason.starts_with("Everything is forbidden."));
  EXPECT_TRUE(asked_.empty());
}

TEST(ReviewsOfAccess, SayWhoAsksForWhatAndNothingThatIsEmpty) {
  const Attributes everything{.verb = "patch",
                              .group = "apps",
                              .version = "v1",
                              .resource = "deployments",
                              .subresource = "scale",
                              .ns = "shop",
                              .name = "web",
                              .path = "/apis/apps/v1/namespaces/shop/deployments/web/scale"};
  const UserInfo jane{"jane", "7", {"dev", "ops"}, {{"team", {"blue", "red"}}, {"scopes", {}}}};
  EXPECT_EQ(json::serialize(access_review_spec(jane, everything)),
            R"({"resourceAttributes":{"namespace":"shop","verb":"patch","group":"apps","version":"v1","resource":"deployments",)"
            R"("subresource":"scale","name":"web"},"user":"jane","uid":"7","groups":["dev","ops"],)"
            R"("extra":{"scopes":[],"team":["blue","red"]}})");
  EXPECT_EQ(json::serialize(access_review_spec({"jane", "", {}, {}}, {.verb = "list", .resource = "nodes"})),
            R"({"resourceAttributes":{"verb":"list","resource":"nodes"},"user":"jane"})");
  Attributes health{.verb = "get", .path = "/healthz"};
  health.is_resource = false;
  EXPECT_EQ(json::serialize(access_review_spec({"", "", {"system:unauthenticated"}, {}}, health)),
            R"({"nonResourceAttributes":{"path":"/healthz","verb":"get"},"groups":["system:unauthenticated"]})");
}

TEST(AuthorizationConfigurations, MistakesAreNamedByTheirPlace) {
  const auto problem = [](const std::string& authorizers) {
    const auto parsed = parse_authorization_config(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n" + authorizers, "z.yaml");
    return parsed ? fmt::format("{} authorizers", parsed->size()) : parsed.error().message;
  };
  const std::string both = "- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n";
  const std::string hook =
      "- type: Webhook\n  name: hook\n  webhook:\n    timeout: 3s\n    subjectAccessReviewVersion: v1\n    failurePolicy: Deny\n"
      "    matchConditionSubjectAccessReviewVersion: v1\n    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /k}\n";
  EXPECT_EQ(problem(both + hook), "2 authorizers");
  EXPECT_EQ(problem(hook + both + "  # the end\n"), "2 authorizers");
  EXPECT_NE(problem("- {type: RBAC, name: rbac}\n").find("Node is missing beside RBAC"), std::string::npos);
  EXPECT_NE(problem(both + "- {type: ABAC, name: x}\n").find("z.yaml:6: authorizers[2].type: ABAC is not supported"), std::string::npos);
  EXPECT_NE(problem(both + hook + "    matchConditions: [{expression: 'request.foo == 1'}]\n").find("compilation failed"),
            std::string::npos);
  EXPECT_NE(problem(both + "- {type: Webhook, name: h, webhook: {}}\n").find("timeout: missing"), std::string::npos);
}

/// A server whose authenticator or authorizer has to ask elsewhere does so on other threads.
class SlowAuthorizer final : public Authorizer {
 public:
  Decision authorize(const UserInfo&, const Attributes&) override {
    where = std::this_thread::get_id();
    return {true, ""};
  }
  Expected<Decision, std::string> decide_at_once(const UserInfo&, const Attributes&) override { return std::unexpected("a service"); }
  UserRules rules_for(const UserInfo&, const std::string&) override { return {}; }
  std::atomic<std::thread::id> where;
};

TEST(AskingThreads, KeepTheIoThreadFree) {
  ThreadLoop loop("server");
  auto cache = open_object_cache(store::make_memory_store(), loop, {}, false);
  ASSERT_TRUE(cache);
  ServerOptions options;
  options.cache = std::move(*cache);
  options.loop = &loop;
  options.authenticator = std::make_shared<TrustingAuth>();
  const auto slow = std::make_shared<SlowAuthorizer>();
  options.authorizer = slow;
  options.asking_threads = 1;
  auto server = ApiServer::create(std::move(options));
  ASSERT_TRUE(server) << server.error().message;
  class Answer final : public testing::RecordedResponse {
   public:
    void respond(net::HttpResponse response) override { promise.set_value(response.status); }
    void respond_shared(int code, net::Headers, std::vector<Bytes>) override { promise.set_value(code); }
    std::promise<int> promise;
  };
  const auto answer = std::make_shared<Answer>();
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/namespaces/default";
  (*server)->handle(std::move(request), answer);
  EXPECT_EQ(answer->promise.get_future().get(), 200);
  EXPECT_NE(slow->where.load(), std::this_thread::get_id());
}

}  // namespace
}  // namespace berth::apiserver::auth
