// The schema of a custom kind as server-side apply knows types: what is merged by keys, as a set, or taken whole.
#pragma once
#include <memory>

#include "custom/schema.h"
#include "model/schema.h"

namespace berth::custom {

/// `preserves_unknown`: of the whole definition: nothing is a mistake. `schema` need not outlive it.
std::shared_ptr<const model::TypeDef> apply_type(const Schema& schema, bool preserves_unknown);

}  // namespace berth::custom
