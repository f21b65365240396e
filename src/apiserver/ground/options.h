// What a server is told when it is made, by the part that goes by it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "apiserver/auth/interfaces.h"
#include "apiserver/cache/object_cache.h"
#include "base/event_loop.h"
#include "base/metrics.h"
#include "net/client.h"
#include "net/http.h"

namespace berth::net::tracing {
class Tracer;
}
namespace berth::model {
enum class Features : std::uint8_t;
}

namespace berth::apiserver {

namespace audit {
class Log;
}

/// What every part stands on.
struct GroundOptions {
  std::unique_ptr<ObjectCache> cache;  ///< Required; from open_object_cache. The server owns it.
  /// Required; outlives the server. Timers (bookmarks, time-outs) and the time of every time stamp.
  EventLoop* loop = nullptr;
  std::shared_ptr<Authenticator> authenticator;  ///< Required.
  std::shared_ptr<Authorizer> authorizer;        ///< Required.
  std::shared_ptr<metrics::Registry> metrics;    ///< Made when null.
  model::Features features{};                    ///< Of Kubernetes' features that are off there by default: which are on here.
  /// Threads for requests about which somebody elsewhere is asked who sends them and whether he may, or very many rules; two at least.
  int asking_threads = 0;
  std::uint64_t seed = 0;  ///< Of uids and generated names. 0: from the machine's random source.
  /// No threads of the server's own: everything happens within handle() or on `loop` (with a synchronous cache: tests, simulator).
  bool single_threaded = false;
  Duration event_ttl = std::chrono::hours(1);
  bool relaxed_heartbeats_and_events = true;  ///< Nodes' Leases and Events may be acknowledged before the sync (issue 2 "Speed and size").
  std::string service_cidr = "10.96.0.0/12";
  std::string advertise_address = "127.0.0.1";  ///< Endpoint of the `kubernetes` service, with advertise_port.
  std::uint16_t advertise_port = 0;             ///< 0: no Endpoints object is written.
};

/// How objects are written.
struct WriteOptions {
  std::shared_ptr<TokenIssuer> token_issuer;     ///< serviceaccounts/token answers 404 without.
  std::shared_ptr<net::tracing::Tracer> tracer;  ///< Is told of each pod that is made, as the first span of its way; null: nobody is.
  /// Whether an object's stored form is out of date though its content is not: then an update that changes nothing is written, too. May be
  /// empty.
  std::function<bool(std::string_view key)> is_stale;
  /// Why an object of a resource (stored group, plural) must not be written now: its key management service is not well. May be empty.
  std::function<std::string(std::string_view group, std::string_view plural)> cannot_store;
  /// False: metadata.managedFields are kept for objects that somebody has applied, and for no others (Kubernetes' skip-non-applied rule).
  bool tracks_every_writer = true;
  /// Warnings about objects' old names and deprecated fields, as Kubernetes sends since 1.27; 1.20, and so the documents, know none.
  bool warns_of_objects = true;
  /// A pod keeps status.nominatedNodeName when it is bound, to this node or to another, as up to 1.34 and in the documents (004 §2.9.2).
  bool keeps_nominations = false;
};

/// Streams of events.
struct WatchOptions {
  Duration bookmark_interval = std::chrono::seconds(60);
  Duration default_watch_timeout = std::chrono::minutes(45);
  /// Watches under load write together after this pause (none when single_threaded): fewer, larger pieces; three
  /// times as much latency at most.
  Duration watch_flush_pause = std::chrono::milliseconds(3);
  std::size_t watch_queue_bytes = 64 * 1024 * 1024;  ///< The same limit in bytes of the objects that wait.
  std::size_t watch_queue_events = 20'000;           ///< A watcher further behind than this is dropped with 410.
};

/// Who is served when.
struct FlowOptions {
  /// Requests executed at once, watches and sessions not counted: their sum is shared out among the priority levels (flow/controller.h).
  int max_requests_inflight = 400, max_mutating_requests_inflight = 200;
  /// Without: the two numbers above are the limits of reads and writes, and the objects of flowcontrol.apiserver.k8s.io are without effect.
  bool priority_and_fairness = true;
  /// A request waits for its turn a quarter of it at most, and never longer than a minute.
  Duration request_timeout = std::chrono::minutes(1);
};

/// What requests meet first.
struct FrontOptions {
  std::shared_ptr<audit::Log> audit;  ///< Null: nothing is written of requests.
  std::size_t max_body_bytes = 3 * 1024 * 1024;
};

/// Answers what a node's agent would (the kubelet's own paths: /containerLogs/NS/POD/CONTAINER, /exec/…, /stats/summary, …) for nodes whose
/// agent has no HTTPS endpoint because it lives in this process (simulated nodes). False: not one of mine, and neither argument was
/// touched.
using NodeBackend = std::function<bool(const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer)>;

/// The way to nodes.
struct NodeOptions {
  NodeBackend node_backend;
  /// Credentials towards node agents' HTTPS endpoints (url is filled in per node) and, without certificate, webhooks. `ca_pem` signs the
  /// serving certificates of all nodes (--kubelet-certificate-authority); empty: they are not verified, as in Kubernetes.
  net::ClientConfig node_client;
};

/// What is kept in order between requests.
struct UpkeepOptions {
  /// The objects of flow control are kept as they should be, their conditions too, by what runs on `loop`, though it is single-threaded.
  bool keeps_flow_objects = false;
  bool writes_endpoints = true;  ///< False: somebody else keeps the `kubernetes` service's.
  /// The text of an object that nobody changed for so long is packed: about 300 bytes of a pod's 5 KB, for a microsecond at each reading.
  /// 0: never; nor when single_threaded.
  Duration texts_packed_after = std::chrono::minutes(1);
  std::size_t memory_limit_bytes = 0;  ///< Of the process; near it requests are refused with 429. 0: none.
  /// Called on `loop` when memory gets tight, and now and then while it is: whoever is in this process gives up what it can do without.
  std::function<void()> on_memory_tight;
};

}  // namespace berth::apiserver
