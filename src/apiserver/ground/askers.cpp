#include "apiserver/ground/askers.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mutex.h"

namespace berth::apiserver {
namespace {

thread_local bool is_asker = false;
/// How often what has waited too long is looked for.
constexpr std::chrono::milliseconds kSweep{250};

}  // namespace

Askers::Askers(const AskerLimits& limits) : limits_(limits), most_of_service_(std::max(1, limits.threads / 2)) {
  for (int i = 0; i < std::max(2, limits.threads); ++i) threads_.emplace_back([this] { run(); });
}

bool Askers::is_one() { return is_asker; }

void Askers::stop() {
  std::unordered_map<std::string, Service> dropped;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) return;
    dropped.swap(services_);
    turns_.clear();
    waiting_ = 0;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool Askers::post(Job job) {
  const MutexLock lock(mutex_);
  if (stopping_ || waiting_ >= limits_.most_waiting) return false;
  const auto [found, is_new] = services_.try_emplace(job.whom);
  Service& service = found->second;
  if (is_new) turns_.push_back(job.whom);
  auto line = service.by_who.find(job.who);
  if (line == service.by_who.end()) {
    service.lines.push_back({job.who, {}});
    line = service.by_who.emplace(job.who, std::prev(service.lines.end())).first;
  }
  auto& jobs = line->second->jobs;
  if (jobs.size() >= limits_.most_of_one) return false;
  jobs.push_back({std::move(job), Clock::now() + limits_.longest_wait});
  ++waiting_;
  wake_.notify_one();
  return true;
}

Askers::Services::iterator Askers::next_service() {
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    turns_.push_back(std::move(turns_.front()));
    turns_.pop_front();
    const auto found = services_.find(turns_.back());
    if (next_line(found->second) != found->second.lines.end()) return found;
  }
  return services_.end();
}

std::list<Askers::Line>::iterator Askers::next_line(Service& service) const {
  const int left = most_of_service_ - service.running;
  if (left <= 0) return service.lines.end();
  return std::ranges::find_if(service.lines, [&](const Line& line) {
    const auto own = service.running_of.find(line.who);
    return own == service.running_of.end() || own->second < left;
  });
}

Askers::Waiting Askers::take(Service& service, std::list<Line>::iterator line) {
  Waiting out = std::move(line->jobs.front());
  line->jobs.pop_front();
  ++service.running;
  ++service.running_of[line->who];
  if (line->jobs.empty()) {
    service.by_who.erase(line->who);
    service.lines.erase(line);
  } else {
    service.lines.splice(service.lines.end(), service.lines, line);
  }
  return out;
}

Askers::Services::iterator Askers::forget_if_idle(Services::iterator at) {
  if (at->second.running > 0 || !at->second.lines.empty()) return std::next(at);
  std::erase(turns_, at->first);
  return services_.erase(at);
}

void Askers::refuse_late() {
  const auto now = Clock::now();
  std::vector<Waiting> late;
  for (auto at = services_.begin(); at != services_.end();) {
    Service& service = at->second;
    for (auto line = service.lines.begin(); line != service.lines.end();) {
      while (!line->jobs.empty() && line->jobs.front().until <= now) {
        late.push_back(std::move(line->jobs.front()));
        line->jobs.pop_front();
        --waiting_;
      }
      if (line->jobs.empty()) {
        service.by_who.erase(line->who);
        line = service.lines.erase(line);
      } else {
        ++line;
      }
    }
    at = forget_if_idle(at);
  }
  if (late.empty()) return;
  const MutexUnlock free(mutex_);
  for (Waiting& one : late) one.job.refuse();
  late.clear();
}

void Askers::run() {
  is_asker = true;
  // Below the threads that read and write, as flow control's.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 5);
  MutexLock lock(mutex_);
  while (!stopping_) {
    refuse_late();
    const auto service = stopping_ ? services_.end() : next_service();
    if (service == services_.end()) {
      if (stopping_) return;
      if (waiting_ > 0) {
        wake_.wait_for(mutex_, kSweep);
      } else {
        wake_.wait(mutex_);
      }
      continue;
    }
    const std::string name = service->first;
    Waiting next = take(service->second, next_line(service->second));
    --waiting_;
    const std::string who = next.job.who;
    lock.unlock();
    next.job.run();
    next = {};
    lock.lock();
    const auto found = services_.find(name);
    if (found == services_.end()) continue;  // Stopped meanwhile.
    --found->second.running;
    if (const auto own = found->second.running_of.find(who); --own->second == 0) found->second.running_of.erase(own);
    forget_if_idle(found);
    if (waiting_ > 0) wake_.notify_one();
  }
}

}  // namespace berth::apiserver
