// A server's start, step by step: each takes what those before it made. Where one fails, what was made goes in the order of ServerRole's
// end.
#include <CLI/CLI.hpp>

#include "apiserver/auth/authenticator.h"
#include "apiserver/etcd/range_claims.h"
#include "apiserver/kinds/service_allocator.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/command/data_dir.h"
#include "cli/command/session.h"
#include "cli/nodes/real_node.h"
#include "cli/roles/component_port.h"
#include "cli/roles/server_credentials.h"
#include "cli/roles/server_presence.h"
#include "cli/roles/server_store.h"
#include "net/debug_pages.h"
#include "net/tracing/handler.h"
#include "node/metrics_api.h"

namespace berth::cli {

struct ServerRole::Start {
  const ServerFlags& flags;
  const ServerPlan& plan;
  ServerRole& role;
  std::shared_ptr<apiserver::encryption::StaleKeys> stale = std::make_shared<apiserver::encryption::StaleKeys>();
  OpenedCache opened;
  std::unique_ptr<apiserver::ServiceClaims> claims;  ///< Only over a shared store.
  apiserver::auth::AuthParts auth;
  bool asks_others = false;  ///< Authentication or authorisation wait for somebody elsewhere.
  apiserver::ServerOptions options;

  Result<void> make_place();
  Result<void> open_pki();
  /// The store, and on the way to it the certificates.
  Result<void> open_store();
  Result<void> read_trust();
  Result<void> decide_who_is_let_in();
  void follow_encryption();
  Result<void> begin_audit();
  void state_limits();
  Result<void> create_api(apiserver::NodeBackend backend);
  void mount_pages();
  Result<void> listen();
  /// Kubeconfigs, what nodes join by, who lives.
  Result<void> announce();
};

Result<void> ServerRole::Start::make_place() {
  role.master_config_ = plan.master_config;
  role.data_dir_ = plan.data_dir;
  role.credentials_ = std::make_unique<Credentials>();
  if (auto made = make_private_directory(role.data_dir_); !made) return std::unexpected(made.error());
  role.clock_ = std::make_unique<SystemClock>();
  role.wall_ = std::make_unique<WallClock>();
  role.loop_ = std::make_unique<ThreadLoop>("apiserver");
  role.renewals_ = std::make_unique<ThreadLoop>("renewals");
  role.service_cidr_ = flags.service_cidr;
  role.shutdown_delay_ = plan.shutdown_delay;
  auto& pki_options = role.credentials_->pki_options;
  pki_options.directory = role.data_dir_ + "/pki";
  pki_options.names = {plan.listen.host, plan.advertise_host};
  return {};
}

Result<void> ServerRole::Start::open_pki() {
  auto pki = security::Pki::open(role.credentials_->pki_options, role.wall_->now());
  if (!pki) return std::unexpected(pki.error());
  role.credentials_->pki.emplace(std::move(*pki));
  return {};
}

Result<void> ServerRole::Start::open_store() {
  // An etcd may be another cluster's: that is found out before anything in it is read or written.
  const auto may_use = [this](const std::shared_ptr<store::SharedStore>& shared) -> Result<void> {
    if (auto pki = open_pki(); !pki) return pki;
    const auto& prefix = plan.etcd.options.prefix;
    auto ranges = apiserver::etcd::open_range_claims(shared, {prefix, flags.service_cidr});
    if (!ranges) return std::unexpected(ranges.error());
    claims = std::move(*ranges);
    return claim_prefix(*shared, prefix, role.credentials_->pki->ca_certificate_pem(), role.data_dir_);
  };
  auto cache = open_cache(plan, flags.no_sync, *role.clock_, stale, may_use);
  if (!cache) return std::unexpected(cache.error());
  opened = std::move(*cache);
  return role.credentials_->pki ? Result<void>() : open_pki();
}

Result<void> ServerRole::Start::read_trust() {
  role.trust_flags_ = flags.trust;
  auto trust = trust_of(*role.credentials_->pki, flags.trust, role.wall_->now());
  if (!trust) return std::unexpected(trust.error());
  role.trust_ = std::move(*trust);
  role.ca_pem_ = role.trust_.kubeconfig_ca_pem;
  return {};
}

Result<void> ServerRole::Start::decide_who_is_let_in() {
  apiserver::auth::AuthOptions given;
  given.cache = opened.cache.get();
  given.clock = role.wall_.get();
  given.service_account_key_pem = role.credentials_->pki->service_account_key_pem();
  given.token_file = flags.token_file;
  given.revoked_file = role.credentials_->pki_options.directory + "/revoked";
  if (const auto revoked = apiserver::auth::read_revoked(given.revoked_file); !revoked) return std::unexpected(revoked.error());
  auto webhook = make_token_webhook(flags.auth, *role.wall_);
  if (!webhook) return std::unexpected(webhook.error());
  auto links = make_links(*plan.auth, *role.wall_);
  if (!links) return std::unexpected(links.error());
  asks_others = plan.auth->asks_others(flags.auth);
  given.front_proxy = flags.trust.rules();
  given.webhook = std::move(*webhook);
  given.oidc = make_oidc(*plan.auth, *role.wall_);
  given.anonymous = plan.auth->anonymous;
  given.features = plan.features;
  given.anonymous_paths = plan.auth->anonymous_paths;
  // Node and RBAC alone need no chain.
  if (asks_others || plan.auth->authorizers.size() != 1 ||
      plan.auth->authorizers[0].type != apiserver::auth::AuthorizerConfig::Type::kBuiltIn)
    given.links = std::move(*links);
  auto parts = apiserver::auth::make_auth(given);
  if (!parts) return std::unexpected(parts.error());
  auth = std::move(*parts);
  role.credentials_->tokens = auth.tokens;
  role.credentials_->reload = std::make_unique<AuthReload>(flags.auth, auth.authenticator, auth.chain, *role.wall_);
  return {};
}

void ServerRole::Start::follow_encryption() {
  options.is_stale = [stale = stale](std::string_view key) { return stale->contains(key); };
  const auto& encryption = plan.security.encryption;
  if (!encryption.key_services.empty())
    options.cannot_store = [encryption](std::string_view group, std::string_view plural) { return encryption.trouble_with(group, plural); };
  for (const auto& service : encryption.key_services)
    service->on_rotation([stale = stale, covers = encryption.written_by(*service)] { stale->set_all(covers); });
  if (stale->size() > 0)
    log::warning(
        "server",
        "{} objects are stored otherwise than {} says first; `kubectl get RESOURCE -A -o json | kubectl replace -f -` rewrites them, "
        "then old keys can go",
        stale->size(), encryption.file);
}

Result<void> ServerRole::Start::begin_audit() {
  if (plan.security.audit.policy == nullptr) return {};
  auto audit = apiserver::audit::Log::start(plan.security.audit, *options.metrics);
  if (!audit) return std::unexpected(audit.error());
  options.audit = std::move(*audit);
  return {};
}

void ServerRole::Start::state_limits() {
  constexpr int kAskingThreads = 16;
  options.asking_threads = asks_others ? kAskingThreads : 0;
  options.relaxed_heartbeats_and_events = !flags.strict_durability;
  options.warns_of_objects = !flags.compatibility.follows_documents();
  options.keeps_nominations = flags.compatibility.follows_documents();
  options.service_cidr = flags.service_cidr;
  options.event_ttl = plan.event_ttl;
  options.features = plan.features;
  options.max_requests_inflight = flags.max_requests_inflight;
  options.max_mutating_requests_inflight = flags.max_mutating_requests_inflight;
  options.priority_and_fairness = flags.priority_and_fairness;
  options.request_timeout = plan.request_timeout;
  options.memory_limit_bytes = plan.memory_limit_bytes;
  options.on_memory_tight = plan.on_memory_tight;
  options.advertise_address = plan.advertise_host;
  options.advertise_port = plan.listen.port;
  options.writes_endpoints = opened.shared == nullptr;  // Otherwise they follow who lives (server_presence.h).
}

Result<void> ServerRole::Start::create_api(apiserver::NodeBackend backend) {
  role.aggregation_ = std::move(auth.aggregation);
  options.cache = std::move(opened.cache);
  options.loop = role.loop_.get();
  options.authenticator = auth.authenticator;
  options.authorizer = auth.authorizer;
  options.token_issuer = auth.tokens;
  options.node_client = node_client_of(role.trust_);
  options.admission = role.master_config_.admission;
  options.node_backend = std::move(backend);
  options.service_claims = std::move(claims);
  if (plan.tracing) {
    auto tracer = net::tracing::Tracer::start(*plan.tracing);
    if (!tracer) return invalid(fmt::format("--tracing-config-file: {}", tracer.error().message));
    role.tracer_ = options.tracer = std::move(*tracer);
  }
  auto api = apiserver::ApiServer::create(std::move(options));
  if (!api) return std::unexpected(api.error());
  role.api_ = std::move(*api);
  if (role.tracer_) role.traced_ = std::make_unique<net::tracing::TracedHandler>(*role.api_, role.tracer_);
  return {};
}

void ServerRole::Start::mount_pages() {
  if (const auto& services = plan.security.encryption.key_services; !services.empty())
    role.api_->add_ready_check(
        "kms-providers", [services] { return std::ranges::all_of(services, [](const auto& one) { return one->trouble().empty(); }); });
  role.api_->mount("/.well-known/openid-configuration", auth.openid, false);
  role.api_->mount("/openid/v1/jwks", auth.openid, false);
  role.metrics_ = std::make_shared<node::MetricsApi>();
  role.api_->mount_group_version("metrics.k8s.io", "v1beta1", role.metrics_);
  role.metrics_->connect(role.in_process("system:berth:metrics", {"system:masters"}));
  const auto debug = net::make_debug_pages({.component = "kube-apiserver",
                                            .flags = flags.app != nullptr ? shown_flags(*flags.app) : decltype(shown_flags(*flags.app)){},
                                            .version = std::string(kBuildVersion),
                                            .emulated = std::string(kKubernetesVersion),
                                            .paths = {"/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"},
                                            .profiling = flags.profiling});
  for (const char* page : {"/debug/pprof", "/flagz", "/statusz"}) role.api_->mount(page, debug, false);
  if (plan.placement_pages) role.api_->mount("/debug/placement", plan.placement_pages, false);
}

Result<void> ServerRole::Start::listen() {
  net::ServerConfig server;
  server.http2 = !flags.disable_http2;
  if (flags.http2_max_streams > 0) server.max_streams = flags.http2_max_streams;
  server.goaway_chance = flags.goaway_chance;
  server.max_connections = flags.max_connections;
  server.max_connections_per_address = flags.max_connections / 4 * 3;
  server.address = plan.listen.host;
  server.port = plan.listen.port;
  const Trust& trust = role.trust_;
  server.tls = net::TlsServerConfig{trust.serving.certificate_pem, trust.serving.private_key_pem, trust.client_ca_pem,
                                    flags.tls_min_version,         plan.tls_cipher_suites,        trust.front_proxy_ca_pem};
  role.api_->set_front_proxy(trust.proxy_client.certificate_pem, trust.proxy_client.private_key_pem);
  if (auto published = role.api_->publish_client_trust(published_trust(trust, flags.trust.rules())); !published)
    return std::unexpected(published.error());
  if (plan.memory_limit_bytes > 0) server.max_bodies_bytes = std::min(server.max_bodies_bytes, plan.memory_limit_bytes / 4);
  server.may_send_body = [authenticator = auth.authenticator](const net::HttpRequest& head) {
    if (authenticator->waits_for(head)) return true;  // Not asked here; all bodies together have a bound.
    const auto user = authenticator->authenticate(head);
    return user && !user->in_group("system:unauthenticated");
  };
  role.tls_ = *server.tls;
  role.host_ = plan.listen.host;
  auto listener = net::Server::start(server, role.traced_ ? *role.traced_ : *role.api_);
  if (!listener) return invalid(fmt::format("cannot serve on {}: {}", flags.listen, listener.error().message));
  role.listener_ = std::move(*listener);
  role.api_->serves_on(role.listener_->port());
  return {};
}

Result<void> ServerRole::Start::announce() {
  const std::string& host = plan.listen.host;
  const std::string shown_host = host == "0.0.0.0" || host == "::" ? "127.0.0.1" : host;
  role.url_ = fmt::format("https://{}:{}", url_host(shown_host), role.listener_->port());
  role.join_url_ = fmt::format("https://{}:{}", url_host(plan.advertise_host), role.listener_->port());
  role.kubeconfig_path_ = role.data_dir_ + "/admin.kubeconfig";
  if (auto written = role.write_kubeconfigs(role.wall_->now()); !written) return written;
  if (auto published = role.publish_for_joining(); !published) return published;
  role.renew_later();
  if (opened.shared == nullptr) return {};
  role.presence_ = std::make_unique<ServerPresence>(
      opened.shared, client::Client(role.in_process("system:apiserver", {"system:masters"}), nullptr, "berth-server"), *role.clock_,
      PresenceFacts{plan.etcd.options.prefix, plan.advertise_host, role.listener_->port(),
                    server_identity(machine_name(), plan.advertise_host, role.listener_->port()),
                    [api = role.api_.get()] { api->repair_service_claims(); }});
  return {};
}

Result<std::unique_ptr<ServerRole>> ServerRole::start(const ServerFlags& flags, const ServerPlan& plan, apiserver::NodeBackend backend) {
  std::unique_ptr<ServerRole> role(new ServerRole());
  Start start{.flags = flags, .plan = plan, .role = *role};
  start.options.metrics = std::make_shared<metrics::Registry>();
  for (const auto step : {&Start::make_place, &Start::open_store, &Start::read_trust, &Start::decide_who_is_let_in})
    if (auto done = (start.*step)(); !done) return std::unexpected(done.error());
  start.follow_encryption();
  start.state_limits();
  if (auto begun = start.begin_audit(); !begun) return std::unexpected(begun.error());
  if (auto created = start.create_api(std::move(backend)); !created) return std::unexpected(created.error());
  start.mount_pages();
  if (auto serves = start.listen(); !serves) return std::unexpected(serves.error());
  if (auto announced = start.announce(); !announced) return std::unexpected(announced.error());
  return role;
}

}  // namespace berth::cli
