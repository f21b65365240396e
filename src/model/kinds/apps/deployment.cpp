// Deployments.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

void default_deployment(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "replicas", 1);
  Object& strategy = make_child(spec, "strategy");
  put_string(strategy, "type", "RollingUpdate");
  if (string_at(strategy, "type") == "RollingUpdate") {
    Object& rolling = make_child(strategy, "rollingUpdate");
    put(rolling, "maxUnavailable", "25%");
    put(rolling, "maxSurge", "25%");
  }
  put(spec, "revisionHistoryLimit", 10);
  put(spec, "progressDeadlineSeconds", 600);
  defaults::pod_template(spec);
}

void check_deployment_spec(const Value& spec, const Path& at, Errors& errors) {
  validation::non_negative(spec, "replicas", at, errors);
  validation::selector_and_template(spec, at, "deployment", errors);
  validation::restart_always(spec, at, "ReplicaSet", errors);
  const Path strategy_at = at / "strategy";
  const std::string_view type = get_string(spec, {"strategy", "type"});
  if (type == "Recreate") {
    if (json::find(spec, {"strategy", "rollingUpdate"}) != nullptr)
      errors.forbidden(strategy_at / "rollingUpdate", "may not be specified when strategy `type` is 'Recreate'");
  } else if (type == "RollingUpdate") {
    const Path rolling = strategy_at / "rollingUpdate";
    const Value* surge = json::find(spec, {"strategy", "rollingUpdate", "maxSurge"});
    const Value* unavailable = json::find(spec, {"strategy", "rollingUpdate", "maxUnavailable"});
    if (unavailable != nullptr) validation::int_or_percent(*unavailable, rolling / "maxUnavailable", errors);
    if (surge != nullptr) validation::int_or_percent(*surge, rolling / "maxSurge", errors);
    if (validation::as_percent_or_zero(unavailable) == 0 && validation::as_percent_or_zero(surge) == 0 && unavailable != nullptr)
      errors.invalid(rolling / "maxUnavailable", *unavailable, "may not be 0 when `maxSurge` is 0");
    if (unavailable != nullptr) validation::not_over_all(*unavailable, rolling / "maxUnavailable", errors);
  } else {
    errors.not_supported_value(
        strategy_at, validation::shown_strategy(spec, "strategy", {{"maxUnavailable", "MaxUnavailable"}, {"maxSurge", "MaxSurge"}}),
        {"Recreate", "RollingUpdate"});
  }
  for (const char* key : {"minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"})
    validation::non_negative(spec, key, at, errors);
  if (json::find(spec, "progressDeadlineSeconds") != nullptr &&
      get_int(spec, {"progressDeadlineSeconds"}) <= get_int(spec, {"minReadySeconds"}))
    errors.invalid(at / "progressDeadlineSeconds", *json::find(spec, "progressDeadlineSeconds"), "must be greater than minReadySeconds");
}

Array deployment_cells(const Value& o, TimePoint now) {
  const auto [names, images] = tables::containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          fmt::format("{}/{}", get_int(o, {"status", "readyReplicas"}), get_int(o, {"spec", "replicas"})),
          get_int(o, {"status", "updatedReplicas"}),
          get_int(o, {"status", "availableReplicas"}),
          age_of(o, now),
          names,
          images,
          tables::selector_text(o, {"spec", "selector"})};
}

void check_deployment(const Value& doc, Errors& errors) { check_deployment_spec(validation::spec_of(doc), Path("spec"), errors); }

/// It hands its annotations on to its sets: a change of them is work as well.
bool is_new_deployment(const Value& old, const Value& doc, std::string_view subresource) {
  return !strategy::same_but_metadata_and_status(old, doc) ||
         (subresource.empty() && !json::equal(get_object(old, {"metadata", "annotations"}), get_object(doc, {"metadata", "annotations"})));
}

const validation::StatusCounters& deployment_counters() {
  static const validation::StatusCounters counters = {{"observedGeneration", "replicas", "updatedReplicas", "readyReplicas",
                                                       "availableReplicas", "unavailableReplicas", "collisionCount", "terminatingReplicas"},
                                                      {"updatedReplicas", "readyReplicas", "availableReplicas"},
                                                      "cannot be greater than readyReplicas"};
  return counters;
}

}  // namespace

KindInfo deployment() {
  return Record("apps", "v1", "Deployment", "deployments")
      .shorts({"deploy"})
      .categories({"all"})
      .subs({"scale", "status"})
      .generation()
      .does({.form = Form{.defaults = default_deployment},
             .strategy = Strategy{.kept_in_status_update = {"labels"}, .is_new_generation = is_new_deployment},
             .rules = Rules{.create = check_deployment,
                            .update = in_turn(check_deployment, validation::immutable_selector),
                            .status = [](const Value& old, const Value& doc,
                                         Errors& errors) { validation::status_counters(deployment_counters(), old, doc, errors); },
                            .status_reads_rest = reads_status_alone,
                            .warnings = named_workload_warnings},
             .printer =
                 Printer{{{"Name"}, {"Ready"}, {"Up-to-date"}, {"Available"}, {"Age"}, {"Containers", 1}, {"Images", 1}, {"Selector", 1}},
                         deployment_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
