#include "apiserver/auth/service_account_tokens.h"

#include <array>
#include <unordered_map>

#include "base/base64.h"
#include "base/json_scan.h"
#include "base/mutex.h"
#include "security/jwt.h"
#include "security/uuid.h"

namespace berth::apiserver::auth {
namespace {

constexpr std::string_view kLegacyIssuer = "kubernetes/serviceaccount";
constexpr std::int64_t kLeewaySeconds = 60;  // Between clocks; also how long after its deletion a pod may still speak.
constexpr std::size_t kRememberedTokens = 8192, kRememberedBytes = std::size_t{16} << 20;
constexpr std::int64_t kKeptSeconds = std::int64_t{10} * 365 * 24 * 3600;

/// What a token with a good signature says.
struct Claims {
  std::string issuer, ns, account, account_uid, token_id;
  std::vector<std::string> audiences;
  std::int64_t expires = 0, not_before = 0, issued = 0;
  std::string bound_kind, bound_name, bound_uid;
  std::string node_name, node_uid;
  bool is_legacy = false;
};

std::vector<std::string> strings_of(const json::Value* value) {
  std::vector<std::string> out;
  if (value == nullptr) return out;
  if (value->is_string()) out.emplace_back(json::as_view(*value));
  if (!value->is_array()) return out;
  for (const auto& entry : value->get_array()) {
    if (entry.is_string()) out.emplace_back(json::as_view(entry));
  }
  return out;
}

std::optional<Claims> read_claims(const json::Value& token) {
  Claims claims;
  claims.issuer = json::get_string(token, {"iss"});
  claims.audiences = strings_of(json::find(token, "aud"));
  claims.expires = json::get_int(token, {"exp"});
  claims.not_before = json::get_int(token, {"nbf"});
  claims.issued = json::get_int(token, {"iat"});
  claims.token_id = json::get_string(token, {"jti"});
  claims.is_legacy = claims.issuer == kLegacyIssuer;
  if (claims.is_legacy) {
    claims.ns = json::get_string(token, {"kubernetes.io/serviceaccount/namespace"});
    claims.account = json::get_string(token, {"kubernetes.io/serviceaccount/service-account.name"});
    claims.account_uid = json::get_string(token, {"kubernetes.io/serviceaccount/service-account.uid"});
    claims.bound_kind = "Secret";
    claims.bound_name = json::get_string(token, {"kubernetes.io/serviceaccount/secret.name"});
  } else {
    claims.ns = json::get_string(token, {"kubernetes.io", "namespace"});
    claims.account = json::get_string(token, {"kubernetes.io", "serviceaccount", "name"});
    claims.account_uid = json::get_string(token, {"kubernetes.io", "serviceaccount", "uid"});
    claims.node_name = json::get_string(token, {"kubernetes.io", "node", "name"});
    claims.node_uid = json::get_string(token, {"kubernetes.io", "node", "uid"});
    static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{"pod", "Pod"}, {"secret", "Secret"}, {"node", "Node"}};
    for (const auto& [field, kind] : kKinds) {
      if (!claims.bound_kind.empty() || json::find(token, {"kubernetes.io", field}) == nullptr) continue;
      claims.bound_kind = kind;
      claims.bound_name = json::get_string(token, {"kubernetes.io", field, "name"});
      claims.bound_uid = json::get_string(token, {"kubernetes.io", field, "uid"});
    }
  }
  if (claims.ns.empty() || claims.account.empty() || claims.account_uid.empty()) return std::nullopt;
  if (json::get_string(token, {"sub"}) != fmt::format("system:serviceaccount:{}:{}", claims.ns, claims.account)) return std::nullopt;
  return claims;
}

model::ApiStatus refused(std::string message) {
  auto status = model::unauthorized();
  status.message = std::move(message);
  return status;
}

/// True when the object has been in deletion for longer than the leeway.
bool is_gone(const StoredObject& object, std::int64_t now) {
  static const json::PathScanner scanner({"metadata.deletionTimestamp"});
  std::array<std::string_view, 1> raw;
  const HeldText text = object.text();
  if (!scanner.scan(*text, raw) || raw[0].size() < 2) return false;
  auto deleted = parse_rfc3339(json::unquote(raw[0]));
  return deleted && std::chrono::duration_cast<std::chrono::seconds>(deleted->time_since_epoch()).count() < now - kLeewaySeconds;
}

Result<std::shared_ptr<const std::vector<security::JwtKey>>> read_keys(const std::string& pem) {
  auto keys = security::JwtKey::all_from_pem(pem);
  if (!keys) return std::unexpected(keys.error());
  if (!keys->front().can_sign()) return invalid("the service account keys: the first one must be private, it signs");
  return std::make_shared<const std::vector<security::JwtKey>>(std::move(*keys));
}

}  // namespace

