// What hangs on Services: Endpoints, EndpointSlices, mirrored ones, addresses.
#include "controllers/services.h"

#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_string;

constexpr const char* kService =
    "{apiVersion: v1, kind: Service, metadata: {labels: {l: m}}, spec: "
    "{clusterIP: 10.0.0.5, clusterIPs: [10.0.0.5], selector: {app: w}, "
    "ports: [{name: "
    "http, port: 80, targetPort: web}, {name: raw, port: 81, targetPort: "
    "8081}]}}";
constexpr const char* kPod =
    "{apiVersion: v1, kind: Pod, metadata: {labels: {app: w}}, spec: "
    "{nodeName: n1, containers: [{name: c, ports: [{name: web, "
    "containerPort: 8080}]}]}, "
    "status: {phase: Running, podIPs: [{ip: 10.1.0.1}, {ip: 'fd::1'}], "
    "conditions: [{type: Ready, status: 'True', lastTransitionTime: "
    "'$t'}]}}";
constexpr const char* kNode =
    "{apiVersion: v1, kind: Node, metadata: {labels: "
    "{topology.kubernetes.io/zone: a}}, status: "
    "{allocatable: {cpu: '4'}, conditions: "
    "[{type: Ready, "
    "status: 'True'}]}}";

std::vector<Field> fields() {
  const Kind service = kinds().service, pod = kinds().pod, node = kinds().node, slice = kinds().endpoint_slice,
             endpoints = kinds().endpoints;
  return {
      {service, "spec selector", {"{app: w}", "{app: w}", "{app: v}", "{app: w, x: y}", "{}", ""}},
      {service,
       "spec ports",
       {"[{name: http, port: 80, targetPort: web}]", "[{port: 80}]",
        "[{name: a, port: 80, targetPort: 8080, appProtocol: h2c}, {name: b, "
        "port: 81, targetPort: web, protocol: UDP}]",
        "[{name: x, port: 9, targetPort: none}]", "[]"}},
      {service, "spec clusterIP", {"10.0.0.5", "None", "''", "'fd::5'"}},
      {service, "spec clusterIPs", {"[10.0.0.5]", "[10.0.0.6]", "[10.0.0.5, 'fd::5']", "[None]", ""}},
      {service, "spec ipFamilies", {"[IPv4]", "[IPv6, IPv4]", "[IPv6]", "", ""}},
      {service, "spec publishNotReadyAddresses", {"true", "", ""}},
      {service, "spec type", {"ExternalName", "", "", "ClusterIP"}},
      {service, "spec trafficDistribution", {"PreferClose", "PreferSameNode", "PreferSameZone", "", ""}},
      {service, "metadata annotations service.kubernetes.io/topology-mode", {"Auto", "Auto", "off", ""}},
      {service, "metadata annotations service.kubernetes.io/topology-aware-hints", {"auto", "Disabled", "", ""}},
      {service, "metadata labels", {"{l: m}", "{l: n, service.kubernetes.io/headless: x}", ""}},
      {pod,
       "status conditions",
       {"[{type: Ready, status: 'True', lastTransitionTime: '$t'}]", "[{type: Ready, status: 'False', lastTransitionTime: '$t'}]",
        "[{type: Ready, status: 'True', lastTransitionTime: '$t-3'}]", ""}},
      {pod, "status phase", {"Running", "Running", "Failed", "Succeeded"}},
      {pod, "status podIPs", {"[{ip: 10.1.0.1}, {ip: 'fd::1'}]", "[{ip: 10.1.0.2}]", "[{ip: 'fd::3'}]", "[{ip: 10.1.0.4}]", ""}},
      {pod, "status podIP", {"10.1.0.9", ""}},
      {pod, "spec nodeName", {"n1", "n2", "n3", ""}},
      {pod, "spec hostname", {"h", "", ""}},
      {pod, "spec subdomain", {"s", "t", ""}},
      {pod,
       "spec containers",
       {"[{name: c, ports: [{name: web, containerPort: 8080}]}]", "[{name: c, ports: [{name: web, containerPort: 8090, protocol: UDP}]}]",
        "[{name: c}]"}},
      {pod,
       "spec initContainers",
       {"[{name: i, restartPolicy: Always, ports: [{name: web, containerPort: "
        "7070}]}]",
        "[{name: i, ports: [{name: web, containerPort: 6}]}]", ""}},
      {pod, "metadata labels", {"{app: w}", "{app: w, x: y}", "{app: v}", "{}"}},
      {node,
       "metadata labels",
       {"{topology.kubernetes.io/zone: a}", "{topology.kubernetes.io/zone: b}", "{topology.kubernetes.io/zone: b}", "{}",
        "{topology.kubernetes.io/zone: b, "
        "node-role.kubernetes.io/control-plane: ''}"}},
      {node, "status allocatable cpu", {"'2'", "'4'", "'0'", "500m", "'12'"}},
      {node,
       "status conditions",
       {"[{type: Ready, status: 'True'}]", "[{type: Ready, status: 'True'}]", "[{type: Ready, status: 'False'}]"}},
      {slice, "endpoints", {"[]", "[{addresses: [1.2.3.4]}]"}},
      {slice, "metadata labels endpointslice.kubernetes.io/managed-by", {"me", "endpointslice-controller.k8s.io"}},
      {slice, "metadata annotations endpoints.kubernetes.io/last-change-trigger-time", {"x", ""}},
      {slice, "addressType", {"IPv6", "IPv4"}},
      {endpoints,
       "subsets",
       {"[{addresses: [{ip: 1.1.1.1, hostname: h, nodeName: n1}, {ip: "
        "'fd::9'}], notReadyAddresses: [{ip: 2.2.2.2, targetRef: {kind: Pod, "
        "name: p}}], ports: [{port: 80}]}]",
        "[{addresses: [{ip: 1.1.1.1}], ports: [{name: b, port: 2}, {name: a, "
        "port: 1}]}, {addresses: [{ip: 3.3.3.3}]}]",
        "[]", ""}},
      {endpoints, "metadata labels endpointslice.kubernetes.io/skip-mirror", {"'true'", "'false'", ""}},
      {endpoints, "metadata labels endpoints.kubernetes.io/managed-by", {"endpoint-controller", ""}},
      {endpoints,
       "metadata annotations",
       {"{control-plane.alpha.kubernetes.io/leader: x}",
        "{a: b, kubectl.kubernetes.io/last-applied-configuration: '{}', "
        "endpoints.kubernetes.io/last-change-trigger-time: x}",
        "{endpoints.kubernetes.io/over-capacity: truncated}", ""}},
  };
}

