// Who may do what while roles and bindings come, change, and go: every answer of the authorizer is held against a plain walk over the
// documents, and what it remembers against what there is.
#include "apiserver/auth/rbac.h"
#include "apiserver/auth/rbac_grants.h"
#include "apiserver/cache/follow.h"
#include "tests/apiserver/lives/access.h"

namespace berth::apiserver::auth {
namespace {

constexpr const char* kUsers[] = {"jane", "bob", "system:serviceaccount:a:sa", "system:serviceaccount:b:sa"};

struct Binding {
  bool cluster = false;
  std::string ns, name, role_kind, role_name;
  std::vector<std::array<std::string, 3>> subjects;  ///< Kind, name, namespace.
  [[nodiscard]] std::pair<std::string, std::string> role() const { return {role_kind == "Role" ? ns : "", role_name}; }
  /// As a subject is shown, or nothing where it is none of the user's names.
  static std::string shown(const std::array<std::string, 3>& subject, const std::string& own_ns, const UserInfo& user) {
    const auto& [kind, name, given] = subject;
    if (kind == "Group") return user.in_group(name) ? fmt::format("Group \"{}\"", name) : "";
    if (kind == "User") return user.name == name ? fmt::format("User \"{}\"", name) : "";
    const std::string ns = given.empty() ? own_ns : given;
    if (kind != "ServiceAccount" || user.name != fmt::format("system:serviceaccount:{}:{}", ns, name)) return "";
    return fmt::format("ServiceAccount \"{}/{}\"", name, ns);
  }
};

/// What a user holds by one of his names: role, binding, subject.
struct Hold {
  std::pair<std::string, std::string> role;
  std::string why, holder;
};

struct Documents {
  std::map<std::pair<std::string, std::string>, std::vector<PolicyRule>> roles;  ///< By namespace ("": a ClusterRole) and name.
  std::map<std::string, Binding> bindings;                                       ///< By key.

  [[nodiscard]] std::vector<Hold> holds(const UserInfo& user, const std::string& ns) const {
    std::vector<Hold> out;
    for (const auto& [key, binding] : bindings) {
      if (!binding.cluster && (ns.empty() || binding.ns != ns)) continue;
      const std::string itself = binding.cluster ? fmt::format("ClusterRoleBinding \"{}\"", binding.name)
                                                 : fmt::format("RoleBinding \"{}/{}\"", binding.name, binding.ns);
      for (const auto& subject : binding.subjects) {
        const std::string shown = Binding::shown(subject, binding.ns, user);
        if (shown.empty()) continue;
        out.push_back({binding.role(),
                       fmt::format("RBAC: allowed by {} of {} \"{}\" to {}", itself, binding.role_kind, binding.role_name, shown),
                       shown + (binding.cluster ? "" : " in " + binding.ns)});
      }
    }
    return out;
  }
  /// Each role once for each name that he holds it by.
  [[nodiscard]] std::vector<PolicyRule> held(const UserInfo& user, const std::string& ns) const {
    std::set<std::pair<std::string, std::pair<std::string, std::string>>> seen;
    std::vector<PolicyRule> out;
    for (const Hold& hold : holds(user, ns))
      if (const auto role = roles.find(hold.role); role != roles.end() && seen.emplace(hold.holder, hold.role).second)
        out.insert(out.end(), role->second.begin(), role->second.end());
    return out;
  }
  /// Roles, subjects by kind and namespace, and bindings that somebody has to remember.
  [[nodiscard]] std::size_t size() const {
    std::set<std::pair<std::string, std::string>> named;
    std::set<std::string> holders;
    std::size_t count = 0;
    for (const auto& [key, role] : roles) named.insert(key);
    for (const auto& [key, binding] : bindings) {
      bool is_held = false;
      for (const auto& [kind, name, ns] : binding.subjects) {
        if (kind == "Other") continue;
        is_held = true;
        holders.insert(fmt::format("{} {} of {} in {}", kind, name,
                                   kind != "ServiceAccount" ? ""
                                   : ns.empty()             ? binding.ns
                                                            : ns,
                                   binding.cluster ? "" : binding.ns));
      }
      if (!is_held) continue;
      ++count;
      named.insert(binding.role());
    }
    return named.size() + holders.size() + count;
  }
};

json::Value strings_of(const Texts& list) { return json::Array(list.begin(), list.end()); }

json::Value rules_json(const std::vector<PolicyRule>& rules) {
  json::Array out;
  for (const PolicyRule& rule : rules)
    out.push_back(json::Object{{"verbs", strings_of(rule.verbs)},
                               {"apiGroups", strings_of(rule.groups)},
                               {"resources", strings_of(rule.resources)},
                               {"resourceNames", strings_of(rule.names)},
                               {"nonResourceURLs", strings_of(rule.urls)}});
  return out;
}

class GrantLives : public AccessLives {
 protected:
  void SetUp() override {
    AccessLives::SetUp();
    authorizer_ = RbacAuthorizer::create(*cache_);
    for (const auto& [plural, is_cluster] : {std::pair("clusterroles", true), {"roles", false}})
      watches_.push_back(follow(*cache_, make_prefix(kRbac, plural), [this, is_cluster](const WatchEvent& event) {
        grants_.put_role(*event.object, is_cluster, event.type == WatchEventType::kDeleted);
      }));
    for (const auto& [plural, is_cluster] : {std::pair("clusterrolebindings", true), {"rolebindings", false}})
      watches_.push_back(follow(*cache_, make_prefix(kRbac, plural), [this, is_cluster](const WatchEvent& event) {
        grants_.put_binding(*event.object, is_cluster, event.type == WatchEventType::kDeleted);
      }));
  }

