// How a client gets to see objects: which form (object, Table, PartialObjectMetadata) in which format (JSON, YAML, protobuf), printed for a
// machine or a person. What was negotiated (negotiate.h) is looked at here and nowhere else.
//
//                single.cpp          items.cpp                    events.cpp
//   stored  ─┬─> one body            one item after the other     one frame after the other
//   bytes    └─> shared, where the stored bytes are what is shown: no document is built for them
#pragma once
#include <deque>

#include "apiserver/representation/versions.h"

namespace berth::apiserver {

/// What an answer says, and its Content-Type.
struct Body {
  std::string text;
  std::string_view content_type;
};

/// Of one request. A view: valid as long as the request.
class Representation {
 public:
  Representation(const Clock& clock, const Request& request) : clock_(clock), request_(request) {}

  [[nodiscard]] bool is_table() const { return request_.accept.form == ObjectForm::kTable; }
  /// Of the metadata alone.
  [[nodiscard]] bool is_partial() const {
    return request_.accept.form == ObjectForm::kPartialMetadata || request_.accept.form == ObjectForm::kPartialMetadataList;
  }
  [[nodiscard]] bool is_protobuf() const { return request_.accept.format == Format::kProtobuf; }
  /// JSON is indented: asked for, or read by people.
  [[nodiscard]] bool is_pretty() const;
  /// The whole object as JSON, for a program.
  [[nodiscard]] bool is_plain_json() const {
    return request_.accept.form == ObjectForm::kFull && request_.accept.format == Format::kJson && !is_pretty();
  }
  /// The stored bytes are the body.
  [[nodiscard]] bool is_stored_text(const StoredObject& object) const;
  /// A stored object in the form and format asked for.
  [[nodiscard]] Body of(const StoredObject& object) const;
  /// A document of the request's version, likewise.
  [[nodiscard]] Body of(const json::Value& document) const;
  /// A document that is what it is (a Status, a Scale, a review), in the format asked for. What has no protobuf form is JSON.
  [[nodiscard]] Body as_is(const json::Value& document) const;
  /// The same in a format that is not the request's.
  [[nodiscard]] Body as_is(const json::Value& document, Format format) const;

 private:
  const Clock& clock_;
  const Request& request_;
};

std::string_view content_type_of(Format format);
/// PartialObjectMetadata of a document, in a version of meta.k8s.io.
json::Value partial_metadata(const json::Value& document, std::string_view meta_version);

/// A list, taken apart so that it can be written in pieces: head, items with separators between them, tail.
struct ListFrame {
  std::string head, separator, tail;
  std::string_view content_type;
  /// Appends one item. Keeps the request alive.
  std::function<void(std::string& out, const ObjectPtr&)> append;
};
/// What stands around a list's items.
struct ListHead {
  Revision revision = 0;
  std::string continue_token;
  std::optional<std::int64_t> remaining;
};
/// `items`: all of them: what is there decides on how they can be written, and a protobuf list says its length before its first item.
ListFrame frame_list(const Clock& clock, const RequestPtr& request, const ListHead& head, const std::vector<ObjectPtr>& items);

/// The frames of one watch. What every watcher of the same things gets is made once for all of them. One thread at a time.
class EventFrames {
 public:
  struct Event {
    WatchEventType type;
    ObjectPtr object;
    Revision revision = 0;
    bool ends_initial_state = false;
    /// About what it takes, on the wire and in memory.
    [[nodiscard]] std::size_t bytes() const { return object ? object->text_bytes() + 40 : 200; }
  };
  EventFrames(const Clock& clock, const Request& request);
  [[nodiscard]] std::string_view content_type() const;
  /// Memory is short: what is kept for other watchers goes, and is made anew for them.
  static void forget_shared();
  /// The type's name of an event that is shown as its object is stored, in JSON; empty: it has a text of its own.
  [[nodiscard]] std::string_view as_stored(const Event& event) const;
  Bytes one(const Event& event);
  /// `size`: the sum of their bytes().
  Bytes all(const std::deque<Event>& batch, std::size_t size);
  [[nodiscard]] Bytes error(const model::ApiStatus& status) const;

 private:
  /// The frame is the same for every watcher of the stored version in this format.
  [[nodiscard]] bool is_shared(const Event& event) const;
  void append(std::string& out, const Event& event);
  void append_bookmark(std::string& out, const Event& event) const;
  void append_json(std::string& out, const Event& event);
  void append_protobuf(std::string& out, const Event& event) const;

  const Clock& clock_;
  const Request& request_;
  Representation form_;
  bool is_plain_;  ///< The stored version, whole.
  bool has_sent_columns_ = false;
};

}  // namespace berth::apiserver
