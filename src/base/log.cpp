#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

#include "base/clock.h"

namespace berth::log {
namespace {
std::atomic<Level> minimum{Level::kInfo};
}  // namespace

void set_level(Level level) { minimum.store(level, std::memory_order_relaxed); }
bool enabled(Level level) { return level >= minimum.load(std::memory_order_relaxed); }

void write(Level level, std::string_view component, std::string_view message) {
  static constexpr char kLetters[] = {'D', 'I', 'W', 'E'};
  const std::string stamp =
      format_rfc3339_micro(std::chrono::floor<Duration>(std::chrono::system_clock::now()));  // 2026-11-21T04:32:10.123456Z
  const std::string line = fmt::format("{}{}{} {} {}] {}\n", kLetters[static_cast<int>(level)], stamp.substr(5, 2), stamp.substr(8, 2),
                                       stamp.substr(11, 15), component, message);
  // One write, so that lines of several threads and processes do not mix.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace berth::log
