// Watch frames. Those of the stored version are made once for all watchers: two caches, of single events and of batches.
#include <array>

#include "apiserver/representation/representation.h"
#include "apiserver/representation/tables.h"
#include "base/mutex.h"
#include "model/protobuf/protobuf.h"

namespace berth::apiserver {
namespace {

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

void append_text(std::string& out, WatchEventType type, const std::string& object) {
  out += R"({"type":")";
  out += type_name(type);
  out += R"(","object":)";
  out += object;
  out += "}\n";
}

void append_message(std::string& out, const model::KindInfo& kind, WatchEventType type, const std::string& object) {
  const auto body = model::encode_protobuf(*model::type_of(kind), kind.api_version(), kind.kind, object);
  if (body) model::append_watch_frame(out, type_name(type), *body);
}

/// The frames of the last thousand revisions, for all threads and watchers: the youngest of them that are a few megabytes together.
class SharedFrames {
 public:
  Bytes get(const model::KindInfo& kind, bool is_protobuf, WatchEventType type, const ObjectPtr& object) {
    Entry& entry = entries_[is_protobuf][static_cast<std::size_t>(object->revision) % kKept];
    Bytes bytes;
    std::size_t made = 0;
    {
      const MutexLock lock(entry.mutex);  // Whoever comes while it is made waits for it.
      bytes = frame(entry, kind, is_protobuf, type, object, made);
    }
    if (made > 0) remember(entry, object, made);
    return bytes;
  }
  void clear() {
    const MutexLock lock(mutex_);
    drop_beyond(0);
  }

 private:
  static constexpr std::size_t kKept = 1024, kMostBytes = std::size_t{16} << 20;
  struct Entry {
    Mutex mutex;
    WatchEventType type BERTH_GUARDED_BY(mutex){};
    ObjectPtr object BERTH_GUARDED_BY(mutex);
    Bytes bytes BERTH_GUARDED_BY(mutex);
  };

  /// `made`: what it holds from now on, if it was made.
  static Bytes frame(Entry& entry, const model::KindInfo& kind, bool is_protobuf, WatchEventType type, const ObjectPtr& object,
                     std::size_t& made) BERTH_REQUIRES(entry.mutex) {
    if (entry.object != object || entry.type != type) {
      std::string text;
      text.reserve(object->text_bytes() + 40);
      if (is_protobuf) {
        append_message(text, kind, type, object->text().here());
      } else {
        append_text(text, type, object->text().here());
      }
      entry.bytes = make_bytes(std::move(text));
      entry.object = object;
      entry.type = type;
      made = entry.bytes->size() + object->text_bytes();
    }
    return entry.bytes;
  }
  void remember(Entry& entry, const ObjectPtr& object, std::size_t bytes) {
    const MutexLock lock(mutex_);
    kept_.push_back({&entry, object.get(), bytes});
    bytes_ += bytes;
    drop_beyond(kMostBytes);
  }
  /// The oldest first, unless another object's has taken the place.
  void drop_beyond(std::size_t most) BERTH_REQUIRES(mutex_) {
    for (; bytes_ > most; kept_.pop_front()) {
      auto& [entry, object, bytes] = kept_.front();
      bytes_ -= bytes;
      const MutexLock lock(entry->mutex);
      if (entry->object.get() != object) continue;
      entry->object = nullptr;
      entry->bytes = nullptr;
    }
  }

  struct Kept {
    Entry* entry;
    const StoredObject* object;
    std::size_t bytes;
  };
  std::array<std::array<Entry, kKept>, 2> entries_;  ///< JSON, protobuf.
  Mutex mutex_;                                      ///< Of what follows; taken before an entry's.
  std::deque<Kept> kept_ BERTH_GUARDED_BY(mutex_);
  std::size_t bytes_ BERTH_GUARDED_BY(mutex_) = 0;
};

SharedFrames& shared_frames() {
  static SharedFrames frames;
  return frames;
}
Bytes shared_frame(const model::KindInfo& kind, bool is_protobuf, WatchEventType type, const ObjectPtr& object) {
  return shared_frames().get(kind, is_protobuf, type, object);
}

/// Batches: watchers of the same things are served one after the other with the same ones.
struct SharedBatch {
  bool is_protobuf = false;
  std::vector<std::pair<WatchEventType, ObjectPtr>> events;
  Bytes bytes;
  [[nodiscard]] bool is_of(bool protobuf, const std::deque<EventFrames::Event>& batch) const {
    return is_protobuf == protobuf &&
           std::equal(batch.begin(), batch.end(), events.begin(), events.end(),
                      [](const auto& event, const auto& known) { return event.type == known.first && event.object == known.second; });
  }
};

}  // namespace

EventFrames::EventFrames(const Clock& clock, const Request& request)
    : clock_(clock),
      request_(request),
      form_(clock, request),
      is_plain_(request.accept.form == ObjectForm::kFull && &storage_kind(*request.kind) == request.kind) {}

std::string_view EventFrames::content_type() const {
  return form_.is_protobuf() ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json";
}

bool EventFrames::is_shared(const Event& event) const {
  return is_plain_ && event.object != nullptr && is_shown_as_stored(request_, *event.object);
}

