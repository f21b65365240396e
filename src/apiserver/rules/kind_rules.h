// What the server does around the writes of some kinds because it asks more than the document: who writes, what else is there. The server's
// half of a kind's record; the other stands in model/kinds.
#pragma once
#include <functional>
#include <optional>

#include "apiserver/rules/ruled_write.h"
#include "base/json.h"
#include "model/api_status.h"

namespace berth::apiserver {

/// Every function may be empty. `old` is null at creation.
struct KindRules {
  /// Before anything is prepared or validated: may this user write this at all?
  std::function<std::optional<model::ApiStatus>(const RuledWrite&, const json::Value* old, const json::Value& object)> guard;
  /// At creation, before validation: what only the server knows.
  std::function<void(const RuledWrite&, json::Value& object)> sign;
  /// Findings that come before those of the model; may complete the object.
  std::function<model::FieldErrors(const RuledWrite&, const json::Value* old, json::Value& object)> check_first;
  /// Findings that come after those of the model; of the object itself, not of its subresources.
  std::function<model::FieldErrors(const RuledWrite&, const json::Value* old, const json::Value& object)> check_last;
  bool takes_addresses = false;  ///< Its addresses and ports come from the server's ranges (ServiceAllocator).
};

/// Those of the kind, or none.
const KindRules& rules_of(const model::KindInfo& kind);

}  // namespace berth::apiserver
