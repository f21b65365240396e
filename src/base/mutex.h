// Locks that clang checks (-Wthread-safety, `make tidy`): which mutex guards a member, and which one a function wants held or free.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define BERTH_THREAD_SAFETY(...) __attribute__((__VA_ARGS__))
#else
#define BERTH_THREAD_SAFETY(...)
#endif

/// Of a member or a static: read and written only while the mutex is held.
#define BERTH_GUARDED_BY(mutex) BERTH_THREAD_SAFETY(guarded_by(mutex))
/// Of a function (or a lambda, after its parameters): who calls it holds the mutex, to change or just to read; or holds it not.
#define BERTH_REQUIRES(...) BERTH_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define BERTH_REQUIRES_SHARED(...) BERTH_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
#define BERTH_EXCLUDES(...) BERTH_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
/// Of a mutex: where both are held, this one was taken later, or earlier.
#define BERTH_ACQUIRED_AFTER(...) BERTH_THREAD_SAFETY(acquired_after(__VA_ARGS__))
#define BERTH_ACQUIRED_BEFORE(...) BERTH_THREAD_SAFETY(acquired_before(__VA_ARGS__))
/// Of a function that answers which mutex, takes it, lets it go, or leaves it as clang cannot see; the last with a reason beside it.
#define BERTH_RETURN_CAPABILITY(mutex) BERTH_THREAD_SAFETY(lock_returned(mutex))
#define BERTH_ACQUIRE(...) BERTH_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define BERTH_ACQUIRE_SHARED(...) BERTH_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define BERTH_RELEASE(...) BERTH_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define BERTH_RELEASE_SHARED(...) BERTH_THREAD_SAFETY(release_shared_capability(__VA_ARGS__))
#define BERTH_NO_THREAD_SAFETY_ANALYSIS BERTH_THREAD_SAFETY(no_thread_safety_analysis)
/// Of a class: a lock, or what holds one as long as it lives.
#define BERTH_CAPABILITY(name) BERTH_THREAD_SAFETY(capability(name))
#define BERTH_SCOPED_CAPABILITY BERTH_THREAD_SAFETY(scoped_lockable)

namespace berth {

class BERTH_CAPABILITY("mutex") Mutex {
 public:
  void lock() BERTH_ACQUIRE() { mutex_.lock(); }
  void unlock() BERTH_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds it until the end of the block, but between unlock() and lock().
template <class Lockable>
class BERTH_SCOPED_CAPABILITY ScopedLock {
 public:
  explicit ScopedLock(Lockable& mutex) BERTH_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;
  ~ScopedLock() BERTH_RELEASE() {
    if (held_) mutex_.unlock();
  }
  void lock() BERTH_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  void unlock() BERTH_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  Lockable& mutex_;
  bool held_ = true;
};

using MutexLock = ScopedLock<Mutex>;

/// Lets go, until the end of the block, of a mutex that the caller holds.
class BERTH_SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) BERTH_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;
  ~MutexUnlock() BERTH_RELEASE() { mutex_.lock(); }

 private:
  Mutex& mutex_;
};

/// std::condition_variable, for whoever holds the mutex: it is let go of while waiting. What a wait is for is asked under the mutex, which
/// a lambda must say: [&]() BERTH_REQUIRES(mutex_) { return stopping_; }
class CondVar {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  void wait(Mutex& mutex) BERTH_REQUIRES(mutex) {
    Adopted held(mutex);
    condition_.wait(held.lock);
  }
  template <class Rep, class Period>
  std::cv_status wait_for(Mutex& mutex, const std::chrono::duration<Rep, Period>& time) BERTH_REQUIRES(mutex) {
    Adopted held(mutex);
    return condition_.wait_for(held.lock, time);
  }
  template <class Clock, class Duration>
  std::cv_status wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& time) BERTH_REQUIRES(mutex) {
    Adopted held(mutex);
    return condition_.wait_until(held.lock, time);
  }

  // Not looked into: that the lambda's mutex is this one, clang does not see.
  template <class Done>
  void wait(Mutex& mutex, Done done) BERTH_REQUIRES(mutex) BERTH_NO_THREAD_SAFETY_ANALYSIS {
    Adopted held(mutex);
    condition_.wait(held.lock, std::move(done));
  }
  template <class Rep, class Period, class Done>
  bool wait_for(Mutex& mutex, const std::chrono::duration<Rep, Period>& time, Done done)
      BERTH_REQUIRES(mutex) BERTH_NO_THREAD_SAFETY_ANALYSIS {
    Adopted held(mutex);
    return condition_.wait_for(held.lock, time, std::move(done));
  }
  template <class Clock, class Duration, class Done>
  bool wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& time, Done done)
      BERTH_REQUIRES(mutex) BERTH_NO_THREAD_SAFETY_ANALYSIS {
    Adopted held(mutex);
    return condition_.wait_until(held.lock, time, std::move(done));
  }

 private:
  /// The caller's lock, as the standard library wants to see it; still the caller's afterwards.
  struct Adopted {
    explicit Adopted(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Adopted() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };
  std::condition_variable condition_;
};

}  // namespace berth
