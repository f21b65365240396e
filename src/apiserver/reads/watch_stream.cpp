#include "apiserver/reads/watch_stream.h"

#include "apiserver/reads/packed_labels.h"
#include "apiserver/reads/watch_flush.h"
#include "base/mutex.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kWatchQueueBytes = 1024 * 1024;  ///< In the socket's queue: write no more until it drains.
constexpr std::size_t kBatchBytes = 64 * 1024;

/// A watch may be there for hours: of what was asked only what its frames look at stays.
void forget_question(Request& request) {
  const std::string includes(request.query.get("includeObject"));
  request.http.query = includes.empty() ? std::string() : "includeObject=" + includes;
  request.http.query.shrink_to_fit();
  request.query = Query(request.http.query);
  request.http.headers = {};
  request.http.body = {};
}

}  // namespace

WatchStream::WatchStream(Reads& reads, RequestPtr request, Options options)
    : reads_(reads),
      request_(std::move(request)),
      options_(options),
      frames_(reads.ground.loop, *request_),
      converts_(asks_converter(*request_)),
      in_initial_state_(options.initial_state || options.mark_current) {}

void WatchStream::start(Selection selection, Revision after) {
  auto& writer = *request_->writer;
  const auto seats = std::move(request_->seats);  // Until what was there has been said.
  reads_.streams.add(shared_from_this());
  writer.on_close(guarded(&WatchStream::close));
  reads_.respond.account(*request_, 200);
  writer.start_stream(200, reads_.respond.headers_for(*request_, frames_.content_type()));
  selects_converted_ = std::move(selection.of_converted);
  pack_labels(selection.filter);
  forget_question(*request_);
  auto watch = reads_.ground.cache->watch(std::move(selection.filter), after, options_.initial_state, shared_from_this());
  if (watch == nullptr) {
    write_error(model::expired(fmt::format("too old resource version: {} ({})", after, reads_.ground.cache->revision())));
    return close();
  }
  if (options_.mark_current) watch->request_bookmark();
  {
    const MutexLock lock(mutex_);
    writer_ = Writer::kIdle;
    // What was there at the start is as long as it is: only falling behind afterwards is the client's fault.
    limit_ = queue_.size() + unconverted_.size() + reads_.options.watch_queue_events;
    byte_limit_ = queue_bytes_ + reads_.options.watch_queue_bytes;
    // The client may have gone while the initial state was delivered: then the watch ends here, with this function.
    if (feed_ != Feed::kClosed) {
      watch_ = std::move(watch);
      if (options_.timeout > Duration::zero())
        timeout_timer_ = reads_.ground.loop.schedule_after(options_.timeout, guarded(&WatchStream::finish));
    }
  }
  pump();
  if (options_.bookmarks) schedule_bookmark();
}

bool WatchStream::deliver(const WatchEvent& event) {
  {
    const MutexLock lock(mutex_);
    if (feed_ == Feed::kClosed || feed_ == Feed::kBehind) return false;
    EventFrames::Event pending{event.type, event.object, event.revision, false};
    if (event.type == WatchEventType::kBookmark) {
      if (in_initial_state_) {
        in_initial_state_ = false;
        if (!options_.mark_initial_end && !options_.mark_current) return true;
        pending.ends_initial_state = true;
      } else if (!options_.bookmarks) {
        return true;
      }
    }
    if (queue_.size() + unconverted_.size() >= limit_ || queue_bytes_ >= byte_limit_) {
      fall_behind();
    } else if (converts_) {
      unconverted_.push_back({std::move(pending), selects_converted_ ? event.previous : nullptr});
    } else {
      queue_bytes_ += pending.bytes();
      queue_.push_back(std::move(pending));
    }
  }
  if (converts_) reads_.ground.defer(guarded(&WatchStream::convert_waiting));
  return true;
}

