// log, exec, attach, portforward and nodes/proxy: relayed to the agent of the pod's node. pods/proxy and services/proxy: to the pods
// themselves.
#include <arpa/inet.h>

#include "apiserver/impl.h"
#include "apiserver/subresources/log_options.h"
#include "net/onward.h"

namespace berth::apiserver {
namespace {

/// Two upgraded connections, each one's bytes written to the other until either ends.
class Splice : public std::enable_shared_from_this<Splice> {
 public:
  Splice(std::unique_ptr<net::RawStream> client, std::unique_ptr<net::RawStream> node)
      : client_(std::move(client)), node_(std::move(node)) {}
  void start() {
    pump(*client_, *node_);
    pump(*node_, *client_);
  }

 private:
  void pump(net::RawStream& from, net::RawStream& to) {
    from.async_read([self = shared_from_this(), &from, &to](std::string data, bool eof) {
      if (!data.empty()) to.write(std::move(data));
      if (eof) {
        to.close();
        from.close();
        return;
      }
      self->pump(from, to);
    });
  }
  std::unique_ptr<net::RawStream> client_, node_;
};

/// A streamed answer of the node, passed on as it comes.
struct Relay {
  RequestPtr request;
  std::unique_ptr<net::StreamHandle> stream;
  std::mutex mutex;
  bool started = false;
  /// Of a log request: what the node refused it with, to be passed on as a Status (registry/rest GenericHttpResponseChecker).
  int refused = 0;
  std::string refusal;
};
constexpr std::size_t kMaxRefusalBytes = 2048;
constexpr std::size_t kMaxIdleClients = 256;

/// How many exchanges go through each client: those with none may be let go. A client that was upgraded stays.
struct ClientUse {
  std::mutex mutex;
  std::map<const net::HttpClient*, int> exchanges;

