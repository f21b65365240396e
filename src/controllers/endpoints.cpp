// Endpoints and EndpointSlices of Services (pkg/controller/endpoint, endpointslice).
#include <set>

#include <fmt/format.h>

#include "controllers/common.h"
#include "controllers/services.h"
#include "model/selector.h"

namespace berth::controllers {
namespace {

using json::Array;
using json::get_array;
using json::get_int;
using json::get_string;
using json::Object;
using json::Value;

constexpr std::size_t kMaxEndpointsPerSlice = 100;
constexpr std::size_t kMaxAddresses = 1000;  ///< Of one Endpoints object; more are cut (over-capacity).

struct Backend {
  std::string ip, node, pod, uid;
  bool ready = false, terminating = false;
};

/// The number a Service port means on a pod; 0: the pod has no such port.
std::int64_t target_port(const Value& service_port, const Value& pod) {
  const Value* target = json::find(service_port, "targetPort");
  if (target == nullptr) return get_int(service_port, {"port"});
  if (target->is_int64()) return target->get_int64();
  for (const Value& container : get_array(pod, {"spec", "containers"}))
    for (const Value& port : get_array(container, {"ports"}))
      if (get_string(port, {"name"}) == json::as_view(*target) && get_string(port, {"protocol"}, "TCP") == get_string(service_port, {"protocol"}, "TCP")) return get_int(port, {"containerPort"});
  return 0;
}

class EndpointsController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "endpoints-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "endpoint-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().service, kinds().pod, kinds().endpoints, kinds().endpoint_slice}; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().service) return sink.add(event.object().key());
    if (event.kind == kinds().endpoints) return sink.add(event.object().key());
    if (event.kind == kinds().endpoint_slice) {
      const std::string* service = event.object().labels().get("kubernetes.io/service-name");
      if (service != nullptr) sink.add(event.object().ns() + "/" + *service);
      return;
    }
    cache.for_each_in(kinds().service, event.object().ns(), [&](const ObjectRef& service) {
      const Value document = service->document();
      const Value* map = json::find(document, {"spec", "selector"});
      if (map == nullptr) return;
      const model::Selector selector = model::Selector::from_map(map);
      if ((event.before && selector.matches(event.before->labels())) || (event.after && selector.matches(event.after->labels()))) sink.add(service->key());
    });
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef service = cache.get(kinds().service, ns, name);
    const ObjectRef endpoints = cache.get(kinds().endpoints, ns, name);
    if (!service) {
      // Endpoints have the Service's name and no owner: they go with it. Slices are owned and collected.
      if (endpoints && endpoints->labels().get("endpoints.kubernetes.io/managed-by") != nullptr) plan.writes.push_back(delete_object(kinds().endpoints, *endpoints));
      return plan;
    }
    const Value document = service->document();
    const Value* map = json::find(document, {"spec", "selector"});
    if (map == nullptr || !map->is_object() || map->get_object().empty() || get_string(document, {"spec", "type"}) == "ExternalName") return plan;
    const bool publish_unready = json::get_bool(document, {"spec", "publishNotReadyAddresses"});

    // Backends grouped by the ports they have.
    std::map<std::string, std::pair<Array, std::vector<Backend>>> groups;
    const model::Selector selector = model::Selector::from_map(map);
    for (const auto& [pod_name, pod] : cache.pods_in(ns)) {
      if (!selector.matches(pod->object->labels()) || pod->phase == PodPhase::kSucceeded || pod->phase == PodPhase::kFailed) continue;
      const Value pod_document = pod->object->document();
      const std::string ip(get_string(pod_document, {"status", "podIP"}));
      if (ip.empty()) continue;
      Array ports;
      for (const Value& port : get_array(document, {"spec", "ports"})) {
        const std::int64_t number = target_port(port, pod_document);
        if (number == 0) continue;
        Object one;
        if (!get_string(port, {"name"}).empty()) one["name"] = get_string(port, {"name"});
        one["port"] = number;
        one["protocol"] = get_string(port, {"protocol"}, "TCP");
        ports.push_back(std::move(one));
      }
      auto& group = groups[json::serialize(ports)];
      group.first = ports;
      group.second.push_back({ip, pod->node, pod->object->name(), pod->object->uid(), (pod->ready || publish_unready) && !(pod->deleting && !publish_unready), pod->deleting});
    }
    plan_endpoints(plan, *service, endpoints, groups);
    plan_slices(plan, *service, document, cache, groups);
    return plan;
  }

 private:
  using Groups = std::map<std::string, std::pair<Array, std::vector<Backend>>>;

  static Object target_reference(const std::string& ns, const Backend& backend) { return Object{{"kind", "Pod"}, {"namespace", ns}, {"name", backend.pod}, {"uid", backend.uid}}; }

  static void plan_endpoints(Plan& plan, const client::Object& service, const ObjectRef& endpoints, const Groups& groups) {
    Array subsets;
    std::size_t count = 0;
    for (const auto& [text, group] : groups) {
      Array ready, not_ready;
      for (const Backend& backend : group.second) {
        if (backend.terminating || count++ >= kMaxAddresses) continue;
        Object address{{"ip", backend.ip}, {"targetRef", target_reference(service.ns(), backend)}};
        if (!backend.node.empty()) address["nodeName"] = backend.node;
        (backend.ready ? ready : not_ready).push_back(std::move(address));
      }
      if (ready.empty() && not_ready.empty()) continue;
      Object subset;
      if (!ready.empty()) subset["addresses"] = std::move(ready);
      if (!not_ready.empty()) subset["notReadyAddresses"] = std::move(not_ready);
      if (!group.first.empty()) subset["ports"] = group.first;
      subsets.push_back(std::move(subset));
    }
    Object labels{{"endpoints.kubernetes.io/managed-by", "endpoint-controller"}};
    for (const auto& [label, value] : service.labels().pairs()) labels[label] = value;
    if (!endpoints) {
      Object body{{"apiVersion", "v1"}, {"kind", "Endpoints"}, {"metadata", Object{{"name", service.name()}, {"namespace", service.ns()}, {"labels", labels}}}};
      if (!subsets.empty()) body["subsets"] = std::move(subsets);
      plan.writes.push_back(create_object(kinds().endpoints, service.ns(), std::move(body)));
      return;
    }
    const Value document = endpoints->document();
    Object before{{"subsets", get_array(document, {"subsets"})}}, after{{"subsets", std::move(subsets)}};
    Object patch = merge_diff(before, after);
    if (!patch.empty()) plan.writes.push_back(patch_object(kinds().endpoints, *endpoints, std::move(patch)));
  }

  static void plan_slices(Plan& plan, const client::Object& service, const Value& document, const Cache& cache, const Groups& groups) {
    std::vector<Object> wanted;
    for (const auto& [text, group] : groups)
      for (std::size_t start = 0; start < group.second.size(); start += kMaxEndpointsPerSlice) {
        Array list;
        for (std::size_t i = start; i < std::min(group.second.size(), start + kMaxEndpointsPerSlice); ++i) {
          const Backend& backend = group.second[i];
          Object one{{"addresses", Array{backend.ip}}, {"conditions", Object{{"ready", backend.ready && !backend.terminating}, {"serving", backend.ready}, {"terminating", backend.terminating}}},
                     {"targetRef", target_reference(service.ns(), backend)}};
          if (!backend.node.empty()) one["nodeName"] = backend.node;
          list.push_back(std::move(one));
        }
        Array ports;
        for (const Value& port : group.first) {
          Object one = port.get_object();
          if (!one.contains("name")) one["name"] = "";
          ports.push_back(std::move(one));
        }
        wanted.push_back(Object{{"endpoints", std::move(list)}, {"ports", std::move(ports)}});
      }
    if (wanted.empty()) wanted.push_back(Object{{"endpoints", Array()}, {"ports", Array()}});
    std::vector<ObjectRef> present;
    cache.for_each_in(kinds().endpoint_slice, service.ns(), [&](const ObjectRef& slice) {
      const std::string* of = slice->labels().get("kubernetes.io/service-name");
      const std::string* by = slice->labels().get("endpointslice.kubernetes.io/managed-by");
      if (of != nullptr && *of == service.name() && by != nullptr && *by == "endpointslice-controller.k8s.io") present.push_back(slice);
    });
    for (std::size_t i = 0; i < std::max(wanted.size(), present.size()); ++i) {
      if (i >= wanted.size()) {
        plan.writes.push_back(delete_object(kinds().endpoint_slice, *present[i]));
      } else if (i >= present.size()) {
        const bool six = get_string(document, {"spec", "clusterIP"}).find(':') != std::string_view::npos;
        Object body{{"apiVersion", "discovery.k8s.io/v1"}, {"kind", "EndpointSlice"},
                    {"metadata", Object{{"generateName", service.name() + "-"}, {"namespace", service.ns()},
                                        {"labels", Object{{"kubernetes.io/service-name", service.name()}, {"endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"}}},
                                        {"ownerReferences", Array{owner_reference(kinds().service, service)}}}},
                    {"addressType", six ? "IPv6" : "IPv4"}, {"endpoints", wanted[i]["endpoints"]}, {"ports", wanted[i]["ports"]}};
        plan.writes.push_back(create_object(kinds().endpoint_slice, service.ns(), std::move(body)));
      } else {
        const Value slice = present[i]->document();
        Object patch = merge_diff(Object{{"endpoints", get_array(slice, {"endpoints"})}, {"ports", get_array(slice, {"ports"})}}, wanted[i]);
        if (!patch.empty()) plan.writes.push_back(patch_object(kinds().endpoint_slice, *present[i], std::move(patch)));
      }
    }
  }
};

}  // namespace

ControllerPtr make_endpoints_controller() { return std::make_unique<EndpointsController>(); }

}  // namespace berth::controllers
