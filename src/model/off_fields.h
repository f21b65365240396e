// Fields of features that are off by default (FieldDef::is_off): accepted, named as their writer's, and not kept. Pure.
#pragma once
#include "model/schema.h"

namespace berth::model {

/// Takes them away, and a container's `lifecycle` that has nothing else, as Kubernetes' strategies do (dropDisabledFields).
void drop_off_fields(const KindInfo& kind, json::Value& doc);

}  // namespace berth::model
