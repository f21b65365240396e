#include "node/agent/pressure.h"

#include <set>

#include "base/log.h"

namespace berth::node::agent {
namespace {

constexpr Duration kMonitoringInterval = std::chrono::seconds(10);  // Document 000 §21.2.4; cannot be changed.
constexpr Duration kMemoryPoll = std::chrono::milliseconds(200);

}  // namespace

PressureManager::PressureManager(PressureEnvironment environment, eviction::EvictionManager manager) : environment_(std::move(environment)), manager_(std::move(manager)) {}

PressureManager::~PressureManager() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void PressureManager::start() {
  thread_ = std::thread([this] { watch(); });
}

std::optional<std::string> PressureManager::refuse(const eviction::PodFacts& facts) {
  std::lock_guard lock(mutex_);
  return manager_.refuse(facts);
}

std::vector<eviction::NodeCondition> PressureManager::conditions() {
  std::lock_guard lock(mutex_);
  return conditions_;
}

/// The amount of memory below which a pass must not wait for the interval.
std::uint64_t PressureManager::memory_alarm_bytes() {
  std::uint64_t alarm = 0;
  for (const eviction::Threshold& threshold : manager_.thresholds())
    if (threshold.signal == eviction::Signal::kMemoryAvailable && threshold.has_operator && threshold.is_hard())
      alarm = std::max(alarm, static_cast<std::uint64_t>(std::max<std::int64_t>(0, threshold.value.of(model::Quantity::from_value(environment_.machine.memory_bytes)).value())));
  return alarm;
}

void PressureManager::watch() {
  if (!manager_.has_work()) return;
  const std::uint64_t alarm = memory_alarm_bytes();
  TimePoint next = environment_.clock.now();
  bool was_below = false;
  while (!stopping_) {
    const auto available = alarm > 0 ? memory_available(environment_.cgroups, environment_.paths) : std::nullopt;
    const bool below = available && *available < alarm;
    if (environment_.clock.now() >= next || (below && !was_below)) {
      const bool evicted = pass();
      next = environment_.clock.now() + (evicted ? Duration::zero() : kMonitoringInterval);
      was_below = below && !evicted;
    } else {
      was_below = below;
    }
    std::this_thread::sleep_for(kMemoryPoll);
  }
}

/// One pass of the eviction manager. True when a pod was evicted (and has stopped, or 30 s are over).
bool PressureManager::pass() {
  std::vector<std::shared_ptr<PodWorker>> active;
  std::vector<eviction::PodFacts> facts;
  for (const auto& worker : environment_.workers()) {
    const auto phase = parse_phase(json::get_string(worker->status(), {"phase"}));
    if (worker->is_stopped() || phase == PodPhase::kFailed || phase == PodPhase::kSucceeded) continue;
    active.push_back(worker);
    facts.push_back(eviction::read_pod_facts(worker->pod()));
  }
  const TimePoint now = environment_.clock.now();
  eviction::Summary summary;
  summary.node = observe_machine(environment_.cgroups, environment_.paths, now);
  std::vector<PodFigures> measured = measure_pods(environment_.runtime, environment_.cgroups, active, true, now);
  (void)summary_json(environment_.node_name, summary.node, measured, environment_.cgroups, environment_.paths, environment_.cpu_rates, now);  // Keeps the rates going for who asks next.
  for (PodFigures& figures : measured) summary.pods.emplace(figures.uid, std::move(figures.usage));
  const eviction::Outcome* outcome;
  {
    std::lock_guard lock(mutex_);
    outcome = &manager_.begin(facts, summary, now);
  }
  set_conditions();
  if (outcome->attempt)
    environment_.node_event("Warning", "EvictionThresholdMet", fmt::format("Attempting to reclaim {}", eviction::to_string(*outcome->attempt)));
  if (!outcome->reclaim.empty()) {
    for (const eviction::Reclaim reclaim : outcome->reclaim) reclaim == eviction::Reclaim::kContainers ? remove_dead_containers() : remove_unused_images();
    const eviction::NodeUsage after = observe_machine(environment_.cgroups, environment_.paths, environment_.clock.now());
    std::lock_guard lock(mutex_);
    outcome = &manager_.finish(&after);
  }
  for (const eviction::Eviction& eviction : outcome->evictions) {
    const auto& worker = active[eviction.pod];
    log::info("node", "evicting {}: {}", facts[eviction.pod].key(), eviction.message);
    environment_.pod_event(worker->pod(), "Warning", std::string(eviction::kEvictedReason), eviction.message);
    worker->fail_pod(std::string(eviction::kEvictedReason), eviction.message, std::chrono::seconds(eviction.grace_period_seconds), eviction.is_disruption);
  }
  for (const eviction::Eviction& eviction : outcome->evictions)
    for (int i = 0; i < 300 && !stopping_ && !active[eviction.pod]->is_stopped(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return !outcome->evictions.empty();
}

void PressureManager::set_conditions() {
  std::lock_guard lock(mutex_);
  if (conditions_ == manager_.conditions()) return;
  conditions_ = manager_.conditions();
  environment_.conditions_changed();
}

void PressureManager::remove_dead_containers() {
  const auto containers = environment_.runtime.call("RuntimeService/ListContainers", json::Object{{"filter", json::Object{{"state", json::Object{{"state", "CONTAINER_EXITED"}}}}}});
  if (!containers) return;
  for (const json::Value& container : json::get_array(*containers, {"containers"}))
    if (!json::get_string(container, {"labels", "io.kubernetes.pod.uid"}).empty())
      (void)environment_.runtime.call("RuntimeService/RemoveContainer", json::Object{{"container_id", json::get_string(container, {"id"})}});
}

void PressureManager::remove_unused_images() {
  const auto images = environment_.runtime.call("ImageService/ListImages", json::Object{});
  const auto containers = environment_.runtime.call("RuntimeService/ListContainers", json::Object{});
  if (!images || !containers) return;
  std::set<std::string> used;
  for (const json::Value& container : json::get_array(*containers, {"containers"})) {
    used.emplace(json::get_string(container, {"image_ref"}));
    used.emplace(json::get_string(container, {"image", "image"}));
  }
  for (const json::Value& image : json::get_array(*images, {"images"})) {
    bool needed = used.contains(std::string(json::get_string(image, {"id"}))) || json::get_bool(image, {"pinned"});
    for (const json::Value& tag : json::get_array(image, {"repo_tags"})) needed = needed || used.contains(std::string(json::as_view(tag))) || json::as_view(tag).find("pause") != std::string_view::npos;
    if (!needed) (void)environment_.runtime.call("ImageService/RemoveImage", json::Object{{"image", json::Object{{"image", json::get_string(image, {"id"})}}}});
  }
}


}  // namespace berth::node::agent
