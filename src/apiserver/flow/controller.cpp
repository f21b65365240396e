#include "apiserver/flow/controller.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace

Controller::Controller(const Limits& limits, metrics::Registry& registry) : limits_(limits) {
  int shares = 0;
  for (const auto& level : default_levels()) shares += level.nominal_shares;
  const int total = limits.inflight_read + limits.inflight_mutating;
  for (const auto& config : default_levels()) {
    auto& level = levels_.emplace_back(config);
    level.limit = (total * config.nominal_shares + shares - 1) / shares;
    const metrics::Labels labels{{"priority_level", config.name}};
    registry
        .gauge("apiserver_flowcontrol_nominal_limit_seats", "Nominal number of execution seats configured for each priority level", labels)
        .set(level.limit);
    level.executing = &registry.gauge("apiserver_flowcontrol_current_executing_seats",
                                      "Concurrency (number of seats) occupied by the currently executing requests", labels);
    level.waiting = &registry.gauge("apiserver_flowcontrol_current_inqueue_requests",
                                    "Number of requests currently pending in queues of the API Priority and Fairness subsystem", labels);
  }
  for (const auto& schema : default_schemas()) {
    const metrics::Labels labels{{"flow_schema", schema.name}, {"priority_level", default_levels()[schema.level].name}};
    Counters counters;
    counters.dispatched = &registry.counter("apiserver_flowcontrol_dispatched_requests_total",
                                            "Number of requests executed by API Priority and Fairness subsystem", labels);
    const auto rejected = [&](std::string reason) {
      auto with_reason = labels;
      with_reason.emplace_back("reason", std::move(reason));
      return &registry.counter("apiserver_flowcontrol_rejected_requests_total",
                               "Number of requests rejected by API Priority and Fairness subsystem", with_reason);
    };
    counters.queue_full = rejected("queue-full");
    counters.time_out = rejected("time-out");
    counters.limit = rejected("concurrency-limit");
    counters.memory = rejected("memory");
    counters_.push_back(counters);
  }
  threads_.emplace_back([this] { work(true); });
  for (int i = 0; i < std::max(1, limits.workers); ++i) threads_.emplace_back([this] { work(false); });
}

Seats& Seats::operator=(Seats&& other) noexcept {
  reset();
  controller_ = std::exchange(other.controller_, nullptr);
  where_ = std::move(other.where_);
  count_ = other.count_;
  return *this;
}

void Seats::reset() {
  if (auto* controller = std::exchange(controller_, nullptr)) controller->finish(where_, count_);
}

void Controller::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  wake_.notify_all();
  wake_exempt_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool Controller::runs_here(const Classified& where, double cost_us, int seats) {
  if (cost_us >= kHeavyUs) return false;
  if (!default_levels()[where.level].is_exempt) {
    if (is_shed(where) || wear.is_worn_out(Clock::now())) return false;
    if (seats > 0) {
      const std::lock_guard lock(mutex_);
      auto& level = levels_[where.level];
      if (!level.queue.empty() || !has_room(level, seats)) return false;
      level.seats += seats;
      level.executing->set(level.seats);
    }
  }
  counters_of(*where.schema).dispatched->add();
  return true;
}

void Controller::spent(Clock::time_point from) { wear.add(from, Clock::now()); }

void Controller::submit(Work work) {
  const bool is_exempt = default_levels()[work.where.level].is_exempt;
  if (runs_here(work.where, work.cost_us, work.seats)) {
    const auto from = Clock::now();
    work.run();
    return spent(from);
  }
  if (is_shed(work.where) && work.seats > 0) {
    counters_of(*work.where.schema).memory->add();
    return refuse_later(std::move(work), "memory");
  }
  std::unique_lock lock(mutex_);
  if (!is_exempt) return enqueue(lock, std::move(work));
  exempt_.push_back([this, work = std::make_shared<Work>(std::move(work))] {
    counters_of(*work->where.schema).dispatched->add();
    work->run();
  });
  wake_exempt_.notify_one();
}

void Controller::post(Work work) {
  const auto hash = flow_hash(work.where.schema->name, work.where.flow);
  const double cost = std::max(work.cost_us, 50.0);
  const int seats = work.seats;
  const std::lock_guard lock(mutex_);
  auto& level = levels_[work.where.level];
  const bool is_exempt = default_levels()[work.where.level].queues == 0;
  if (!is_exempt && level.queue.push(hash, {cost, seats, 0, work.run}, true)) {
    level.waiting->set(static_cast<double>(level.queue.size()));
    wake_.notify_one();
    return;
  }
  exempt_.push_back(std::move(work.run));
  wake_exempt_.notify_one();
}

