#ifdef BERTH_WITH_ETCD
#include "store/etcd/outcomes.h"

#include <algorithm>
#include <random>

#include "base/mutex.h"

namespace berth::store::etcd {
namespace {

std::string new_mark() {
  static std::atomic<std::uint64_t> next = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  const std::uint64_t number = next.fetch_add(0x9e3779b97f4a7c15ULL);
  std::string mark(sizeof number, '\0');
  for (std::size_t i = 0; i < sizeof number; ++i) mark[i] = static_cast<char>(number >> (8 * i));
  return mark;
}

}  // namespace

SoughtPtr Outcomes::begin(const std::string& key, Bytes value) {
  auto sought = std::make_shared<Sought>(Sought{key, std::move(value), {}, 0, 0});
  if (sought->value == nullptr) sought->mark = new_mark();
  const MutexLock lock(mutex_);
  sought->term = term_;
  under_way_.emplace(key, sought);
  return sought;
}

void Outcomes::end(const SoughtPtr& sought) {
  const MutexLock lock(mutex_);
  const auto [first, last] = under_way_.equal_range(sought->key);
  const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second == sought; });
  if (found != last) under_way_.erase(found);
}

bool Outcomes::is_decided(const Waiting& one) const {
  return one.sought->seen != 0 || !is_following_ || one.sought->term != term_ || reached_ >= one.fence;
}

Outcome Outcomes::outcome_of(const Waiting& one) const {
  if (one.sought->seen != 0) return Outcome::kWritten;
  if (!is_following_ && one.sought->term == 0) return Outcome::kUnwatched;
  return is_following_ && one.sought->term == term_ && reached_ >= one.fence ? Outcome::kNotWritten : Outcome::kUnknown;
}

void Outcomes::wait(const SoughtPtr& sought, Revision fence, Clock::time_point until, Done done) {
  Waiting one{sought, fence, until, std::move(done)};
  Outcome outcome{};
  Revision seen = 0;
  {
    const MutexLock lock(mutex_);
    if (!is_decided(one)) {
      waiting_.push_back(std::move(one));
      ++waiting_count_;
      return;
    }
    outcome = outcome_of(one);
    seen = sought->seen;
  }
  one.done(outcome, seen);
}

void Outcomes::begin_following() {
  {
    const MutexLock lock(mutex_);
    ++term_;
    is_following_ = true;
    reached_ = 0;
  }
  settle([this](const Waiting& one) BERTH_REQUIRES(mutex_) { return is_decided(one); });
}

void Outcomes::stop_following() {
  {
    const MutexLock lock(mutex_);
    is_following_ = false;
  }
  settle([this](const Waiting& one) BERTH_REQUIRES(mutex_) { return is_decided(one); });
}

void Outcomes::saw_put(const std::string& key, const std::string& value, Revision revision) {
  const MutexLock lock(mutex_);
  const auto [first, last] = under_way_.equal_range(key);
  for (auto at = first; at != last; ++at)
    if (at->second->value != nullptr && *at->second->value == value) at->second->seen = revision;
}

void Outcomes::saw_deletion(const std::string& key, const std::string& mark, Revision revision) {
  const MutexLock lock(mutex_);
  const auto [first, last] = under_way_.equal_range(key);
  for (auto at = first; at != last; ++at)
    if (at->second->value == nullptr && at->second->mark == mark) at->second->seen = revision;
}

void Outcomes::reached(Revision revision) {
  {
    const MutexLock lock(mutex_);
    reached_ = std::max(reached_, revision);
  }
  if (waiting_count_ > 0) settle([this](const Waiting& one) BERTH_REQUIRES(mutex_) { return is_decided(one); });
}

void Outcomes::expire(Clock::time_point now) {
  if (waiting_count_ > 0) settle([now](const Waiting& one) { return one.until <= now; });
}

void Outcomes::settle(const std::function<bool(const Waiting&)>& which) {
  struct Settled {
    Outcome outcome;
    Revision seen;
    Done done;
  };
  std::vector<Settled> settled;
  {
    const MutexLock lock(mutex_);
    std::erase_if(waiting_, [&](Waiting& one) BERTH_REQUIRES(mutex_) {
      if (!which(one)) return false;
      settled.push_back({outcome_of(one), one.sought->seen, std::move(one.done)});
      return true;
    });
    waiting_count_ = waiting_.size();
  }
  for (auto& [outcome, seen, done] : settled) done(outcome, seen);
}

}  // namespace berth::store::etcd
#endif