  void add(const net::HttpClient* client, int change) {
    const std::lock_guard lock(mutex);
    exchanges[client] += change;
  }
  bool forget_idle(const net::HttpClient* client) {
    const std::lock_guard lock(mutex);
    if (exchanges[client] > 0) return false;
    exchanges.erase(client);
    return true;
  }
};
ClientUse& client_use() {
  static ClientUse use;
  return use;
}

model::ApiStatus refused_by_node(int code, std::string message) {
  if (code == 400) return model::bad_request(std::move(message));
  model::ApiStatus status;
  status.code = code;
  status.reason = code == 404 ? "NotFound" : code == 403 ? "Forbidden" : code == 401 ? "Unauthorized" : "InternalError";
  status.message = code == 500 ? "Internal error occurred: " + message : std::move(message);
  return status;
}

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

model::ApiStatus unavailable(std::string_view message) {
  model::ApiStatus status;
  status.code = 503;
  status.reason = "ServiceUnavailable";
  status.message = message;
  return status;
}

std::string in_url(std::string_view address) {
  return address.find(':') == std::string_view::npos ? std::string(address) : fmt::format("[{}]", address);
}

/// Go's net.IP.IsGlobalUnicast: what a pod may have, and never this machine itself (k8s.io/apimachinery proxy util).
bool is_proxyable(const std::string& address) {
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1)
    return bytes[0] != 0 && bytes[0] != 127 && bytes[0] < 224 && !(bytes[0] == 169 && bytes[1] == 254);
  if (inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return false;
  const bool is_low =
      std::all_of(bytes.begin(), bytes.begin() + 10, [](unsigned char b) { return b == 0; });  // ::, ::1 and mapped IPv4 addresses.
  return !is_low && bytes[0] != 0xff && !(bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80);
}

/// "[scheme:]name[:port]", the name of a proxied pod or service.
struct ProxyName {
  std::string scheme, name, port;
};

std::optional<ProxyName> parse_proxy_name(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const auto end = std::min(text.find(':', start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
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

/// Where a pods/proxy request goes (pkg/registry/core/pod/strategy.go ResourceLocation).
model::ApiResult<std::string> locate_pod(const ProxyName& name, const json::Value& pod) {
  std::string port = name.port;
  for (const auto& container : json::get_array(pod, {"spec", "containers"}))
    for (const auto& one : json::get_array(container, {"ports"}))
      if (port.empty() && json::get_int(one, {"containerPort"}) > 0) port = std::to_string(json::get_int(one, {"containerPort"}));
  const std::string address(json::get_string(pod, {"status", "podIP"}));
  if (!is_proxyable(address)) return std::unexpected(model::bad_request("address not allowed"));
  return url_of(name, address, port);
}

/// Where a services/proxy request goes: one of the ready addresses behind the port (pkg/registry/core/service ResourceLocation).
model::ApiResult<std::string> locate_service(const ProxyName& name, const json::Value& service, const json::Value& endpoints) {
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
      const std::string address(json::get_string(addresses[turn++ % addresses.size()], {"ip"}));
      if (!is_proxyable(address)) return std::unexpected(model::bad_request("address not allowed"));
      return url_of(name, address, std::to_string(json::get_int(port, {"port"})));
    }
  }
  return std::unexpected(unavailable(fmt::format("no endpoints available for service \"{}\"", name.name)));
}

model::ApiResult<std::string> locate_proxied(const ObjectCache& cache, const Request& request) {
  const auto& kind = *request.kind;
  const auto name = parse_proxy_name(request.info.name);
  if (!name)
    return std::unexpected(
        model::bad_request(fmt::format("invalid {} request {}", kind.singular, json::serialize(json::Value(request.info.name)))));
  const auto object = cache.get(make_key("", kind.plural, request.info.ns, name->name));
  if (object == nullptr) return std::unexpected(model::not_found("", kind.plural, name->name));
  if (kind.plural == "pods") return locate_pod(*name, decode_object(*object));
  const auto endpoints = cache.get(make_key("", "endpoints", request.info.ns, name->name));
  if (endpoints == nullptr) return std::unexpected(model::not_found("", "endpoints", name->name));
  return locate_service(*name, decode_object(*object), decode_object(*endpoints));
}

/// Sends a request on and its answer back. `failure`: what stands before the reason when nothing answers at `url`.
void relay_to(ApiServer::Impl& server, const RequestPtr& request, const std::string& url, const std::string& failure,
              net::HttpRequest onward) {
  const bool upgrades = !onward.headers.get("Upgrade").empty();
  const bool is_node = request->kind->plural == "nodes" || request->info.subresource != "proxy";
  std::shared_ptr<net::HttpClient> client;
  {
    const std::lock_guard lock(server.node_clients_mutex);
    // Clients that nothing goes through make room; pods come and go.
    if (server.node_clients.size() >= kMaxIdleClients)
      std::erase_if(server.node_clients, [](const auto& entry) { return client_use().forget_idle(entry.second.get()); });
    auto& slot = server.node_clients[url];
    if (slot == nullptr) {
      // The certificate towards nodes is not for what runs in pods.
      auto config = is_node ? server.options.node_client : net::ClientConfig{};
      config.url = url;
      // As kube-apiserver without --kubelet-certificate-authority: nodes show certificates that they signed themselves.
      config.insecure_skip_verify = config.ca_pem.empty();
      auto made = net::HttpClient::create(std::move(config));
      if (!made) return server.respond_status(*request, unavailable(made.error().message));
      slot = std::move(*made);
    }
    client = slot;
    client_use().add(client.get(), 1);
  }
  if (upgrades) {
    client->upgrade(std::move(onward), [&server, request, failure](std::unique_ptr<net::RawStream> stream, net::HttpResponse response) {
      if (stream == nullptr) {
        if (response.status == 0) return server.respond_status(*request, unavailable(failure + response.body));
        server.account(*request, response.status);
        response.headers = net::headers_back(response.headers);
        return request->writer->respond(std::move(response));
      }
      server.account(*request, 101);
      auto own = request->writer->upgrade(std::move(response.headers));
      if (own != nullptr) std::make_shared<Splice>(std::move(own), std::move(stream))->start();
    });
    return;
  }
  auto passing = std::make_shared<Relay>();
  passing->request = request;
  net::StreamCallbacks callbacks;
  const bool is_log = request->info.subresource == "log";
  callbacks.on_header = [&server, passing, is_log, is_node](int status, const net::Headers& from_node) {
    passing->started = true;
    if (is_log && (status < 200 || status > 206)) {
      passing->refused = status;
      return;
    }
    server.account(*passing->request, status);
    net::Headers to_client;
    if (!is_node)
      to_client = net::headers_back(from_node);
    else if (const auto type = from_node.get("Content-Type"); !type.empty())
      to_client.add("Content-Type", std::string(type));
    passing->request->writer->start_stream(status, std::move(to_client));
  };
  callbacks.on_data = [passing](std::string_view data) {
    if (passing->refused == 0)
      passing->request->writer->write(make_bytes(std::string(data)));
    else if (passing->refusal.size() < kMaxRefusalBytes)
      passing->refusal += data;
  };
  callbacks.on_end = [&server, passing, failure](std::string error) {
    if (!passing->started) return server.respond_status(*passing->request, unavailable(failure + error));
    if (passing->refused != 0) return server.respond_status(*passing->request, refused_by_node(passing->refused, passing->refusal));
    passing->request->writer->finish();
  };
  // The stream ends with its client: the handle lives in the closing callback.
  request->writer->on_close([&server, passing, key = client.get()] {
    std::unique_ptr<net::StreamHandle> stream;
    {
      const std::lock_guard lock(passing->mutex);
      stream = std::move(passing->stream);
    }
    if (stream == nullptr) return;
    // Not here: this may be called from within one of the stream's own callbacks.
    auto shared = std::make_shared<std::unique_ptr<net::StreamHandle>>(std::move(stream));
    server.loop.post([shared, key] {
      shared->reset();
      client_use().add(key, -1);
    });
  });
  auto stream = client->stream(std::move(onward), std::move(callbacks));
  const std::lock_guard lock(passing->mutex);
  passing->stream = std::move(stream);
}

}  // namespace

void ApiServer::Impl::proxy_to_node(const RequestPtr& request) {
  const auto& info = request->info;
  const bool is_proxied = info.subresource == "proxy";
  const auto to = !is_proxied ? net::Onward::kSession : request->kind->plural == "nodes" ? net::Onward::kNode : net::Onward::kWorkload;
  auto onward = net::onward_request(request->http, to);
  if (request->kind->plural == "nodes") {
    std::string path;
    for (const auto& part : info.rest) path += "/" + part;
    onward.path = path.empty() ? "/" : path;
    onward.query = request->http.query;
    return relay(request, info.name, std::move(onward));
  }
  if (is_proxied) {
    const auto location = locate_proxied(*cache, *request);
    if (!location) return respond_status(*request, location.error());
    for (const auto& part : info.rest) onward.path += "/" + part;
    if (onward.path.empty() || request->http.path.ends_with('/')) onward.path += "/";
    onward.query = request->http.query;
    return relay_to(*this, request, *location, "error trying to reach service: ", std::move(onward));
  }
  if (info.subresource == "log")
    if (const auto wrong = check_log_options(request->query, info.name)) return respond_status(*request, *wrong);
  const auto object = cache->get(object_key(*request->kind, info.ns, info.name));
  if (object == nullptr) return respond_status(*request, model::not_found("", "pods", info.name));
  const auto pod = decode_object(*object);
  const std::string node(json::get_string(pod, {"spec", "nodeName"}));
  if (node.empty()) {
    if (info.subresource == "log") return respond_text(*request, 200, "text/plain", "");
    return respond_status(*request, model::bad_request(fmt::format("pod {} does not have a host assigned", info.name)));
  }
  if (info.subresource == "portforward") {
    onward.path = fmt::format("/portForward/{}/{}", info.ns, info.name);
    onward.query = query_without(request->query, {});
    return relay(request, node, std::move(onward));
  }
  const auto container = choose_container(pod, request->query.get("container"));
  if (!container) return respond_status(*request, container.error());
  if (info.subresource == "log") {
    onward.path = fmt::format("/containerLogs/{}/{}/{}", info.ns, info.name, *container);
    onward.query = query_without(request->query, {"container"});
    return relay(request, node, std::move(onward));
  }
  // The agent's own names of the streams.
  onward.path = fmt::format("/{}/{}/{}/{}", info.subresource, info.ns, info.name, *container);
  for (auto [ours, theirs] :
       {std::pair{"stdin", "input"}, std::pair{"stdout", "output"}, std::pair{"stderr", "error"}, std::pair{"tty", "tty"}})
    if (request->query.flag(ours)) onward.query += fmt::format("{}{}=1", onward.query.empty() ? "" : "&", theirs);
  for (const auto& argument : request->query.all("command"))
    onward.query += fmt::format("{}command={}", onward.query.empty() ? "" : "&", net::percent_encode(argument));
  relay(request, node, std::move(onward));
}

void ApiServer::Impl::relay(const RequestPtr& request, const std::string& node, net::HttpRequest onward) {
  if (options.node_backend) {
    auto writer = request->writer;
    if (options.node_backend(node, onward, writer)) return account(*request, 200);
  }
  const auto object = cache->get(make_key("", "nodes", "", node));
  if (object == nullptr) return respond_status(*request, model::not_found("", "nodes", node));
  const auto document = decode_object(*object);
  const auto port = json::get_int(document, {"status", "daemonEndpoints", "kubeletEndpoint", "Port"});
  std::string address;
  for (std::string_view type : {"InternalIP", "ExternalIP", "Hostname"})
    for (const auto& candidate : json::get_array(document, {"status", "addresses"}))
      if (address.empty() && json::get_string(candidate, {"type"}) == type) address = json::get_string(candidate, {"address"});
  if (address.empty() || port == 0)
    return respond_status(*request, unavailable(fmt::format("node {} has no agent that can be reached", node)));

  relay_to(*this, request, fmt::format("https://{}:{}", in_url(address), port), "error dialing backend: ", std::move(onward));
}

}  // namespace berth::apiserver
