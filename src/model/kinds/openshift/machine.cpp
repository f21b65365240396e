// Machines and MachineSets: custom resources where they come from, so their status updates move no metadata.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

Array machine_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          Value(get_string(o, {"status", "phase"})),
          Value(get_string(o, {"spec", "providerSpec", "value", "instanceType"})),
          Value(get_string(o, {"metadata", "labels", "machine.openshift.io/region"})),
          Value(get_string(o, {"metadata", "labels", "machine.openshift.io/zone"})),
          age_of(o, now),
          Value(get_string(o, {"status", "nodeRef", "name"}))};
}

Array machine_set_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          get_int(o, {"spec", "replicas"}),
          get_int(o, {"status", "replicas"}),
          get_int(o, {"status", "readyReplicas"}),
          get_int(o, {"status", "availableReplicas"}),
          age_of(o, now)};
}

}  // namespace

std::vector<KindInfo> machine_group() {
  return {Record("machine.openshift.io", "v1beta1", "Machine", "machines")
              .subs({"status"})
              .generation()
              .does({.form = kDefault,
                     .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
                     .rules = Rules{.has_foreign_finalizers = true},
                     .printer = Printer{{{"Name"}, {"Phase"}, {"Type"}, {"Region"}, {"Zone"}, {"Age"}, {"Node", 1}}, machine_cells},
                     .selected = kDefault,
                     .scale = kDefault,
                     .life = kDefault,
                     .counted = kDefault}),
          Record("machine.openshift.io", "v1beta1", "MachineSet", "machinesets")
              .subs({"scale", "status"})
              .generation()
              .does({.form = kDefault,
                     .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
                     .rules = Rules{.has_foreign_finalizers = true},
                     .printer = Printer{{{"Name"},
                                         {"Desired", 0, "integer"},
                                         {"Current", 0, "integer"},
                                         {"Ready", 0, "integer"},
                                         {"Available", 0, "integer"},
                                         {"Age"}},
                                        machine_set_cells},
                     .selected = kDefault,
                     .scale = kDefault,
                     .life = kDefault,
                     .counted = kDefault})};
}

}  // namespace berth::model::kinds
