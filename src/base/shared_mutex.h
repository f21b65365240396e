// A lock for what is read by many at once and changed seldom; checked as base/mutex.h is.
#pragma once
#include <shared_mutex>

#include "base/mutex.h"

namespace berth {

class BERTH_CAPABILITY("mutex") SharedMutex {
 public:
  void lock() BERTH_ACQUIRE() { mutex_.lock(); }
  void unlock() BERTH_RELEASE() { mutex_.unlock(); }
  void lock_shared() BERTH_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() BERTH_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

using WriterLock = ScopedLock<SharedMutex>;

/// As above, beside others that read.
class BERTH_SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) BERTH_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;
  ~ReaderLock() BERTH_RELEASE() {
    if (held_) mutex_.unlock_shared();
  }
  void unlock() BERTH_RELEASE() {
    held_ = false;
    mutex_.unlock_shared();
  }

 private:
  SharedMutex& mutex_;
  bool held_ = true;
};

}  // namespace berth
