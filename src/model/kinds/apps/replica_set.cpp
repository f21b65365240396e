// ReplicaSets.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

void default_replica_set(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "replicas", 1);
  defaults::pod_template(spec);
}

void check_replica_set_spec(const Value& spec, const Path& at, Errors& errors) {
  validation::non_negative(spec, "replicas", at, errors);
  validation::non_negative(spec, "minReadySeconds", at, errors);
  validation::selector_and_template(spec, at, "deployment", errors);
  validation::restart_always(spec, at, "ReplicaSet", errors);
}

Array replica_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = tables::containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"spec", "replicas"}),
          get_int(o, {"status", "replicas"}),
          get_int(o, {"status", "readyReplicas"}),
          age_of(o, now),
          names,
          images,
          tables::selector_text(o, {"spec", "selector"})};
}

void check_replica_set(const Value& doc, Errors& errors) { check_replica_set_spec(validation::spec_of(doc), Path("spec"), errors); }

void check_replica_set_status(const Value& old, const Value& doc, Errors& errors) {
  static const validation::StatusCounters kCounters = {
      {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration", "terminatingReplicas"},
      {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
      "cannot be greater than readyReplicas"};
  validation::status_counters(kCounters, old, doc, errors);
}

}  // namespace

KindInfo replica_set() {
  return Record("apps", "v1", "ReplicaSet", "replicasets")
      .shorts({"rs"})
      .categories({"all"})
      .subs({"scale", "status"})
      .generation()
      .does({.form = Form{.defaults = default_replica_set},
             .strategy = Strategy{.initial_status =
                                      [] {
                                        return Value{{"replicas", 0}};
                                      }},
             .rules = Rules{.create = check_replica_set,
                            .update = in_turn(check_replica_set, validation::immutable_selector),
                            .status = check_replica_set_status,
                            .status_reads_rest = reads_status_alone,
                            .warnings = named_workload_warnings},
             .printer = Printer{{{"Name"},
                                 {"Desired", 0, "integer"},
                                 {"Current", 0, "integer"},
                                 {"Ready", 0, "integer"},
                                 {"Age"},
                                 {"Containers", 1},
                                 {"Images", 1},
                                 {"Selector", 1}},
                                replica_set_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
