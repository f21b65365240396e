#include "node/agent/pressure.h"

#include "base/log.h"
#include "base/mutex.h"
#include "node/agent/writable_layers.h"

namespace berth::node::agent {
namespace {

constexpr Duration kMonitoringInterval = std::chrono::seconds(10);  // Document 000 §21.2.4; cannot be changed.
/// How often memory is looked at when the kernel listens as well, and when it does not.
constexpr Duration kLookWithAlarm = std::chrono::milliseconds(500), kLookAlone = std::chrono::milliseconds(200);
constexpr Duration kLongestCleanup = std::chrono::seconds(30);
constexpr Duration kDiskSettles = std::chrono::seconds(3), kMemorySettles = std::chrono::milliseconds(500);
/// A runtime may take longer for the many files of a pod that has gone; the kubelet's figures of disks, too, are this old (its interval).
constexpr Duration kEvictedDiskSettles = std::chrono::seconds(10);

/// Disk figures of an earlier pass for one that had no time to measure.
void fill_in_disk(eviction::PodUsage& usage, const eviction::PodUsage& before) {
  for (eviction::ContainerUsage& container : usage.containers)
    for (const eviction::ContainerUsage& old : before.containers)
      if (old.name == container.name) container.logs = old.logs;
  usage.volumes = before.volumes;
  usage.ephemeral_storage = before.ephemeral_storage;
}

std::optional<eviction::MemoryUsage> memory_of(const PressureEnvironment& environment, const std::string& group) {
  const eviction::MemoryUsage memory = observe_group_memory(environment.cgroups, environment.paths, group, {});
  return memory.available_bytes ? std::optional(memory) : std::nullopt;
}

}  // namespace

PressureManager::PressureManager(PressureEnvironment environment, eviction::EvictionManager manager)
    : environment_(std::move(environment)),
      alarm_(environment_.cgroups, {environment_.paths.node_cgroup, environment_.paths.pods_cgroup}, environment_.paths.proc),
      manager_(std::move(manager)) {}

PressureManager::~PressureManager() {
  stopping_ = true;
  alarm_.stop();
  if (thread_.joinable()) thread_.join();
}

void PressureManager::start() {
  thread_ = std::thread([this] { watch(); });
}

std::optional<std::string> PressureManager::refuse(const eviction::PodFacts& facts) {
  MutexLock lock(mutex_);
  return manager_.refuse(facts);
}

std::vector<eviction::NodeCondition> PressureManager::conditions() {
  MutexLock lock(mutex_);
  return conditions_;
}

void PressureManager::watch() {
  if (!own_manager().has_work()) return;
  for (const eviction::Threshold& threshold : own_manager().thresholds()) {
    const bool is_node = threshold.signal == eviction::Signal::kMemoryAvailable,
               is_pods = threshold.signal == eviction::Signal::kAllocatableMemoryAvailable;
    if (!threshold.has_operator || (!is_node && !is_pods)) continue;
    std::uint64_t capacity = static_cast<std::uint64_t>(environment_.machine.memory_bytes);
    if (is_pods)
      if (const auto pods = environment_.cgroups.memory(environment_.paths.pods_cgroup); pods && pods->limit_bytes)
        capacity = std::min(capacity, *pods->limit_bytes);
    const std::int64_t bytes = threshold.value.of(model::Quantity::from_value(static_cast<std::int64_t>(capacity))).value();
    if (bytes > 0)
      memory_thresholds_.push_back(
          {is_node ? environment_.paths.node_cgroup : environment_.paths.pods_cgroup, static_cast<std::uint64_t>(bytes)});
  }
  arm();
  if (!memory_thresholds_.empty())
    log::info("node", "memory is watched by {}", alarm_.is_armed() ? alarm_.describe() + " and polling" : alarm_.describe());
  due_ = environment_.clock.now();
  while (!stopping_) {
    const bool is_due = environment_.clock.now() >= due_, is_short = is_newly_short();
    if ((is_due || is_short) && pass(!is_due)) continue;
    arm();
    Duration longest = due_ - environment_.clock.now();
    if (!memory_thresholds_.empty()) longest = std::min(longest, alarm_.is_armed() ? kLookWithAlarm : kLookAlone);
    if (alarm_.wait(longest) == MemoryAlarm::Wake::kStopped) return;
  }
}

/// Whether memory fell below any threshold since the last look.
bool PressureManager::is_newly_short() {
  bool newly = false;
  for (MemoryThreshold& threshold : memory_thresholds_) {
    const auto memory = memory_of(environment_, threshold.group);
    const bool is_short = memory && *memory->available_bytes < threshold.bytes;
    newly = newly || (is_short && !threshold.is_short);
    threshold.is_short = is_short;
  }
  return newly;
}

/// Page cache comes and goes: the levels follow it.
void PressureManager::arm() {
  std::vector<MemoryAlarm::Level> levels;
  for (const MemoryThreshold& threshold : memory_thresholds_) {
    const auto memory = memory_of(environment_, threshold.group);
    const auto group = environment_.cgroups.memory(threshold.group);
    if (memory && group)
      levels.push_back({threshold.group, alarm_usage_bytes(group->usage_bytes, *memory->available_bytes, threshold.bytes)});
  }
  alarm_.arm(levels);
}

/// One pass of the eviction manager; an urgent one takes the disk figures of the last that was not. True when a pod was evicted (and has
/// stopped, or had its time): then the next pass is due at once.
bool PressureManager::pass(bool is_urgent) {
  std::vector<std::shared_ptr<PodWorker>> active;
  std::vector<eviction::PodFacts> facts;
  for (const auto& worker : environment_.workers()) {
    const auto phase = parse_phase(json::get_string(worker->status(), {"phase"}));
    if (worker->is_stopped() || phase == PodPhase::kFailed || phase == PodPhase::kSucceeded) continue;
    active.push_back(worker);
    facts.push_back(eviction::read_pod_facts(worker->pod()));
  }
  const TimePoint now = environment_.clock.now();
  const eviction::Summary summary = measure(active, !is_urgent, now);
  const eviction::Outcome* outcome;
  {
    MutexLock lock(mutex_);
    outcome = &manager_.begin(facts, summary, now);
  }
  due_ = next_pass(*outcome, now);
  set_conditions();
  if (outcome->attempt)
    environment_.node_event("Warning", "EvictionThresholdMet",
                            fmt::format("Attempting to reclaim {}", eviction::to_string(*outcome->attempt)));
  if (!outcome->reclaim.empty()) {
    const eviction::NodeUsage after = reclaim(*outcome);
    MutexLock lock(mutex_);
    outcome = &manager_.finish(&after);
  }
  for (const eviction::Eviction& eviction : outcome->evictions) {
    const auto& worker = active[eviction.pod];
    log::info("node", "evicting {}: {}", facts[eviction.pod].key(), eviction.message);
    worker->fail_pod(std::string(eviction::kEvictedReason), eviction.message, std::chrono::seconds(eviction.grace_period_seconds),
                     eviction.is_disruption);
    environment_.pod_event(worker->pod(), "Warning", std::string(eviction::kEvictedReason), eviction.message);
    if (eviction.is_disruption && outcome->acting_on) environment_.evicted(std::string(eviction::to_string(outcome->acting_on->signal)));
  }
  if (outcome->evictions.empty()) return false;
  const TimePoint end = environment_.clock.now() + kLongestCleanup;
  for (const eviction::Eviction& eviction : outcome->evictions)
    while (!stopping_ && !active[eviction.pod]->is_stopped() && environment_.clock.now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // What the pod held is free a moment after it has stopped: the next one must not be taken for that.
  const bool was_memory =
      outcome->acting_on && eviction::condition_of(outcome->acting_on->signal) == eviction::NodeCondition::kMemoryPressure;
  (void)wait_for_relief(was_memory ? kMemorySettles : kEvictedDiskSettles);
  due_ = environment_.clock.now();
  return true;
}

eviction::Summary PressureManager::measure(const std::vector<std::shared_ptr<PodWorker>>& active, bool with_disk, TimePoint now) {
  eviction::Summary summary;
  summary.node = observe_machine(environment_.cgroups, environment_.paths, now);
  std::vector<PodFigures> measured = measure_pods(environment_.runtime, environment_.cgroups, active, with_disk, now);
  if (with_disk && is_short_of_disk(summary.node)) measure_writable_layers(measured, environment_.paths.proc);
  sample_rates(measured, environment_.cgroups, environment_.paths, environment_.cpu_rates, now);
  for (PodFigures& figures : measured) {
    if (!with_disk)
      if (const auto before = disk_figures_.find(figures.uid); before != disk_figures_.end()) fill_in_disk(figures.usage, before->second);
    summary.pods.emplace(figures.uid, std::move(figures.usage));
  }
  if (with_disk) disk_figures_ = summary.pods;
  return summary;
}

/// Whether the disk's figures of the pods will decide: then they have to be of now.
bool PressureManager::is_short_of_disk(const eviction::NodeUsage& node) const {
  return std::ranges::any_of(own_manager().met_by(node), [](const eviction::Threshold& t) {
    return eviction::condition_of(t.signal) == eviction::NodeCondition::kDiskPressure;
  });
}

/// In ten seconds, or when the first grace period that runs ends.
TimePoint PressureManager::next_pass(const eviction::Outcome& outcome, TimePoint now) const {
  TimePoint next = now + kMonitoringInterval;
  for (const eviction::MetThreshold& met : outcome.observed) {
    const TimePoint end = met.first_observed + Duration((met.threshold.grace_period_ns + 999) / 1000);
    if (end > now) next = std::min(next, end);
  }
  return next;
}

/// Runs the clean-ups and returns the figures after them.
eviction::NodeUsage PressureManager::reclaim(const eviction::Outcome& outcome) {
  std::size_t removed = 0;
  for (const eviction::Reclaim reclaim : outcome.reclaim) {
    const bool containers = reclaim == eviction::Reclaim::kContainers;
    log::info("node", "trying to reclaim {} by deleting {}", eviction::to_string(*outcome.attempt),
              containers ? "dead containers" : "unused images");
    const auto done = containers ? environment_.collector.remove_dead_containers() : environment_.collector.remove_unused_images();
    if (done)
      removed += *done;
    else
      log::warning("node", "reclaiming {}: {}", eviction::to_string(*outcome.attempt), done.error().message);
  }
  // Runtimes delete files after they have answered.
  return wait_for_relief(removed > 0 ? kDiskSettles : Duration::zero());
}

/// Looks until no threshold is met any more, minimum reclaim included, at most for `longest`. Returns the latest figures.
eviction::NodeUsage PressureManager::wait_for_relief(Duration longest) {
  const TimePoint end = environment_.clock.now() + longest;
  for (;;) {
    eviction::NodeUsage node = observe_machine(environment_.cgroups, environment_.paths, environment_.clock.now());
    if (stopping_ || environment_.clock.now() >= end || own_manager().is_relieved(node)) return node;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void PressureManager::set_conditions() {
  MutexLock lock(mutex_);
  if (conditions_ == manager_.conditions()) return;
  conditions_ = manager_.conditions();
  environment_.conditions_changed();
}

}  // namespace berth::node::agent
