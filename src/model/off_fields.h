// Fields of features that are off (FieldDef::is_off): accepted, named as their writer's, and not kept. Pure.
#pragma once
#include "base/json.h"
#include "model/features.h"

namespace berth::model {

/// `old`: the object that is being updated, or null. What it has of a feature with a gate stays, as in Kubernetes: the feature was on then.
void drop_off_fields(const KindInfo& kind, Features features, const json::Value* old, json::Value& doc);

}  // namespace berth::model
