// What this process holds, for tests that ask whether anything is left behind.
#pragma once
#include <malloc.h>
#include <poll.h>

#include <chrono>
#include <filesystem>
#include <functional>

namespace berth::test {

struct Usage {
  std::size_t threads = 0, descriptors = 0, heap_bytes = 0;
};

inline Usage usage_now() {
  const auto entries = [](const char* directory) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
  };
  return {entries("/proc/self/task"), entries("/proc/self/fd"), ::mallinfo2().uordblks};
}

/// Looks again and again whether a claim of another thread's or process's doing has come true.
inline bool comes_true(const std::function<bool()>& claim, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!claim()) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace berth::test
