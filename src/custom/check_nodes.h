// What is asked of every node of a definition's schema beyond being structural. Within src/custom only.
#pragma once
#include <string>

#include "custom/schema.h"
#include "model/api_status.h"

namespace berth::custom {

/// Forbidden fields, list and map types, defaults, rules with their estimated costs. `checks_rules`: the schema is structural.
model::FieldErrors check_nodes(const Schema& schema, const std::string& path, bool checks_rules);

/// Defaults fit their own schema and name no unknown fields.
model::FieldErrors check_defaults(const Schema& schema, const std::string& path);

}  // namespace berth::custom
