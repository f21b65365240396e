#include "base/exposition.h"

#include <fmt/format.h>

namespace berth::metrics {

void Exposition::family(std::string name, std::string help, const char* type) {
  head_ = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  name_ = std::move(name);
}

void Exposition::sample(const Labels& labels, double value, std::optional<TimePoint> at) {
  text_ += std::exchange(head_, {}) + name_ + render_labels(labels) + " " + render_number(value);
  if (at) text_ += fmt::format(" {}", std::chrono::duration_cast<std::chrono::milliseconds>(at->time_since_epoch()).count());
  text_ += '\n';
}

}  // namespace berth::metrics
