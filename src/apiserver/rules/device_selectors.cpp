// Expressions that select devices are compiled when they are written (pkg/apis/resource/validation, validateCELSelector).
#include <fmt/format.h>

#include "apiserver/rules/device_rules.h"
#include "cel/device_selector.h"

namespace berth::apiserver {
namespace {

using json::get_array;
using json::get_string;
using json::Value;
using model::FieldError;

constexpr std::size_t kMaxExpression = 10 * 1024, kMaxSelectors = 32;
constexpr std::uint64_t kCostLimit = 1'000'000;  ///< CELSelectorExpressionMaxCost

/// `holder.selectors`, which stands at `path`.
void check_selectors(const Value& holder, const std::string& path, model::FieldErrors& out) {
  const auto& list = get_array(holder, {"selectors"});
  if (list.size() > kMaxSelectors) return;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto expression = get_string(list[i], {"cel", "expression"});
    if (json::find(list[i], "cel") == nullptr || expression.size() > kMaxExpression) continue;
    const std::string field = fmt::format("{}.selectors[{}].cel.expression", path, i);
    const auto program = cel::compile_device_selector(expression);
    if (!program)
      out.push_back({FieldError::Type::kInvalid, field, json::serialize(Value(expression)), program.error()});
    else if (program->estimated_cost().max > kCostLimit)
      out.push_back({FieldError::Type::kForbidden, field, "", "too complex, exceeds cost limit"});
  }
}

void check_claim_spec(const Value& spec, const std::string& path, model::FieldErrors& out) {
  const auto& requests = get_array(spec, {"devices", "requests"});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string at = fmt::format("{}.devices.requests[{}]", path, i);
    const auto* exactly = json::find(requests[i], "exactly");
    const auto& first = get_array(requests[i], {"firstAvailable"});
    if (exactly != nullptr && first.empty()) check_selectors(*exactly, at + ".exactly", out);
    for (std::size_t k = 0; exactly == nullptr && k < first.size(); ++k)
      check_selectors(first[k], fmt::format("{}.firstAvailable[{}]", at, k), out);
  }
}

}  // namespace

model::FieldErrors check_class_selectors(const json::Value* old, const json::Value& updated) {
  model::FieldErrors out;
  const Value* spec = json::find(updated, "spec");
  const bool is_same =
      old != nullptr && json::equal(Value(get_array(*old, {"spec", "selectors"})), Value(get_array(updated, {"spec", "selectors"})));
  if (spec != nullptr && !is_same) check_selectors(*spec, "spec", out);
  return out;
}

model::FieldErrors check_claim_selectors(const json::Value* claim_spec, const std::string& path) {
  model::FieldErrors out;
  if (claim_spec != nullptr) check_claim_spec(*claim_spec, path, out);
  return out;
}

}  // namespace berth::apiserver