std::string_view EventFrames::as_stored(const Event& event) const {
  return !form_.is_protobuf() && is_shared(event) ? type_name(event.type) : std::string_view();
}

void EventFrames::forget_shared() { shared_frames().clear(); }

Bytes EventFrames::one(const Event& event) {
  if (is_shared(event)) return shared_frame(*request_.kind, form_.is_protobuf(), event.type, event.object);
  std::string text;
  append(text, event);
  return make_bytes(std::move(text));
}

Bytes EventFrames::all(const std::deque<Event>& batch, std::size_t size) {
  thread_local std::array<SharedBatch, 8> recent;  // As many as one watcher may be behind.
  thread_local std::size_t next = 0;
  const bool shares = std::ranges::all_of(batch, [&](const Event& event) { return is_shared(event); });
  if (shares) {
    const auto found = std::ranges::find_if(recent, [&](const SharedBatch& one) { return one.is_of(form_.is_protobuf(), batch); });
    if (found != recent.end()) return found->bytes;
  }
  std::string text;
  text.reserve(form_.is_protobuf() ? size * 2 / 3 : size + 64);
  for (const auto& event : batch) append(text, event);
  Bytes bytes = make_bytes(std::move(text));
  // Every thread that writes keeps its own: none keeps large ones.
  constexpr std::size_t kMostKept = 128 * 1024;
  if (shares && bytes->size() <= kMostKept) {
    SharedBatch& made = recent[next++ % recent.size()];
    made.events.clear();
    for (const auto& event : batch) made.events.emplace_back(event.type, event.object);
    made.bytes = bytes;
    made.is_protobuf = form_.is_protobuf();
  }
  return bytes;
}

Bytes EventFrames::error(const model::ApiStatus& status) const {
  const auto document = status.to_json();
  std::string text;
  if (form_.is_protobuf()) {
    if (const auto body = model::encode_protobuf(document)) model::append_watch_frame(text, "ERROR", *body);
  } else {
    append_text(text, WatchEventType::kError, json::serialize(document));
  }
  return make_bytes(std::move(text));
}

void EventFrames::append(std::string& out, const Event& event) {
  if (event.type == WatchEventType::kBookmark) return append_bookmark(out, event);
  if (form_.is_protobuf()) return append_protobuf(out, event);
  if (is_shared(event)) return append_text(out, event.type, event.object->text().here());
  append_json(out, event);
}

void EventFrames::append_json(std::string& out, const Event& event) {
  out += fmt::format(R"({{"type":"{}","object":)", type_name(event.type));
  const auto document = read_document(request_, *event.object);
  if (form_.is_table()) {
    json::Object metadata{{"resourceVersion", std::to_string(event.object->revision)}};
    json::serialize_to(out, make_table(*request_.kind, {&document, 1}, std::move(metadata), table_ask(request_),
                                       !std::exchange(has_sent_columns_, true), clock_.now()));
  } else {
    json::serialize_to(out, form_.is_partial() ? partial_metadata(document, request_.accept.meta_version) : document);
  }
  out += "}\n";
}

void EventFrames::append_protobuf(std::string& out, const Event& event) const {
  if (is_plain_) {
    out += *shared_frame(*request_.kind, true, event.type, event.object);
  } else if (form_.is_partial()) {
    const auto body = model::encode_protobuf(model::partial_metadata_type(), request_.accept.meta_version, "PartialObjectMetadata",
                                             event.object->text().here());
    if (body) model::append_watch_frame(out, type_name(event.type), *body);
  } else {
    append_message(out, *request_.kind, event.type, json::serialize(read_document(request_, *event.object)));
  }
}

void EventFrames::append_bookmark(std::string& out, const Event& event) const {
  if (form_.is_protobuf()) {
    json::Value metadata = json::Object{{"resourceVersion", std::to_string(event.revision)}};
    if (event.ends_initial_state) json::set(metadata, {"annotations", "k8s.io/initial-events-end"}, "true");
    const auto kind = form_.is_partial() ? std::string_view("PartialObjectMetadata") : request_.kind->kind;
    const auto api_version = form_.is_partial() ? std::string(request_.accept.meta_version) : request_.kind->api_version();
    // No kind keeps its resourceVersion elsewhere, so the metadata alone says all.
    const auto body = model::encode_protobuf(model::partial_metadata_type(), api_version, kind,
                                             json::serialize(json::Object{{"metadata", std::move(metadata)}}));
    if (body) model::append_watch_frame(out, "BOOKMARK", *body);
    return;
  }
  const bool is_whole = request_.accept.form == ObjectForm::kFull;
  const std::string_view kind = form_.is_table() ? "Table" : is_whole ? std::string_view(request_.kind->kind) : "PartialObjectMetadata";
  const std::string api_version = is_whole ? request_.kind->api_version() : std::string(request_.accept.meta_version);
  out += fmt::format(R"({{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}")", kind,
                     api_version, event.revision);
  if (event.ends_initial_state) out += R"(,"annotations":{"k8s.io/initial-events-end":"true"})";
  out += form_.is_table() ? R"(},"columnDefinitions":null,"rows":[]}})" : "}}}";
  out += '\n';
}

}  // namespace berth::apiserver
