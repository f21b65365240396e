// Whether an object is what its schema says, in the words of kube-openapi (kube-openapi/pkg/validation/validate;
// apiextensions-apiserver/pkg/apiserver/validation). Pure.
#pragma once
#include "custom/correlate.h"
#include "custom/schema.h"
#include "model/api_status.h"

namespace berth::custom {

/// Appends what is wrong, up to 256 KiB of text. `path`: of the value, empty for a whole object. `correlated` (null at creation): the value
/// and what it was; findings about unchanged places are forgiven.
/// `of_default`: the value is a default of the schema.
void check_schema(const json::Value& value, const Schema& schema, const std::string& path, Correlated* correlated,
                  model::FieldErrors& errors, bool of_default = false);

/// Whether rules (x-kubernetes-validations) are not to be asked after these findings.
bool blocks_rules(const model::FieldErrors& errors);

}  // namespace berth::custom
