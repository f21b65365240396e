#include "cli/server_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "apiserver/auth/auth.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/etcd/range_claims.h"
#include "apiserver/kinds/service_allocator.h"
#include "apiserver/upkeep/memory_guard.h"
#include "base/base64.h"
#include "base/config_reader.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/auth_setup.h"
#include "cli/component_port.h"
#include "cli/data_dir.h"
#include "cli/join_documents.h"
#include "cli/parse.h"
#include "cli/process.h"
#include "cli/real_node.h"
#include "cli/roles.h"
#include "cli/server_presence.h"
#include "cli/server_store.h"
#include "cli/session.h"
#include "client/kubeconfig.h"
#include "model/quantity.h"
#include "net/debug_pages.h"
#include "net/server.h"
#include "net/tls.h"

namespace berth::cli {
namespace {

namespace auth = apiserver::auth;

std::vector<std::string> split(const std::vector<std::string>& entries) {
  std::vector<std::string> out;
  for (const std::string& entry : entries)
    for (std::size_t start = 0; start < entry.size();) {
      const std::size_t end = std::min(entry.find(',', start), entry.size());
      out.push_back(entry.substr(start, end - start));
      start = end + 1;
    }
  return out;
}

std::string directory_of(const std::string& path) { return std::filesystem::absolute(path).parent_path().string(); }

void read_admission(const ServerFlags& flags, apiserver::AdmissionConfig& config, Findings& findings) {
  if (!flags.admission_config.empty())
    if (const auto text = findings.take(config::read_whole_file(flags.admission_config)))
      findings.take(apiserver::parse_admission_configuration(*text, directory_of(flags.admission_config), config, flags.admission_config));
  for (const auto& [given, into] :
       {std::pair(&flags.enable_admission, &config.enable), std::pair(&flags.disable_admission, &config.disable)})
    for (std::string& name : split(*given)) into->push_back(std::move(name));
  findings.take(apiserver::check_plugin_names(config));
}

void check_feature_gates(const std::vector<std::string>& entries, Findings& findings) {
  for (const std::string& one : split(entries)) {
    const std::size_t equals = one.find('=');
    const std::string value = equals == std::string::npos ? "" : one.substr(equals + 1);
    if (value != "true" && value != "false")
      findings.error(fmt::format("--feature-gates: \"{}\" is not NAME=true or NAME=false", one));
    else
      findings.note(fmt::format("--feature-gates: {} has no effect: the API server's behaviour is fixed in this version", one));
  }
}

bool says_all(const std::string& kubeconfig, const client::KubeconfigEntry& entry) {
  for (const std::string& text : {entry.server, base64_encode(entry.ca_pem), base64_encode(entry.certificate_pem)})
    if (kubeconfig.find(text) == std::string::npos) return false;
  return true;
}

/// One kubeconfig a user, beside the data.
Result<void> write_user(const std::string& path, const std::string& user, const std::string& url, const std::string& ca,
                        const Result<security::KeyPair>& pair) {
  if (!pair) return std::unexpected(pair.error());
  client::KubeconfigEntry entry;
  entry.user = user;
  entry.server = url;
  entry.ca_pem = ca;
  entry.certificate_pem = pair->certificate_pem;
  entry.private_key_pem = pair->private_key_pem;
  // One that says so already stays: its owner may have put a namespace or contexts of his own into it.
  if (const auto present = config::read_whole_file(path); present && says_all(*present, entry)) return {};
  return client::write_kubeconfig(path, entry);
}

/// Bytes of "2Gi", "75%", "0".
Result<std::size_t> parse_memory_limit(const std::string& text) {
  constexpr double kLeast = 128.0 * 1024 * 1024;
  double bytes = 0;
  if (text.ends_with('%')) {
    int percent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, percent);
    if (error != std::errc() || end != text.data() + text.size() - 1 || percent < 1 || percent > 100)
      return invalid(fmt::format("--memory-limit: \"{}\" is not a share between 1% and 100%", text));
    bytes = static_cast<double>(apiserver::memory_of_machine()) * percent / 100;
  } else {
    const auto amount = model::Quantity::parse(text);
    if (!amount) return invalid(fmt::format("--memory-limit: \"{}\" is neither an amount (\"2Gi\") nor a share (\"75%\")", text));
    bytes = static_cast<double>(amount->value());
    if (bytes == 0) return std::size_t{0};
  }
  if (bytes < kLeast) return invalid(fmt::format("--memory-limit: {} is less than the 128Mi that the server needs", text));
  return static_cast<std::size_t>(bytes);
}

/// Who the server is to node agents, which take what its own authority signed. Where somebody leads it elsewhere, it is worth no more.
net::ClientConfig node_client_of(const Trust& trust) {
  net::ClientConfig out;
  out.certificate_pem = trust.kubelet_client.certificate_pem;
  out.private_key_pem = trust.kubelet_client.private_key_pem;
  out.ca_pem = trust.kubelet_ca_pem;
  return out;
}

}  // namespace

