#include "apiserver/upkeep/memory_guard.h"

#include <unistd.h>

#include <fstream>

#include "base/log.h"

/// jemalloc's, where the binary has it.
extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_size, void* new_value, std::size_t new_size)
    __attribute__((weak));

namespace berth::apiserver {
namespace {

constexpr auto kPause = std::chrono::milliseconds(200);

void give_back_freed_memory() {
  if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096: MALLCTL_ARENAS_ALL.
}

}  // namespace

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t memory_of_machine() {
  auto bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    // A group's limit holds for all below it.
    for (std::string path = line.substr(3); !path.empty(); path.resize(path.rfind('/'))) {
      std::ifstream in("/sys/fs/cgroup" + (path == "/" ? "" : path) + "/memory.max");
      std::size_t limit = 0;
      if (in >> limit) bytes = std::min(bytes, limit);
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return bytes;
}

struct MemoryGuard::State {
  EventLoop& loop;
  std::size_t limit;
  std::function<void(bool)> shed;
  std::mutex mutex;
  TimerId timer = TimerId::kNone;
  bool stopped = false, is_over = false;

  State(EventLoop& on, std::size_t limit_bytes, std::function<void(bool)> call) : loop(on), limit(limit_bytes), shed(std::move(call)) {}

  /// Requires the mutex.
  static void schedule(const std::shared_ptr<State>& self) {
    self->timer = self->loop.schedule_after(kPause, [self] {
      const std::lock_guard lock(self->mutex);
      if (self->stopped) return;
      self->look();
      schedule(self);
    });
  }
  void look() {
    auto bytes = resident_bytes();
    if (bytes > limit / 10 * 9) {
      give_back_freed_memory();
      bytes = resident_bytes();
    }
    if (bytes > limit / 10 * 9) {
      if (!std::exchange(is_over, true))
        log::warning("memory", "{} MiB are in use of {} MiB: requests are refused and slow watches ended until there is room", bytes >> 20,
                     limit >> 20);
      shed(true);
    } else if (is_over && bytes < limit / 10 * 8) {
      is_over = false;
      shed(false);
    }
  }
};

MemoryGuard::MemoryGuard(EventLoop& loop, std::size_t limit_bytes, std::function<void(bool)> shed)
    : state_(std::make_shared<State>(loop, limit_bytes, std::move(shed))) {
  const std::lock_guard lock(state_->mutex);
  State::schedule(state_);
}

MemoryGuard::~MemoryGuard() {
  const std::lock_guard lock(state_->mutex);
  state_->stopped = true;
  state_->loop.cancel(state_->timer);
}

}  // namespace berth::apiserver
