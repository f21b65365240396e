// The API server: Kubernetes' HTTP API over the object cache (SPEC A1–A7, C1, D5, E1–E5; DESIGN "API server").
//
//   request ─> request info ─> authenticate ─> impersonate ─> authorise ─┬─> get, list, watch: from memory
//                                                                        └─> decode ─> default ─> admit (mutate) ─> validate ─>
//                                                                            admit (validate) ─> commit (asynchronous) ─> respond
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/admission/config.h"
#include "apiserver/audit/log.h"
#include "apiserver/auth_interfaces.h"
#include "apiserver/cache/object_cache.h"
#include "apiserver/kinds/service_claims.h"
#include "base/event_loop.h"
#include "base/metrics.h"
#include "base/version.h"
#include "net/client.h"
#include "net/http.h"

namespace berth::net::tracing {
class Tracer;
}

namespace berth::apiserver {

/// Opens the cache on a store with the kinds' own extraction of names, labels and selectable fields: what ServerOptions::cache wants.
/// `synchronous`: no writer thread, every write is committed within the call (tests, simulator). `event_ttl`: of the Events that are there.
Result<std::unique_ptr<ObjectCache>> open_object_cache(std::unique_ptr<store::Store> store, const Clock& clock, CacheOptions options,
                                                       bool synchronous, Duration event_ttl = std::chrono::hours(1));

/// Answers what a node's agent would (the kubelet's own paths: /containerLogs/NS/POD/CONTAINER, /exec/…, /stats/summary, …) for nodes whose
/// agent has no HTTPS endpoint because it lives in this process (simulated nodes). False: not one of mine, and neither argument was
/// touched.
using NodeBackend = std::function<bool(const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer)>;

struct ServerOptions {
  std::unique_ptr<ObjectCache> cache;  ///< Required; from open_object_cache. The server owns it.
  /// Required; outlives the server. Timers (bookmarks, time-outs) and the time of every time stamp.
  EventLoop* loop = nullptr;
  std::shared_ptr<Authenticator> authenticator;  ///< Required.
  std::shared_ptr<Authorizer> authorizer;        ///< Required.
  std::shared_ptr<TokenIssuer> token_issuer;     ///< serviceaccounts/token answers 404 without.
  std::shared_ptr<metrics::Registry> metrics;    ///< Made when null.
  std::shared_ptr<net::tracing::Tracer> tracer;  ///< Is told of each pod that is made, as the first span of its way; null: nobody is.
  AdmissionConfig admission;
  model::Features features{};         ///< Of Kubernetes' features that are off there by default: which are on here.
  std::shared_ptr<audit::Log> audit;  ///< Null: nothing is written of requests.
  /// Whether an object's stored form is out of date though its content is not: then an update that changes nothing is written, too. May be
  /// empty.
  std::function<bool(std::string_view key)> is_stale;
  /// Why an object of a resource (stored group, plural) must not be written now: its key management service is not well. May be empty.
  std::function<std::string(std::string_view group, std::string_view plural)> cannot_store;
  NodeBackend node_backend;
  /// Credentials towards node agents' HTTPS endpoints (url is filled in per node) and, without certificate, webhooks. `ca_pem` signs the
  /// serving certificates of all nodes (--kubelet-certificate-authority); empty: they are not verified, as in Kubernetes.
  net::ClientConfig node_client;

  /// Threads for requests about which somebody elsewhere is asked who sends them and whether he may, or very many rules; two at least.
  int asking_threads = 0;
  std::uint64_t seed = 0;  ///< Of uids and generated names. 0: from the machine's random source.
  /// No threads of the server's own: everything happens within handle() or on `loop` (with a synchronous cache: tests, simulator).
  bool single_threaded = false;
  /// Even so the objects of flow control are kept as they should be, their conditions too, by what runs on `loop`.
  bool keeps_flow_objects = false;
  bool relaxed_leases_and_events = true;  ///< Leases and Events may be acknowledged before the sync (issue 2 "Speed and size").
  /// False: metadata.managedFields are kept for objects that somebody has applied, and for no others (Kubernetes' skip-non-applied rule).
  bool tracks_every_writer = true;
  /// Warnings about objects' old names and deprecated fields, as Kubernetes sends since 1.27; 1.20, and so the documents, know none.
  bool warns_of_objects = true;
  /// A pod keeps status.nominatedNodeName when it is bound, to this node or to another, as up to 1.34 and in the documents (004 §2.9.2).
  bool keeps_nominations = false;
  std::string service_cidr = "10.96.0.0/12";
  std::unique_ptr<ServiceClaims> service_claims;  ///< Over a shared store; null: this server alone gives addresses and ports away.
  int node_port_first = 30000, node_port_last = 32767;
  std::string advertise_address = "127.0.0.1";  ///< Endpoint of the `kubernetes` service, with advertise_port.
  std::uint16_t advertise_port = 0;             ///< 0: no Endpoints object is written.
  bool writes_endpoints = true;                 ///< False: somebody else keeps the `kubernetes` service's.
  std::string git_version{kBuildVersion};
  Duration event_ttl = std::chrono::hours(1);
  Duration bookmark_interval = std::chrono::seconds(60);
  Duration default_watch_timeout = std::chrono::minutes(45);
  /// Watches under load write together after this pause (none when single_threaded): fewer, larger pieces; three
  /// times as much latency at most.
  Duration watch_flush_pause = std::chrono::milliseconds(3);
  std::size_t watch_queue_bytes = 64 * 1024 * 1024;  ///< The same limit in bytes of the objects that wait.
  std::size_t watch_queue_events = 20'000;           ///< A watcher further behind than this is dropped with 410.
  std::size_t max_body_bytes = 3 * 1024 * 1024;
  /// Requests executed at once, watches and sessions not counted: their sum is shared out among the priority levels (flow/controller.h).
  int max_requests_inflight = 400, max_mutating_requests_inflight = 200;
  /// Without: the two numbers above are the limits of reads and writes, and the objects of flowcontrol.apiserver.k8s.io are without effect.
  bool priority_and_fairness = true;
  /// A request waits for its turn a quarter of it at most, and never longer than a minute.
  Duration request_timeout = std::chrono::minutes(1);
  std::size_t memory_limit_bytes = 0;  ///< Of the process; near it requests are refused with 429. 0: none.
  /// Called on `loop` when memory gets tight, and now and then while it is: whoever is in this process gives up what it can do without.
  std::function<void()> on_memory_tight;
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
