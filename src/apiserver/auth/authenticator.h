// Who asks: the order is client certificate, static token, service account token, anonymous (kube-apiserver's own order).
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "apiserver/auth/service_account_tokens.h"
#include "apiserver/auth_interfaces.h"

namespace berth::apiserver::auth {

using StaticTokens = std::unordered_map<std::string, UserInfo>;
/// kube-apiserver's --token-auth-file: `token,user,uid,"group1,group2"` per line, the groups optional. The error names the line.
Result<StaticTokens> parse_token_file(const std::string& path);

struct AuthenticatorOptions {
  StaticTokens static_tokens;
  std::shared_ptr<const ServiceAccountTokens> service_account_tokens;  ///< Null: none are accepted.
  bool anonymous = true;
};
/// Adds system:authenticated to everybody but the anonymous. A request with bad credentials is 401 even when anonymous ones are let
/// through.
std::shared_ptr<Authenticator> make_authenticator(AuthenticatorOptions options);

}  // namespace berth::apiserver::auth
