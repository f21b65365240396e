#include "apiserver/flow/controller.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mutex.h"

namespace berth::apiserver::flow {
namespace {

/// How much of its time a caller's thread has lately given to small requests. Most of it may go there; beyond a short burst the rest waits
/// in the fair queues, so that a flood from one client does not keep the others' from being read.
class Wear {
 public:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool is_worn_out(Clock::time_point now) {
    recover(now);
    return owed_us_ > kBurstUs;
  }
  void add(Clock::time_point from, Clock::time_point to) {
    recover(to);
    owed_us_ += std::chrono::duration<double, std::micro>(to - from).count();
  }

 private:
  static constexpr double kBurstUs = 30'000, kShare = 0.7;
  void recover(Clock::time_point now) {
    owed_us_ = std::max(0.0, owed_us_ - kShare * std::chrono::duration<double, std::micro>(now - last_).count());
    last_ = now;
  }
  double owed_us_ = 0;
  Clock::time_point last_ = Clock::now();
};

thread_local Wear wear;

/// How long an answer is kept back: as long as it tells its reader to wait.
constexpr std::chrono::milliseconds kPause{1000};
/// How often what has waited too long is looked for.
constexpr std::chrono::milliseconds kSweep{250};
/// What a request that waits holds besides its body.
constexpr std::size_t kWaitingBytes = 4096;

double to_seconds(std::chrono::steady_clock::duration span) { return std::chrono::duration<double>(span).count(); }
/// What has begun goes on where there is room for anybody.
auto may_run_in(const Level& level) {
  return [&level](const Waiting& next) {
    return next.request == nullptr ? level.has_room(next.seats) : level.may_have(next.sharer, next.seats);
  };
}

double to_seconds(std::chrono::steady_clock::time_point when) { return to_seconds(when.time_since_epoch()); }

}  // namespace

Controller::Controller(const Limits& limits, metrics::Registry& registry) : limits_(limits), registry_(registry) {
  fair_fraction_ = &registry.gauge("apiserver_flowcontrol_seat_fair_frac",
                                   "Fair fraction of server's concurrency to allocate to each priority level that can use it");
  configure({}, {});
  threads_.emplace_back([this] { work(true); });
  for (int i = 0; i < std::max(1, limits.workers); ++i) threads_.emplace_back([this] { work(false); });
}

Seats& Seats::operator=(Seats&& other) noexcept {
  reset();
  controller_ = std::exchange(other.controller_, nullptr);
  where_ = std::move(other.where_);
  count_ = other.count_;
  begun_ = other.begun_;
  return *this;
}

void Seats::reset() {
  auto* controller = std::exchange(controller_, nullptr);
  if (controller == nullptr) return;
  controller->finish(where_, count_, to_seconds(std::chrono::steady_clock::now() - begun_));
  where_ = {};
}

void Controller::stop() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  wake_.notify_all();
  wake_exempt_.notify_all();
  for (auto& thread : threads_) thread.join();
  // What still waits is dropped: it holds its level, which holds it.
  std::vector<Waiting> dropped;
  const MutexLock lock(mutex_);
  for (auto& level : levels_)
    while (auto waiting = level->queue.pop()) dropped.push_back(std::move(*waiting));
}

void Controller::count_dispatched(const Classified& where, int seats) const {
  const auto& counts = where.schema->metrics;
  counts.dispatched->add();
  if (seats == 0) return;
  counts.executing->add(1);
  counts.executing_seats->add(seats);
  counts.width->observe(seats);
}

bool Controller::runs_here(const Classified& where, double cost_us, int seats) {
  if (cost_us >= kHeavyUs) return false;
  Level& level = where.level();
  const auto now = Clock::now();
  if (is_shed(where) || (!level.is_exempt && wear.is_worn_out(now))) return false;
  if (seats > 0) {
    const auto sharer = where.sharer();
    const MutexLock lock(mutex_);
    if (!level.is_exempt && (!level.queue.empty() || !level.may_have(sharer, seats))) return false;
    level.occupy(to_seconds(now), sharer, seats, 1);
    ++level.dispatched_count;
  }
  count_dispatched(where, seats);
  return true;
}

void Controller::spent(Clock::time_point from) { wear.add(from, Clock::now()); }

