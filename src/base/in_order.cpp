#include "base/in_order.h"

#include <algorithm>
#include <deque>
#include <system_error>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace berth {
namespace {

/// Portions that are claimed by makers, one after the other, no further than a few ahead of the taker.
class Portions {
 public:
  Portions(std::size_t count, std::size_t most_ahead) : count_(count), most_ahead_(most_ahead) {}

  /// For the taker: the next one to take is made.
  bool is_made() {
    const MutexLock lock(mutex_);
    return !made_.empty() && made_.front();
  }
  /// The next one that nobody makes yet; false: there is none. `waits`: for room, rather than find none.
  bool claim(std::size_t& portion, bool waits) {
    MutexLock lock(mutex_);
    const auto has_room = [&]() BERTH_REQUIRES(mutex_) { return is_over_ || claimed_ == count_ || claimed_ < taken_ + most_ahead_; };
    if (waits) changed_.wait(mutex_, has_room);
    if (is_over_ || claimed_ == count_ || !has_room()) return false;
    portion = claimed_++;
    made_.push_back(false);
    return true;
  }
  void set_made(std::size_t portion) {
    const MutexLock lock(mutex_);
    made_[portion - taken_] = true;
    changed_.notify_all();
  }
  void wait_for_next() {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() BERTH_REQUIRES(mutex_) { return made_.front(); });
  }
  void set_taken() {
    const MutexLock lock(mutex_);
    made_.pop_front();
    ++taken_;
    changed_.notify_all();
  }
  void end() {
    const MutexLock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  const std::size_t count_, most_ahead_;
  std::size_t claimed_ BERTH_GUARDED_BY(mutex_) = 0, taken_ BERTH_GUARDED_BY(mutex_) = 0;
  std::deque<bool> made_ BERTH_GUARDED_BY(mutex_);  ///< Of those that are claimed and not taken.
  bool is_over_ BERTH_GUARDED_BY(mutex_) = false;
};

/// Ends the makers before anything that they use goes, also when the taker throws.
class Makers {
 public:
  Makers(std::size_t count, Portions& portions, const std::function<void(std::size_t)>& make) : portions_(portions) {
    try {
      for (std::size_t i = 0; i < count; ++i)
        threads_.emplace_back([&] {
          for (std::size_t portion = 0; portions_.claim(portion, true); portions_.set_made(portion)) make(portion);
        });
    } catch (const std::system_error&) {
      // The taker makes what nobody else does.
    }
  }
  ~Makers() {
    portions_.end();
    for (std::thread& thread : threads_) thread.join();
  }
  Makers(const Makers&) = delete;
  Makers& operator=(const Makers&) = delete;

 private:
  Portions& portions_;
  std::vector<std::thread> threads_;
};

}  // namespace

void InOrder::run(std::size_t threads) const {
  // Few, so that what one thread has made is still in the cache of the processors when it is taken.
  constexpr std::size_t kAheadPerThread = 2;
  const std::size_t number = (count + portion - 1) / portion;
  const auto first = [&](std::size_t one) { return one * portion; };
  const auto last = [&](std::size_t one) { return std::min(count, (one + 1) * portion); };
  const std::function<void(std::size_t)> make_one = [&](std::size_t one) { make(first(one), last(one)); };
  Portions portions(number, kAheadPerThread * std::max<std::size_t>(threads, 1));
  const Makers makers(std::min(threads, number) - (number > 0 && threads > 0 ? 1 : 0), portions, make_one);
  for (std::size_t next = 0; next < number; ++next) {
    // Rather than wait for the next portion, this thread makes one of those behind it.
    for (std::size_t other = 0; !portions.is_made();) {
      if (portions.claim(other, false)) {
        make_one(other);
        portions.set_made(other);
      } else {
        portions.wait_for_next();
      }
    }
    if (!take(first(next), last(next))) return;
    portions.set_taken();
  }
}

}  // namespace berth
