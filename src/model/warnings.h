// What the API server warns of: objects that are accepted, but hardly meant so, or that use what is on its way out (Kubernetes:
// pkg/api/*/warnings.go and the strategies' WarningsOnCreate and WarningsOnUpdate).
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "model/kinds.h"

namespace berth::model {

/// The sentences for a write that was found valid, in Kubernetes' order and words. `old`: null at creation. `doc`: defaulted and prepared.
/// Status and other subresources are never warned of.
std::vector<std::string> write_warnings(const KindInfo& kind, const json::Value* old, const json::Value& doc);

/// What every request to a kind is told; empty for most.
std::string_view kind_warning(const KindInfo& kind);

}  // namespace berth::model
