// EndpointSlices of Services with a selector (pkg/controller/endpointslice), and of Endpoints that somebody keeps by hand
// (pkg/controller/endpointslicemirroring).
#include <fmt/format.h>

#include "controllers/endpoint_model.h"
#include "controllers/services.h"
#include "controllers/topology_hints.h"

namespace berth::controllers {
namespace {

using namespace endpoints;
using json::Array;
using json::get_array;
using json::get_string;
using json::Value;

constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kSliceController = "endpointslice-controller.k8s.io";
constexpr const char* kMirrorController = "endpointslicemirroring-controller.k8s.io";
constexpr const char* kSkipMirror = "endpointslice.kubernetes.io/skip-mirror";
constexpr const char* kLeader = "control-plane.alpha.kubernetes.io/leader";
constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::size_t kMaxMirrored = 1000;  ///< --mirroring-max-endpoints-per-subset

std::vector<ObjectRef> slices_of(const Cache& cache, const std::string& ns, const std::string& service, std::string_view manager) {
  std::vector<ObjectRef> found;
  cache.for_each_in(kinds().endpoint_slice, ns, [&](const ObjectRef& slice) {
    const std::string *of = slice->labels().get(kServiceName), *by = slice->labels().get(kManagedBy);
    if (of != nullptr && *of == service && by != nullptr && *by == manager && !slice->is_deleting()) found.push_back(slice);
  });
  return found;
}

void enqueue_slice(const Event& event, std::string_view manager, KeySink& sink) {
  const std::string *service = event.object().labels().get(kServiceName), *by = event.object().labels().get(kManagedBy);
  if (service != nullptr && by != nullptr && *by == manager) sink.add(event.object().ns() + "/" + *service);
}

class EndpointSliceController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "endpointslice-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "endpoint-slice-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().service, kinds().pod, kinds().node, kinds().endpoint_slice}; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) return enqueue_services(event, cache, sink);
    if (event.kind == kinds().endpoint_slice) return enqueue_slice(event, kSliceController, sink);
    if (event.kind == kinds().service) return sink.add(event.object().key());
    enqueue_hinted(event, sink);
    // A node's zone is part of its endpoints.
    const auto zone = [](const ObjectRef& node) {
      return node && node->labels().get(kZone) != nullptr ? *node->labels().get(kZone) : std::string();
    };
    if (zone(event.before) == zone(event.after)) return;
    for (const PodRef& pod : cache.pods_on(event.object().name()))
      enqueue_services(Event{kinds().pod, pod->object, pod->object, pod, pod}, cache, sink);
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef service = cache.get(kinds().service, ns, name);
    if (!service) {
      triggers_.forget(key);
      hinted_.erase(key);
    }
    if (!service || service->is_deleting()) return plan;  // The slices are owned, and collected.
    const auto parsed = service->parsed();
    const Value& document = *parsed;
    if (!has_selector(document)) return plan;
    std::vector<ObjectRef> present = slices_of(cache, ns, name, kSliceController);
    const std::optional<TimePoint> last_change = note_triggers(key, document, cache);
    std::set<std::string> families;
    for (const Value& family : get_array(document, {"spec", "ipFamilies"}))
      if (family.is_string()) families.emplace(json::as_view(family));
    if (families.empty()) families.emplace(family_of(get_string(document, {"spec", "clusterIP"})));
    std::size_t seen = 0;
    for (const std::string& family : families) {
      std::vector<ObjectRef> of_family;
      std::erase_if(present, [&](const ObjectRef& slice) {
        const bool same = get_string(*slice->parsed(), {"addressType"}) == family;
        if (same) of_family.push_back(slice);
        return same;
      });
      std::size_t left_out = 0;
      WantedSlices wanted = wanted_of(*service, document, family, cache, seen, left_out);
      if (left_out > 0)
        plan.events.push_back(note_about(kinds().service, *service, "Warning", "FailedToUpdateEndpointSlices",
                                         fmt::format("Error updating Endpoint Slices for Service {}/{}: {} pods are left out: the Service "
                                                     "has many ports, and the pods have them under too many different numbers",
                                                     ns, name, left_out)));
      wanted.last_change = last_change;
      add_hints(plan, service, document, wanted, of_family, cache);
      pack_slices(plan, wanted, of_family);
    }
    for (const ObjectRef& slice : present) plan.writes.push_back(delete_object(kinds().endpoint_slice, *slice));
    for (Write& write : plan.writes)
      write.on_failure = note_about(kinds().service, *service, "Warning", "FailedToUpdateEndpointSlices",
                                    fmt::format("Error updating Endpoint Slices for Service {}/{}: {{}}", ns, name));
    plan.cooldown = std::min<Duration>(std::chrono::milliseconds(seen / 2), std::chrono::seconds(1));
    return plan;
  }

 private:
  static WantedSlices wanted_of(const client::Object& service, const Value& document, const std::string& family, const Cache& cache,
                                std::size_t& seen, std::size_t& left_out) {
    std::size_t bytes = 0;
    WantedSlices wanted;
    wanted.ns = service.ns();
    wanted.name = service.name();
    wanted.address_type = family;
    wanted.owner = owner_reference(kinds().service, service);
    wanted.placeholder = true;
    for (const auto& [label, value] : service.labels().pairs())
      if (label != kServiceName && label != kManagedBy && label != kHeadless) wanted.labels[label] = value;
    wanted.labels[kServiceName] = service.name();
    wanted.labels[kManagedBy] = kSliceController;
    if (is_headless(document)) wanted.labels[kHeadless] = "";
    const model::Selector selector = model::Selector::from_map(json::find(document, {"spec", "selector"}));
    cache.for_each_matching(service.ns(), selector, [&](const PodRef& pod) {
      if (pod->is_finished()) return;
      ++seen;
      const auto pod_document_parsed = pod->object->parsed();
      const Value& pod_document = *pod_document_parsed;
      std::string ip = address_of(pod_document, family);
      if (ip.empty()) return;
      std::string ports = ports_key(ports_on(document, pod_document));
      // Pods that call other numbers by the name of a port have slices of their own: of many ports that is a product.
      if (!wanted.by_ports.contains(ports) && (bytes += ports.size()) > Plan::kMostBytes) return void(++left_out);
      wanted.by_ports[std::move(ports)].push_back(endpoint_of(document, *pod, pod_document, std::move(ip), cache));
    });
    return wanted;
  }

  static json::Object endpoint_of(const Value& service, const PodInfo& pod, const Value& document, std::string ip, const Cache& cache) {
    const bool ready = json::get_bool(service, {"spec", "publishNotReadyAddresses"}) || (pod.ready && !pod.deleting);
    json::Object endpoint{{"addresses", Array{std::move(ip)}},
                          {"conditions", json::Object{{"ready", ready}, {"serving", pod.ready}, {"terminating", pod.deleting}}},
                          {"targetRef", json::Object{{"kind", "Pod"}, {"namespace", pod.ns()}, {"name", pod.name()}, {"uid", pod.uid()}}}};
    if (has_service_hostname(service, document)) endpoint["hostname"] = get_string(document, {"spec", "hostname"});
    if (pod.node.empty()) return endpoint;
    endpoint["nodeName"] = pod.node;
    const ObjectRef node = cache.get(kinds().node, "", pod.node);
    const std::string* zone = node ? node->labels().get(kZone) : nullptr;
    if (zone != nullptr) endpoint["zone"] = *zone;
    const std::string_view distribution = get_string(service, {"spec", "trafficDistribution"});
    if (ready && !wants_topology_hints(service) &&
        (distribution == "PreferClose" || distribution == "PreferSameZone" || distribution == "PreferSameNode")) {
      json::Object hints;
      if (zone != nullptr) hints["forZones"] = Array{json::Object{{"name", *zone}}};
      if (distribution == "PreferSameNode") hints["forNodes"] = Array{json::Object{{"name", pod.node}}};
      if (!hints.empty()) endpoint["hints"] = std::move(hints);
    }
    return endpoint;
  }

  /// Hints by the zones' processors, for a Service that asks for them, and what there is to say of that.
  void add_hints(Plan& plan, const ObjectRef& service, const Value& document, WantedSlices& wanted, const std::vector<ObjectRef>& present,
                 const Cache& cache) {
    const auto note = [&](const char* type, const char* reason, const std::string& message) {
      plan.events.push_back(
          note_about(kinds().service, *service, type, reason, fmt::format("{}, addressType: {}", message, wanted.address_type)));
    };
    const auto known = hinted_.find(service->key());
    if (!wants_topology_hints(document)) {
      if (known == hinted_.end()) return;
      if (known->second) note("Warning", "TopologyAwareHintsDisabled", "Topology Aware Hints has been disabled");
      hinted_.erase(known);
      return;
    }
    std::map<std::string, std::string> had;
    for (const ObjectRef& slice : present) {
      const auto parsed = slice->parsed();
      for (const Value& endpoint : get_array(*parsed, {"endpoints"}))
        if (const auto& addresses = get_array(endpoint, {"addresses"}), &zones = get_array(endpoint, {"hints", "forZones"});
            !addresses.empty() && !zones.empty())
          had[std::string(json::as_view(addresses[0]))] = get_string(zones[0], {"name"});
    }
    std::vector<json::Object*> endpoints;
    for (auto& [ports, list] : wanted.by_ports)
      for (json::Object& endpoint : list) endpoints.push_back(&endpoint);
    const std::string why = add_topology_hints(std::move(endpoints), had, shares(cache));
    if (!why.empty()) note("Warning", "TopologyAwareHintsDisabled", why);
    if (why.empty() && (known == hinted_.end() || !known->second))
      note("Normal", "TopologyAwareHintsEnabled", "Topology Aware Hints has been enabled");
    hinted_[service->key()] = why.empty();
  }

  /// Processors by zone, looked at anew when a node's part of them changes.
  const ZoneShares& shares(const Cache& cache) {
    if (shares_) return *shares_;
    std::vector<ZonePart> nodes;
    cache.for_each(kinds().node, [&](const ObjectRef& node) {
      if (auto part = zone_part(*node->parsed())) nodes.push_back(std::move(*part));
    });
    return shares_.emplace(zone_shares(nodes));
  }
  void enqueue_hinted(const Event& event, KeySink& sink) {
    if (hinted_.empty()) return void(shares_.reset());
    const auto part = [](const ObjectRef& node) { return node ? zone_part(*node->parsed()) : std::nullopt; };
    if (part(event.before) == part(event.after)) return;
    shares_.reset();
    for (const auto& [key, has_hints] : hinted_) sink.add(key);
  }

  std::optional<TimePoint> note_triggers(const std::string& key, const Value& service, const Cache& cache) {
    const model::Selector selector = model::Selector::from_map(json::find(service, {"spec", "selector"}));
    std::map<std::string, TimePoint> moved;
    cache.for_each_matching(split_key(key).first, selector, [&](const PodRef& pod) { moved[pod->name()] = pod->ready_since; });
    return triggers_.next(key, read_time(service, {"metadata", "creationTimestamp"}), std::move(moved));
  }

  TriggerTimes triggers_;
  std::map<std::string, bool> hinted_;  ///< Services that ask for hints by zone, and whether they have them.
  std::optional<ZoneShares> shares_;
};

