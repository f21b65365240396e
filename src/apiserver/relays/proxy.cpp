// log, exec, attach, portforward and nodes/proxy: relayed to the agent of the pod's node. pods/proxy and services/proxy: to the pods
// themselves.
#include "apiserver/relays/log_options.h"
#include "apiserver/relays/node_proxy.h"
#include "base/split.h"
#include "net/address.h"
#include "net/onward.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kSimulatedNode = "sim.berth.dev/fleet";  // node/simulated/fleet.h
constexpr std::string_view kNoService = "error trying to reach service: ";

std::string query_without(const Query& query, std::initializer_list<std::string_view> left_out) {
  std::string out;
  for (const auto& [key, value] : query.parameters()) {
    if (std::find(left_out.begin(), left_out.end(), key) != left_out.end()) continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : "&", net::percent_encode(key), net::percent_encode(value));
  }
  return out;
}

std::vector<std::string> names_in(const json::Value& pod, std::string_view list) {
  std::vector<std::string> names;
  for (const auto& container : json::get_array(pod, {"spec", list})) names.emplace_back(json::get_string(container, {"name"}));
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

/// The container that is meant: the one named, the pod's default, or its only one.
model::ApiResult<std::string> choose_container(const json::Value& pod, std::string_view named) {
  const auto containers = names_in(pod, "containers");
  const auto init = names_in(pod, "initContainers");
  const auto ephemeral = names_in(pod, "ephemeralContainers");
  const auto pod_name = json::get_string(pod, {"metadata", "name"});
  std::string wanted(named);
  if (wanted.empty()) wanted = json::get_string(pod, {"metadata", "annotations", "kubectl.kubernetes.io/default-container"});
  if (wanted.empty()) {
    if (containers.size() == 1) return containers[0];
    auto text = fmt::format("a container name must be specified for pod {}, choose one of: [{}]", pod_name, joined(containers));
    if (!init.empty()) text += fmt::format(" or one of the init containers: [{}]", joined(init));
    return std::unexpected(model::bad_request(text));
  }
  for (const auto* list : {&containers, &init, &ephemeral})
    if (std::find(list->begin(), list->end(), wanted) != list->end()) return wanted;
  return std::unexpected(model::bad_request(fmt::format("container {} is not valid for pod {}", wanted, pod_name)));
}

std::string in_url(std::string_view address) {
  return address.find(':') == std::string_view::npos ? std::string(address) : fmt::format("[{}]", address);
}

/// Go's net.IP.IsGlobalUnicast: what a pod may have (k8s.io/apimachinery proxy util).
bool is_proxyable(const std::string& text) {
  const auto address = net::IpAddress::parse(text);
  return address && !address->is_unspecified() && !address->is_loopback() && !address->is_link_local() && !address->is_multicast();
}

/// "[scheme:]name[:port]", the name of a proxied pod or service.
struct ProxyName {
  std::string scheme, name, port;
};

std::optional<ProxyName> parse_proxy_name(std::string_view text) {
  const auto parts = split(text, ':').list();
  ProxyName out;
  if (parts.size() == 1)
    out.name = parts[0];
  else if (parts.size() == 2)
    out.name = parts[0], out.port = parts[1];
  else if (parts.size() == 3)
    out.scheme = parts[0], out.name = parts[1], out.port = parts[2];
  if (out.name.empty() || (!out.scheme.empty() && out.scheme != "http" && out.scheme != "https")) return std::nullopt;
  return out;
}

std::string url_of(const ProxyName& name, std::string_view address, std::string_view port) {
  return fmt::format("{}://{}{}{}", name.scheme.empty() ? "http" : name.scheme, in_url(address), port.empty() ? "" : ":", port);
}

model::ApiStatus not_run_here(std::string message) {
  model::ApiStatus status;
  status.code = 501;
  status.reason = "NotImplemented";
  status.message = std::move(message);
  return status;
}

/// Why nothing is sent to this address as to this pod. Proxies lead only to what an agent of the cluster runs: an address that somebody
/// made up, a simulation or a user, belongs to whoever has it outside.
std::optional<model::ApiStatus> refuse_address(const ObjectCache& cache, const json::Value& pod, const std::string& text) {
  if (!is_proxyable(text)) return model::bad_request("address not allowed");
  const auto pod_name = json::get_string(pod, {"metadata", "name"});
  const std::string node_name(json::get_string(pod, {"spec", "nodeName"}));
  if (node_name.empty()) return model::bad_request(fmt::format("pod {} is on no node: its address {} is nobody's", pod_name, text));
  const auto object = cache.get(make_key("", "nodes", "", node_name));
  if (object == nullptr) return unavailable(fmt::format("node {} of pod {} is not there", node_name, pod_name));
  const auto node = decode_object(*object);
  if (json::find(node, {"metadata", "annotations", kSimulatedNode}) != nullptr)
    return not_run_here(
        fmt::format("pod {} is on node {}, which is simulated: nothing of this cluster listens at {}. Pods of a real node "
                    "(berth up --real-node on, or berth node) can be reached",
                    pod_name, node_name, text));
  if (json::get_int(node, {"status", "daemonEndpoints", "kubeletEndpoint", "Port"}) == 0)
    return unavailable(fmt::format("node {} has no agent that would run pod {} at {}", node_name, pod_name, text));
  const auto address = net::IpAddress::parse(text);
  if (json::get_bool(pod, {"spec", "hostNetwork"})) {
    for (const auto& one : json::get_array(node, {"status", "addresses"}))
      if (net::IpAddress::parse(json::get_string(one, {"address"})) == address) return std::nullopt;
    return model::bad_request(fmt::format("address not allowed: pod {} is in its node's network, and {} is not an address of node {}",
                                          pod_name, text, node_name));
  }
  auto networks = json::get_array(node, {"spec", "podCIDRs"});
  if (const auto* one = json::find(node, {"spec", "podCIDR"}); networks.empty() && one != nullptr) networks.push_back(*one);
  if (networks.empty()) return std::nullopt;
  for (const auto& network : networks)
    if (network.is_string() && address->is_in(json::as_view(network))) return std::nullopt;
  return model::bad_request(
      fmt::format("address not allowed: {} is not in the pod network of node {} ({})", text, node_name, json::as_view(networks[0])));
}

model::ApiResult<FarEnd> far_end(const ObjectCache& cache, const ProxyName& name, const json::Value& pod, const std::string& address,
                                 std::string_view port) {
  if (auto refusal = refuse_address(cache, pod, address)) return std::unexpected(std::move(*refusal));
  return FarEnd{
      .url = url_of(name, address, port), .on_host = json::get_bool(pod, {"spec", "hostNetwork"}), .failure = std::string(kNoService)};
}

/// Where a pods/proxy request goes (pkg/registry/core/pod/strategy.go ResourceLocation).
model::ApiResult<FarEnd> locate_pod(const ObjectCache& cache, const ProxyName& name, const json::Value& pod) {
  std::string port = name.port;
  for (const auto& container : json::get_array(pod, {"spec", "containers"}))
    for (const auto& one : json::get_array(container, {"ports"}))
      if (port.empty() && json::get_int(one, {"containerPort"}) > 0) port = std::to_string(json::get_int(one, {"containerPort"}));
  return far_end(cache, name, pod, std::string(json::get_string(pod, {"status", "podIP"})), port);
}

/// The pod that an address of Endpoints stands for, when the pod has that address.
std::optional<json::Value> pod_behind(const ObjectCache& cache, const std::string& ns, const json::Value& address) {
  const std::string name(json::get_string(address, {"targetRef", "name"}));
  const auto target_ns = json::get_string(address, {"targetRef", "namespace"}, ns);
  if (json::get_string(address, {"targetRef", "kind"}) != "Pod" || name.empty() || target_ns != ns) return std::nullopt;
  const auto object = cache.get(make_key("", "pods", ns, name));
  if (object == nullptr) return std::nullopt;
  auto pod = decode_object(*object);
  const auto ip = json::get_string(address, {"ip"});
  bool has_it = json::get_string(pod, {"status", "podIP"}) == ip;
  for (const auto& one : json::get_array(pod, {"status", "podIPs"})) has_it = has_it || json::get_string(one, {"ip"}) == ip;
  if (!has_it) return std::nullopt;
  return pod;
}

/// Where a services/proxy request goes: one of the ready addresses behind the port (pkg/registry/core/service ResourceLocation).
model::ApiResult<FarEnd> locate_service(const ObjectCache& cache, const std::string& ns, const ProxyName& name, const json::Value& service,
                                        const json::Value& endpoints) {
  std::string port_name = name.port;
  std::int64_t number = 0;
  if (const auto [end, error] = std::from_chars(name.port.data(), name.port.data() + name.port.size(), number);
      error == std::errc() && end == name.port.data() + name.port.size()) {
    const auto& ports = json::get_array(service, {"spec", "ports"});
    const auto found = std::ranges::find_if(ports, [&](const json::Value& port) { return json::get_int(port, {"port"}) == number; });
    if (found == ports.end())
      return std::unexpected(unavailable(fmt::format("no service port {} found for service \"{}\"", number, name.name)));
    port_name = json::get_string(*found, {"name"});
  }
  static std::atomic<std::size_t> turn = 0;
  for (const auto& subset : json::get_array(endpoints, {"subsets"})) {
    const auto& addresses = json::get_array(subset, {"addresses"});
    if (addresses.empty()) continue;
    for (const auto& port : json::get_array(subset, {"ports"})) {
      if (json::get_string(port, {"name"}) != port_name) continue;
      const auto& address = addresses[turn++ % addresses.size()];
      const std::string ip(json::get_string(address, {"ip"}));
      if (!is_proxyable(ip)) return std::unexpected(model::bad_request("address not allowed"));
      const auto pod = pod_behind(cache, ns, address);
      if (!pod)
        return std::unexpected(model::bad_request(fmt::format(
            "address not allowed: {} behind service \"{}\" is no pod of this namespace, and proxies lead to pods alone", ip, name.name)));
      return far_end(cache, name, *pod, ip, std::to_string(json::get_int(port, {"port"})));
    }
  }
  return std::unexpected(unavailable(fmt::format("no endpoints available for service \"{}\"", name.name)));
}

model::ApiResult<FarEnd> locate_proxied(const ObjectCache& cache, const Request& request) {
  const auto& kind = *request.kind;
  const auto name = parse_proxy_name(request.info.name);
  if (!name)
    return std::unexpected(
        model::bad_request(fmt::format("invalid {} request {}", kind.singular, json::serialize(json::Value(request.info.name)))));
  const auto object = cache.get(make_key("", kind.plural, request.info.ns, name->name));
  if (object == nullptr) return std::unexpected(model::not_found("", kind.plural, name->name));
  if (kind.plural == "pods") return locate_pod(cache, *name, decode_object(*object));
  const auto endpoints = cache.get(make_key("", "endpoints", request.info.ns, name->name));
  if (endpoints == nullptr) return std::unexpected(model::not_found("", "endpoints", name->name));
  return locate_service(cache, request.info.ns, *name, decode_object(*object), decode_object(*endpoints));
}

/// The proxied root without its slash: relative links of a page there would lead elsewhere (UpgradeAwareHandler's redirect).
bool is_bare_root(const net::HttpRequest& http) {
  return (http.method == "GET" || http.method == "HEAD") && http.path.ends_with("/proxy") && !net::asks_for_upgrade(http.headers);
}

/// What of `path` stands before its end `suffix`: where a proxied root is seen.
std::string path_before(std::string_view path, std::string_view suffix) {
  return std::string(path.ends_with(suffix) ? path.substr(0, path.size() - suffix.size()) : path);
}

net::HttpRequest without_upgrade(const net::HttpRequest& http) {
  net::HttpRequest out;
  out.method = http.method;
  for (const auto& [name, value] : http.headers.fields())
    if (!net::equal_ignoring_case(name, "Connection") && !net::equal_ignoring_case(name, "Upgrade") &&
        !net::equal_ignoring_case(name, "Sec-WebSocket-Protocol") && !net::equal_ignoring_case(name, "Sec-WebSocket-Key") &&
        !net::equal_ignoring_case(name, "Sec-WebSocket-Version") && !net::equal_ignoring_case(name, "Sec-WebSocket-Extensions"))
      out.headers.add(name, value);
  out.remote_address = http.remote_address;
  return out;
}

}  // namespace

