// Leases.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void check_lease(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* duration = json::find(doc, {"spec", "leaseDurationSeconds"});
  if (duration != nullptr && get_int(doc, {"spec", "leaseDurationSeconds"}) <= 0)
    errors.invalid(at / "leaseDurationSeconds", *duration, "must be greater than 0");
  const Value* transitions = json::find(doc, {"spec", "leaseTransitions"});
  if (transitions != nullptr && get_int(doc, {"spec", "leaseTransitions"}) < 0)
    errors.invalid(at / "leaseTransitions", *transitions, "must be greater than or equal to 0");
}

Array lease_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"spec", "holderIdentity"})), age_of(o, now)}; }

}  // namespace

std::vector<KindInfo> coordination_group() {
  return {Record("coordination.k8s.io", "v1", "Lease", "leases")
              .does({.form = kDefault,
                     .strategy = kDefault,
                     .rules = Rules{.has_foreign_finalizers = true, .create = check_lease, .update = in_turn(check_lease)},
                     .printer = Printer{{{"Name"}, {"Holder"}, {"Age"}}, lease_cells},
                     .selected = kDefault,
                     .scale = kDefault,
                     .life = Life{.is_created_by_update = true, .update_needs_revision = true, .may_be_lost = true},
                     .counted = kDefault})};
}

}  // namespace berth::model::kinds
