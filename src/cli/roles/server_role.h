// The API server as a role: data directory, certificates, store, cache, pipeline, listener; and what `berth up` needs of it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apiserver/server.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/wall_clock.h"
#include "cli/command/compatibility.h"
#include "cli/command/findings.h"
#include "cli/command/process.h"
#include "cli/command/tracing_flags.h"
#include "cli/keep/etcd_flags.h"
#include "cli/roles/auth_flags.h"
#include "cli/roles/security_flags.h"
#include "cli/roles/trust_files.h"
#include "client/transport.h"
#include "net/server.h"

namespace CLI {
class App;
}

namespace berth::net::tracing {
class Tracer;
}
namespace berth::node {
class MetricsApi;
}

namespace berth::cli {

struct AuthPlan;
class ServerPresence;

/// What a start is made of, once flags and files are well.
struct ServerPlan {
  ListenAddress listen;
  model::Features features{};
  apiserver::MasterConfig master_config;
  EtcdPlan etcd;
  SecurityPlan security;
  std::shared_ptr<const net::tracing::TracerOptions> tracing;  ///< Null: none.
  std::shared_ptr<const AuthPlan> auth;
  Duration event_ttl{};
  Duration request_timeout = std::chrono::minutes(1), shutdown_delay{};
  std::string advertise_host;
  std::vector<std::string> tls_cipher_suites;
  std::size_t memory_limit_bytes = 0;  ///< 0: no limit.
  /// Called on the server's loop when memory gets tight (apiserver::ServerOptions). May be empty.
  std::function<void()> on_memory_tight;
  std::string data_dir;
  std::shared_ptr<net::Handler> placement_pages;  ///< Below /debug/placement; null: nothing there.
};

/// The flags of `berth server`; `berth up` has them too.
struct ServerFlags {
  std::string data_dir;  ///< Default: ~/.berth
  std::string listen = "127.0.0.1:6443";
  std::string advertise_address;  ///< Where other machines reach it; empty: --listen's, or the machine's own.
  std::string tls_min_version;
  std::vector<std::string> tls_cipher_suites;
  std::string master_config;     ///< OpenShift's master-config.yaml
  std::string admission_config;  ///< --admission-control-config-file
  std::vector<std::string> enable_admission, disable_admission;
  std::vector<std::string> feature_gates;
  std::string service_cidr = "10.96.0.0/12";
  std::string event_ttl = "1h";
  std::string token_file;  ///< kube-apiserver's --token-auth-file.
  TrustFlags trust;
  int max_requests_inflight = 400, max_mutating_requests_inflight = 200;
  bool priority_and_fairness = true;
  std::string request_timeout = "1m0s", shutdown_delay = "0s";
  std::string memory_limit = "75%";
  EtcdFlags etcd;
  SecurityFlags security;
  TracingFlags tracing;
  AuthFlags auth;
  bool profiling = true, disable_http2 = false;
  std::size_t max_connections = 20'000;
  std::uint32_t http2_max_streams = 0;
  double goaway_chance = 0;
  const CLI::App* app = nullptr;  ///< Whose flags /flagz shows; outlives the start.
  bool strict_durability = false;
  bool no_sync = false;
  bool validate_only = false;
  Compatibility compatibility;
  void add_to(CLI::App& app);
  /// Reads all files and looks at all flags; changes nothing.
  ServerPlan plan(Findings& findings) const;
};

/// A serving API server; the destructor stops it in order: listener, pipeline, store.
class ServerRole {
 public:
  /// Errors are for people: which flag, file or directory is wrong and what to do. A data directory in use is refused (kConflict).
  /// `backend` answers kubelet requests for simulated nodes of this process; may be empty.
  static Result<std::unique_ptr<ServerRole>> start(const ServerFlags& flags, const ServerPlan& plan, apiserver::NodeBackend backend);
  ~ServerRole();

  [[nodiscard]] const std::string& kubeconfig_path() const { return kubeconfig_path_; }
  [[nodiscard]] const std::string& url() const { return url_; }
  /// Where other machines reach it.
  [[nodiscard]] const std::string& data_dir() const { return data_dir_; }
  [[nodiscard]] const std::string& ca_pem() const { return ca_pem_; }
  /// What this server shows and whom it trusts: for other ports of the same process.
  [[nodiscard]] const net::TlsServerConfig& tls() const { return tls_; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] apiserver::ApiServer& api() { return *api_; }
  /// Null: nothing is traced.
  [[nodiscard]] const std::shared_ptr<net::tracing::Tracer>& tracer() const { return tracer_; }
  /// What master-config.yaml says of the other components; empty without one.
  [[nodiscard]] const apiserver::MasterConfig& master_config() const { return master_config_; }
  /// Straight into the pipeline as a user of these groups; traced, where requests are.
  std::shared_ptr<client::Transport> in_process(std::string user, std::vector<std::string> groups);
  /// Reads the certificates' directory anew: what ends soon is replaced, what was replaced there (an authority in exchange, keys) is put
  /// into use. Called by itself from time to time; on one thread at a time.
  Result<void> renew(TimePoint now);

 private:
  struct Start;  ///< Its steps: server_start.cpp.
  ServerRole();
  Result<void> write_kubeconfigs(TimePoint now);
  void renew_later();
  Result<void> publish_for_joining();
  /// Puts into use what differs from trust_.
  Result<void> adopt(Trust trust);

  Duration shutdown_delay_{};
  std::string data_dir_, kubeconfig_path_, url_, join_url_, ca_pem_, host_, service_cidr_;
  struct Credentials;
  std::unique_ptr<Credentials> credentials_;  ///< Certificates, keys, and the files about who is let in.
  net::TlsServerConfig tls_;
  std::shared_ptr<net::tracing::Tracer> tracer_;
  TrustFlags trust_flags_;
  Trust trust_;  ///< In use; on the renewals' thread, once started.
  apiserver::MasterConfig master_config_;
  std::unique_ptr<SystemClock> clock_;
  std::unique_ptr<WallClock> wall_;  ///< Of credentials.
  std::unique_ptr<ThreadLoop> loop_, renewals_;
  std::unique_ptr<apiserver::ApiServer> api_;
  std::unique_ptr<net::Handler> traced_;           ///< Around api_, where requests are traced.
  std::unique_ptr<apiserver::Watch> aggregation_;  ///< Of ClusterRoles; goes before the server and its cache.
  std::shared_ptr<node::MetricsApi> metrics_;      ///< metrics.k8s.io; stops before the server that it asks.
  std::unique_ptr<net::Server> listener_;
  std::unique_ptr<ServerPresence> presence_;  ///< Over a shared store; goes first.
};

}  // namespace berth::cli
