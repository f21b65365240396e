// Role-based access control, the default roles, escalation, nodes (SPEC A6).
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>

#include "apiserver/auth/default_roles.h"
#include "apiserver/auth/rbac_grants.h"
#include "apiserver/auth/reviews.h"
#include "apiserver/auth/rule_coverage.h"
#include "tests/apiserver/auth_fixture.h"

namespace berth::apiserver::auth {
namespace {

class RbacTest : public AuthFixture {};

TEST_F(RbacTest, MastersMayEverythingOthersNothingButDiscovery) {
  auto admin = user("kubernetes-admin", {"system:masters"});
  EXPECT_TRUE(may(admin, "delete nodes n1"));
  EXPECT_TRUE(may(admin, "get /metrics"));
  auto jane = user("jane");
  EXPECT_FALSE(may(jane, "list pods", "default"));
  EXPECT_FALSE(may(jane, "get /metrics"));
  EXPECT_TRUE(may(jane, "get /apis/apps/v1"));
  EXPECT_TRUE(may(jane, "create authorization.k8s.io:selfsubjectaccessreviews"));
  UserInfo anonymous{"system:anonymous", "", {"system:unauthenticated"}, {}};
  EXPECT_TRUE(may(anonymous, "get /healthz"));
  EXPECT_TRUE(may(anonymous, "get /version"));
  EXPECT_FALSE(may(anonymous, "get /api"));
  EXPECT_FALSE(may(anonymous, "list pods", "default"));
  UserInfo monitoring{"prometheus", "", {"system:monitoring"}, {}};
  EXPECT_TRUE(may(monitoring, "get /metrics"));
}

TEST_F(RbacTest, RoleBindingGrantsInItsNamespaceOnly) {
  write_rbac(R"(
kind: Role
metadata: {namespace: dev, name: reader}
rules:
- {apiGroups: [""], resources: [pods, pods/log], verbs: [get, list]}
---
kind: RoleBinding
metadata: {namespace: dev, name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: User, name: jane}
- {kind: ServiceAccount, name: bot, namespace: ci}
- {kind: Group, name: team}
)");
  for (const auto& who : {user("jane"), user("joe", {"team"}), user("system:serviceaccount:ci:bot")}) {
    EXPECT_TRUE(may(who, "list pods", "dev")) << who.name;
    EXPECT_TRUE(may(who, "get pods/log web", "dev"));
    EXPECT_FALSE(may(who, "get pods/exec web", "dev"));
    EXPECT_FALSE(may(who, "delete pods", "dev"));
    EXPECT_FALSE(may(who, "list pods", "prod"));
    EXPECT_FALSE(may(who, "list pods"));
    EXPECT_FALSE(may(who, "list apps:pods", "dev"));
  }
  EXPECT_FALSE(may(user("joe"), "list pods", "dev"));
  EXPECT_FALSE(may(user("team"), "list pods", "dev"));
  auto decision = parts_.authorizer->authorize(user("jane"), ask("list pods", "dev"));
  EXPECT_EQ(decision.reason, "RBAC: allowed by RoleBinding \"readers/dev\" of Role \"reader\" to User \"jane\"");
}

TEST_F(RbacTest, ChangesAreInForceAtOnce) {
  auto jane = user("jane");
  write_rbac(
      "{kind: ClusterRoleBinding, metadata: {name: x}, roleRef: {kind: ClusterRole, name: later}, subjects: [{kind: User, name: jane}]}");
  auto decision = parts_.authorizer->authorize(jane, ask("list nodes"));
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, "RBAC: clusterrole.rbac.authorization.k8s.io \"later\" not found");
  write_rbac("{kind: ClusterRole, metadata: {name: later}, rules: [{apiGroups: [''], resources: [nodes], verbs: [list]}]}");
  EXPECT_TRUE(may(jane, "list nodes"));
  write_rbac("{kind: ClusterRole, metadata: {name: later}, rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]}");
  EXPECT_FALSE(may(jane, "list nodes"));
  EXPECT_TRUE(may(jane, "get nodes n1"));
  write_rbac(
      "{kind: ClusterRoleBinding, metadata: {name: x}, roleRef: {kind: ClusterRole, name: later}, subjects: [{kind: User, name: joe}]}");
  EXPECT_FALSE(may(jane, "get nodes n1"));
  EXPECT_TRUE(may(user("joe"), "get nodes n1"));
  Proposal gone;
  gone.key = make_key("rbac.authorization.k8s.io", "clusterrolebindings", "", "x");
  gone.is_delete = true;
  ASSERT_TRUE(propose_and_wait(*cache_, std::move(gone)).has_value());
  EXPECT_FALSE(may(user("joe"), "get nodes n1"));
}

TEST_F(RbacTest, NamesWildcardsAndSubresources) {
  write_rbac(R"(
kind: ClusterRole
metadata: {name: special}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [a, b], verbs: [get, update]}
- {apiGroups: ["*"], resources: ["*/scale"], verbs: ["*"]}
- {apiGroups: [batch], resources: ["*"], verbs: [watch]}
- {nonResourceURLs: [/logs/*, /exact], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: special}
roleRef: {kind: ClusterRole, name: special}
subjects: [{kind: User, name: jane}]
)");
  auto jane = user("jane");
  EXPECT_TRUE(may(jane, "get configmaps a", "x"));
  EXPECT_FALSE(may(jane, "get configmaps c", "x"));
  EXPECT_FALSE(may(jane, "get configmaps", "x"));
  EXPECT_TRUE(may(jane, "patch apps:deployments/scale web", "x"));
  EXPECT_FALSE(may(jane, "patch apps:deployments web", "x"));
  EXPECT_FALSE(may(jane, "patch apps:deployments/status web", "x"));
  EXPECT_TRUE(may(jane, "watch batch:jobs", "x"));
  EXPECT_TRUE(may(jane, "watch batch:jobs/status", "x"));
  EXPECT_TRUE(may(jane, "get /logs/kube"));
  EXPECT_TRUE(may(jane, "get /exact"));
  EXPECT_FALSE(may(jane, "get /exact/more"));
  EXPECT_FALSE(may(jane, "post /logs/kube"));
}

TEST_F(RbacTest, AggregatedRolesGatherAndFollow) {
  write_rbac(R"(
kind: RoleBinding
metadata: {namespace: dev, name: e}
roleRef: {kind: ClusterRole, name: edit}
subjects: [{kind: User, name: eve}]
---
kind: RoleBinding
metadata: {namespace: dev, name: a}
roleRef: {kind: ClusterRole, name: admin}
subjects: [{kind: User, name: ada}]
---
kind: RoleBinding
metadata: {namespace: dev, name: v}
roleRef: {kind: ClusterRole, name: view}
subjects: [{kind: User, name: vic}]
)");
  EXPECT_TRUE(may(user("vic"), "list apps:deployments", "dev"));
  EXPECT_FALSE(may(user("vic"), "get secrets s", "dev"));
  EXPECT_FALSE(may(user("vic"), "create pods", "dev"));
  EXPECT_TRUE(may(user("eve"), "list apps:deployments", "dev"));
  EXPECT_TRUE(may(user("eve"), "create pods", "dev"));
  EXPECT_TRUE(may(user("eve"), "get secrets s", "dev"));
  EXPECT_FALSE(may(user("eve"), "create rbac.authorization.k8s.io:roles", "dev"));
  EXPECT_TRUE(may(user("ada"), "create rbac.authorization.k8s.io:roles", "dev"));
  EXPECT_TRUE(may(user("ada"), "create pods", "dev"));
  EXPECT_FALSE(may(user("ada"), "create pods", "prod"));
  write_rbac(R"(
kind: ClusterRole
metadata: {name: tabs, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [stable.example.com], resources: [crontabs], verbs: [get]}]
)");
  for (const char* name : {"vic", "eve", "ada"}) EXPECT_TRUE(may(user(name), "get stable.example.com:crontabs x", "dev")) << name;
  auto admin = json::parse(cache_->get(make_key("rbac.authorization.k8s.io", "clusterroles", "", "admin"))->text().here());
  EXPECT_GT(json::get_array(*admin, {"rules"}).size(), 20U);
}

TEST_F(RbacTest, DefaultRolesServeTheirComponents) {
  auto scheduler = user("system:kube-scheduler");
  for (const char* allowed :
       {"create pods/binding p", "watch storage.k8s.io:storageclasses", "list persistentvolumeclaims", "patch pods/status p",
        "list namespaces", "create events.k8s.io:events", "update coordination.k8s.io:leases kube-scheduler"}) {
    EXPECT_TRUE(may(scheduler, allowed, std::string(allowed).find("storageclasses") == std::string::npos ? "kube-system" : "")) << allowed;
  }
  EXPECT_TRUE(may(scheduler, "get configmaps extension-apiserver-authentication", "kube-system"));
  EXPECT_FALSE(may(scheduler, "create pods", "default"));
  EXPECT_TRUE(may(user("system:kube-controller-manager"), "list apps:deployments"));
  EXPECT_TRUE(may(user("system:kube-controller-manager"), "create apps:replicasets", "default"))
      << "its kubeconfig runs `berth controllers`";
  EXPECT_TRUE(may(user("system:serviceaccount:kube-system:replicaset-controller"), "create pods", "default"));
  EXPECT_FALSE(may(user("system:serviceaccount:default:replicaset-controller"), "create pods", "default"));
  auto towards_nodes = user("kube-apiserver-kubelet-client");
  towards_nodes.groups.emplace_back("berth:kubelet-clients");
  for (const char* allowed : {"get nodes/proxy n", "create nodes/proxy n", "get nodes/stats n", "get nodes/log n", "get nodes/metrics n"})
    EXPECT_TRUE(may(towards_nodes, allowed)) << allowed;
  for (const char* refused : {"list secrets", "get pods p", "create pods/exec p", "update nodes n", "create tokenreviews"})
    EXPECT_FALSE(may(towards_nodes, refused, "kube-system")) << refused;
  for (const auto& object : default_rbac_objects()) {
    EXPECT_NE(cache_->get(proposal_of_rbac(object).key), nullptr) << json::serialize(object);
  }
}

TEST_F(RbacTest, ReconciliationAddsWhatIsMissingAndRespectsOptingOut) {
  write_rbac("{kind: ClusterRole, metadata: {name: 'system:kube-dns'}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}");
  write_rbac(R"(
kind: ClusterRoleBinding
metadata: {name: 'system:discovery', annotations: {rbac.authorization.kubernetes.io/autoupdate: "false"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'system:discovery'}
)");
  ASSERT_TRUE(reconcile_default_roles(*cache_, clock_, {}).has_value());
  auto dns = json::parse(cache_->get(make_key("rbac.authorization.k8s.io", "clusterroles", "", "system:kube-dns"))->text().here());
  EXPECT_EQ(json::get_array(*dns, {"rules"}).size(), 2U);
  EXPECT_FALSE(may(user("jane"), "get /apis"));
  auto before = cache_->revision();
  ASSERT_TRUE(reconcile_default_roles(*cache_, clock_, {}).has_value());
  EXPECT_EQ(cache_->revision(), before) << "nothing to do must write nothing";
}

TEST_F(RbacTest, NobodyGrantsMoreThanTheyHave) {
  write_rbac(R"(
kind: RoleBinding
metadata: {namespace: dev, name: a}
roleRef: {kind: ClusterRole, name: admin}
subjects: [{kind: User, name: ada}]
)");
  auto& authorizer = *parts_.authorizer;
  auto role = doc("{metadata: {namespace: dev, name: r}, rules: [{apiGroups: [''], resources: [pods, nodes], verbs: [get, list]}]}");
  auto refused = authorizer.check_escalation(user("ada"), "Role", role, nullptr);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(*refused,
            "user \"ada\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n"
            "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}");
  EXPECT_EQ(authorizer.check_escalation(user("ada"), "Role", role, &role), std::nullopt) << "an update that changes nothing grants nothing";
  EXPECT_EQ(authorizer.check_escalation(user("root", {"system:masters"}), "Role", role, nullptr), std::nullopt);
  auto fine = doc("{metadata: {namespace: dev, name: r}, rules: [{apiGroups: [''], resources: [pods], resourceNames: [x], verbs: [get]}]}");
  EXPECT_EQ(authorizer.check_escalation(user("ada"), "Role", fine, nullptr), std::nullopt);
  json::set(fine, {"metadata", "namespace"}, json::Value("prod"));
  EXPECT_TRUE(authorizer.check_escalation(user("ada"), "Role", fine, nullptr).has_value());

  auto binding = doc("{metadata: {namespace: dev, name: b}, roleRef: {kind: ClusterRole, name: view}, subjects: [{kind: User, name: x}]}");
  EXPECT_EQ(authorizer.check_escalation(user("ada"), "RoleBinding", binding, nullptr), std::nullopt) << "ada holds all of view";
  json::set(binding, {"roleRef", "name"}, json::Value("cluster-admin"));
  EXPECT_TRUE(authorizer.check_escalation(user("ada"), "RoleBinding", binding, nullptr).has_value());
  auto gatherer = doc("{metadata: {name: g}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}");
  EXPECT_EQ(authorizer.check_escalation(user("ada"), "ClusterRole", gatherer, nullptr),
            "must have cluster-admin privileges to use the aggregationRule");
}

TEST_F(RbacTest, NodesSeeWhatTheirPodsNeed) {
  write_core("pods", doc(R"(
metadata: {namespace: dev, name: p1, uid: u1}
spec:
  nodeName: n1
  serviceAccountName: bot
  imagePullSecrets: [{name: pull}]
  containers: [{env: [{valueFrom: {secretKeyRef: {name: env-secret}}}], envFrom: [{configMapRef: {name: cm}}]}]
  volumes: [{name: v, secret: {secretName: vol-secret}}, {name: d, persistentVolumeClaim: {claimName: data}}, {name: p, projected: {sources: [{configMap: {name: proj}}]}}]
)"));
  auto n1 = user("system:node:n1", {"system:nodes"}), n2 = user("system:node:n2", {"system:nodes"});
  for (const char* name : {"pull", "env-secret", "vol-secret"}) {
    EXPECT_TRUE(may(n1, std::string("get secrets ") + name, "dev")) << name;
    EXPECT_FALSE(may(n2, std::string("get secrets ") + name, "dev")) << name;
    EXPECT_FALSE(may(n1, std::string("get secrets ") + name, "prod")) << name;
  }
  EXPECT_FALSE(may(n1, "get secrets other", "dev"));
  EXPECT_FALSE(may(n1, "list secrets", "dev"));
  EXPECT_FALSE(may(n1, "update secrets pull", "dev"));
  EXPECT_TRUE(may(n1, "watch configmaps cm", "dev"));
  EXPECT_TRUE(may(n1, "get configmaps proj", "dev"));
  EXPECT_TRUE(may(n1, "get persistentvolumeclaims data", "dev"));
  EXPECT_TRUE(may(n1, "create serviceaccounts/token bot", "dev"));
  EXPECT_FALSE(may(n2, "create serviceaccounts/token bot", "dev"));
  EXPECT_TRUE(may(n1, "get nodes n1"));
  EXPECT_FALSE(may(n1, "get nodes n2"));
  EXPECT_TRUE(may(n1, "patch nodes/status n1"));
  EXPECT_TRUE(may(n1, "update coordination.k8s.io:leases n1", "kube-node-lease"));
  EXPECT_FALSE(may(n1, "update coordination.k8s.io:leases n2", "kube-node-lease"));
  EXPECT_FALSE(may(n1, "update coordination.k8s.io:leases n1", "kube-system"));
  EXPECT_TRUE(may(n1, "get pods p1", "dev"));
  EXPECT_FALSE(may(n2, "get pods p1", "dev"));
  auto list = ask("list pods");
  EXPECT_FALSE(parts_.authorizer->authorize(n1, list).allowed);
  list.field_selector = "spec.nodeName=n1";
  EXPECT_TRUE(parts_.authorizer->authorize(n1, list).allowed);
  EXPECT_FALSE(parts_.authorizer->authorize(n2, list).allowed);
  EXPECT_TRUE(may(n1, "list services"));
  EXPECT_FALSE(may(n1, "delete nodes n1"));
  EXPECT_FALSE(may(user("system:node:n1"), "get nodes n1")) << "the name alone is not enough";
}

TEST_F(RbacTest, NodesServeNamesAndSeePodsOfOthersOnlyWhereBound) {
  const auto n1 = user("system:node:n1", {"system:nodes"});
  for (const char* what : {"services", "namespaces", "discovery.k8s.io:endpointslices"})
    for (const char* verb : {"list", "watch"}) EXPECT_TRUE(may(n1, std::string(verb) + " " + what)) << verb << " " << what;
  for (const char* what : {"secrets", "pods", "networking.k8s.io:networkpolicies"})
    EXPECT_FALSE(may(n1, std::string("list ") + what)) << what;
  EXPECT_FALSE(may(n1, "update networking.k8s.io:networkpolicies x", "dev"));
  EXPECT_TRUE(may(n1, "create services", "kube-system"));
  EXPECT_FALSE(may(n1, "create services", "dev"));
  EXPECT_FALSE(may(n1, "update services kube-dns", "kube-system"));
  for (const char* verb : {"get", "create", "patch", "delete"}) {
    EXPECT_TRUE(may(n1, std::string(verb) + " discovery.k8s.io:endpointslices kube-dns-n1", "kube-system")) << verb;
    EXPECT_FALSE(may(n1, std::string(verb) + " discovery.k8s.io:endpointslices kube-dns-n2", "kube-system")) << verb;
    EXPECT_FALSE(may(n1, std::string(verb) + " discovery.k8s.io:endpointslices kube-dns-n1", "dev")) << verb;
  }
  EXPECT_FALSE(may(n1, "deletecollection discovery.k8s.io:endpointslices", "kube-system"));
}

TEST_F(RbacTest, ReviewsAnswerInKubernetesWords) {
  auto jane = user("jane");
  EXPECT_EQ(forbidden_status(jane, ask("list pods", "default")).message,
            "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"");
  EXPECT_EQ(forbidden_status(jane, ask("get apps:deployments/scale web", "x")).message,
            "deployments.apps \"web\" is forbidden: User \"jane\" cannot get resource \"deployments/scale\" in API group \"apps\" in the "
            "namespace \"x\"");
  EXPECT_EQ(forbidden_status(jane, ask("list nodes")).message,
            "nodes is forbidden: User \"jane\" cannot list resource \"nodes\" in API group \"\" at the cluster scope");
  EXPECT_EQ(forbidden_status(jane, ask("get /metrics")).message, "forbidden: User \"jane\" cannot get path \"/metrics\"");

  auto& authorizer = *parts_.authorizer;
  auto self = review_self_subject_access(
      authorizer, jane, doc("{kind: SelfSubjectAccessReview, spec: {resourceAttributes: {verb: list, resource: pods, namespace: x}}}"));
  ASSERT_TRUE(self.has_value());
  EXPECT_FALSE(json::get_bool(*self, {"status", "allowed"}, true));
  auto other = review_subject_access(
      authorizer, doc("{spec: {user: root, groups: ['system:masters'], nonResourceAttributes: {verb: get, path: /metrics}}}"));
  EXPECT_TRUE(json::get_bool(*other, {"status", "allowed"}));
  auto bad = review_subject_access(authorizer, doc("{kind: SubjectAccessReview, spec: {resourceAttributes: {verb: get}}}"));
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, 422);
  EXPECT_NE(bad.error().message.find("spec.user: Invalid value: \"\": at least one of user or group must be specified"), std::string::npos)
      << bad.error().message;
  EXPECT_FALSE(
      review_local_subject_access(authorizer, doc("{spec: {user: a, resourceAttributes: {verb: get, namespace: x}}}"), "y").has_value());
  auto rules = review_self_subject_rules(authorizer, jane, doc("{spec: {namespace: default}}"));
  EXPECT_EQ(json::get_array(*rules, {"status", "resourceRules"}).size(), 2U);
  EXPECT_FALSE(json::get_array(*rules, {"status", "nonResourceRules"}).empty());
  auto who = review_self_subject(jane, json::Object{});
  EXPECT_EQ(json::get_string(*who, {"status", "userInfo", "username"}), "jane");
}

/// Whether one role covers another, and what is missing.
Coverage cover(const std::vector<PolicyRule>& held, const std::vector<PolicyRule>& wanted, const CoverageLimits& limits = {}) {
  const RuleIndex role(held);
  const RuleIndex* roles[] = {&role};
  return coverage_of(roles, wanted, limits);
}

TEST(RbacRules, CoverageSplitsWhatIsMissing) {
  std::vector<PolicyRule> held = {{.verbs = {"get", "list"}, .groups = {""}, .resources = {"pods", "*/scale"}},
                                  {.verbs = {"*"}, .groups = {"apps"}, .resources = {"*"}},
                                  {.verbs = {"get"}, .groups = {""}, .resources = {"secrets"}, .names = {"a"}},
                                  {.verbs = {"get"}, .urls = {"/logs/*"}}};
  const auto covered = [&](PolicyRule rule) { return cover(held, {std::move(rule)}).is_whole; };
  EXPECT_TRUE(covered({.verbs = {"list"}, .groups = {"", "apps"}, .resources = {"pods"}}));
  EXPECT_TRUE(covered({.verbs = {"get"}, .groups = {""}, .resources = {"replicationcontrollers/scale"}}));
  EXPECT_FALSE(covered({.verbs = {"*"}, .groups = {""}, .resources = {"pods"}}));
  EXPECT_FALSE(covered({.verbs = {"get"}, .groups = {"*"}, .resources = {"pods"}}));
  EXPECT_FALSE(covered({.verbs = {"get"}, .groups = {""}, .resources = {"*"}}));
  EXPECT_TRUE(covered({.verbs = {"get"}, .groups = {""}, .resources = {"*/scale"}}));
  EXPECT_FALSE(covered({.verbs = {"get"}, .groups = {""}, .resources = {"*/status"}}));
  EXPECT_TRUE(covered({.verbs = {"get"}, .groups = {""}, .resources = {"secrets"}, .names = {"a"}}));
  EXPECT_FALSE(covered({.verbs = {"get"}, .groups = {""}, .resources = {"secrets"}, .names = {"a", "b"}}));
  EXPECT_FALSE(covered({.verbs = {"get"}, .groups = {""}, .resources = {"secrets"}}));
  EXPECT_TRUE(covered({.verbs = {"get"}, .urls = {"/logs/x", "/logs/*"}}));
  EXPECT_FALSE(covered({.verbs = {"get"}, .urls = {"*"}}));
  const auto missing = cover(held, {{.verbs = {"get", "delete", "watch"}, .groups = {""}, .resources = {"secrets", "pods"}},
                                    {.verbs = {"get", "put"}, .urls = {"/x"}}});
  EXPECT_EQ(missing.missing,
            (std::vector<std::string>{"{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}",
                                      "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"delete\" \"watch\"]}",
                                      "{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}", "{NonResourceURLs:[\"/x\"], Verbs:[\"put\"]}"}));
  EXPECT_FALSE(missing.has_more);
}

/// Of single permissions, by trying each held rule: what Kubernetes does, and what the boxes must come to.
bool plainly_covered(const std::vector<PolicyRule>& held, const PolicyRule& wanted) {
  const auto covers_list = [](const std::vector<std::string>& list, const std::string& value) {
    return std::ranges::any_of(list, [&](const auto& one) { return one == "*" || one == value; });
  };
  const auto covers_resource = [&](const PolicyRule& rule, const std::string& value) {
    const auto slash = value.find('/');
    return covers_list(rule.resources, value) ||
           (slash != std::string::npos && std::ranges::find(rule.resources, "*" + value.substr(slash)) != rule.resources.end());
  };
  for (const auto& verb : wanted.verbs)
    for (const auto& group : wanted.groups)
      for (const auto& resource : wanted.resources)
        for (std::size_t n = 0; n < std::max<std::size_t>(1, wanted.names.size()); ++n)
          if (std::ranges::none_of(held, [&](const PolicyRule& rule) {
                const bool named =
                    rule.names.empty() || (!wanted.names.empty() && std::ranges::find(rule.names, wanted.names[n]) != rule.names.end());
                return named && covers_list(rule.verbs, verb) && covers_list(rule.groups, group) && covers_resource(rule, resource);
              }))
            return false;
  return true;
}

class RandomRules {
 public:
  explicit RandomRules(unsigned seed) : random_(seed) {}
  PolicyRule rule(bool small) {
    PolicyRule out;
    out.verbs = some({"get", "list", "watch", "create", "*"}, small);
    out.groups = some({"", "apps", "batch", "*"}, small);
    out.resources = some({"pods", "pods/log", "pods/status", "jobs", "jobs/status", "*/status", "*"}, small);
    if (random_() % 2 == 0) out.names = some({"a", "b", "c"}, small);
    return out;
  }
  std::vector<PolicyRule> rules(std::size_t count) {
    std::vector<PolicyRule> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(rule(false));
    return out;
  }
  template <typename T>
  const T& one_of(const std::vector<T>& list) {
    return list[random_() % list.size()];
  }

 private:
  std::vector<std::string> some(const std::vector<std::string>& from, bool small) {
    std::vector<std::string> out;
    // Stars are rare: they hide the rest.
    for (std::size_t i = 0; i <= random_() % (small ? 3 : 4); ++i)
      if (const auto& value = one_of(from); value != "*" || random_() % 8 == 0) out.push_back(value);
    if (out.empty()) out.push_back(from.front());
    return out;
  }
  std::mt19937 random_;
};

TEST(RbacRules, BoxesCoverWhatSinglePermissionsDo) {
  RandomRules random(7);
  int covered = 0;
  for (int i = 0; i < 3000; ++i) {
    // Few rules are walked, many are found by their index.
    const auto held = random.rules(i % 2 == 0 ? 4 : 25);
    const PolicyRule wanted = random.rule(true);
    const bool is_covered = plainly_covered(held, wanted);
    covered += is_covered;
    const auto coverage = cover(held, {wanted});
    ASSERT_EQ(coverage.is_whole, is_covered) << wanted.to_string();
    ASSERT_EQ(coverage.missing.empty(), is_covered) << wanted.to_string();
  }
  EXPECT_GT(covered, 100);
  EXPECT_LT(covered, 2900);
}

TEST(RbacRules, AnIndexAllowsWhatItsRulesDo) {
  RandomRules random(11);
  const std::vector<std::string> verbs{"get", "list", "delete"}, groups{"", "apps", "x"}, resources{"pods", "jobs", "nodes"},
      subs{"", "", "log", "status"}, names{"", "a", "z"};
  int allowed = 0;
  for (int i = 0; i < 300; ++i) {
    const auto rules = random.rules(i % 2 == 0 ? 3 : 30);
    const RuleIndex index(rules);
    ASSERT_EQ(index.fields() != nullptr, i % 2 == 1);
    for (int k = 0; k < 50; ++k) {
      const Attributes asked{.verb = random.one_of(verbs),
                             .group = random.one_of(groups),
                             .resource = random.one_of(resources),
                             .subresource = random.one_of(subs),
                             .name = random.one_of(names)};
      const bool is_allowed = std::ranges::any_of(rules, [&](const PolicyRule& rule) { return rule.allows(asked); });
      allowed += is_allowed;
      ASSERT_EQ(index.allows(asked), is_allowed) << asked.verb << " " << asked.resource << "/" << asked.subresource;
    }
  }
  EXPECT_GT(allowed, 1000);
}

std::vector<std::string> numbered(const std::string& text, int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(text + std::to_string(i));
  return out;
}

TEST(RbacRules, ProductsAreNotTakenApart) {
  // 10^8 permissions each.
  const PolicyRule many{
      .verbs = numbered("v", 100), .groups = numbered("g", 100), .resources = numbered("r", 100), .names = numbered("n", 100)};
  const std::vector<PolicyRule> everything{{.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}}};
  EXPECT_TRUE(cover(everything, {many}).is_whole);
  EXPECT_TRUE(cover({many}, {many}).is_whole);
  const auto none = cover({}, {many});
  EXPECT_FALSE(none.is_whole);
  EXPECT_TRUE(none.has_more);
  EXPECT_GT(none.missing.size(), 10U);
  std::size_t bytes = 0;
  for (const auto& line : none.missing) bytes += line.size();
  EXPECT_LT(bytes, 64U * 1024);
  // All but one of the last names.
  PolicyRule most = many;
  most.names.pop_back();
  const auto one_name = cover({most}, {many});
  EXPECT_FALSE(one_name.is_whole);
  ASSERT_FALSE(one_name.missing.empty());
  EXPECT_NE(one_name.missing.front().find("\"n99\""), std::string::npos) << one_name.missing.front();
}

/// Four times the rules may take six times the steps, and lists four times as long, too.
TEST(RbacRules, StepsGrowWithTheRulesNotWithTheirProducts) {
  const auto growth = [](const std::function<std::pair<std::vector<PolicyRule>, std::vector<PolicyRule>>(int)>& make) {
    const auto steps = [&](int size) {
      const auto [held, wanted] = make(size);
      const auto coverage = cover(held, wanted);
      EXPECT_FALSE(coverage.is_too_entangled);
      return static_cast<double>(std::max<std::size_t>(coverage.steps, 1));
    };
    return steps(400) / steps(100);
  };
  const auto wide = [](int n, const std::string& tail = "") {
    return PolicyRule{
        .verbs = numbered("v" + tail, n), .groups = numbered("g", n), .resources = numbered("r", n), .names = numbered("n", n)};
  };
  const auto each = [](int n) {
    std::vector<PolicyRule> out;
    for (int i = 0; i < n; ++i)
      out.push_back({.verbs = {"get"}, .groups = {""}, .resources = {"pods"}, .names = {"n" + std::to_string(i)}});
    return out;
  };
  EXPECT_LT(growth([&](int n) { return std::pair(std::vector{wide(n)}, std::vector{wide(n)}); }), 6);
  EXPECT_LT(growth([&](int n) { return std::pair(std::vector{wide(n, "x")}, std::vector{wide(n)}); }), 6) << "nothing of it held";
  EXPECT_LT(growth([&](int n) { return std::pair(each(n), each(n)); }), 6) << "rule by rule";
  EXPECT_LT(growth([&](int n) {
              PolicyRule all{.verbs = {"get"}, .groups = {""}, .resources = {"pods"}, .names = numbered("n", n)};
              return std::pair(each(n), std::vector{all});
            }),
            12)
      << "one rule in pieces: words of bits, not names";
}

TEST(RbacRules, WhatIsTooEntangledIsRefused) {
  RandomRules random(3);
  const auto held = random.rules(200);
  PolicyRule wanted{.verbs = numbered("v", 60), .groups = numbered("g", 60), .resources = numbered("r", 60), .names = numbered("n", 60)};
  std::vector<PolicyRule> diagonal;
  for (int i = 0; i < 60; ++i) {
    // Each leaves another corner open.
    PolicyRule rule = wanted;
    rule.verbs.erase(rule.verbs.begin() + i);
    rule.groups.erase(rule.groups.begin() + i);
    rule.resources.erase(rule.resources.begin() + i);
    rule.names.erase(rule.names.begin() + i);
    diagonal.push_back(std::move(rule));
  }
  const auto coverage = cover(diagonal, {wanted}, {.steps = 3000});
  EXPECT_FALSE(coverage.is_whole);
  EXPECT_TRUE(coverage.is_too_entangled || !coverage.missing.empty());
}

TEST_F(RbacTest, AUserWithVeryManyRulesIsNotDecidedAboutAtOnce) {
  json::Array rules;
  for (int i = 0; i < 5000; ++i)
    rules.push_back(json::Object{{"apiGroups", json::Array{""}},
                                 {"resources", json::Array{"pods"}},
                                 {"verbs", json::Array{"get"}},
                                 {"resourceNames", json::Array{"n" + std::to_string(i)}}});
  const json::Value role =
      json::Object{{"kind", "Role"}, {"metadata", json::Object{{"namespace", "dev"}, {"name", "big"}}}, {"rules", std::move(rules)}};
  write_rbac(json::serialize(role).c_str());
  write_rbac(
      "{kind: RoleBinding, metadata: {namespace: dev, name: big}, roleRef: {kind: Role, name: big}, subjects: [{kind: User, name: max}]}");
  auto& authorizer = *parts_.authorizer;
  const auto decision = authorizer.decide_at_once(user("max"), ask("get pods n4999", "dev"));
  ASSERT_TRUE(decision) << "a name is found among five thousand";
  EXPECT_TRUE(decision->allowed);
  EXPECT_FALSE(authorizer.decide_at_once(user("max"), ask("list pods", "dev"))->allowed) << "no rule is for all names";
  // A subject in very many groups takes longer than a moment, whoever is asked for.
  std::vector<std::string> groups = numbered("team-", 3000);
  const auto crowd = user("crowd", groups);
  const auto waits = authorizer.decide_at_once(crowd, ask("get pods", "dev"));
  ASSERT_FALSE(waits);
  EXPECT_EQ(waits.error(), "the rules of crowd");
  EXPECT_FALSE(authorizer.authorize(crowd, ask("get pods", "dev")).allowed);
  EXPECT_TRUE(authorizer.decide_at_once(user("jane"), ask("get pods", "dev"))) << "others do not notice";
}

TEST_F(RbacTest, AnAnswerShowsSoManyRulesAndSaysThatThereAreMore) {
  const std::string name(20'000, 'x');
  for (int i = 0; i < 80; ++i) {
    write_rbac(
        fmt::format("{{kind: Role, metadata: {{namespace: dev, name: r{}}}, rules: [{{apiGroups: [''], resources: [pods], verbs: [get], "
                    "resourceNames: ['{}{}']}}]}}",
                    i, name, i)
            .c_str());
    write_rbac(
        fmt::format(
            "{{kind: RoleBinding, metadata: {{namespace: dev, name: b{}}}, roleRef: {{kind: Role, name: r{}}}, subjects: [{{kind: User, "
            "name: jane}}]}}",
            i, i)
            .c_str());
  }
  const auto review = review_self_subject_rules(*parts_.authorizer, user("jane"), doc("{spec: {namespace: dev}}"));
  EXPECT_LT(json::serialize(*review).size(), std::size_t{1200} * 1024);
  EXPECT_TRUE(json::get_bool(*review, {"status", "incomplete"}));
  EXPECT_EQ(json::get_string(*review, {"status", "evaluationError"}), "there are more rules than the 1024 KiB that are shown");
}

TEST_F(RbacTest, WhoIsAddedToABindingIsGrantedItsRole) {
  write_rbac(R"(
kind: RoleBinding
metadata: {namespace: dev, name: a}
roleRef: {kind: ClusterRole, name: admin}
subjects: [{kind: User, name: ada}]
)");
  auto& authorizer = *parts_.authorizer;
  const auto before =
      doc("{metadata: {namespace: dev, name: b, labels: {a: b}}, roleRef: {kind: ClusterRole, name: cluster-admin}, subjects: [{kind: "
          "User, name: x}]}");
  const auto changed = [&](const std::function<void(json::Value&)>& change) {
    json::Value after = before;
    change(after);
    return authorizer.check_escalation(user("ada"), "RoleBinding", after, &before).has_value();
  };
  EXPECT_TRUE(changed([](json::Value& b) {
    json::set(b, {"subjects"}, json::Array{json::Object{{"kind", "User"}, {"name", "ada"}}});
  })) << "she would be cluster-admin in dev";
  EXPECT_TRUE(changed([](json::Value& b) {
    json::set(b, {"metadata", "labels", "a"}, json::Value("c"));
  })) << "as in Kubernetes: any change";
  EXPECT_FALSE(changed([](json::Value& b) {
    json::set(b, {"metadata", "finalizers"}, json::Array{"x/y"});
    json::set(b, {"metadata", "ownerReferences"}, json::Array{});
    json::set(b, {"metadata", "resourceVersion"}, json::Value("7"));
  })) << "what the garbage collector needs";
  const auto role = doc("{metadata: {name: g}, rules: [], aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}");
  auto narrower = role;
  json::set(narrower, {"aggregationRule"}, json::Object{});
  EXPECT_EQ(authorizer.check_escalation(user("ada"), "ClusterRole", narrower, &role),
            "must have cluster-admin privileges to use the aggregationRule")
      << "who takes it away decides as well";
}

TEST_F(RbacTest, WhatIsDeletedIsForgottenWhole) {
  RbacGrants grants;
  std::deque<std::string> keys;
  const auto stored = [&](std::string_view plural, const json::Value& document) {
    const auto ns = json::get_string(document, {"metadata", "namespace"}), name = json::get_string(document, {"metadata", "name"});
    keys.push_back(make_key("rbac.authorization.k8s.io", plural, ns, name));
    std::string text = json::serialize(document);
    const auto meta = meta_of_json({}, text);
    return std::make_shared<const StoredObject>(keys.back(), std::make_shared<const std::string>(std::move(text)), 1, 1, meta);
  };
  json::Array subjects;
  for (int i = 0; i < 20'000; ++i)
    subjects.push_back(json::Object{{"kind", "User"}, {"name", i % 2 == 0 ? std::string("same") : "u" + std::to_string(i)}});
  const auto binding = stored("rolebindings", json::Object{{"metadata", json::Object{{"namespace", "dev"}, {"name", "b"}}},
                                                           {"roleRef", json::Object{{"kind", "Role"}, {"name", "r"}}},
                                                           {"subjects", std::move(subjects)}});
  const auto role =
      stored("roles", doc("{metadata: {namespace: dev, name: r}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"));
  grants.put_binding(*binding, false, false);
  EXPECT_EQ(grants.size(), 10'001U + 1 + 1) << "subjects, the role that is not there yet, the binding";
  grants.put_role(*role, false, false);
  grants.put_binding(*binding, false, false);
  EXPECT_EQ(grants.size(), 10'003U) << "written again";
  grants.put_binding(*binding, false, true);
  EXPECT_EQ(grants.size(), 1U);
  grants.put_role(*role, false, true);
  EXPECT_EQ(grants.size(), 0U);
  grants.put_binding(*binding, false, false);
  grants.put_binding(*binding, false, true);
  EXPECT_EQ(grants.size(), 0U) << "a role that was only referred to";
}

}  // namespace
}  // namespace berth::apiserver::auth