struct ServerRole::Credentials {
  security::PkiOptions pki_options;
  std::optional<security::Pki> pki;
  std::shared_ptr<auth::ServiceAccountTokens> tokens;
  std::unique_ptr<AuthReload> reload;
};

void ServerFlags::add_to(CLI::App& app) {
  data_dir = default_data_dir();
  app.add_option("--data-dir", data_dir, "Where everything is kept: store, certificates, kubeconfigs")->capture_default_str();
  app.add_option("--listen", listen, "HOST:PORT to serve on; port 0 takes a free one")->capture_default_str();
  app.add_option("--advertise-address", advertise_address,
                 "The address at which other machines reach the API server; --listen's when empty, or the machine's own");
  app.add_option("--tls-min-version", tls_min_version, "VersionTLS12 or VersionTLS13")->default_str("VersionTLS12");
  app.add_option("--tls-cipher-suites", tls_cipher_suites,
                 "Suites of TLS 1.2 by Go's names, comma separated; all that are safe when empty");
  app.add_option("--master-config", master_config, "OpenShift master-config.yaml: admission, scheduler and controller sections are used");
  app.add_option("--admission-control-config-file", admission_config, "AdmissionConfiguration file");
  app.add_option("--enable-admission-plugins", enable_admission, "Plugins to run besides the default ones, comma separated");
  app.add_option("--disable-admission-plugins", disable_admission, "Default plugins not to run, comma separated");
  app.add_option("--feature-gates", feature_gates, "NAME=true|false, comma separated");
  app.add_option("--service-cluster-ip-range", service_cidr, "Addresses of Services")->capture_default_str();
  app.add_option("--event-ttl", event_ttl, "How long Events are kept")->capture_default_str();
  app.add_option("--token-auth-file", token_file, "File of bearer tokens, a line each: token,user,uid,\"group1,group2\"");
  trust.add_to(app);
  etcd.add_to(app);
  security.add_to(app);
  auth.add_to(app);
  add_validate_flag(app, validate_only);
  app.add_option("--max-requests-inflight", max_requests_inflight,
                 "With --max-mutating-requests-inflight: how many requests are served at once, shared out among the priority levels")
      ->capture_default_str();
  app.add_option("--max-mutating-requests-inflight", max_mutating_requests_inflight, "See --max-requests-inflight")->capture_default_str();
  app.add_option("--enable-priority-and-fairness", priority_and_fairness,
                 "Requests are served by the cluster's PriorityLevelConfigurations and FlowSchemas; with false the two numbers above are "
                 "the limits of reads and of writes")
      ->capture_default_str();
  app.add_option("--request-timeout", request_timeout, "A request waits a quarter of it for its turn, at most a minute, and has a 429 then")
      ->capture_default_str();
  app.add_option("--memory-limit", memory_limit,
                 "What the process may hold in memory, as an amount (\"2Gi\") or a share of the machine or control group (\"75%\"); near "
                 "it requests "
                 "are refused with 429. 0: no limit")
      ->capture_default_str();
  this->app = &app;
  app.add_option("--profiling", profiling, "Processor profiles, heap figures and threads below /debug/pprof, for administrators")
      ->capture_default_str();
  app.add_flag("--disable-http2-serving", disable_http2, "Speak HTTP/1.1 only");
  app.add_option("--http2-max-streams-per-connection", http2_max_streams, "Requests at once on one HTTP/2 connection; 0: 100")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  app.add_option(
         "--goaway-chance", goaway_chance,
         "How likely a request over HTTP/2 is to end its connection in order, so that clients spread over several servers; at most 0.02")
      ->check(CLI::Range(0.0, 0.02))
      ->capture_default_str();
  app.add_flag("--strict-durability", strict_durability, "Leases and Events, too, are acknowledged only after the sync to disk");
  app.add_flag("--unsafe-no-sync", no_sync, "Never sync to disk: for benchmarks; a power loss may lose acknowledged writes");
}

