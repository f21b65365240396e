#include "node/agent/log_streams.h"

#include "base/mutex.h"

namespace berth::node::agent {
namespace {

constexpr auto kFollowPause = std::chrono::milliseconds(100);
constexpr std::size_t kMaxQueuedLog = 256 * 1024;

}  // namespace

struct LogStreams::Reader {
  Reader(std::shared_ptr<net::ResponseWriter> w, const std::string& path, const LogOptions& options, std::function<bool()> over,
         std::chrono::steady_clock::time_point until)
      : writer(std::move(w)), follower(path, options), follows(options.follow), is_over(std::move(over)), patience(until) {}

  std::shared_ptr<net::ResponseWriter> writer;
  LogFollower follower;
  const bool follows;
  std::function<bool()> is_over;
  const std::chrono::steady_clock::time_point patience;
  bool has_sent = false;
  std::shared_ptr<std::atomic<bool>> is_gone = std::make_shared<std::atomic<bool>>(false);

  enum class Next { kEnd, kAgain, kLater };
  /// Sends a piece.
  Next step() {
    if (*is_gone) return Next::kEnd;
    if (writer->queued_bytes() >= kMaxQueuedLog) return Next::kLater;  // on_drain wakes us.
    const bool over = follows ? is_over() : has_sent || std::chrono::steady_clock::now() >= patience || is_over();
    std::string text = follower.read(over);
    const bool has_text = !text.empty();
    has_sent = has_sent || has_text;
    if (has_text && !writer->write(make_bytes(std::move(text)))) return Next::kEnd;
    if (follower.is_full() || (over && follower.is_at_end())) {
      writer->finish();
      return Next::kEnd;
    }
    return has_text || !follower.is_at_end() ? Next::kAgain : Next::kLater;
  }
};

void LogStreams::send(std::shared_ptr<net::ResponseWriter> writer, const std::string& path, LogOptions options,
                      std::function<bool()> is_over, std::chrono::steady_clock::time_point patience) {
  net::Headers headers;
  headers.add("Content-Type", "text/plain; charset=utf-8");
  writer->start_stream(200, std::move(headers));
  auto reader = std::make_shared<Reader>(std::move(writer), path, options, std::move(is_over), patience);
  reader->writer->on_close([is_gone = reader->is_gone] { *is_gone = true; });
  const MutexLock lock(mutex_);
  if (is_stopping_) return;
  new_readers_.push_back(std::move(reader));
  has_news_ = true;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  wake_.notify_all();
}

void LogStreams::stop() {
  std::thread thread;
  std::list<std::shared_ptr<Reader>> unread;
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
    unread.swap(new_readers_);
    thread = std::move(thread_);
    wake_.notify_all();
  }
  if (thread.joinable()) thread.join();
  readers_.clear();
}

void LogStreams::run() {
  bool again = false;
  while (true) {
    {
      MutexLock lock(mutex_);
      const auto has_work = [this]() BERTH_REQUIRES(mutex_) { return is_stopping_ || has_news_; };
      // Files tell nobody that they grew.
      if (readers_.empty() && new_readers_.empty())
        wake_.wait(mutex_, has_work);
      else if (!again)
        wake_.wait_for(mutex_, kFollowPause, has_work);
      if (is_stopping_) return;
      has_news_ = false;
      readers_.splice(readers_.end(), new_readers_);
    }
    again = false;
    for (auto at = readers_.begin(); at != readers_.end();) {
      const auto next = (*at)->step();
      again = again || next == Reader::Next::kAgain;
      if (next == Reader::Next::kEnd) {
        at = readers_.erase(at);
        continue;
      }
      // A reader who took what was queued gets more at once, not at the next look.
      if ((*at)->writer->queued_bytes() >= kMaxQueuedLog) {
        (*at)->writer->on_drain([this] {
          const MutexLock lock(mutex_);
          has_news_ = true;
          wake_.notify_all();
        });
      }
      ++at;
    }
  }
}

}  // namespace berth::node::agent