struct ServiceAccountTokens::Impl {
  TokenOptions options;
  const ObjectCache& cache;
  const Clock& clock;
  std::vector<std::string> api_audiences;
  /// Tokens whose signature was found good: verifying one costs 100 µs, and clients send the same one with every request.
  mutable Mutex mutex;
  std::shared_ptr<const std::vector<security::JwtKey>> keys BERTH_GUARDED_BY(mutex);  ///< Never empty.
  mutable std::unordered_map<std::string, std::shared_ptr<const Claims>> remembered BERTH_GUARDED_BY(mutex);
  mutable std::size_t remembered_bytes BERTH_GUARDED_BY(mutex) = 0;  ///< Of the tokens and what was read from them, about.

  void forget() const BERTH_REQUIRES(mutex) {
    remembered.clear();
    remembered_bytes = 0;
  }

  [[nodiscard]] std::int64_t now_seconds() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock.now().time_since_epoch()).count();
  }
  [[nodiscard]] std::shared_ptr<const std::vector<security::JwtKey>> present_keys() const {
    const MutexLock lock(mutex);
    return keys;
  }
  [[nodiscard]] std::shared_ptr<const Claims> signed_claims(std::string_view token) const {
    std::string text(token);
    {
      MutexLock lock(mutex);
      if (auto known = remembered.find(text); known != remembered.end()) return known->second;
    }
    const auto present = present_keys();
    std::optional<json::Value> verified;
    for (auto key = present->begin(); !verified && key != present->end(); ++key) verified = key->verify(token);
    auto read = verified ? read_claims(*verified) : std::nullopt;
    if (!read) return nullptr;
    auto claims = std::make_shared<const Claims>(std::move(*read));
    MutexLock lock(mutex);
    if (keys != present) return claims;  // Its key may be gone by now.
    // Whoever makes tokens decides how long they are.
    if (remembered.size() >= kRememberedTokens || remembered_bytes + 4 * text.size() > kRememberedBytes) forget();
    if (4 * text.size() > kRememberedBytes) return claims;
    remembered_bytes += 4 * text.size();
    remembered.emplace(std::move(text), claims);
    return claims;
  }
  [[nodiscard]] ObjectPtr find(std::string_view plural, std::string_view ns, std::string_view name, std::string_view uid) const {
    auto object = cache.get(make_key("", plural, ns, name));
    return object != nullptr && (uid.empty() || object->meta.uid == uid) && !is_gone(*object, now_seconds()) ? object : nullptr;
  }
  [[nodiscard]] std::optional<std::string> complaint_about_objects(const Claims& claims, std::string_view token) const;
  [[nodiscard]] std::optional<std::string> complaint_about_times(const Claims& claims) const;
  /// The token that a Secret of type kubernetes.io/service-account-token keeps, as its controller asks for it: it ends with the Secret.
  [[nodiscard]] bool is_kept_in_secret(const TokenSpec& spec) const;
};

std::optional<std::string> ServiceAccountTokens::Impl::complaint_about_times(const Claims& claims) const {
  if (claims.is_legacy) return std::nullopt;  // They never expire; removing their Secret ends them.
  std::int64_t now = now_seconds();
  if (now - kLeewaySeconds > claims.expires) return "service account token has expired";
  if (now + kLeewaySeconds < claims.not_before || now + kLeewaySeconds < claims.issued) return "service account token is not valid yet";
  return std::nullopt;
}