Result<apiserver::MasterConfig> read_master_config(const std::string& path) {
  if (path.empty()) return apiserver::MasterConfig{};
  const auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  return apiserver::parse_master_config(*text, directory_of(path), path);
}

ServerPlan ServerFlags::plan(Findings& findings) const {
  ServerPlan out;
  if (const auto address = findings.take(parse_listen(listen, 6443))) out.listen = *address;
  if (auto config = findings.take(read_master_config(master_config))) out.master_config = std::move(*config);
  read_admission(*this, out.master_config.admission, findings);
  findings.notes(out.master_config.admission.notes);
  check_feature_gates(feature_gates, findings);
  const auto ttl = parse_go_duration(event_ttl);
  if (!ttl || *ttl <= Duration::zero())
    findings.error(fmt::format("--event-ttl: \"{}\" is not a duration above zero", event_ttl));
  else
    out.event_ttl = *ttl;
  if (const auto range = apiserver::check_service_range(service_cidr); !range)
    findings.error("--service-cluster-ip-range: " + range.error().message);
  out.etcd = etcd.plan(findings);
  out.security = security.plan(findings);
  out.auth = std::make_shared<const AuthPlan>(plan_auth(auth, findings));
  out.tls_cipher_suites = split(tls_cipher_suites);
  if (const auto known = net::check_tls_settings(tls_min_version, out.tls_cipher_suites); !known)
    findings.error("--tls-min-version, --tls-cipher-suites: " + known.error().message);
  out.advertise_host = !advertise_address.empty()                                ? advertise_address
                       : out.listen.host == "0.0.0.0" || out.listen.host == "::" ? machine_address()
                                                                                 : out.listen.host;
  if (!token_file.empty()) static_cast<void>(findings.take(apiserver::auth::parse_token_file(token_file)));
  static_cast<void>(findings.take(trust.read()));
  if (const auto memory = findings.take(parse_memory_limit(memory_limit))) out.memory_limit_bytes = *memory;
  if (const auto timeout = parse_go_duration(request_timeout); !timeout || *timeout <= Duration::zero())
    findings.error(fmt::format("--request-timeout: \"{}\" is not a duration above zero", request_timeout));
  else
    out.request_timeout = *timeout;
  if (max_requests_inflight < 0 || max_mutating_requests_inflight < 0 || max_requests_inflight + max_mutating_requests_inflight <= 0)
    findings.error("--max-requests-inflight and --max-mutating-requests-inflight: their sum must be above zero");
  out.data_dir = std::filesystem::absolute(data_dir);
  std::error_code error;
  if (std::filesystem::exists(out.data_dir, error) && !std::filesystem::is_directory(out.data_dir, error))
    findings.error(fmt::format("--data-dir: {} is not a directory", out.data_dir));
  return out;
}

