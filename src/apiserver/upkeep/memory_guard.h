// Keeps the process below a stated amount of memory: when it comes near, what can be given up is, and nothing new is begun (SPEC I9).
#pragma once
#include "base/event_loop.h"

namespace berth::apiserver {

/// What the process holds in memory, in bytes; 0 when the system does not say.
std::size_t resident_bytes();
/// Of the machine, or of the control group that is smaller.
std::size_t memory_of_machine();

/// Looks several times a second, on `loop`. `shed(true)` is called when nine tenths of the limit are passed and giving freed memory back to
/// the system did not help, again at every look while that is so, and `shed(false)` once when there is room again.
class MemoryGuard {
 public:
  MemoryGuard(EventLoop& loop, std::size_t limit_bytes, std::function<void(bool)> shed);
  ~MemoryGuard();
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::apiserver
