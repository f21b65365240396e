// HorizontalPodAutoscalers: v2 is stored, v2beta2 looks alike, v1 has one metric and says the rest in annotations.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

/// Version 1 knows one metric by itself; all others travel in an annotation.
void default_autoscaler_v1(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "minReplicas", 1);
  Object* meta = child(doc, "metadata");
  Object* annotations = meta == nullptr ? nullptr : child(*meta, "annotations");
  if (annotations == nullptr || !annotations->contains("autoscaling.alpha.kubernetes.io/metrics"))
    put(spec, "targetCPUUtilizationPercentage", 80);
}

void default_autoscaler(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "minReplicas", 1);
  if (list(spec, "metrics") == nullptr || list(spec, "metrics")->empty())
    spec["metrics"] =
        Array{Object{{"type", "Resource"},
                     {"resource", Object{{"name", "cpu"}, {"target", Object{{"type", "Utilization"}, {"averageUtilization", 80}}}}}}};
  Object* behavior = child(spec, "behavior");
  if (behavior == nullptr) return;
  const auto rules = [&](std::string_view key, bool up) {
    Object& one = make_child(*behavior, key);
    if (up) put(one, "stabilizationWindowSeconds", 0);
    put(one, "selectPolicy", "Max");
    if (list(one, "policies") == nullptr || list(one, "policies")->empty()) {
      Array policies{Object{{"type", "Percent"}, {"value", 100}, {"periodSeconds", 15}}};
      if (up) policies.insert(policies.begin(), Object{{"type", "Pods"}, {"value", 4}, {"periodSeconds", 15}});
      one["policies"] = std::move(policies);
    }
  };
  rules("scaleUp", true);
  rules("scaleDown", false);
}

constexpr std::string_view kMetricsAnnotation = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kBehaviorAnnotation = "autoscaling.alpha.kubernetes.io/behavior";
constexpr std::string_view kConditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions";

bool is_cpu_utilization(const Value& metric) {
  return json::get_string(metric, {"type"}) == "Resource" && json::get_string(metric, {"resource", "name"}) == "cpu" &&
         json::find(metric, {"resource", "target", "averageUtilization"}) != nullptr;
}

void hpa_v1_to_v2(Value& doc) {
  json::Array metrics;
  if (const Value* target = json::find(doc, {"spec", "targetCPUUtilizationPercentage"})) {
    metrics.push_back(
        {{"type", "Resource"}, {"resource", {{"name", "cpu"}, {"target", {{"type", "Utilization"}, {"averageUtilization", *target}}}}}});
    json::erase(doc, {"spec", "targetCPUUtilizationPercentage"});
  }
  // What v1 cannot say travels in annotations.
  const auto take = [&](std::string_view annotation) -> std::optional<Value> {
    const std::string text(json::get_string(doc, {"metadata", "annotations", annotation}));
    if (text.empty()) return std::nullopt;
    auto parsed = json::parse(text);
    if (!parsed) return std::nullopt;
    json::erase(doc, {"metadata", "annotations", annotation});
    return std::move(*parsed);
  };
  if (auto more = take(kMetricsAnnotation); more && more->is_array())
    for (Value& metric : more->get_array()) metrics.push_back(std::move(metric));
  if (auto behavior = take(kBehaviorAnnotation); behavior && behavior->is_object())
    json::set(doc, {"spec", "behavior"}, std::move(*behavior));
  if (!metrics.empty()) json::set(doc, {"spec", "metrics"}, std::move(metrics));
  if (const Value* current = json::find(doc, {"status", "currentCPUUtilizationPercentage"})) {
    Value copy = *current;
    json::erase(doc, {"status", "currentCPUUtilizationPercentage"});
    json::set(doc, {"status", "currentMetrics"},
              json::Array{
                  Object{{"type", "Resource"},
                         {"resource", Object{{"name", "cpu"}, {"current", Object{{"averageUtilization", copy}, {"averageValue", "0"}}}}}}});
  }
  if (auto conditions = take(kConditionsAnnotation); conditions && conditions->is_array())
    json::set(doc, {"status", "conditions"}, std::move(*conditions));
}

