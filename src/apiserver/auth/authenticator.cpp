#include "apiserver/auth/authenticator.h"

#include <openssl/crypto.h>
#include <strings.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/json.h"
#include "base/log.h"
#include "base/mutex.h"
#include "net/websocket.h"
#include "security/bootstrap_token.h"

namespace berth::apiserver::auth {
namespace {

constexpr std::string_view kAuthenticated = "system:authenticated";

/// One line of comma-separated values, with double quotes around fields that have commas; nullopt when a quote is not closed.
std::optional<std::vector<std::string>> split_csv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

std::string_view without_padding(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

class ChainAuthenticator final : public Authenticator {
 public:
  explicit ChainAuthenticator(AuthenticatorOptions options) : options_(std::move(options)) {
    others_ = std::make_shared<const Others>(Others{options_.oidc, options_.anonymous, options_.anonymous_paths});
  }

  std::optional<std::string> waits_for(const net::HttpRequest& request) override {
    const auto token = is_named_by_certificate(request) ? std::nullopt : bearer_token(request);
    return token ? waits_for_token(*token, {}) : std::nullopt;
  }

  std::optional<std::string> waits_for_token(const std::string& token, const std::vector<std::string>& audiences) override {
    const bool is_issued_here = options_.service_account_tokens != nullptr && options_.service_account_tokens->is_own(token);
    if (is_issued_here || by_known_token(token, audiences)) return std::nullopt;
    const auto others = others_now();
    if (OidcIssuer* issuer = others->oidc == nullptr ? nullptr : others->oidc->issuer_of(token))
      return issuer->must_fetch(token) ? std::optional("the issuer " + issuer->url()) : std::nullopt;
    if (options_.webhook == nullptr || options_.webhook->remembered(token, audiences_for(audiences))) return std::nullopt;
    return "the authentication webhook";
  }

  void set_others(std::shared_ptr<OidcAuthenticator> oidc, bool anonymous, std::vector<std::string> paths) {
    const MutexLock lock(mutex_);
    others_ = std::make_shared<const Others>(Others{std::move(oidc), anonymous, std::move(paths)});
  }

  model::ApiResult<UserInfo> authenticate(const net::HttpRequest& request) override {
    const bool is_over = request.peer && is_over_or_revoked(*request.peer);
    if (is_over && !bearer_token(request)) return std::unexpected(model::unauthorized());
    if (request.peer && request.peer->is_front_proxy) {
      const bool is_allowed = is_allowed_proxy(*request.peer);
      if (is_allowed && !is_over)
        if (auto user = user_of_headers(options_.front_proxy, request.headers))
          return user->name == "system:anonymous" ? std::move(*user) : authenticated(std::move(*user));
      if (!is_allowed && !request.peer->is_client && !bearer_token(request)) return std::unexpected(model::unauthorized());
    }
    if (request.peer && !is_over && request.peer->is_client && !request.peer->common_name.empty()) {
      UserInfo user{request.peer->common_name, "", request.peer->organizations, {}};
      if (!request.peer->fingerprint.empty())
        user.extra["authentication.kubernetes.io/credential-id"] = {"X509SHA256=" + request.peer->fingerprint};
      return authenticated(std::move(user));
    }
    if (auto token = bearer_token(request)) {
      auto found = by_token(*token, {});
      // The client is told no more than that its credentials are bad.
      if (!found) return std::unexpected(model::unauthorized());
      return std::move(found->user);
    }
    const auto others = others_now();
    const bool is_path =
        others->anonymous_paths.empty() || std::ranges::find(others->anonymous_paths, request.path) != others->anonymous_paths.end();
    if (!others->anonymous || !is_path) return std::unexpected(model::unauthorized());
    return UserInfo{"system:anonymous", "", {"system:unauthenticated"}, {}};
  }

  model::ApiResult<TokenUser> authenticate_token(const std::string& token, const std::vector<std::string>& audiences) override {
    return by_token(token, audiences);
  }

 private:
  static std::optional<std::string> bearer_token(const net::HttpRequest& request) {
    std::string_view header = without_padding(request.headers.get("Authorization"));
    constexpr std::string_view kScheme = "bearer ";
    if (header.size() <= kScheme.size() || ::strncasecmp(header.data(), kScheme.data(), kScheme.size()) != 0)
      return net::websocket_token(request);
    // The token is the second of the words that single spaces part: after two spaces there is none.
    auto token = header.substr(kScheme.size());
    token = token.substr(0, token.find(' '));
    return token.empty() ? std::nullopt : std::optional(std::string(token));
  }

  static UserInfo authenticated(UserInfo user) {
    if (!user.in_group(kAuthenticated)) user.groups.emplace_back(kAuthenticated);
    return user;
  }

  [[nodiscard]] bool is_allowed_proxy(const net::PeerCertificate& peer) const {
    const auto& allowed = options_.front_proxy.allowed_names;
    return peer.is_front_proxy && (allowed.empty() || std::ranges::find(allowed, peer.common_name) != allowed.end());
  }
  /// Its certificate says whom the request speaks for, or the proxy does that shows one: a token is not looked at.
  [[nodiscard]] bool is_named_by_certificate(const net::HttpRequest& request) const {
    if (!request.peer || is_over_or_revoked(*request.peer)) return false;
    return (request.peer->is_client && !request.peer->common_name.empty()) ||
           (is_allowed_proxy(*request.peer) && user_of_headers(options_.front_proxy, request.headers));
  }
  /// The certificate's time is over, or it was revoked: judged by each request, however long its connection or session has been there.
  [[nodiscard]] bool is_over_or_revoked(const net::PeerCertificate& peer) const {
    if (options_.clock != nullptr && (options_.clock->now() > peer.not_after || options_.clock->now() < peer.not_before)) return true;
    return options_.revoked != nullptr && options_.revoked->contains(peer.serial);
  }

  /// What is asked about, the API's own where nothing is said.
  [[nodiscard]] std::vector<std::string> audiences_for(const std::vector<std::string>& asked) const {
    return asked.empty() && options_.service_account_tokens != nullptr ? options_.service_account_tokens->api_audiences() : asked;
  }

  /// Of tokens that know no audience: they are for the API alone.
  std::optional<TokenUser> for_api(std::optional<UserInfo> user, const std::vector<std::string>& asked) const {
    if (!user) return std::nullopt;
    TokenUser out{authenticated(std::move(*user)), {}};
    if (options_.service_account_tokens == nullptr) return asked.empty() ? std::optional(std::move(out)) : std::nullopt;
    const auto& own = options_.service_account_tokens->api_audiences();
    out.audiences = asked.empty() ? own : audiences_in_both(own, asked);
    return out.audiences.empty() ? std::nullopt : std::optional(std::move(out));
  }

  /// Of a file's token, or a bootstrap token. Where it is neither, or not for these audiences, others are asked.
  [[nodiscard]] std::optional<TokenUser> by_known_token(std::string_view token, const std::vector<std::string>& audiences) const {
    if (const auto known = options_.static_tokens.find(std::string(token)); known != options_.static_tokens.end())
      if (auto user = for_api(known->second, audiences)) return user;
    if (const auto parts = security::split_bootstrap_token(token); parts && options_.cache != nullptr)
      return for_api(by_bootstrap_token(*parts), audiences);
    return std::nullopt;
  }
  model::ApiResult<TokenUser> by_token(std::string_view token, const std::vector<std::string>& audiences) {
    if (auto known = by_known_token(token, audiences)) return std::move(*known);
    if (options_.service_account_tokens != nullptr && (!has_others() || options_.service_account_tokens->is_own(token))) {
      auto found = options_.service_account_tokens->verify(token, audiences);
      if (found) found->user = authenticated(std::move(found->user));
      return found;
    }
    if (auto found = by_others(token, audiences)) {
      found->user = authenticated(std::move(found->user));
      return std::move(*found);
    }
    auto status = model::unauthorized();
    status.message = "invalid bearer token";
    return std::unexpected(status);
  }

  [[nodiscard]] bool has_others() const { return options_.webhook != nullptr || others_now()->oidc != nullptr; }

  /// Other issuers' tokens, then the webhook. Why somebody is not let in goes to the log alone.
  std::optional<TokenUser> by_others(std::string_view token, const std::vector<std::string>& audiences) {
    const auto others = others_now();
    if (OidcIssuer* issuer = others->oidc == nullptr ? nullptr : others->oidc->issuer_of(token)) {
      auto user = issuer->verify(token);
      if (user) return for_api(std::move(*user), audiences);
      log::warning("auth", "a token of {}: {}", issuer->url(), user.error().message);
      return std::nullopt;
    }
    if (options_.webhook == nullptr) return std::nullopt;
    auto user = options_.webhook->authenticate(std::string(token), audiences_for(audiences));
    if (user) return std::move(*user);
    if (user.error().code == ErrorCode::kUnavailable) log::error("auth", "the authentication webhook: {}", user.error().message);
    return std::nullopt;
  }

  struct Others {
    std::shared_ptr<OidcAuthenticator> oidc;
    bool anonymous = true;
    std::vector<std::string> anonymous_paths;
  };
  [[nodiscard]] std::shared_ptr<const Others> others_now() const {
    const MutexLock lock(mutex_);
    return others_;
  }

  /// plugin/pkg/auth/authenticator/token/bootstrap.
  std::optional<UserInfo> by_bootstrap_token(const security::TokenParts& parts) const {
    const auto stored = options_.cache->get(
        make_key("", "secrets", security::kBootstrapTokenNamespace, std::string(security::kBootstrapTokenPrefix) + parts.id));
    if (stored == nullptr) return std::nullopt;
    const auto document = json::parse(stored->text().here());
    if (!document || json::find(*document, {"metadata", "deletionTimestamp"}) != nullptr) return std::nullopt;
    const auto token = security::read_bootstrap_secret(*document);
    const bool is_it = token && token->trouble.empty() && token->id == parts.id && token->secret.size() == parts.secret.size() &&
                       CRYPTO_memcmp(token->secret.data(), parts.secret.data(), parts.secret.size()) == 0;
    if (!is_it || !token->authenticates || token->is_expired(options_.clock->now())) return std::nullopt;
    UserInfo user{"system:bootstrap:" + token->id, "", {"system:bootstrappers"}, {}};
    user.groups.insert(user.groups.end(), token->extra_groups.begin(), token->extra_groups.end());
    return user;
  }

  AuthenticatorOptions options_;
  mutable Mutex mutex_;
  std::shared_ptr<const Others> others_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace

}  // namespace berth::apiserver::auth

namespace berth::apiserver {

std::vector<std::string> audiences_in_both(const std::vector<std::string>& ours, const std::vector<std::string>& theirs) {
  std::vector<std::string> out;
  std::ranges::copy_if(ours, std::back_inserter(out), [&](const auto& one) { return std::ranges::find(theirs, one) != theirs.end(); });
  return out;
}

}  // namespace berth::apiserver

namespace berth::apiserver::auth {

std::optional<UserInfo> user_of_headers(const FrontProxyRules& rules, const net::Headers& headers) {
  const auto first = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (const auto value = headers.get(name); !value.empty()) return std::string(value);
    return std::string();
  };
  UserInfo user;
  user.name = first(rules.username_headers);
  if (user.name.empty()) return std::nullopt;
  user.uid = first(rules.uid_headers);
  for (const auto& [field, value] : headers.fields()) {
    for (const std::string& name : rules.group_headers)
      if (net::equal_ignoring_case(field, name)) user.groups.push_back(value);
    for (const std::string& prefix : rules.extra_prefixes) {
      if (field.size() <= prefix.size() || !net::equal_ignoring_case(std::string_view(field).substr(0, prefix.size()), prefix)) continue;
      std::string key = field.substr(prefix.size());
      std::ranges::transform(key, key.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      user.extra[net::percent_decode(key).value_or(key)].push_back(value);
    }
  }
  return user;
}

Result<StaticTokens> parse_token_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail(ErrorCode::kInvalid, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0)
    log::warning("auth", "{}: tokens may be read by others than the file's owner (mode {:04o}): `chmod 600` it", path,
                 info.st_mode & 07777);
  StaticTokens tokens;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::string_view text = without_padding(line);
    if (text.empty() || text.starts_with('#')) continue;
    auto fields = split_csv(text);
    if (!fields || fields->size() < 3 || (*fields)[0].empty() || (*fields)[1].empty()) {
      return fail(ErrorCode::kInvalid, fmt::format("{}:{}: expected token,user,uid[,\"group1,group2\"]", path, number));
    }
    UserInfo user{(*fields)[1], (*fields)[2], {}, {}};
    if (fields->size() > 3) {
      auto groups = split_csv((*fields)[3]);
      for (auto& group : groups.value_or(std::vector<std::string>{})) {
        if (!without_padding(group).empty()) user.groups.emplace_back(without_padding(group));
      }
    }
    if (!tokens.emplace((*fields)[0], std::move(user)).second)
      return fail(ErrorCode::kInvalid, fmt::format("{}:{}: the token is there twice", path, number));
  }
  return tokens;
}

std::shared_ptr<Authenticator> make_authenticator(AuthenticatorOptions options) {
  return std::make_shared<ChainAuthenticator>(std::move(options));
}

void set_issuers(Authenticator& authenticator, std::shared_ptr<OidcAuthenticator> oidc, bool anonymous,
                 std::vector<std::string> anonymous_paths) {
  if (auto* chain = dynamic_cast<ChainAuthenticator*>(&authenticator))
    chain->set_others(std::move(oidc), anonymous, std::move(anonymous_paths));
}

}  // namespace berth::apiserver::auth
