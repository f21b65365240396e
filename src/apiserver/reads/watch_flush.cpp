#include "apiserver/reads/watch_flush.h"

#include "apiserver/reads/watch_stream.h"
#include "base/mutex.h"

namespace berth::apiserver {

void WatchFlush::add(std::shared_ptr<WatchStream> stream) {
  Duration wait{};
  {
    const MutexLock lock(mutex_);
    if (is_stopped_) return;
    wait = pause_ * static_cast<int>(std::clamp<std::size_t>(last_turn_streams_ / 5, 1, 3));
    waiting_.push_back(std::move(stream));
    if (std::exchange(is_scheduled_, true)) return;
  }
  loop_.schedule_after(wait, guarded(&WatchFlush::turn));
}

void WatchFlush::turn() {
  loop_.assert_on_loop();
  const MutexLock turn(turn_mutex_);
  std::vector<std::shared_ptr<WatchStream>> due;
  {
    const MutexLock lock(mutex_);
    due.swap(waiting_);
    is_scheduled_ = false;
    last_turn_streams_ = due.size();
  }
  // One after the other on one thread: streams with the same events share the bytes.
  for (const auto& stream : due) stream->flush_turn();
}

void WatchFlush::stop() {
  const MutexLock turn(turn_mutex_);
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  waiting_.clear();
}

}  // namespace berth::apiserver
