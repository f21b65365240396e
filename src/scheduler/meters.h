// What the scheduler measures of itself: kube-scheduler's metrics, and spans. It alone looks at a clock, for lengths of time that decide
// nothing.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"
#include "net/tracing/tracer.h"
#include "scheduler/tracked.h"
#include "scheduler/wakeup.h"

namespace berth::scheduler {

class Meters {
 public:
  /// `tracer` null: no spans.
  Meters(const Clock& clock, std::shared_ptr<metrics::Registry> registry, std::shared_ptr<net::tracing::Tracer> tracer);

  [[nodiscard]] metrics::Registry& registry() { return *registry_; }
  /// Where a length begins.
  [[nodiscard]] TimePoint start() const { return clock_.now(); }
  [[nodiscard]] double since(TimePoint start) const { return static_cast<double>((clock_.now() - start).count()) / 1e6; }

  void attempt(const char* result, const placement::PodInfo& pod, double seconds);
  /// Of a PodGroup.
  void group_attempt(const char* result, const std::string& profile, double seconds);
  void group_algorithm(double seconds);
  void point(const char* point, const std::string& profile, double seconds, const char* status = "Success");
  void event(const std::string& label, TimePoint start);
  void events(EventSet events, TimePoint start);
  void bound(const Held& held, TimePoint now);
  /// scheduler_unschedulable_pods: the plugin holds one more pod back, or one less.
  void held_back(std::string_view plugin, const std::string& profile, bool holds);
  /// Pods in the queue's active, backoff, unschedulable and gated; nodes, pods and assumed pods in the cache; bindings.
  void gauge(const std::array<std::size_t, 8>& values);
  void begin_span(Held& held);
  void end_span(Held& held, const std::string& error);

 private:
  metrics::Histogram& frequent(const std::array<std::string_view, 4>& key, const std::function<metrics::Histogram&()>& make);

  const Clock& clock_;
  std::shared_ptr<metrics::Registry> registry_;
  std::shared_ptr<net::tracing::Tracer> tracer_;
  /// Series that every pod adds to, found once: a look-up by name and labels costs more than what is added. Keys: family, then labels.
  std::map<std::array<std::string_view, 4>, metrics::Histogram*> frequent_series_;
  std::deque<std::string> frequent_texts_;  ///< What these keys point into.
  std::array<metrics::Gauge*, 8> gauges_{};
};

}  // namespace berth::scheduler
