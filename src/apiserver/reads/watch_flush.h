// When watches write: at once after a quiet moment, otherwise together, a few hundred times a second. Under load each watcher then gets few
// large pieces instead of many small ones, the same pieces as its neighbours, and the thread that publishes events does not write at all.
#pragma once
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "base/lifeline.h"
#include "base/mutex.h"

namespace berth::apiserver {

class WatchStream;

/// Thread-safe. Turns run on the loop; the more streams the last one had, the longer the next waits, up to three pauses.
/// Without a pause every request is answered with "now".
class WatchFlush : public Guarded<WatchFlush> {
 public:
  WatchFlush(EventLoop& loop, Duration pause) : loop_(loop), pause_(pause) {}
  [[nodiscard]] Duration pause() const { return pause_; }
  [[nodiscard]] TimePoint now() const { return loop_.now(); }
  /// The stream writes at the next turn.
  void add(std::shared_ptr<WatchStream> stream);
  /// No turn runs when it has returned, nor later.
  void stop();

 private:
  void turn();
  EventLoop& loop_;
  const Duration pause_;
  Mutex mutex_ BERTH_ACQUIRED_AFTER(turn_mutex_);
  Mutex turn_mutex_;  ///< Held during a turn.
  std::vector<std::shared_ptr<WatchStream>> waiting_ BERTH_GUARDED_BY(mutex_);
  std::size_t last_turn_streams_ BERTH_GUARDED_BY(mutex_) = 0;
  bool is_scheduled_ BERTH_GUARDED_BY(mutex_) = false, is_stopped_ BERTH_GUARDED_BY(mutex_) = false;
};

}  // namespace berth::apiserver
