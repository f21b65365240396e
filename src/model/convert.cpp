// Between the API versions that share one storage.
#include "model/kind_hooks.h"

namespace berth::model {
namespace {

using json::Object;
using json::Value;

void move_member(Object& object, std::string_view from, std::string_view to) {
  const auto found = object.find(from);
  if (found == object.end()) return;
  Value value = std::move(found->value());
  object.erase(from);
  object[to] = std::move(value);
}

// core/v1 Event <-> events.k8s.io/v1 Event: the same facts under other names.
constexpr std::pair<std::string_view, std::string_view> kEventFields[] = {{"involvedObject", "regarding"},
                                                                          {"message", "note"},
                                                                          {"reportingComponent", "reportingController"},
                                                                          {"source", "deprecatedSource"},
                                                                          {"firstTimestamp", "deprecatedFirstTimestamp"},
                                                                          {"lastTimestamp", "deprecatedLastTimestamp"},
                                                                          {"count", "deprecatedCount"}};

void event_to_core(Object& event) {
  for (const auto& [core, events] : kEventFields) move_member(event, events, core);
}

void event_from_core(Object& event) {
  for (const auto& [core, events] : kEventFields) move_member(event, core, events);
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

constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

json::Array* endpoints_of(Value& doc) {
  Value* endpoints = json::find(doc, {"endpoints"});
  return endpoints != nullptr ? endpoints->if_array() : nullptr;
}

/// v1beta1 tells zone and node in a map of labels.
void slice_from_v1beta1(Value& doc) {
  json::Array* endpoints = endpoints_of(doc);
  if (endpoints == nullptr) return;
  for (Value& endpoint : *endpoints) {
    if (!endpoint.is_object()) continue;
    Object topology = json::get_object(endpoint, {"topology"});
    endpoint.get_object().erase("topology");
    for (const auto& [label, field] : {std::pair{kZoneLabel, "zone"}, {kHostnameLabel, "nodeName"}}) {
      const Value* value = topology.if_contains(label);
      if (value == nullptr) continue;
      if (!endpoint.get_object().contains(field)) endpoint.get_object()[field] = *value;
      topology.erase(label);
    }
    if (!topology.empty()) endpoint.get_object()["deprecatedTopology"] = std::move(topology);
  }
}

void slice_to_v1beta1(Value& doc) {
  json::Array* endpoints = endpoints_of(doc);
  if (endpoints == nullptr) return;
  for (Value& endpoint : *endpoints) {
    if (!endpoint.is_object()) continue;
    Object topology = json::get_object(endpoint, {"deprecatedTopology"});
    endpoint.get_object().erase("deprecatedTopology");
    if (const Value* zone = json::find(endpoint, {"zone"})) topology[kZoneLabel] = *zone;
    if (const Value* node = json::find(endpoint, {"nodeName"})) topology[kHostnameLabel] = *node;
    endpoint.get_object().erase("zone");
    if (!topology.empty()) endpoint.get_object()["topology"] = std::move(topology);
  }
}

}  // namespace

void convert(const KindInfo& from, const KindInfo& to, Value& doc) {
  if (!doc.is_object() || (from.group == to.group && from.version == to.version)) return;
  if (const auto& up = hooks_of(from).form->to_storage; up && from.stored != nullptr) up(doc);
  if (const auto& down = hooks_of(to).form->from_storage; down && to.stored != nullptr) down(doc);
  if (from.kind == "Event") {
    if (to.group.empty())
      event_to_core(doc.get_object());
    else
      event_from_core(doc.get_object());
  } else if (from.kind == "HorizontalPodAutoscaler") {
    if (from.version == "v1")
      hpa_v1_to_v2(doc);
    else if (to.version == "v1")
      hpa_v2_to_v1(doc);
  } else if (from.kind == "EndpointSlice") {
    if (from.version == "v1beta1")
      slice_from_v1beta1(doc);
    else
      slice_to_v1beta1(doc);
  }
  doc.get_object()["apiVersion"] = to.api_version();
  doc.get_object()["kind"] = to.kind;
}

}  // namespace berth::model
