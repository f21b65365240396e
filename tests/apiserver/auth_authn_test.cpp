// Certificates, tokens, who a request speaks for (SPEC A6).
#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <sys/stat.h>

#include <fstream>

#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/impersonation.h"
#include "apiserver/auth/reviews.h"
#include "base/base64.h"
#include "security/jwt.h"
#include "security/openssl.h"
#include "security/uuid.h"
#include "tests/apiserver/auth_fixture.h"

namespace berth::apiserver::auth {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

net::HttpRequest request_with(std::vector<std::pair<std::string, std::string>> headers) {
  net::HttpRequest request;
  request.method = "GET";
  for (auto& [name, value] : headers) request.headers.add(name, value);
  return request;
}

/// As tokens carry it: the two numbers side by side.
std::string sign_es256(EVP_PKEY* key, const std::string& text) {
  const std::unique_ptr<EVP_MD_CTX, security::FreeWith<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  std::string der(128, '\0');
  std::size_t size = der.size();
  EXPECT_EQ(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key), 1);
  EXPECT_EQ(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(der.data()), &size,
                           reinterpret_cast<const unsigned char*>(text.data()), text.size()),
            1);
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const std::unique_ptr<ECDSA_SIG, security::FreeWith<ECDSA_SIG_free>> both(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size)));
  std::string out(64, '\0');
  BN_bn2binpad(ECDSA_SIG_get0_r(both.get()), reinterpret_cast<unsigned char*>(out.data()), 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(both.get()), reinterpret_cast<unsigned char*>(out.data()) + 32, 32);
  return out;
}

class AuthenticationTest : public AuthFixture {
 protected:
  void SetUp() override {
    AuthFixture::SetUp();
    write_core("serviceaccounts", doc("{metadata: {namespace: dev, name: bot, uid: sa-uid}}"));
    write_core("nodes", doc("{metadata: {name: n1, uid: node-uid}}"));
    write_core("pods", doc("{metadata: {namespace: dev, name: web, uid: pod-uid}, spec: {nodeName: n1}}"));
  }
  TokenSpec spec() const { return {.ns = "dev", .service_account = "bot", .service_account_uid = "sa-uid"}; }
  std::string token(const TokenSpec& spec) {
    auto issued = parts_.tokens->issue(spec);
    EXPECT_TRUE(issued.has_value());
    return issued ? issued->token : "";
  }
  model::ApiResult<UserInfo> who(const std::string& token) {
    return parts_.authenticator->authenticate(request_with({{"Authorization", "Bearer " + token}}));
  }
};

TEST_F(AuthenticationTest, CertificatesNameUserAndGroups) {
  net::HttpRequest request;
  request.peer = net::PeerCertificate{"jane", {"dev", "ops"}};
  auto user = parts_.authenticator->authenticate(request);
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->name, "jane");
  EXPECT_EQ(user->groups, (std::vector<std::string>{"dev", "ops", "system:authenticated"}));
}

TEST_F(AuthenticationTest, ACertificateCountsAsLongAsItLasts) {
  net::HttpRequest request;
  request.peer = net::PeerCertificate{"jane", {"dev"}};
  request.peer->not_before = clock_.now() - std::chrono::hours(1);
  request.peer->not_after = clock_.now() + std::chrono::hours(1);
  EXPECT_TRUE(parts_.authenticator->authenticate(request));
  clock_.advance(std::chrono::hours(2));
  const auto refused = parts_.authenticator->authenticate(request);
  ASSERT_FALSE(refused) << "on the same connection";
  EXPECT_EQ(refused.error().code, 401);
  request.headers.add("Authorization", "Bearer " + token(spec()));
  const auto by_token = parts_.authenticator->authenticate(request);
  ASSERT_TRUE(by_token);
  EXPECT_EQ(by_token->name, "system:serviceaccount:dev:bot") << "who has a token as well goes on with that";
  request.peer->not_after = TimePoint::max();
  request.peer->not_before = clock_.now() + std::chrono::hours(1);
  request.headers = {};
  EXPECT_FALSE(parts_.authenticator->authenticate(request)) << "not yet";
  request.peer->not_before = TimePoint::min();
  request.peer->is_client = false;
  const auto nobodys = parts_.authenticator->authenticate(request);
  ASSERT_TRUE(nobodys);
  EXPECT_EQ(nobodys->name, "system:anonymous") << "no authority of clients vouches for it";
}