std::vector<Sort> sorts() {
  return {{kinds().service, {"default/s", "default/s", "default/t", "other/s"}, kService},
          {kinds().pod, {"default/p1", "default/p2", "default/p3", "default/p4", "other/p1"}, kPod},
          {kinds().pod, {"default/p1", "default/p2", "default/p3", "default/p4", "other/p1"}, kPod},
          {kinds().node, {"n1", "n2", "n3"}, kNode}};
}

/// Which addresses the slices that the controller made show for a Service, with
/// their readiness, and which there should be: a plain walk.
std::pair<std::set<std::string>, std::set<std::string>> shown_and_wanted(World& world, const std::string& key) {
  std::set<std::string> shown, wanted;
  const json::Value& service = *world.find(kinds().service, key);
  const auto [ns, name] = split_key(key);
  for (const std::string& slice_key : world.keys(kinds().endpoint_slice)) {
    const json::Value& slice = *world.find(kinds().endpoint_slice, slice_key);
    if (split_key(slice_key).first != ns || get_string(slice, {"metadata", "labels", "kubernetes.io/service-name"}) != name ||
        get_string(slice, {"metadata", "labels", "endpointslice.kubernetes.io/managed-by"}) != "endpointslice-controller.k8s.io")
      continue;
    for (const json::Value& one : get_array(slice, {"endpoints"}))
      shown.insert(fmt::format("{} {} {}", get_string(one, {"targetRef", "name"}), json::as_view(get_array(one, {"addresses"})[0]),
                               json::get_bool(one, {"conditions", "ready"})));
  }
  std::vector<std::string> families;
  for (const json::Value& one : get_array(service, {"spec", "ipFamilies"})) families.emplace_back(json::as_view(one));
  if (families.empty())
    families.emplace_back(get_string(service, {"spec", "clusterIP"}).find(':') == std::string_view::npos ? "IPv4" : "IPv6");
  for (const std::string& pod_key : world.keys(kinds().pod)) {
    const json::Value& pod = *world.find(kinds().pod, pod_key);
    const auto phase = get_string(pod, {"status", "phase"});
    bool selected = split_key(pod_key).first == ns && phase != "Failed" && phase != "Succeeded";
    for (const auto& [label, value] : json::get_object(service, {"spec", "selector"}))
      selected = selected && get_string(pod, {"metadata", "labels", label}) == json::as_view(value);
    if (!selected) continue;
    const bool ready = json::get_bool(service, {"spec", "publishNotReadyAddresses"}) ||
                       (condition_status(pod, "Ready") == "True" && get_string(pod, {"metadata", "deletionTimestamp"}).empty());
    for (const std::string& family : families) {
      std::string address;
      for (const json::Value& ip : get_array(pod, {"status", "podIPs"}))
        if (address.empty() && (get_string(ip, {"ip"}).find(':') == std::string_view::npos) == (family == "IPv4"))
          address = get_string(ip, {"ip"});
      const auto only = get_string(pod, {"status", "podIP"});
      if (address.empty() && !only.empty() && (only.find(':') == std::string_view::npos) == (family == "IPv4")) address = only;
      if (!address.empty()) wanted.insert(fmt::format("{} {} {}", get_string(pod, {"metadata", "name"}), address, ready));
    }
  }
  return {shown, wanted};
}

