#include "apiserver/server.h"

#include "apiserver/aggregation/aggregator.h"
#include "apiserver/cache/object_codec.h"
#include "apiserver/impl.h"
#include "apiserver/subresources/relay.h"
#include "apiserver/upkeep/client_trust.h"
#include "apiserver/upkeep/policy_status.h"

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
    : Ground(std::move(given)),
      flow_control(make_flow_control(options, *registry)),
      versions(*this),
      respond(*this, versions, flow_control.get()),
      streams(loop, options.single_threaded ? Duration::zero() : options.watch_flush_pause) {
  relays = std::make_unique<RelayClients>(options.node_client, options.service_cidr);
  if (options.advertise_port != 0) relays->serves_on(options.advertise_address, options.advertise_port);
  if (!options.single_threaded && options.asking_threads > 0) askers = std::make_unique<WorkerPool>(options.asking_threads);
  watchers = &registry->gauge("apiserver_registered_watchers", "Number of currently registered watchers.", {});
}

ApiServer::Impl::~Impl() {
  if (aggregator != nullptr) aggregator->stop();
  relays->stop();
  memory_guard.reset();
  streams.stop();
  if (flow_objects != nullptr) flow_objects->stop();
  if (own_endpoints != nullptr) own_endpoints->stop();
  // Order matters: no worker may start a write on a cache that is going, and whoever watches the cache goes before it. The pool itself
  // stays until the cache's writer is gone: its last callbacks still hand over tasks, which are dropped.
  if (askers != nullptr) askers->stop();
  if (flow_control != nullptr) flow_control->stop();
  if (workers != nullptr) workers->stop();
  policy_status.reset();
  versions.stop();
  custom.reset();
  flow_objects.reset();
  admission.reset();
  aggregator.reset();
  close();
}

void ApiServer::Impl::shed_load(bool scarce) {
  constexpr std::size_t kBehindBytes = 1024 * 1024;
  flow_control->set_overloaded(scarce);
  if (scarce) streams.drop_behind(kBehindBytes);
}

Result<void> ApiServer::Impl::start() {
  if (auto configured = services.configure(options.service_cidr, options.node_port_first, options.node_port_last); !configured)
    return configured;
  if (options.service_claims != nullptr) services.share(std::move(options.service_claims));
  AdmissionContext context{*cache, loop, *options.authorizer, options.admission, net::ClientConfig{}, {}, {}, {}, {}, {}};
  context.mirror = [this](std::string_view group, std::string_view plural) -> Mirror& { return mirror(group, plural); };
  context.random_suffix = [this] { return names.suffix(); };
  context.uid = [this] { return names.uid(); };
  context.kinds = [this] { return custom == nullptr ? nullptr : custom->table(); };
  context.offload = [this](Task task) { offload(std::move(task)); };
  auto chain = AdmissionChain::create(std::move(context));
  if (!chain) return std::unexpected(chain.error());
  admission = std::move(*chain);
  custom = std::make_unique<CustomResources>(
      CustomResourcesContext{*cache, loop, [this](Task task) { defer(std::move(task)); },
                             [this](std::string_view group, std::string_view plural) { streams.end(group, plural); }});
  custom->start();
  if (options.memory_limit_bytes > 0 && flow_control != nullptr)
    memory_guard = std::make_unique<MemoryGuard>(loop, options.memory_limit_bytes, [this](bool scarce) { shed_load(scarce); });
  if (auto made = bootstrap(); !made) return made;
  policy_status = std::make_unique<PolicyStatus>(*this);
  flow_objects = std::make_unique<FlowObjects>(*this);
  return flow_objects->start();
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
  impl_->handle(std::move(request), std::move(writer));
}
ObjectCache& ApiServer::cache() { return *impl_->cache; }
metrics::Registry& ApiServer::metrics() { return *impl_->registry; }
void ApiServer::serves_on(std::uint16_t port) { impl_->relays->serves_on(impl_->options.advertise_address, port); }
void ApiServer::trust_node(const std::string& node, std::string ca_pem) { impl_->relays->trust_node(node, std::move(ca_pem)); }
void ApiServer::set_node_client(net::ClientConfig node_client) { impl_->relays->set_node_client(std::move(node_client)); }
void ApiServer::set_front_proxy(std::string certificate_pem, std::string private_key_pem) {
  impl_->relays->set_front_proxy(std::move(certificate_pem), std::move(private_key_pem));
}
Result<void> ApiServer::publish_client_trust(const std::map<std::string, std::string>& data) {
  return apiserver::publish_client_trust(*impl_, data);
}
void ApiServer::repair_service_claims() {
  WatchFilter all;
  all.prefix = make_prefix("", "services");
  std::vector<json::Value> services;
  for (const auto& service : impl_->cache->list(all, "", 0).items) services.push_back(decode_object(*service));
  impl_->services.repair(services);
}

void ApiServer::begin_shutdown() { impl_->shutting_down = true; }

void ApiServer::add_ready_check(std::string name, std::function<bool()> check) {
  const std::lock_guard lock(impl_->ready_mutex);
  impl_->ready_checks.emplace_back(std::move(name), std::move(check));
}

void ApiServer::mount(std::string prefix, std::shared_ptr<net::Handler> handler, bool anonymous) {
  impl_->mounts.push_back({std::move(prefix), std::move(handler), anonymous});
}

void ApiServer::mount_group_version(std::string group, std::string version, std::shared_ptr<net::Handler> handler) {
  impl_->mounted_groups[{std::move(group), std::move(version)}] = std::move(handler);
}

}  // namespace berth::apiserver
