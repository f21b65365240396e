// What registry and defaulting do with the kinds of resource.k8s.io beyond validation (pkg/registry/resource, pkg/apis/resource/v1).
// Within src/model and src/apiserver only.
#pragma once
#include <string_view>

#include "base/json.h"

namespace berth::model::devices {

void default_claim(json::Object& claim);
void default_slice(json::Object& slice);
void default_claim_template(json::Object& claim_template);

/// Fields of gates that are off by default: gone, whatever the client says.
void drop_disabled_fields(json::Value& slice);
/// A status no longer speaks of devices that the claim has given back.
void drop_deallocated_statuses(const json::Value& old, json::Value& claim);
/// A taint without a time of its own was added `now` (RFC 3339).
void stamp_taints(json::Value& slice, std::string_view now);
/// Likewise of a DeviceTaintRule; one whose effect changes begins anew, unless the client says another time. `old` may be null.
void stamp_rule(const json::Value* old, json::Value& rule, std::string_view now);

}  // namespace berth::model::devices