void WatchStream::convert_waiting() {
  std::deque<Unconverted> batch;
  {
    const MutexLock lock(mutex_);
    if (converting_ || unconverted_.empty() || feed_ == Feed::kClosed || failed_) return;
    converting_ = true;
    batch.swap(unconverted_);
  }
  std::vector<ObjectPtr> objects;
  for (const auto& one : batch) objects.push_back(one.event.object);
  for (const auto& one : batch) objects.push_back(one.previous);
  reads_.versions.convert_ahead(
      request_, std::move(objects),
      [self = shared_from_this(), batch = std::move(batch)](model::ApiResult<std::vector<ObjectPtr>> shown) mutable {
        self->take_converted(std::move(batch), std::move(shown));
      });
}

bool WatchStream::select_converted(EventFrames::Event& event, const ObjectPtr& previous) const {
  if (!selects_converted_ || event.object == nullptr || event.type == WatchEventType::kBookmark) return true;
  const bool matched = event.type != WatchEventType::kAdded && previous != nullptr && selects_converted_(*previous);
  const bool matches_now = event.type != WatchEventType::kDeleted && selects_converted_(*event.object);
  if (event.type == WatchEventType::kDeleted || (!matched && !matches_now)) return matched;
  if (matches_now) {
    event.type = matched ? WatchEventType::kModified : WatchEventType::kAdded;
  } else {
    event.type = WatchEventType::kDeleted;
    event.object = std::make_shared<const StoredObject>(*previous, event.revision);
  }
  return true;
}

void WatchStream::take_converted(std::deque<Unconverted> batch, model::ApiResult<std::vector<ObjectPtr>> shown) {
  {
    const MutexLock lock(mutex_);
    converting_ = false;
    if (!shown) {
      failed_ = std::move(shown.error());
    } else {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        auto& event = batch[i].event;
        event.object = std::move((*shown)[i]);
        if (!select_converted(event, (*shown)[batch.size() + i])) continue;
        queue_bytes_ += event.bytes();
        queue_.push_back(std::move(event));
      }
    }
  }
  pump();
  convert_waiting();
}

void WatchStream::fall_behind() {
  feed_ = Feed::kBehind;
  queue_.clear();
  unconverted_.clear();
  queue_bytes_ = 0;
}

void WatchStream::drop_if_behind(std::size_t most_bytes) {
  {
    const MutexLock lock(mutex_);
    if (feed_ == Feed::kClosed || feed_ == Feed::kBehind || writer_ == Writer::kHeld || queue_bytes_ <= most_bytes) return;
    fall_behind();
  }
  pump();
}

bool WatchStream::skip_history() {
  bool is_held = false;
  {
    const MutexLock lock(mutex_);
    if (feed_ == Feed::kClosed) return false;
    fall_behind();
    is_held = writer_ == Writer::kHeld;  // Whoever starts it writes what there is to say.
  }
  if (!is_held) pump();
  return false;
}

void WatchStream::flush() {
  WatchFlush& flush = reads_.streams.flush();
  if (flush.pause() <= Duration::zero()) return pump();
  bool waits = false;
  {
    const MutexLock lock(mutex_);
    if (waits_for_turn_ || feed_ == Feed::kClosed) return;
    const TimePoint now = flush.now();
    waits = waits_for_turn_ = now - last_flush_ < flush.pause() && now >= last_flush_;
    if (!waits) last_flush_ = now;
  }
  waits ? flush.add(shared_from_this()) : pump();
}

void WatchStream::flush_turn() {
  {
    const MutexLock lock(mutex_);
    waits_for_turn_ = false;
    last_flush_ = reads_.streams.flush().now();
  }
  pump();
}

