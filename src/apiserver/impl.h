// The API server's inside: shared by the files of verbs/, subresources/ and the pipeline.
#pragma once
#include <condition_variable>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include "apiserver/admission/plugin.h"
#include "apiserver/cache/mirror.h"
#include "apiserver/cache/object_codec.h"
#include "apiserver/kinds/custom_resources.h"
#include "apiserver/kinds/service_allocator.h"
#include "apiserver/request/context.h"
#include "apiserver/server.h"
#include "apiserver/streams.h"
#include "apiserver/upkeep/flow_objects.h"
#include "apiserver/upkeep/memory_guard.h"
#include "apiserver/upkeep/own_endpoints.h"

namespace berth::apiserver {

/// Answers a list with what has been found, streaming it when it is long (verbs/list.cpp).
void answer_list(ApiServer::Impl& server, const RequestPtr& request, ListResult result, const std::string& token,
                 std::optional<std::int64_t> remaining);

/// A write on its way through the pipeline: what every attempt of it shares. See pipeline.cpp.
struct WriteOperation;
struct WriteOutcome;
struct Body;
using WritePtr = std::shared_ptr<WriteOperation>;
class Conversions;
class PolicyStatus;
class RelayClients;
namespace aggregation {
class Aggregator;
}

/// A few threads for what must not run on I/O or writer threads: retries after conflicts, answers of webhooks.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool() { stop(); }
  /// Waits for running tasks; queued and later ones are dropped. Idempotent.
  void stop();
  void post(Task task);

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Names and uids, from one seeded generator. Thread-safe.
class NameSource {
 public:
  explicit NameSource(std::uint64_t seed);
  std::string suffix();  ///< Five characters of Kubernetes' alphabet (no vowels, nothing that looks alike).
  std::string uid();     ///< A version 4 UUID.

 private:
  std::uint64_t next();
  std::mutex mutex_;
  std::mt19937_64 random_;
};

struct MountedHandler {
  std::string prefix;
  std::shared_ptr<net::Handler> handler;
  bool anonymous = false;
};

struct ApiServer::Impl {
  explicit Impl(ServerOptions given);
  ~Impl();
  Result<void> start();

  // --- pipeline.cpp: from the wire to the verb
  void handle(net::HttpRequest http, std::shared_ptr<net::ResponseWriter> writer);
  /// Now, later, on another thread, or not at all (429).
  /// Whether what the request reads must be as new as what any server acknowledged (only over a shared store can it be older).
  [[nodiscard]] bool needs_newest(const Request& request) const;
  void schedule(const RequestPtr& request);
  void dispatch(const RequestPtr& request);
  void dispatch_resource(const RequestPtr& request);
  void dispatch_subresource(const RequestPtr& request);
  /// Authentication and authorisation, elsewhere where they wait for somebody.
  void let_in(const RequestPtr& request);
  void let_through(const RequestPtr& request, bool may_wait_here);
  void ask(const RequestPtr& request, Task task);
  bool authenticate(Request& request);
  /// From here on the request is written down, where the policy wants that; `user` null: nobody was let in.
  void begin_audit(Request& request, const UserInfo* user);
  bool authorize(Request& request);

  // --- respond.cpp: every answer
  void respond_status(Request& request, const model::ApiStatus& status);
  /// 429: come back later (apiserver/pkg/server/filters/priority-and-fairness.go).
  void respond_busy(Request& request, int retry_after_seconds = 1);
  void respond_json(Request& request, int code, const json::Value& document);
  void respond_text(Request& request, int code, std::string content_type, std::string body);
  /// An object of request.kind in the form asked for (object, Table, PartialObjectMetadata), converted to the version asked for.
  void respond_object(Request& request, int code, const ObjectPtr& object);
  void respond_body(Request& request, int code, Body body);
  /// The answer to a write: on the caller's thread, the writer's, only where it takes no more than copying bytes.
  void respond_written(const RequestPtr& request, int code, WriteOutcome outcome);
  void respond_success(Request& request, int code, std::string_view name, std::string_view uid);
  net::Headers headers_for(const Request& request, std::string_view content_type) const;
  void account(Request& request, int code);

