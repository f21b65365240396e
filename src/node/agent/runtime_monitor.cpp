#include "node/agent/runtime_monitor.h"

#include <filesystem>

#include "base/log.h"
#include "node/agent/container_logs.h"
#include "node/agent/image_volumes.h"
#include "node/agent/mounts.h"
#include "node/agent/thread_memory.h"
#include "node/agent/volumes.h"
#include "node/csi/csi_volumes.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;
constexpr int kLogPasses = 10;  // containerLogMonitorInterval: 10 s
constexpr int kStatusPasses = 10, kWeighPasses = 30;
constexpr const char* kRuntimeDown = "container runtime is down";

std::string log_directory_of(const std::string& root, const json::Value& sandbox, const std::string& uid) {
  return fmt::format("{}/logs/{}_{}_{}", root, json::get_string(sandbox, {"metadata", "namespace"}),
                     json::get_string(sandbox, {"metadata", "name"}), uid);
}

}  // namespace

RuntimeMonitor::~RuntimeMonitor() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void RuntimeMonitor::start() {
  thread_ = std::thread([this] { watch(); });
}

void RuntimeMonitor::watch() {
  while (!stopping_) {
    relist();
    environment_.pods.bury();
    release_thread_memory();
    if (passes_ % kLogPasses == 0) rotate_logs();
    if (passes_ % kWeighPasses == 0) weigh_burstable_pods();
    ++passes_;
    for (int i = 0; i < 10 && !stopping_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void RuntimeMonitor::relist() {
  const auto sandboxes = environment_.runtime.call("RuntimeService/ListPodSandbox", json::Object{}, 5000);
  const auto containers = sandboxes ? environment_.runtime.call("RuntimeService/ListContainers", json::Object{}, 5000) : sandboxes;
  if (!sandboxes || !containers) {
    if (troubles_ != std::vector<std::string>{kRuntimeDown})
      log::warning("node", "the container runtime does not answer: {}", (sandboxes ? containers : sandboxes).error().message);
    return report_health({kRuntimeDown});
  }
  if (passes_ % kStatusPasses == 0 || !troubles_.empty()) report_health(find_troubles());
  std::map<std::string, std::vector<std::string>> found;
  const auto note = [&](const json::Value& entry) {
    found[std::string(json::get_string(entry, {"labels", "io.kubernetes.pod.uid"}))].push_back(
        fmt::format("{}{}", json::get_string(entry, {"id"}), json::get_string(entry, {"state"})));
  };
  for (const json::Value& entry : json::get_array(*sandboxes, {"items"})) note(entry);
  for (const json::Value& entry : json::get_array(*containers, {"containers"})) note(entry);
  std::map<std::string, std::string> seen;
  for (auto& [uid, states] : found) {
    std::ranges::sort(states);  // The runtime lists in any order.
    seen[uid] = fmt::format("{}", fmt::join(states, ";"));
  }
  for (const auto& worker : environment_.pods.workers())
    if (seen[worker->uid()] != seen_[worker->uid()]) worker->wake();
  seen_ = std::move(seen);
  if (!environment_.pods.is_synced()) return;
  if (!std::exchange(volumes_settled_, true)) settle_driver_volumes();
  remove_orphans(*sandboxes);
  if (!directories_cleaned_) directories_cleaned_ = remove_orphaned_directories();
}

void RuntimeMonitor::settle_driver_volumes() {
  if (environment_.csi == nullptr) return;
  std::set<std::string> pods;
  for (const auto& worker : environment_.pods.workers()) pods.insert(worker->uid());
  environment_.csi->settle(pods);
}

/// Everything that was mounted for a pod that is gone. False: a driver has not given back what it mounted; it is asked, nobody waits.
bool RuntimeMonitor::release_volumes(const std::string& uid, const std::string& directory) {
  static const std::atomic<bool> kWithoutWaiting{true};
  if (environment_.image_volumes) environment_.image_volumes->release(directory);
  unmount_below(directory + "/volume-subpaths");
  if (environment_.csi != nullptr && !environment_.csi->release(uid, kWithoutWaiting)) return false;
  (void)tear_down_volumes(directory);
  return true;
}

/// Sandboxes of this node's pods that the API no longer has (deleted while the agent was away). Others' sandboxes are left alone.
void RuntimeMonitor::remove_orphans(const json::Value& sandboxes) {
  for (const json::Value& sandbox : json::get_array(sandboxes, {"items"})) {
    const std::string uid(json::get_string(sandbox, {"labels", "io.kubernetes.pod.uid"}));
    if (uid.empty() || environment_.pods.contains(uid)) continue;
    const std::string directory = environment_.root + "/pods/" + uid, logs = log_directory_of(environment_.root, sandbox, uid);
    std::error_code error;
    if (!fs::exists(directory, error) && !fs::exists(logs, error)) continue;
    const json::Value id = json::Object{{"pod_sandbox_id", json::get_string(sandbox, {"id"})}};
    (void)environment_.runtime.call("RuntimeService/StopPodSandbox", id, 60'000);
    (void)environment_.runtime.call("RuntimeService/RemovePodSandbox", id, 60'000);
    if (!release_volumes(uid, directory)) continue;
    for (const char* qos : {"", "/burstable", "/besteffort"})
      (void)environment_.cgroups.remove(environment_.pods_cgroup + qos + "/pod" + uid);
    fs::remove_all(logs, error);
  }
}

void RuntimeMonitor::report_health(std::vector<std::string> troubles) {
  if (troubles == troubles_) return;
  troubles_ = troubles;
  environment_.health_changed(std::move(troubles));
}

/// The runtime's own conditions, as the kubelet shows them.
std::vector<std::string> RuntimeMonitor::find_troubles() {
  const auto status = environment_.runtime.call("RuntimeService/Status", json::Object{}, 5000);
  if (!status) return {kRuntimeDown};
  std::vector<std::string> out;
  for (const json::Value& condition : json::get_array(*status, {"status", "conditions"})) {
    if (json::get_bool(condition, {"status"})) continue;
    const std::string_view type = json::get_string(condition, {"type"});
    const char* what = type == "NetworkReady" ? "container runtime network not ready" : "container runtime not ready";
    out.push_back(fmt::format("{}: {}=false reason:{} message:{}", what, type, json::get_string(condition, {"reason"}),
                              json::get_string(condition, {"message"})));
  }
  return out;
}

/// The group above Burstable pods weighs what they ask for together.
void RuntimeMonitor::weigh_burstable_pods() {
  std::int64_t milli = 0;
  for (const auto& worker : environment_.pods.workers()) {
    if (worker->is_over()) continue;
    const eviction::PodFacts facts = eviction::read_pod_facts(worker->pod());
    if (facts.qos == eviction::QosClass::kBurstable) milli += eviction::pod_request(facts, "cpu").milli_value();
  }
  const CgroupLimits limits{.cpu_shares = static_cast<std::uint64_t>(cpu_shares(milli))};
  if (const auto set = environment_.cgroups.set_limits(environment_.pods_cgroup + "/burstable", limits); !set)
    log::warning("node", "{}", set.error().message);
}

void RuntimeMonitor::rotate_logs() {
  for (const auto& worker : environment_.pods.workers()) {
    const PodState state = worker->state();
    const PodSpec spec = read_pod_spec(worker->pod());
    for (std::size_t i = 0; i < state.containers.size() && i < spec.containers.size(); ++i) {
      const ContainerRecord& record = state.containers[i];
      if (record.state.kind != ContainerState::Kind::kRunning) continue;
      const std::string file = fmt::format("{}/{}/{}.log", worker->log_directory(), spec.containers[i].name, record.restart_count);
      std::error_code error;
      if (static_cast<std::int64_t>(fs::file_size(file, error)) <= environment_.log_max_bytes || error) continue;
      const std::string id = record.container_id.substr(record.container_id.find("://") + 3);
      const bool rotated = rotate_log(file, environment_.log_max_files, environment_.clock.now(), [&] {
        return environment_.runtime.call("RuntimeService/ReopenContainerLog", json::Object{{"container_id", id}}).has_value();
      });
      if (!rotated) log::warning("node", "the log {} could not be rotated", file);
    }
  }
}

/// Directories and cgroups of pods that nothing knows any more: a machine that went down between a pod's deletion and its cleaning.
/// False: there are some still.
bool RuntimeMonitor::remove_orphaned_directories() {
  bool is_all = true;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(environment_.root + "/pods", error)) {
    const std::string uid = entry.path().filename();
    if (environment_.pods.contains(uid) || seen_.contains(uid)) continue;
    is_all = release_volumes(uid, entry.path()) && is_all;
  }
  for (const auto& entry : fs::directory_iterator(environment_.root + "/logs", error)) {
    const std::string name = entry.path().filename();
    const std::string uid = name.substr(name.rfind('_') + 1);
    if (!environment_.pods.contains(uid) && !seen_.contains(uid)) fs::remove_all(entry.path(), error);
  }
  for (const char* qos : {"", "/burstable", "/besteffort"})
    for (const std::string& child : environment_.cgroups.children(environment_.pods_cgroup + qos))
      if (child.starts_with("pod") && !environment_.pods.contains(child.substr(3)) && !seen_.contains(child.substr(3)))
        (void)environment_.cgroups.remove(environment_.pods_cgroup + qos + "/" + child);
  return is_all;
}

}  // namespace berth::node::agent