Result<std::unique_ptr<ServerRole>> ServerRole::start(const ServerFlags& flags, const ServerPlan& plan, apiserver::NodeBackend backend) {
  std::unique_ptr<ServerRole> role(new ServerRole());
  const ListenAddress* listen = &plan.listen;
  role->master_config_ = plan.master_config;
  role->data_dir_ = plan.data_dir;
  role->credentials_ = std::make_unique<Credentials>();
  if (auto made = make_private_directory(role->data_dir_); !made) return std::unexpected(made.error());

  role->clock_ = std::make_unique<SystemClock>();
  role->loop_ = std::make_unique<ThreadLoop>("apiserver");
  role->renewals_ = std::make_unique<ThreadLoop>("renewals");
  role->service_cidr_ = flags.service_cidr;
  const auto stale = std::make_shared<apiserver::encryption::StaleKeys>();
  security::PkiOptions& pki_options = role->credentials_->pki_options;
  pki_options.directory = role->data_dir_ + "/pki";
  pki_options.names = {listen->host, plan.advertise_host};
  const auto open_pki = [&role, &pki_options]() -> Result<void> {
    auto opened = security::Pki::open(pki_options, role->clock_->now());
    if (!opened) return std::unexpected(opened.error());
    role->credentials_->pki.emplace(std::move(*opened));
    return {};
  };
  std::unique_ptr<apiserver::ServiceClaims> claims;
  // An etcd may be another cluster's: that is found out before anything in it is read or written.
  auto opened_cache =
      open_cache(plan, flags.no_sync, *role->clock_, stale, [&](const std::shared_ptr<store::SharedStore>& shared) -> Result<void> {
        if (auto opened = open_pki(); !opened) return opened;
        const auto& prefix = plan.etcd.options.prefix;
        auto ranges = apiserver::etcd::open_range_claims(shared, {prefix, flags.service_cidr});
        if (!ranges) return std::unexpected(ranges.error());
        claims = std::move(*ranges);
        return claim_prefix(*shared, prefix, role->credentials_->pki->ca_certificate_pem(), role->data_dir_);
      });
  if (!opened_cache) return std::unexpected(opened_cache.error());
  auto* const cache = &opened_cache->cache;
  if (!role->credentials_->pki)
    if (auto opened = open_pki(); !opened) return std::unexpected(opened.error());
  auto& pki = *role->credentials_->pki;
  role->trust_flags_ = flags.trust;
  auto trust = trust_of(pki, flags.trust, role->clock_->now());
  if (!trust) return std::unexpected(trust.error());
  role->trust_ = std::move(*trust);
  role->ca_pem_ = role->trust_.kubeconfig_ca_pem;
  auth::AuthOptions auth_options;
  auth_options.cache = cache->get();
  auth_options.clock = role->clock_.get();
  auth_options.service_account_key_pem = pki.service_account_key_pem();
  auth_options.token_file = flags.token_file;
  auth_options.revoked_file = pki_options.directory + "/revoked";
  if (const auto revoked = auth::read_revoked(auth_options.revoked_file); !revoked) return std::unexpected(revoked.error());
  auto webhook = make_token_webhook(flags.auth, *role->clock_);
  if (!webhook) return std::unexpected(webhook.error());
  auto links = make_links(*plan.auth, *role->clock_);
  if (!links) return std::unexpected(links.error());
  const bool asks_others = plan.auth->asks_others(flags.auth);
  auth_options.front_proxy = flags.trust.rules();
  auth_options.webhook = std::move(*webhook);
  auth_options.oidc = make_oidc(*plan.auth, *role->clock_);
  auth_options.anonymous = plan.auth->anonymous;
  auth_options.anonymous_paths = plan.auth->anonymous_paths;
  // Node and RBAC alone need no chain.
  if (asks_others || plan.auth->authorizers.size() != 1 || plan.auth->authorizers[0].type != auth::AuthorizerConfig::Type::kBuiltIn)
    auth_options.links = std::move(*links);
  auto parts = auth::make_auth(auth_options);
  if (!parts) return std::unexpected(parts.error());
  role->aggregation_ = std::move(parts->aggregation);
  role->credentials_->tokens = parts->tokens;

  apiserver::ServerOptions options;
  options.metrics = std::make_shared<metrics::Registry>();
  constexpr int kAskingThreads = 16;
  options.asking_threads = asks_others ? kAskingThreads : 0;
  role->credentials_->reload = std::make_unique<AuthReload>(flags.auth, parts->authenticator, parts->chain, *role->clock_);
  options.is_stale = [stale](std::string_view key) { return stale->contains(key); };
  const auto& encryption = plan.security.encryption;
  if (!encryption.key_services.empty())
    options.cannot_store = [encryption](std::string_view group, std::string_view plural) { return encryption.trouble_with(group, plural); };
  for (const auto& service : encryption.key_services)
    service->on_rotation([stale, covers = encryption.written_by(*service)] { stale->set_all(covers); });
  if (stale->size() > 0)
    log::warning(
        "server",
        "{} objects are stored otherwise than {} says first; `kubectl get RESOURCE -A -o json | kubectl replace -f -` rewrites them, "
        "then old keys can go",
        stale->size(), plan.security.encryption.file);
  if (plan.security.audit.policy != nullptr) {
    auto audit = apiserver::audit::Log::start(plan.security.audit, *options.metrics);
    if (!audit) return std::unexpected(audit.error());
    options.audit = std::move(*audit);
  }
  options.cache = std::move(*cache);
  options.loop = role->loop_.get();
  options.authenticator = parts->authenticator;
  options.authorizer = parts->authorizer;
  options.token_issuer = parts->tokens;
  options.node_client = node_client_of(role->trust_);
  options.admission = role->master_config_.admission;
  options.node_backend = std::move(backend);
  options.relaxed_leases_and_events = !flags.strict_durability;
  options.warns_of_objects = !flags.compatibility.follows_documents();
  options.service_cidr = flags.service_cidr;
  options.service_claims = std::move(claims);
  options.event_ttl = plan.event_ttl;
  options.max_requests_inflight = flags.max_requests_inflight;
  options.max_mutating_requests_inflight = flags.max_mutating_requests_inflight;
  options.priority_and_fairness = flags.priority_and_fairness;
  options.request_timeout = plan.request_timeout;
  options.memory_limit_bytes = plan.memory_limit_bytes;
  options.advertise_address = plan.advertise_host;
  options.advertise_port = listen->port;
  options.writes_endpoints = opened_cache->shared == nullptr;  // Otherwise they follow who lives (server_presence.h).
  auto api = apiserver::ApiServer::create(std::move(options));
  if (!api) return std::unexpected(api.error());
  role->api_ = std::move(*api);
  if (!encryption.key_services.empty())
    role->api_->add_ready_check("kms-providers", [services = encryption.key_services] {
      return std::ranges::all_of(services, [](const auto& one) { return one->trouble().empty(); });
    });
  role->api_->mount("/.well-known/openid-configuration", parts->openid, false);
  role->api_->mount("/openid/v1/jwks", parts->openid, false);
  role->metrics_ = std::make_shared<node::MetricsApi>();
  role->api_->mount_group_version("metrics.k8s.io", "v1beta1", role->metrics_);
  role->metrics_->connect(role->in_process("system:berth:metrics", {"system:masters"}));

  const auto debug = net::make_debug_pages({.component = "kube-apiserver",
                                            .flags = flags.app != nullptr ? shown_flags(*flags.app) : decltype(shown_flags(*flags.app)){},
                                            .version = std::string(kBuildVersion),
                                            .emulated = std::string(kKubernetesVersion),
                                            .paths = {"/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"},
                                            .profiling = flags.profiling});
  for (const char* page : {"/debug/pprof", "/flagz", "/statusz"}) role->api_->mount(page, debug, false);

  net::ServerConfig server;
  server.http2 = !flags.disable_http2;
  if (flags.http2_max_streams > 0) server.max_streams = flags.http2_max_streams;
  server.goaway_chance = flags.goaway_chance;
  server.address = listen->host;
  server.port = listen->port;
  server.tls = net::TlsServerConfig{role->trust_.serving.certificate_pem,
                                    role->trust_.serving.private_key_pem,
                                    role->trust_.client_ca_pem,
                                    flags.tls_min_version,
                                    plan.tls_cipher_suites,
                                    role->trust_.front_proxy_ca_pem};
  role->api_->set_front_proxy(role->trust_.proxy_client.certificate_pem, role->trust_.proxy_client.private_key_pem);
  if (auto published = role->api_->publish_client_trust(published_trust(role->trust_, flags.trust.rules())); !published)
    return std::unexpected(published.error());
  if (plan.memory_limit_bytes > 0) server.max_bodies_bytes = std::min(server.max_bodies_bytes, plan.memory_limit_bytes / 4);
  server.may_send_body = [authenticator = parts->authenticator](const net::HttpRequest& head) {
    if (authenticator->may_wait(head)) return true;  // Not asked here; all bodies together have a bound.
    const auto user = authenticator->authenticate(head);
    return user && !user->in_group("system:unauthenticated");
  };
  role->tls_ = *server.tls;
  role->host_ = listen->host;
  auto listener = net::Server::start(server, *role->api_);
  if (!listener) return invalid(fmt::format("cannot serve on {}: {}", flags.listen, listener.error().message));
  role->listener_ = std::move(*listener);
  role->api_->serves_on(role->listener_->port());
  const std::string shown_host = listen->host == "0.0.0.0" || listen->host == "::" ? "127.0.0.1" : listen->host;
  role->url_ = fmt::format("https://{}:{}", url_host(shown_host), role->listener_->port());

  role->join_url_ = fmt::format("https://{}:{}", url_host(plan.advertise_host), role->listener_->port());
  role->kubeconfig_path_ = role->data_dir_ + "/admin.kubeconfig";
  if (auto written = role->write_kubeconfigs(role->clock_->now()); !written) return std::unexpected(written.error());
  if (auto published = role->publish_for_joining(); !published) return std::unexpected(published.error());
  role->renew_later();
  if (opened_cache->shared != nullptr)
    role->presence_ = std::make_unique<ServerPresence>(
        opened_cache->shared, client::Client(role->in_process("system:apiserver", {"system:masters"}), nullptr, "berth-server"),
        *role->clock_,
        PresenceFacts{plan.etcd.options.prefix, plan.advertise_host, role->listener_->port(),
                      server_identity(machine_name(), plan.advertise_host, role->listener_->port())});
  return role;
}