TEST_F(AuthenticationTest, TokensOfAKeyThatIsGoneAreRefused) {
  const auto key = [] { return security::to_pem(security::make_ec_key()->get()); };
  const std::string first = pki_->service_account_key_pem(), second = key();
  const auto old = token(spec());
  EXPECT_TRUE(who(old));
  ASSERT_TRUE(parts_.tokens->set_keys(second + first));
  EXPECT_TRUE(who(old)) << "the new one signs, the old one still counts";
  const auto fresh = token(spec());
  ASSERT_TRUE(parts_.tokens->set_keys(second));
  EXPECT_FALSE(who(old)) << "though it was good a moment ago";
  EXPECT_TRUE(who(fresh));
}

TEST_F(AuthenticationTest, HeadersThatMustBeUnderstoodAreRefused) {
  const auto good = token(spec());
  const auto dot = good.find('.');
  auto header = *json::parse(*base64url_decode(good.substr(0, dot)));
  header.get_object()["crit"] = json::Array{"exp"};
  const auto signed_as = [&](const json::Value& with) {
    // The same claims below another header, signed by the very key.
    const std::string text = base64url_encode(json::serialize(with)) + good.substr(dot, good.rfind('.') - dot);
    auto read = *security::read_private_key(pki_->service_account_key_pem(), "key");
    return text + "." + base64url_encode(sign_es256(read.get(), text));
  };
  json::Value plain = header;
  plain.get_object().erase("crit");
  EXPECT_TRUE(who(signed_as(plain)));
  EXPECT_FALSE(who(signed_as(header)));
}

TEST_F(AuthenticationTest, ABrowsersTokenComesAmongItsProtocols) {
  const auto ask = [&](const std::string& protocols, bool upgrades = true) {
    auto request = request_with({{"Sec-WebSocket-Protocol", protocols}});
    if (upgrades) {
      request.headers.add("Connection", "Upgrade");
      request.headers.add("Upgrade", "websocket");
    }
    const auto user = parts_.authenticator->authenticate(request);
    return user ? user->name : std::string("refused");
  };
  const std::string offered = "base64url.bearer.authorization.k8s.io." + base64url_encode(token(spec()));
  EXPECT_EQ(ask("v5.channel.k8s.io, " + offered), "system:serviceaccount:dev:bot");
  EXPECT_EQ(ask(offered), "refused") << "nothing is left to be chosen";
  EXPECT_EQ(ask("v5.channel.k8s.io, " + offered + ", " + offered), "refused");
  EXPECT_EQ(ask("v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.!!"), "refused");
  EXPECT_EQ(ask("v5.channel.k8s.io"), "system:anonymous");
  EXPECT_EQ(ask("v5.channel.k8s.io, " + offered, false), "system:anonymous") << "no WebSocket";
}

TEST_F(AuthenticationTest, NoCredentialsAreAnonymousBadOnesAreRefused) {
  auto user = parts_.authenticator->authenticate(request_with({}));
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->name, "system:anonymous");
  EXPECT_EQ(user->groups, (std::vector<std::string>{"system:unauthenticated"}));
  for (const char* bad : {"x", "a.b.c", "..", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2lzc3VlciJ9."}) {
    auto refused = who(bad);
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_EQ(refused.error().code, 401);
    EXPECT_EQ(refused.error().message, "Unauthorized");
  }
  auto closed = make_authenticator({.anonymous = false});
  EXPECT_EQ(closed->authenticate(request_with({})).error().code, 401);
  EXPECT_EQ(closed->authenticate(request_with({{"Authorization", "Basic eDp5"}})).error().code, 401);
}

TEST_F(AuthenticationTest, TokenSpeaksForItsServiceAccount) {
  auto bound = spec();
  bound.bound_kind = "Pod";
  bound.bound_name = "web";
  bound.bound_uid = "pod-uid";
  auto user = who(token(bound));
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->name, "system:serviceaccount:dev:bot");
  EXPECT_EQ(user->uid, "sa-uid");
  EXPECT_EQ(user->groups, (std::vector<std::string>{"system:serviceaccounts", "system:serviceaccounts:dev", "system:authenticated"}));
  EXPECT_EQ(user->extra.at("authentication.kubernetes.io/pod-name"), (std::vector<std::string>{"web"}));
  EXPECT_EQ(user->extra.at("authentication.kubernetes.io/pod-uid"), (std::vector<std::string>{"pod-uid"}));
  EXPECT_EQ(user->extra.at("authentication.kubernetes.io/node-name"), (std::vector<std::string>{"n1"}));
  EXPECT_TRUE(user->extra.at("authentication.kubernetes.io/credential-id")[0].starts_with("JTI="));
}

