#include "cli/roles/auth_setup.h"

#include <CLI/CLI.hpp>
#include <set>

#include "base/config_reader.h"
#include "base/log.h"
#include "base/split.h"
#include "client/kubeconfig.h"

namespace berth::cli {
namespace {

namespace auth = apiserver::auth;
using Type = auth::AuthorizerConfig::Type;

Duration duration_flag(const char* flag, const std::string& text, Findings& findings) {
  const auto parsed = parse_go_duration(text);
  if (!parsed || *parsed < Duration::zero()) findings.error(fmt::format("{}: \"{}\" is not a duration (like \"2m\")", flag, text));
  return parsed.value_or(Duration::zero());
}

/// --authorization-mode and the webhook's flags.
void plan_modes(const AuthFlags& flags, AuthPlan& out, Findings& findings) {
  const auto modes = words(flags.authorization_mode, ',').list<std::string>();
  std::set<std::string> seen;
  for (const std::string& mode : modes) {
    if (!seen.insert(mode).second) findings.error(fmt::format("--authorization-mode: {} is there twice", mode));
    auth::AuthorizerConfig one;
    one.name = mode;
    if (mode == "Webhook") {
      one.type = Type::kWebhook;
      one.kubeconfig_file = flags.authorization_webhook_config;
      one.timeout = std::chrono::seconds(30);
      one.authorized_ttl = duration_flag("--authorization-webhook-cache-authorized-ttl", flags.authorized_ttl, findings);
      one.unauthorized_ttl = duration_flag("--authorization-webhook-cache-unauthorized-ttl", flags.unauthorized_ttl, findings);
      if (one.kubeconfig_file.empty()) findings.error("--authorization-mode Webhook needs --authorization-webhook-config-file");
    } else if (mode == "AlwaysAllow" || mode == "AlwaysDeny") {
      one.type = mode == "AlwaysAllow" ? Type::kAlwaysAllow : Type::kAlwaysDeny;
    } else if (mode != "Node" && mode != "RBAC") {
      findings.error(mode == "ABAC"
                         ? std::string("--authorization-mode: ABAC is not supported: its policy file can only be changed by a restart; "
                                       "write the same as Roles and bindings (RBAC)")
                         : fmt::format("--authorization-mode: \"{}\" is none of Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny", mode));
    }
    if (one.type == Type::kBuiltIn && seen.contains("Node") && seen.contains("RBAC")) continue;
    out.authorizers.push_back(std::move(one));
  }
  if (modes.empty()) findings.error("--authorization-mode: names no mode");
  if (seen.contains("Node") != seen.contains("RBAC")) findings.error("--authorization-mode: Node and RBAC go together here");
  if (!flags.authorization_webhook_config.empty() && !seen.contains("Webhook"))
    findings.error("--authorization-webhook-config-file: has no effect without Webhook in --authorization-mode");
}

Result<auth::PostReview> reviews_of(const std::string& kubeconfig, Duration timeout) {
  const auto connection = client::load_kubeconfig(kubeconfig);
  if (!connection) return std::unexpected(connection.error());
  return auth::https_reviews(connection->http, connection->bearer_token, timeout);
}

}  // namespace

void AuthFlags::add_to(CLI::App& app) {
  app.add_option("--authentication-config", authentication_config,
                 "AuthenticationConfiguration: issuers of tokens, anonymous requests; read anew when it changes");
  app.add_option("--oidc-issuer-url", oidc.issuer_url, "The one issuer of tokens, without --authentication-config");
  app.add_option("--oidc-client-id", oidc.client_id, "Whom its tokens must be for");
  app.add_option("--oidc-ca-file", oidc.ca_file, "Who signed its certificate; the system's authorities when empty");
  app.add_option("--oidc-username-claim", oidc.username_claim, "The claim that is the user's name")->capture_default_str();
  app.add_option("--oidc-username-prefix", oidc.username_prefix, "Stands before it; ISSUER# when empty (but for email), none with -");
  app.add_option("--oidc-groups-claim", oidc.groups_claim, "The claim that is the user's groups");
  app.add_option("--oidc-groups-prefix", oidc.groups_prefix, "Stands before each");
  app.add_option("--oidc-required-claim", oidc.required_claims, "KEY=VALUE that a token must have; may be repeated");
  app.add_option("--oidc-signing-algs", oidc.signing_algs, "Algorithms of signatures, comma separated; ABAC is not supported")
      ->delimiter(',')
      ->default_str("RS256");
  app.add_option("--authentication-token-webhook-config-file", token_webhook_config,
                 "kubeconfig of a web service that is asked about tokens (TokenReview)");
  app.add_option("--authentication-token-webhook-cache-ttl", token_webhook_ttl, "How long its answers are good for")->capture_default_str();
  app.add_flag("--anonymous-auth,!--no-anonymous-auth", anonymous,
               "Requests without credentials are system:anonymous, not 401 (default true)");
  app.add_option("--authorization-config", authorization_config,
                 "AuthorizationConfiguration: who is asked in which order; read anew when it changes");
  app.add_option("--authorization-mode", authorization_mode,
                 "The same in short: Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny, comma separated")
      ->capture_default_str();
  app.add_option("--authorization-webhook-config-file", authorization_webhook_config,
                 "kubeconfig of the web service of mode Webhook (SubjectAccessReview)");
  app.add_option("--authorization-webhook-cache-authorized-ttl", authorized_ttl, "How long its permissions are good for")
      ->capture_default_str();
  app.add_option("--authorization-webhook-cache-unauthorized-ttl", unauthorized_ttl, "How long its refusals are")->capture_default_str();
}

bool AuthPlan::asks_others(const AuthFlags& flags) const {
  // A file may name issuers and services later.
  return !issuers.empty() || !flags.token_webhook_config.empty() || !flags.authentication_config.empty() ||
         !flags.authorization_config.empty() ||
         std::ranges::any_of(authorizers, [](const auto& one) { return one.type == Type::kWebhook; });
}

AuthPlan plan_auth(const AuthFlags& flags, Findings& findings) {
  AuthPlan out;
  out.anonymous = flags.anonymous;
  if (!flags.authentication_config.empty() && flags.oidc.any())
    findings.error("--authentication-config and --oidc-…: give one of them; the file's jwt entries say the same");
  else if (flags.oidc.any()) {
    if (auto issuer = findings.take(auth::issuer_of_flags(flags.oidc))) out.issuers.push_back(std::move(*issuer));
  } else if (!flags.authentication_config.empty()) {
    if (const auto text = findings.take(config::read_whole_file(flags.authentication_config)))
      if (auto parsed = findings.take(auth::parse_authentication_config(*text, flags.authentication_config))) {
        out.issuers = std::move(parsed->issuers);
        if (parsed->anonymous) {
          out.anonymous = parsed->anonymous->enabled;
          out.anonymous_paths = parsed->anonymous->paths;
        }
      }
  }
  duration_flag("--authentication-token-webhook-cache-ttl", flags.token_webhook_ttl, findings);
  if (!flags.token_webhook_config.empty()) static_cast<void>(findings.take(client::load_kubeconfig(flags.token_webhook_config)));
  if (flags.authorization_config.empty()) {
    plan_modes(flags, out, findings);
  } else {
    if (flags.authorization_mode != "Node,RBAC" || !flags.authorization_webhook_config.empty())
      findings.error("--authorization-config and --authorization-mode, --authorization-webhook-config-file: give one of them");
    if (const auto text = findings.take(config::read_whole_file(flags.authorization_config)))
      if (auto parsed = findings.take(auth::parse_authorization_config(*text, flags.authorization_config)))
        out.authorizers = std::move(*parsed);
  }
  for (const auto& one : out.authorizers)
    if (!one.kubeconfig_file.empty()) static_cast<void>(findings.take(client::load_kubeconfig(one.kubeconfig_file)));
  return out;
}

Result<std::shared_ptr<auth::WebhookAuthenticator>> make_token_webhook(const AuthFlags& flags, const Clock& clock) {
  if (flags.token_webhook_config.empty()) return nullptr;
  auto post = reviews_of(flags.token_webhook_config, std::chrono::seconds(30));
  if (!post) return std::unexpected(post.error());
  return std::make_shared<auth::WebhookAuthenticator>(std::move(*post), clock,
                                                      parse_go_duration(flags.token_webhook_ttl).value_or(Duration::zero()));
}

Result<std::vector<auth::AuthorizerChain::Link>> make_links(const AuthPlan& plan, const Clock& clock) {
  std::vector<auth::AuthorizerChain::Link> out;
  for (const auto& one : plan.authorizers) {
    auth::AuthorizerChain::Link link{one.type, nullptr};
    if (one.type == Type::kWebhook) {
      auto post = reviews_of(one.kubeconfig_file, one.timeout);
      if (!post) return std::unexpected(post.error());
      auth::WebhookAuthorizerOptions options{one.name,           std::move(*post), one.authorized_ttl, one.unauthorized_ttl,
                                             one.failure_denies, one.conditions};
      link.webhook = std::make_shared<auth::WebhookAuthorizer>(std::move(options), clock);
    }
    out.push_back(std::move(link));
  }
  return out;
}

std::shared_ptr<auth::OidcAuthenticator> make_oidc(const AuthPlan& plan, const Clock& clock) {
  if (plan.issuers.empty()) return nullptr;
  return std::make_shared<auth::OidcAuthenticator>(plan.issuers, auth::https_fetch(), clock);
}

AuthReload::AuthReload(AuthFlags flags, std::shared_ptr<apiserver::Authenticator> authenticator,
                       std::shared_ptr<auth::AuthorizerChain> chain, const Clock& clock)
    : flags_(std::move(flags)), authenticator_(std::move(authenticator)), chain_(std::move(chain)), clock_(clock) {
  if (!flags_.authentication_config.empty()) authentication_ = config::read_whole_file(flags_.authentication_config).value_or("");
  if (!flags_.authorization_config.empty()) authorization_ = config::read_whole_file(flags_.authorization_config).value_or("");
}

void AuthReload::look() {
  const auto changed = [](const std::string& path, std::string& known) {
    if (path.empty()) return false;
    auto text = config::read_whole_file(path);
    if (!text || *text == known) return false;
    known = std::move(*text);
    return true;
  };
  const bool authentication = changed(flags_.authentication_config, authentication_);
  const bool authorization = changed(flags_.authorization_config, authorization_);
  if (!authentication && !authorization) return;
  Findings findings;
  const AuthPlan plan = plan_auth(flags_, findings);
  if (!findings.may_start("auth")) return log::error("auth", "what was in force before stays so");
  if (authentication) {
    apiserver::auth::set_issuers(*authenticator_, make_oidc(plan, clock_), plan.anonymous, plan.anonymous_paths);
    log::info("auth", "{} was read anew", flags_.authentication_config);
  }
  if (!authorization || chain_ == nullptr) return;
  auto links = make_links(plan, clock_);
  if (!links) return log::error("auth", "{}; what was in force before stays so", links.error().message);
  chain_->replace(std::move(*links));
  log::info("auth", "{} was read anew", flags_.authorization_config);
}

}  // namespace berth::cli
