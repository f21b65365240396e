// PolicyRules, compiled: what one allows, and whether some cover others (pkg/registry/rbac/validation).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/auth_interfaces.h"
#include "base/json.h"

namespace berth::apiserver::auth {

struct PolicyRule {
  std::vector<std::string> verbs, groups, resources, names, urls;
  static PolicyRule from_json(const json::Value& rule);
  static std::vector<PolicyRule> list_from_json(const json::Value* rules);
  /// Does it allow the request? Resource requests match on verb, group, resource with subresource ("pods/log", "*/scale", "*") and name.
  [[nodiscard]] bool allows(const Attributes& attributes) const;
  /// `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const PolicyRule&, const PolicyRule&) = default;
};

/// The part of `wanted` that `held` does not cover, split up as far as needed; empty when all is covered.
std::vector<PolicyRule> uncovered(const std::vector<PolicyRule>& held, const std::vector<PolicyRule>& wanted);

}  // namespace berth::apiserver::auth
