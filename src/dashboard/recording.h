// A recorded cluster (berth record, berth simulate --recording) as rows with times, for the page's time slider.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "base/event_loop.h"
#include "net/http.h"

namespace berth::dashboard {

/// Reads a recording line by line: `{"recording":"berth/v1","start":…,"source":…}`, then `{"at":<ms>,"type":…,"object":{…}}`.
/// Single-threaded.
///
/// Rows are those of rows.h with "t", milliseconds since the start. First {"kind":"recording","start":<ms since 1970>,"source"}, last
/// {"kind":"end","length" (ms),"lines","shown","problems":[…]}: what was wrong with lines that were left out.
class RecordingRows {
 public:
  /// Appends the rows of the line; nothing for events that change nothing that the page shows. The error: it is no recording at all.
  Result<void> take(std::string_view line, std::string& out);
  /// The last line.
  [[nodiscard]] std::string end() const;

 private:
  Result<void> begin(std::string_view line, std::string& out);
  void problem(std::string what);

  std::size_t lines_ = 0, shown_ = 0, problem_count_ = 0;
  std::int64_t last_ms_ = 0;
  std::vector<std::string> problems_;
  std::unordered_map<std::string, std::size_t> seen_;  ///< A row's hash by its name, to leave out what changes nothing.
};

/// Answers with the rows of `text`, working on the loop, a piece at a time, at the pace of the reader. An error in the first line is
/// answered 422.
void send_recording(std::string text, EventLoop& loop, std::shared_ptr<net::ResponseWriter> writer);

}  // namespace berth::dashboard