Result<void> ServerRole::write_kubeconfigs(TimePoint now) {
  for (const auto& [file, user, pair] :
       {std::tuple("admin", "kubernetes-admin", credentials_->pki->admin(now)),
        std::tuple("super-admin", "kubernetes-super-admin", credentials_->pki->super_admin(now)),
        std::tuple("scheduler", "system:kube-scheduler", credentials_->pki->scheduler(now)),
        std::tuple("controller-manager", "system:kube-controller-manager", credentials_->pki->controller_manager(now))})
    if (auto written = write_user(data_dir_ + "/" + file + ".kubeconfig", user, url_, ca_pem_, pair); !written) return written;
  return {};
}

Result<void> ServerRole::publish_for_joining() {
  client::Client client(in_process("system:berth:joining", {"system:masters"}), nullptr, "berth-server");
  return publish_join_documents(client, {join_url_, ca_pem_, service_cidr_});
}

Result<void> ServerRole::renew(TimePoint now) {
  auto fresh = security::Pki::open(credentials_->pki_options, now);
  if (!fresh) return std::unexpected(fresh.error());
  auto trust = trust_of(*fresh, trust_flags_, now);
  if (!trust) return std::unexpected(trust.error());
  if (fresh->service_account_key_pem() != credentials_->pki->service_account_key_pem()) {
    if (auto set = credentials_->tokens->set_keys(fresh->service_account_key_pem()); !set) return set;
    log::info("server", "service account tokens are signed and verified with the keys that are now in {}",
              credentials_->pki_options.directory);
  }
  credentials_->pki = std::move(*fresh);
  const bool is_same_authority = trust->kubeconfig_ca_pem == ca_pem_;
  if (auto adopted = adopt(std::move(*trust)); !adopted) return adopted;
  if (auto written = write_kubeconfigs(now); !written) return written;
  if (is_same_authority) return {};
  return publish_for_joining();
}

