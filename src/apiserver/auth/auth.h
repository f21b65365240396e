// Puts the parts together: what a server's start needs of this folder.
//
//   authenticator.h         who asks: client certificate, static token, service account token, anonymous
//   service_account_tokens.h  issues and verifies JSON Web Tokens; OpenID discovery documents
//   impersonation.h         Impersonate-* headers
//   rbac.h                  Roles and bindings, watched from the cache, evaluated per request
//   aggregation.h           ClusterRoles that gather the rules of others
//   node_authorizer.h       what system:node:NAME may do beyond its roles' rules
//   default_roles.h         Kubernetes' default ClusterRoles, Roles and bindings, reconciled at start
//   reviews.h               TokenReview, SubjectAccessReview and their kind
#pragma once
#include <memory>
#include <string>

#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/authorization_config.h"
#include "apiserver/auth/interfaces.h"
#include "apiserver/auth/oidc.h"
#include "apiserver/auth/service_account_tokens.h"
#include "apiserver/cache/object_cache.h"
#include "security/pki.h"

namespace berth::apiserver::auth {

struct AuthOptions {
  ObjectCache* cache = nullptr;         ///< Required; outlives the parts' use (their destruction may come later).
  const Clock* clock = nullptr;         ///< Required; outlives the parts.
  std::string service_account_key_pem;  ///< Required: security::Pki::service_account_key_pem().
  std::string issuer = "https://kubernetes.default.svc.cluster.local";
  /// Token file as kube-apiserver's --token-auth-file: lines `token,user,uid,"group1,group2"`. Empty: none.
  std::string token_file;
  std::shared_ptr<OidcAuthenticator> oidc;        ///< Or null.
  std::shared_ptr<WebhookAuthenticator> webhook;  ///< Or null.
  std::vector<std::string> anonymous_paths;       ///< See AuthenticatorOptions.
  std::vector<AuthorizerChain::Link> links;       ///< Who is asked; empty: Node and RBAC alone.
  std::string revoked_file;                       ///< Serials of client certificates that are refused (revoked.h). Empty: none.
  FrontProxyRules front_proxy;                    ///< Which headers of front proxies count, and of which.
  bool anonymous = true;  ///< Requests without credentials go to the authorizer as system:anonymous; otherwise they are 401.
  bool reconcile_default_roles = true;
  model::Features features{};  ///< Which decide what the default roles allow.
};

struct AuthParts {
  std::shared_ptr<Authenticator> authenticator;
  std::shared_ptr<Authorizer> authorizer;
  std::shared_ptr<AuthorizerChain> chain;        ///< The authorizer, where there are links; null otherwise.
  std::shared_ptr<ServiceAccountTokens> tokens;  ///< The TokenIssuer.
  std::shared_ptr<net::Handler> openid;          ///< To be mounted at /.well-known/openid-configuration and /openid/v1/jwks.
  std::unique_ptr<Watch> aggregation;            ///< Keeps aggregated ClusterRoles up to date; destroy it before the cache.
};

/// Writes the default roles into the cache (waits for the store), starts watching RBAC objects. Errors: bad key or token file (kInvalid),
/// store failures.
Result<AuthParts> make_auth(const AuthOptions& options);

}  // namespace berth::apiserver::auth
