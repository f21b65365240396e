#include "apiserver/upkeep/bootstrap.h"

#include "apiserver/ground/proposals.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

/// Writes one object if it is missing and waits until it is stored.
Result<void> ensure(Ground& ground, const model::KindInfo& kind, json::Value document) {
  const std::string ns(json::get_string(document, {"metadata", "namespace"}));
  const std::string name(json::get_string(document, {"metadata", "name"}));
  if (ground.cache->get(object_key(kind, ns, name)) != nullptr) return {};
  document = newborn(ground, ground.names, kind, std::move(document));
  model::apply_defaults(kind, document);
  const json::Value* status = json::find(document, "status");
  json::Value kept = status == nullptr ? json::Value() : *status;
  model::prepare_for_create(kind, document);
  if (kept.is_object()) document.get_object()["status"] = std::move(kept);
  const auto written = put_and_wait(ground, kind, std::move(document), 0);
  if (written || written.error() == ProposeError::kExists) return {};
  return fail(ErrorCode::kInternal, fmt::format("{} {} could not be stored", kind.kind, name));
}

json::Value system_namespace(std::string_view name) {
  return json::Object{{"metadata", json::Object{{"name", name}, {"labels", json::Object{{"kubernetes.io/metadata.name", name}}}}},
                      {"spec", json::Object{{"finalizers", json::Array{"kubernetes"}}}}};
}

json::Value system_class(std::string_view name, std::int64_t value, std::string_view description) {
  return json::Object{{"metadata", json::Object{{"name", name}, {"generation", 1}}}, {"value", value}, {"description", description}};
}

/// The configured range as an object; whoever starts the controllers keeps it.
json::Value default_service_cidr(const std::string& range, const std::string& now) {
  json::Object ready{
      {"type", "Ready"}, {"status", "True"}, {"reason", ""}, {"message", "Kubernetes Service CIDR is ready"}, {"lastTransitionTime", now}};
  return json::Object{
      {"metadata", json::Object{{"name", "kubernetes"}, {"finalizers", json::Array{"networking.k8s.io/service-cidr-finalizer"}}}},
      {"spec", json::Object{{"cidrs", json::Array{json::Value(range)}}}},
      {"status", json::Object{{"conditions", json::Array{std::move(ready)}}}}};
}

/// What ServiceCIDRs and IPAddresses say. Of the cache, which outlives it.
AddressBook address_book(const ObjectCache& cache) {
  static const auto& ranges = *model::find_resource("networking.k8s.io", "servicecidrs");
  static const auto& addresses = *model::find_resource("networking.k8s.io", "ipaddresses");
  return {.ranges =
              [&cache] {
                std::vector<std::string> out;
                for (const auto& object : cache.list({.prefix = make_prefix(ranges.group, ranges.plural)}, "", 0).items) {
                  const json::Value document = decode_object(*object);
                  const auto& conditions = json::get_array(document, {"status", "conditions"});
                  const bool is_ready = std::ranges::any_of(conditions, [](const json::Value& condition) {
                    return json::get_string(condition, {"type"}) == "Ready" && json::get_string(condition, {"status"}) == "True";
                  });
                  if (!is_ready || json::find(document, {"metadata", "deletionTimestamp"}) != nullptr) continue;
                  for (const auto& range : json::get_array(document, {"spec", "cidrs"})) out.emplace_back(json::as_view(range));
                }
                return out;
              },
          .is_promised =
              [&cache](const std::string& address, const json::Value& service) {
                const auto object = cache.get(object_key(addresses, "", address));
                if (object == nullptr) return false;
                const json::Value document = decode_object(*object);
                const auto parent = [&](std::string_view field) { return json::get_string(document, {"spec", "parentRef", field}); };
                // One that the allocator's own controller is about to take away binds nobody.
                if (json::get_string(document, {"metadata", "labels", "ipaddress.kubernetes.io/managed-by"}) == "ipallocator.k8s.io")
                  return false;
                return parent("resource") != "services" || parent("namespace") != json::get_string(service, {"metadata", "namespace"}) ||
                       parent("name") != json::get_string(service, {"metadata", "name"});
              }};
}

}  // namespace

Result<void> make_system_objects(Ground& ground) {
  const auto& namespaces = *model::find_resource("", "namespaces");
  // The last is where the documents' machines are: MachineSets and their autoscalers are created there by whoever types them.
  for (std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease", "openshift-machine-api"})
    if (auto made = ensure(ground, namespaces, system_namespace(name)); !made) return made;
  const auto& classes = *model::find_resource("scheduling.k8s.io", "v1", "priorityclasses");
  if (auto made = ensure(ground, classes,
                         system_class("system-node-critical", 2000001000,
                                      "Used for system critical pods that must not be moved from their current node."));
      !made)
    return made;
  if (auto made = ensure(
          ground, classes,
          system_class("system-cluster-critical", 2000000000,
                       "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."));
      !made)
    return made;
  return {};
}

Result<void> make_own_service(Ground& ground, ServiceAllocator& services) {
  const auto& options = ground.options;
  const auto& ranges = *model::find_resource("networking.k8s.io", "servicecidrs");
  if (auto made = ensure(ground, ranges, default_service_cidr(options.service_cidr, ground.now_text())); !made) return made;
  services.consult(address_book(*ground.cache));

  for (const auto& service : ground.cache->list({.prefix = make_prefix("", "services")}, "", 0).items)
    services.adopt(decode_object(*service));
  const auto& service_kind = *model::find_resource("", "services");
  if (ground.cache->get(object_key(service_kind, "default", "kubernetes")) == nullptr) {
    const auto slash = options.service_cidr.find('/');
    std::string first = options.service_cidr.substr(0, slash);
    first = first.substr(0, first.rfind('.') + 1) + std::to_string(std::atoi(first.c_str() + first.rfind('.') + 1) + 1);
    json::Object port{{"name", "https"},
                      {"protocol", "TCP"},
                      {"port", 443},
                      {"targetPort", options.advertise_port == 0 ? 6443 : static_cast<int>(options.advertise_port)}};
    json::Value service =
        json::Object{{"metadata", json::Object{{"name", "kubernetes"},
                                               {"namespace", "default"},
                                               {"labels", json::Object{{"component", "apiserver"}, {"provider", "kubernetes"}}}}},
                     {"spec", json::Object{{"type", "ClusterIP"}, {"clusterIP", first}, {"ports", json::Array{std::move(port)}}}}};
    if (auto allocation = services.allocate(service, nullptr); !allocation)
      return invalid("the kubernetes Service: " + allocation.error().message);
    if (auto made = ensure(ground, service_kind, std::move(service)); !made) return made;
  }
  return {};
}

}  // namespace berth::apiserver
