// Tokens of service accounts while accounts, pods, nodes, secrets and keys come and go and the clock runs and is set back: each is held
// against what its claims and the documents say.
#include "apiserver/auth/service_account_tokens.h"
#include "base/base64.h"
#include "security/jwt.h"
#include "security/openssl.h"
#include "security/pki.h"
#include "tests/apiserver/lives/access.h"

namespace berth::apiserver::auth {
namespace {

constexpr std::int64_t kKept = std::int64_t{10} * 365 * 24 * 3600;

struct Thing {
  std::string uid, node, type, token;
  std::optional<std::int64_t> deleted;
};

struct Token {
  TokenSpec spec;
  std::string text, node, node_uid;
  std::int64_t made = 0;
  int key = 0;
  bool is_kept = false;
};

class TokenLives : public AccessLives {
 protected:
  void SetUp() override {
    AccessLives::SetUp();
    for (int i = 0; i < 3; ++i) keys_.push_back(security::to_pem(security::make_ec_key()->get()));
    auto made =
        ServiceAccountTokens::create({.key_pem = keys_[0], .issuer = "https://issuer", .api_audiences = {"api", "api2"}}, *cache_, clock_);
    ASSERT_TRUE(made) << made.error().message;
    tokens_ = std::move(*made);
  }

  [[nodiscard]] std::int64_t now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock_.now().time_since_epoch()).count();
  }
  static std::string ns_of(const std::string& plural) { return plural == "nodes" ? "" : "dev"; }
  Thing* find(const std::string& plural, const std::string& name) {
    const auto found = things_.find({plural, name});
    return found == things_.end() ? nullptr : &found->second;
  }
  /// Of this uid, if one is asked for, and not deleted for longer than a minute.
  bool is_there(const std::string& plural, const std::string& name, const std::string& uid) {
    const Thing* thing = find(plural, name);
    return thing != nullptr && (uid.empty() || thing->uid == uid) && !(thing->deleted && now() > *thing->deleted + 60);
  }

  void change_thing() {
    const std::string plural = life_.one({"serviceaccounts", "pods", "nodes", "secrets"});
    const std::string name = plural == "serviceaccounts" ? life_.one({"bot", "cat"}) : life_.one({"x", "y"});
    Thing* known = find(plural, name);
    if (known != nullptr && life_.dice.chance(30)) {
      EXPECT_TRUE(erase("", plural, ns_of(plural), name));
      things_.erase({plural, name});
      return;
    }
    Thing thing = known != nullptr && life_.dice.chance(70)
                      ? *known
                      : Thing{.uid = fmt::format("u{}", ++last_uid_), .node = {}, .type = {}, .token = {}, .deleted = {}};
    if (plural != "nodes" && known != nullptr && life_.dice.chance(30)) thing.deleted = now() - life_.dice.below(70);
    if (plural == "pods") thing.node = life_.one({"x", "y", "nowhere", ""});
    if (plural == "secrets") {
      thing.type = life_.one({"Opaque", "kubernetes.io/service-account-token", "kubernetes.io/service-account-token"});
      if (!made_.empty()) thing.token = life_.dice.of(made_).text;
    }
    json::Object metadata{{"name", name}, {"namespace", ns_of(plural)}, {"uid", thing.uid}};
    if (thing.deleted) metadata["deletionTimestamp"] = format_rfc3339(TimePoint(std::chrono::seconds(*thing.deleted)));
    json::Object document{{"metadata", std::move(metadata)}};
    if (!thing.node.empty()) document["spec"] = json::Object{{"nodeName", thing.node}};
    if (!thing.type.empty()) document["type"] = thing.type;
    if (!thing.token.empty()) document["data"] = json::Object{{"token", base64_encode(thing.token)}};
    write("", plural, std::move(document));
    things_[{plural, name}] = std::move(thing);
  }

