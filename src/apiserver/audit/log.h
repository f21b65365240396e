// Where audit events go: files that are rotated, and a web service that gets them in batches. Nothing here holds up a request: events wait
// in a queue with a bound, on a thread of its own they become text, and what does not fit is counted.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apiserver/audit/policy.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/json.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "net/client.h"
#include "net/http.h"

namespace berth::apiserver::audit {

struct FileOptions {
  std::string path;      ///< Empty: no file; "-": standard output.
  int max_age_days = 0;  ///< 0: old files are kept whatever their age.
  int max_backups = 0;   ///< 0: all are kept.
  std::size_t max_megabytes = 100;
};
struct WebhookOptions {
  net::ClientConfig http;  ///< Its url is where batches are posted; empty: none.
  std::string bearer_token;
  std::size_t batch_events = 400, buffer_events = 10'000;
  std::size_t batch_bytes = 8U << 20, buffer_bytes = 64U << 20;  ///< Of text; whichever ends first. One event is always a batch.
  Duration max_wait = std::chrono::seconds(30), first_pause = std::chrono::seconds(10);
};
struct LogOptions {
  std::shared_ptr<const Policy> policy;
  FileOptions file;
  WebhookOptions webhook;
  std::size_t queue_events = 20'000, queue_bytes = 64U << 20;
};

/// One event before it is text: bodies are parsed, and secrets of bodies left out, off the request's path.
struct Event {
  Level level = Level::kMetadata;
  Stage stage = Stage::kResponseComplete;
  json::Object fields;  ///< Everything but the bodies.
  std::string request_type, request_body;
  std::string response_type;
  std::vector<Bytes> response_body;
  bool response_is_status = false;  ///< An error: its Status goes into responseStatus, whatever the level.
  bool omit_managed_fields = false;
  TimePoint at{};

  [[nodiscard]] std::size_t bytes() const;
};
/// The event as it is written.
json::Object finish_event(Event event);

/// Appends lines to a file and moves it away when it is too large, as lumberjack: PATH-2026-01-02T03-04-05.678.EXT.
class RotatedFile {
 public:
  static Result<std::unique_ptr<RotatedFile>> open(FileOptions options);
  ~RotatedFile();
  /// The error says why nothing was written.
  Result<void> append(std::string_view lines, TimePoint now);

 private:
  explicit RotatedFile(FileOptions options) : options_(std::move(options)) {}
  Result<void> reopen();
  void rotate(TimePoint now);
  void drop_old(TimePoint now) const;
  FileOptions options_;
  int fd_ = -1;
  std::size_t size_ = 0;
};

/// Thread-safe. The destructor writes what waits, for a few seconds.
class Log {
 public:
  static Result<std::unique_ptr<Log>> start(LogOptions options, metrics::Registry& metrics);
  ~Log();
  [[nodiscard]] const Policy& policy() const { return *options_.policy; }
  /// Never waits. Dropped, and counted, where the queue is full.
  void submit(Event event);
  /// Waits until all that was submitted is written: tests.
  void flush();

 private:
  Log(LogOptions options, metrics::Registry& metrics);
  void run();
  void write(std::vector<Event> events);
  LogOptions options_;
  metrics::Counter *written_, *dropped_, *failed_;
  std::unique_ptr<RotatedFile> file_;
  class Webhook;
  std::unique_ptr<Webhook> webhook_;

  Mutex mutex_;
  CondVar wake_, idle_;
  std::deque<Event> queue_ BERTH_GUARDED_BY(mutex_);
  std::size_t queued_bytes_ BERTH_GUARDED_BY(mutex_) = 0;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false, busy_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace berth::apiserver::audit
