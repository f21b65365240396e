#include "apiserver/reads/streams.h"

#include "apiserver/reads/watch_flush.h"
#include "apiserver/reads/watch_stream.h"
#include "base/mutex.h"

namespace berth::apiserver {

Streams::Streams(EventLoop& loop, Duration pause, metrics::Gauge& count)
    : flush_(std::make_shared<WatchFlush>(loop, pause)), count_(count) {}
Streams::~Streams() = default;

void Streams::add(std::shared_ptr<WatchStream> stream) {
  const MutexLock lock(mutex_);
  if (streams_.insert(std::move(stream)).second) count_.add(1);
}

void Streams::remove(const std::shared_ptr<WatchStream>& stream) {
  const MutexLock lock(mutex_);
  if (streams_.erase(stream) > 0) count_.add(-1);
}

std::set<std::shared_ptr<WatchStream>> Streams::open() const {
  const MutexLock lock(mutex_);
  return streams_;
}

// Streams take themselves out while they end: none is asked to under the mutex.
void Streams::end(std::string_view group, std::string_view plural) {
  for (const auto& stream : open())
    if (stream->kind().group == group && stream->kind().plural == plural) stream->finish();
}

void Streams::stop() {
  flush_->stop();
  for (const auto& stream : open()) stream->finish();
}

void Streams::drop_behind(std::size_t most_bytes) {
  for (const auto& stream : open()) stream->drop_if_behind(most_bytes);
}

}  // namespace berth::apiserver