  void issue() {
    Token token;
    TokenSpec& spec = token.spec;
    spec.ns = "dev";
    spec.service_account = life_.one({"bot", "cat"});
    const Thing* account = find("serviceaccounts", spec.service_account);
    spec.service_account_uid = account != nullptr ? account->uid : "none";
    spec.audiences = life_.some({"api", "vault"}, 30);
    spec.expiration_seconds = life_.dice.of(std::vector<std::int64_t>{600, 3600, kKept, kKept - 1});
    const std::string kind = life_.one({"", "Pod", "Pod", "Secret", "Secret", "Node"});
    if (!kind.empty()) {
      const std::string plural = kind == "Pod" ? "pods" : kind == "Secret" ? "secrets" : "nodes";
      spec.bound_kind = kind;
      spec.bound_name = life_.one({"x", "y"});
      const Thing* bound = find(plural, spec.bound_name);
      spec.bound_uid = bound == nullptr ? "none" : bound->uid;
      if (kind == "Node") {
        token.node = spec.bound_name;
        token.node_uid = spec.bound_uid;
      }
      if (kind == "Pod" && bound != nullptr && !bound->node.empty())
        if (const Thing* node = find("nodes", bound->node); node != nullptr) {
          token.node = bound->node;
          token.node_uid = node->uid;
        }
      token.is_kept = kind == "Secret" && spec.audiences.empty() && spec.expiration_seconds >= kKept &&
                      is_there("secrets", spec.bound_name, spec.bound_uid) && bound->type == "kubernetes.io/service-account-token";
    }
    const auto issued = tokens_->issue(spec);
    ASSERT_TRUE(issued);
    EXPECT_EQ(issued->expires_at, TimePoint(std::chrono::seconds(now() + spec.expiration_seconds)));
    EXPECT_TRUE(tokens_->is_own(issued->token));
    token.text = issued->token;
    token.made = now();
    token.key = present_[0];
    made_.push_back(std::move(token));
    if (made_.size() > 40) made_.erase(made_.begin());
  }

  /// Empty: it is good.
  std::string complaint(const Token& token, const Texts& wanted) {
    const TokenSpec& spec = token.spec;
    if (std::ranges::find(present_, token.key) == present_.end()) return "invalid bearer token";
    if (!token.is_kept && now() - 60 > token.made + spec.expiration_seconds) return "service account token has expired";
    if (!token.is_kept && now() + 60 < token.made) return "service account token is not valid yet";
    if (common(token, wanted).empty()) return "token audiences are invalid for the target audiences";
    static const std::string kInvalidated = "service account token has been invalidated";
    if (!is_there("serviceaccounts", spec.service_account, spec.service_account_uid)) return kInvalidated;
    const std::string bound_uid = token.is_kept ? "" : spec.bound_uid;
    if (spec.bound_kind == "Pod" && !is_there("pods", spec.bound_name, bound_uid)) return kInvalidated;
    if (spec.bound_kind == "Node" && !is_there("nodes", spec.bound_name, bound_uid)) return kInvalidated;
    if (spec.bound_kind == "Secret" && !is_there("secrets", spec.bound_name, bound_uid)) return kInvalidated;
    if (token.is_kept && find("secrets", spec.bound_name)->token != token.text) return "token does not match server's copy";
    return "";
  }
  static Texts common(const Token& token, const Texts& wanted) {
    const Texts own = token.spec.audiences.empty() || token.is_kept ? Texts{"api", "api2"} : token.spec.audiences;
    Texts out;
    for (const std::string& one : own)
      if (is_among(wanted.empty() ? Texts{"api", "api2"} : wanted, one)) out.push_back(one);
    return out;
  }
  void verify() {
    if (made_.empty()) return;
    const Token& token = life_.dice.of(made_);
    const Texts wanted = life_.some({"api", "vault", "other"}, 20);
    const auto answer = tokens_->verify(token.text, wanted);
    const std::string complained = complaint(token, wanted);
    EXPECT_EQ(answer ? "" : answer.error().message, complained) << (token.is_kept ? "kept" : "ordinary") << " " << token.spec.bound_kind;
    ++(complained.empty() ? good_ : bad_[complained]);
    if (!answer) {
      EXPECT_EQ(answer.error().code, 401);
      return;
    }
    const UserInfo& user = answer->user;
    EXPECT_EQ(answer->audiences, common(token, wanted));
    EXPECT_EQ(user.name, "system:serviceaccount:dev:" + token.spec.service_account);
    EXPECT_EQ(user.uid, token.spec.service_account_uid);
    EXPECT_EQ(user.groups, (Texts{"system:serviceaccounts", "system:serviceaccounts:dev"}));
    std::map<std::string, std::string> extra;
    if (!token.is_kept)
      extra["authentication.kubernetes.io/credential-id"] =
          "JTI=" + std::string(json::get_string(*security::unverified_claims(token.text), {"jti"}));
    if (token.spec.bound_kind == "Pod") {
      extra["authentication.kubernetes.io/pod-name"] = token.spec.bound_name;
      extra["authentication.kubernetes.io/pod-uid"] = token.spec.bound_uid;
    }
    if (!token.node.empty()) {
      extra["authentication.kubernetes.io/node-name"] = token.node;
      extra["authentication.kubernetes.io/node-uid"] = token.node_uid;
    }
    std::map<std::string, std::string> told;
    for (const auto& [key, values] : user.extra) told[key] = fmt::format("{}", fmt::join(values, " "));
    EXPECT_EQ(told, extra);
  }

