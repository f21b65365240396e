#include "apiserver/auth/oidc.h"

#include <future>

#include "base/mutex.h"
#include "net/client.h"
#include "security/jwt.h"

namespace berth::apiserver::auth {
namespace {

/// Keys are asked for at most so often, however many tokens name keys that are not known.
constexpr Duration kLeastPause = std::chrono::seconds(5);

std::vector<std::string> texts_of(const json::Value* value) {
  std::vector<std::string> out;
  if (value == nullptr) return out;
  if (value->is_string()) out.emplace_back(json::as_view(*value));
  if (value->is_array())
    for (const json::Value& one : value->get_array())
      if (one.is_string()) out.emplace_back(json::as_view(one));
  return out;
}

Result<cel::Value> evaluate_here(const cel::Program& program, const cel::Activation& variables, const std::string& text) {
  auto result = program.evaluate(variables);
  if (!result.value) return invalid(fmt::format("expression '{}' resulted in error: {}", text, result.value.error().message));
  return std::move(*result.value);
}

Result<std::string> text_of_claim(const json::Value& claims, const std::string& name) {
  const json::Value* value = json::find(claims, name);
  if (value == nullptr) return invalid(fmt::format("the claim \"{}\" is missing", name));
  if (!value->is_string()) return invalid(fmt::format("the claim \"{}\" is no text", name));
  return std::string(json::as_view(*value));
}

Result<std::vector<std::string>> strings_of_value(const cel::Value& value, const std::string& text) {
  const auto document = cel::to_json(value);
  if (!document) return std::unexpected(document.error());
  if (document->is_null()) return std::vector<std::string>{};
  if (document->is_string()) {
    const std::string one(json::as_view(*document));
    return one.empty() ? std::vector<std::string>{} : std::vector<std::string>{one};
  }
  auto out = texts_of(&*document);
  if (!document->is_array() || out.size() != document->get_array().size())
    return invalid(fmt::format("expression '{}' gives neither a text nor a list of texts", text));
  std::erase(out, "");
  return out;
}

Result<void> check_claims(const IssuerConfig& issuer, const json::Value& claims, const cel::Activation& variables) {
  for (const ClaimRule& rule : issuer.claim_rules) {
    if (!rule.claim.empty()) {
      const json::Value* value = json::find(claims, rule.claim);
      if (value == nullptr) return invalid(fmt::format("the required claim \"{}\" is missing", rule.claim));
      if (!value->is_string() || json::as_view(*value) != rule.required_value)
        return invalid(fmt::format("the required claim \"{}\" has another value", rule.claim));
      continue;
    }
    const auto holds = evaluate_here(*rule.expression, variables, rule.text);
    if (!holds) return std::unexpected(holds.error());
    if (!holds->is_true())
      return invalid(rule.message.empty() ? fmt::format("validation expression '{}' failed", rule.text)
                                          : fmt::format("validation expression '{}' failed: {}", rule.text, rule.message));
  }
  return {};
}

Result<std::string> map_text(const ClaimMapping& mapping, const json::Value& claims, const cel::Activation& variables) {
  if (!mapping.claim.empty()) {
    auto text = text_of_claim(claims, mapping.claim);
    return text ? Result<std::string>(mapping.prefix + *text) : text;
  }
  const auto value = evaluate_here(*mapping.expression, variables, mapping.text);
  if (!value) return std::unexpected(value.error());
  if (value->kind() != cel::Value::Kind::kString) return invalid(fmt::format("expression '{}' gives no text", mapping.text));
  return std::string(value->text());
}

Result<std::vector<std::string>> map_list(const ClaimMapping& mapping, const json::Value& claims, const cel::Activation& variables) {
  if (!mapping.claim.empty()) {
    const json::Value* value = json::find(claims, mapping.claim);
    if (value == nullptr) return std::vector<std::string>{};
    auto out = texts_of(value);
    if (!value->is_string() && (!value->is_array() || out.size() != value->get_array().size()))
      return invalid(fmt::format("the claim \"{}\" is neither a text nor a list of texts", mapping.claim));
    for (std::string& one : out) one.insert(0, mapping.prefix);
    return out;
  }
  const auto value = evaluate_here(*mapping.expression, variables, mapping.text);
  if (!value) return std::unexpected(value.error());
  return strings_of_value(*value, mapping.text);
}

Result<void> check_user(const IssuerConfig& issuer, const UserInfo& user) {
  if (issuer.user_rules.empty()) return {};
  json::Object extra;
  for (const auto& [key, values] : user.extra) extra[key] = json::Array(values.begin(), values.end());
  const json::Value document = json::Object{{"username", user.name},
                                            {"uid", user.uid},
                                            {"groups", json::Array(user.groups.begin(), user.groups.end())},
                                            {"extra", std::move(extra)}};
  const cel::Bindings variables{{"user", cel::Value::borrowed_json(document)}};
  for (const ClaimRule& rule : issuer.user_rules) {
    const auto holds = evaluate_here(*rule.expression, variables, rule.text);
    if (!holds) return std::unexpected(holds.error());
    if (!holds->is_true())
      return invalid(rule.message.empty() ? fmt::format("user validation expression '{}' failed", rule.text) : rule.message);
  }
  return {};
}

}  // namespace

FetchDocument https_fetch() {
  return [](const std::string& url, const std::string& ca_pem) -> Result<std::string> {
    const auto path = url.find('/', std::string_view("https://").size());
    net::ClientConfig config;
    config.url = url.substr(0, path);
    config.ca_pem = ca_pem;
    config.timeout_ms = 10'000;
    config.max_answer_bytes = std::size_t{1} << 20;  // A document of an issuer, or its keys.
    const auto client = net::HttpClient::create(std::move(config));
    if (!client) return std::unexpected(client.error());
    net::HttpRequest request;
    request.method = "GET";
    const std::string target = path == std::string::npos ? "/" : url.substr(path);
    request.path = target.substr(0, target.find('?'));
    if (target.find('?') != std::string::npos) request.query = target.substr(target.find('?') + 1);
    auto done = std::make_shared<std::promise<net::HttpResponse>>();
    auto answer = done->get_future();
    (*client)->send(std::move(request), [done](net::HttpResponse response) { done->set_value(std::move(response)); });
    auto response = answer.get();
    if (response.status == 0) return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", url, response.body));
    if (response.status != 200) return fail(ErrorCode::kUnavailable, fmt::format("{} answers HTTP {}", url, response.status));
    return std::move(response.body);
  };
}

Result<UserInfo> map_claims(const IssuerConfig& issuer, const json::Value& claims) {
  const cel::Bindings variables{{"claims", cel::Value::borrowed_json(claims)}};
  UserInfo user;
  auto name = map_text(issuer.username, claims, variables);
  if (!name) return std::unexpected(name.error());
  if (issuer.username.claim == "email") {
    const json::Value* verified = json::find(claims, "email_verified");
    if (verified != nullptr && !(verified->is_bool() && verified->get_bool())) return invalid("the email address is not verified");
  }
  if (name->empty() || *name == issuer.username.prefix) return invalid("the user name is empty");
  user.name = std::move(*name);
  if (issuer.groups.is_there()) {
    auto groups = map_list(issuer.groups, claims, variables);
    if (!groups) return std::unexpected(groups.error());
    user.groups = std::move(*groups);
  }
  if (issuer.uid.is_there()) {
    auto uid = map_text(issuer.uid, claims, variables);
    if (!uid) return std::unexpected(uid.error());
    user.uid = std::move(*uid);
  }
  for (const ExtraMapping& one : issuer.extra) {
    const auto value = evaluate_here(one.expression, variables, one.text);
    if (!value) return std::unexpected(value.error());
    auto texts = strings_of_value(*value, one.text);
    if (!texts) return std::unexpected(texts.error());
    if (!texts->empty()) user.extra[one.key] = std::move(*texts);
  }
  if (auto valid = check_claims(issuer, claims, variables); !valid) return std::unexpected(valid.error());
  if (auto valid = check_user(issuer, user); !valid) return std::unexpected(valid.error());
  if (const std::string id(json::get_string(claims, {"jti"})); !id.empty())
    user.extra["authentication.kubernetes.io/credential-id"] = {"JTI=" + id};
  return user;
}

OidcIssuer::OidcIssuer(IssuerConfig config, FetchDocument fetch, const Clock& clock)
    : config_(std::move(config)), fetch_(std::move(fetch)), clock_(clock) {}

bool OidcIssuer::must_fetch(std::string_view token) const {
  const auto header = security::token_header(token);
  const MutexLock lock(mutex_);
  // An issuer that does not answer is not asked by everybody who waited for it, one after the other. A clock that was set back asks.
  const Duration since = fetched_at_ ? clock_.now() - *fetched_at_ : kLeastPause;
  if (since >= Duration::zero() && since < kLeastPause) return false;
  return !keys_ || (header && !header->key_id.empty() && !keys_->has(header->key_id));
}

Result<void> OidcIssuer::fetch_keys() {
  const std::string base = config_.url.ends_with('/') ? config_.url.substr(0, config_.url.size() - 1) : config_.url;
  const std::string where = config_.discovery_url.empty() ? base + "/.well-known/openid-configuration" : config_.discovery_url;
  const auto text = fetch_(where, config_.ca_pem);
  if (!text) return std::unexpected(text.error());
  const auto document = json::parse(*text);
  if (!document) return invalid(where + ": is no JSON");
  if (json::get_string(*document, {"issuer"}) != config_.url)
    return invalid(
        fmt::format("{}: says that its issuer is \"{}\", not \"{}\"", where, json::get_string(*document, {"issuer"}), config_.url));
  const std::string keys_url(json::get_string(*document, {"jwks_uri"}));
  if (!keys_url.starts_with("https://")) return invalid(fmt::format("{}: has no jwks_uri with https://", where));
  const auto jwks = fetch_(keys_url, config_.ca_pem);
  if (!jwks) return std::unexpected(jwks.error());
  auto keys = security::KeySet::parse(*jwks);
  if (!keys) return invalid(fmt::format("{}: {}", keys_url, keys.error().message));
  const MutexLock lock(mutex_);
  keys_ = std::move(*keys);
  return {};
}

Result<UserInfo> OidcIssuer::verify(std::string_view token) {
  if (must_fetch(token)) {
    const MutexLock one_at_a_time(fetching_);
    if (must_fetch(token)) {
      auto fetched = fetch_keys();
      const MutexLock lock(mutex_);
      fetched_at_ = clock_.now();
      if (!fetched && !keys_) return std::unexpected(fetched.error());
    }
  }
  std::optional<security::KeySet> keys;
  {
    const MutexLock lock(mutex_);
    keys = keys_;
  }
  if (!keys) return fail(ErrorCode::kUnavailable, "the issuer's keys could not be had yet");
  const auto claims = keys->verify(token, config_.algorithms);
  if (!claims) return invalid("its signature is none of the issuer's");
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock_.now().time_since_epoch()).count();
  constexpr std::int64_t kLeeway = 300;  // go-oidc's, of nbf.
  const json::Value* expires = json::find(*claims, "exp");
  if (expires == nullptr || !expires->is_number()) return invalid("it has no exp");
  if (expires->to_number<double>() <= static_cast<double>(now)) return invalid("it has expired");
  if (const json::Value* since = json::find(*claims, "nbf"); since != nullptr && since->is_number())
    if (since->to_number<double>() > static_cast<double>(now + kLeeway)) return invalid("it is not valid yet");
  const auto audiences = texts_of(json::find(*claims, "aud"));
  if (std::ranges::none_of(audiences,
                           [&](const auto& one) { return std::ranges::find(config_.audiences, one) != config_.audiences.end(); }))
    return invalid(fmt::format("it is for {}, not for {}", fmt::join(audiences, ", "), fmt::join(config_.audiences, " or ")));
  return map_claims(config_, *claims);
}

OidcAuthenticator::OidcAuthenticator(std::vector<IssuerConfig> issuers, FetchDocument fetch, const Clock& clock) {
  for (IssuerConfig& issuer : issuers) issuers_.push_back(std::make_unique<OidcIssuer>(std::move(issuer), fetch, clock));
}

OidcIssuer* OidcAuthenticator::issuer_of(std::string_view token) const {
  const auto claims = security::unverified_claims(token);
  if (!claims) return nullptr;
  const auto issuer = json::get_string(*claims, {"iss"});
  for (const auto& one : issuers_)
    if (one->url() == issuer) return one.get();
  return nullptr;
}

}  // namespace berth::apiserver::auth