Result<void> ServerRole::adopt(Trust trust) {
  const auto differ = [](const security::KeyPair& a, const security::KeyPair& b) {
    return a.certificate_pem != b.certificate_pem || a.private_key_pem != b.private_key_pem;
  };
  const bool shows_other = differ(trust.serving, trust_.serving);
  const bool believes_others = trust.client_ca_pem != trust_.client_ca_pem || trust.front_proxy_ca_pem != trust_.front_proxy_ca_pem;
  if (shows_other || believes_others) {
    auto next = tls_;
    next.certificate_pem = trust.serving.certificate_pem;
    next.private_key_pem = trust.serving.private_key_pem;
    next.client_ca_pem = trust.client_ca_pem;
    next.front_proxy_ca_pem = trust.front_proxy_ca_pem;
    if (auto set = listener_->set_tls(next); !set) return set;
    tls_ = std::move(next);
    if (shows_other) log::info("server", "new connections are shown the certificate that was exchanged");
    if (believes_others) log::info("server", "client certificates are verified against the authorities that were exchanged");
  }
  if (differ(trust.kubelet_client, trust_.kubelet_client) || trust.kubelet_ca_pem != trust_.kubelet_ca_pem) {
    api_->set_node_client(node_client_of(trust));
    log::info("server", "nodes are asked with the certificate, and verified against the authority, that were exchanged");
  }
  if (differ(trust.proxy_client, trust_.proxy_client)) {
    api_->set_front_proxy(trust.proxy_client.certificate_pem, trust.proxy_client.private_key_pem);
    log::info("server", "aggregated API servers are asked with the certificate that was exchanged");
  }
  ca_pem_ = trust.kubeconfig_ca_pem;
  trust_ = std::move(trust);
  if (!believes_others) return {};
  return api_->publish_client_trust(published_trust(trust_, trust_flags_.rules()));
}

