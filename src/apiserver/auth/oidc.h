// Who a token of another issuer speaks for (OpenID Connect ID tokens; apiserver/plugin/pkg/authenticator/token/oidc).
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "apiserver/auth/interfaces.h"
#include "apiserver/auth/oidc_config.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "security/jwk.h"

namespace berth::apiserver::auth {

/// Sends one GET; the error says why there is no answer with 200.
using FetchDocument = std::function<Result<std::string>(const std::string& url, const std::string& ca_pem)>;
FetchDocument https_fetch();

/// Maps verified claims to a user; the error is what the log says (pure).
Result<UserInfo> map_claims(const IssuerConfig& issuer, const json::Value& claims);

/// One issuer with its keys. Thread-safe.
class OidcIssuer {
 public:
  OidcIssuer(IssuerConfig config, FetchDocument fetch, const Clock& clock);
  [[nodiscard]] const std::string& url() const { return config_.url; }
  /// Whether verify must ask the issuer for its keys first, and so waits.
  [[nodiscard]] bool must_fetch(std::string_view token) const;
  /// The error says what is wrong with the token, or why the keys cannot be had.
  Result<UserInfo> verify(std::string_view token);

 private:
  Result<void> fetch_keys();
  const IssuerConfig config_;
  const FetchDocument fetch_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Mutex fetching_;
  std::optional<security::KeySet> keys_ BERTH_GUARDED_BY(mutex_);
  std::optional<TimePoint> fetched_at_ BERTH_GUARDED_BY(mutex_);  ///< When they were last asked for, in vain too.
};

/// Several issuers, told apart by a token's `iss`. Thread-safe.
class OidcAuthenticator {
 public:
  OidcAuthenticator(std::vector<IssuerConfig> issuers, FetchDocument fetch, const Clock& clock);
  /// Null: none of the issuers made this token.
  [[nodiscard]] OidcIssuer* issuer_of(std::string_view token) const;

 private:
  std::vector<std::unique_ptr<OidcIssuer>> issuers_;
};

}  // namespace berth::apiserver::auth
