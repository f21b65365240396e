// Who may write what of resource claims beyond what roles say of the whole object (pkg/registry/resource/utils.go).
#pragma once
#include <string>

#include "apiserver/rules/ruled_write.h"
#include "base/json.h"
#include "model/api_status.h"
#include "model/kinds.h"

namespace berth::apiserver {

/// At creation, of the spec of a claim or of a template's (null: none): access for administrators asks for a label of the namespace.
model::FieldErrors check_admin_access(const RuledWrite& write, const json::Value* claim_spec);
/// Of a write of a claim's status: access for administrators as above, an allocation asks for the permission on resourceclaims/binding, a
/// device's status for the one on resourceclaims/driver.
model::FieldErrors check_claim_status(const RuledWrite& write, const json::Value& old, const json::Value& updated);

/// Selectors that are no expressions over a device, or cost too much; of a DeviceClass (what is stored already is not judged anew), of the
/// spec of a claim, which is told of as standing at `path`.
model::FieldErrors check_class_selectors(const json::Value* old, const json::Value& updated);
model::FieldErrors check_claim_selectors(const json::Value* claim_spec, const std::string& path);

}  // namespace berth::apiserver
