// One watch of one client: a queue between the publisher of events and a socket that may be slow.
#pragma once
#include <deque>
#include <memory>
#include <mutex>

#include "apiserver/context.h"
#include "apiserver/impl.h"

namespace berth::apiserver {

/// Lives until its client goes, its time is up, or it falls too far behind. Events are queued as shared objects and written as fast as the
/// socket takes them; the bytes of one event are made once for all watchers that are served at that moment.
class WatchStream final : public WatchSink, public std::enable_shared_from_this<WatchStream> {
 public:
  struct Options {
    bool bookmarks = false;
    bool initial_state = false;
    bool mark_initial_end = false;  ///< sendInitialEvents: a bookmark with the annotation ends the initial state.
    Duration timeout{};
  };
  WatchStream(ApiServer::Impl& server, RequestPtr request, Options options);

  /// Starts the answer and the cache's watch. `after`: events later than that revision; answers 410 when that is too old.
  void start(WatchFilter filter, Revision after);
  /// Starts the answer and ends it with this error as its one event.
  void refuse(const model::ApiStatus& status);
  [[nodiscard]] const model::KindInfo& kind() const { return *request_->kind; }
  bool deliver(const WatchEvent& event) override;
  /// Writes now or, soon after the last time, at the next common turn.
  void flush() override;
  /// The common turn.
  void flush_turn();
  /// Ends it with 410 when more than `most_bytes` wait for its client.
  void drop_if_behind(std::size_t most_bytes);
  /// Ends it in order, with a last bookmark when the client takes them.
  void finish();

 private:
  struct Pending {
    WatchEventType type;
    ObjectPtr object;
    Revision revision = 0;
    bool ends_initial_state = false;
    [[nodiscard]] std::size_t bytes() const { return object ? object->value->size() + 40 : 200; }
  };
  void pump();
  void close();
  /// Events of kinds that a webhook converts wait for it, one batch at a time, so that they keep their order.
  void convert_waiting();
  void take_converted(std::deque<Pending> batch, model::ApiResult<std::vector<ObjectPtr>> shown);
  void schedule_bookmark();
  Bytes frame(const Pending& event);
  Bytes frames(const std::deque<Pending>& batch, std::size_t size);
  void append_frame(std::string& out, const Pending& event);
  void append_object(std::string& out, const Pending& event);
  void append_bookmark(std::string& out, const Pending& event);
  void append_protobuf(std::string& out, const Pending& event);
  [[nodiscard]] bool is_partial() const;
  [[nodiscard]] bool is_shown_as_stored(const Pending& event) const;
  void write_expired();
  void write_error(const model::ApiStatus& status);

  ApiServer::Impl& server_;
  RequestPtr request_;
  Options options_;
  bool is_plain_ = false;  ///< The stored version, whole: every such watcher in the same format gets the same bytes.
  bool is_protobuf_ = false;
  bool is_v1_bookmark_ = true;

  const bool converts_;
  std::function<bool(const StoredObject&)> selects_converted_;  ///< Of converted objects: fields of the request's version. May be empty.

  std::mutex mutex_;
  std::deque<Pending> unconverted_;
  bool converting_ = false;
  std::optional<model::ApiStatus> failed_;  ///< The conversion: told once everything before it is.
  std::deque<Pending> queue_;
  std::size_t queue_bytes_ = 0;  ///< Of the objects it keeps alive.
  bool pumping_ = false, waits_for_drain_ = false, closed_ = false, overflowed_ = false, finishing_ = false;
  bool in_initial_state_ = false;
  bool starting_ = true;  ///< Initial state and history are still being handed over: nothing is written.
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();  ///< Of the queue; the backlog at the start does not count.
  std::size_t byte_limit_ = std::numeric_limits<std::size_t>::max();
  bool waits_for_turn_ = false;
  TimePoint last_flush_{};
  bool table_columns_sent_ = false;
  std::shared_ptr<Watch> watch_;
  TimerId bookmark_timer_{}, timeout_timer_{};
};

}  // namespace berth::apiserver
