#include "base/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "base/mutex.h"

namespace berth::metrics {

struct Registry::Family {
  std::string help;
  const char* type;
  std::map<Labels, std::unique_ptr<Counter>> counters;
  std::map<Labels, std::unique_ptr<Gauge>> gauges;
  std::map<Labels, std::unique_ptr<Histogram>> histograms;
};

std::string render_labels(const Labels& labels, const std::string& extra) {
  std::string out;
  for (const auto& [key, value] : labels) {
    out += out.empty() ? "{" : ",";
    out += key + "=\"";
    for (const char c : value) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    out += '"';
  }
  if (!extra.empty()) out += (out.empty() ? "{" : ",") + extra;
  return out.empty() ? out : out + "}";
}

std::string render_number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1)) {}

void Histogram::observe(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::counts() const {
  std::vector<std::uint64_t> out(bounds_.size() + 1);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = counts_[i].load(std::memory_order_relaxed);
  return out;
}

std::vector<double> exponential_buckets(double start, double factor, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i, start *= factor) out.push_back(start);
  return out;
}

Registry::Family& Registry::family(const std::string& name, const std::string& help, const char* type) {
  auto& slot = families_[name];
  if (!slot) slot = std::make_shared<Family>(Family{help, type, {}, {}, {}});
  return *slot;
}

Counter& Registry::counter(const std::string& name, const std::string& help, Labels labels) {
  MutexLock lock(mutex_);
  auto& slot = family(name, help, "counter").counters[std::move(labels)];
  if (!slot) slot = std::make_unique<Counter>();
  return *slot;
}

Gauge& Registry::gauge(const std::string& name, const std::string& help, Labels labels) {
  MutexLock lock(mutex_);
  auto& slot = family(name, help, "gauge").gauges[std::move(labels)];
  if (!slot) slot = std::make_unique<Gauge>();
  return *slot;
}

Histogram& Registry::histogram(const std::string& name, const std::string& help, const std::vector<double>& bounds, Labels labels) {
  MutexLock lock(mutex_);
  auto& slot = family(name, help, "histogram").histograms[std::move(labels)];
  if (!slot) slot = std::make_unique<Histogram>(bounds);
  return *slot;
}

std::string Registry::expose() const {
  MutexLock lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, family->help, name, family->type);
    for (const auto& [labels, metric] : family->counters) out += name + render_labels(labels) + " " + render_number(metric->value()) + "\n";
    for (const auto& [labels, metric] : family->gauges) out += name + render_labels(labels) + " " + render_number(metric->value()) + "\n";
    for (const auto& [labels, metric] : family->histograms) {
      const auto counts = metric->counts();
      std::uint64_t cumulative = 0;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        cumulative += counts[i];
        const std::string bound = i < metric->bounds().size() ? render_number(metric->bounds()[i]) : "+Inf";
        out += fmt::format("{}_bucket{} {}\n", name, render_labels(labels, "le=\"" + bound + "\""), cumulative);
      }
      out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, render_labels(labels), render_number(metric->sum()), name,
                         render_labels(labels), cumulative);
    }
  }
  return out;
}

}  // namespace berth::metrics