void NodeProxy::serve(const RequestPtr& request) {
  const auto& info = request->info;
  const bool is_proxied = info.subresource == "proxy";
  const bool moves = is_proxied && is_bare_root(request->http);  // Once it is known that somebody is there.
  const auto to = !is_proxied ? net::Onward::kSession : request->kind->plural == "nodes" ? net::Onward::kNode : net::Onward::kWorkload;
  auto onward = net::onward_request(request->http, to);
  if (request->kind->plural == "nodes") {
    std::string path;
    for (const auto& part : info.rest) path += "/" + part;
    onward.path = path;
    if (path.empty() || request->http.path.ends_with('/')) onward.path += "/";
    onward.query = request->http.query;
    const auto name = parse_proxy_name(info.name);
    if (moves && name && ground_.cache->get(make_key("", "nodes", "", name->name)) != nullptr) return move_on(request);
    return to_port(request, std::move(onward));
  }
  if (is_proxied) {
    auto location = locate_proxied(*ground_.cache, *request);
    if (!location) return respond_.status(*request, location.error());
    if (moves) return move_on(request);
    for (const auto& part : info.rest) onward.path += "/" + part;
    if (onward.path.empty() || request->http.path.ends_with('/')) onward.path += "/";
    onward.query = request->http.query;
    location->path_prefix = path_before(request->http.path, onward.path);
    return relays_.send_on(request, *location, std::move(onward));
  }
  // A log is asked of the node in plain HTTP, whatever the client wants it by.
  if (info.subresource == "log") onward = net::onward_request(without_upgrade(request->http), to);
  if (info.subresource == "log")
    if (const auto wrong = check_log_options(request->query, info.name)) return respond_.status(*request, *wrong);
  const auto object = ground_.cache->get(object_key(*request->kind, info.ns, info.name));
  if (object == nullptr) return respond_.status(*request, model::not_found("", "pods", info.name));
  const auto pod = decode_object(*object);
  const std::string node(json::get_string(pod, {"spec", "nodeName"}));
  if (node.empty()) {
    if (info.subresource == "log") return respond_.text(*request, 200, "text/plain", "");
    return respond_.status(*request, model::bad_request(fmt::format("pod {} does not have a host assigned", info.name)));
  }
  if (info.subresource == "portforward") {
    onward.path = fmt::format("/portForward/{}/{}", info.ns, info.name);
    // WebSockets name their ports in the request; the kubelet calls them so.
    if (const auto ports = request->query.all("ports"); !ports.empty()) onward.query = fmt::format("port={}", fmt::join(ports, ","));
    return to_agent(request, node, std::move(onward));
  }
  const auto container = choose_container(pod, request->query.get("container"));
  if (!container) return respond_.status(*request, container.error());
  if (info.subresource == "log") {
    onward.path = fmt::format("/containerLogs/{}/{}/{}", info.ns, info.name, *container);
    onward.query = query_without(request->query, {"container"});
    return to_agent(request, node, std::move(onward));
  }
  // The agent's own names of the streams.
  onward.path = fmt::format("/{}/{}/{}/{}", info.subresource, info.ns, info.name, *container);
  for (auto [ours, theirs] :
       {std::pair{"stdin", "input"}, std::pair{"stdout", "output"}, std::pair{"stderr", "error"}, std::pair{"tty", "tty"}})
    if (request->query.flag(ours)) onward.query += fmt::format("{}{}=1", onward.query.empty() ? "" : "&", theirs);
  for (const auto& argument : request->query.all("command"))
    onward.query += fmt::format("{}command={}", onward.query.empty() ? "" : "&", net::percent_encode(argument));
  to_agent(request, node, std::move(onward));
}

