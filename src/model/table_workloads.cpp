// Cells of workloads, budgets and autoscalers.
#include <fmt/format.h>

#include "base/clock.h"
#include "model/quantity.h"
#include "model/selector.h"
#include "model/table_cells.h"
#include "model/table_printers.h"
#include "model/tables.h"

namespace berth::model::tables {

using json::Array;
using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;

Array deployment_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          fmt::format("{}/{}", get_int(o, {"status", "readyReplicas"}), get_int(o, {"spec", "replicas"})),
          get_int(o, {"status", "updatedReplicas"}),
          get_int(o, {"status", "availableReplicas"}),
          age_of(o, now),
          names,
          images,
          selector_text(o, {"spec", "selector"})};
}

Array replica_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"spec", "replicas"}),
          get_int(o, {"status", "replicas"}),
          get_int(o, {"status", "readyReplicas"}),
          age_of(o, now),
          names,
          images,
          selector_text(o, {"spec", "selector"})};
}

Array stateful_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o), fmt::format("{}/{}", get_int(o, {"status", "readyReplicas"}), get_int(o, {"spec", "replicas"})), age_of(o, now),
          names, images};
}

Array daemon_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"status", "desiredNumberScheduled"}),
          get_int(o, {"status", "currentNumberScheduled"}),
          get_int(o, {"status", "numberReady"}),
          get_int(o, {"status", "updatedNumberScheduled"}),
          get_int(o, {"status", "numberAvailable"}),
          map_text(get_object(o, {"spec", "template", "spec", "nodeSelector"})),
          age_of(o, now),
          names,
          images,
          selector_text(o, {"spec", "selector"})};
}

Array job_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  const std::int64_t succeeded = get_int(o, {"status", "succeeded"});
  const Value* completions = json::find(o, {"spec", "completions"});
  const std::int64_t parallelism = get_int(o, {"spec", "parallelism"});
  const std::string done = completions != nullptr ? fmt::format("{}/{}", succeeded, get_int(o, {"spec", "completions"}))
                           : parallelism > 1      ? fmt::format("{}/1 of {}", succeeded, parallelism)
                                                  : fmt::format("{}/1", succeeded);
  std::string duration;
  if (const auto start = parse_rfc3339(get_string(o, {"status", "startTime"}))) {
    const auto end = parse_rfc3339(get_string(o, {"status", "completionTime"}));
    duration = human_duration((end ? *end : now) - *start);
  }
  std::string status = json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : "Running";
  for (const Value& condition : get_array(o, {"status", "conditions"})) {
    if (get_string(condition, {"status"}) != "True") continue;
    const std::string_view type = get_string(condition, {"type"});
    if (type == "Complete" || type == "Failed" || type == "Suspended")
      status = type;
    else if ((type == "FailureTarget" || type == "SuccessCriteriaMet") && status == "Running")
      status = type;
  }
  return {name_of(o), status, done, duration, age_of(o, now), names, images, selector_text(o, {"spec", "selector"})};
}

Array cron_job_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "jobTemplate", "spec", "template", "spec", "containers"}));
  const std::string_view last = get_string(o, {"status", "lastScheduleTime"});
  return {name_of(o),
          Value(get_string(o, {"spec", "schedule"})),
          or_none(get_string(o, {"spec", "timeZone"})),
          get_bool(o, {"spec", "suspend"}) ? "True" : "False",
          get_array(o, {"status", "active"}).size(),
          last.empty() ? "<none>" : human_age(last, now),
          age_of(o, now),
          names,
          images,
          selector_text(o, {"spec", "jobTemplate", "spec", "selector"})};
}

namespace {

std::string int_or_string(const Value* value) {
  if (value == nullptr) return "N/A";
  return value->is_string() ? std::string(json::as_view(*value)) : json::serialize(*value);
}

}  // namespace

Array budget_cells(const Value& o, TimePoint now) {
  return {name_of(o), int_or_string(json::find(o, {"spec", "minAvailable"})), int_or_string(json::find(o, {"spec", "maxUnavailable"})),
          get_int(o, {"status", "disruptionsAllowed"}), age_of(o, now)};
}

namespace {

std::string hpa_targets(const Value& o) {
  std::vector<std::string> parts;
  const Array& current = get_array(o, {"status", "currentMetrics"});
  const Array& metrics = get_array(o, {"spec", "metrics"});
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    std::string source(get_string(metrics[i], {"type"}));
    if (!source.empty()) source[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(source[0])));
    const std::string name(get_string(metrics[i], {source, "name"}));
    std::string now_text = "<unknown>", wanted;
    if (const Value* utilization = json::find(metrics[i], {source, "target", "averageUtilization"})) {
      wanted = json::serialize(*utilization) + "%";
      if (i < current.size())
        if (const Value* value = json::find(current[i], {source, "current", "averageUtilization"}))
          now_text = json::serialize(*value) + "%";
    } else {
      wanted = get_string(metrics[i], {source, "target", "averageValue"}, get_string(metrics[i], {source, "target", "value"}));
      if (i < current.size()) now_text = get_string(current[i], {source, "current", "averageValue"}, "<unknown>");
    }
    parts.push_back(name.empty() ? fmt::format("{}/{}", now_text, wanted) : fmt::format("{}: {}/{}", name, now_text, wanted));
  }
  if (parts.empty()) return "<none>";
  constexpr std::size_t kShown = 2;
  const std::size_t hidden = parts.size() > kShown ? parts.size() - kShown : 0;
  parts.resize(parts.size() - hidden);
  return hidden == 0 ? join(parts, ", ") : fmt::format("{} + {} more...", join(parts, ", "), hidden);
}

}  // namespace

Array hpa_cells(const Value& o, TimePoint now) {
  const Value* minimum = json::find(o, {"spec", "minReplicas"});
  return {name_of(o),
          fmt::format("{}/{}", get_string(o, {"spec", "scaleTargetRef", "kind"}), get_string(o, {"spec", "scaleTargetRef", "name"})),
          hpa_targets(o),
          minimum == nullptr ? "<unset>" : json::serialize(*minimum),
          get_int(o, {"spec", "maxReplicas"}),
          get_int(o, {"status", "currentReplicas"}),
          age_of(o, now)};
}

Array hpa_v1_cells(const Value& o, TimePoint now) {
  const Value* target = json::find(o, {"spec", "targetCPUUtilizationPercentage"});
  const Value* current = json::find(o, {"status", "currentCPUUtilizationPercentage"});
  const std::string targets =
      target == nullptr
          ? "<none>"
          : fmt::format("cpu: {}/{}%", current == nullptr ? "<unknown>" : json::serialize(*current) + "%", json::serialize(*target));
  const Value* minimum = json::find(o, {"spec", "minReplicas"});
  return {name_of(o),
          fmt::format("{}/{}", get_string(o, {"spec", "scaleTargetRef", "kind"}), get_string(o, {"spec", "scaleTargetRef", "name"})),
          targets,
          minimum == nullptr ? "<unset>" : json::serialize(*minimum),
          get_int(o, {"spec", "maxReplicas"}),
          get_int(o, {"status", "currentReplicas"}),
          age_of(o, now)};
}

}  // namespace berth::model::tables
