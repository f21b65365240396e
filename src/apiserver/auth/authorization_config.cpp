#include "apiserver/auth/authorization_config.h"

#include <array>
#include <set>

#include "base/config_reader.h"
#include "base/mutex.h"

namespace berth::apiserver::auth {
namespace {

constexpr Duration kLongestTimeout = std::chrono::seconds(30);

Duration read_duration(const config::Reader& from, std::string_view field, Duration fallback) {
  return std::chrono::milliseconds(from.duration_ms(field, std::chrono::duration_cast<std::chrono::milliseconds>(fallback).count()));
}

void read_conditions(const config::Reader& from, AuthorizerConfig& out) {
  const auto environment = access_review_environment();
  std::set<std::string> seen;
  for (const config::Reader& condition : from.field("matchConditions").items()) {
    if (!condition.expect_object()) continue;
    condition.only({"expression"});
    const std::string text = condition.string("expression");
    if (text.empty()) {
      condition.problem("expression", "missing");
      continue;
    }
    if (!seen.insert(text).second) condition.problem("expression", "is there twice");
    auto program = cel::compile(text, environment);
    if (!program)
      condition.problem("expression", fmt::format("compilation failed: {}", program.error().text));
    else if (cel::declared_name(program->output_type()) != "bool")
      condition.problem("expression", fmt::format("must evaluate to bool, but is {}", cel::declared_name(program->output_type())));
    else
      out.conditions.emplace_back(text, std::move(*program));
  }
}

void read_webhook(const config::Reader& from, AuthorizerConfig& out) {
  if (!from.is_object()) return from.problem("missing; timeout, failurePolicy, subjectAccessReviewVersion and connectionInfo");
  from.only({"authorizedTTL", "unauthorizedTTL", "cacheAuthorizedRequests", "cacheUnauthorizedRequests", "timeout",
             "subjectAccessReviewVersion", "matchConditionSubjectAccessReviewVersion", "failurePolicy", "connectionInfo",
             "matchConditions"});
  out.authorized_ttl = read_duration(from, "authorizedTTL", out.authorized_ttl);
  out.unauthorized_ttl = read_duration(from, "unauthorizedTTL", out.unauthorized_ttl);
  if (!from.boolean("cacheAuthorizedRequests", true)) out.authorized_ttl = Duration::zero();
  if (!from.boolean("cacheUnauthorizedRequests", true)) out.unauthorized_ttl = Duration::zero();
  out.timeout = read_duration(from, "timeout", Duration::zero());
  if (!from.has("timeout"))
    from.problem("timeout", "missing; how long the service may take (\"3s\")");
  else if (out.timeout <= Duration::zero() || out.timeout > kLongestTimeout)
    from.problem("timeout", "must be above 0 and at most 30s");
  static constexpr std::array<std::string_view, 1> kVersions = {"v1"};
  if (from.one_of("subjectAccessReviewVersion", kVersions).empty() && !from.has("subjectAccessReviewVersion"))
    from.problem("subjectAccessReviewVersion", "missing; v1");
  const std::string condition_version = from.one_of("matchConditionSubjectAccessReviewVersion", kVersions);
  static constexpr std::array<std::string_view, 2> kPolicies = {"NoOpinion", "Deny"};
  if (!from.has("failurePolicy")) from.problem("failurePolicy", "missing; NoOpinion (the next one is asked) or Deny");
  out.failure_denies = from.one_of("failurePolicy", kPolicies) == "Deny";
  read_conditions(from, out);
  if (!out.conditions.empty() && condition_version.empty() && !from.has("matchConditionSubjectAccessReviewVersion"))
    from.problem("matchConditionSubjectAccessReviewVersion", "missing; v1, where there are matchConditions");
  const config::Reader connection = from.field("connectionInfo");
  if (!connection.is_object()) return from.problem("connectionInfo", "missing; type: KubeConfigFile and kubeConfigFile");
  connection.only({"type", "kubeConfigFile"});
  const std::string type = connection.string("type");
  if (type != "KubeConfigFile") connection.problem("type", fmt::format("\"{}\"; KubeConfigFile is what is supported here", type));
  out.kubeconfig_file = connection.string("kubeConfigFile");
  if (out.kubeconfig_file.empty()) connection.problem("kubeConfigFile", "missing; the file with the service's address and credentials");
  if (!out.kubeconfig_file.empty() && !out.kubeconfig_file.starts_with('/'))
    connection.problem("kubeConfigFile", fmt::format("\"{}\" must be an absolute path", out.kubeconfig_file));
}

}  // namespace

Result<std::vector<AuthorizerConfig>> parse_authorization_config(std::string_view text, const std::string& file) {
  std::vector<AuthorizerConfig> out;
  const auto read = config::read_text(text, {.file = file}, [&](const config::Reader& root) {
    out.clear();
    if (!root.expect_object()) return;
    static constexpr std::array<std::string_view, 1> kKinds = {"AuthorizationConfiguration"};
    static constexpr std::array<std::string_view, 3> kVersions = {"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1",
                                                                  "apiserver.config.k8s.io/v1alpha1"};
    root.only({"apiVersion", "kind", "authorizers"});
    root.expect_kind(kKinds, kVersions);
    for (const char* field : {"apiVersion", "kind"})
      if (!root.has(field))
        root.problem(field, "missing; the file begins with apiVersion: apiserver.config.k8s.io/v1 and kind: AuthorizationConfiguration");
    std::set<std::string> names, types;
    const auto entries = root.field("authorizers").items();
    if (entries.empty()) root.problem("authorizers", "missing; at least one");
    for (const config::Reader& from : entries) {
      if (!from.expect_object()) continue;
      from.only({"type", "name", "webhook"});
      AuthorizerConfig one;
      one.name = from.string("name");
      const std::string type = from.string("type");
      if (one.name.empty()) from.problem("name", "missing; it tells this one from the others");
      if (!one.name.empty() && !names.insert(one.name).second) from.problem("name", fmt::format("\"{}\" is there twice", one.name));
      if (type != "Webhook" && !types.insert(type).second) from.problem("type", fmt::format("\"{}\" is there twice", type));
      if (type == "Webhook") {
        one.type = AuthorizerConfig::Type::kWebhook;
        read_webhook(from.field("webhook"), one);
      } else if (type == "AlwaysAllow" || type == "AlwaysDeny") {
        one.type = type == "AlwaysAllow" ? AuthorizerConfig::Type::kAlwaysAllow : AuthorizerConfig::Type::kAlwaysDeny;
      } else if (type != "Node" && type != "RBAC") {
        from.problem("type", type == "ABAC" ? std::string("ABAC is not supported; RBAC is its successor")
                                            : fmt::format("\"{}\" is none of Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny", type));
      }
      if (type != "Webhook" && from.has("webhook")) from.problem("webhook", "goes with type Webhook alone");
      // Node and RBAC are one here, where the first of them stands.
      if (one.type == AuthorizerConfig::Type::kBuiltIn && types.contains("Node") && types.contains("RBAC")) continue;
      out.push_back(std::move(one));
    }
    if (types.contains("Node") != types.contains("RBAC"))
      root.problem("authorizers", fmt::format("{} is missing beside {}: they go together here", types.contains("Node") ? "RBAC" : "Node",
                                              types.contains("Node") ? "Node" : "RBAC"));
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

AuthorizerChain::AuthorizerChain(std::shared_ptr<Authorizer> built_in, std::vector<Link> links)
    : built_in_(std::move(built_in)), links_(std::make_shared<const std::vector<Link>>(std::move(links))) {}

void AuthorizerChain::replace(std::vector<Link> links) {
  const MutexLock lock(mutex_);
  links_ = std::make_shared<const std::vector<Link>>(std::move(links));
}

std::shared_ptr<const std::vector<AuthorizerChain::Link>> AuthorizerChain::links_now() {
  const MutexLock lock(mutex_);
  return links_;
}

std::optional<std::string> AuthorizerChain::may_ask(const UserInfo& user) {
  if (user.in_group("system:masters")) return std::nullopt;
  for (const Link& link : *links_now()) {
    if (link.type == AuthorizerConfig::Type::kAlwaysAllow) return std::nullopt;
    if (link.webhook != nullptr) return "the authorization webhook " + link.webhook->name();
  }
  return std::nullopt;
}

Expected<Authorizer::Decision, std::string> AuthorizerChain::decide(const UserInfo& user, const Attributes& attributes, bool may_wait) {
  if (user.in_group("system:masters")) return Decision{true, ""};
  const auto links = links_now();
  std::string reasons;
  const auto note = [&](const std::string& reason) {
    if (!reason.empty()) reasons += (reasons.empty() ? "" : ", ") + reason;
  };
  for (const Link& link : *links) {
    if (link.type == AuthorizerConfig::Type::kAlwaysAllow) return Decision{true, ""};
    if (link.type == AuthorizerConfig::Type::kAlwaysDeny) {
      note("Everything is forbidden.");
      continue;
    }
    if (link.webhook == nullptr) {
      auto decision =
          may_wait ? Expected<Decision, std::string>(built_in_->authorize(user, attributes)) : built_in_->decide_at_once(user, attributes);
      if (!decision || decision->allowed) return decision;
      note(decision->reason);
      continue;
    }
    const auto verdict = may_wait ? std::optional(link.webhook->authorize(user, attributes)) : link.webhook->remembered(user, attributes);
    if (!verdict) return std::unexpected("the authorization webhook " + link.webhook->name());
    if (verdict->verdict == Verdict::kAllow) return Decision{true, verdict->reason};
    note(verdict->reason);
    if (verdict->verdict == Verdict::kDeny) break;
  }
  return Decision{false, reasons};
}

UserRules AuthorizerChain::rules_for(const UserInfo& user, const std::string& ns) {
  auto rules = built_in_->rules_for(user, ns);
  const auto links = links_now();
  if (std::ranges::any_of(*links, [](const Link& link) { return link.webhook != nullptr; })) {
    rules.incomplete = true;
    rules.evaluation_error = "webhook authorizer does not support user rule resolution";
  }
  return rules;
}

}  // namespace berth::apiserver::auth
