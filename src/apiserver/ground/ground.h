// What every part of the API server stands on: the objects, the time, names, threads.
#pragma once
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "apiserver/cache/mirror.h"
#include "apiserver/ground/askers.h"
#include "apiserver/ground/options.h"
#include "base/mutex.h"

namespace berth::apiserver {

/// A few threads for what must not run on I/O or writer threads: retries after conflicts, answers of webhooks.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool() { stop(); }
  /// Waits for running tasks; queued and later ones are dropped. Idempotent.
  void stop();
  void post(Task task);

 private:
  void run();
  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> queue_ BERTH_GUARDED_BY(mutex_);
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

/// A version 4 UUID of these bits.
std::string uuid_of(std::uint64_t high, std::uint64_t low);

/// Names and uids, from one seeded generator. Thread-safe.
class NameSource {
 public:
  explicit NameSource(std::uint64_t seed);
  std::string suffix();  ///< Five characters of Kubernetes' alphabet (no vowels, nothing that looks alike).
  std::string uid();     ///< A version 4 UUID.

 private:
  std::uint64_t next();
  Mutex mutex_;
  std::mt19937_64 random_ BERTH_GUARDED_BY(mutex_);
};

/// Knows nothing of requests. Owned by ApiServer::Impl, made first and destroyed last: the parts hold references. Thread-safe.
struct Ground {
  /// `given`: outlives this; the cache is taken from it.
  explicit Ground(GroundOptions& given);
  ~Ground();

  /// On another thread, or within the call when single-threaded.
  void offload(Task task);
  /// Later, on another thread, or on the loop when single-threaded: never within the call.
  void defer(Task task);
  Mirror& mirror(std::string_view group, std::string_view plural);
  [[nodiscard]] std::string now_text() const { return format_rfc3339(loop.now()); }
  /// The cache goes, with what follows it. Whoever else watches it has gone before. The workers, stopped, stay until the cache's writer is
  /// gone: its last callbacks still hand over tasks, which are dropped.
  void close();

  const GroundOptions& options;
  std::unique_ptr<ObjectCache> cache;
  EventLoop& loop;
  std::shared_ptr<metrics::Registry> registry;
  NameSource names;
  std::unique_ptr<WorkerPool> workers;  ///< Null when single-threaded.
  std::unique_ptr<Askers> askers;       ///< The same.

 private:
  Mutex mirrors_mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Mirror>> mirrors_ BERTH_GUARDED_BY(mirrors_mutex_);
};

}  // namespace berth::apiserver
