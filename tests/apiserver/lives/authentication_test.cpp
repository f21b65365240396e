// Who a request speaks for: servers of every make, requests with certificates, headers and tokens of every kind, good and bad. What each is
// taken for is recorded; what must hold of all of them is judged.
#include <fstream>

#include "apiserver/auth/authenticator.h"
#include "base/base64.h"
#include "security/bootstrap_token.h"
#include "security/jwt.h"
#include "security/openssl.h"
#include "tests/apiserver/lives/access.h"
#include "tests/store/store_fixture.h"

namespace berth::apiserver::auth {
namespace {

std::string new_key() { return security::to_pem(security::make_ec_key()->get()); }

class AuthenticationLives : public AccessLives {
 protected:
  void SetUp() override {
    AccessLives::SetUp();
    own_key_ = new_key();
    id_key_.emplace(std::move(*security::JwtKey::from_pem(new_key())));
    write("", "serviceaccounts", json::Object{{"metadata", json::Object{{"name", "bot"}, {"namespace", "dev"}, {"uid", "u"}}}});
    for (const auto& [id, hours] : {std::pair("aaaaaa", 1), {"bbbbbb", -1}}) {
      security::BootstrapToken token;
      token.id = id;
      token.secret = "0123456789abcdef";
      token.authenticates = true;
      token.expiration = clock_.now() + std::chrono::hours(hours);
      token.extra_groups = {"system:bootstrappers:mine"};
      write("", "secrets", security::make_bootstrap_secret(token));
    }
    std::ofstream(directory_.file("revoked")) << "bad0\n";
  }

  /// A server, and in words what it is told.
  void make_server() {
    AuthenticatorOptions options;
    std::string said = "== server";
    const auto with = [&](const char* what, int percent) {
      const bool has = life_.dice.chance(percent);
      if (has) said += fmt::format(", {}", what);
      return has;
    };
    if (with("a file of tokens", 60))
      options.static_tokens = {{"fixed", {"fix", "7", {"ops"}, {}}}, {"aaaaaa.fedcba9876543210", {"both", "", {}, {}}}};
    if (with("own tokens", 80))
      options.service_account_tokens = tokens_ =
          *ServiceAccountTokens::create({.key_pem = own_key_, .issuer = "https://own", .api_audiences = {"api", "berth"}}, *cache_, clock_);
    if (with("bootstrap tokens", 60)) options.cache = cache_.get();
    options.clock = &clock_;
    if (with("revocations", 60)) options.revoked = std::make_shared<RevokedCertificates>(directory_.file("revoked"));
    if (with("an issuer", 50)) options.oidc = issuer();
    if (with("a webhook", 40)) options.webhook = webhook();
    if (with("named proxies", 50)) options.front_proxy.allowed_names = {"proxy"};
    options.anonymous = with("anonymous", 70);
    if (with("on some paths", 30)) options.anonymous_paths = {"/healthz"};
    server_ = make_authenticator(std::move(options));
    if (life_.dice.chance(20)) {
      set_issuers(*server_, life_.dice.chance(50) ? issuer() : nullptr, false, {});
      said += ", then another file of issuers";
    }
    life_.tell(said);
  }
  std::shared_ptr<OidcAuthenticator> issuer() {
    auto parsed = parse_authentication_config(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: 'https://id', audiences: "
        "[berth]}\n"
        "  claimMappings: {username: {claim: sub, prefix: 'id:'}, groups: {claim: teams, prefix: 'id:'}}\n",
        "a.yaml");
    EXPECT_TRUE(parsed) << parsed.error().message;
    return std::make_shared<OidcAuthenticator>(
        parsed->issuers,
        [this](const std::string& url, const std::string&) -> Result<std::string> {
          return url.ends_with("/keys") ? json::serialize(id_key_->public_keys())
                                        : std::string(R"({"issuer":"https://id","jwks_uri":"https://id/keys"})");
        },
        clock_);
  }
  std::shared_ptr<WebhookAuthenticator> webhook() {
    return std::make_shared<WebhookAuthenticator>(
        [this](const json::Value& review) -> Result<json::Value> {
          ++asked_;
          const auto token = json::get_string(review, {"spec", "token"});
          if (token == "away") return fail(ErrorCode::kUnavailable, "connection refused");
          json::Value out = review;
          json::set(out, {"status", "authenticated"}, json::Value(token.starts_with("hook")));
          json::set(out, {"status", "user", "username"}, json::Value("hooked"));
          if (token == "hook-x") json::set(out, {"status", "audiences"}, json::Array{"x"});
          return out;
        },
        clock_, std::chrono::minutes(2));
  }

  net::PeerCertificate some_certificate(std::string& said) {
    net::PeerCertificate out;
    out.common_name = life_.one({"jane", "proxy", "other-proxy", ""});
    out.organizations = life_.some({"dev", "system:authenticated"}, 40);
    out.serial = life_.one({"1", "2", "bad0"});
    if (life_.dice.chance(50)) out.fingerprint = "f1";
    out.is_client = life_.dice.chance(75);
    out.is_front_proxy = life_.dice.chance(40);
    const int time = life_.dice.below(10);
    if (time == 0) out.not_after = clock_.now() - std::chrono::seconds(1);
    if (time == 1) out.not_before = clock_.now() + std::chrono::seconds(1);
    if (time == 2) out.not_after = out.not_before = clock_.now();
    said += fmt::format(" certificate {} [{}] {}{}{}{}{}", out.common_name, fmt::join(out.organizations, " "), out.serial,
                        out.is_client ? " client" : "", out.is_front_proxy ? " proxy" : "", out.fingerprint.empty() ? "" : " printed",
                        time == 0   ? " over"
                        : time == 1 ? " not yet"
                        : time == 2 ? " this very moment"
                                    : "");
    return out;
  }
  std::string some_token(std::string& said) {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock_.now().time_since_epoch()).count();
    const std::string kind =
        life_.one({"fixed", "aaaaaa.0123456789abcdef", "aaaaaa.fedcba9876543210", "bbbbbb.0123456789abcdef", "own", "own", "own, forged",
                   "id", "id, forged", "id, over", "id, not ours", "hook", "hook-x", "away", "nonsense", ""});
    said += " token " + kind;
    if (kind.starts_with("own")) {
      if (kind == "own" && tokens_ != nullptr)
        return tokens_->issue({.ns = "dev", .service_account = "bot", .service_account_uid = "u"})->token;
      return *id_key_->sign({{"iss", "https://own"}, {"aud", "api"}, {"exp", now + 600}});
    }
    if (kind.starts_with("id")) {
      const json::Object claims{{"iss", "https://id"},
                                {"aud", kind == "id, not ours" ? "another" : "berth"},
                                {"sub", "ada"},
                                {"teams", json::Array{"blue"}},
                                {"exp", now + (kind == "id, over" ? 0 : 600)}};
      return kind == "id, forged" ? *security::JwtKey::from_pem(own_key_)->sign(claims) : *id_key_->sign(claims);
    }
    return kind;
  }

