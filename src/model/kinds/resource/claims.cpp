// ResourceClaims and their templates.
#include <map>

#include "model/devices.h"
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

/// "allocated,reserved", as far as it has come.
Array resource_claim_cells(const Value& o, TimePoint now) {
  const bool is_going = json::find(o, {"metadata", "deletionTimestamp"}) != nullptr;
  std::vector<std::string> states;
  if (is_going) states.emplace_back("deleted");
  if (json::find(o, {"status", "allocation"}) == nullptr) {
    if (!is_going) states.emplace_back("pending");
  } else {
    states.emplace_back("allocated");
    if (!get_array(o, {"status", "reservedFor"}).empty()) states.emplace_back("reserved");
  }
  return {name_of(o), join(states), age_of(o, now)};
}

/// Devices by class: those of alternatives as many as the dearest of them asks for; all of them as many as a claim can hold. They count as
/// the resource too by which a pod may ask for devices of the class, but for claims that stand for just that: their pods count it.
void add_devices(const json::Value& claim, ResourceAmounts& usage) {
  constexpr std::int64_t kMostResults = 32;
  const auto count = [](const json::Value& request) {
    const auto mode = json::get_string(request, {"allocationMode"});
    return mode == "All" ? kMostResults : mode == "ExactCount" ? json::get_int(request, {"count"}) : 0;
  };
  std::map<std::string, std::int64_t> total;
  for (const auto& request : json::get_array(claim, {"spec", "devices", "requests"})) {
    std::map<std::string, std::int64_t> most;
    for (const auto& sub : json::get_array(request, {"firstAvailable"})) {
      auto& devices = most[std::string(json::get_string(sub, {"deviceClassName"}))];
      devices = std::max(devices, count(sub));
    }
    if (const auto* exactly = json::find(request, "exactly"); exactly != nullptr && most.empty())
      most[std::string(json::get_string(*exactly, {"deviceClassName"}))] = count(*exactly);
    for (const auto& [name, devices] : most) total[name] += devices;
  }
  const bool stands_for_resources =
      json::get_string(claim, {"metadata", "annotations", "resource.kubernetes.io/extended-resource-claim"}) == "true";
  for (const auto& [name, devices] : total) {
    usage[name + ".deviceclass.resource.k8s.io/devices"] = Quantity::from_value(devices);
    if (!stands_for_resources) usage["requests.deviceclass.resource.kubernetes.io/" + name] = Quantity::from_value(devices);
  }
}

void same_spec(const Value& old, const Value& doc, Errors& errors) {
  immutable(old, doc, {"spec"}, Path("spec"), errors, "resource.v1.ResourceClaimSpec");
}
void same_template(const Value& old, const Value& doc, Errors& errors) {
  immutable(old, doc, {"spec"}, Path("spec"), errors, "resource.v1.ResourceClaimTemplateSpec");
}

}  // namespace

KindInfo resource_claim() {
  return Record("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
      .subs({"status"})
      .does({.form = Form{.defaults = devices::default_claim},
             .strategy = Strategy{.prepare_status = [](const Value& old, Value& doc,
                                                       std::string_view) { devices::drop_deallocated_statuses(old, doc); },
                                  .kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
             // A stored spec never changes: nothing else is said of it.
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = validation::resource_claim,
                            .update = in_turn(same_spec),
                            .status = validation::resource_claim_status},
             .printer = Printer{{{"Name"}, {"State"}, {"Age"}}, resource_claim_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = Counted{.usage = add_devices, .is_of_devices = true}});
}

KindInfo resource_claim_template() {
  return Record("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
      .does({.form = Form{.defaults = devices::default_claim_template},
             .strategy = kDefault,
             .rules = Rules{.create = validation::resource_claim_template,
                            .update = in_turn(validation::resource_claim_template, same_template)},
             .printer = kDefault,
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
