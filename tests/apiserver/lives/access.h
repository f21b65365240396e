// What lives of access share: rules from dice, a plain walk that says what they allow, and a cache that documents are written to.
#pragma once
#include "apiserver/auth/rbac_rules.h"
#include "tests/apiserver/object_cache_fixture.h"
#include "tests/support/long_life.h"

namespace berth::apiserver::auth {

using testing::LongLife;
using Texts = std::vector<std::string>;

inline constexpr std::string_view kRbac = "rbac.authorization.k8s.io";

class Life : public LongLife {
 public:
  using LongLife::LongLife;
  std::string one(std::initializer_list<const char*> list) { return *(list.begin() + dice.below(list.size())); }
  Texts some(std::initializer_list<const char*> list, int percent = 35) {
    Texts out;
    for (const char* text : list)
      if (dice.chance(percent)) out.emplace_back(text);
    return out;
  }
};

inline bool is_among(const Texts& list, std::string_view text) { return std::ranges::find(list, text) != list.end(); }

/// May the holder of the rule do this? "*" as an asked-for value is covered by "*" alone.
inline bool covers(const PolicyRule& held, const std::string& verb, const std::string& group, const std::string& resource,
                   const std::optional<std::string>& name) {
  const auto slash = resource.find('/');
  const bool by_resource = is_among(held.resources, resource) || is_among(held.resources, "*") ||
                           (slash != std::string::npos && is_among(held.resources, "*" + resource.substr(slash)));
  return (is_among(held.verbs, verb) || is_among(held.verbs, "*")) && (is_among(held.groups, group) || is_among(held.groups, "*")) &&
         by_resource && (held.names.empty() || (name && is_among(held.names, *name)));
}
inline bool covers_url(const PolicyRule& held, const std::string& verb, const std::string& url) {
  return (is_among(held.verbs, verb) || is_among(held.verbs, "*")) && std::ranges::any_of(held.urls, [&](const std::string& pattern) {
           return pattern == url || pattern == "*" || (pattern.ends_with('*') && url.starts_with(pattern.substr(0, pattern.size() - 1)));
         });
}
inline bool covers_all(const std::vector<PolicyRule>& held, const std::vector<PolicyRule>& wanted) {
  for (const PolicyRule& rule : wanted) {
    for (const auto& verb : rule.verbs) {
      for (const auto& url : rule.urls)
        if (std::ranges::none_of(held, [&](const auto& one) { return covers_url(one, verb, url); })) return false;
      for (const auto& group : rule.groups)
        for (const auto& resource : rule.resources) {
          std::vector<std::optional<std::string>> all(rule.names.begin(), rule.names.end());
          if (all.empty()) all.emplace_back();
          for (const auto& name : all)
            if (std::ranges::none_of(held, [&](const auto& one) { return covers(one, verb, group, resource, name); })) return false;
        }
    }
  }
  return true;
}

inline PolicyRule random_rule(Life& life) {
  PolicyRule out;
  out.verbs = life.some({"get", "list", "create", "delete", "*"});
  if (life.dice.chance(20)) {
    out.urls = life.some({"/healthz", "/logs/*", "/api/*", "*", "/metrics"});
    if (life.dice.chance(70)) return out;
  }
  out.groups = life.some({"", "apps", "batch", "*"}, 45);
  out.resources = life.some({"pods", "pods/log", "deployments", "deployments/scale", "*/scale", "*", "jobs"});
  if (life.dice.chance(30)) out.names = life.some({"x", "y", "z"}, 50);
  return out;
}
inline std::vector<PolicyRule> random_rules(Life& life) {
  std::vector<PolicyRule> out;
  const int many = life.dice.chance(25) ? 12 + life.dice.below(10) : 1 + life.dice.below(3);
  for (int i = 0; i < many; ++i) out.push_back(random_rule(life));
  return out;
}

class AccessLives : public CacheFixture {
 protected:
  void SetUp() override { open(); }
  void write(std::string_view group, std::string_view plural, json::Value document) {
    json::set(document, {"metadata", "resourceVersion"}, json::Value(""));
    Proposal proposal;
    proposal.key =
        make_key(group, plural, json::get_string(document, {"metadata", "namespace"}), json::get_string(document, {"metadata", "name"}));
    proposal.value = json::serialize(document);
    proposal.revision_offset = proposal.value.find(R"("resourceVersion":"")") + 19;
    proposal.meta = meta_of_json({}, proposal.value);
    ASSERT_TRUE(propose(std::move(proposal)).has_value());
  }
  bool erase(std::string_view group, std::string_view plural, std::string_view ns, std::string_view name) {
    Proposal proposal;
    proposal.key = make_key(group, plural, ns, name);
    proposal.is_delete = true;
    return propose(std::move(proposal)).has_value();
  }
};

}  // namespace berth::apiserver::auth
