// Containers' logs on their way to readers: one thread for all, each reader at his own pace.
#pragma once
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "net/http.h"
#include "node/agent/container_logs.h"

namespace berth::node::agent {

/// Thread-safe. The thread starts with the first reader. A reader who does not read holds at most half a megabyte.
class LogStreams {
 public:
  LogStreams() = default;
  ~LogStreams() { stop(); }
  LogStreams(const LogStreams&) = delete;
  LogStreams& operator=(const LogStreams&) = delete;

  /// Answers with the log and, until `is_over` says that nobody writes it any more (asked from the thread, again and again), with what is
  /// added. Where nothing is followed the answer is what is there; of a log that is empty so far it waits for the first line until
  /// `patience`, as long as `is_over` does not say that there will be none: a container is told to run before its first words have come.
  void send(std::shared_ptr<net::ResponseWriter> writer, const std::string& path, LogOptions options, std::function<bool()> is_over,
            std::chrono::steady_clock::time_point patience = {});
  /// Cuts all answers off and waits for the thread. Idempotent; nothing is sent afterwards.
  void stop();

 private:
  struct Reader;
  void run();

  Mutex mutex_;
  CondVar wake_;
  std::list<std::shared_ptr<Reader>> readers_;  ///< The thread's own.
  std::list<std::shared_ptr<Reader>> new_readers_ BERTH_GUARDED_BY(mutex_);
  bool is_stopping_ BERTH_GUARDED_BY(mutex_) = false, has_news_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace berth::node::agent