  void write_role() {
    const std::string ns = life_.one({"", "a", "b"}), name = life_.one({"r1", "r2", "r3"});
    const char* plural = ns.empty() ? "clusterroles" : "roles";
    if (life_.dice.chance(40)) {
      EXPECT_EQ(erase(kRbac, plural, ns, name), docs_.roles.erase({ns, name}) != 0);
      return;
    }
    auto rules = life_.dice.chance(10) ? std::vector<PolicyRule>() : random_rules(life_);
    write(kRbac, plural, json::Object{{"metadata", json::Object{{"name", name}, {"namespace", ns}}}, {"rules", rules_json(rules)}});
    docs_.roles[{ns, name}] = std::move(rules);
  }
  Binding random_binding() {
    Binding out;
    out.cluster = life_.dice.chance(40);
    out.ns = out.cluster ? "" : life_.one({"a", "b"});
    out.name = life_.one({"b1", "b2", "b3"});
    out.role_kind = out.cluster || life_.dice.chance(50) ? "ClusterRole" : "Role";
    out.role_name = life_.one({"r1", "r2", "r3", "nowhere"});
    for (int i = life_.dice.below(4); i > 0; --i)
      out.subjects.push_back({life_.one({"User", "Group", "ServiceAccount", "Other"}),
                              life_.one({"jane", "bob", "dev", "sa", "system:serviceaccount:a:sa"}),
                              life_.one({out.cluster ? "a" : "", "a", "b"})});
    return out;
  }
  static json::Value json_of(const Binding& binding) {
    json::Array subjects;
    for (const auto& [kind, name, ns] : binding.subjects)
      subjects.push_back(json::Object{{"kind", kind}, {"name", name}, {"namespace", ns}});
    return json::Object{{"metadata", json::Object{{"name", binding.name}, {"namespace", binding.ns}}},
                        {"roleRef", json::Object{{"kind", binding.role_kind}, {"name", binding.role_name}}},
                        {"subjects", std::move(subjects)}};
  }
  void write_binding() {
    Binding binding = random_binding();
    const char* plural = binding.cluster ? "clusterrolebindings" : "rolebindings";
    const std::string key = make_key(kRbac, plural, binding.ns, binding.name);
    if (life_.dice.chance(40)) {
      EXPECT_EQ(erase(kRbac, plural, binding.ns, binding.name), docs_.bindings.erase(key) != 0);
      return;
    }
    write(kRbac, plural, json_of(binding));
    docs_.bindings[key] = std::move(binding);
  }

