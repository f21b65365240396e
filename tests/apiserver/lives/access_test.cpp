// What rules cover, and what nodes may do while pods and volumes come and go.
#include "tests/apiserver/lives/access.h"

#include "apiserver/auth/rbac.h"
#include "apiserver/auth/rule_coverage.h"

namespace berth::apiserver::auth {
namespace {

TEST_F(AccessLives, OfCoverageAreAsRecorded) {
  Life life("tests/apiserver/lives/coverage.txt", 82, 20'000);
  for (int i = 0; i < 1500; ++i) {
    std::vector<std::unique_ptr<RuleIndex>> roles;
    std::vector<const RuleIndex*> held;
    std::vector<PolicyRule> all;
    for (int k = life.dice.below(4); k > 0; --k) {
      auto rules = random_rules(life);
      all.insert(all.end(), rules.begin(), rules.end());
      roles.push_back(std::make_unique<RuleIndex>(std::move(rules)));
      held.push_back(roles.back().get());
    }
    auto wanted = random_rules(life);
    // Often what is held, a little less or a little more.
    if (!all.empty() && life.dice.chance(60)) {
      wanted = {life.dice.of(all), life.dice.of(all)};
      if (life.dice.chance(40)) wanted[0].verbs.emplace_back(life.one({"get", "patch"}));
      if (life.dice.chance(40) && !wanted[1].resources.empty()) wanted[1].resources.pop_back();
      if (life.dice.chance(20)) wanted[1].names.clear();
    }
    CoverageLimits limits;
    if (life.dice.chance(10))
      limits = {.steps = static_cast<std::size_t>(life.dice.below(400)),
                .lines = static_cast<std::size_t>(1 + life.dice.below(3)),
                .bytes = static_cast<std::size_t>(life.dice.below(200))};
    const Coverage coverage = coverage_of(held, wanted, limits);
    life.tell(fmt::format("{} roles of {} rules, wanted {}: {}{}{} {}", roles.size(), all.size(), wanted.front().to_string(),
                          coverage.is_whole ? "whole" : "lacks", coverage.has_more ? ", more" : "",
                          coverage.is_too_entangled ? ", entangled" : "", fmt::join(coverage.missing, " ")));
    if (limits.steps == CoverageLimits().steps) {
      ASSERT_EQ(coverage.is_whole, covers_all(all, wanted)) << life.last();
    }
    if (coverage.is_whole) {
      ASSERT_TRUE(covers_all(all, wanted)) << life.last();
    }
    // A role by itself: found by an index or walked, it is the same.
    Attributes asked;
    asked.verb = life.one({"get", "list", "create", "delete"});
    asked.group = life.one({"", "apps", "batch"});
    asked.resource = life.one({"pods", "deployments", "jobs"});
    asked.subresource = life.one({"", "log", "scale"});
    asked.name = life.one({"", "x", "z"});
    for (const auto& role : roles) {
      const bool walked = std::ranges::any_of(role->rules(), [&](const PolicyRule& rule) { return rule.allows(asked); });
      ASSERT_EQ(role->allows(asked), walked) << life.last();
      life.tell(fmt::format("  {} {}:{}/{} {}: {} at {} of {}", asked.verb, asked.group, asked.resource, asked.subresource, asked.name,
                            walked, role->cost(asked), role->size()));
    }
  }
  life.expect_as_recorded();
}

json::Value random_pod(Life& life, const std::string& ns, const std::string& name) {
  const auto ref = [&] { return life.one({"s1", "s2", "m1", "m2"}); };
  json::Object spec{{"nodeName", life.one({"n1", "n2", ""})}};
  json::Array volumes;
  for (int i = life.dice.below(3); i > 0; --i) {
    const std::string it = ref();
    volumes.push_back(life.dice.of(std::vector<json::Value>{
        json::Object{{"name", "v"}, {"secret", json::Object{{"secretName", it}}}},
        json::Object{{"name", "v"}, {"configMap", json::Object{{"name", it}}}},
        json::Object{{"name", "v"}, {"persistentVolumeClaim", json::Object{{"claimName", "c1"}}}},
        json::Object{{"name", "v"}, {"ephemeral", json::Object{}}},
        json::Object{{"name", "v"}, {"csi", json::Object{{"nodePublishSecretRef", json::Object{{"name", it}}}}}},
        json::Object{{"name", "v"}, {"rbd", json::Object{{"secretRef", json::Object{{"name", it}}}}}},
        json::Object{{"name", "v"}, {"azureFile", json::Object{{"secretName", it}}}},
        json::Object{{"name", "v"},
                     {"projected", json::Object{{"sources", json::Array{json::Object{{"secret", json::Object{{"name", it}}}},
                                                                        json::Object{{"configMap", json::Object{{"name", ref()}}}}}}}}}}));
  }
  if (!volumes.empty()) spec["volumes"] = std::move(volumes);
  if (life.dice.chance(30)) spec["imagePullSecrets"] = json::Array{json::Object{{"name", ref()}}};
  if (life.dice.chance(30)) spec["serviceAccountName"] = life.one({"sa1", "sa2"});
  if (life.dice.chance(30)) spec["resourceClaims"] = json::Array{json::Object{{"resourceClaimName", life.one({"rc1", "rc2"})}}};
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"})
    if (life.dice.chance(30))
      spec[list] = json::Array{json::Object{
          {"envFrom", json::Array{json::Object{{life.one({"secretRef", "configMapRef"}), json::Object{{"name", ref()}}}}}},
          {"env", json::Array{json::Object{
                      {"valueFrom", json::Object{{life.one({"secretKeyRef", "configMapKeyRef"}), json::Object{{"name", ref()}}}}}}}}}};
  json::Object metadata{{"name", name}, {"namespace", ns}};
  if (life.dice.chance(15)) metadata["annotations"] = json::Object{{"kubernetes.io/config.mirror", "x"}};
  json::Object out{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  if (life.dice.chance(30))
    out["status"] = json::Object{{"resourceClaimStatuses", json::Array{json::Object{{"resourceClaimName", "rc2"}}}},
                                 {"extendedResourceClaimStatus", json::Object{{"resourceClaimName", "rc3"}}}};
  return out;
}

TEST_F(AccessLives, OfNodesAreAsRecorded) {
  Life life("tests/apiserver/lives/node_access.txt", 83, 26'000);
  const auto authorizer = RbacAuthorizer::create(*cache_);
  std::map<std::string, json::Value> pods;
  for (int i = 0; i < 3000; ++i) {
    const std::string ns = life.one({"a", "b"});
    switch (life.dice.below(12)) {
      case 0: {
        const std::string name = life.one({"p1", "p2", "p3"});
        if (life.dice.chance(30)) {
          erase("", "pods", ns, name);
          pods.erase(ns + "/" + name);
          life.tell(fmt::format("no pod {}/{}", ns, name));
          break;
        }
        const json::Value pod = random_pod(life, ns, name);
        write("", "pods", pod);
        pods[ns + "/" + name] = pod;
        life.tell(fmt::format("pod {}/{}: {}", ns, name, json::serialize(pod.at("spec"))));
        break;
      }
      case 1: {
        const std::string name = life.one({"pv1", "pv2"}), it = life.one({"s1", "s2"});
        const json::Value source = life.dice.of(std::vector<json::Value>{
            json::Object{{"csi", json::Object{{life.one({"nodeStageSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
                                                         "controllerExpandSecretRef"}),
                                               json::Object{{"name", it}, {"namespace", life.one({"a", "b", ""})}}}}}},
            json::Object{{"rbd", json::Object{{"secretRef", json::Object{{"name", it}}}}}},
            json::Object{{"azureFile", json::Object{{"secretName", it}, {"secretNamespace", life.one({"a", ""})}}}}});
        json::Object spec = source.get_object();
        if (life.dice.chance(80)) spec["claimRef"] = json::Object{{"namespace", ns}, {"name", "c1"}};
        write("", "persistentvolumes", json::Object{{"metadata", json::Object{{"name", name}}}, {"spec", spec}});
        write("storage.k8s.io", "volumeattachments",
              json::Object{{"metadata", json::Object{{"name", "va"}}}, {"spec", json::Object{{"nodeName", life.one({"n1", "n2"})}}}});
        write("resource.k8s.io", "resourceslices",
              json::Object{{"metadata", json::Object{{"name", "sl"}}}, {"spec", json::Object{{"nodeName", life.one({"n1", "n2"})}}}});
        life.tell(fmt::format("volume {}: {}", name, json::serialize(spec)));
        break;
      }
      default: {
        struct What {
          const char *group, *resource, *subresource;
        };
        const What what = life.dice.of(std::vector<What>{{"", "secrets", ""},
                                                         {"", "secrets", ""},
                                                         {"", "configmaps", ""},
                                                         {"", "configmaps", "x"},
                                                         {"", "persistentvolumeclaims", ""},
                                                         {"", "persistentvolumeclaims", "status"},
                                                         {"", "persistentvolumes", ""},
                                                         {"", "nodes", ""},
                                                         {"", "nodes", "status"},
                                                         {"", "pods", ""},
                                                         {"", "pods", "status"},
                                                         {"", "pods", "eviction"},
                                                         {"", "serviceaccounts", "token"},
                                                         {"coordination.k8s.io", "leases", ""},
                                                         {"storage.k8s.io", "csinodes", ""},
                                                         {"storage.k8s.io", "volumeattachments", ""},
                                                         {"resource.k8s.io", "resourceclaims", ""},
                                                         {"resource.k8s.io", "resourceslices", ""},
                                                         {"", "services", ""},
                                                         {"discovery.k8s.io", "endpointslices", ""},
                                                         {"apps", "deployments", ""}});
        Attributes asked;
        asked.group = what.group;
        asked.resource = what.resource;
        asked.subresource = what.subresource;
        asked.verb = life.one({"get", "get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"});
        asked.ns = life.one({"a", "b", "a", "b", "kube-node-lease", "kube-system", ""});
        asked.name = life.one(
            {"s1", "s2", "m1", "m2", "c1", "p1-v", "p2", "pv1", "n1", "n2", "sa1", "rc1", "rc2", "rc3", "va", "sl", "kube-dns-n1", ""});
        asked.field_selector = life.one({"", "", "metadata.name=s1", "spec.nodeName=n1", "metadata.name=n1", "spec.nodeName!=n1"});
        UserInfo user{life.one({"system:node:n1", "system:node:n1", "system:node:n2", "system:node:", "n1"}), "", {"system:nodes"}, {}};
        if (life.dice.chance(5)) user.groups.clear();
        const auto decision = authorizer->authorize(user, asked);
        life.tell(fmt::format("{}{} {} {}:{}/{} {}/{} {}: {} {}", user.name, user.groups.empty() ? " (no node)" : "", asked.verb,
                              asked.group, asked.resource, asked.subresource, asked.ns, asked.name, asked.field_selector, decision.allowed,
                              decision.reason));
        const auto at_once = authorizer->decide_at_once(user, asked);
        EXPECT_TRUE(at_once && at_once->allowed == decision.allowed) << life.last();
        // Nobody reads a configuration that no pod of his names.
        if (decision.allowed && asked.resource == "configmaps") {
          const std::string node = user.name.substr(std::string_view("system:node:").size()), name = asked.name.empty() ? "s1" : asked.name;
          EXPECT_TRUE(std::ranges::any_of(pods, [&](const auto& one) {
            return one.first.starts_with(asked.ns + "/") && json::get_string(one.second, {"spec", "nodeName"}) == node &&
                   json::serialize(one.second).find("\"" + name + "\"") != std::string::npos;
          })) << life.last();
        }
        if (user.groups.empty() || user.name == "n1" || user.name == "system:node:") {
          EXPECT_FALSE(decision.allowed) << life.last();
        }
      }
    }
  }
  life.expect_as_recorded();
}

}  // namespace
}  // namespace berth::apiserver::auth
