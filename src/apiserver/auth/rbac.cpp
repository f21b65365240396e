#include "apiserver/auth/rbac.h"

#include <shared_mutex>
#include <unordered_map>

#include "apiserver/auth/node_authorizer.h"
#include "apiserver/auth/rbac_rules.h"
#include "base/log.h"

namespace berth::apiserver::auth {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kMasters = "system:masters";

/// Who holds a permission, as a key: users and groups have name spaces of their own, and each namespace has its own grants.
std::string subject_key(char kind, std::string_view name, std::string_view ns) {
  std::string key;
  key.reserve(name.size() + ns.size() + 2);
  key += kind;
  key.append(name).append(1, '\n').append(ns);
  return key;
}

std::string role_key(std::string_view kind, std::string_view ns, std::string_view name) {
  return kind == "Role" ? fmt::format("{}/{}", ns, name) : fmt::format("/{}", name);
}

/// One binding as seen by one of its subjects.
struct Grant {
  std::string binding;  ///< The binding's key in the cache.
  std::string role;     ///< role_key.
  std::string why;      ///< `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "y" to User "z"`
};

}  // namespace

/// The rules in force. Writers are the cache's deliveries, readers the requests.
struct RbacState {
  mutable std::shared_mutex mutex;
  std::unordered_map<std::string, std::vector<PolicyRule>> roles;
  std::unordered_map<std::string, std::vector<Grant>> grants;             ///< By subject_key.
  std::unordered_map<std::string, std::vector<std::string>> subjects_of;  ///< Binding's key in the cache to its subject_keys.

  void put_role(const StoredObject& object, bool cluster, bool deleted) {
    std::string key = role_key(cluster ? "ClusterRole" : "Role", object.meta.ns, object.meta.name);
    auto document = deleted ? Result<json::Value>(json::Value()) : json::parse(*object.value);
    std::unique_lock lock(mutex);
    if (deleted || !document) {
      roles.erase(key);
    } else {
      roles[key] = PolicyRule::list_from_json(json::find(*document, "rules"));
    }
  }

  void put_binding(const StoredObject& object, bool cluster, bool deleted) {
    auto document = deleted ? Result<json::Value>(json::Value()) : json::parse(*object.value);
    std::unique_lock lock(mutex);
    std::string key(object.key);
    for (const std::string& subject : subjects_of[key]) {
      auto& list = grants[subject];
      std::erase_if(list, [&](const Grant& grant) { return grant.binding == key; });
      if (list.empty()) grants.erase(subject);
    }
    subjects_of.erase(key);
    if (deleted || !document) return;
    auto kind = json::get_string(*document, {"roleRef", "kind"});
    auto role_name = json::get_string(*document, {"roleRef", "name"});
    std::string role = role_key(kind, object.meta.ns, role_name);
    std::string by = cluster ? fmt::format("ClusterRoleBinding \"{}\"", object.meta.name)
                             : fmt::format("RoleBinding \"{}/{}\"", object.meta.name, object.meta.ns);
    for (const auto& subject : json::get_array(*document, {"subjects"})) {
      auto subject_kind = json::get_string(subject, {"kind"});
      auto name = json::get_string(subject, {"name"});
      std::string user(name);
      std::string shown = fmt::format("{} \"{}\"", subject_kind, name);
      if (subject_kind == "ServiceAccount") {
        auto ns = json::get_string(subject, {"namespace"}, object.meta.ns);
        user = fmt::format("system:serviceaccount:{}:{}", ns, name);
        shown = fmt::format("ServiceAccount \"{}/{}\"", name, ns);
      } else if (subject_kind != "User" && subject_kind != "Group") {
        continue;
      }
      std::string holder = subject_key(subject_kind == "Group" ? 'g' : 'u', user, cluster ? std::string_view() : object.meta.ns);
      grants[holder].push_back({key, role, fmt::format("RBAC: allowed by {} of {} \"{}\" to {}", by, kind, role_name, shown)});
      subjects_of[key].push_back(std::move(holder));
    }
  }

  /// Calls each(grant, rules or null) for what the user holds cluster-wide and in `ns`, until it returns false.
  template <typename Each>
  void for_each_grant(const UserInfo& user, std::string_view ns, const Each& each) const {
    const auto visit = [&](const std::string& key) {
      auto held = grants.find(key);
      if (held == grants.end()) return true;
      for (const Grant& grant : held->second) {
        auto role = roles.find(grant.role);
        if (!each(grant, role == roles.end() ? nullptr : &role->second)) return false;
      }
      return true;
    };
    for (std::string_view scope : {std::string_view(), ns}) {
      if (!visit(subject_key('u', user.name, scope))) return;
      for (const auto& group : user.groups) {
        if (!visit(subject_key('g', group, scope))) return;
      }
      if (ns.empty()) return;
    }
  }
};