void hpa_v2_to_v1(Value& doc) {
  json::Array others;
  for (const Value& metric : json::get_array(doc, {"spec", "metrics"})) {
    if (is_cpu_utilization(metric))
      json::set(doc, {"spec", "targetCPUUtilizationPercentage"}, metric.at("resource").at("target").at("averageUtilization"));
    else
      others.push_back(metric);
  }
  json::erase(doc, {"spec", "metrics"});
  const auto annotate = [&](std::string_view annotation, const Value& value) {
    json::set(doc, {"metadata", "annotations", annotation}, Value(json::serialize(value)));
  };
  if (!others.empty()) annotate(kMetricsAnnotation, others);
  if (const Value* behavior = json::find(doc, {"spec", "behavior"})) {
    annotate(kBehaviorAnnotation, Value(*behavior));
    json::erase(doc, {"spec", "behavior"});
  }
  for (const Value& metric : json::get_array(doc, {"status", "currentMetrics"}))
    if (json::get_string(metric, {"resource", "name"}) == "cpu")
      if (const Value* current = json::find(metric, {"resource", "current", "averageUtilization"})) {
        json::set(doc, {"status", "currentCPUUtilizationPercentage"}, Value(*current));
        break;
      }
  json::erase(doc, {"status", "currentMetrics"});
  if (const Value* conditions = json::find(doc, {"status", "conditions"})) {
    annotate(kConditionsAnnotation, Value(*conditions));
    json::erase(doc, {"status", "conditions"});
  }
}

void autoscaler_status(const Value& doc, Errors& errors) {
  const Path at("status");
  for (const char* key : {"currentReplicas", "desiredReplicas"})
    if (const std::int64_t count = get_int(doc, {"status", key}); count < 0) errors.invalid(at / key, Value(count), kNegative);
}

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

std::vector<Column> autoscaler_columns() { return {{"Name"}, {"Reference"}, {"Targets"}, {"MinPods"}, {"MaxPods"}, {"Replicas"}, {"Age"}}; }

Rules autoscaler_rules() {
  return {.create = [](const Value& doc, Errors& errors) { validation::horizontal_pod_autoscaler(nullptr, doc, errors); },
          .update =
              in_turn([](const Value& old, const Value& doc, Errors& errors) { validation::horizontal_pod_autoscaler(&old, doc, errors); }),
          .status = [](const Value&, const Value& doc, Errors& errors) { autoscaler_status(doc, errors); },
          .status_reads_rest = reads_status_alone};
}

std::shared_ptr<const KindHooks> v2_hooks() {
  static const auto hooks = share({.form = Form{.defaults = default_autoscaler},
                                   .strategy = Strategy{.initial_status =
                                                            [] {
                                                              return Value{{"desiredReplicas", 0}, {"currentMetrics", nullptr}};
                                                            }},
                                   .rules = autoscaler_rules(),
                                   .printer = Printer{autoscaler_columns(), hpa_cells},
                                   .selected = kDefault,
                                   .scale = kDefault,
                                   .life = kDefault,
                                   .counted = kDefault});
  return hooks;
}

Record autoscaler(std::string version) {
  Record out("autoscaling", std::move(version), "HorizontalPodAutoscaler", "horizontalpodautoscalers");
  out.shorts({"hpa"}).categories({"all"}).subs({"status"});
  return out;
}

}  // namespace

std::vector<KindInfo> autoscaling_group() {
  return {autoscaler("v2").does(v2_hooks()),
          autoscaler("v1")
              .stored_as("autoscaling", "v2")
              .does({.form = Form{.defaults = default_autoscaler_v1, .to_storage = hpa_v1_to_v2, .from_storage = hpa_v2_to_v1},
                     .strategy = Strategy{.initial_status =
                                              [] {
                                                return Value{{"currentReplicas", 0}, {"desiredReplicas", 0}};
                                              }},
                     .rules = autoscaler_rules(),
                     .printer = Printer{autoscaler_columns(), hpa_v1_cells},
                     .selected = kDefault,
                     .scale = kDefault,
                     .life = kDefault,
                     .counted = kDefault}),
          autoscaler("v2beta2").stored_as("autoscaling", "v2").does(v2_hooks())};
}

}  // namespace berth::model::kinds