void ServerRole::renew_later() {
  constexpr Duration kPause = std::chrono::seconds(30);
  renewals_->schedule_after(kPause, [this] {
    credentials_->reload->look();
    if (const auto renewed = renew(clock_->now()); !renewed) log::error("server", "certificates: {}", renewed.error().message);
    renew_later();
  });
}

ServerRole::ServerRole() = default;
ServerRole::~ServerRole() {
  if (api_) api_->begin_shutdown();
  if (presence_) presence_->withdraw();
  if (renewals_) renewals_->stop();
  if (listener_) listener_->stop(1000);
  listener_.reset();
  if (metrics_) metrics_->stop();
  aggregation_.reset();
  api_.reset();
  loop_.reset();
}

std::shared_ptr<client::Transport> ServerRole::in_process(std::string user, std::vector<std::string> groups) {
  groups.emplace_back("system:authenticated");
  return client::make_in_process_transport(*api_, {std::move(user), std::move(groups)});
}

int run_server(const std::vector<std::string>& args) {
  CLI::App app(
      "The API server, on its embedded store or on etcd. Certificates and kubeconfigs are made on the first start, in the data directory",
      "berth server");
  ServerFlags flags;
  flags.add_to(app);
  flags.compatibility.add_to(app, "Warnings about old names and fields in objects");
  if (const auto code = parse_args(app, args)) return *code;
  Findings findings;
  const ServerPlan plan = flags.plan(findings);
  for (const auto* arguments : {&plan.master_config.scheduler_arguments, &plan.master_config.controller_arguments})
    for (const auto& [name, argument] : *arguments)
      findings.note(fmt::format("{}: is for berth {} --master-config, or berth up", argument.place,
                                arguments == &plan.master_config.scheduler_arguments ? "scheduler" : "controllers"));
  if (!plan.master_config.scheduler_config_file.empty())
    findings.note(fmt::format("{}: kubernetesMasterConfig.schedulerConfigFile is for berth scheduler --master-config, or berth up",
                              flags.master_config));
  if (flags.validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("server")) return 1;
  block_signals();
  raise_file_limit();
  auto role = ServerRole::start(flags, plan, {});
  if (!role) return report(role.error());
  std::printf("berth server is serving on %s\nexport KUBECONFIG=%s\n", (*role)->url().c_str(),
              shell_word((*role)->kubeconfig_path()).c_str());
  std::fflush(stdout);
  wait_for_signal();
  log::info("server", "stopping");
  return 0;
}

}  // namespace berth::cli
