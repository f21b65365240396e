// The open watches of a server.
#pragma once
#include <memory>
#include <set>
#include <string_view>

#include "base/event_loop.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace berth::apiserver {

class WatchStream;
class WatchFlush;

/// Thread-safe. A stream is added when it starts and takes itself out when it ends.
class Streams {
 public:
  /// `pause`: see WatchFlush. `count`: of those that are open.
  Streams(EventLoop& loop, Duration pause, metrics::Gauge& count);
  ~Streams();
  [[nodiscard]] WatchFlush& flush() const { return *flush_; }
  void add(std::shared_ptr<WatchStream> stream);
  void remove(const std::shared_ptr<WatchStream>& stream);
  /// Watches of a kind end in order, as its server does.
  void end(std::string_view group, std::string_view plural);
  /// All of them, for good: no turn of the flush runs any more.
  void stop();
  /// Those that more than so much waits for are told to begin anew: memory is scarce.
  void drop_behind(std::size_t most_bytes);

 private:
  [[nodiscard]] std::set<std::shared_ptr<WatchStream>> open() const;
  std::shared_ptr<WatchFlush> flush_;
  metrics::Gauge& count_;
  mutable Mutex mutex_;
  std::set<std::shared_ptr<WatchStream>> streams_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::apiserver
