#include "apiserver/verbs/watch_stream.h"

#include <array>
#include <mutex>

#include "apiserver/schema_bridge.h"
#include "apiserver/verbs/watch_flush.h"
#include "model/protobuf.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kWatchQueueBytes = 1024 * 1024;  ///< In the socket's queue: write no more until it drains.
constexpr std::size_t kBatchBytes = 64 * 1024;

std::string_view type_name(WatchEventType type) {
  switch (type) {
    case WatchEventType::kAdded:
      return "ADDED";
    case WatchEventType::kModified:
      return "MODIFIED";
    case WatchEventType::kDeleted:
      return "DELETED";
    case WatchEventType::kBookmark:
      return "BOOKMARK";
    case WatchEventType::kError:
      return "ERROR";
  }
  return "";
}

void append_plain(std::string& out, WatchEventType type, const std::string& object) {
  out += R"({"type":")";
  out += type_name(type);
  out += R"(","object":)";
  out += object;
  out += "}\n";
}

std::string protobuf_frame(const model::KindInfo& kind, WatchEventType type, const std::string& object) {
  std::string out;
  const auto body = model::encode_protobuf(*model::type_of(kind), kind.api_version(), kind.kind, object);
  if (body) model::append_watch_frame(out, type_name(type), *body);
  return out;
}

/// The bytes of an event as every watcher of the stored form gets them. Watchers are served one after the other with the same few events,
/// so remembering the last one makes each event's bytes once.
Bytes json_frame(WatchEventType type, const ObjectPtr& object) {
  struct Last {
    WatchEventType type{};
    ObjectPtr object;
    Bytes bytes;
  };
  thread_local Last last;
  if (last.object != object || last.type != type) {
    std::string text;
    text.reserve(object->value->size() + 40);
    append_plain(text, type, *object->value);
    last = {type, object, make_bytes(std::move(text))};
  }
  return last.bytes;
}

/// The same in protobuf: dearer to make than a copy of the text, so the frames of the last thousand revisions are kept for all threads.
class ProtobufFrames {
 public:
  Bytes get(const model::KindInfo& kind, WatchEventType type, const ObjectPtr& object) {
    Entry& entry = entries_[static_cast<std::size_t>(object->revision) % entries_.size()];
    const std::lock_guard lock(entry.mutex);  // Whoever comes while it is made waits for it.
    if (entry.object != object || entry.type != type) {
      entry.bytes = make_bytes(protobuf_frame(kind, type, *object->value));
      entry.object = object;
      entry.type = type;
    }
    return entry.bytes;
  }

 private:
  struct Entry {
    std::mutex mutex;
    WatchEventType type{};
    ObjectPtr object;
    Bytes bytes;
  };
  std::array<Entry, 1024> entries_;
};

Bytes plain_frame(const model::KindInfo& kind, bool is_protobuf, WatchEventType type, const ObjectPtr& object) {
  static ProtobufFrames frames;
  return is_protobuf ? frames.get(kind, type, object) : json_frame(type, object);
}

}  // namespace

WatchStream::WatchStream(ApiServer::Impl& server, RequestPtr request, Options options)
    : server_(server),
      request_(std::move(request)),
      options_(options),
      converts_(ApiServer::Impl::asks_converter(*request_)),
      in_initial_state_(options.initial_state) {
  is_plain_ = request_->accept.form == ObjectForm::kFull && &storage_kind(*request_->kind) == request_->kind;
  is_protobuf_ = request_->accept.format == Format::kProtobuf;
}