void NodeProxy::move_on(const RequestPtr& request) {
  respond_.account(*request, 301);
  net::HttpResponse moved;
  moved.status = 301;
  moved.headers.add("Location", fmt::format("{}/{}{}", request->http.path, request->http.query.empty() ? "" : "?", request->http.query));
  request->writer->respond(std::move(moved));
}

void NodeProxy::to_agent(const RequestPtr& request, const std::string& node, net::HttpRequest onward) {
  if (backend_) {
    auto writer = request->writer;
    if (backend_(node, onward, writer)) return respond_.account(*request, 200);
  }
  const auto object = ground_.cache->get(make_key("", "nodes", "", node));
  if (object == nullptr) return respond_.status(*request, model::not_found("", "nodes", node));
  const auto document = decode_object(*object);
  const auto port = json::get_int(document, {"status", "daemonEndpoints", "kubeletEndpoint", "Port"});
  std::string address;
  for (std::string_view type : {"InternalIP", "ExternalIP", "Hostname"})
    for (const auto& candidate : json::get_array(document, {"status", "addresses"}))
      if (address.empty() && json::get_string(candidate, {"type"}) == type) address = json::get_string(candidate, {"address"});
  if (address.empty() || port == 0)
    return respond_.status(*request, unavailable(fmt::format("node {} has no agent that can be reached", node)));

  relays_.send_on(request,
                  {.url = fmt::format("https://{}:{}", in_url(address), port),
                   .node = node,
                   .failure = "error dialing backend: ",
                   .path_prefix = request->info.subresource == "proxy" ? path_before(request->http.path, onward.path) : ""},
                  std::move(onward));
}