TEST_F(AuthenticationTest, TokensDieWithTheirTimeAndTheirObjects) {
  auto expired = spec();
  expired.expiration_seconds = 600;
  auto short_lived = token(expired);
  EXPECT_TRUE(who(short_lived).has_value());
  clock_.advance(std::chrono::seconds(661));
  auto refused = parts_.authenticator->authenticate_token(short_lived, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "service account token has expired");

  auto bound = spec();
  bound.bound_kind = "Pod";
  bound.bound_name = "web";
  bound.bound_uid = "pod-uid";
  auto pod_token = token(bound), plain = token(spec());
  EXPECT_TRUE(who(pod_token).has_value());
  // The same name with another uid is another pod.
  remove_core("pods", "dev", "web");
  EXPECT_FALSE(who(pod_token).has_value());
  write_core("pods", doc("{metadata: {namespace: dev, name: web, uid: other}}"));
  EXPECT_FALSE(who(pod_token).has_value());
  EXPECT_TRUE(who(plain).has_value());
  remove_core("serviceaccounts", "dev", "bot");
  EXPECT_FALSE(who(plain).has_value());
}

TEST_F(AuthenticationTest, TerminatingPodsSpeakForAMinuteMore) {
  auto bound = spec();
  bound.bound_kind = "Pod";
  bound.bound_name = "web";
  bound.bound_uid = "pod-uid";
  bound.expiration_seconds = 7200;
  auto pod_token = token(bound);
  json::Value pod = doc("{metadata: {namespace: dev, name: web, uid: pod-uid}}");
  json::set(pod, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(clock_.now())));
  write_core("pods", pod);
  EXPECT_TRUE(who(pod_token).has_value());
  clock_.advance(std::chrono::seconds(62));
  EXPECT_FALSE(who(pod_token).has_value());
}

TEST_F(AuthenticationTest, AudiencesMustMeet) {
  auto vault = spec();
  vault.audiences = {"vault"};
  auto vault_token = token(vault);
  EXPECT_FALSE(who(vault_token).has_value());
  EXPECT_TRUE(parts_.authenticator->authenticate_token(vault_token, {"vault", "x"}).has_value());
  auto review = review_token(*parts_.authenticator, json::Object{{"spec", {{"token", vault_token}, {"audiences", {"vault"}}}}});
  EXPECT_TRUE(json::get_bool(*review, {"status", "authenticated"}));
  EXPECT_EQ(json::get_string(*review, {"status", "user", "username"}), "system:serviceaccount:dev:bot");
  const auto audiences_of = [&](const std::string& token, json::Array asked) {
    const auto answer = review_token(*parts_.authenticator, json::Object{{"spec", {{"token", token}, {"audiences", std::move(asked)}}}});
    return json::serialize(json::get_array(*answer, {"status", "audiences"}));
  };
  EXPECT_EQ(audiences_of(vault_token, {"other", "vault"}), R"(["vault"])") << "what both have, not what was asked";
  EXPECT_EQ(audiences_of(vault_token, {"other"}), "[]");
  EXPECT_EQ(audiences_of(token(spec()), {}), R"(["https://issuer"])") << "the API's own";
  review = review_token(*parts_.authenticator, json::Object{{"spec", {{"token", vault_token}}}});
  EXPECT_FALSE(json::get_bool(*review, {"status", "authenticated"}));
  EXPECT_EQ(json::get_string(*review, {"status", "error"}), "token audiences are invalid for the target audiences");
}

TEST_F(AuthenticationTest, ForgedTokensAreRefused) {
  auto good = token(spec());
  EXPECT_TRUE(who(good).has_value());
  // Each part changed in each of some places.
  for (std::size_t i = 3; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    EXPECT_TRUE(bad == good || !who(bad).has_value()) << i;
  }
  // Another key's signature over good claims.
  auto other_key = security::make_ec_key();
  auto forger = security::JwtKey::from_pem(security::to_pem(other_key->get()));
  auto forged = forger->sign(security::unverified_claims(good)->get_object());
  EXPECT_FALSE(who(*forged).has_value());
  // The right key, but another issuer.
  auto own = security::JwtKey::from_pem(pki_->service_account_key_pem());
  auto claims = security::unverified_claims(good)->get_object();
  claims["iss"] = "https://elsewhere";
  EXPECT_FALSE(who(*own->sign(claims)).has_value());
}

/// Clocks may differ by a minute.
TEST_F(AuthenticationTest, EachOfATokensTimesCounts) {
  const auto own = security::JwtKey::from_pem(pki_->service_account_key_pem());
  const json::Object good = security::unverified_claims(token(spec()))->get_object();
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock_.now().time_since_epoch()).count();
  const auto is_good = [&](const char* claim, std::int64_t from_now) {
    json::Object claims = good;
    claims[claim] = now + from_now;
    return who(*own->sign(claims)).has_value();
  };
  for (const char* begin : {"nbf", "iat"}) {
    EXPECT_TRUE(is_good(begin, 59)) << begin;
    EXPECT_FALSE(is_good(begin, 61)) << begin;
  }
  EXPECT_TRUE(is_good("exp", -59));
  EXPECT_FALSE(is_good("exp", -61));
}

