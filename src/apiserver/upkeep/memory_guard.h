// Keeps the process below a stated amount of memory: when it comes near, what can be given up is, and nothing new is begun (SPEC I9).
#pragma once
#include "apiserver/flow/controller.h"
#include "base/event_loop.h"

namespace berth::apiserver {

/// What the process holds in memory, in bytes; 0 when the system does not say.
std::size_t resident_bytes();
/// Of the machine, or of the control group that is smaller.
std::size_t memory_of_machine();

/// Looks several times a second, on `loop`, after what was freed is given back to the system. Memory is tight from three quarters of the
/// limit on, until it is below seven tenths; short from nine tenths on, until it is below eight.
class MemoryGuard {
 public:
  struct Callbacks {
    /// What there is now: when that changes, and at every look while memory is short.
    std::function<void(flow::Memory)> changed;
    /// Caches are to go: when memory gets tight or short, and every `kAgain` while it is.
    std::function<void()> give_up;
    /// What is in use; empty: resident_bytes().
    std::function<std::size_t()> resident;
  };
  static constexpr Duration kPause = std::chrono::milliseconds(200), kAgain = std::chrono::seconds(10);

  MemoryGuard(EventLoop& loop, std::size_t limit_bytes, Callbacks callbacks);
  ~MemoryGuard();
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::apiserver
