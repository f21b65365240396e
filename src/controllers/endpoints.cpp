// Endpoints of Services (pkg/controller/endpoint).
#include <fmt/format.h>

#include <set>

#include "controllers/endpoint_model.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

using namespace endpoints;
using json::Array;
using json::get_array;
using json::get_string;
using json::Object;
using json::Value;

constexpr std::size_t kMaxAddresses = 1000;  ///< Of one Endpoints object; more are left out, ready ones last.
constexpr const char* kOverCapacity = "endpoints.kubernetes.io/over-capacity";
constexpr const char* kManagedEndpoints = "endpoints.kubernetes.io/managed-by";

struct Subset {
  Array ports, ready, unready;
};

Object address_object(const Value& service, const PodInfo& pod, const Value& document, std::string ip) {
  Object address{{"ip", std::move(ip)},
                 {"targetRef", Object{{"kind", "Pod"}, {"namespace", pod.ns()}, {"name", pod.name()}, {"uid", pod.uid()}}}};
  if (!pod.node.empty()) address["nodeName"] = pod.node;
  if (has_service_hostname(service, document)) address["hostname"] = get_string(document, {"spec", "hostname"});
  return address;
}

/// At most kMaxAddresses over all subsets: ready ones first.
bool truncate(std::map<std::string, Subset>& subsets) {
  std::size_t room = kMaxAddresses;
  bool cut = false;
  for (Array Subset::*list : {&Subset::ready, &Subset::unready})
    for (auto& [key, subset] : subsets) {
      Array& addresses = subset.*list;
      if (addresses.size() > room) {
        addresses.resize(room);
        cut = true;
      }
      room -= addresses.size();
    }
  return cut;
}

class EndpointsController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "endpoints-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "endpoint-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().service, kinds().pod, kinds().endpoints}; }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) return services_.enqueue(event, sink);
    if (event.kind == kinds().service) {
      services_.observe(event);
      if (event.after)
        vanished_.erase(event.object().key());
      else
        vanished_.insert(event.object().key());
    }
    sink.add(event.object().key());
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef service = cache.get(kinds().service, ns, name);
    const ObjectRef present = cache.get(kinds().endpoints, ns, name);
    if (!service) {
      // Endpoints have the Service's name and no owner: they go with it, whoever made them. Those that never had a Service stay.
      const bool goes = vanished_.erase(key) > 0;
      if (present && (goes || present->labels().get(kManagedEndpoints) != nullptr))
        plan.writes.push_back(delete_object(kinds().endpoints, *present));
      return plan;
    }
    const Value document = service->document();
    if (!has_selector(document)) return plan;
    std::size_t seen = 0;
    std::map<std::string, Subset> subsets = subsets_of(document, ns, cache, seen);
    const bool cut = truncate(subsets);
    write(plan, *service, document, present, subsets, cut);
    plan.cooldown = std::min<Duration>(std::chrono::milliseconds(seen / 2), std::chrono::seconds(1));
    return plan;
  }

 private:
  static std::map<std::string, Subset> subsets_of(const Value& service, const std::string& ns, const Cache& cache, std::size_t& seen) {
    const bool publish_unready = json::get_bool(service, {"spec", "publishNotReadyAddresses"});
    const model::Selector selector = model::Selector::from_map(json::find(service, {"spec", "selector"}));
    const Array& families = get_array(service, {"spec", "ipFamilies"});
    const std::string family = families.empty() || !families[0].is_string()
                                   ? std::string(family_of(get_string(service, {"spec", "clusterIP"})))
                                   : std::string(json::as_view(families[0]));
    std::map<std::string, Subset> subsets;
    for (const auto& [pod_name, pod] : cache.pods_in(ns)) {
      if (!selector.matches(pod->labels()) || pod->is_finished() || (pod->deleting && !publish_unready)) continue;
      ++seen;
      const Value document = pod->object->document();
      std::string ip = address_of(document, family);
      if (ip.empty()) continue;
      Array ports = ports_on(service, document);
      // A pod without any of the ports serves nothing; a headless Service may do without ports altogether.
      if (ports.empty() && !(get_array(service, {"spec", "ports"}).empty() && is_headless(service))) continue;
      Subset& subset = subsets[json::serialize(ports)];
      subset.ports = std::move(ports);
      (pod->ready || publish_unready ? subset.ready : subset.unready).push_back(address_object(service, *pod, document, std::move(ip)));
    }
    return subsets;
  }

  static void write(Plan& plan, const client::Object& service, const Value& document, const ObjectRef& present,
                    std::map<std::string, Subset>& subsets, bool cut) {
    Array list;
    for (auto& [key, subset] : subsets) {
      if (subset.ready.empty() && subset.unready.empty()) continue;
      Object one;
      if (!subset.ready.empty()) one["addresses"] = std::move(subset.ready);
      if (!subset.unready.empty()) one["notReadyAddresses"] = std::move(subset.unready);
      if (!subset.ports.empty()) one["ports"] = std::move(subset.ports);
      list.push_back(std::move(one));
    }
    Object labels{{kManagedEndpoints, "endpoint-controller"}};
    for (const auto& [label, value] : service.labels().pairs())
      if (label != kHeadless) labels[label] = value;
    if (is_headless(document)) labels[kHeadless] = "";
    const Value before = present ? present->document() : Value(Object());
    Object annotations = json::get_object(before, {"metadata", "annotations"});
    if (cut)
      annotations[kOverCapacity] = "truncated";
    else
      annotations.erase(kOverCapacity);
    if (!present) {
      Object metadata{{"name", service.name()}, {"namespace", service.ns()}, {"labels", std::move(labels)}};
      if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
      Object body{{"apiVersion", "v1"}, {"kind", "Endpoints"}, {"metadata", std::move(metadata)}};
      if (!list.empty()) body["subsets"] = std::move(list);
      Write create = create_object(kinds().endpoints, service.ns(), std::move(body));
      create.on_failure = note_about(kinds().service, service, "Warning", "FailedToCreateEndpoint",
                                     fmt::format("Failed to create endpoint for service {}/{}: {{}}", service.ns(), service.name()));
      plan.writes.push_back(std::move(create));
      return;
    }
    const Object old{{"metadata", Object{{"labels", json::get_object(before, {"metadata", "labels"})},
                                         {"annotations", json::get_object(before, {"metadata", "annotations"})}}},
                     {"subsets", get_array(before, {"subsets"})}};
    const Object wanted{{"metadata", Object{{"labels", std::move(labels)}, {"annotations", std::move(annotations)}}},
                        {"subsets", std::move(list)}};
    Object patch = merge_diff(old, wanted);
    if (patch.empty()) return;
    Write update = patch_object(kinds().endpoints, *present, std::move(patch));
    update.on_failure = note_about(kinds().endpoints, *present, "Warning", "FailedToUpdateEndpoint",
                                   fmt::format("Failed to update endpoint {}/{}: {{}}", service.ns(), service.name()));
    plan.writes.push_back(std::move(update));
  }

  ServiceSelectors services_;
  std::set<std::string> vanished_;  ///< Services deleted and not yet looked at.
};

}  // namespace

ControllerPtr make_endpoints_controller() { return std::make_unique<EndpointsController>(); }

}  // namespace berth::controllers