TEST_F(AuthenticationTest, LegacyTokensLiveAsLongAsTheirSecret) {
  auto own = security::JwtKey::from_pem(pki_->service_account_key_pem());
  json::Object claims{{"iss", "kubernetes/serviceaccount"},
                      {"sub", "system:serviceaccount:dev:bot"},
                      {"kubernetes.io/serviceaccount/namespace", "dev"},
                      {"kubernetes.io/serviceaccount/secret.name", "bot-token"},
                      {"kubernetes.io/serviceaccount/service-account.name", "bot"},
                      {"kubernetes.io/serviceaccount/service-account.uid", "sa-uid"}};
  auto legacy = *own->sign(claims);
  EXPECT_FALSE(who(legacy).has_value());
  std::string encoded = base64url_encode(legacy);
  for (char& c : encoded) c = c == '-' ? '+' : c == '_' ? '/' : c;
  encoded.append((4 - encoded.size() % 4) % 4, '=');
  write_core("secrets",
             json::Object{{"metadata", {{"namespace", "dev"}, {"name", "bot-token"}, {"uid", "s"}}}, {"data", {{"token", encoded}}}});
  auto user = who(legacy);
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->name, "system:serviceaccount:dev:bot");
  remove_core("secrets", "dev", "bot-token");
  EXPECT_FALSE(who(legacy).has_value());
}

TEST_F(AuthenticationTest, ASecretOfTokenTypeKeepsALegacyToken) {
  write_core("secrets", json::Object{{"metadata", {{"namespace", "dev"}, {"name", "kept"}, {"uid", "k"}}},
                                     {"type", "kubernetes.io/service-account-token"}});
  TokenSpec spec;
  spec.ns = "dev";
  spec.service_account = "bot";
  spec.service_account_uid = "sa-uid";
  spec.bound_kind = "Secret";
  spec.bound_name = "kept";
  spec.bound_uid = "k";
  const auto issuer = [&] {
    return std::string(json::get_string(*security::unverified_claims(parts_.tokens->issue(spec)->token), {"iss"}));
  };
  EXPECT_NE(issuer(), "kubernetes/serviceaccount");
  spec.expiration_seconds = std::int64_t{10} * 365 * 24 * 3600;
  EXPECT_EQ(issuer(), "kubernetes/serviceaccount");
  const auto claims = security::unverified_claims(parts_.tokens->issue(spec)->token);
  EXPECT_EQ(json::get_string(*claims, {"kubernetes.io/serviceaccount/secret.name"}), "kept");
  EXPECT_EQ(json::find(*claims, {"exp"}), nullptr);
}

TEST_F(AuthenticationTest, OpenIdDocumentsNameTheKey) {
  auto configuration = json::parse(parts_.tokens->openid_configuration());
  EXPECT_EQ(json::get_string(*configuration, {"issuer"}), "https://issuer");
  EXPECT_EQ(json::get_string(*configuration, {"jwks_uri"}), "https://issuer/openid/v1/jwks");
  auto keys = json::parse(parts_.tokens->json_web_keys());
  const auto& key = json::get_array(*keys, {"keys"})[0];
  EXPECT_EQ(json::get_string(key, {"kty"}), "EC");
  EXPECT_EQ(base64url_decode(json::get_string(key, {"x"}))->size(), 32U);
  EXPECT_EQ(base64url_decode(json::get_string(key, {"y"}))->size(), 32U);
}

