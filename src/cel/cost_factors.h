// What estimated and counted costs of expressions have in common (cel-go's common.StringTraversalCostFactor and kin).
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace berth::cel {

inline constexpr double kTraversal = 0.1, kRegexPerCharacter = 0.25;

inline bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace berth::cel
