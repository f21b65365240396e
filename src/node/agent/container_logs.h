// Reading the CRI's log files: what `kubectl logs` shows (kuberuntime/logs).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/owned_fd.h"

namespace berth::node::agent {

/// Lines of a CRI log file ("TIME stdout F text") as `kubectl logs` shows them. Lines that were split (tag P) are joined.
struct LogOptions {
  bool timestamps = false, previous = false, follow = false;
  std::optional<std::int64_t> tail_lines, limit_bytes;
  std::optional<TimePoint> since;
  std::string stream;  ///< "stdout" or "stderr"; empty: both.
};
enum class LogQueryError { kUnreadable, kInvalid };  ///< HTTP 400 and 422.
/// Reads the query of /containerLogs.
[[nodiscard]] std::optional<LogQueryError> read_log_options(const std::string& query, TimePoint now, LogOptions& options);

[[nodiscard]] std::string render_log(std::string_view raw, const LogOptions& options);

/// Follows one container's log over rotations. One thread.
class LogFollower {
 public:
  LogFollower(std::string path, LogOptions options) : path_(std::move(path)), options_(std::move(options)) {}

  /// The next piece (up to a quarter megabyte of the file) of what was not yet read, rendered; the first begins tail_lines lines of the
  /// file before its end, as in the kubelet. Whole lines only, until `is_over` says that nobody writes any more. Empty: nothing new.
  std::string read(bool is_over);
  /// The last read came to the end of the file.
  [[nodiscard]] bool is_at_end() const { return is_at_end_; }
  /// limit_bytes was reached.
  [[nodiscard]] bool is_full() const { return options_.limit_bytes && *options_.limit_bytes <= 0; }

 private:
  bool open();
  /// To where the last tail_lines lines begin.
  void seek_tail();
  /// Reads a piece into rest_; true at the end of the file.
  bool fill();
  [[nodiscard]] std::size_t whole_lines() const;
  std::string path_;
  LogOptions options_;
  OwnedFd file_;
  bool is_at_end_ = false;
  std::string rest_;  ///< Read, without an end of line yet.
};

/// Rotates a log: FILE becomes FILE.STAMP, older ones are compressed, and at most `max_files` are kept, the one in use included. `reopen`
/// makes the runtime write to a new FILE; when it fails, the old name is restored.
[[nodiscard]] bool rotate_log(const std::string& path, int max_files, TimePoint now, const std::function<bool()>& reopen);

}  // namespace berth::node::agent
