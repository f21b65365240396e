#include "node/services/proxy_health.h"

#include <fmt/chrono.h>

#include "base/log.h"
#include "base/mutex.h"

namespace berth::node::services {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);  // Twice kube-proxy's syncPeriod.

/// As Go prints a time.
std::string go_time(TimePoint time) {
  const auto us = time.time_since_epoch().count() % 1'000'000;
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06} +0000 UTC",
                     fmt::gmtime(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count()), us);
}

bool is_eligible(const json::Value& node) {
  if (json::find(node, {"metadata", "deletionTimestamp"})) return false;
  return std::ranges::none_of(json::get_array(node, {"spec", "taints"}), [](const json::Value& taint) {
    return json::get_string(taint, {"key"}) == "ToBeDeletedByClusterAutoscaler";
  });
}

}  // namespace

void ProxyHealth::changes_wait() {
  MutexLock lock(mutex_);
  if (!waits_since_) waits_since_ = clock_.now();
}

void ProxyHealth::changes_done() {
  MutexLock lock(mutex_);
  waits_since_.reset();
  done_at_ = clock_.now();
}

void ProxyHealth::set_node(const json::Value& node) {
  MutexLock lock(mutex_);
  is_eligible_ = is_eligible(node);
}

net::HttpResponse ProxyHealth::answer(std::string_view path) const {
  net::HttpResponse out;
  if (path != "/healthz" && path != "/livez") {
    out.status = 404;
    out.headers.add("Content-Type", "text/plain; charset=utf-8");
    out.body = "404 page not found\n";
    return out;
  }
  MutexLock lock(mutex_);
  const TimePoint now = clock_.now();
  const bool is_healthy = done_at_ && (!waits_since_ || now - *waits_since_ < kPatience);
  out.status = is_healthy && (path == "/livez" || is_eligible_) ? 200 : 503;
  out.headers.add("Content-Type", "application/json");
  out.headers.add("X-Content-Type-Options", "nosniff");
  // Whoever is up to date was so just now, whenever something last changed.
  const std::string updated = is_healthy ? go_time(now) : done_at_ ? go_time(*done_at_) : "0001-01-01 00:00:00 +0000 UTC";
  out.body = fmt::format(R"({{"lastUpdated": "{}","currentTime": "{}", "nodeEligible": {}}})", updated, go_time(now), is_eligible_);
  return out;
}

struct ProxyHealthServer::Handler final : net::Handler {
  explicit Handler(const ProxyHealth& h) : health(h) {}
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    writer->respond(health.answer(request.path));
  }
  const ProxyHealth& health;
};

ProxyHealthServer::ProxyHealthServer() = default;
ProxyHealthServer::~ProxyHealthServer() = default;

std::unique_ptr<ProxyHealthServer> ProxyHealthServer::start(std::uint16_t port, const ProxyHealth& health) {
  std::unique_ptr<ProxyHealthServer> out(new ProxyHealthServer);
  out->handler_ = std::make_unique<Handler>(health);
  net::ServerConfig config;
  config.address = "0.0.0.0";
  config.port = port;
  config.io_threads = 1;
  config.max_connections = 64;
  auto server = net::Server::start(config, *out->handler_);
  if (!server) {
    log::warning("proxy", "nobody is told at port {} whether this node leads Services: {}", port, server.error().message);
    return nullptr;
  }
  out->server_ = std::move(*server);
  return out;
}

}  // namespace berth::node::services