  UserInfo some_user() {
    UserInfo out{life_.dice.of(kUsers), "", life_.some({"dev", "jane", "ops"}), {}};
    if (life_.dice.chance(3)) out.groups.emplace_back("system:masters");
    return out;
  }
  void ask() {
    const UserInfo user = some_user();
    Attributes asked;
    asked.verb = life_.one({"get", "list", "create", "delete"});
    asked.is_resource = life_.dice.chance(80);
    if (asked.is_resource) {
      asked.group = life_.one({"", "apps", "batch"});
      asked.resource = life_.one({"pods", "deployments", "jobs"});
      asked.subresource = life_.one({"", "", "log", "scale"});
      asked.name = life_.one({"", "x", "z"});
      asked.ns = life_.one({"a", "b", ""});
    } else {
      asked.path = life_.one({"/healthz", "/logs", "/logs/x", "/api/v1", "/metrics"});
      asked.ns = life_.one({"a", ""});  // Means nothing there.
    }
    const auto answer = authorizer_->authorize(user, asked);
    const auto at_once = authorizer_->decide_at_once(user, asked);
    ASSERT_TRUE(at_once);
    EXPECT_EQ(std::pair(at_once->allowed, at_once->reason), std::pair(answer.allowed, answer.reason));
    if (user.in_group("system:masters")) {
      EXPECT_TRUE(answer.allowed && answer.reason.empty());
      return;
    }
    std::set<std::string> reasons;
    std::multiset<std::string> missing;
    std::set<std::pair<std::string, std::pair<std::string, std::string>>> seen;
    for (const Hold& hold : docs_.holds(user, asked.is_resource ? asked.ns : "")) {
      const auto role = docs_.roles.find(hold.role);
      const bool is_new = seen.emplace(hold.holder, hold.role).second;
      if (role == docs_.roles.end() && is_new)
        missing.insert(fmt::format("{}.rbac.authorization.k8s.io \"{}\" not found", hold.role.first.empty() ? "clusterrole" : "role",
                                   hold.role.second));
      if (role != docs_.roles.end() && std::ranges::any_of(role->second, [&](const PolicyRule& rule) { return rule.allows(asked); }))
        reasons.insert(hold.why);
    }
    EXPECT_EQ(answer.allowed, !reasons.empty()) << answer.reason;
    if (answer.allowed) {
      EXPECT_TRUE(reasons.contains(answer.reason)) << answer.reason << "\n" << fmt::format("{}", fmt::join(reasons, "\n"));
    } else {
      expect_missing(answer.reason, missing);
    }
  }
  static void expect_missing(const std::string& reason, const std::multiset<std::string>& missing) {
    std::size_t length = missing.empty() ? 0 : std::string_view("RBAC: ").size() + 2 * (missing.size() - 1);
    if (missing.size() > 1) length += 2;  // Brackets.
    for (const std::string& one : missing) {
      length += one.size();
      EXPECT_NE(reason.find(one), std::string::npos) << reason << " lacks " << one;
    }
    EXPECT_EQ(reason.size(), length) << reason;
    EXPECT_EQ(reason.starts_with("RBAC: ["), missing.size() > 1) << reason;
  }
  void ask_for_rules() {
    const UserInfo user = some_user();
    const std::string ns = life_.one({"a", "b", ""});
    std::multiset<std::string> shown, wanted;
    const UserRules rules = authorizer_->rules_for(user, ns);
    EXPECT_FALSE(rules.incomplete);
    for (const auto& one : rules.resource)
      shown.insert(PolicyRule{one.verbs, one.groups, one.resources, one.resource_names, {}}.to_string());
    for (const auto& one : rules.non_resource) shown.insert(PolicyRule{one.verbs, {}, {}, {}, one.urls}.to_string());
    for (const PolicyRule& rule : docs_.held(user, ns)) {
      if (!rule.resources.empty()) wanted.insert(PolicyRule{rule.verbs, rule.groups, rule.resources, rule.names, {}}.to_string());
      if (!rule.urls.empty()) wanted.insert(PolicyRule{rule.verbs, {}, {}, {}, rule.urls}.to_string());
    }
    EXPECT_EQ(shown, wanted);
  }
  void try_to_grant() {
    const UserInfo user = some_user();
    if (life_.dice.chance(50)) return try_to_bind(user);
    const std::string ns = life_.one({"a", "b", ""});
    const auto held = docs_.held(user, ns);
    std::vector<PolicyRule> wanted = random_rules(life_);
    if (!held.empty() && life_.dice.chance(70)) wanted = {life_.dice.of(held), life_.dice.of(held)};
    json::Value role = json::Object{{"metadata", json::Object{{"name", "r"}, {"namespace", ns}}}, {"rules", rules_json(wanted)}};
    json::Value before = role;
    const bool gathers = ns.empty() && life_.dice.chance(20), gathered = ns.empty() && life_.dice.chance(20);
    const json::Value selectors = json::Array{json::Object{{"matchLabels", json::Object{{"a", "b"}}}}};
    if (gathers) json::set(role, {"aggregationRule", "clusterRoleSelectors"}, selectors);
    if (gathered) json::set(before, {"aggregationRule", "clusterRoleSelectors"}, selectors);
    const bool is_new = life_.dice.chance(50);
    if (life_.dice.chance(50)) json::set(before, {"rules"}, json::Array{});
    json::set(before, {"metadata", "resourceVersion"}, json::Value("7"));
    const std::vector<PolicyRule> everything{{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}};
    bool may = covers_all(held, wanted) && ((!gathers && (is_new || !gathered)) || covers_all(held, everything));
    const bool is_same = !is_new && gathers == gathered && json::equal(*json::find(role, "rules"), *json::find(before, "rules"));
    may = may || is_same || user.in_group("system:masters");
    EXPECT_EQ(!authorizer_->check_escalation(user, ns.empty() ? "ClusterRole" : "Role", role, is_new ? nullptr : &before), may)
        << json::serialize(role) << " over " << (is_new ? "nothing" : json::serialize(before));
  }
  void try_to_bind(const UserInfo& user) {
    const Binding binding = random_binding();
    const auto role = docs_.roles.find(binding.role());
    const auto refused =
        authorizer_->check_escalation(user, binding.cluster ? "ClusterRoleBinding" : "RoleBinding", json_of(binding), nullptr);
    if (user.in_group("system:masters")) {
      EXPECT_FALSE(refused);
    } else if (role == docs_.roles.end()) {
      EXPECT_EQ(refused, fmt::format("{}.rbac.authorization.k8s.io \"{}\" not found",
                                     binding.role_kind == "Role" ? "roles" : "clusterroles", binding.role_name));
    } else {
      EXPECT_EQ(!refused, covers_all(docs_.held(user, binding.ns), role->second)) << refused.value_or("granted");
    }
  }

