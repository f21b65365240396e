// Who holds which roles: the bindings by subject and namespace, each with its role's rules.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/auth/rbac_rules.h"
#include "apiserver/cache/object_cache.h"
#include "base/shared_mutex.h"

namespace berth::apiserver::auth {

/// "NS/NAME" of a Role, "/NAME" of a ClusterRole.
std::string role_key(std::string_view kind, std::string_view ns, std::string_view name);

/// Writers are the cache's deliveries, readers the requests, which hold the mutex while they look. What is deleted is forgotten whole.
class RbacGrants {
 public:
  /// A role, also one that is only referred to.
  struct Role {
    std::string key;
    std::shared_ptr<const RuleIndex> rules;  ///< Null: there is no such role.
    std::size_t bindings = 0;                ///< Subjects' that name it.
  };
  struct Binding {
    std::string shown;                 ///< `ClusterRoleBinding "x" of ClusterRole "y"`
    std::vector<std::string> holders;  ///< Each once.
    std::shared_ptr<Role> role;
  };
  /// A role as one subject holds it, by some bindings.
  struct Grant {
    std::shared_ptr<Role> role;
    std::vector<const Binding*> bindings;  ///< Never empty.
  };

  void put_role(const StoredObject& object, bool cluster, bool deleted);
  void put_binding(const StoredObject& object, bool cluster, bool deleted);

  /// Guards what follows.
  [[nodiscard]] SharedMutex& mutex() const BERTH_RETURN_CAPABILITY(mutex_) { return mutex_; }
  /// Null: there is no such role.
  [[nodiscard]] std::shared_ptr<const RuleIndex> find_role(const std::string& key) const BERTH_REQUIRES_SHARED(mutex_);
  /// Calls each(grant, holder) for what the user holds cluster-wide and in `ns`, and each(null, "") for a name under which he holds
  /// nothing, until it returns false.
  template <typename Each>
  void for_each_grant(const UserInfo& user, std::string_view ns, const Each& each) const BERTH_REQUIRES_SHARED(mutex_) {
    const auto visit = [&](char kind, std::string_view name, std::string_view scope) BERTH_REQUIRES_SHARED(mutex_) {
      const std::string holder = holder_key(kind, name, scope);
      const auto held = grants_.find(holder);
      if (held == grants_.end()) return each(static_cast<const Grant*>(nullptr), holder);
      for (const Grant& grant : held->second)
        if (!each(&grant, holder)) return false;
      return true;
    };
    for (const std::string_view scope : {std::string_view(), ns}) {
      // A service account is held under its own kind too, which messages show.
      if (!visit('u', user.name, scope)) return;
      if (user.name.starts_with(kServiceAccountPrefix) && !visit('s', user.name, scope)) return;
      for (const auto& group : user.groups)
        if (!visit('g', group, scope)) return;
      if (ns.empty()) return;
    }
  }
  /// `RBAC: allowed by RoleBinding "x/ns" of Role "y" to User "z"`
  [[nodiscard]] static std::string why(const Grant& grant, std::string_view holder);

  /// How many roles, bindings and subjects are remembered (tests).
  [[nodiscard]] std::size_t size() const;

 private:
  static constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";
  /// Users, service accounts and groups have name spaces of their own, and each namespace has its own grants.
  static std::string holder_key(char kind, std::string_view name, std::string_view ns);
  const std::shared_ptr<Role>& role(const std::string& key) BERTH_REQUIRES(mutex_);
  void let_go(const std::shared_ptr<Role>& role) BERTH_REQUIRES(mutex_);
  void remove_binding(const std::string& key) BERTH_REQUIRES(mutex_);

  mutable SharedMutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Role>> roles_ BERTH_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::vector<Grant>> grants_ BERTH_GUARDED_BY(mutex_);                ///< By holder.
  std::unordered_map<std::string, std::unique_ptr<const Binding>> bindings_ BERTH_GUARDED_BY(mutex_);  ///< By key in the cache.
};

}  // namespace berth::apiserver::auth
