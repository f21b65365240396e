#include "cli/roles/server_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "apiserver/auth/auth.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/etcd/range_claims.h"
#include "apiserver/kinds/service_allocator.h"
#include "apiserver/upkeep/memory_guard.h"
#include "base/base64.h"
#include "base/config_reader.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/command/data_dir.h"
#include "cli/command/master_config.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/nodes/join_documents.h"
#include "cli/nodes/real_node.h"
#include "cli/roles/auth_setup.h"
#include "cli/roles/component_port.h"
#include "cli/roles/roles.h"
#include "cli/roles/server_credentials.h"
#include "cli/roles/server_presence.h"
#include "cli/roles/server_store.h"
#include "client/kubeconfig.h"
#include "client/traced_transport.h"
#include "model/features.h"
#include "model/quantity.h"
#include "net/debug_pages.h"
#include "net/server.h"
#include "net/tls.h"
#include "node/metrics_api.h"

namespace berth::cli {
namespace {

namespace auth = apiserver::auth;

std::string directory_of(const std::string& path) { return std::filesystem::absolute(path).parent_path().string(); }

void read_admission(const ServerFlags& flags, apiserver::AdmissionConfig& config, Findings& findings) {
  if (!flags.admission_config.empty())
    if (const auto text = findings.take(config::read_whole_file(flags.admission_config)))
      findings.take(apiserver::parse_admission_configuration(*text, directory_of(flags.admission_config), config, flags.admission_config));
  for (const auto& [given, into] :
       {std::pair(&flags.enable_admission, &config.enable), std::pair(&flags.disable_admission, &config.disable)})
    for (std::string& name : config::split_at_commas(*given)) into->push_back(std::move(name));
  findings.take(apiserver::check_plugin_names(config));
}

/// What the gates say; of those that have nothing to do here a note.
model::Features read_feature_gates(const std::vector<std::string>& entries, Findings& findings) {
  std::vector<std::pair<model::Feature, bool>> said;
  for (const std::string& one : config::split_at_commas(entries)) {
    const std::size_t equals = one.find('=');
    const std::string value = equals == std::string::npos ? "" : one.substr(equals + 1);
    if (value != "true" && value != "false")
      findings.error(fmt::format("--feature-gates: \"{}\" is not NAME=true or NAME=false", one));
    else if (const auto feature = model::feature_named(one.substr(0, equals)))
      said.emplace_back(*feature, value == "true");
    else
      findings.note(fmt::format("--feature-gates: {} has no effect: the API server's behaviour is fixed in this version", one));
  }
  auto features = model::preferred_features();
  if (const auto wrong = model::set_gates(features, said); !wrong.empty()) findings.error("--feature-gates: " + wrong);
  return features;
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

}  // namespace

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
  app.add_option(
      "--feature-gates", feature_gates,
      fmt::format("NAME=true|false, comma separated, of {}; all are on, and GenericWorkload=false turns off all that is of groups of pods",
                  fmt::join(model::feature_names(), ", ")));
  app.add_option("--service-cluster-ip-range", service_cidr, "Addresses of Services")->capture_default_str();
  app.add_option("--event-ttl", event_ttl, "How long Events are kept, as long as their texts take no more than a 16th of --memory-limit")
      ->capture_default_str();
  app.add_option("--token-auth-file", token_file, "File of bearer tokens, a line each: token,user,uid,\"group1,group2\"");
  trust.add_to(app);
  etcd.add_to(app);
  security.add_to(app);
  tracing.add_to(app);
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
  app.add_option("--max-connections", max_connections,
                 "Connections at once, three quarters of them from one address at most; more are closed. An HTTP/2 client needs one, an "
                 "HTTP/1.1 client one for each watch")
      ->check(CLI::Range(std::size_t{100}, std::size_t{1'000'000}))
      ->capture_default_str();
  app.add_flag("--disable-http2-serving", disable_http2, "Speak HTTP/1.1 only");
  app.add_option("--http2-max-streams-per-connection", http2_max_streams, "Requests at once on one HTTP/2 connection; 0: 100")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  app.add_option("--shutdown-delay-duration", shutdown_delay,
                 "How long it serves on when it is told to stop, no longer ready: time for load balancers to see that")
      ->capture_default_str();
  app.add_option(
         "--goaway-chance", goaway_chance,
         "How likely a request over HTTP/2 is to end its connection in order, so that clients spread over several servers; at most 0.02")
      ->check(CLI::Range(0.0, 0.02))
      ->capture_default_str();
  app.add_flag("--strict-durability", strict_durability, "Nodes' Leases and Events, too, are acknowledged only after the sync to disk");
  app.add_flag("--unsafe-no-sync", no_sync, "Never sync to disk: for benchmarks; a power loss may lose acknowledged writes");
}

ServerPlan ServerFlags::plan(Findings& findings) const {
  ServerPlan out;
  if (const auto address = findings.take(parse_listen(listen, 6443))) out.listen = *address;
  if (auto config = findings.take(read_master_config(master_config))) out.master_config = std::move(*config);
  read_admission(*this, out.master_config.admission, findings);
  findings.notes(out.master_config.admission.notes);
  out.features = read_feature_gates(feature_gates, findings);
  const auto ttl = parse_go_duration(event_ttl);
  if (!ttl || *ttl <= Duration::zero())
    findings.error(fmt::format("--event-ttl: \"{}\" is not a duration above zero", event_ttl));
  else
    out.event_ttl = *ttl;
  if (const auto range = apiserver::check_service_range(service_cidr); !range)
    findings.error("--service-cluster-ip-range: " + range.error().message);
  out.etcd = etcd.plan(findings);
  out.security = security.plan(findings);
  out.tracing = tracing.plan("berth-server", findings);
  out.auth = std::make_shared<const AuthPlan>(plan_auth(auth, findings));
  out.tls_cipher_suites = config::split_at_commas(tls_cipher_suites);
  if (const auto known = net::check_tls_settings(tls_min_version, out.tls_cipher_suites); !known)
    findings.error("--tls-min-version, --tls-cipher-suites: " + known.error().message);
  out.advertise_host = !advertise_address.empty()                                ? advertise_address
                       : out.listen.host == "0.0.0.0" || out.listen.host == "::" ? machine_address()
                                                                                 : out.listen.host;
  if (!token_file.empty()) static_cast<void>(findings.take(apiserver::auth::parse_token_file(token_file)));
  if (const auto files = findings.take(trust.read()))
    if (const auto ending = findings.take(trust.check(*files, WallClock().now()))) findings.notes(*ending);
  if (const auto memory = findings.take(parse_memory_limit(memory_limit))) out.memory_limit_bytes = *memory;
  if (const auto timeout = parse_go_duration(request_timeout); !timeout || *timeout <= Duration::zero())
    findings.error(fmt::format("--request-timeout: \"{}\" is not a duration above zero", request_timeout));
  else
    out.request_timeout = *timeout;
  if (const auto delay = parse_go_duration(shutdown_delay); !delay || *delay < Duration::zero())
    findings.error(fmt::format("--shutdown-delay-duration: \"{}\" is not a duration of 0s or more", shutdown_delay));
  else
    out.shutdown_delay = *delay;
  if (max_requests_inflight < 0 || max_mutating_requests_inflight < 0 || max_requests_inflight + max_mutating_requests_inflight <= 0)
    findings.error("--max-requests-inflight and --max-mutating-requests-inflight: their sum must be above zero");
  out.data_dir = std::filesystem::absolute(data_dir);
  std::error_code error;
  if (std::filesystem::exists(out.data_dir, error) && !std::filesystem::is_directory(out.data_dir, error))
    findings.error(fmt::format("--data-dir: {} is not a directory", out.data_dir));
  return out;
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
  auto trust = trust_of(*fresh, trust_flags_, now, trust_.files);
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
    if (const auto renewed = renew(wall_->now()); !renewed) log::error("server", "certificates: {}", renewed.error().message);
    renew_later();
  });
}

ServerRole::ServerRole() = default;
ServerRole::~ServerRole() {
  if (api_) api_->begin_shutdown();
  if (presence_) presence_->withdraw();
  if (renewals_) renewals_->stop();
  // Requests under way are answered; a write that others' store keeps waiting is, within its own time.
  const int grace_ms = presence_ ? 15'000 : 1000;
  if (listener_) std::this_thread::sleep_for(shutdown_delay_);
  if (listener_) listener_->stop(grace_ms);
  listener_.reset();
  if (metrics_) metrics_->stop();
  aggregation_.reset();
  api_.reset();
  loop_.reset();
}

std::shared_ptr<client::Transport> ServerRole::in_process(std::string user, std::vector<std::string> groups) {
  groups.emplace_back("system:authenticated");
  auto transport = client::make_in_process_transport(traced_ ? *traced_ : *api_, {std::move(user), std::move(groups)});
  return tracer_ ? client::with_tracing(std::move(transport), tracer_) : transport;
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
