// What must never be false, checked in releases too: state that is wrong is not worked on.
#pragma once
#include <fmt/format.h>

#include <string>

namespace berth {

/// The exit code of a process that found its own state wrong (EX_SOFTWARE): whoever supervises it starts it anew, from what is stored.
inline constexpr int kCheckFailedExit = 70;

/// Says so in the log and ends the process at once: no destructor runs, and nothing more is written.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& details);

}  // namespace berth

/// For what only a mistake in the program makes false, whatever the input; a comparison or two, so that it can stand where state changes.
/// What follows the condition is a format and its values: what is wrong, and where.
///   BERTH_CHECK(--open >= 0, "{}: answered more often than asked", name)
#define BERTH_CHECK(condition, ...)                                                    \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::berth::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
