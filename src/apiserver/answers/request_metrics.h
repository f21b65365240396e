// What is counted of requests: how many there are, how they ended, how long they took.
#pragma once
#include <string>
#include <unordered_map>

#include "apiserver/request/context.h"
#include "base/metrics.h"
#include "base/shared_mutex.h"

namespace berth::apiserver {

/// Thread-safe. `registry` outlives it.
class RequestMetrics {
 public:
  explicit RequestMetrics(metrics::Registry& registry);
  void began(const Request& request) { inflight(request).add(1); }
  /// Once, when it is answered; a watch when its answer begins.
  void ended(const Request& request, int code);

 private:
  struct Series {
    metrics::Counter* total = nullptr;
    metrics::Histogram* duration = nullptr;
  };
  [[nodiscard]] metrics::Gauge& inflight(const Request& request) const;
  [[nodiscard]] Series series(const Request& request, int code);

  metrics::Registry& registry_;
  metrics::Gauge& inflight_read_;
  metrics::Gauge& inflight_mutating_;
  SharedMutex mutex_;
  std::unordered_map<std::string, Series> known_ BERTH_GUARDED_BY(mutex_);  ///< By everything that they are labelled with.
};

}  // namespace berth::apiserver
