// Who is let in and who is asked whether he may, from the flags and files that say so; the files are read anew when they change.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/authorization_config.h"
#include "apiserver/auth/oidc_config.h"
#include "cli/command/findings.h"
#include "cli/roles/auth_flags.h"

namespace berth::cli {

/// What the flags and files say now.
struct AuthPlan {
  std::vector<apiserver::auth::IssuerConfig> issuers;
  bool anonymous = true;
  std::vector<std::string> anonymous_paths;
  std::vector<apiserver::auth::AuthorizerConfig> authorizers;  ///< Empty: Node and RBAC.
  /// Somebody elsewhere is asked.
  [[nodiscard]] bool asks_others(const AuthFlags& flags) const;
};
/// Reads the files and looks at the flags; changes nothing.
AuthPlan plan_auth(const AuthFlags& flags, Findings& findings);

/// The parts that a server is made of. The errors name the file.
Result<std::shared_ptr<apiserver::auth::WebhookAuthenticator>> make_token_webhook(const AuthFlags& flags, const Clock& clock);
Result<std::vector<apiserver::auth::AuthorizerChain::Link>> make_links(const AuthPlan& plan, const Clock& clock);
std::shared_ptr<apiserver::auth::OidcAuthenticator> make_oidc(const AuthPlan& plan, const Clock& clock);

/// Follows --authentication-config and --authorization-config. Not thread-safe.
class AuthReload {
 public:
  AuthReload(AuthFlags flags, std::shared_ptr<apiserver::Authenticator> authenticator,
             std::shared_ptr<apiserver::auth::AuthorizerChain> chain, const Clock& clock);
  /// Looks at the files; what is wrong with a changed one is logged, and all stays as it was.
  void look();

 private:
  const AuthFlags flags_;
  const std::shared_ptr<apiserver::Authenticator> authenticator_;
  const std::shared_ptr<apiserver::auth::AuthorizerChain> chain_;
  const Clock& clock_;
  std::string authentication_, authorization_;  ///< As they were read last.
};

}  // namespace berth::cli
