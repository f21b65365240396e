// The API server: Kubernetes' HTTP API over the object cache (SPEC A1–A7, C1, D5, E1–E5; DESIGN "API server").
//
//   request ─> request info ─> authenticate ─> impersonate ─> authorise ─┬─> get, list, watch: from memory
//                                                                        └─> decode ─> default ─> admit (mutate) ─> validate ─>
//                                                                            admit (validate) ─> commit (asynchronous) ─> respond
#pragma once
#include <map>

#include "apiserver/admission/config.h"
#include "apiserver/audit/log.h"
#include "apiserver/ground/options.h"
#include "apiserver/kinds/service_claims.h"
#include "base/version.h"

namespace berth::apiserver {

/// Opens the cache on a store with the kinds' own extraction of names, labels and selectable fields: what ServerOptions::cache wants.
/// `synchronous`: no writer thread, every write is committed within the call (tests, simulator). `event_ttl`: of the Events that are there.
Result<std::unique_ptr<ObjectCache>> open_object_cache(std::unique_ptr<store::Store> store, const Clock& clock, CacheOptions options,
                                                       bool synchronous, Duration event_ttl = std::chrono::hours(1));

/// All that a server is told; each part takes its own (ground/options.h).
struct ServerOptions : GroundOptions, WriteOptions, WatchOptions, FlowOptions, FrontOptions, NodeOptions, UpkeepOptions {
  AdmissionConfig admission;
  std::unique_ptr<ServiceClaims> service_claims;  ///< Over a shared store; null: this server alone gives addresses and ports away.
  int node_port_first = 30000, node_port_last = 32767;
  std::string git_version{kBuildVersion};
};

/// Thread-safe. Construct, then give it to net::Server::start or client::make_in_process_transport; both must be gone before it is
/// destroyed. The destructor ends all watches and waits for writes under way.
class ApiServer : public net::Handler {
 public:
  /// Makes what must always be there (namespaces default, kube-system, kube-public, kube-node-lease, openshift-machine-api; PriorityClasses
  /// system-node-critical and system-cluster-critical; the kubernetes Service), rebuilds the Service allocator, starts the admission chain.
  /// Errors: options or admission configuration wrong (kInvalid), store failures.
  static Result<std::unique_ptr<ApiServer>> create(ServerOptions options);
  ~ApiServer() override;

  /// Never throws; answers every request once, failures as metav1.Status.
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

  [[nodiscard]] ObjectCache& cache();
  [[nodiscard]] metrics::Registry& metrics();
  /// Extra condition of /readyz ("informer-sync", …): called on each request, from I/O threads. Add before serving.
  void add_ready_check(std::string name, std::function<bool()> check);
  /// Serves `prefix` and everything below it by another handler after authentication and authorisation as a non-resource request
  /// (dashboard); with `anonymous` without either. Add before serving.
  void mount(std::string prefix, std::shared_ptr<net::Handler> handler, bool anonymous);
  /// Serves a virtual group-version (metrics.k8s.io/v1beta1) by a handler, after authorisation as the resource request it is. Discovery of
  /// it comes from the kinds table. Add before serving.
  void mount_group_version(std::string group, std::string version, std::shared_ptr<net::Handler> handler);
  /// Where this server itself is reached, besides `advertise_address`: no node is ever taken to be there.
  void serves_on(std::uint16_t port);
  /// The serving certificate of this node's agent is verified against `ca_pem`, also where those of others are not.
  void trust_node(const std::string& node, std::string ca_pem);
  /// Who this server is to nodes from now on, and what verifies them (ServerOptions::node_client).
  void set_node_client(net::ClientConfig node_client);
  /// The client certificate by which it asks aggregated servers; none is shown before.
  void set_front_proxy(std::string certificate_pem, std::string private_key_pem);
  /// Keys of ConfigMap kube-system/extension-apiserver-authentication; others stay. Waits for the store.
  Result<void> publish_client_trust(const std::map<std::string, std::string>& data);
  /// From now on /readyz fails ("shutdown"); used for a graceful stop.
  void begin_shutdown();
  /// Over a shared store, every few minutes: addresses and node ports that no Service has any more are free again.
  void repair_service_claims();

  struct Impl;

 private:
  explicit ApiServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::apiserver
