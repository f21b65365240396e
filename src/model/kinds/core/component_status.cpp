// ComponentStatuses: read only and never stored; the API server asks around when somebody looks (apiserver/upkeep/component_status.h).
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

Array component_status_cells(const Value& o, TimePoint) {
  std::string status = "Unknown", message, error;
  for (const Value& condition : get_array(o, {"conditions"})) {
    if (get_string(condition, {"type"}) != "Healthy") continue;
    const std::string_view said = get_string(condition, {"status"});
    status = said == "True" ? "Healthy" : said == "Unknown" ? "Unknown" : "Unhealthy";
    message = get_string(condition, {"message"});
    error = get_string(condition, {"error"});
    break;
  }
  return {name_of(o), status, message, error};
}

}  // namespace

KindInfo component_status() {
  return Record("", "v1", "ComponentStatus", "componentstatuses")
      .shorts({"cs"})
      .cluster()
      .verbs({"get", "list"})
      .not_stored()
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.deprecation = "v1 ComponentStatus is deprecated in v1.19+"},
             .printer = Printer{{{"Name"}, {"Status"}, {"Message"}, {"Error"}}, component_status_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