  Life life_{"", 0};
  Documents docs_;
  std::shared_ptr<RbacAuthorizer> authorizer_;
  RbacGrants grants_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

TEST_F(GrantLives, AgreeWithAWalkOverTheDocuments) {
  for (std::uint64_t seed = 1; seed <= 8 && !HasFailure(); ++seed) {
    life_.dice = testing::Dice(seed);
    for (int i = 0; i < 600 && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      switch (life_.dice.below(10)) {
        case 0:
        case 1:
          write_role();
          break;
        case 2:
        case 3:
          write_binding();
          break;
        case 4:
          ask_for_rules();
          break;
        case 5:
          try_to_grant();
          break;
        default:
          ask();
      }
      EXPECT_EQ(grants_.size(), docs_.size());
    }
  }
}

/// Whoever begins later sees the same.
TEST_F(GrantLives, AnAuthorizerThatBeginsNowAnswersAsOneThatLived) {
  life_.dice = testing::Dice(99);
  for (int i = 0; i < 300; ++i) life_.dice.chance(50) ? write_role() : write_binding();
  const auto fresh = RbacAuthorizer::create(*cache_);
  for (int i = 0; i < 500; ++i) {
    const UserInfo user = some_user();
    Attributes asked;
    asked.verb = life_.one({"get", "list", "create", "delete"});
    asked.resource = life_.one({"pods", "deployments", "jobs"});
    asked.group = life_.one({"", "apps", "batch"});
    asked.ns = life_.one({"a", "b", ""});
    ASSERT_EQ(fresh->authorize(user, asked).allowed, authorizer_->authorize(user, asked).allowed) << user.name;
  }
}

}  // namespace
}  // namespace berth::apiserver::auth
