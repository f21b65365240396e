// One watch of one client: a queue between the publisher of events and a socket that may be slow.
#pragma once
#include <deque>
#include <memory>

#include "apiserver/reads/reads.h"
#include "apiserver/representation/representation.h"
#include "base/lifeline.h"
#include "base/mutex.h"

namespace berth::apiserver {

/// Lives until its client goes, its time is up, or it falls too far behind. Events are queued as shared objects and written as fast as the
/// socket takes them; what every watcher of the same things gets is made once (representation/events.cpp).
///
/// Two states, each with one owner. The feed, what the cache brings:
///
///            finish(): shutdown, timeout, the kind went     the queue is written: a last bookmark, end of the answer
///    kOpen ──────────────────────────────────> kFinishing ──────────────────────────────────────────────> kClosed
///      │ the queue is full, or memory is scarce    │                                                          ^
///      └────────────────> kBehind <───────────────┘ ── nothing more is written but 410 Expired ──────────────┤
///                                                                   the client goes, at any time ─────────────┘
///
/// The writer, what the socket takes; one thread writes at a time:
///
///    kHeld ── what was there is queued ──> kIdle ── pump() ──> kWriting ── its queue is full ──> kBlocked
///                                            ^ <── all written ──┘                                  │
///                                            └───────────────────────── drained, pump() ────────────┘
///
/// Beside them, between flush() and the common turn, it waits for that turn (WatchFlush); nothing else writes then.
class WatchStream final : public WatchSink, public Guarded<WatchStream> {
 public:
  struct Options {
    bool bookmarks = false;
    bool initial_state = false;
    bool mark_initial_end = false;  ///< sendInitialEvents: a bookmark with the annotation ends the initial state.
    bool mark_current = false;      ///< Resumed: such a bookmark ends what happened before the request.
    Duration timeout{};
  };
  WatchStream(Reads& reads, RequestPtr request, Options options);

  /// Starts the answer and the cache's watch. `after`: events later than that revision; answers 410 when that is too old.
  void start(Selection selection, Revision after);
  /// Starts the answer and ends it with this error as its one event.
  void refuse(const model::ApiStatus& status);
  [[nodiscard]] const model::KindInfo& kind() const { return *request_->kind; }
  bool deliver(const WatchEvent& event) override;
  /// Writes now or, soon after the last time, at the next common turn.
  void flush() override;
  /// Its client is to list anew: it counts on every event.
  bool skip_history() override;
  /// The common turn.
  void flush_turn();
  /// Ends it with 410 when more than `most_bytes` wait for its client.
  void drop_if_behind(std::size_t most_bytes);
  /// Ends it in order, with a last bookmark when the client takes them.
  void finish();

 private:
  enum class Feed { kOpen, kFinishing, kBehind, kClosed };
  enum class Writer { kHeld, kIdle, kWriting, kBlocked };
  void pump();
  void close();
  /// Events of kinds that a webhook converts wait for it, one batch at a time, so that they keep their order.
  void convert_waiting();
  struct Unconverted {
    EventFrames::Event event;
    ObjectPtr previous;  ///< Where fields of the request's version select: what the object was. May be null.
  };
  void take_converted(std::deque<Unconverted> batch, model::ApiResult<std::vector<ObjectPtr>> shown);
  /// Makes of an event, whose objects are converted, the one that who selects by fields sees; false: none.
  bool select_converted(EventFrames::Event& event, const ObjectPtr& previous) const;
  void schedule_bookmark();
  /// Drops what is queued: its client is told to begin anew.
  void fall_behind() BERTH_REQUIRES(mutex_);
  /// Takes what is to be written next out of the queue; false when there is nothing.
  bool take(std::deque<EventFrames::Event>& batch, std::size_t& size) BERTH_REQUIRES(mutex_);
  /// False: the client is gone. By the writer alone.
  bool write(const std::deque<EventFrames::Event>& batch, std::size_t size);
  void write_error(const model::ApiStatus& status);

  Reads& reads_;
  RequestPtr request_;
  Options options_;
  EventFrames frames_;  ///< Of whoever writes.

  const bool converts_;
  std::function<bool(const StoredObject&)> selects_converted_;  ///< As Selection has it.

  Mutex mutex_;
  std::deque<Unconverted> unconverted_ BERTH_GUARDED_BY(mutex_);
  bool converting_ BERTH_GUARDED_BY(mutex_) = false;
  std::optional<model::ApiStatus> failed_ BERTH_GUARDED_BY(mutex_);  ///< The conversion: told once everything before it is.
  std::deque<EventFrames::Event> queue_ BERTH_GUARDED_BY(mutex_);
  std::size_t queue_bytes_ BERTH_GUARDED_BY(mutex_) = 0;  ///< Of the objects it keeps alive.
  Feed feed_ BERTH_GUARDED_BY(mutex_) = Feed::kOpen;
  Writer writer_ BERTH_GUARDED_BY(mutex_) = Writer::kHeld;
  bool in_initial_state_ BERTH_GUARDED_BY(mutex_) = false;
  std::size_t limit_ BERTH_GUARDED_BY(mutex_) =
      std::numeric_limits<std::size_t>::max();  ///< Of the queue; the backlog at the start does not count.
  std::size_t byte_limit_ BERTH_GUARDED_BY(mutex_) = std::numeric_limits<std::size_t>::max();
  bool waits_for_turn_ BERTH_GUARDED_BY(mutex_) = false;
  TimePoint last_flush_ BERTH_GUARDED_BY(mutex_){};
  std::shared_ptr<Watch> watch_ BERTH_GUARDED_BY(mutex_);
  TimerId bookmark_timer_ BERTH_GUARDED_BY(mutex_){}, timeout_timer_ BERTH_GUARDED_BY(mutex_){};
};

}  // namespace berth::apiserver
