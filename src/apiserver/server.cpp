#include "apiserver/server.h"

#include "apiserver/cache/object_codec.h"
#include "apiserver/impl.h"
#include "apiserver/upkeep/bootstrap.h"
#include "apiserver/upkeep/client_trust.h"
#include "apiserver/verbs/verbs.h"
#include "apiserver/writes/alike.h"

namespace berth::apiserver {

Result<std::unique_ptr<ObjectCache>> open_object_cache(std::unique_ptr<store::Store> store, const Clock& clock, CacheOptions options,
                                                       bool synchronous, Duration event_ttl) {
  return ObjectCache::open(
      std::move(store), clock, options,
      [event_ttl](std::string_view key, const std::string& value) { return extract_meta(key, value, event_ttl); }, synchronous);
}

namespace {

std::unique_ptr<flow::Controller> make_flow_control(const ServerOptions& options, metrics::Registry& registry) {
  if (options.single_threaded) return nullptr;
  const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
  flow::Limits limits{options.max_requests_inflight, options.max_mutating_requests_inflight, threads};
  limits.is_fair = options.priority_and_fairness;
  limits.longest_wait =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::min<Duration>(options.request_timeout / 4, std::chrono::minutes(1)));
  if (options.memory_limit_bytes > 0) limits.waiting_bytes = std::min(limits.waiting_bytes, options.memory_limit_bytes / 8);
  return std::make_unique<flow::Controller>(limits, registry);
}

}  // namespace

ApiServer::Impl::Impl(ServerOptions given)
    : options(std::move(given)),
      ground(options),
      flow_control(make_flow_control(options, *ground.registry)),
      versions(ground),
      respond(ground, versions, flow_control.get()),
      streams(ground.loop, options.single_threaded ? Duration::zero() : options.watch_flush_pause,
              ground.registry->gauge("apiserver_registered_watchers", "Number of currently registered watchers.", {})),
      reads{ground, versions, respond, streams, options},
      relays(ground, respond, options.node_client),
      nodes(ground, respond, relays, options.node_backend),
      custom(std::make_unique<CustomResources>(ground,
                                               [this](std::string_view group, std::string_view plural) { streams.end(group, plural); })),
      writes{ground, versions, respond, *custom, options, write_steps, {}, {}, std::make_shared<Patterns>(*ground.registry)},
      aggregator(std::make_unique<aggregation::Aggregator>(ground, respond, relays)),
      pages(ground, respond, *aggregator, flow_control.get(), options.git_version),
      router(reads, writes, nodes, pages, *aggregator),
      requests(ground, options, respond, *custom, router, flow_control.get()),
      upkeep(ground, options, *custom, streams, flow_control.get()) {}

ApiServer::Impl::~Impl() {
  aggregator->stop();
  relays.clients.stop();
  upkeep.stop();
  streams.stop();
  // Order matters: no worker may start a write on a cache that is going, and whoever watches the cache goes before it.
  if (ground.askers != nullptr) ground.askers->stop();
  if (flow_control != nullptr) flow_control->stop();
  if (ground.workers != nullptr) ground.workers->stop();
  ground.cache->end();  // Who is answered may try again, through all that goes below.
  versions.stop();
  upkeep.close();
  custom.reset();
  writes.admission.reset();
  aggregator.reset();
  ground.close();
}

Result<void> ApiServer::Impl::start() {
  if (auto configured = writes.services.configure(options.service_cidr, options.node_port_first, options.node_port_last); !configured)
    return configured;
  if (options.service_claims != nullptr) writes.services.share(std::move(options.service_claims));
  AdmissionContext context{
      *ground.cache, ground.loop, *options.authorizer, options.admission, options.features, net::ClientConfig{}, {}, {}, {}, {}, {}};
  context.mirror = [this](std::string_view group, std::string_view plural) -> Mirror& { return ground.mirror(group, plural); };
  context.random_suffix = [this] { return ground.names.suffix(); };
  context.uid = [this] { return ground.names.uid(); };
  context.kinds = [this] { return custom == nullptr ? nullptr : custom->table(); };
  context.offload = [this](Task task) { ground.offload(std::move(task)); };
  auto chain = AdmissionChain::create(std::move(context));
  if (!chain) return std::unexpected(chain.error());
  writes.admission = std::move(*chain);
  custom->start();
  upkeep.guard_memory();
  if (auto made = make_system_objects(ground); !made) return made;
  aggregator->start();
  if (auto made = make_own_service(ground, writes.services); !made) return made;
  return upkeep.start();
}

Result<std::unique_ptr<ApiServer>> ApiServer::create(ServerOptions options) {
  if (options.cache == nullptr || options.loop == nullptr || options.authenticator == nullptr || options.authorizer == nullptr)
    return invalid("the API server needs a cache, a loop, an authenticator and an authorizer");
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto started = impl->start(); !started) return std::unexpected(started.error());
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(impl)));
}

ApiServer::ApiServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ApiServer::~ApiServer() = default;

void ApiServer::handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  impl_->requests.handle(std::move(request), std::move(writer));
}
ObjectCache& ApiServer::cache() { return *impl_->ground.cache; }
metrics::Registry& ApiServer::metrics() { return *impl_->ground.registry; }
void ApiServer::serves_on(std::uint16_t port) { impl_->relays.clients.serves_on(impl_->ground.options.advertise_address, port); }
void ApiServer::trust_node(const std::string& node, std::string ca_pem) { impl_->relays.clients.trust_node(node, std::move(ca_pem)); }
void ApiServer::set_node_client(net::ClientConfig node_client) { impl_->relays.clients.set_node_client(std::move(node_client)); }
void ApiServer::set_front_proxy(std::string certificate_pem, std::string private_key_pem) {
  impl_->relays.clients.set_front_proxy(std::move(certificate_pem), std::move(private_key_pem));
}
Result<void> ApiServer::publish_client_trust(const std::map<std::string, std::string>& data) {
  return apiserver::publish_client_trust(impl_->ground, data);
}
void ApiServer::repair_service_claims() {
  std::vector<json::Value> services;
  for (const auto& service : impl_->ground.cache->list({.prefix = make_prefix("", "services")}, "", 0).items)
    services.push_back(decode_object(*service));
  impl_->writes.services.repair(services);
}

void ApiServer::begin_shutdown() { impl_->pages.begin_shutdown(); }

void ApiServer::add_ready_check(std::string name, std::function<bool()> check) {
  impl_->pages.add_ready_check(std::move(name), std::move(check));
}

void ApiServer::mount(std::string prefix, std::shared_ptr<net::Handler> handler, bool anonymous) {
  impl_->router.mount(std::move(prefix), std::move(handler), anonymous);
}

void ApiServer::mount_group_version(std::string group, std::string version, std::shared_ptr<net::Handler> handler) {
  impl_->router.mount_group_version(std::move(group), std::move(version), std::move(handler));
}

}  // namespace berth::apiserver