namespace {

class RoleSink final : public WatchSink {
 public:
  RoleSink(std::shared_ptr<RbacState> state, bool cluster, bool bindings)
      : state_(std::move(state)), cluster_(cluster), bindings_(bindings) {}
  bool deliver(const WatchEvent& event) override {
    if (event.object == nullptr) return true;
    bool deleted = event.type == WatchEventType::kDeleted;
    if (bindings_) {
      state_->put_binding(*event.object, cluster_, deleted);
    } else {
      state_->put_role(*event.object, cluster_, deleted);
    }
    return true;
  }

 private:
  std::shared_ptr<RbacState> state_;
  bool cluster_, bindings_;
};

class RbacAuthorizerImpl final : public RbacAuthorizer {
 public:
  explicit RbacAuthorizerImpl(ObjectCache& cache) : nodes_(cache) {
    struct Source {
      std::string_view plural;
      bool cluster, bindings;
    };
    for (const Source& source : {Source{"clusterroles", true, false},
                                 {"roles", false, false},
                                 {"clusterrolebindings", true, true},
                                 {"rolebindings", false, true}}) {
      WatchFilter filter{.prefix = make_prefix(kGroup, source.plural)};
      watches_.push_back(cache.watch(std::move(filter), 0, true, std::make_shared<RoleSink>(state_, source.cluster, source.bindings)));
    }
  }

  Decision authorize(const UserInfo& user, const Attributes& attributes) override {
    if (user.in_group(kMasters)) return {true, ""};
    std::string reason;
    if (auto node = node_name_of(user)) {
      auto decision = nodes_.authorize(*node, attributes);
      if (decision.allowed) return decision;
      reason = decision.reason;
    }
    Decision decision{false, std::move(reason)};
    std::vector<std::string_view> missing;
    std::shared_lock lock(state_->mutex);
    state_->for_each_grant(
        user, attributes.is_resource ? std::string_view(attributes.ns) : std::string_view(),
        [&](const Grant& grant, const std::vector<PolicyRule>* rules) {
          if (rules == nullptr) {
            missing.push_back(grant.role);
            return true;
          }
          if (std::none_of(rules->begin(), rules->end(), [&](const PolicyRule& rule) { return rule.allows(attributes); })) return true;
          decision = {true, grant.why};
          return false;
        });
    if (!decision.allowed) add_missing(decision.reason, missing);
    return decision;
  }

  UserRules rules_for(const UserInfo& user, const std::string& ns) override {
    UserRules rules;
    // Masters hold cluster-admin by its binding; what they may do without any role no resolver tells (as in Kubernetes).
    if (node_name_of(user)) {
      rules.incomplete = true;
      rules.evaluation_error = "node authorizer does not support user rule resolution";
    }
    for (auto& rule : rules_held(user, ns)) {
      if (!rule.urls.empty()) rules.non_resource.push_back({rule.verbs, rule.urls});
      if (!rule.resources.empty())
        rules.resource.push_back({std::move(rule.verbs), std::move(rule.groups), std::move(rule.resources), std::move(rule.names)});
    }
    return rules;
  }

  std::optional<std::string> check_escalation(const UserInfo& user, const std::string& kind, const json::Value& object,
                                              const json::Value* old_object) override {
    if (user.in_group(kMasters)) return std::nullopt;
    return kind == "Role" || kind == "ClusterRole" ? check_role(user, kind, object, old_object) : check_binding(user, object, old_object);
  }

 private:
  static void add_missing(std::string& reason, const std::vector<std::string_view>& missing) {
    if (missing.empty()) return;
    std::string text;
    for (std::string_view role : missing) {
      auto slash = role.find('/');
      text += fmt::format("{}{}.rbac.authorization.k8s.io \"{}\" not found", text.empty() ? "" : ", ", slash == 0 ? "clusterrole" : "role",
                          role.substr(slash + 1));
    }
    reason += fmt::format("{}RBAC: {}", reason.empty() ? "" : ", ", missing.size() == 1 ? text : "[" + text + "]");
  }