void WatchStream::start(WatchFilter filter, Revision after) {
  auto& writer = *request_->writer;
  const auto seats = std::move(request_->seats);  // Until what was there has been said.
  {
    const std::lock_guard lock(server_.streams_mutex);
    server_.streams.insert(shared_from_this());
  }
  server_.watchers->add(1);
  writer.on_close([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->close();
  });
  server_.account(*request_, 200);
  auto headers = server_.headers_for(*request_, is_protobuf_ ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json");
  writer.start_stream(200, std::move(headers));
  if (converts_) selects_converted_ = std::exchange(filter.also, nullptr);
  auto watch = server_.cache->watch(std::move(filter), after, options_.initial_state, shared_from_this());
  if (watch == nullptr) {
    write_error(model::expired(fmt::format("too old resource version: {} ({})", after, server_.cache->revision())));
    return close();
  }
  {
    const std::lock_guard lock(mutex_);
    starting_ = false;
    // What was there at the start is as long as it is: only falling behind afterwards is the client's fault.
    limit_ = queue_.size() + unconverted_.size() + server_.options.watch_queue_events;
    byte_limit_ = queue_bytes_ + server_.options.watch_queue_bytes;
    // The client may have gone while the initial state was delivered: then the watch ends here, with this function.
    if (!closed_) {
      watch_ = std::move(watch);
      if (options_.timeout > Duration::zero())
        timeout_timer_ = server_.loop.schedule_after(options_.timeout, [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->finish();
        });
    }
  }
  pump();
  if (options_.bookmarks) schedule_bookmark();
}

bool WatchStream::deliver(const WatchEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || overflowed_) return false;
    Pending pending{event.type, event.object, event.revision, false};
    if (event.type == WatchEventType::kBookmark) {
      if (in_initial_state_) {
        in_initial_state_ = false;
        if (!options_.mark_initial_end) return true;
        pending.ends_initial_state = true;
      } else if (!options_.bookmarks) {
        return true;
      }
    }
    if (queue_.size() + unconverted_.size() >= limit_ || queue_bytes_ >= byte_limit_) {
      overflowed_ = true;
      queue_.clear();
      unconverted_.clear();
      queue_bytes_ = 0;
    } else if (converts_) {
      unconverted_.push_back(std::move(pending));
    } else {
      queue_bytes_ += pending.bytes();
      queue_.push_back(std::move(pending));
    }
  }
  if (converts_)
    server_.defer([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->convert_waiting();
    });
  return true;
}

void WatchStream::convert_waiting() {
  std::deque<Pending> batch;
  {
    const std::lock_guard lock(mutex_);
    if (converting_ || unconverted_.empty() || closed_ || failed_) return;
    converting_ = true;
    batch.swap(unconverted_);
  }
  std::vector<ObjectPtr> objects;
  for (const auto& event : batch) objects.push_back(event.object);
  server_.convert_ahead(request_, std::move(objects),
                        [self = shared_from_this(), batch = std::move(batch)](model::ApiResult<std::vector<ObjectPtr>> shown) mutable {
                          self->take_converted(std::move(batch), std::move(shown));
                        });
}

void WatchStream::take_converted(std::deque<Pending> batch, model::ApiResult<std::vector<ObjectPtr>> shown) {
  {
    const std::lock_guard lock(mutex_);
    converting_ = false;
    if (!shown) {
      failed_ = std::move(shown.error());
    } else {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        batch[i].object = std::move((*shown)[i]);
        if (selects_converted_ && batch[i].object != nullptr && !selects_converted_(*batch[i].object)) continue;
        queue_bytes_ += batch[i].bytes();
        queue_.push_back(std::move(batch[i]));
      }
    }
  }
  pump();
  convert_waiting();
}

void WatchStream::drop_if_behind(std::size_t most_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || overflowed_ || starting_ || queue_bytes_ <= most_bytes) return;
    overflowed_ = true;
    queue_.clear();
    queue_bytes_ = 0;
  }
  pump();
}

void WatchStream::flush() {
  WatchFlush& flush = *server_.watch_flush;
  if (flush.pause() <= Duration::zero()) return pump();
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    if (waits_for_turn_ || closed_) return;
    const TimePoint now = flush.now();
    waits = waits_for_turn_ = now - last_flush_ < flush.pause() && now >= last_flush_;
    if (!waits) last_flush_ = now;
  }
  waits ? flush.add(shared_from_this()) : pump();
}

void WatchStream::flush_turn() {
  {
    const std::lock_guard lock(mutex_);
    waits_for_turn_ = false;
    last_flush_ = server_.watch_flush->now();
  }
  pump();
}

