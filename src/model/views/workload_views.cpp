#include "model/views/workload_views.h"

#include <algorithm>

namespace berth::model {

ServiceView ServiceView::parse(const json::Value& object) {
  ServiceView out;
  out.meta = ObjectMeta::parse(object);
  const auto* selector = json::find(object, {"spec", "selector"});
  out.has_selector = selector != nullptr && selector->is_object();
  out.selector = out.has_selector ? Selector::from_map(selector) : Selector::nothing();
  return out;
}

WorkloadView WorkloadView::parse(const json::Value& object) {
  WorkloadView out;
  out.kind = std::string(json::get_string(object, {"kind"}));
  out.meta = ObjectMeta::parse(object);
  const auto* selector = json::find(object, {"spec", "selector"});
  if (out.kind == "ReplicationController") {
    out.selector = Selector::from_map(selector);
  } else if (auto parsed = Selector::from_label_selector(selector)) {
    out.selector = std::move(*parsed);
  } else {
    out.selector = Selector::nothing();
    out.selector_ok = false;
  }
  return out;
}

NamespaceView NamespaceView::parse(const json::Value& object) { return {ObjectMeta::parse(object)}; }

PodDisruptionBudgetView PodDisruptionBudgetView::parse(const json::Value& object) {
  PodDisruptionBudgetView out;
  out.meta = ObjectMeta::parse(object);
  auto selector = Selector::from_label_selector(json::find(object, {"spec", "selector"}));
  out.selector = selector ? std::move(*selector) : Selector::nothing();
  out.selector_is_empty = out.selector.is_everything();
  out.disruptions_allowed = json::get_int(object, {"status", "disruptionsAllowed"});
  out.healthy = json::get_int(object, {"status", "currentHealthy"});
  out.desired_healthy = json::get_int(object, {"status", "desiredHealthy"});
  out.always_allows_unhealthy = json::get_string(object, {"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow";
  for (const auto& [name, when] : json::get_object(object, {"status", "disruptedPods"})) out.disrupted_pods.emplace_back(name);
  std::ranges::sort(out.disrupted_pods);
  out.is_v1beta1 = json::get_string(object, {"apiVersion"}) == "policy/v1beta1";
  return out;
}

bool PodDisruptionBudgetView::covers(std::string_view pod_ns, const Labels& pod) const {
  if (meta.ns != pod_ns || selector.is_nothing()) return false;
  return selector_is_empty ? !is_v1beta1 : selector.matches(pod);
}

PriorityClassView PriorityClassView::parse(const json::Value& object) {
  PriorityClassView out;
  out.meta = ObjectMeta::parse(object);
  out.value = json::get_int(object, {"value"});
  out.global_default = json::get_bool(object, {"globalDefault"});
  out.preemption_policy = std::string(json::get_string(object, {"preemptionPolicy"}));
  return out;
}

}  // namespace berth::model