class EndpointSliceMirroringController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "endpointslice-mirroring-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().service, kinds().endpoints, kinds().endpoint_slice}; }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().endpoint_slice)
      enqueue_slice(event, kMirrorController, sink);
    else
      sink.add(event.object().key());
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef source = cache.get(kinds().endpoints, ns, name), service = cache.get(kinds().service, ns, name);
    std::vector<ObjectRef> present = slices_of(cache, ns, name, kMirrorController);
    const Value service_document = service ? service->document() : Value(json::Object());
    if (!source || source->is_deleting() || !service || json::find(service_document, {"spec", "selector"}) != nullptr ||
        !is_mirrored(*source)) {
      for (const ObjectRef& slice : present) plan.writes.push_back(delete_object(kinds().endpoint_slice, *slice));
      return plan;
    }
    std::map<std::string, WantedSlices> by_family = wanted_of(plan, *source);
    for (const char* family : {"IPv4", "IPv6"}) {
      std::vector<ObjectRef> of_family;
      for (const ObjectRef& slice : present)
        if (get_string(*slice->parsed(), {"addressType"}) == family) of_family.push_back(slice);
      pack_slices(plan, by_family.at(family), of_family);
    }
    for (Write& write : plan.writes)
      write.on_failure = note_about(kinds().endpoints, *source, "Warning", "FailedToUpdateEndpointSlices",
                                    fmt::format("Error updating EndpointSlices for Endpoints {}/{}: {{}}", ns, name));
    return plan;
  }

 private:
  static bool is_mirrored(const client::Object& source) {
    const std::string* skip = source.labels().get(kSkipMirror);
    if (skip != nullptr && *skip == "true") return false;
    return get_string(*source.parsed(), {"metadata", "annotations", kLeader}).empty();
  }

  static std::map<std::string, WantedSlices> wanted_of(Plan& plan, const client::Object& source) {
    const auto parsed = source.parsed();
    const Value& document = *parsed;
    WantedSlices base;
    base.ns = source.ns();
    base.name = source.name();
    base.owner = owner_reference(kinds().endpoints, source);
    base.max_per_slice = kMaxMirrored;
    for (const auto& [label, value] : source.labels().pairs()) base.labels[label] = value;
    base.labels[kServiceName] = source.name();
    base.labels[kManagedBy] = kMirrorController;
    base.annotations = json::get_object(document, {"metadata", "annotations"});
    base.annotations->erase(kLastChange);
    base.annotations->erase(kLastApplied);
    std::map<std::string, WantedSlices> wanted;
    for (const char* family : {"IPv4", "IPv6"}) {
      wanted[family] = base;
      wanted[family].address_type = family;
    }
    std::size_t skipped = 0;
    for (const Value& subset : get_array(document, {"subsets"})) {
      const std::string ports = ports_key(get_array(subset, {"ports"}));
      std::size_t added = 0;
      for (const auto& [field, ready] : {std::pair{"addresses", true}, {"notReadyAddresses", false}})
        for (const Value& address : get_array(subset, {field})) {
          if (added >= kMaxMirrored) {
            ++skipped;
            continue;
          }
          ++added;
          const std::string_view ip = get_string(address, {"ip"});
          json::Object endpoint{{"addresses", Array{Value(ip)}}, {"conditions", json::Object{{"ready", ready}}}};
          for (const char* copied : {"targetRef", "nodeName", "hostname"})
            if (const Value* value = json::find(address, copied)) endpoint[copied] = *value;
          wanted[std::string(family_of(ip))].by_ports[ports].push_back(std::move(endpoint));
        }
    }
    if (skipped > 0)
      plan.events.push_back(
          note_about(kinds().endpoints, source, "Warning", "TooManyAddressesToMirror",
                     fmt::format("A max of {} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
                                 kMaxMirrored, skipped)));
    return wanted;
  }
};

}  // namespace

ControllerPtr make_endpoint_slice_controller() { return std::make_unique<EndpointSliceController>(); }
ControllerPtr make_endpoint_slice_mirroring_controller() { return std::make_unique<EndpointSliceMirroringController>(); }

}  // namespace berth::controllers