TEST(ServiceLives, OfSlicesAreAsRecorded) {
  World world({.file = "tests/controllers/lives/endpoint_slices.txt",
               .seed = 10,
               .edits = 1800,
               .has_memory = true,
               .readable = 22'000,
               .longest = std::chrono::seconds(6)});
  world.add([] { return make_endpoint_slice_controller(); });
  world.sorts = sorts();
  world.fields = fields();
  std::erase_if(world.fields, [](const Field& field) { return field.kind == kinds().endpoints; });
  world.judge_rest = [&] {
    for (const std::string& key : world.keys(kinds().service)) {
      const json::Value& service = *world.find(kinds().service, key);
      if (json::get_object(service, {"spec", "selector"}).empty() || get_string(service, {"spec", "type"}) == "ExternalName" ||
          !get_string(service, {"metadata", "deletionTimestamp"}).empty())
        continue;
      const auto [shown, wanted] = shown_and_wanted(world, key);
      if (shown != wanted) world.wrong(fmt::format("{} shows\n{}\ninstead of\n{}", key, fmt::join(shown, "\n"), fmt::join(wanted, "\n")));
    }
  };
  world.live();
}

TEST(ServiceLives, OfEndpointsAreAsRecorded) {
  World world({.file = "tests/controllers/lives/endpoints.txt",
               .seed = 11,
               .edits = 1500,
               .has_memory = true,
               .readable = 22'000,
               .longest = std::chrono::seconds(6)});
  world.add([] { return make_endpoints_controller(); });
  world.add([] { return make_endpoint_slice_mirroring_controller(); });
  world.sorts = sorts();
  world.sorts.pop_back();
  world.sorts.push_back({kinds().endpoints,
                         {"default/s", "default/t", "default/alone"},
                         "{apiVersion: v1, kind: Endpoints, metadata: {}, subsets: [{addresses: "
                         "[{ip: 1.1.1.1}], ports: [{port: 80}]}]}"});
  world.sorts.push_back({kinds().endpoint_slice,
                         {"default/by-hand"},
                         "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: "
                         "IPv4, metadata: {labels: {kubernetes.io/service-name: t, "
                         "endpointslice.kubernetes.io/managed-by: "
                         "endpointslicemirroring-controller.k8s.io}}, endpoints: [{addresses: "
                         "[1.1.1.1]}]}"});
  world.fields = fields();
  std::erase_if(world.fields, [](const Field& field) { return field.kind == kinds().node; });
  world.live();
}

TEST(ServiceLives, OfAddressesAreAsRecorded) {
  World world({.file = "tests/controllers/lives/service_addresses.txt",
               .seed = 12,
               .edits = 1500,
               .has_memory = true,  // Two Services of one address: who had it last is remembered.
               .readable = 15'000,
               .longest = std::chrono::seconds(15)});
  world.add([] { return make_service_cidr_controller(); });
  world.add([] { return make_ip_address_controller(); });
  const Kind service = kinds().service, range = kinds().service_cidr, address = kinds().ip_address;
  constexpr const char* kOurs =
      "{apiVersion: networking.k8s.io/v1, kind: IPAddress, metadata: {labels: "
      "{ipaddress.kubernetes.io/managed-by: ipallocator.k8s.io}}, "
      "spec: {parentRef: {resource: services, namespace: default, name: s}}}";
  world.sorts = {{service, {"default/s", "default/t", "other/s"}, kService},
                 {range,
                  {"a", "b"},
                  "{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, "
                  "metadata: {}, spec: {cidrs: [10.0.0.0/24]}}"},
                 {address, {"10.0.0.5", "10.0.1.9", "fd::5"}, kOurs}};
  world.fields = {
      {service, "spec clusterIPs", {"[10.0.0.5]", "[10.0.0.6]", "[10.0.0.5, 'fd::5']", "[10.0.1.9]", "[None]", ""}},
      {service, "spec clusterIPs", {"[10.0.0.5]", "[10.0.0.6]", "[10.0.0.255]"}},
      {range, "spec cidrs", {"[10.0.0.0/24]", "[10.0.0.0/16]", "[10.0.1.0/24]", "['fd::/64']", "[10.0.0.0/24, 'fd::/64']", "[x]"}},
      {range, "metadata finalizers", {"", "[other]", "[networking.k8s.io/service-cidr-finalizer]"}},
      {range, "status conditions", {"[{type: Ready, status: 'False'}]", ""}},
      {address, "metadata labels ipaddress.kubernetes.io/managed-by", {"ipallocator.k8s.io", "me", ""}},
      {address, "spec parentRef name", {"s", "t", "gone"}},
      {address, "spec parentRef namespace", {"default", "other"}}};
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
