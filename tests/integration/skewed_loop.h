// A component's own clock: the virtual loop's time, so much ahead or behind. (A process of ours reads the machine's clock once and then
// counts by the monotonic one: a clock that is set is seen by who starts afterwards.)
#pragma once
#include "base/event_loop.h"

namespace berth::integration {

class SkewedLoop final : public EventLoop {
 public:
  explicit SkewedLoop(EventLoop& inner) : inner_(inner) {}
  /// Only while nobody's timers are set.
  void set_ahead(Duration ahead) { ahead_ = ahead; }
  [[nodiscard]] TimePoint now() const override { return inner_.now() + ahead_; }
  void post(Task task) override { inner_.post(std::move(task)); }
  TimerId schedule_at(TimePoint when, Task task) override { return inner_.schedule_at(when - ahead_, std::move(task)); }
  void cancel(TimerId id) override { inner_.cancel(id); }
  [[nodiscard]] bool is_here() const override { return inner_.is_here(); }

 private:
  EventLoop& inner_;
  Duration ahead_{0};
};

}  // namespace berth::integration