TEST_F(AuthenticationTest, RsaKeysSignRs256) {
  security::Key key(EVP_RSA_gen(2048));
  auto rsa = security::JwtKey::from_pem(security::to_pem(key.get()));
  ASSERT_TRUE(rsa.has_value());
  EXPECT_EQ(rsa->algorithm(), "RS256");
  auto text = rsa->sign({{"a", 1}});
  EXPECT_TRUE(rsa->verify(*text).has_value());
  EXPECT_FALSE(rsa->verify(text->substr(0, text->size() - 2)).has_value());
  EXPECT_EQ(json::get_string(rsa->public_keys()["keys"].get_array()[0], {"e"}), "AQAB");
}

TEST_F(AuthenticationTest, TokenFileIsReadAndItsErrorsNameTheLine) {
  std::string path = directory_.file("tokens.csv");
  std::ofstream(path) << "secret1,jane,uid-1,\"dev,ops\"\n# comment\nsecret2,joe,uid-2\n";
  auto tokens = parse_token_file(path);
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  auto authenticator = make_authenticator({.static_tokens = *tokens});
  auto user = authenticator->authenticate(request_with({{"authorization", "bearer secret1"}}));
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->name, "jane");
  EXPECT_EQ(user->groups, (std::vector<std::string>{"dev", "ops", "system:authenticated"}));
  EXPECT_FALSE(authenticator->authenticate(request_with({{"Authorization", "Bearer secret3"}})).has_value());
  std::ofstream(path) << "secret1,jane,uid-1\nbroken\n";
  tokens = parse_token_file(path);
  ASSERT_FALSE(tokens.has_value());
  EXPECT_NE(tokens.error().message.find(":2:"), std::string::npos);
}

TEST_F(AuthenticationTest, ImpersonationNeedsEachPermission) {
  auto& authorizer = *parts_.authorizer;
  auto admin = user("root", {"system:masters"});
  auto jane = user("jane");
  EXPECT_EQ(apply_impersonation(request_with({}), jane, authorizer)->name, "jane");
  auto as_joe = request_with({{"Impersonate-User", "joe"},
                              {"Impersonate-Group", "dev"},
                              {"Impersonate-Group", "ops"},
                              {"Impersonate-Uid", "7"},
                              {"Impersonate-Extra-Acme.com%2Fproject", "x"}});
  auto joe = apply_impersonation(as_joe, admin, authorizer);
  ASSERT_TRUE(joe.has_value());
  EXPECT_EQ(joe->name, "joe");
  EXPECT_EQ(joe->uid, "7");
  EXPECT_EQ(joe->groups, (std::vector<std::string>{"dev", "ops", "system:authenticated"}));
  EXPECT_EQ(joe->extra.at("acme.com/project"), (std::vector<std::string>{"x"}));
  auto refused = apply_impersonation(as_joe, jane, authorizer);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "users \"joe\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope");
  write_rbac(R"(
kind: ClusterRole
metadata: {name: i}
rules: [{apiGroups: [""], resources: [users], resourceNames: [joe], verbs: [impersonate]}]
---
kind: ClusterRoleBinding
metadata: {name: i}
roleRef: {kind: ClusterRole, name: i}
subjects: [{kind: User, name: jane}]
)");
  EXPECT_TRUE(apply_impersonation(request_with({{"Impersonate-User", "joe"}}), jane, authorizer).has_value());
  EXPECT_FALSE(apply_impersonation(request_with({{"Impersonate-User", "root"}}), jane, authorizer).has_value());
  EXPECT_FALSE(apply_impersonation(request_with({{"Impersonate-User", "joe"}, {"Impersonate-Group", "system:masters"}}), jane, authorizer)
                   .has_value());
  auto account = apply_impersonation(request_with({{"Impersonate-User", "system:serviceaccount:dev:bot"}}), admin, authorizer);
  EXPECT_EQ(account->groups, (std::vector<std::string>{"system:serviceaccounts", "system:serviceaccounts:dev", "system:authenticated"}));
  EXPECT_EQ(apply_impersonation(request_with({{"Impersonate-Group", "dev"}}), admin, authorizer).error().code, 400);
}

