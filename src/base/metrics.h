// Prometheus metrics: counters, gauges and histograms with labels, and the text exposition (SPEC I6).
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace berth::metrics {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// `{a="b"}`, nothing without labels; and a value as Prometheus reads it.
[[nodiscard]] std::string render_labels(const Labels& labels, const std::string& extra = {});
[[nodiscard]] std::string render_number(double value);

/// A number that only rises. Thread-safe.
class Counter {
 public:
  void add(double delta = 1) { value_.fetch_add(delta, std::memory_order_relaxed); }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// A number that moves both ways. Thread-safe.
class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double delta) { value_.fetch_add(delta, std::memory_order_relaxed); }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// Cumulative buckets with upper bounds given at creation. Thread-safe.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);
  [[nodiscard]] const std::vector<double>& bounds() const { return bounds_; }
  /// Count per bucket (not cumulative; the last is +Inf), and the sum of all values.
  [[nodiscard]] std::vector<std::uint64_t> counts() const;
  [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

/// `start * factor^i` for i in [0, count): Prometheus' ExponentialBuckets.
std::vector<double> exponential_buckets(double start, double factor, int count);

/// Owns metrics by name and labels; the same name and labels give the same object. Thread-safe; metrics live as long as the registry.
class Registry {
 public:
  Counter& counter(const std::string& name, const std::string& help, Labels labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, Labels labels = {});
  Histogram& histogram(const std::string& name, const std::string& help, const std::vector<double>& bounds, Labels labels = {});
  /// The text exposition format 0.0.4, families sorted by name.
  [[nodiscard]] std::string expose() const;

 private:
  struct Family;
  Family& family(const std::string& name, const std::string& help, const char* type) BERTH_REQUIRES(mutex_);
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Family>> families_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::metrics
