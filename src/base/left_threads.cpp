#include "base/left_threads.h"

#include <list>

#include "base/mutex.h"

namespace berth {
namespace {

struct Left {
  std::shared_ptr<std::atomic<bool>> over;
  std::thread thread;
};

class Yard {
 public:
  ~Yard() {
    // Those that wait here may leave others.
    while (true) {
      std::list<Left> all;
      {
        const MutexLock lock(mutex_);
        all.swap(left_);
      }
      if (all.empty()) return;
      for (Left& one : all) one.thread.join();
    }
  }
  void take(Left one) {
    std::list<Left> over;
    {
      const MutexLock lock(mutex_);
      for (auto at = left_.begin(); at != left_.end();) {
        const auto next = std::next(at);
        if (*at->over) over.splice(over.end(), left_, at);
        at = next;
      }
      left_.push_back(std::move(one));
    }
    for (Left& ended : over) ended.thread.join();
  }

 private:
  Mutex mutex_;
  std::list<Left> left_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace

void LeavableThread::leave() {
  if (!thread_.joinable()) return;
  static Yard yard;
  yard.take({std::move(over_), std::move(thread_)});
}

}  // namespace berth
