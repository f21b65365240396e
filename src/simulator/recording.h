// Recordings: what happened to a cluster's objects, a JSON line each (docs/simulate.md "Recordings").
//
//   {"recording":"berth/v1","start":"2026-03-02T00:00:00Z","source":"…"}
//   {"at":1500,"type":"ADDED","object":{…}}          milliseconds since the start; ADDED, MODIFIED, DELETED
#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/cache/object_cache.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace berth::simulator {

struct RecordedKind {
  std::string group, plural, kind, api_version;
};
/// What is recorded: what places pods, asks for them, or tells of them; not Leases, Secrets and the like.
const std::vector<RecordedKind>& recorded_kinds();

/// Writes a file; each line is complete once `add` has returned and `flush` was called.
class RecordingWriter {
 public:
  /// The error names the file. An existing file is replaced.
  static Result<std::unique_ptr<RecordingWriter>> open(const std::string& file, TimePoint start, const std::string& source);
  ~RecordingWriter();
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;
  /// `object`: its JSON with kind and apiVersion.
  void add(std::int64_t at_ms, std::string_view type, std::string_view object);
  void flush();
  /// The error: something could not be written.
  Result<void> close();
  [[nodiscard]] std::int64_t lines() const { return lines_; }

 private:
  RecordingWriter(std::string file, std::FILE* out) : file_(std::move(file)), out_(out) {}
  std::string file_;
  std::FILE* out_;
  bool failed_ = false;
  std::int64_t lines_ = 0;
};

/// Writes what an API server's cache publishes.
class RecordingTap {
 public:
  RecordingTap(const Clock& clock, TimePoint start, RecordingWriter* writer) : clock_(clock), start_(start), writer_(writer) {}
  ~RecordingTap();
  /// From its present state on; null: it is gone. After the first time, what is there already is not told again.
  void attach(apiserver::ObjectCache* cache);
  /// An Event that went to nobody else.
  void add_event(std::string_view event);

 private:
  [[nodiscard]] std::int64_t now_ms() const;
  class Sink;
  const Clock& clock_;
  TimePoint start_;
  RecordingWriter* writer_;
  std::vector<std::unique_ptr<apiserver::Watch>> watches_;
  bool has_begun_ = false, is_replacing_ = false;
};

struct RecordedEvent {
  std::int64_t at_ms = 0;
  enum class Type { kAdded, kModified, kDeleted } type = Type::kAdded;
  json::Value object;
};
struct RecordingHead {
  TimePoint start{};
  std::string source;
  std::vector<std::string> notes;  ///< Of an audit log: what it does not say.
};
/// Whether the text begins as a recording or an audit log does.
bool is_recording(std::string_view text);
/// When a recording or an audit log begins, and how long it goes on.
struct RecordingSpan {
  TimePoint start{};
  Duration length{};
};
Result<RecordingSpan> span_of_recording(const std::string& file);
/// Reads a file line by line; an audit log (simulator/audit_log.h) as well. The error names file and line: no head, not JSON, cut off in
/// the middle of a line, going back in time.
Result<RecordingHead> read_recording(const std::string& file, const std::function<Result<void>(RecordedEvent)>& each);

}  // namespace berth::simulator
