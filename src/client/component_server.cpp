#include "client/component_server.h"

#include "base/process_metrics.h"
#include "base/version.h"
#include "client/client.h"
#include "client/delegated_auth.h"
#include "net/debug_pages.h"
#include "security/pki.h"

namespace berth::client {
namespace {

using Writer = std::shared_ptr<net::ResponseWriter>;

void respond(net::ResponseWriter& writer, int status, std::string_view type, std::string body) {
  net::HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", std::string(type));
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Cache-Control", "no-cache, private");
  response.body = std::move(body);
  writer.respond(std::move(response));
}
constexpr std::string_view kText = "text/plain; charset=utf-8";

class Endpoints final : public net::Handler {
 public:
  explicit Endpoints(ComponentServerOptions options)
      : options_(std::make_shared<const ComponentServerOptions>(std::move(options))),
        debug_(net::make_debug_pages({.component = options_->name,
                                      .flags = options_->flags,
                                      .version = std::string(kBuildVersion),
                                      .emulated = std::string(kKubernetesVersion),
                                      .paths = {"/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz"},
                                      .profiling = options_->profiling})),
        auth_(options_->transport, clock_) {}

  void handle(net::HttpRequest request, Writer writer) override {
    if (request.method != "GET" && request.method != "HEAD") return respond(*writer, 405, kText, "405 method not allowed\n");
    // Open to everybody, as --authorization-always-allow-paths has it by default: probes have no credentials.
    for (const std::string_view health : {"/healthz", "/livez", "/readyz"})
      if (request.path == health || request.path.starts_with(std::string(health) + "/")) return serve_health(request, health, *writer);
    auth_.check(
        request, request.method == "HEAD" ? "head" : "get",
        [options = options_, debug = debug_, method = request.method, path = request.path, query = request.query,
         writer](std::optional<DelegatedAuth::Refusal> refusal) {
          if (!refusal && net::is_debug_page(path))
            return debug->handle(
                {.method = method, .path = path, .query = query, .headers = {}, .body = {}, .peer = {}, .remote_address = {}}, writer);
          if (refusal) return respond(*writer, refusal->code, "application/json", refusal_body(*refusal));
          if (path == "/metrics")
            return respond(*writer, 200, "text/plain; version=0.0.4; charset=utf-8",
                           (options->metrics ? options->metrics() : "") + metrics::expose_process());
          if (path == "/configz")
            return respond(
                *writer, 200, "application/json",
                json::serialize(json::Object{{options->config_name, options->config ? options->config() : json::Value(json::Object{})}}));
          respond(*writer, 404, kText, "404 page not found\n");
        });
  }

 private:
  static std::string refusal_body(const DelegatedAuth::Refusal& refusal) {
    model::ApiStatus status;
    status.code = refusal.code;
    status.reason = refusal.code == 401 ? "Unauthorized" : refusal.code == 403 ? "Forbidden" : "InternalError";
    status.message = refusal.message;
    return json::serialize(status.to_json());
  }

  void serve_health(const net::HttpRequest& request, std::string_view health, net::ResponseWriter& writer) {
    const std::string_view wanted = request.path == health ? std::string_view() : std::string_view(request.path).substr(health.size() + 1);
    std::vector<std::string> excluded;
    bool verbose = false;
    for (const auto& [key, value] : net::parse_query(request.query)) {
      if (key == "exclude") excluded.push_back(value);
      if (key == "verbose") verbose = true;
    }
    bool ok = true, found = false;
    std::string text;
    const auto look = [&](const std::string& name, const std::string& failure) {
      found = true;
      ok = ok && failure.empty();
      text += failure.empty() ? fmt::format("[+]{} ok\n", name) : fmt::format("[-]{} failed: {}\n", name, failure);
    };
    const auto is_asked = [&](const std::string& name) {
      return (wanted.empty() || wanted == name) && std::find(excluded.begin(), excluded.end(), name) == excluded.end();
    };
    if (is_asked("ping")) look("ping", "");
    for (const ComponentCheck& check : options_->checks)
      if ((!check.only_ready || health == "/readyz") && is_asked(check.name)) look(check.name, check.failure());
    if (!wanted.empty() && !found) return respond(writer, 404, kText, "404 page not found\n");
    if (!ok) return respond(writer, 500, kText, text + fmt::format("{} check failed\n", health.substr(1)));
    respond(writer, 200, kText, verbose && wanted.empty() ? text + fmt::format("{} check passed\n", health.substr(1)) : "ok");
  }

  std::shared_ptr<const ComponentServerOptions> options_;  ///< Shared with answers that wait for the API server.
  std::shared_ptr<net::Handler> debug_;
  SystemClock clock_;
  DelegatedAuth auth_;
};

class ComponentServerImpl final : public ComponentServer {
 public:
  explicit ComponentServerImpl(ComponentServerOptions options) : endpoints_(std::move(options)) {}
  ~ComponentServerImpl() override { listener_.reset(); }
  Result<void> listen(net::ServerConfig config) {
    auto listener = net::Server::start(std::move(config), endpoints_);
    if (!listener) return std::unexpected(listener.error());
    listener_ = std::move(*listener);
    return {};
  }
  [[nodiscard]] std::uint16_t port() const override { return listener_->port(); }

 private:
  Endpoints endpoints_;
  std::unique_ptr<net::Server> listener_;
};

}  // namespace

Result<std::unique_ptr<ComponentServer>> ComponentServer::start(ComponentServerOptions options) {
  net::ServerConfig config;
  config.address = options.address;
  config.port = options.port;
  config.io_threads = 1;
  config.max_body_bytes = 64 * 1024;
  config.max_connections = 500;
  config.tls = options.tls;
  if (config.tls->certificate_pem.empty()) {
    auto pair = security::Pki::self_signed_server(options.name, {options.address}, SystemClock().now());
    if (!pair) return std::unexpected(pair.error());
    config.tls->certificate_pem = std::move(pair->certificate_pem);
    config.tls->private_key_pem = std::move(pair->private_key_pem);
  }
  auto server = std::make_unique<ComponentServerImpl>(std::move(options));
  if (auto listening = server->listen(std::move(config)); !listening) return std::unexpected(listening.error());
  return server;
}

std::string published_client_ca(const std::shared_ptr<Transport>& transport) {
  Client client(transport, nullptr, "berth-delegated-auth");
  const auto map = client.get_and_wait({"", "v1", "configmaps"}, "kube-system", "extension-apiserver-authentication");
  return map ? std::string(json::get_string(*map, {"data", "client-ca-file"})) : std::string();
}

}  // namespace berth::client
