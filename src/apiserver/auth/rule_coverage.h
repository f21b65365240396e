// Whether some rules allow all that others do (pkg/registry/rbac/validation), without taking them apart into single permissions: a rule is
// a box whose sides are its verbs, groups, resources and names, and what is held is cut off it until nothing is left. Steps grow with the
// rules' lengths, not with the products of their lists.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "apiserver/auth/rbac_rules.h"

namespace berth::apiserver::auth {

struct Coverage {
  bool is_whole = true;              ///< All that is wanted is held.
  std::vector<std::string> missing;  ///< What is not, in Kubernetes' words and order, each once.
  bool has_more = false;             ///< There is more than that.
  /// Given up: the rules overlap in more ways than there are steps. Not whole then, and nothing is known to be missing.
  bool is_too_entangled = false;
  std::size_t steps = 0;  ///< That it took.
};

struct CoverageLimits {
  std::size_t steps = 3'000'000;  ///< Values looked up and words of bits compared, some nanoseconds each.
  std::size_t lines = 256, bytes = 32 * 1024;
};

/// Roles that are held, and rules that are wanted.
Coverage coverage_of(std::span<const RuleIndex* const> held, const std::vector<PolicyRule>& wanted, const CoverageLimits& limits = {});

}  // namespace berth::apiserver::auth
