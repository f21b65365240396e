// The API server's inside: shared by the files of verbs/, subresources/ and the pipeline.
#pragma once
#include <mutex>

#include "apiserver/admission/plugin.h"
#include "apiserver/cache/object_codec.h"
#include "apiserver/ground.h"
#include "apiserver/kinds/custom_resources.h"
#include "apiserver/kinds/service_allocator.h"
#include "apiserver/request/context.h"
#include "apiserver/respond.h"
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
using WritePtr = std::shared_ptr<WriteOperation>;
class PolicyStatus;
class RelayClients;
namespace aggregation {
class Aggregator;
}

struct MountedHandler {
  std::string prefix;
  std::shared_ptr<net::Handler> handler;
  bool anonymous = false;
};

struct ApiServer::Impl : Ground {
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

  // --- reading: get.cpp, list.cpp, watch.cpp
  void get(const RequestPtr& request);
  void list(const RequestPtr& request);
  void watch(const RequestPtr& request);

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

  /// Memory is scarce, or is so no more.
  void shed_load(bool scarce);
  std::unique_ptr<flow::Controller> flow_control;  ///< Null when single-threaded. Requests, which others hold, give it their seats back.
  Versions versions;
  Responder respond;
  std::unique_ptr<FlowObjects> flow_objects;
  std::unique_ptr<OwnEndpoints> own_endpoints;  ///< Null where somebody else keeps them, or nobody.
  ServiceAllocator services;
  metrics::Registry indicators;        ///< What /metrics/slis shows.
  std::unique_ptr<WorkerPool> askers;  ///< Null where nobody elsewhere is asked.
  std::atomic<int> asking{0};          ///< Requests that wait for, or run on, those.

  std::unique_ptr<AdmissionChain> admission;
  std::unique_ptr<CustomResources> custom;
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

  metrics::Gauge* watchers = nullptr;
};

}  // namespace berth::apiserver