  void ask() {
    std::string said;
    net::HttpRequest request;
    request.method = "GET";
    request.path = life_.one({"/healthz", "/api/v1/pods"});
    said += request.path;
    if (life_.dice.chance(50)) request.peer = some_certificate(said);
    if (life_.dice.chance(60)) {
      const std::string token = some_token(said), scheme = life_.one({"Bearer ", "Bearer ", "bearer ", " Bearer ", "Bearer  ", "Basic "});
      said += fmt::format(" as \"{}\"", scheme);
      if (life_.dice.chance(15)) {
        said += " by a browser";
        request.headers.add("Sec-WebSocket-Protocol",
                            "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io." + base64url_encode(token));
        request.headers.add("Connection", "Upgrade");
        request.headers.add("Upgrade", "websocket");
      } else {
        request.headers.add("Authorization", scheme + token + life_.one({"", "", " more", "\r"}));
      }
    }
    if (life_.dice.chance(40)) {
      const std::string user = life_.one({"zoe", "system:anonymous", ""});
      said += " for " + user;
      request.headers.add("X-Remote-User", user);
      request.headers.add("x-remote-group", "g1");
      request.headers.add("X-Remote-Group", "g2");
      if (life_.dice.chance(50)) request.headers.add("X-Remote-Uid", "z");
      request.headers.add("X-Remote-Extra-Acme%2Fscope", "wide");
      request.headers.add("X-Remote-Extra-", "nothing");
    }
    const auto waits = server_->waits_for(request);
    const int asked = asked_;
    const auto answer = server_->authenticate(request);
    said += fmt::format(" -> {}{}", waits ? "waits for " + *waits + ", " : "",
                        answer ? shown(*answer) : fmt::format("{}", answer.error().code));
    life_.tell(said);
    if (answer) {
      const bool is_anonymous = answer->name == "system:anonymous";
      EXPECT_TRUE(is_anonymous || answer->in_group("system:authenticated")) << life_.last(3);
      EXPECT_FALSE(answer->name.empty()) << life_.last(3);
    }
    if (!waits) {
      EXPECT_EQ(asked_, asked) << "nobody was to be asked: " << life_.last(3);
    }
  }
  void review() {
    std::string said = "review";
    const std::string token = some_token(said);
    const Texts audiences = life_.some({"api", "berth", "x"}, 30);
    const auto waits = server_->waits_for_token(token, audiences);
    const int asked = asked_;
    const auto answer = server_->authenticate_token(token, audiences);
    said += fmt::format(" for [{}] -> {}", fmt::join(audiences, " "), waits ? "waits for " + *waits + ", " : "");
    said += answer ? fmt::format("{} for [{}]", shown(answer->user), fmt::join(answer->audiences, " "))
                   : fmt::format("{} {}", answer.error().code, answer.error().message);
    life_.tell(said);
    if (!waits) {
      EXPECT_EQ(asked_, asked) << "nobody was to be asked: " << life_.last(3);
    }
    for (const std::string& one : answer ? answer->audiences : Texts())
      EXPECT_TRUE(audiences.empty() || is_among(audiences, one)) << life_.last(3);
  }
  static std::string shown(const UserInfo& user) {
    std::string out = fmt::format("{} {} [{}]", user.name, user.uid, fmt::join(user.groups, " "));
    for (const auto& [key, values] : user.extra) {
      const std::string text = fmt::format("{}", fmt::join(values, " "));
      out += fmt::format(" {}={}", key, text.starts_with("JTI=") ? "JTI" : text);
    }
    return out;
  }

  Life life_{"tests/apiserver/lives/authentication.txt", 84, 20'000};
  store::TemporaryDirectory directory_;
  std::string own_key_;
  std::optional<security::JwtKey> id_key_;
  std::shared_ptr<ServiceAccountTokens> tokens_;
  std::shared_ptr<Authenticator> server_;
  int asked_ = 0;
};

TEST_F(AuthenticationLives, OfRequestsAreAsRecorded) {
  for (int i = 0; i < 40; ++i) {
    make_server();
    for (int k = 0; k < 60; ++k) life_.dice.chance(75) ? ask() : review();
    clock_.advance(std::chrono::seconds(1));
  }
  life_.expect_as_recorded();
}

}  // namespace
}  // namespace berth::apiserver::auth
