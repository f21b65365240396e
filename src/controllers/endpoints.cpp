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
using json::Value;

constexpr std::size_t kMaxAddresses = 1000;  ///< Of one Endpoints object; more are left out, ready ones last.
constexpr const char* kOverCapacity = "endpoints.kubernetes.io/over-capacity";
constexpr const char* kManagedEndpoints = "endpoints.kubernetes.io/managed-by";

struct Subset {
  Array ports, ready, unready;
};

json::Object address_object(const Value& service, const PodInfo& pod, const Value& document, std::string ip) {
  json::Object address{{"ip", std::move(ip)},
                       {"targetRef", json::Object{{"kind", "Pod"}, {"namespace", pod.ns()}, {"name", pod.name()}, {"uid", pod.uid()}}}};
  if (!pod.node.empty()) address["nodeName"] = pod.node;
  if (has_service_hostname(service, document)) address["hostname"] = get_string(document, {"spec", "hostname"});
  return address;
}

/// At most kMaxAddresses over all subsets: ready ones first.
bool truncate(std::vector<Subset>& subsets) {
  std::size_t room = kMaxAddresses;
  bool cut = false;
  for (Array Subset::*list : {&Subset::ready, &Subset::unready})
    for (Subset& subset : subsets) {
      Array& addresses = subset.*list;
      if (addresses.size() > room) {
        addresses.resize(room);
        cut = true;
      }
      room -= addresses.size();
    }
  return cut;
}

struct Address {
  json::Object object;
  bool is_ready = false;
};

/// Ports that the same addresses serve share a subset (pkg/api/v1/endpoints RepackSubsets). `by_port`: a port as JSON, and the indexes of
/// its addresses; an empty text: no port at all.
std::vector<Subset> repack(const std::vector<Address>& addresses, const std::map<std::string, std::vector<std::size_t>>& by_port) {
  std::map<std::vector<std::size_t>, Array> ports_of;
  for (const auto& [port, indexes] : by_port) {
    Array& ports = ports_of[indexes];
    if (auto parsed = json::parse(port); !port.empty() && parsed) ports.push_back(std::move(*parsed));
  }
  std::vector<Subset> subsets;
  for (auto& [indexes, ports] : ports_of) {
    std::ranges::sort(ports, {}, [](const Value& port) { return place_of(port, false); });
    Subset subset{.ports = std::move(ports), .ready = {}, .unready = {}};
    for (const std::size_t index : indexes) (addresses[index].is_ready ? subset.ready : subset.unready).push_back(addresses[index].object);
    subsets.push_back(std::move(subset));
  }
  return subsets;
}