void NodeProxy::to_port(const RequestPtr& request, net::HttpRequest onward) {
  const auto name = parse_proxy_name(request->info.name);
  if (!name)
    return respond_.status(*request,
                           model::bad_request(fmt::format("invalid node request {}", json::serialize(json::Value(request->info.name)))));
  if (name->port.empty()) return to_agent(request, name->name, std::move(onward));
  const auto object = ground_.cache->get(make_key("", "nodes", "", name->name));
  if (object == nullptr) return respond_.status(*request, model::not_found("", "nodes", name->name));
  const auto node = decode_object(*object);
  const auto agent = json::get_int(node, {"status", "daemonEndpoints", "kubeletEndpoint", "Port"});
  if (name->port == std::to_string(agent)) return to_agent(request, name->name, std::move(onward));
  if (json::find(node, {"metadata", "annotations", kSimulatedNode}) != nullptr)
    return respond_.status(*request,
                           not_run_here(fmt::format("node {} is simulated: nothing listens on its port {}", name->name, name->port)));
  std::string address;
  for (std::string_view type : {"InternalIP", "ExternalIP"})
    for (const auto& one : json::get_array(node, {"status", "addresses"}))
      if (address.empty() && json::get_string(one, {"type"}) == type) address = json::get_string(one, {"address"});
  if (!is_proxyable(address)) return respond_.status(*request, model::bad_request("address not allowed"));
  relays_.send_on(request,
                  {.url = url_of(*name, address, name->port),
                   .on_host = true,
                   .failure = std::string(kNoService),
                   .path_prefix = path_before(request->http.path, onward.path)},
                  std::move(onward));
}

}  // namespace berth::apiserver
