#include "node/services/health_ports.h"

#include <fmt/format.h>

#include <atomic>

#include "base/json.h"
#include "base/log.h"
#include "net/server.h"

namespace berth::node::services {

struct HealthPorts::One final : net::Handler {
  void handle(net::HttpRequest, std::shared_ptr<net::ResponseWriter> writer) override {
    const int count = local.load();
    net::HttpResponse answer;
    answer.status = count > 0 ? 200 : 503;
    answer.headers.add("Content-Type", "application/json");
    answer.headers.add("X-Content-Type-Options", "nosniff");
    answer.headers.add("X-Load-Balancing-Endpoint-Weight", std::to_string(count));
    answer.body =
        json::serialize(json::Object{
            {"service", json::Object{{"namespace", ns}, {"name", name}}}, {"localEndpoints", count}, {"serviceProxyHealthy", true}}) +
        "\n";
    writer->respond(std::move(answer));
  }

  std::string ns, name;
  std::uint16_t port = 0;
  std::atomic<int> local{0};
  std::unique_ptr<net::Server> server;  ///< Goes first.
};

HealthPorts::HealthPorts() = default;
HealthPorts::~HealthPorts() = default;

void HealthPorts::set(const std::string& ns, const std::string& name, std::uint16_t port, int local_endpoints) {
  const std::pair key{ns, name};
  const auto found = ports_.find(key);
  if (found != ports_.end() && found->second->port == port && found->second->server) return found->second->local.store(local_endpoints);
  if (found != ports_.end()) ports_.erase(found);
  if (port == 0) return;
  auto one = std::make_unique<One>();
  one->ns = ns, one->name = name, one->port = port, one->local = local_endpoints;
  net::ServerConfig config;
  config.address = "0.0.0.0";
  config.port = port;
  config.io_threads = 1;
  config.max_connections = 64;
  if (auto server = net::Server::start(config, *one))
    one->server = std::move(*server);
  else
    log::warning("proxy", "healthCheckNodePort {} of {}/{}: {}", port, ns, name, server.error().message);
  ports_[key] = std::move(one);
}

}  // namespace berth::node::services
