// ReplicationControllers.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"
#include "model/selector.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

void default_controller(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "replicas", 1);
  defaults::labels_from_template(doc, true);
  defaults::pod_template(spec);
}

void check_controller_spec(const Value& spec, const Path& at, Errors& errors) {
  validation::non_negative(spec, "replicas", at, errors);
  validation::non_negative(spec, "minReadySeconds", at, errors);
  const json::Object& selector = get_object(spec, {"selector"});
  if (selector.empty())
    errors.required(at / "selector");
  else if (const Value* map = json::find(spec, "selector");
           json::find(spec, "template") != nullptr &&
           !Selector::from_map(map).matches(Labels::from_json(json::find(spec, {"template", "metadata", "labels"})))) {
    const Value* labels_value = json::find(spec, {"template", "metadata", "labels"});
    errors.invalid(at / "template" / "metadata" / "labels", validation::shown_labels(labels_value),
                   "`selector` does not match template `labels`");
  }
  if (json::find(spec, "template") == nullptr)
    errors.required(at / "template");
  else
    validation::pod_template(spec, at, errors);
  validation::restart_always(spec, at, "ReplicationController", errors);
}

Array replication_controller_cells(const Value& o, TimePoint now) {
  const auto [names, images] = tables::containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"spec", "replicas"}),
          get_int(o, {"status", "replicas"}),
          get_int(o, {"status", "readyReplicas"}),
          age_of(o, now),
          names,
          images,
          tables::map_text(get_object(o, {"spec", "selector"}))};
}

void check_controller(const Value& doc, Errors& errors) { check_controller_spec(validation::spec_of(doc), Path("spec"), errors); }

}  // namespace

KindInfo replication_controller() {
  static const validation::StatusCounters kCounters = {
      {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"},
      {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
      "cannot be greater than readyReplicas"};
  return Record("", "v1", "ReplicationController", "replicationcontrollers")
      .shorts({"rc"})
      .categories({"all"})
      .subs({"scale", "status"})
      .fields({"status.replicas"})
      .generation()
      .does({.form = Form{.defaults = default_controller},
             .strategy = Strategy{.initial_status =
                                      [] {
                                        return Value{{"replicas", 0}};
                                      }},
             .rules = Rules{.create = check_controller,
                            .update = in_turn(check_controller),
                            .status = [](const Value& old, const Value& doc,
                                         Errors& errors) { validation::status_counters(kCounters, old, doc, errors); },
                            .warnings = named_workload_warnings},
             .printer = Printer{{{"Name"},
                                 {"Desired", 0, "integer"},
                                 {"Current", 0, "integer"},
                                 {"Ready", 0, "integer"},
                                 {"Age"},
                                 {"Containers", 1},
                                 {"Images", 1},
                                 {"Selector", 1}},
                                replication_controller_cells},
             .selected = std::vector<SelectedField>{{.name = "status.replicas", .absent = "0"}},
             .scale = Scale{.selector_form = Scale::Selector::kMap},
             .life = Life{.orphans_by_default = true, .etcd_prefix = "controllers"},
             .counted = Counted{.by_plural = true}});
}

}  // namespace berth::model::kinds
