#include "apiserver/etcd/revision_waiters.h"

#include <limits>

namespace berth::apiserver::etcd {

std::vector<RevisionWaiters::Waiter> RevisionWaiters::reached(store::Revision revision) {
  std::vector<Waiter> due;
  const auto end = waiters_.upper_bound(revision);
  for (auto at = waiters_.begin(); at != end; ++at) due.push_back(std::move(at->second));
  waiters_.erase(waiters_.begin(), end);
  return due;
}

RevisionWaiters::Late RevisionWaiters::expire(TimePoint now, bool takes_no_writes) {
  Late late;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    Waiter& waiter = at->second;
    late.is_stalled = late.is_stalled || (waiter.who != Who::kWriter && now - waiter.since > kStall);
    const bool has_all = waiter.who == Who::kNewest && takes_no_writes && now - waiter.since > std::chrono::seconds(1);
    if (waiter.until > now && !has_all) {
      ++at;
      continue;
    }
    late.over.emplace_back(std::move(waiter), has_all);
    at = waiters_.erase(at);
  }
  return late;
}

std::vector<RevisionWaiters::Waiter> RevisionWaiters::take_all() { return reached(std::numeric_limits<store::Revision>::max()); }

}  // namespace berth::apiserver::etcd