void WatchStream::pump() {
  std::unique_lock lock(mutex_);
  if (pumping_ || waits_for_drain_ || closed_ || starting_) return;
  pumping_ = true;
  auto& writer = *request_->writer;
  bool gone = false;
  while (!gone && !queue_.empty() && !overflowed_) {
    Bytes bytes;
    if (queue_.size() == 1) {
      const Pending event = std::move(queue_.front());
      queue_.pop_front();
      queue_bytes_ = 0;
      lock.unlock();
      bytes = frame(event);
    } else {
      std::deque<Pending> batch;
      std::size_t size = 0;
      while (!queue_.empty() && size < kBatchBytes) {
        size += queue_.front().bytes();
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      queue_bytes_ -= size;
      lock.unlock();
      bytes = frames(batch, size);
    }
    gone = !bytes->empty() && !writer.write(std::move(bytes));
    const bool full = !gone && writer.queued_bytes() > kWatchQueueBytes;
    lock.lock();
    if (full) {
      waits_for_drain_ = true;
      pumping_ = false;
      lock.unlock();
      writer.on_drain([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        {
          const std::lock_guard inner(self->mutex_);
          self->waits_for_drain_ = false;
        }
        self->pump();
      });
      return;
    }
  }
  const bool overflowed = overflowed_;
  const bool ends = finishing_ && queue_.empty() && unconverted_.empty() && !converting_;
  const auto failed = queue_.empty() ? failed_ : std::nullopt;
  pumping_ = false;
  lock.unlock();
  if (gone) return close();
  if (overflowed) {
    write_expired();
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
    const std::lock_guard lock(mutex_);
    if (closed_ || finishing_) return;
    if (options_.bookmarks) watch = watch_;
  }
  // A bookmark at the very end lets the client resume from here and not from its last event.
  if (watch != nullptr) watch->request_bookmark();
  bool stuck = false;
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
    stuck = waits_for_drain_;
  }
  if (!stuck) return pump();
  // A reader that takes nothing gets no orderly end.
  request_->writer->finish();
  close();
}

void WatchStream::close() {
  std::shared_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    queue_.clear();
    unconverted_.clear();
    queue_bytes_ = 0;
    watch = std::move(watch_);
    server_.loop.cancel(bookmark_timer_);
    server_.loop.cancel(timeout_timer_);
  }
  server_.watchers->add(-1);
  const auto self = shared_from_this();
  watch.reset();
  const std::lock_guard lock(server_.streams_mutex);
  server_.streams.erase(self);
}

void WatchStream::schedule_bookmark() {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  bookmark_timer_ = server_.loop.schedule_after(server_.options.bookmark_interval, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    std::shared_ptr<Watch> watch;
    {
      const std::lock_guard inner(self->mutex_);
      if (self->closed_) return;
      // A client that still has events to come needs no bookmark.
      if (self->queue_.empty()) watch = self->watch_;
    }
    if (watch != nullptr) watch->request_bookmark();
    self->schedule_bookmark();
  });
}

Bytes WatchStream::frames(const std::deque<Pending>& batch, std::size_t size) {
  // Watchers of the same things are served one after the other with the same batches: the bytes are made once for all of them.
  struct Made {
    bool is_protobuf = false;
    std::vector<std::pair<WatchEventType, ObjectPtr>> events;
    Bytes bytes;
  };
  thread_local std::array<Made, 8> recent;  // As many as one watcher may be behind.
  thread_local std::size_t next = 0;
  const bool is_shared = is_plain_ && std::all_of(batch.begin(), batch.end(), [&](const Pending& event) {
                           return event.object != nullptr && is_shown_as_stored(event);
                         });
  const auto is_same = [&](const Made& made) {
    return made.is_protobuf == is_protobuf_ &&
           std::equal(batch.begin(), batch.end(), made.events.begin(), made.events.end(),
                      [](const Pending& event, const auto& known) { return event.type == known.first && event.object == known.second; });
  };
  if (is_shared) {
    const auto found = std::ranges::find_if(recent, is_same);
    if (found != recent.end()) return found->bytes;
  }
  std::string text;
  text.reserve(is_protobuf_ ? size * 2 / 3 : size + 64);
  for (const auto& event : batch) append_frame(text, event);
  Bytes bytes = make_bytes(std::move(text));
  if (is_shared) {
    Made& made = recent[next++ % recent.size()];
    made.events.clear();
    for (const auto& event : batch) made.events.emplace_back(event.type, event.object);
    made.bytes = bytes;
    made.is_protobuf = is_protobuf_;
  }
  return bytes;
}

Bytes WatchStream::frame(const Pending& event) {
  if (is_plain_ && event.type != WatchEventType::kBookmark && is_shown_as_stored(event))
    return plain_frame(*request_->kind, is_protobuf_, event.type, event.object);
  std::string text;
  append_frame(text, event);
  return make_bytes(std::move(text));
}

