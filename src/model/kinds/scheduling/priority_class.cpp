// PriorityClasses.
#include <map>

#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

constexpr std::int64_t kHighestUserPriority = 1'000'000'000;

/// The two that Kubernetes' own pods need (pkg/registry/scheduling/priorityclass/storage).
const std::map<std::string_view, std::int64_t>& system_classes() {
  static const std::map<std::string_view, std::int64_t> classes = {{"system-node-critical", 2000001000},
                                                                   {"system-cluster-critical", 2000000000}};
  return classes;
}

void default_class(Object& doc) { put(doc, "preemptionPolicy", "PreemptLowerPriority"); }

void check_class(const Value& doc, Errors& errors) {
  const std::string_view name = get_string(doc, {"metadata", "name"});
  const std::int64_t value = get_int(doc, {"value"});
  static const std::map<std::string_view, std::int64_t> kSystem = {{"system-node-critical", 2000001000},
                                                                   {"system-cluster-critical", 2000000000}};
  if (name.starts_with("system-")) {
    const auto found = kSystem.find(name);
    const Path meta("metadata");
    if (found == kSystem.end())
      errors.forbidden(meta / "name", "priority class names with 'system-' prefix are reserved for system use only. error: " +
                                          std::string(name) + " is not a known system priority class");
    else if (value != found->second || get_bool(doc, {"globalDefault"}))
      errors.forbidden(meta / "name", "priority class names with 'system-' prefix are reserved for system use only. error: value of " +
                                          std::string(name) + " PriorityClass must be " + fmt::format("{}", found->second));
  } else if (value > kHighestUserPriority) {
    errors.forbidden(Path("value"), fmt::format("maximum allowed value of a user defined priority is {}", kHighestUserPriority));
  }
  const std::string_view policy = get_string(doc, {"preemptionPolicy"}, "PreemptLowerPriority");
  if (policy.empty())
    errors.required(Path("preemptionPolicy"));
  else if (policy != "Never" && policy != "PreemptLowerPriority")
    errors.not_supported(Path("preemptionPolicy"), policy, {"PreemptLowerPriority", "Never"});
}

void check_class_update(const Value& old, const Value& doc, Errors& errors) {
  if (get_int(old, {"value"}) != get_int(doc, {"value"})) errors.forbidden(Path("value"), "may not be changed in an update.");
  immutable(old, doc, {"preemptionPolicy"}, Path("preemptionPolicy"), errors);
}

Array priority_class_cells(const Value& o, TimePoint now) {
  return {name_of(o), get_int(o, {"value"}), get_bool(o, {"globalDefault"}), age_of(o, now), Value(get_string(o, {"preemptionPolicy"}))};
}

std::shared_ptr<const KindHooks> class_hooks() {
  static const auto hooks =
      share({.form = Form{.defaults = default_class},
             // Nothing that counts can change.
             .strategy = Strategy{.is_new_generation = [](const Value&, const Value&, std::string_view) { return false; }},
             .rules = Rules{.create = check_class, .update = in_turn(check_class_update)},
             .printer = Printer{{{"Name"}, {"Value", 0, "integer"}, {"Global-Default", 0, "boolean"}, {"Age"}, {"PreemptionPolicy"}},
                                priority_class_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.undeletable =
                              [](std::string_view name) {
                                return system_classes().contains(name) ? "this is a system priority class and cannot be deleted" : "";
                              }},
             .counted = kDefault});
  return hooks;
}

Record record_of(std::string version) {
  Record out("scheduling.k8s.io", std::move(version), "PriorityClass", "priorityclasses");
  out.shorts({"pc"}).cluster().generation();
  return out;
}

}  // namespace

KindInfo priority_class() { return record_of("v1").does(class_hooks()); }
KindInfo priority_class_v1beta1() { return record_of("v1beta1").stored_as("scheduling.k8s.io", "v1").does(class_hooks()); }

}  // namespace berth::model::kinds
