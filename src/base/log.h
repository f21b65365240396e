// Log lines in klog's shape on standard error: `I1121 04:32:10.123456 component] message`.
#pragma once
#include <fmt/format.h>

#include <string_view>

namespace berth::log {

enum class Level { kDebug, kInfo, kWarning, kError };

/// Lines below this level are dropped. Thread-safe; default kInfo.
void set_level(Level level);
[[nodiscard]] bool enabled(Level level);
/// Writes one line at once. Thread-safe.
void write(Level level, std::string_view component, std::string_view message);

template <typename... Args>
void info(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, component, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarning)) write(Level::kWarning, component, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, component, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) write(Level::kDebug, component, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace berth::log