  // --- conversion.cpp: versions of custom kinds that a webhook converts between
  /// Objects of the request's kind may have to be converted by a webhook before they can be shown or stored.
  [[nodiscard]] static bool asks_converter(const Request& request);
  using ShownObjects = std::function<void(model::ApiResult<std::vector<ObjectPtr>>)>;
  /// The objects with bytes of the request's version. `done` may come on another thread, or before this returns.
  void convert_ahead(const RequestPtr& request, std::vector<ObjectPtr> objects, ShownObjects done);
  /// One of them as a document.
  void read_converted(const RequestPtr& request, const ObjectPtr& object, std::function<void(model::ApiResult<json::Value>)> done);
  /// A document of the request's version as it is stored.
  void convert_to_storage(const RequestPtr& request, json::Value document, std::function<void(model::ApiResult<json::Value>)> done);
  /// respond_object, after a conversion where one is needed.
  void show(const RequestPtr& request, int code, const ObjectPtr& object);

  // --- reading: get.cpp, list.cpp, watch.cpp
  void get(const RequestPtr& request);
  void list(const RequestPtr& request);
  void watch(const RequestPtr& request);
  /// The stored object in the request's version.
  json::Value read_document(const Request& request, const StoredObject& object) const;

  // --- subresources/token.cpp
  void review(const RequestPtr& request);

  // --- health.cpp, discovery.cpp
  void non_resource(const RequestPtr& request);
  bool serve_discovery(const RequestPtr& request);
  bool serve_openapi(const RequestPtr& request);
  void serve_health(const RequestPtr& request, const std::string& name);
  void serve_metrics(const RequestPtr& request);
  void component_status(const RequestPtr& request);
  /// Of /metrics/slis: how a check of a health endpoint ended.
  void note_indicator(std::string_view endpoint, const std::string& name, bool good);
  /// What flow control holds, for administrators; false when the path is another.
  bool serve_flow_dump(const RequestPtr& request);

  // --- bootstrap.cpp
  Result<void> bootstrap();

  void offload(Task task);
  /// Later, on another thread, or on the loop when single-threaded: never within the call.
  void defer(Task task);
  /// The stored bytes are what the request's version shows of the object.
  [[nodiscard]] static bool is_shown_as_stored(const Request& request, const StoredObject& object);
  /// Memory is scarce, or is so no more.
  void shed_load(bool scarce);
  Mirror& mirror(std::string_view group, std::string_view plural);
  [[nodiscard]] std::string now_text() const { return format_rfc3339(loop.now()); }

  ServerOptions options;
  std::unique_ptr<flow::Controller> flow_control;  ///< Null when single-threaded. Requests, which others hold, give it their seats back.
  std::unique_ptr<ObjectCache> cache;
  std::unique_ptr<FlowObjects> flow_objects;
  std::unique_ptr<OwnEndpoints> own_endpoints;  ///< Null where somebody else keeps them, or nobody.
  EventLoop& loop;
  std::shared_ptr<metrics::Registry> registry;
  NameSource names;
  ServiceAllocator services;
  metrics::Registry indicators;         ///< What /metrics/slis shows.
  std::unique_ptr<WorkerPool> workers;  ///< Null when single-threaded.
  std::unique_ptr<WorkerPool> askers;   ///< Null where nobody elsewhere is asked.
  std::atomic<int> asking{0};           ///< Requests that wait for, or run on, those.

  std::mutex mirrors_mutex;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Mirror>> mirrors;
  std::unique_ptr<AdmissionChain> admission;
  std::unique_ptr<CustomResources> custom;
  std::unique_ptr<Conversions> conversions;
  std::unique_ptr<PolicyStatus> policy_status;

  std::mutex ready_mutex;
  std::vector<std::pair<std::string, std::function<bool()>>> ready_checks;
  std::atomic<bool> shutting_down{false};
  std::vector<MountedHandler> mounts;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<net::Handler>> mounted_groups;

  std::unique_ptr<MemoryGuard> memory_guard;  ///< Null without a limit.
  Streams streams;

  std::unique_ptr<RelayClients> relays;
  std::unique_ptr<aggregation::Aggregator> aggregator;

  struct RequestMetrics {
    metrics::Counter* total = nullptr;
    metrics::Histogram* duration = nullptr;
  };
  std::shared_mutex request_metrics_mutex;
  std::unordered_map<std::string, RequestMetrics> request_metrics;
  metrics::Gauge* inflight_read = nullptr;
  metrics::Gauge* inflight_mutating = nullptr;
  metrics::Gauge* watchers = nullptr;
};

}  // namespace berth::apiserver
