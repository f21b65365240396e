// Bytes of list and watch answers into objects, without building documents. No threads, no I/O.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "client/object.h"
#include "model/api_status.h"

namespace berth::client {

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  ObjectRef object;         ///< Not of errors.
  model::ApiStatus status;  ///< Of errors only.
};

/// A watch's body: one JSON object a line.
class WatchDecoder {
 public:
  /// Appends the events of all lines that are complete. False when the stream is not a watch's (then it is of no further use).
  bool feed(std::string_view data, std::deque<WatchEvent>& out);
  /// An event that comes as it is stored (StreamCallbacks::on_event). False when its type is none.
  static bool take(std::string_view type, const KeptTextRef& object, std::deque<WatchEvent>& out);

 private:
  bool decode_line(std::string_view line, std::deque<WatchEvent>& out);
  static constexpr std::size_t kMaxLineBytes = 64 * 1024 * 1024;
  std::string partial_;
};

struct ObjectPage {
  std::vector<ObjectRef> objects;
  std::string resource_version, continue_token;
};

/// A list's body. Items get the list's apiVersion and kind (without "List") when they have none, as in a watch.
Result<ObjectPage> decode_list(std::string_view body);

}  // namespace berth::client
