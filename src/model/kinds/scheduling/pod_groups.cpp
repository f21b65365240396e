// Groups of pods that are scheduled together: PodGroups, and the Workloads that have templates of them.
#include "model/kinds/record.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

void default_mode(Object& spec) { put_string(spec, "disruptionMode", "Pod"); }

void default_group(Object& group) {
  if (Object* spec = child(group, "spec")) default_mode(*spec);
}

void default_templates(Object& workload) {
  Object* spec = child(workload, "spec");
  if (spec != nullptr) each(*spec, "podGroupTemplates", default_mode);
}

void check_group(const Value& group, Errors& errors) {
  if (const Value* spec = json::find(group, "spec")) validation::pod_group_spec(*spec, Path("spec"), errors);
}

void check_group_update(const Value& old, const Value& group, Errors& errors) {
  const Path at("spec");
  for (const char* key : {"podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode",
                          "priorityClassName", "priority"})
    validation::unchanged(old, group, {"spec", key}, at / key, errors);
}

void check_group_status(const Value&, const Value& group, Errors& errors) {
  const Path status("status");
  validation::conditions(get_array(group, {"status", "conditions"}), status / "conditions", errors);
  validation::group_claim_statuses(group, status / "resourceClaimStatuses", errors);
}

void check_workload(const Value& workload, Errors& errors) {
  const Path at("spec");
  if (const Value* reference = json::find(workload, {"spec", "controllerRef"}))
    validation::controller_reference(*reference, at / "controllerRef", errors);
  validation::pod_group_templates(get_array(workload, {"spec", "podGroupTemplates"}), at / "podGroupTemplates", errors);
}

void check_workload_update(const Value& old, const Value& workload, Errors& errors) {
  const Path at("spec");
  for (const char* key : {"controllerRef", "podGroupTemplates"}) validation::unchanged(old, workload, {"spec", key}, at / key, errors);
}

}  // namespace

KindInfo pod_group() {
  return Record("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups")
      .subs({"status"})
      .gated_by(Feature::kGenericWorkload)
      .does({.form = Form{.defaults = default_group},
             .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
             .rules = Rules{.create = check_group,
                            .update = in_turn(check_group_update),
                            .status = check_group_status,
                            .status_reads_rest = reads_status_alone},
             .printer = created_at_printer(),
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

KindInfo workload() {
  return Record("scheduling.k8s.io", "v1alpha2", "Workload", "workloads")
      .gated_by(Feature::kGenericWorkload)
      .does({.form = Form{.defaults = default_templates},
             .strategy = kDefault,
             .rules = Rules{.create = check_workload, .update = in_turn(check_workload_update)},
             .printer = created_at_printer(),
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
