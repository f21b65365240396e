// APIServices.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_service(Object& doc) {
  if (Object* spec = child(doc, "spec"))
    if (Object* service = child(*spec, "service")) put(*service, "port", 443);
}

void service_registration_status(const Value& doc, Errors& errors) {
  const Path status("status");
  const Path at = status / "conditions";
  std::size_t i = 0;
  for (const Value& condition : get_array(doc, {"status", "conditions"})) {
    const Path one = at[i++];
    const std::string_view state = get_string(condition, {"status"});
    if (state != "True" && state != "False" && state != "Unknown")
      errors.not_supported(one / "status", state, {"True", "False", "Unknown"});
  }
}

Array api_service_cells(const Value& o, TimePoint now) {
  // What this server answers itself needs nobody else to be there.
  if (json::find(o, {"spec", "service"}) == nullptr) return {name_of(o), "Local", "True", age_of(o, now)};
  std::string available = "Unknown";
  for (const Value& condition : get_array(o, {"status", "conditions"})) {
    if (get_string(condition, {"type"}) != "Available") continue;
    available = get_string(condition, {"status"});
    if (available != "True") available += fmt::format(" ({})", get_string(condition, {"reason"}));
  }
  const std::string service =
      fmt::format("{}/{}", get_string(o, {"spec", "service", "namespace"}), get_string(o, {"spec", "service", "name"}));
  return {name_of(o), service, available, age_of(o, now)};
}

}  // namespace

std::vector<KindInfo> apiregistration_group() {
  return {
      Record("apiregistration.k8s.io", "v1", "APIService", "apiservices")
          .categories({"api-extensions"})
          .cluster()
          .subs({"status"})
          .does({.form = Form{.keeps_empty = true, .defaults = default_service},
                 .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
                 .rules = Rules{.name = validation::check_path_segment,  // The core group's end with a dot.
                                .has_foreign_finalizers = true,
                                .metadata_looks = kLooksAtBothAgain,
                                .create = validation::api_service,
                                .update = in_turn(validation::api_service),
                                .status = [](const Value&, const Value& doc, Errors& errors) { service_registration_status(doc, errors); }},
                 .printer = Printer{{{"Name"}, {"Service"}, {"Available"}, {"Age"}}, api_service_cells},
                 .selected = kDefault,
                 .scale = kDefault,
                 .life = Life{.update_needs_revision = true},
                 .counted = kDefault})};
}

}  // namespace berth::model::kinds