void WatchStream::append_frame(std::string& out, const Pending& event) {
  if (event.type == WatchEventType::kBookmark) return append_bookmark(out, event);
  if (is_protobuf_) return append_protobuf(out, event);
  if (is_plain_ && is_shown_as_stored(event)) return append_plain(out, event.type, *event.object->value);
  out += fmt::format(R"({{"type":"{}","object":)", type_name(event.type));
  append_object(out, event);
  out += "}\n";
}

void WatchStream::append_object(std::string& out, const Pending& event) {
  const auto document = server_.read_document(*request_, *event.object);
  if (request_->accept.form == ObjectForm::kTable) {
    json::Object metadata{{"resourceVersion", std::to_string(event.object->revision)}};
    json::serialize_to(out, make_table(*request_->kind, {&document, 1}, std::move(metadata), request_->query.get("includeObject"),
                                       !std::exchange(table_columns_sent_, true), server_.loop.now()));
  } else if (is_partial()) {
    json::Object partial{{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}};
    if (const auto* metadata = json::find(document, "metadata")) partial["metadata"] = *metadata;
    json::serialize_to(out, partial);
  } else {
    json::serialize_to(out, document);
  }
}

bool WatchStream::is_shown_as_stored(const Pending& event) const {
  return request_->custom == nullptr || ApiServer::Impl::is_shown_as_stored(*request_, *event.object);
}

bool WatchStream::is_partial() const {
  return request_->accept.form == ObjectForm::kPartialMetadata || request_->accept.form == ObjectForm::kPartialMetadataList;
}

void WatchStream::append_protobuf(std::string& out, const Pending& event) {
  if (is_plain_) {
    out += *plain_frame(*request_->kind, true, event.type, event.object);
  } else if (is_partial()) {
    const auto body =
        model::encode_protobuf(model::partial_metadata_type(), "meta.k8s.io/v1", "PartialObjectMetadata", *event.object->value);
    if (body) model::append_watch_frame(out, type_name(event.type), *body);
  } else {
    out += protobuf_frame(*request_->kind, event.type, json::serialize(server_.read_document(*request_, *event.object)));
  }
}

void WatchStream::append_bookmark(std::string& out, const Pending& event) {
  if (is_protobuf_) {
    json::Value metadata = json::Object{{"resourceVersion", std::to_string(event.revision)}};
    if (event.ends_initial_state) json::set(metadata, {"annotations", "k8s.io/initial-events-end"}, "true");
    const auto kind = is_partial() ? std::string_view("PartialObjectMetadata") : request_->kind->kind;
    const auto api_version = is_partial() ? std::string("meta.k8s.io/v1") : request_->kind->api_version();
    // No kind keeps its resourceVersion elsewhere, so the metadata alone says all.
    const auto body = model::encode_protobuf(model::partial_metadata_type(), api_version, kind,
                                             json::serialize(json::Object{{"metadata", std::move(metadata)}}));
    if (body) model::append_watch_frame(out, "BOOKMARK", *body);
    return;
  }
  std::string_view kind = request_->kind->kind;
  std::string api_version = request_->kind->api_version();
  if (request_->accept.form == ObjectForm::kTable) {
    kind = "Table";
    api_version = "meta.k8s.io/v1";
  } else if (request_->accept.form != ObjectForm::kFull) {
    kind = "PartialObjectMetadata";
    api_version = "meta.k8s.io/v1";
  }
  out += fmt::format(R"({{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}")", kind,
                     api_version, event.revision);
  if (event.ends_initial_state) out += R"(,"annotations":{"k8s.io/initial-events-end":"true"})";
  out += kind == "Table" ? R"(},"columnDefinitions":null,"rows":[]}})" : "}}}";
  out += '\n';
}

void WatchStream::refuse(const model::ApiStatus& status) {
  server_.account(*request_, 200);
  request_->writer->start_stream(
      200, server_.headers_for(*request_, is_protobuf_ ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json"));
  write_error(status);
}

void WatchStream::write_expired() {
  write_error(model::expired(fmt::format("too old resource version (the watch is behind revision {})", server_.cache->revision())));
}

void WatchStream::write_error(const model::ApiStatus& error) {
  const auto status = error.to_json();
  std::string text;
  if (is_protobuf_) {
    if (const auto body = model::encode_protobuf(status)) model::append_watch_frame(text, "ERROR", *body);
  } else {
    append_plain(text, WatchEventType::kError, json::serialize(status));
  }
  request_->writer->write(make_bytes(std::move(text)));
  request_->writer->finish();
}

}  // namespace berth::apiserver
