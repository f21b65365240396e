#include "apiserver/auth/auth.h"

#include "apiserver/auth/aggregation.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/default_roles.h"
#include "apiserver/auth/rbac.h"
#include "apiserver/auth/service_account_tokens.h"

namespace berth::apiserver::auth {
namespace {

class OpenIdHandler final : public net::Handler {
 public:
  explicit OpenIdHandler(std::shared_ptr<const ServiceAccountTokens> tokens) : tokens_(std::move(tokens)) {}
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    net::HttpResponse response;
    const bool keys = request.path == "/openid/v1/jwks";
    if (request.method != "GET") {
      response.status = 405;
    } else if (keys || request.path == "/.well-known/openid-configuration") {
      response.headers.set("Content-Type", keys ? "application/jwk-set+json" : "application/json");
      response.headers.set("Cache-Control", "public, max-age=3600");
      response.body = keys ? tokens_->json_web_keys() : tokens_->openid_configuration();
    } else {
      response.status = 404;
    }
    writer->respond(std::move(response));
  }

 private:
  std::shared_ptr<const ServiceAccountTokens> tokens_;
};

}  // namespace

Result<AuthParts> make_auth(const AuthOptions& options) {
  AuthParts parts;
  AuthenticatorOptions authenticator;
  authenticator.anonymous = options.anonymous;
  authenticator.anonymous_paths = options.anonymous_paths;
  authenticator.front_proxy = options.front_proxy;
  authenticator.oidc = options.oidc;
  authenticator.webhook = options.webhook;
  authenticator.cache = options.cache;
  authenticator.clock = options.clock;
  if (!options.revoked_file.empty()) authenticator.revoked = std::make_shared<RevokedCertificates>(options.revoked_file);
  if (!options.token_file.empty()) {
    auto tokens = parse_token_file(options.token_file);
    if (!tokens) return std::unexpected(tokens.error());
    authenticator.static_tokens = std::move(*tokens);
  }
  auto tokens = ServiceAccountTokens::create({options.service_account_key_pem, options.issuer, {}}, *options.cache, *options.clock);
  if (!tokens) return std::unexpected(tokens.error());
  parts.tokens = std::move(*tokens);
  authenticator.service_account_tokens = parts.tokens;
  parts.authenticator = make_authenticator(std::move(authenticator));
  if (options.reconcile_default_roles) {
    if (auto ok = reconcile_default_roles(*options.cache, *options.clock, options.features); !ok) return std::unexpected(ok.error());
  }
  parts.aggregation = start_aggregation(*options.cache);
  parts.authorizer = RbacAuthorizer::create(*options.cache);
  if (!options.links.empty()) parts.authorizer = parts.chain = std::make_shared<AuthorizerChain>(parts.authorizer, options.links);
  parts.openid = std::make_shared<OpenIdHandler>(parts.tokens);
  return parts;
}

}  // namespace berth::apiserver::auth