  void go_on() {
    std::int64_t to = now() + life_.dice.below(300);
    if (!made_.empty() && life_.dice.chance(60)) {
      // To the very edge of a token's time, of a deletion's, or a second beyond.
      const Token& token = life_.dice.of(made_);
      to = token.made + (life_.dice.chance(50) ? -61 : token.spec.expiration_seconds + 60) + life_.dice.below(2);
      if (token.spec.expiration_seconds > 3600) to = now() + 10;
      for (const auto& [key, thing] : things_)
        if (thing.deleted && life_.dice.chance(50)) to = *thing.deleted + 60 + life_.dice.below(2);
    }
    clock_.advance(std::chrono::seconds(to) - clock_.now().time_since_epoch() + std::chrono::milliseconds(life_.dice.below(1000)));
  }
  void turn_keys() {
    std::vector<int> wanted{life_.dice.below(3)};
    for (int i = 0; i < 3; ++i)
      if (i != wanted[0] && life_.dice.chance(60)) wanted.push_back(i);
    std::string pem;
    for (const int i : wanted) pem += keys_[static_cast<std::size_t>(i)];
    if (life_.dice.chance(30)) {
      EXPECT_FALSE(tokens_->set_keys("no key"));  // All stays as it was.
      return;
    }
    EXPECT_TRUE(tokens_->set_keys(pem));
    present_ = wanted;
    const auto shown = json::parse(tokens_->json_web_keys());
    EXPECT_EQ(json::get_array(*shown, {"keys"}).size(), wanted.size());
  }

  Life life_{"", 0};
  std::vector<std::string> keys_;
  std::vector<int> present_{0};
  std::shared_ptr<ServiceAccountTokens> tokens_;
  std::map<std::pair<std::string, std::string>, Thing> things_;  ///< By plural and name.
  std::vector<Token> made_;
  int last_uid_ = 0, good_ = 0;
  std::map<std::string, int> bad_;
};

TEST_F(TokenLives, AreJudgedByTheirClaimsAndWhatThereIs) {
  for (std::uint64_t seed = 1; seed <= 3 && !HasFailure(); ++seed) {
    life_.dice = testing::Dice(seed);
    for (int i = 0; i < 4000 && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      const int what = life_.dice.below(100);
      if (what < 10)
        change_thing();
      else if (what < 20)
        issue();
      else if (what < 24)
        go_on();
      else if (what < 25)
        turn_keys();
      else
        verify();
    }
  }
  EXPECT_GT(good_, 300);
  EXPECT_EQ(bad_.size(), 6U) << "each complaint was heard";
}

/// What was found good is remembered until there is very much of it; what is forgotten is read anew.
TEST_F(TokenLives, ManyAreReadWhateverIsRemembered) {
  write("", "serviceaccounts", json::Object{{"metadata", json::Object{{"name", "bot"}, {"namespace", "dev"}, {"uid", "u"}}}});
  TokenSpec spec{.ns = "dev", .service_account = "bot", .service_account_uid = "u"};
  spec.audiences = {"api", std::string(std::size_t{5} << 20, 'x')};  // Larger than all that is remembered.
  const auto large = tokens_->issue(spec);
  ASSERT_TRUE(large);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(tokens_->verify(large->token, {}));
  spec.audiences = {"api", std::string(std::size_t{1} << 20, 'x')};
  Texts many;
  for (int i = 0; i < 6; ++i) {
    spec.expiration_seconds = 3600 + i;
    many.push_back(tokens_->issue(spec)->token);
  }
  for (int i = 0; i < 3; ++i)
    for (const std::string& one : many) EXPECT_TRUE(tokens_->verify(one, {}));
  ASSERT_TRUE(tokens_->set_keys(keys_[1]));
  for (const std::string& one : many) EXPECT_FALSE(tokens_->verify(one, {}));
}

}  // namespace
}  // namespace berth::apiserver::auth
