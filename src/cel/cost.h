// cel-go's cost model at run time, with Kubernetes' own functions. Internal to the folder.
#pragma once
#include "cel/ast.h"

namespace berth::cel {

inline constexpr std::uint64_t kListCost = 10, kMapCost = 30, kStructCost = 40;

/// What a call costs beside its arguments.
std::uint64_t call_cost(const Node& call, const std::vector<Value>& args, const Value& result);
std::uint64_t equality_cost(const Value& a, const Value& b, bool is_equals);
/// What calls that compare every pair of elements are going to cost; 0 for others.
std::uint64_t quadratic_cost(const Node& call, const std::vector<Value>& args);

}  // namespace berth::cel
