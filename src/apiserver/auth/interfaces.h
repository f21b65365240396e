// Who asks, and whether they may: the two questions the request pipeline asks before it does anything (SPEC A6).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/expected.h"
#include "model/api_status.h"
#include "net/http.h"

namespace berth::model {
enum class Features : std::uint8_t;  // model/features.h
}
namespace berth::apiserver {

/// An authenticated user (authentication.k8s.io UserInfo).
struct UserInfo {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  [[nodiscard]] bool in_group(std::string_view group) const {
    for (const auto& g : groups)
      if (g == group) return true;
    return false;
  }
};

/// What is asked for (authorizer.Attributes). For non-resource requests only verb and path are set.
struct Attributes {
  std::string verb;  ///< get list watch create update patch delete deletecollection; lower-case HTTP method for non-resource requests.
  bool is_resource = true;
  std::string group, version, resource, subresource, ns, name;
  std::string path;
  std::string field_selector, label_selector;
};

/// One rule that applies to a user (SelfSubjectRulesReview).
struct ResourceRule {
  std::vector<std::string> verbs, groups, resources, resource_names;
};
struct NonResourceRule {
  std::vector<std::string> verbs, urls;
};
struct UserRules {
  std::vector<ResourceRule> resource;
  std::vector<NonResourceRule> non_resource;
  bool incomplete = false;
  std::string evaluation_error;
};

/// A token asked for a service account (serviceaccounts/token).
struct TokenSpec {
  std::string ns, service_account, service_account_uid;
  std::vector<std::string> audiences;  ///< Empty: the server's own.
  std::int64_t expiration_seconds = 3600;
  std::string bound_kind, bound_name, bound_uid;  ///< "Pod", "Secret", "Node", or empty.
};
struct IssuedToken {
  std::string token;
  TimePoint expires_at;
};

/// Whom a token speaks for, and for which of the audiences that were asked about it is.
struct TokenUser {
  UserInfo user;
  std::vector<std::string> audiences;
};

/// Those of `ours` that are among `theirs`, in our order.
std::vector<std::string> audiences_in_both(const std::vector<std::string>& ours, const std::vector<std::string>& theirs);

/// Thread-safe.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  /// Whom `authenticate` has to ask, so that it waits and is not called on I/O threads: an issuer's or a service's name.
  virtual std::optional<std::string> waits_for(const net::HttpRequest&) { return std::nullopt; }
  /// The same of authenticate_token.
  virtual std::optional<std::string> waits_for_token(const std::string& /*token*/, const std::vector<std::string>& /*audiences*/) {
    return std::nullopt;
  }
  /// The user of a request by client certificate or bearer token; `system:anonymous` (group `system:unauthenticated`) when there are
  /// neither and anonymous requests are let through to the authorizer; 401 for bad credentials. Impersonation headers are not looked at
  /// here.
  virtual model::ApiResult<UserInfo> authenticate(const net::HttpRequest& request) = 0;
  /// A TokenReview's question: for one of the audiences (empty: the server's own). 401 when the token is bad; its message is the review's
  /// error.
  virtual model::ApiResult<TokenUser> authenticate_token(const std::string& token, const std::vector<std::string>& audiences) = 0;
};

/// Thread-safe.
class Authorizer {
 public:
  virtual ~Authorizer() = default;
  struct Decision {
    bool allowed = false;
    std::string reason;
  };
  /// What `authorize` says, when it takes no longer than a moment. Otherwise what it waits for: a service's name, or very many rules. Then
  /// it is not called on I/O threads.
  virtual Expected<Decision, std::string> decide_at_once(const UserInfo& user, const Attributes& attributes) {
    return authorize(user, attributes);
  }
  /// The service that may have to be asked about whatever else the user wants: then what asks on its way is not on I/O threads.
  virtual std::optional<std::string> may_ask(const UserInfo&) { return std::nullopt; }
  virtual Decision authorize(const UserInfo& user, const Attributes& attributes) = 0;
  virtual UserRules rules_for(const UserInfo& user, const std::string& ns) = 0;
  /// RBAC's escalation rule for writes of (Cluster)Roles and (Cluster)RoleBindings: an error message when `user` must not write `object`
  /// (`old_object` null on creation) because it grants more than the user has; nullopt when fine.
  virtual std::optional<std::string> check_escalation(const UserInfo&, const std::string& /*kind*/, const json::Value& /*object*/,
                                                      const json::Value* /*old_object*/) {
    return std::nullopt;
  }
};

class TokenIssuer {
 public:
  virtual ~TokenIssuer() = default;
  virtual model::ApiResult<IssuedToken> issue(const TokenSpec& spec) = 0;
};

/// Everybody may do everything, as the user `name` in system:masters unless the request's peer certificate says otherwise: in-process use
/// and tests.
class TrustingAuth final : public Authenticator, public Authorizer {
 public:
  explicit TrustingAuth(std::string name = "system:admin") : name_(std::move(name)) {}
  model::ApiResult<UserInfo> authenticate(const net::HttpRequest& request) override {
    if (request.peer) return UserInfo{request.peer->common_name, "", request.peer->organizations, {}};
    return UserInfo{name_, "", {"system:masters", "system:authenticated"}, {}};
  }
  model::ApiResult<TokenUser> authenticate_token(const std::string&, const std::vector<std::string>&) override {
    return std::unexpected(model::unauthorized());
  }
  Decision authorize(const UserInfo&, const Attributes&) override { return {true, ""}; }
  UserRules rules_for(const UserInfo&, const std::string&) override {
    UserRules rules;
    rules.resource.push_back({{"*"}, {"*"}, {"*"}, {}});
    rules.non_resource.push_back({{"*"}, {"*"}});
    return rules;
  }

 private:
  std::string name_;
};

}  // namespace berth::apiserver