TEST_F(AuthenticationTest, WhoIsNamedIsTakenAsHeIsNamed) {
  auto& authorizer = *parts_.authorizer;
  const auto admin = user("root", {"system:masters"});
  const auto as = [&](std::vector<std::pair<std::string, std::string>> headers) {
    const auto found = apply_impersonation(request_with(std::move(headers)), admin, authorizer);
    return found ? fmt::format("{} {} {}", found->name, found->uid, fmt::join(found->groups, ",")) : std::to_string(found.error().code);
  };
  const std::string bot = "system:serviceaccount:dev:bot";
  EXPECT_EQ(as({{"Impersonate-User", bot}, {"Impersonate-Group", "ops"}}), bot + "  ops,system:authenticated")
      << "groups that are given are all it has";
  EXPECT_EQ(as({{"Impersonate-User", "joe"}, {"Impersonate-User", "jim"}, {"Impersonate-Uid", "1"}, {"Impersonate-Uid", "2"}}),
            "joe 1 system:authenticated")
      << "the first of several";
  EXPECT_EQ(as({{"Impersonate-User", "system:anonymous"}}), "system:anonymous  system:unauthenticated");
  EXPECT_EQ(as({{"Impersonate-User", "joe"}, {"Impersonate-Group", "system:unauthenticated"}}), "joe  system:unauthenticated");
  for (const char* alone : {"Impersonate-Uid", "Impersonate-Group", "Impersonate-Extra-Team"})
    EXPECT_EQ(as({{alone, "x"}}), "400") << alone;
  EXPECT_EQ(as({{"Impersonate-User", ""}}), "root  system:masters,system:authenticated");
}

TEST_F(AuthenticationTest, PkiIsMadeOnceAndKeptPrivate) {
  std::string pki = directory_.file("pki");
  EXPECT_EQ(mode_of(pki), 0700U);
  for (const char* key : {"ca.key", "server.key", "service-account.key"}) EXPECT_EQ(mode_of(pki + "/" + key), 0600U) << key;
  auto admin = pki_->admin(clock_.now());
  ASSERT_TRUE(admin.has_value()) << admin.error().message;
  EXPECT_EQ(mode_of(pki + "/admin.key"), 0600U);
  auto again = security::Pki::open({.directory = pki, .names = {"berth.example", "192.0.2.7"}}, clock_.now());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->ca_certificate_pem(), pki_->ca_certificate_pem());
  EXPECT_EQ(again->server().certificate_pem, pki_->server().certificate_pem);
  EXPECT_EQ(again->service_account_key_pem(), pki_->service_account_key_pem());
  EXPECT_EQ(again->admin(clock_.now())->certificate_pem, admin->certificate_pem);
}

TEST_F(AuthenticationTest, CertificatesAreRenewedInTimeAndForNewNames) {
  security::PkiOptions options{.directory = directory_.file("pki"), .names = {"berth.example", "192.0.2.7"}};
  auto later = security::Pki::open(options, clock_.now() + std::chrono::hours(24 * 300));
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->ca_certificate_pem(), pki_->ca_certificate_pem());
  EXPECT_NE(later->server().certificate_pem, pki_->server().certificate_pem);
  options.names.emplace_back("new.example");
  auto named = security::Pki::open(options, clock_.now() + std::chrono::hours(24 * 300));
  EXPECT_NE(named->server().certificate_pem, later->server().certificate_pem);
}

TEST_F(AuthenticationTest, DamagedPkiFilesAreReportedNotReplaced) {
  std::string path = directory_.file("pki/ca.key");
  std::ofstream(path) << "garbage";
  auto opened = security::Pki::open({.directory = directory_.file("pki")}, clock_.now());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(opened.error().message.find("ca.key"), std::string::npos) << opened.error().message;
  std::filesystem::remove(path);
  opened = security::Pki::open({.directory = directory_.file("pki")}, clock_.now());
  ASSERT_FALSE(opened.has_value()) << "a certificate without its key must not be replaced silently";
}

TEST(Encoding, Base64UrlRoundTripsAndHasOneSpelling) {
  for (std::string bytes : {std::string(), std::string("f"), std::string("fo"), std::string("foo"), std::string("\xff\xfe\xfd\0", 4)}) {
    EXPECT_EQ(base64url_decode(base64url_encode(bytes)), bytes);
  }
  EXPECT_EQ(base64url_encode("\xfb\xff"), "-_8");
  EXPECT_EQ(base64url_decode("-_9"), std::nullopt);
  EXPECT_EQ(base64url_decode("a"), std::nullopt);
  EXPECT_EQ(base64url_decode("a+b="), std::nullopt);
  EXPECT_EQ(base64_decode("Zm9v"), "foo");
  EXPECT_EQ(base64_decode("Zg=="), "f");
}

}  // namespace
}  // namespace berth::apiserver::auth
