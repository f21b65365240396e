#include "apiserver/upkeep/memory_guard.h"

#include <unistd.h>

#include <fstream>

#include "base/log.h"
#include "base/mutex.h"

/// jemalloc's, where the binary has it.
extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_size, void* new_value, std::size_t new_size)
    __attribute__((weak));

namespace berth::apiserver {
namespace {

using flow::Memory;

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
  Callbacks callbacks;
  Mutex mutex;
  TimerId timer BERTH_GUARDED_BY(mutex) = TimerId::kNone;
  bool stopped BERTH_GUARDED_BY(mutex) = false;
  Memory memory BERTH_GUARDED_BY(mutex) = Memory::kAmple;
  TimePoint given_up_at BERTH_GUARDED_BY(mutex){}, purged_at BERTH_GUARDED_BY(mutex){};

  State(EventLoop& on, std::size_t limit_bytes, Callbacks calls) : loop(on), limit(limit_bytes), callbacks(std::move(calls)) {
    if (!callbacks.resident) callbacks.resident = resident_bytes;
  }

  static void schedule(const std::shared_ptr<State>& self) BERTH_REQUIRES(self->mutex) {
    self->timer = self->loop.schedule_after(kPause, [self] {
      const MutexLock lock(self->mutex);
      if (self->stopped) return;
      self->look();
      schedule(self);
    });
  }
  [[nodiscard]] Memory judge(std::size_t bytes) const BERTH_REQUIRES(mutex) {
    const auto share = [&](std::size_t percent) { return limit / 100 * percent; };
    if (bytes > share(90) || (memory == Memory::kShort && bytes >= share(80))) return Memory::kShort;
    return bytes > share(75) || (memory != Memory::kAmple && bytes >= share(70)) ? Memory::kTight : Memory::kAmple;
  }
  /// What was freed counts as in use until the system has it again. While memory is merely tight that is seen to once a second.
  [[nodiscard]] std::size_t in_use() BERTH_REQUIRES(mutex) {
    const std::size_t bytes = callbacks.resident();
    const Memory seen = judge(bytes);
    if (seen == Memory::kAmple || (seen == memory && seen == Memory::kTight && loop.now() - purged_at < std::chrono::seconds(1)))
      return bytes;
    purged_at = loop.now();
    give_back_freed_memory();
    return callbacks.resident();
  }
  void look() BERTH_REQUIRES(mutex) {
    const std::size_t bytes = in_use();
    const Memory before = std::exchange(memory, judge(bytes));
    if (memory > before) tell(bytes);
    if (memory != before || memory == Memory::kShort) callbacks.changed(memory);
    if (memory == Memory::kAmple || (memory <= before && loop.now() - given_up_at < kAgain)) return;
    given_up_at = loop.now();
    if (callbacks.give_up) callbacks.give_up();
  }
  void tell(std::size_t bytes) const BERTH_REQUIRES(mutex) {
    log::warning("memory", "{} MiB are in use of {} MiB: {}", bytes >> 20, limit >> 20,
                 memory == Memory::kTight ? "controllers make no objects, and caches are given up, until there is room"
                                          : "requests are refused and slow watches ended until there is room");
  }
};

MemoryGuard::MemoryGuard(EventLoop& loop, std::size_t limit_bytes, Callbacks callbacks)
    : state_(std::make_shared<State>(loop, limit_bytes, std::move(callbacks))) {
  const MutexLock lock(state_->mutex);
  State::schedule(state_);
}

MemoryGuard::~MemoryGuard() {
  const MutexLock lock(state_->mutex);
  state_->stopped = true;
  state_->loop.cancel(state_->timer);
}

}  // namespace berth::apiserver
