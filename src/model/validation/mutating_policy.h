// MutatingAdmissionPolicies and their bindings.
#pragma once
#include "model/validation/validation.h"

namespace berth::model::validation {

void mutating_admission_policy(const Value& doc, Errors& errors);
void mutating_policy_binding(const Value& doc, Errors& errors);

}  // namespace berth::model::validation
