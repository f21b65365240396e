#include "node/agent/node_drivers.h"

#include "base/log.h"
#include "client/client.h"
#include "node/agent/machine.h"
#include "node/agent/node_pods.h"
#include "node/cpus/cpu_manager.h"
#include "node/csi/csi_volumes.h"
#include "node/devices/claim_drivers.h"
#include "node/devices/device_plugins.h"
#include "node/devices/pod_resources.h"
#include "node/eviction/kubelet_config.h"
#include "node/plugins/plugin_watcher.h"

namespace berth::node::agent {

NodeDrivers::NodeDrivers(const Clock& clock) : clock_(clock) {}
NodeDrivers::~NodeDrivers() { stop_watching(); }

void NodeDrivers::take_device_plugins(const std::string& directory, const std::string& checkpoint, std::function<void()> changed) {
  if (directory.empty()) return;
  devices::PluginOptions options{.directory = directory, .checkpoint = checkpoint};
  options.changed = std::move(changed);
  auto started = devices::DevicePlugins::start(clock_, std::move(options));
  if (!started) return log::warning("node", "this node takes no device plugins: {}", started.error().message);
  devices_ = std::move(*started);
  add_handler(plugins::kDevicePlugin, devices_->handler());
}

void NodeDrivers::serve_csi(csi::CsiOptions options) {
  auto started = csi::CsiVolumes::start(clock_, std::move(options));
  if (!started) return log::warning("node", "this node takes no CSI drivers: {}", started.error().message);
  csi_ = std::move(*started);
  add_handler(plugins::kCsiPlugin, csi_->handler());
}

namespace {

/// What drivers published that are not there any more: pods would be placed for devices that nobody can prepare.
Result<void> remove_slices(client::Client& blocking, const std::string& node_name, const std::string& driver) {
  client::Call call{.verb = "deletecollection", .gvr = {"resource.k8s.io", "v1", "resourceslices"}};
  call.query = "fieldSelector=spec.nodeName%3D" + node_name + (driver.empty() ? "" : "%2Cspec.driver%3D" + driver);
  const auto done = blocking.call_and_wait(std::move(call));
  if (done || done.error().code == 404) return {};
  return fail(ErrorCode::kUnavailable, done.error().message);
}

}  // namespace

void NodeDrivers::take_claim_drivers(client::Client& blocking, const std::string& node_name, const std::string& checkpoint,
                                     std::function<void(const std::string& uid)> health_changed) {
  devices::ClaimDriverOptions options{.checkpoint = checkpoint, .boot_id = first_line("/proc/sys/kernel/random/boot_id")};
  options.remove_slices = [&blocking, node_name](const std::string& driver) { return remove_slices(blocking, node_name, driver); };
  options.health_changed = std::move(health_changed);
  auto started = devices::ClaimDrivers::start(clock_, std::move(options));
  if (!started) return log::warning("node", "this node takes no DRA drivers: {}", started.error().message);
  claims_ = std::move(*started);
  add_handler(plugins::kDraPlugin, claims_->handler());
}

void NodeDrivers::tell_of_pods(const std::string& directory, const NodePods& pods) {
  if (directory.empty()) return;
  devices::PodResourcesOptions options{
      .directory = directory, .pods = {}, .plugins = devices_.get(), .claims = claims_.get(), .cpus = cpus_.get()};
  options.pods = [&pods] {
    std::vector<json::Value> out;
    for (const auto& worker : pods.workers())
      if (!worker->is_over()) out.push_back(worker->pod());
    return out;
  };
  auto started = devices::PodResources::start(std::move(options));
  if (!started) return log::warning("node", "nobody is told which pod has which devices: {}", started.error().message);
  pod_resources_ = std::move(*started);
}

void NodeDrivers::watch(const std::string& directory, const NodePods& pods) {
  if (directory.empty()) return;
  plugins::WatcherOptions options{.directory = directory};
  options.handlers = handlers_;
  if (claims_)
    claims_->keep_looking(std::chrono::seconds(1), [&pods]() -> devices::ClaimDrivers::Pods {
      if (!pods.is_synced()) return std::nullopt;
      std::set<std::string> out;
      for (const auto& worker : pods.workers()) out.insert(worker->uid());
      return out;
    });
  auto started = plugins::PluginWatcher::start(clock_, std::move(options));
  if (started)
    watcher_ = std::move(*started);
  else
    log::warning("node", "this node finds no drivers: {}", started.error().message);
}

Result<void> NodeDrivers::manage_cpus(const eviction::KubeletSettings& settings, const std::string& root, std::function<void()> changed) {
  cpus::CpuManagerOptions options{.policy = settings.cpu_manager_policy, .reserved = settings.reserved_system_cpus};
  options.options.insert(settings.cpu_manager_policy_options.begin(), settings.cpu_manager_policy_options.end());
  for (const auto* reserved : {&settings.kube_reserved, &settings.system_reserved})
    if (const auto found = reserved->find("cpu"); found != reserved->end())
      if (const auto amount = model::Quantity::parse(found->second)) options.reserved_milli += amount->milli_value();
  options.checkpoint = root + "/cpu_manager_state";
  options.changed = std::move(changed);
  auto started = cpus::CpuManager::start(std::move(options));
  if (!started) return std::unexpected(started.error());
  cpus_ = std::move(*started);
  return {};
}

std::optional<Refusal> NodeDrivers::refuse(const json::Value& pod, const std::vector<json::Value>& active) {
  std::set<std::string> others;
  for (const auto& other : active) others.emplace(json::get_string(other, {"metadata", "uid"}));
  if (cpus_)
    if (auto refusal = cpus_->admit(pod, others)) return Refusal{std::move(refusal->reason), std::move(refusal->message)};
  if (!devices_) return std::nullopt;
  const auto given = devices_->admit(pod, std::move(others));
  if (given) return std::nullopt;
  if (cpus_) cpus_->release(std::string(json::get_string(pod, {"metadata", "uid"})));
  return Refusal{"UnexpectedAdmissionError", given.error().message};
}

void NodeDrivers::give_to(PodEnvironment& environment) const {
  environment.claims = claims_.get();
  environment.cpus = cpus_.get();
  auto* plugins = devices_.get();
  if (plugins == nullptr) return;
  environment.devices = [plugins](const std::string& uid, const std::string& container) { return plugins->prepare(uid, container); };
  environment.held_devices = [plugins](const std::string& uid, const std::string& container) { return plugins->held(uid, container); };
}

void NodeDrivers::stop_watching() {
  watcher_.reset();
  pod_resources_.reset();
  if (claims_) claims_->stop_looking();
}

void NodeDrivers::stop_csi() { csi_.reset(); }

}  // namespace berth::node::agent