std::optional<std::string> ServiceAccountTokens::Impl::complaint_about_objects(const Claims& claims, std::string_view token) const {
  if (find("serviceaccounts", claims.ns, claims.account, claims.account_uid) == nullptr)
    return "service account token has been invalidated";
  if (claims.bound_kind == "Pod" && find("pods", claims.ns, claims.bound_name, claims.bound_uid) == nullptr) {
    return "service account token has been invalidated";
  }
  if (claims.bound_kind == "Node" && find("nodes", "", claims.bound_name, claims.bound_uid) == nullptr) {
    return "service account token has been invalidated";
  }
  if (claims.bound_kind != "Secret") return std::nullopt;
  auto secret = find("secrets", claims.ns, claims.bound_name, claims.bound_uid);
  if (secret == nullptr) return "service account token has been invalidated";
  if (!claims.is_legacy) return std::nullopt;
  static const json::PathScanner scanner({"data.token"});
  std::array<std::string_view, 1> raw;
  const HeldText text = secret->text();
  auto stored = scanner.scan(*text, raw) ? base64_decode(json::unquote(raw[0])) : std::nullopt;
  if (!stored || *stored != token) return "token does not match server's copy";
  return std::nullopt;
}

ServiceAccountTokens::ServiceAccountTokens(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ServiceAccountTokens::~ServiceAccountTokens() = default;

Result<std::shared_ptr<ServiceAccountTokens>> ServiceAccountTokens::create(TokenOptions options, const ObjectCache& cache,
                                                                           const Clock& clock) {
  auto keys = read_keys(options.key_pem);
  if (!keys) return std::unexpected(keys.error());
  auto audiences = options.api_audiences.empty() ? std::vector<std::string>{options.issuer} : options.api_audiences;
  std::unique_ptr<Impl> impl(new Impl{std::move(options), cache, clock, std::move(audiences), {}, std::move(*keys), {}});
  return std::shared_ptr<ServiceAccountTokens>(new ServiceAccountTokens(std::move(impl)));
}

bool ServiceAccountTokens::Impl::is_kept_in_secret(const TokenSpec& spec) const {
  if (spec.bound_kind != "Secret" || !spec.audiences.empty() || spec.expiration_seconds < kKeptSeconds) return false;
  const auto secret = find("secrets", spec.ns, spec.bound_name, spec.bound_uid);
  static const json::PathScanner scanner({"type"});
  std::array<std::string_view, 1> raw;
  const HeldText text = secret != nullptr ? secret->text() : HeldText();
  return text && scanner.scan(*text, raw) && json::unquote(raw[0]) == "kubernetes.io/service-account-token";
}

model::ApiResult<IssuedToken> ServiceAccountTokens::issue(const TokenSpec& spec) {
  const std::int64_t now = impl_->now_seconds();
  if (impl_->is_kept_in_secret(spec)) {
    auto kept = impl_->present_keys()->front().sign(
        json::Object{{"iss", kLegacyIssuer},
                     {"kubernetes.io/serviceaccount/namespace", spec.ns},
                     {"kubernetes.io/serviceaccount/secret.name", spec.bound_name},
                     {"kubernetes.io/serviceaccount/service-account.name", spec.service_account},
                     {"kubernetes.io/serviceaccount/service-account.uid", spec.service_account_uid},
                     {"sub", fmt::format("system:serviceaccount:{}:{}", spec.ns, spec.service_account)}});
    if (!kept) return std::unexpected(model::internal_error(kept.error().message));
    return IssuedToken{std::move(*kept), TimePoint(std::chrono::seconds(now + spec.expiration_seconds))};
  }
  json::Array audiences;
  for (const auto& audience : spec.audiences.empty() ? impl_->api_audiences : spec.audiences) audiences.emplace_back(audience);
  json::Object bound{{"namespace", spec.ns}, {"serviceaccount", {{"name", spec.service_account}, {"uid", spec.service_account_uid}}}};
  if (spec.bound_kind == "Pod" || spec.bound_kind == "Secret" || spec.bound_kind == "Node") {
    std::string field = spec.bound_kind == "Pod" ? "pod" : spec.bound_kind == "Secret" ? "secret" : "node";
    bound[field] = json::Object{{"name", spec.bound_name}, {"uid", spec.bound_uid}};
  }
  if (spec.bound_kind == "Pod") {
    // The node a pod runs on goes in as well, so that others can tell whose workload speaks.
    auto pod = impl_->cache.get(make_key("", "pods", spec.ns, spec.bound_name));
    auto node_name = pod != nullptr ? pod->meta.field("spec.nodeName") : std::string_view();
    auto node = node_name.empty() ? nullptr : impl_->cache.get(make_key("", "nodes", "", node_name));
    if (node != nullptr) bound["node"] = json::Object{{"name", node_name}, {"uid", node->meta.uid}};
  }
  json::Object claims{{"aud", std::move(audiences)},
                      {"exp", now + spec.expiration_seconds},
                      {"iat", now},
                      {"iss", impl_->options.issuer},
                      {"jti", security::random_uuid()},
                      {"kubernetes.io", std::move(bound)},
                      {"nbf", now},
                      {"sub", fmt::format("system:serviceaccount:{}:{}", spec.ns, spec.service_account)}};
  auto token = impl_->present_keys()->front().sign(claims);
  if (!token) return std::unexpected(model::internal_error(token.error().message));
  return IssuedToken{std::move(*token), TimePoint(std::chrono::seconds(now + spec.expiration_seconds))};
}

const std::vector<std::string>& ServiceAccountTokens::api_audiences() const { return impl_->api_audiences; }

model::ApiResult<TokenUser> ServiceAccountTokens::verify(std::string_view token, const std::vector<std::string>& audiences) const {
  auto claims = impl_->signed_claims(token);
  if (claims == nullptr || (!claims->is_legacy && claims->issuer != impl_->options.issuer))
    return std::unexpected(refused("invalid bearer token"));
  if (auto complaint = impl_->complaint_about_times(*claims)) return std::unexpected(refused(*complaint));
  const auto& wanted = audiences.empty() ? impl_->api_audiences : audiences;
  // Legacy tokens were made before audiences: they are for the API alone.
  TokenUser out;
  out.audiences = audiences_in_both(claims->is_legacy ? impl_->api_audiences : claims->audiences, wanted);
  if (out.audiences.empty()) return std::unexpected(refused("token audiences are invalid for the target audiences"));
  if (auto complaint = impl_->complaint_about_objects(*claims, token)) return std::unexpected(refused(*complaint));

  UserInfo& user = out.user;
  user.name = fmt::format("system:serviceaccount:{}:{}", claims->ns, claims->account);
  user.uid = claims->account_uid;
  user.groups = {"system:serviceaccounts", "system:serviceaccounts:" + claims->ns};
  if (!claims->token_id.empty()) user.extra["authentication.kubernetes.io/credential-id"] = {"JTI=" + claims->token_id};
  if (claims->bound_kind == "Pod") {
    user.extra["authentication.kubernetes.io/pod-name"] = {claims->bound_name};
    user.extra["authentication.kubernetes.io/pod-uid"] = {claims->bound_uid};
  }
  if (!claims->node_name.empty()) {
    user.extra["authentication.kubernetes.io/node-name"] = {claims->node_name};
    user.extra["authentication.kubernetes.io/node-uid"] = {claims->node_uid};
  }
  return out;
}

bool ServiceAccountTokens::is_own(std::string_view token) const {
  auto claims = security::unverified_claims(token);
  if (!claims) return false;
  auto issuer = json::get_string(*claims, {"iss"});
  return issuer == impl_->options.issuer || issuer == kLegacyIssuer;
}

Result<void> ServiceAccountTokens::set_keys(const std::string& key_pem) {
  auto keys = read_keys(key_pem);
  if (!keys) return std::unexpected(keys.error());
  const MutexLock lock(impl_->mutex);
  impl_->keys = std::move(*keys);
  impl_->forget();
  return {};
}

std::string ServiceAccountTokens::openid_configuration() const {
  json::Array algorithms;
  for (const security::JwtKey& key : *impl_->present_keys())
    if (std::ranges::find(algorithms, json::Value(key.algorithm())) == algorithms.end()) algorithms.emplace_back(key.algorithm());
  return json::serialize(json::Object{{"issuer", impl_->options.issuer},
                                      {"jwks_uri", impl_->options.issuer + "/openid/v1/jwks"},
                                      {"response_types_supported", json::Array{"id_token"}},
                                      {"subject_types_supported", json::Array{"public"}},
                                      {"id_token_signing_alg_values_supported", std::move(algorithms)}});
}

std::string ServiceAccountTokens::json_web_keys() const {
  json::Array all;
  for (const security::JwtKey& key : *impl_->present_keys()) {
    json::Object one = key.public_keys();
    for (json::Value& entry : one["keys"].get_array()) all.push_back(std::move(entry));
  }
  return json::serialize(json::Object{{"keys", std::move(all)}});
}

}  // namespace berth::apiserver::auth