  std::vector<PolicyRule> rules_held(const UserInfo& user, const std::string& ns) const {
    std::vector<PolicyRule> held;
    std::shared_lock lock(state_->mutex);
    state_->for_each_grant(user, ns, [&](const Grant&, const std::vector<PolicyRule>* rules) {
      if (rules != nullptr) held.insert(held.end(), rules->begin(), rules->end());
      return true;
    });
    return held;
  }

  bool may(const UserInfo& user, const char* verb, std::string_view kind, std::string_view ns, std::string_view name) {
    Attributes attributes;
    attributes.verb = verb;
    attributes.group = kGroup;
    attributes.version = "v1";
    attributes.resource = kind == "Role" ? "roles" : "clusterroles";
    attributes.ns = ns;
    attributes.name = name;
    return authorize(user, attributes).allowed;
  }

  std::optional<std::string> refuse_uncovered(const UserInfo& user, const std::string& ns, const std::vector<PolicyRule>& wanted) const {
    auto missing = uncovered(rules_held(user, ns), wanted);
    if (missing.empty()) return std::nullopt;
    std::string text = fmt::format("user \"{}\" (groups=[", user.name);
    for (std::size_t i = 0; i < user.groups.size(); ++i) text += fmt::format("{}\"{}\"", i == 0 ? "" : " ", user.groups[i]);
    text += "]) is attempting to grant RBAC permissions not currently held:";
    for (const PolicyRule& rule : missing) text += "\n" + rule.to_string();
    return text;
  }

  std::optional<std::string> check_role(const UserInfo& user, const std::string& kind, const json::Value& object,
                                        const json::Value* old_object) {
    std::string ns(json::get_string(object, {"metadata", "namespace"}));
    const json::Value none;
    const auto part = [&](const json::Value* from, std::string_view field) -> const json::Value& {
      const auto* value = from != nullptr ? json::find(*from, field) : nullptr;
      return value != nullptr ? *value : none;
    };
    bool same_aggregation = json::equal(part(&object, "aggregationRule"), part(old_object, "aggregationRule"));
    if (old_object != nullptr && same_aggregation && json::equal(part(&object, "rules"), part(old_object, "rules"))) return std::nullopt;
    if (may(user, "escalate", kind, ns, json::get_string(object, {"metadata", "name"}))) return std::nullopt;
    std::vector<PolicyRule> wanted = PolicyRule::list_from_json(json::find(object, "rules"));
    if (json::find(object, "aggregationRule") != nullptr && !same_aggregation) {
      // Whoever decides what is gathered can gather anything.
      wanted = {{.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}}, {.verbs = {"*"}, .urls = {"*"}}};
      if (refuse_uncovered(user, ns, wanted)) return "must have cluster-admin privileges to use the aggregationRule";
      return std::nullopt;
    }
    return refuse_uncovered(user, ns, wanted);
  }

  std::optional<std::string> check_binding(const UserInfo& user, const json::Value& object, const json::Value* old_object) {
    std::string ns(json::get_string(object, {"metadata", "namespace"}));
    auto kind = json::get_string(object, {"roleRef", "kind"});
    auto name = json::get_string(object, {"roleRef", "name"});
    if (old_object != nullptr) {
      const auto* before = json::find(*old_object, "subjects");
      const auto* after = json::find(object, "subjects");
      bool same_subjects = before == nullptr || after == nullptr ? before == after : json::equal(*before, *after);
      if (same_subjects && json::get_string(*old_object, {"roleRef", "kind"}) == kind &&
          json::get_string(*old_object, {"roleRef", "name"}) == name)
        return std::nullopt;
    }
    if (may(user, "bind", kind, kind == "Role" ? ns : "", name) || may(user, "bind", kind, ns, name)) return std::nullopt;
    std::vector<PolicyRule> wanted;
    {
      std::shared_lock lock(state_->mutex);
      auto role = state_->roles.find(role_key(kind, ns, name));
      if (role == state_->roles.end())
        return fmt::format("{}.{} \"{}\" not found", kind == "Role" ? "roles" : "clusterroles", kGroup, name);
      wanted = role->second;
    }
    return refuse_uncovered(user, ns, wanted);
  }

  std::shared_ptr<RbacState> state_ = std::make_shared<RbacState>();
  NodeAuthorizer nodes_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

}  // namespace

std::shared_ptr<RbacAuthorizer> RbacAuthorizer::create(ObjectCache& cache) { return std::make_shared<RbacAuthorizerImpl>(cache); }

}  // namespace berth::apiserver::auth
