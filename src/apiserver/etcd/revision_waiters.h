// Who waits until a revision is published: writers for their own write, readers for what others were told. Pure: the time is given.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace berth::apiserver::etcd {

/// Not thread-safe. Calls nobody: who is due is handed out, each once.
class RevisionWaiters {
 public:
  enum class Who {
    kWriter,  ///< Of what the watch will bring by itself.
    kReader,  ///< Of a revision that may be outside of the prefix.
    kNewest,  ///< Of what etcd said is the newest.
  };
  struct Waiter {
    TimePoint since, until;
    Who who = Who::kWriter;
    std::function<void(bool reached)> done;
  };
  struct Late {
    std::vector<std::pair<Waiter, bool>> over;  ///< With whether what was waited for counts as reached.
    bool is_stalled = false;                    ///< A reader waits for longer than kStall: something outside the prefix was written.
  };
  /// A reader waits longer than this for the watch: etcd is nudged.
  static constexpr Duration kStall = std::chrono::milliseconds(20);

  void add(store::Revision revision, Waiter waiter) { waiters_.emplace(revision, std::move(waiter)); }
  [[nodiscard]] bool is_empty() const { return waiters_.empty(); }
  /// Takes out everybody who waits for `revision` or less.
  std::vector<Waiter> reached(store::Revision revision);
  /// Takes out whose time is over. Where nobody can write there is nothing new to wait for: who waits for the newest has it after a second.
  Late expire(TimePoint now, bool takes_no_writes);
  std::vector<Waiter> take_all();

 private:
  std::multimap<store::Revision, Waiter> waiters_;
};

}  // namespace berth::apiserver::etcd
