// Service account tokens: JSON Web Tokens signed with ES256 (or RS256, when the key is RSA), bound to objects (KEP 1205).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apiserver/auth/interfaces.h"
#include "apiserver/cache/object_cache.h"

namespace berth::apiserver::auth {

struct TokenOptions {
  std::string key_pem;  ///< EC P-256 or RSA; the first is private and signs, all others, private or public, verify as well.
  std::string issuer;
  std::vector<std::string> api_audiences;  ///< Empty: the issuer.
};

/// Thread-safe. Times are judged by the clock that is given: the wall clock as it is now, where somebody may set it. A token is good while
/// its signature, times and audience are, and the objects it names are still there with the same uid: the ServiceAccount, and the bound
/// Pod, Secret or Node (a Pod or ServiceAccount being deleted counts as there for 60 s after its deletionTimestamp, as in Kubernetes).
class ServiceAccountTokens final : public TokenIssuer {
 public:
  static Result<std::shared_ptr<ServiceAccountTokens>> create(TokenOptions options, const ObjectCache& cache, const Clock& clock);
  ~ServiceAccountTokens() override;

  model::ApiResult<IssuedToken> issue(const TokenSpec& spec) override;
  /// Who the token speaks for, and for which of the audiences (empty: the API's own) it is. 401 with the reason as message otherwise.
  [[nodiscard]] model::ApiResult<TokenUser> verify(std::string_view token, const std::vector<std::string>& audiences) const;
  [[nodiscard]] const std::vector<std::string>& api_audiences() const;
  /// True when the token's unverified claims name this issuer (or the legacy one): whether verify is the one to ask.
  [[nodiscard]] bool is_own(std::string_view token) const;
  /// Other keys from now on, in the same form; the error leaves all as it was.
  Result<void> set_keys(const std::string& key_pem);
  /// Content of /.well-known/openid-configuration and /openid/v1/jwks.
  [[nodiscard]] std::string openid_configuration() const;
  [[nodiscard]] std::string json_web_keys() const;

 private:
  struct Impl;
  explicit ServiceAccountTokens(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::apiserver::auth
