#include "model/conditions.h"

#include <algorithm>

namespace berth::model {
namespace {

auto find_in(json::Array& conditions, std::string_view type) {
  return std::ranges::find_if(conditions, [type](const json::Value& one) { return json::get_string(one, {"type"}) == type; });
}

}  // namespace

const json::Value* find_condition(const json::Value& document, std::string_view type) {
  for (const json::Value& condition : json::get_array(document, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == type) return &condition;
  return nullptr;
}

std::string_view condition_status(const json::Value& document, std::string_view type) {
  const json::Value* condition = find_condition(document, type);
  return condition == nullptr ? std::string_view{} : json::get_string(*condition, {"status"});
}

bool set_condition(json::Array& conditions, const Condition& wanted, TimePoint now, bool with_update_time) {
  auto found = find_in(conditions, wanted.type);
  if (found == conditions.end()) {
    conditions.push_back(json::Object{{"type", wanted.type}, {"status", ""}});
    found = conditions.end() - 1;
  } else if (json::get_string(*found, {"status"}) == wanted.status && json::get_string(*found, {"reason"}) == wanted.reason &&
             json::get_string(*found, {"message"}) == wanted.message) {
    return false;
  }
  auto& condition = found->get_object();
  if (with_update_time) condition["lastUpdateTime"] = format_rfc3339(now);
  if (json::get_string(*found, {"status"}) != wanted.status) condition["lastTransitionTime"] = format_rfc3339(now);
  condition["status"] = wanted.status;
  condition["reason"] = wanted.reason;
  condition["message"] = wanted.message;
  if (wanted.observed_generation) condition["observedGeneration"] = *wanted.observed_generation;
  return true;
}

bool set_condition(json::Value& document, const Condition& wanted, TimePoint now) {
  auto& conditions = json::ensure_object(document, {"status"})["conditions"];
  if (!conditions.is_array()) conditions = json::Array();
  return set_condition(conditions.get_array(), wanted, now);
}

bool remove_condition(json::Array& conditions, std::string_view type) {
  const auto found = find_in(conditions, type);
  if (found == conditions.end()) return false;
  conditions.erase(found);
  return true;
}

}  // namespace berth::model
