// Validation and defaults of CustomResourceDefinitions (apiextensions-apiserver/pkg/apis/apiextensions/validation; pkg/registry/
// customresourcedefinition).
#pragma once
#include "custom/schema.h"
#include "model/api_status.h"
#include "model/kind_hooks.h"

namespace berth::custom {

/// What the API server does with definitions of its own: defaults, strategy, validation.
model::KindHooks definition_hooks();

/// `old`: null at creation. In Kubernetes' words; one expensive pass over each schema.
model::FieldErrors check_definition(const json::Value* old, const json::Value& definition);

/// Why a schema is not structural, at `path`; empty when it is. Sorted by text.
model::FieldErrors check_structural(const Schema& schema, const std::string& path);

/// The approval that groups of Kubernetes itself need.
enum class Approval { kNotNeeded, kInvalid, kApproved, kBypassed, kMissing };
struct ApprovalState {
  Approval approval = Approval::kNotNeeded;
  std::string reason;
};
ApprovalState approval_of(std::string_view group, const json::Value& definition);

}  // namespace berth::custom