class EndpointsController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "endpoints-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "endpoint-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().service, kinds().pod, kinds().endpoints}; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) return enqueue_services(event, cache, sink);
    if (event.kind == kinds().service) {
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
      triggers_.forget(key);
      // Endpoints have the Service's name and no owner: they go with it, whoever made them. Those that never had a Service stay.
      const bool goes = vanished_.erase(key) > 0;
      if (present && (goes || present->labels().get(kManagedEndpoints) != nullptr))
        plan.writes.push_back(delete_object(kinds().endpoints, *present));
      return plan;
    }
    const auto parsed = service->parsed();
    const Value& document = *parsed;
    if (!has_selector(document)) return plan;
    std::size_t seen = 0;
    std::map<std::string, TimePoint> moved;
    std::vector<Subset> subsets = subsets_of(document, ns, cache, seen, moved);
    const bool cut = truncate(subsets);
    const auto last_change = triggers_.next(key, read_time(document, {"metadata", "creationTimestamp"}), std::move(moved));
    write(plan, *service, document, present, subsets, cut, last_change);
    plan.cooldown = std::min<Duration>(std::chrono::milliseconds(seen / 2), std::chrono::seconds(1));
    return plan;
  }

 private:
  /// `seen`: how many pods were read; `moved`: when their readiness moved.
  static std::vector<Subset> subsets_of(const Value& service, const std::string& ns, const Cache& cache, std::size_t& seen,
                                        std::map<std::string, TimePoint>& moved) {
    const bool publish_unready = json::get_bool(service, {"spec", "publishNotReadyAddresses"});
    const model::Selector selector = model::Selector::from_map(json::find(service, {"spec", "selector"}));
    const Array& families = get_array(service, {"spec", "ipFamilies"});
    const std::string family = families.empty() || !families[0].is_string()
                                   ? std::string(family_of(get_string(service, {"spec", "clusterIP"})))
                                   : std::string(json::as_view(families[0]));
    std::vector<Address> addresses;
    std::map<std::string, std::vector<std::size_t>> by_port;
    cache.for_each_matching(ns, selector, [&](const PodRef& pod) {
      moved[pod->name()] = pod->ready_since;
      if (pod->is_finished() || (pod->deleting && !publish_unready)) return;
      ++seen;
      const auto parsed = pod->object->parsed();
      const Value& document = *parsed;
      std::string ip = address_of(document, family);
      if (ip.empty()) return;
      Array ports = ports_on(service, document);
      // A pod without any of the ports serves nothing; a headless Service may do without ports altogether.
      if (ports.empty() && !(get_array(service, {"spec", "ports"}).empty() && is_headless(service))) return;
      for (const Value& port : ports) by_port[json::serialize(port)].push_back(addresses.size());
      if (ports.empty()) by_port[""].push_back(addresses.size());
      addresses.push_back({address_object(service, *pod, document, std::move(ip)), pod->ready || publish_unready});
    });
    return repack(addresses, by_port);
  }

  static void write(Plan& plan, const client::Object& service, const Value& document, const ObjectRef& present,
                    std::vector<Subset>& subsets, bool cut, std::optional<TimePoint> last_change) {
    Array list;
    for (Subset& subset : subsets) {
      if (subset.ready.empty() && subset.unready.empty()) continue;
      json::Object one;
      if (!subset.ready.empty()) one["addresses"] = std::move(subset.ready);
      if (!subset.unready.empty()) one["notReadyAddresses"] = std::move(subset.unready);
      if (!subset.ports.empty()) one["ports"] = std::move(subset.ports);
      list.push_back(std::move(one));
    }
    json::Object labels{{kManagedEndpoints, "endpoint-controller"}};
    for (const auto& [label, value] : service.labels().pairs())
      if (label != kHeadless) labels[label] = value;
    if (is_headless(document)) labels[kHeadless] = "";
    const Value before = present ? present->document() : Value(json::Object());
    json::Object annotations = json::get_object(before, {"metadata", "annotations"});
    if (cut)
      annotations[kOverCapacity] = "truncated";
    else
      annotations.erase(kOverCapacity);
    const json::Object without_note = annotations;
    if (last_change)
      annotations[kLastChange] = format_rfc3339(*last_change);
    else
      annotations.erase(kLastChange);
    if (!present) {
      json::Object metadata{{"name", service.name()}, {"namespace", service.ns()}, {"labels", std::move(labels)}};
      if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
      json::Object body{{"apiVersion", "v1"}, {"kind", "Endpoints"}, {"metadata", std::move(metadata)}};
      if (!list.empty()) body["subsets"] = std::move(list);
      Write create = create_object(kinds().endpoints, service.ns(), std::move(body));
      create.on_failure = note_about(kinds().service, service, "Warning", "FailedToCreateEndpoint",
                                     fmt::format("Failed to create endpoint for service {}/{}: {{}}", service.ns(), service.name()));
      plan.writes.push_back(std::move(create));
      return;
    }
    const json::Object old{{"metadata", json::Object{{"labels", json::get_object(before, {"metadata", "labels"})},
                                                     {"annotations", json::get_object(before, {"metadata", "annotations"})}}},
                           {"subsets", get_array(before, {"subsets"})}};
    json::Object wanted{{"metadata", json::Object{{"labels", std::move(labels)}, {"annotations", without_note}}},
                        {"subsets", std::move(list)}};
    // The note of the last change alone is no reason to write.
    if (merge_diff(old, wanted).empty()) return;
    wanted["metadata"].at("annotations") = std::move(annotations);
    json::Object patch = merge_diff(old, wanted);
    Write update = patch_object(kinds().endpoints, *present, std::move(patch));
    update.on_failure = note_about(kinds().endpoints, *present, "Warning", "FailedToUpdateEndpoint",
                                   fmt::format("Failed to update endpoint {}/{}: {{}}", service.ns(), service.name()));
    plan.writes.push_back(std::move(update));
  }

  TriggerTimes triggers_;
  std::set<std::string> vanished_;  ///< Services deleted and not yet looked at.
};

}  // namespace

ControllerPtr make_endpoints_controller() { return std::make_unique<EndpointsController>(); }

}  // namespace berth::controllers