bool WatchStream::take(std::deque<EventFrames::Event>& batch, std::size_t& size) {
  batch.clear();
  size = 0;
  if (feed_ == Feed::kBehind) return false;
  while (!queue_.empty() && size < kBatchBytes) {
    size += queue_.front().bytes();
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  queue_bytes_ -= size;
  return !batch.empty();
}

bool WatchStream::write(const std::deque<EventFrames::Event>& batch, std::size_t size) {
  net::ResponseWriter& writer = *request_->writer;
  const auto write_text = [&](Bytes text) { return text->empty() || writer.write(std::move(text)); };
  if (writer.takes_events())
    return std::ranges::all_of(batch, [&](const EventFrames::Event& event) {
      const std::string_view type = frames_.as_stored(event);
      return type.empty() ? write_text(frames_.one(event)) : writer.write_event(type, event.object->kept);
    });
  return write_text(batch.size() == 1 ? frames_.one(batch.front()) : frames_.all(batch, size));
}

void WatchStream::pump() {
  MutexLock lock(mutex_);
  if (writer_ != Writer::kIdle || feed_ == Feed::kClosed) return;
  writer_ = Writer::kWriting;
  auto& writer = *request_->writer;
  std::deque<EventFrames::Event> batch;
  std::size_t size = 0;
  bool gone = false;
  while (!gone && take(batch, size)) {
    lock.unlock();
    gone = !write(batch, size);
    const bool full = !gone && writer.queued_bytes() > kWatchQueueBytes;
    lock.lock();
    if (!full) continue;
    writer_ = Writer::kBlocked;
    lock.unlock();
    return writer.on_drain(guarded([](WatchStream& self) {
      {
        const MutexLock inner(self.mutex_);
        self.writer_ = Writer::kIdle;
      }
      self.pump();
    }));
  }
  const bool is_behind = feed_ == Feed::kBehind;
  const bool ends = feed_ == Feed::kFinishing && queue_.empty() && unconverted_.empty() && !converting_;
  const auto failed = queue_.empty() ? failed_ : std::nullopt;
  writer_ = Writer::kIdle;
  lock.unlock();
  if (gone) return close();
  if (is_behind) {
    write_error(model::expired(fmt::format("too old resource version (the watch is behind revision {})", reads_.ground.cache->revision())));
    return close();
  }
  if (failed) {
    write_error(*failed);
    return close();
  }
  if (ends) {
    writer.finish();
    close();
  }
}

void WatchStream::finish() {
  std::shared_ptr<Watch> watch;
  {
    const MutexLock lock(mutex_);
    if (feed_ == Feed::kClosed || feed_ == Feed::kFinishing) return;
    if (options_.bookmarks) watch = watch_;
  }
  // A bookmark at the very end lets the client resume from here and not from its last event.
  if (watch != nullptr) watch->request_bookmark();
  bool stuck = false;
  {
    const MutexLock lock(mutex_);
    if (feed_ == Feed::kOpen) feed_ = Feed::kFinishing;
    stuck = writer_ == Writer::kBlocked;
  }
  if (!stuck) return pump();
  // A reader that takes nothing gets no orderly end.
  request_->writer->finish();
  close();
}

void WatchStream::close() {
  std::shared_ptr<Watch> watch;
  {
    const MutexLock lock(mutex_);
    if (feed_ == Feed::kClosed) return;
    feed_ = Feed::kClosed;
    queue_.clear();
    unconverted_.clear();
    queue_bytes_ = 0;
    watch = std::move(watch_);
    reads_.ground.loop.cancel(bookmark_timer_);
    reads_.ground.loop.cancel(timeout_timer_);
  }
  const auto self = shared_from_this();
  watch.reset();
  reads_.streams.remove(self);
}

void WatchStream::schedule_bookmark() {
  const MutexLock lock(mutex_);
  if (feed_ == Feed::kClosed) return;
  auto remind = guarded([](WatchStream& self) {
    std::shared_ptr<Watch> watch;
    {
      const MutexLock inner(self.mutex_);
      if (self.feed_ == Feed::kClosed) return;
      // A client that still has events to come needs no bookmark.
      if (self.queue_.empty()) watch = self.watch_;
    }
    if (watch != nullptr) watch->request_bookmark();
    self.schedule_bookmark();
  });
  bookmark_timer_ = reads_.ground.loop.schedule_after(reads_.options.bookmark_interval, std::move(remind));
}

void WatchStream::refuse(const model::ApiStatus& status) {
  reads_.respond.account(*request_, 200);
  request_->writer->start_stream(200, reads_.respond.headers_for(*request_, frames_.content_type()));
  write_error(status);
}

void WatchStream::write_error(const model::ApiStatus& error) {
  request_->writer->write(frames_.error(error));
  request_->writer->finish();
}

}  // namespace berth::apiserver
