// status.conditions, as metav1.Condition has them: one of each type, and the time of its last turn.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"

namespace berth::model {

struct Condition {
  std::string type, status, reason, message;
  std::optional<std::int64_t> observed_generation = {};  ///< Nothing: it is not said.
};

/// The document's condition of that type, or null.
const json::Value* find_condition(const json::Value& document, std::string_view type);
/// Empty: there is none.
std::string_view condition_status(const json::Value& document, std::string_view type);

/// Sets the condition of that type: lastTransitionTime stays where the status does. False, and nothing changed: it was so already.
/// `with_update_time`: every change moves lastUpdateTime as well (Deployment's rule).
bool set_condition(json::Array& conditions, const Condition& wanted, TimePoint now, bool with_update_time = false);
/// The same of a document's.
bool set_condition(json::Value& document, const Condition& wanted, TimePoint now);
/// False: there was none.
bool remove_condition(json::Array& conditions, std::string_view type);

}  // namespace berth::model