void Controller::submit(Work work) {
  if (runs_here(work.where, work.cost_us, work.seats)) {
    const auto from = Clock::now();
    work.run();
    return spent(from);
  }
  Level& level = work.where.level();
  if (is_shed(work.where) && work.seats > 0) {
    work.where.schema->metrics.memory->add();
    int retry_after = 1;
    {
      const MutexLock lock(mutex_);
      retry_after = note_refused(level, false);
    }
    return refuse_later(std::move(work), "memory", retry_after);
  }
  MutexLock lock(mutex_);
  if (!level.is_exempt) return enqueue(std::move(work));
  const int seats = work.seats;
  auto place = work.where.place().level;
  exempt_.push_back({std::move(place), seats, [this, work = std::make_shared<Work>(std::move(work))] {
                       count_dispatched(work->where, work->seats);
                       work->run();
                     }});
  wake_exempt_.notify_one();
}

void Controller::post(Work work) {
  const auto hash = flow_hash(work.where.schema->config.name, work.where.flow);
  Level& level = work.where.level();
  auto run = [this, where = work.where, seats = work.seats, run = std::move(work.run)] {
    // Counted as executing again, not as another request.
    where.schema->metrics.executing->add(1);
    where.schema->metrics.executing_seats->add(seats);
    run();
  };
  const MutexLock lock(mutex_);
  if (level.is_exempt) {
    exempt_.push_back({work.where.place().level, work.seats, std::move(run)});
    wake_exempt_.notify_one();
    return;
  }
  level.queue.push(
      hash, {std::max(work.cost_us, 50.0), work.seats, 0, std::move(run), {}, Clock::time_point::max(), nullptr, work.where.sharer()},
      true);
  level.note_demand(to_seconds(Clock::now()));
  wake_.notify_one();
}

Waiting Controller::make_waiting(const std::shared_ptr<Work>& work) {
  Waiting out{std::max(work->cost_us, 50.0), work->seats, work->bytes + kWaitingBytes, {}, Clock::now(), {}, work, work->where.sharer()};
  const auto patience = work->longest_wait.count() > 0 ? std::min(work->longest_wait, limits_.longest_wait) : limits_.longest_wait;
  out.deadline = out.since + patience;
  out.item = [this, work, since = out.since, deadline = out.deadline] {
    const auto now = Clock::now();
    const auto& counts = work->where.schema->metrics;
    counts.waiting->add(-1);
    counts.waiting_seats->add(-work->seats);
    (now < deadline ? counts.served_wait : counts.refused_wait)->observe(to_seconds(now - since));
    count_dispatched(work->where, work->seats);
    if (now < deadline) return work->run();
    finish(work->where, work->seats, 0);
    counts.time_out->add();
    int retry_after = 1;
    {
      const MutexLock lock(mutex_);
      retry_after = note_refused(work->where.level(), true);
    }
    work->reject("time-out", retry_after);
  };
  return out;
}

void Controller::enqueue(Work work) {
  Level& level = work.where.level();
  const auto& counts = work.where.schema->metrics;
  const auto hash = flow_hash(work.where.schema->config.name, work.where.flow);
  auto shared = std::make_shared<Work>(std::move(work));
  const bool has_memory = waiting_bytes_ + shared->bytes + kWaitingBytes <= limits_.waiting_bytes;
  // Where there are no queues, what finds seats waits for a thread alone.
  const int ahead = level.seats + level.queue.seats();
  const bool is_let_in = level.queues || ahead == 0 || ahead + shared->seats <= level.limit;
  if (has_memory && is_let_in && level.queue.push(hash, make_waiting(shared), !level.queues)) {
    // From now on somebody looks for what waits too long.
    if (waiting_bytes_ == 0) wake_exempt_.notify_one();
    waiting_bytes_ += shared->bytes + kWaitingBytes;
    level.note_demand(to_seconds(Clock::now()));
    counts.waiting->add(1);
    counts.waiting_seats->add(shared->seats);
    counts.length->observe(static_cast<double>(level.queue.size()));
    wake_.notify_one();
    return;
  }
  const bool is_kept_back = is_flood(level, hash);
  const int retry_after = note_refused(level, false);
  const std::string_view reason = level.queues ? "queue-full" : "concurrency-limit";
  (level.queues ? counts.queue_full : counts.limit)->add();
  const MutexUnlock free(mutex_);
  if (is_kept_back) return refuse_later(std::move(*shared), reason, retry_after);
  shared->reject(reason, retry_after);
  shared = nullptr;  // What it captured is released before the lock is taken.
}

