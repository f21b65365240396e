#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/json_quote.h"
#include "base/log_format.h"

namespace berth::log {
namespace {
std::atomic<Level> minimum{Level::kInfo};
std::atomic<Format> shape{Format::kText};

std::string as_text(Level level, const std::string& stamp, std::string_view component, std::string_view message) {
  static constexpr char kLetters[] = {'D', 'I', 'W', 'E'};
  return fmt::format("{}{}{} {} {}] {}\n", kLetters[static_cast<int>(level)], stamp.substr(5, 2), stamp.substr(8, 2), stamp.substr(11, 15),
                     component, message);
}

std::string as_json(Level level, const std::string& stamp, std::string_view component, std::string_view message) {
  static constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
  std::string line = fmt::format(R"({{"ts":"{}","level":"{}","component":"{}","msg":)", stamp, kNames[static_cast<int>(level)], component);
  json::quote_to(line, message);
  return line + "}\n";
}
}  // namespace

void set_format(Format format) { shape.store(format, std::memory_order_relaxed); }

void set_level(Level level) { minimum.store(level, std::memory_order_relaxed); }
bool enabled(Level level) { return level >= minimum.load(std::memory_order_relaxed); }

void write(Level level, std::string_view component, std::string_view message) {
  const std::string stamp =
      format_rfc3339_micro(std::chrono::floor<Duration>(std::chrono::system_clock::now()));  // 2026-11-21T04:32:10.123456Z
  const bool is_json = shape.load(std::memory_order_relaxed) == Format::kJson;
  const std::string line = is_json ? as_json(level, stamp, component, message) : as_text(level, stamp, component, message);
  // One write, so that lines of several threads and processes do not mix.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace berth::log
