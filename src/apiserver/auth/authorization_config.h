// Who is asked whether a request may be, in which order: apiserver.config.k8s.io AuthorizationConfiguration, and the flags that say the
// same of one webhook.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/auth/interfaces.h"
#include "apiserver/auth/webhook_auth.h"
#include "base/mutex.h"

namespace berth::apiserver::auth {

struct AuthorizerConfig {
  enum class Type { kBuiltIn, kWebhook, kAlwaysAllow, kAlwaysDeny };
  Type type = Type::kBuiltIn;  ///< kBuiltIn: Node and RBAC, which stand together here.
  std::string name;
  std::string kubeconfig_file;
  Duration timeout = std::chrono::seconds(3), authorized_ttl = std::chrono::minutes(5), unauthorized_ttl = std::chrono::seconds(30);
  bool failure_denies = false;
  std::vector<std::pair<std::string, cel::Program>> conditions;
};

/// The error lists every problem with file, line, field path and what is allowed.
Result<std::vector<AuthorizerConfig>> parse_authorization_config(std::string_view text, const std::string& file);

/// Asks one after the other; the first with an opinion decides. system:masters may everything, whoever is asked, as in Kubernetes.
/// Thread-safe; the chain can be replaced while it is in use.
class AuthorizerChain final : public Authorizer {
 public:
  struct Link {
    AuthorizerConfig::Type type;
    std::shared_ptr<WebhookAuthorizer> webhook;
  };
  AuthorizerChain(std::shared_ptr<Authorizer> built_in, std::vector<Link> links);
  void replace(std::vector<Link> links);

  Decision authorize(const UserInfo& user, const Attributes& attributes) override {
    return decide(user, attributes, true).value_or(Decision{});
  }
  Expected<Decision, std::string> decide_at_once(const UserInfo& user, const Attributes& attributes) override {
    return decide(user, attributes, false);
  }
  std::optional<std::string> may_ask(const UserInfo& user) override;
  UserRules rules_for(const UserInfo& user, const std::string& ns) override;
  std::optional<std::string> check_escalation(const UserInfo& user, const std::string& kind, const json::Value& object,
                                              const json::Value* old_object) override {
    return built_in_->check_escalation(user, kind, object, old_object);
  }

 private:
  /// The error: who would have to be waited for.
  Expected<Decision, std::string> decide(const UserInfo& user, const Attributes& attributes, bool may_wait);
  [[nodiscard]] std::shared_ptr<const std::vector<Link>> links_now();
  const std::shared_ptr<Authorizer> built_in_;
  Mutex mutex_;
  std::shared_ptr<const std::vector<Link>> links_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::apiserver::auth