bool Controller::is_flood(Level& level, std::uint64_t flow) {
  constexpr std::uint16_t kAtOnce = 20;
  const auto second = std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count();
  if (std::exchange(level.second, second) != second) level.refused.fill(0);
  auto& refused = level.refused[flow % level.refused.size()];
  if (refused == kAtOnce) return true;
  ++refused;
  return false;
}

int Controller::note_refused(Level& level, bool is_late) {
  ++(is_late ? level.late_count : level.rejected_count);
  return level.retry_after.refuse(std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count());
}

void Controller::refuse_later(Work work, std::string_view reason, int retry_after) {
  if (work.shrink) work.shrink();
  const MutexLock lock(mutex_);
  refused_.emplace_back(Clock::now() + kPause, [reject = std::move(work.reject), reason, retry_after] { reject(reason, retry_after); });
  wake_exempt_.notify_one();
}

void Controller::answer_refused() {
  while (!stopping_ && !refused_.empty() && refused_.front().first <= Clock::now()) {
    auto answer = std::move(refused_.front().second);
    refused_.pop_front();
    const MutexUnlock free(mutex_);
    answer();
    answer = nullptr;
  }
}

void Controller::refuse_expired() {
  const auto now = Clock::now();
  std::vector<std::pair<Waiting, int>> late;
  for (auto& level : levels_) {
    for (auto& waiting : level->queue.take_expired(now)) {
      waiting_bytes_ -= waiting.bytes;
      late.emplace_back(std::move(waiting), note_refused(*level, true));
    }
    if (!late.empty()) level->note_demand(to_seconds(now));
  }
  if (late.empty()) return;
  const MutexUnlock free(mutex_);
  for (auto& [waiting, retry_after] : late) {
    const auto& counts = waiting.request->where.schema->metrics;
    counts.waiting->add(-1);
    counts.waiting_seats->add(-waiting.seats);
    counts.refused_wait->observe(to_seconds(now - waiting.since));
    counts.time_out->add();
    waiting.request->reject("time-out", retry_after);
  }
  late.clear();
}

void Controller::finish(const Classified& where, int seats, double seconds) {
  if (seats == 0) return;
  const auto& counts = where.schema->metrics;
  counts.executing->add(-1);
  counts.executing_seats->add(-seats);
  counts.execution->observe(seconds);
  const auto now = to_seconds(Clock::now());
  const auto sharer = where.sharer();
  Level& level = where.level();
  const MutexLock lock(mutex_);
  level.occupy(now, sharer, -seats, -1);
  if (!level.queue.empty()) wake_.notify_one();
}

std::function<void()> Controller::take(bool only_exempt) {
  if (!exempt_.empty()) {
    auto next = std::move(exempt_.front());
    exempt_.pop_front();
    if (next.seats > 0) next.level->occupy(to_seconds(Clock::now()), 0, next.seats, 1);
    ++next.level->dispatched_count;
    return std::move(next.run);
  }
  if (only_exempt) return nullptr;
  // Levels take turns as queues do, each the slower the less of the workers' time is its.
  Level* first = nullptr;
  for (auto& level : levels_) {
    if (level->queue.empty() || !level->queue.has_next(may_run_in(*level))) continue;
    if (first != nullptr && std::max(level->finish, virtual_time_) >= std::max(first->finish, virtual_time_)) continue;
    first = level.get();
  }
  if (first == nullptr) return nullptr;
  auto next = first->queue.pop(may_run_in(*first));
  waiting_bytes_ -= next->bytes;
  const double start = std::max(first->finish, virtual_time_);
  virtual_time_ = start;
  first->finish = start + next->work / first->weight;
  if (next->seats > 0) first->occupy(to_seconds(Clock::now()), next->sharer, next->seats, 1);
  if (next->request != nullptr) ++first->dispatched_count;
  return std::move(next->item);
}

void Controller::work(bool only_exempt) {
  // Below the threads that read and write: they are to have the processor whenever they want it.
  if (!only_exempt) setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 5);
  auto& wake = only_exempt ? wake_exempt_ : wake_;
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (only_exempt) {
      answer_refused();
      refuse_expired();
    }
    auto task = take(only_exempt);
    if (task == nullptr) {
      if (stopping_) return;
      const bool has_timer = only_exempt && (!refused_.empty() || waiting_bytes_ > 0);
      if (has_timer) {
        wake.wait_until(mutex_, refused_.empty() ? Clock::now() + kSweep : std::min(refused_.front().first, Clock::now() + kSweep));
      } else {
        wake.wait(mutex_);
      }
      continue;
    }
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace berth::apiserver::flow
