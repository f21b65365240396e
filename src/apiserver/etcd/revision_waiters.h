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
  };
  struct Waiter {
    TimePoint since, until;
    Who who = Who::kWriter;
    std::function<void(bool reached)> done;
  };
  struct Late {
    std::vector<Waiter> over;
    Duration longest{};  ///< For how long a reader has waited.
  };
  /// A reader waits longer than this for the watch: perhaps something outside the prefix was written, and etcd is nudged.
  static constexpr Duration kStall = std::chrono::milliseconds(20);
  /// … and than this where etcd takes no nudge: it is asked whether there is anything to wait for.
  static constexpr Duration kLong = std::chrono::seconds(1);

  void add(store::Revision revision, Waiter waiter) { waiters_.emplace(revision, std::move(waiter)); }
  [[nodiscard]] bool is_empty() const { return waiters_.empty(); }
  /// Takes out everybody who waits for `revision` or less.
  std::vector<Waiter> reached(store::Revision revision);
  /// Takes out whose time is over.
  Late expire(TimePoint now);
  std::vector<Waiter> take_all();

 private:
  std::multimap<store::Revision, Waiter> waiters_;
};

}  // namespace berth::apiserver::etcd
