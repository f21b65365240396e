// What a ValidatingAdmissionPolicy's expressions look like against the types of what it matches
// (apiserver/pkg/admission/plugin/policy/validating/typechecking.go): warnings for its status, never a reason to refuse it.
#pragma once
#include "apiserver/kinds/kind_table.h"
#include "base/json.h"

namespace berth::apiserver {

/// status.typeChecking.expressionWarnings: validations and their message expressions that do not fit one of the (at most ten) kinds that
/// the policy names without wildcards. `kinds`: what is served; null: the API's own.
json::Array check_policy_types(const json::Value& policy, const KindTablePtr& kinds);

}  // namespace berth::apiserver
