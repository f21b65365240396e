#include "apiserver/etcd/revision_waiters.h"

#include <algorithm>
#include <limits>

namespace berth::apiserver::etcd {

std::vector<RevisionWaiters::Waiter> RevisionWaiters::reached(store::Revision revision) {
  std::vector<Waiter> due;
  const auto end = waiters_.upper_bound(revision);
  for (auto at = waiters_.begin(); at != end; ++at) due.push_back(std::move(at->second));
  waiters_.erase(waiters_.begin(), end);
  return due;
}

RevisionWaiters::Late RevisionWaiters::expire(TimePoint now) {
  Late late;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    Waiter& waiter = at->second;
    if (waiter.who != Who::kWriter) late.longest = std::max<Duration>(late.longest, now - waiter.since);
    if (waiter.until > now) {
      ++at;
      continue;
    }
    late.over.push_back(std::move(waiter));
    at = waiters_.erase(at);
  }
  return late;
}

std::vector<RevisionWaiters::Waiter> RevisionWaiters::take_all() { return reached(std::numeric_limits<store::Revision>::max()); }

}  // namespace berth::apiserver::etcd
