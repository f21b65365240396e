// DaemonSets.
#include <charconv>

#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

/// extensions/v1beta1's templateGeneration, which apps/v1 shows as an annotation.
constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

void default_daemon_set(Object& doc) {
  // Whoever writes the object owns it, for its conversion always says the count.
  put_string(make_child(make_child(doc, "metadata"), "annotations"), kTemplateGeneration, "0");
  Object& spec = make_child(doc, "spec");
  Object& strategy = make_child(spec, "updateStrategy");
  put_string(strategy, "type", "RollingUpdate");
  if (string_at(strategy, "type") == "RollingUpdate") {
    Object& rolling = make_child(strategy, "rollingUpdate");
    put(rolling, "maxUnavailable", 1);
    put(rolling, "maxSurge", 0);
  }
  put(spec, "revisionHistoryLimit", 10);
  defaults::pod_template(spec);
}

void check_daemon_set_spec(const Value& spec, const Path& at, Errors& errors) {
  validation::non_negative(spec, "revisionHistoryLimit", at, errors);
  validation::selector_and_template(spec, at, "daemonset", errors);
  validation::restart_always(spec, at, "DaemonSet", errors);
  validation::non_negative(spec, "minReadySeconds", at, errors);
  const std::string_view type = get_string(spec, {"updateStrategy", "type"});
  if (type != "RollingUpdate" && type != "OnDelete")
    errors.not_supported_value(
        at / "updateStrategy",
        validation::shown_strategy(spec, "updateStrategy", {{"maxUnavailable", "MaxUnavailable"}, {"maxSurge", "MaxSurge"}}),
        {"RollingUpdate", "OnDelete"});
  if (const Value* rolling = json::find(spec, {"updateStrategy", "rollingUpdate"}); rolling != nullptr && type == "RollingUpdate") {
    const Path strategy_at = at / "updateStrategy";
    const Path here = strategy_at / "rollingUpdate";
    for (const char* key : {"maxUnavailable", "maxSurge"})
      if (const Value* value = json::find(*rolling, key)) {
        validation::int_or_percent(*value, here / key, errors);
        validation::not_over_all(*value, here / key, errors);
      }
    const Value* surge = json::find(*rolling, "maxSurge");
    const bool has_unavailable = validation::as_percent_or_zero(json::find(*rolling, "maxUnavailable")) != 0,
               has_surge = validation::as_percent_or_zero(surge) != 0;
    if (has_unavailable && has_surge)
      errors.invalid(here / "maxSurge", *surge, "may not be set when maxUnavailable is non-zero");
    else if (!has_unavailable && !has_surge)
      errors.required(here / "maxUnavailable", "cannot be 0 when maxSurge is 0");
  }
}

Array daemon_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = tables::containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"status", "desiredNumberScheduled"}),
          get_int(o, {"status", "currentNumberScheduled"}),
          get_int(o, {"status", "numberReady"}),
          get_int(o, {"status", "updatedNumberScheduled"}),
          get_int(o, {"status", "numberAvailable"}),
          tables::map_text(get_object(o, {"spec", "template", "spec", "nodeSelector"})),
          age_of(o, now),
          names,
          images,
          tables::selector_text(o, {"spec", "selector"})};
}

void count_template_generation(const Value& old, Value& doc) {
  std::int64_t generation = 1;
  const std::string_view before = json::get_string(old, {"metadata", "annotations", kTemplateGeneration});
  std::from_chars(before.data(), before.data() + before.size(), generation);
  const Value *was = json::find(old, {"spec", "template"}), *is = json::find(doc, {"spec", "template"});
  if (was != nullptr && is != nullptr && !json::equal(*was, *is)) ++generation;
  json::set(doc, {"metadata", "annotations", kTemplateGeneration}, Value(std::to_string(generation)));
}

void keep_template_generation(const Value& old, Value& doc) {
  json::set(doc, {"metadata", "annotations", kTemplateGeneration},
            Value(json::get_string(old, {"metadata", "annotations", kTemplateGeneration})));
}

void check_daemon_set(const Value& doc, Errors& errors) { check_daemon_set_spec(validation::spec_of(doc), Path("spec"), errors); }

void check_daemon_set_status(const Value& old, const Value& doc, Errors& errors) {
  static const validation::StatusCounters kCounters = {
      {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
       "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"},
      {},
      {}};
  validation::status_counters(kCounters, old, doc, errors);
}

}  // namespace

KindInfo daemon_set() {
  return Record("apps", "v1", "DaemonSet", "daemonsets")
      .shorts({"ds"})
      .categories({"all"})
      .subs({"status"})
      .generation()
      .does({.form = Form{.defaults = default_daemon_set},
             .strategy = Strategy{
                 .initial_status =
                     [] {
                       return Value{
                           {"currentNumberScheduled", 0}, {"numberMisscheduled", 0}, {"desiredNumberScheduled", 0}, {"numberReady", 0}};
                     },
                 .prepare_create =
                     [](Value& doc) {
                       json::set(doc, {"metadata", "annotations", kTemplateGeneration}, "1");
                     },
                 .prepare_update = [](const Value& old, Value& doc, std::string_view) { count_template_generation(old, doc); },
                 .prepare_status = [](const Value& old, Value& doc, std::string_view) { keep_template_generation(old, doc); }},
             .rules = Rules{.create = check_daemon_set,
                            .update = in_turn(validation::immutable_selector, check_daemon_set),
                            .status = check_daemon_set_status,
                            .status_reads_rest = reads_status_alone,
                            .warnings = workload_warnings},
             .printer = Printer{{{"Name"},
                                 {"Desired", 0, "integer"},
                                 {"Current", 0, "integer"},
                                 {"Ready", 0, "integer"},
                                 {"Up-to-date", 0, "integer"},
                                 {"Available", 0, "integer"},
                                 {"Node Selector"},
                                 {"Age"},
                                 {"Containers", 1},
                                 {"Images", 1},
                                 {"Selector", 1}},
                                daemon_set_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
