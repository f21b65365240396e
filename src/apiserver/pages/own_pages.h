// Requests for no resource: discovery, health, version, metrics, OpenAPI.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "apiserver/aggregation/aggregator.h"
#include "apiserver/answers/respond.h"
#include "base/mutex.h"

namespace berth::apiserver {

/// What the server says of itself and of what it serves. Thread-safe.
class OwnPages {
 public:
  /// `flow_control`: null when single-threaded. All outlive this.
  OwnPages(Ground& ground, Responder& respond, aggregation::Aggregator& aggregator, flow::Controller* flow_control, std::string git_version)
      : ground_(ground), respond_(respond), aggregator_(aggregator), flow_control_(flow_control), git_version_(std::move(git_version)) {}

  /// Answers, with 404 what is not there.
  void serve(const RequestPtr& request);
  /// Extra condition of /readyz: called on each request, from I/O threads.
  void add_ready_check(std::string name, std::function<bool()> check);
  /// From now on /readyz fails.
  void begin_shutdown() { shutting_down_ = true; }

 private:
  bool serve_discovery(const RequestPtr& request);
  void serve_group_versions(const RequestPtr& request, bool core);
  /// openapi.cpp
  bool serve_openapi(const RequestPtr& request);
  void serve_health(const RequestPtr& request, const std::string& path);
  void serve_metrics(const RequestPtr& request);
  void serve_version(const RequestPtr& request);
  /// What there is below "/".
  void serve_index(const RequestPtr& request);
  /// Of /metrics/slis: how a check of a health endpoint ended.
  void note_indicator(std::string_view endpoint, const std::string& name, bool good);
  /// What flow control holds, for administrators; false when the path is another.
  bool serve_flow_dump(const RequestPtr& request);
  void respond_bytes(Request& request, const Bytes& bytes, std::string_view content_type);

  Ground& ground_;
  Responder& respond_;
  aggregation::Aggregator& aggregator_;
  flow::Controller* flow_control_;
  const std::string git_version_;
  metrics::Registry indicators_;  ///< What /metrics/slis shows.
  Mutex ready_mutex_;
  std::vector<std::pair<std::string, std::function<bool()>>> ready_checks_ BERTH_GUARDED_BY(ready_mutex_);
  std::atomic<bool> shutting_down_{false};
};

}  // namespace berth::apiserver