void Controller::enqueue(std::unique_lock<std::mutex>& lock, Work work) {
  auto& level = levels_[work.where.level];
  const auto& schema = *work.where.schema;
  const auto hash = flow_hash(schema.name, work.where.flow);
  const bool queues = default_levels()[work.where.level].queues > 0;
  const auto shared = std::make_shared<Work>(std::move(work));
  auto item = [this, shared, deadline = Clock::now() + limits_.longest_wait] {
    if (Clock::now() < deadline) {
      counters_of(*shared->where.schema).dispatched->add();
      return shared->run();
    }
    finish(shared->where, shared->seats);
    counters_of(*shared->where.schema).time_out->add();
    shared->reject("time-out");
  };
  const bool has_memory = waiting_bytes_ + shared->bytes <= limits_.waiting_bytes;
  if (has_memory && level.queue.push(hash, {std::max(shared->cost_us, 50.0), shared->seats, shared->bytes, std::move(item)})) {
    waiting_bytes_ += shared->bytes;
    level.waiting->set(static_cast<double>(level.queue.size()));
    wake_.notify_one();
    return;
  }
  const bool is_kept_back = is_flood(level, hash);
  lock.unlock();
  auto& counters = counters_of(schema);
  (queues ? counters.queue_full : counters.limit)->add();
  const std::string_view reason = queues ? "queue-full" : "concurrency-limit";
  if (is_kept_back) return refuse_later(std::move(*shared), reason);
  shared->reject(reason);
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

void Controller::refuse_later(Work work, std::string_view reason) {
  if (work.shrink) work.shrink();
  const std::lock_guard lock(mutex_);
  refused_.emplace_back(Clock::now() + kPause, [reject = std::move(work.reject), reason] { reject(reason); });
  wake_exempt_.notify_one();
}

void Controller::answer_refused(std::unique_lock<std::mutex>& lock) {
  while (!stopping_ && !refused_.empty() && refused_.front().first <= Clock::now()) {
    auto answer = std::move(refused_.front().second);
    refused_.pop_front();
    lock.unlock();
    answer();
    answer = nullptr;
    lock.lock();
  }
}

void Controller::finish(const Classified& where, int seats) {
  if (seats == 0 || default_levels()[where.level].is_exempt) return;
  const std::lock_guard lock(mutex_);
  auto& level = levels_[where.level];
  level.seats -= seats;
  level.executing->set(level.seats);
  if (!level.queue.empty()) wake_.notify_one();
}

std::function<void()> Controller::take(bool only_exempt) {
  if (!exempt_.empty()) {
    auto task = std::move(exempt_.front());
    exempt_.pop_front();
    return task;
  }
  if (only_exempt) return nullptr;
  // Levels take turns as queues do, each the slower the fewer shares it has.
  Level* first = nullptr;
  std::size_t at = 0;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    auto& level = levels_[i];
    if (level.queue.empty() || !has_room(level, 1)) continue;
    if (first != nullptr && std::max(level.finish, virtual_time_) >= std::max(first->finish, virtual_time_)) continue;
    first = &level;
    at = i;
  }
  if (first == nullptr) return nullptr;
  auto next = first->queue.pop();
  waiting_bytes_ -= next->bytes;
  first->waiting->set(static_cast<double>(first->queue.size()));
  const double start = std::max(first->finish, virtual_time_);
  virtual_time_ = start;
  first->finish = start + next->work / std::max(1, default_levels()[at].nominal_shares);
  first->seats += next->seats;
  first->executing->set(first->seats);
  return std::move(next->item);
}

void Controller::work(bool only_exempt) {
  // Below the threads that read and write: they are to have the processor whenever they want it.
  if (!only_exempt) setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 5);
  auto& wake = only_exempt ? wake_exempt_ : wake_;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (only_exempt) answer_refused(lock);
    auto task = take(only_exempt);
    if (task == nullptr) {
      if (stopping_) return;
      if (only_exempt && !refused_.empty()) {
        wake.wait_until(lock, refused_.front().first);
      } else {
        wake.wait(lock);
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
