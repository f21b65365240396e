// Threads that their owner cannot wait for: one that ends its owner, or one that waits for what cannot be interrupted. Nobody is detached:
// the process waits for them before it ends, while all that they use is still there.
#pragma once
#include <atomic>
#include <memory>
#include <thread>

namespace berth {

/// A thread and whether its work is over, which it says itself, last of all.
class LeavableThread {
 public:
  LeavableThread() = default;
  template <typename Work>
  explicit LeavableThread(Work work)
      : over_(std::make_shared<std::atomic<bool>>(false)), thread_([work = std::move(work), over = over_]() mutable {
          {
            auto mine = std::move(work);
            mine();
          }
          *over = true;
        }) {}
  LeavableThread(LeavableThread&&) = default;
  LeavableThread& operator=(LeavableThread&&) = default;
  ~LeavableThread() { leave(); }

  [[nodiscard]] bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }
  /// Nothing where it was joined or left. From any thread, also from this one. Whoever leaves one joins those left before that are over;
  /// the others are joined when the process ends.
  void leave();

 private:
  std::shared_ptr<std::atomic<bool>> over_;
  std::thread thread_;
};

}  // namespace berth
