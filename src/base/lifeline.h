// Callbacks that may come after whoever asked for them has gone.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace berth {

/// A member of an object whose callbacks name it by `this`: what `guard` made does nothing any more once the lifeline has ended, or gone
/// with its object. Callbacks are called, and the object ends, on one loop; they may be made on any thread.
class Lifeline {
 public:
  Lifeline() = default;
  ~Lifeline() { end(); }
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  /// A callback that calls `f` with what it is given.
  template <typename F>
  [[nodiscard]] auto guard(F f) const {
    return [holds = holds_, f = std::move(f)](auto&&... args) {
      if (*holds) std::invoke(f, std::forward<decltype(args)>(args)...);
    };
  }
  void end() { *holds_ = false; }

 private:
  const std::shared_ptr<std::atomic<bool>> holds_ = std::make_shared<std::atomic<bool>>(true);
};

/// A base of objects that are held by std::shared_ptr and may be let go from within their own callbacks: each keeps its object for as long
/// as it runs. `guarded(f)` calls `f`, a function or a member, with the object before what the callback is given; it is dropped once the
/// object has gone, or has ended. Callbacks may come on any thread that the object itself allows; what runs while another thread ends it
/// runs on.
template <typename T>
class Guarded : public std::enable_shared_from_this<T> {
 public:
  template <typename F>
  [[nodiscard]] auto guarded(F f) {
    return [weak = this->weak_from_this(), f = std::move(f)](auto&&... args) {
      if (const auto self = weak.lock(); self != nullptr && !self->has_ended())
        std::invoke(f, *self, std::forward<decltype(args)>(args)...);
    };
  }
  /// Nothing that `guarded` made does anything from here on.
  void end() { has_ended_ = true; }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  std::atomic<bool> has_ended_ = false;
};

}  // namespace berth
