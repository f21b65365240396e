// log, exec, attach, portforward and nodes/proxy: relayed to the agent of the pod's node.
#include "apiserver/impl.h"

namespace berth::apiserver {
namespace {

/// Two upgraded connections, each one's bytes written to the other until either ends.
class Splice : public std::enable_shared_from_this<Splice> {
 public:
  Splice(std::unique_ptr<net::RawStream> client, std::unique_ptr<net::RawStream> node) : client_(std::move(client)), node_(std::move(node)) {}
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

}  // namespace

void ApiServer::Impl::proxy_to_node(const RequestPtr& request) {
  const auto& info = request->info;
  net::HttpRequest onward;
  onward.method = request->http.method;
  onward.headers = request->http.headers;
  onward.body = request->http.body;
  if (request->kind->plural == "nodes") {
    std::string path;
    for (const auto& part : info.rest) path += "/" + part;
    onward.path = path.empty() ? "/" : path;
    onward.query = request->http.query;
    return relay(request, info.name, std::move(onward));
  }
  if (request->kind->plural != "pods" || info.subresource == "proxy")
    return respond_status(*request, unavailable("proxying to pods and services is not available: this server is not part of the pod network"));
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
  for (auto [ours, theirs] : {std::pair{"stdin", "input"}, std::pair{"stdout", "output"}, std::pair{"stderr", "error"}, std::pair{"tty", "tty"}})
    if (request->query.flag(ours)) onward.query += fmt::format("{}{}=1", onward.query.empty() ? "" : "&", theirs);
  for (const auto& argument : request->query.all("command"))
    onward.query += fmt::format("{}command={}", onward.query.empty() ? "" : "&", net::percent_encode(argument));
  relay(request, node, std::move(onward));
}

void ApiServer::Impl::relay(const RequestPtr& request, const std::string& node, net::HttpRequest onward) {
  // The user's credentials are for this server alone.
  net::Headers headers;
  for (const auto& [name, value] : onward.headers.fields()) {
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower == "authorization" || lower == "host" || lower == "content-length" || lower == "accept-encoding" || lower.starts_with("impersonate-")) continue;
    headers.add(name, value);
  }
  onward.headers = std::move(headers);
  const bool upgrades = !onward.headers.get("Upgrade").empty();
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
  if (address.empty() || port == 0) return respond_status(*request, unavailable(fmt::format("node {} has no agent that can be reached", node)));

  const auto url = fmt::format("https://{}:{}", address.find(':') == std::string::npos ? address : "[" + address + "]", port);
  std::shared_ptr<net::HttpClient> client;
  {
    const std::lock_guard lock(node_clients_mutex);
    auto& slot = node_clients[url];
    if (slot == nullptr) {
      auto config = options.node_client;
      config.url = url;
      // As kube-apiserver without --kubelet-certificate-authority: nodes show certificates that they signed themselves.
      config.insecure_skip_verify = config.ca_pem.empty();
      auto made = net::HttpClient::create(std::move(config));
      if (!made) return respond_status(*request, unavailable(made.error().message));
      slot = std::move(*made);
    }
    client = slot;
  }
  if (upgrades) {
    client->upgrade(std::move(onward), [this, request](std::unique_ptr<net::RawStream> stream, net::HttpResponse response) {
      if (stream == nullptr) {
        if (response.status == 0) return respond_status(*request, unavailable("error dialing backend: " + response.body));
        account(*request, response.status);
        return request->writer->respond(std::move(response));
      }
      account(*request, 101);
      auto own = request->writer->upgrade(std::move(response.headers));
      if (own != nullptr) std::make_shared<Splice>(std::move(own), std::move(stream))->start();
    });
    return;
  }
  auto passing = std::make_shared<Relay>();
  passing->request = request;
  net::StreamCallbacks callbacks;
  const bool is_log = request->info.subresource == "log";
  callbacks.on_header = [this, passing, is_log](int status, const net::Headers& from_node) {
    passing->started = true;
    if (is_log && (status < 200 || status > 206)) {
      passing->refused = status;
      return;
    }
    account(*passing->request, status);
    net::Headers to_client;
    if (const auto type = from_node.get("Content-Type"); !type.empty()) to_client.add("Content-Type", std::string(type));
    passing->request->writer->start_stream(status, std::move(to_client));
  };
  callbacks.on_data = [passing](std::string_view data) {
    if (passing->refused == 0) passing->request->writer->write(make_bytes(std::string(data)));
    else if (passing->refusal.size() < kMaxRefusalBytes) passing->refusal += data;
  };
  callbacks.on_end = [this, passing](std::string error) {
    if (!passing->started) return respond_status(*passing->request, unavailable("error dialing backend: " + error));
    if (passing->refused != 0) return respond_status(*passing->request, refused_by_node(passing->refused, passing->refusal));
    passing->request->writer->finish();
  };
  // The stream ends with its client: the handle lives in the closing callback.
  request->writer->on_close([this, passing] {
    std::unique_ptr<net::StreamHandle> stream;
    {
      const std::lock_guard lock(passing->mutex);
      stream = std::move(passing->stream);
    }
    if (stream == nullptr) return;
    // Not here: this may be called from within one of the stream's own callbacks.
    auto shared = std::make_shared<std::unique_ptr<net::StreamHandle>>(std::move(stream));
    loop.post([shared] { shared->reset(); });
  });
  auto stream = client->stream(std::move(onward), std::move(callbacks));
  const std::lock_guard lock(passing->mutex);
  passing->stream = std::move(stream);
}

}  // namespace berth::apiserver
