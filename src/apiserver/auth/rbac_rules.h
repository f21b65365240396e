// PolicyRules, compiled: what one allows, and all of a role, found by what is asked (pkg/registry/rbac/validation).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/auth/interfaces.h"
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
  /// How many values it lists.
  [[nodiscard]] std::size_t size() const { return verbs.size() + groups.size() + resources.size() + names.size() + urls.size(); }
  friend bool operator==(const PolicyRule&, const PolicyRule&) = default;
};

/// "/logs/*" stands for what begins so, "*" for everything.
bool url_matches(std::string_view pattern, std::string_view url);

/// The rules of one role. A decision looks at those rules alone that say something of the verb, group, resource or name in which the fewest
/// do, and at none of their lists. Immutable; its size is a multiple of the rules'.
class RuleIndex {
 public:
  explicit RuleIndex(std::vector<PolicyRule> rules);
  RuleIndex(const RuleIndex&) = delete;
  RuleIndex& operator=(const RuleIndex&) = delete;

  [[nodiscard]] const std::vector<PolicyRule>& rules() const { return rules_; }
  /// How many values the rules list.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// How many rules or values `allows` would look at, at most.
  [[nodiscard]] std::size_t cost(const Attributes& attributes) const;
  [[nodiscard]] bool allows(const Attributes& attributes) const;

  using Numbers = std::vector<std::uint32_t>;  ///< Of rules, ascending.
  using Field = std::unordered_map<std::string_view, Numbers>;
  /// The rules for resources that list a value, and those that are for all names; the rules for URLs.
  struct Fields {
    Field verbs, groups, resources, names;
    Numbers nameless, with_urls;
  };
  /// Null: there are so few values that they are walked.
  [[nodiscard]] const Fields* fields() const { return fields_.get(); }

 private:
  /// The rules that match in one field: in any of a few lists.
  struct Matching {
    std::array<const Numbers*, 3> lists{};
    [[nodiscard]] std::size_t size() const;
    [[nodiscard]] bool contains(std::uint32_t rule) const;
  };
  [[nodiscard]] std::array<Matching, 4> matching(const Attributes& attributes) const;

  const std::vector<PolicyRule> rules_;
  std::size_t size_ = 0;
  std::unique_ptr<Fields> fields_;
};

}  // namespace berth::apiserver::auth
