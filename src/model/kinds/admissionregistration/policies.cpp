// ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their bindings.
#include "model/kinds/record.h"
#include "model/validation/mutating_policy.h"

namespace berth::model::kinds {
namespace {

void match_resources(Object& spec, std::string_view field) {
  Object* match = child(spec, field);
  if (match == nullptr) return;
  put(*match, "matchPolicy", "Equivalent");
  put(*match, "namespaceSelector", Object());
  put(*match, "objectSelector", Object());
  each(*match, "resourceRules", [](Object& rule) { put(rule, "scope", "*"); });
  each(*match, "excludeResourceRules", [](Object& rule) { put(rule, "scope", "*"); });
}

void default_policy(Object& doc) {
  Object* spec = child(doc, "spec");
  if (spec == nullptr) return;
  put(*spec, "failurePolicy", "Fail");
  match_resources(*spec, "matchConstraints");
}

void default_binding(Object& doc) {
  if (Object* spec = child(doc, "spec")) match_resources(*spec, "matchResources");
}

Array policy_cells(const Value& o, TimePoint now) {
  const Value* kind = json::find(o, {"spec", "paramKind"});
  return {name_of(o), get_array(o, {"spec", "validations"}).size(),
          kind == nullptr ? "<unset>" : fmt::format("{}/{}", get_string(*kind, {"apiVersion"}), get_string(*kind, {"kind"})),
          age_of(o, now)};
}

Array mutating_policy_cells(const Value& o, TimePoint now) {
  const Value* kind = json::find(o, {"spec", "paramKind"});
  return {name_of(o), get_array(o, {"spec", "mutations"}).size(),
          kind == nullptr ? "<unset>" : fmt::format("{}/{}", get_string(*kind, {"apiVersion"}), get_string(*kind, {"kind"})),
          age_of(o, now)};
}

Array policy_binding_cells(const Value& o, TimePoint now) {
  std::string param = "<unset>";
  if (const std::string_view name = get_string(o, {"spec", "paramRef", "name"}); !name.empty()) {
    const std::string_view ns = get_string(o, {"spec", "paramRef", "namespace"});
    param = fmt::format("{}/{}", ns.empty() ? "*" : ns, name);
  }
  return {name_of(o), get_string(o, {"spec", "policyName"}), param, age_of(o, now)};
}

}  // namespace

KindInfo validating_policy() {
  return Record("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
      .categories({"api-extensions"})
      .cluster()
      .subs({"status"})
      .generation()
      .does({.form = Form{.defaults = default_policy},
             .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
             .rules = Rules{.has_foreign_finalizers = true,
                            .metadata_looks = kLooksAtAllAgain,
                            .create = validation::validating_admission_policy,
                            .update = in_turn(validation::validating_admission_policy)},
             .printer = Printer{{{"Name"}, {"Validations", 0, "integer"}, {"ParamKind"}, {"Age"}}, policy_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.update_needs_revision = true},
             .counted = kDefault});
}

static KindInfo without_status(std::string kind, std::string plural, void (*defaults)(Object&), void (*check)(const Value&, Errors&),
                               Printer printer) {
  return Record("admissionregistration.k8s.io", "v1", std::move(kind), std::move(plural))
      .categories({"api-extensions"})
      .cluster()
      .generation()
      .does({.form = Form{.defaults = defaults},
             .strategy = kDefault,
             .rules = Rules{.has_foreign_finalizers = true, .metadata_looks = kLooksAtAllAgain, .create = check, .update = in_turn(check)},
             .printer = std::move(printer),
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.update_needs_revision = true},
             .counted = kDefault});
}

KindInfo mutating_policy() {
  return without_status("MutatingAdmissionPolicy", "mutatingadmissionpolicies", default_policy, validation::mutating_admission_policy,
                        {{{"Name"}, {"Mutations", 0, "integer"}, {"ParamKind"}, {"Age"}}, mutating_policy_cells});
}

KindInfo mutating_policy_binding() {
  return without_status("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", default_binding,
                        validation::mutating_policy_binding, {{{"Name"}, {"PolicyName"}, {"ParamRef"}, {"Age"}}, policy_binding_cells});
}

KindInfo validating_policy_binding() {
  return without_status("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", default_binding,
                        validation::policy_binding, {{{"Name"}, {"PolicyName"}, {"ParamRef"}, {"Age"}}, policy_binding_cells});
}

}  // namespace berth::model::kinds
