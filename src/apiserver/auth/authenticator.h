// Who asks: the order is client certificate, static token, service account token, anonymous (kube-apiserver's own order).
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "apiserver/auth/interfaces.h"
#include "apiserver/auth/oidc.h"
#include "apiserver/auth/revoked.h"
#include "apiserver/auth/service_account_tokens.h"
#include "apiserver/auth/webhook_auth.h"

namespace berth::apiserver::auth {

using StaticTokens = std::unordered_map<std::string, UserInfo>;
/// kube-apiserver's --token-auth-file: `token,user,uid,"group1,group2"` per line, the groups optional. The error names the line.
Result<StaticTokens> parse_token_file(const std::string& path);

/// A proxy with a certificate of its own authority says in headers for whom it asks (kube-apiserver's --requestheader-…).
struct FrontProxyRules {
  std::vector<std::string> allowed_names;  ///< Common names of the proxy's certificate; empty: any.
  std::vector<std::string> username_headers{"X-Remote-User"}, uid_headers{"X-Remote-Uid"}, group_headers{"X-Remote-Group"};
  std::vector<std::string> extra_prefixes{"X-Remote-Extra-"};
};
/// Who a proxy says it asks for; nullopt: it names nobody.
std::optional<UserInfo> user_of_headers(const FrontProxyRules& rules, const net::Headers& headers);

struct AuthenticatorOptions {
  StaticTokens static_tokens;
  std::shared_ptr<const ServiceAccountTokens> service_account_tokens;  ///< Null: none are accepted.
  const ObjectCache* cache = nullptr;  ///< Of the Secrets that are bootstrap tokens; null: none are accepted. Goes with `clock`.
  const Clock* clock = nullptr;
  std::shared_ptr<RevokedCertificates> revoked;  ///< Null: none is.
  /// Tokens of other issuers, and whom nobody here knows; both may be replaced while in use (set_others).
  std::shared_ptr<OidcAuthenticator> oidc;
  std::shared_ptr<WebhookAuthenticator> webhook;
  /// Of connections whose certificate an authority of front proxies vouches for.
  FrontProxyRules front_proxy;
  bool anonymous = true;
  std::vector<std::string> anonymous_paths;  ///< Where anonymous requests are let through alone; empty: everywhere.
};
/// Adds system:authenticated to everybody but the anonymous. A request with bad credentials is 401 even when anonymous ones are let
/// through.
std::shared_ptr<Authenticator> make_authenticator(AuthenticatorOptions options);
/// Exchanges the issuers and the rule about anonymous requests of an authenticator that was made here, when their file changed.
void set_issuers(Authenticator& authenticator, std::shared_ptr<OidcAuthenticator> oidc, bool anonymous,
                 std::vector<std::string> anonymous_paths);

}  // namespace berth::apiserver::auth
