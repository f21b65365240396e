#include "node/agent/node_drivers.h"

#include "base/log.h"
#include "client/client.h"
#include "model/views/pod_view.h"
#include "node/agent/machine.h"
#include "node/agent/node_pods.h"
#include "node/agent/topology_reporter.h"
#include "node/cpus/cpu_manager.h"
#include "node/csi/csi_volumes.h"
#include "node/devices/claim_drivers.h"
#include "node/devices/device_plugins.h"
#include "node/devices/pod_resources.h"
#include "node/eviction/kubelet_config.h"
#include "node/numa/memory_manager.h"
#include "node/numa/numa_machine.h"
#include "node/plugins/plugin_watcher.h"

namespace berth::node::agent {

NodeDrivers::NodeDrivers(const Clock& clock) : clock_(clock) {}
NodeDrivers::~NodeDrivers() { stop_watching(); }

void NodeDrivers::take_device_plugins(const std::string& directory, const std::string& checkpoint, std::function<void()> changed) {
  if (directory.empty()) return;
  devices::PluginOptions options{.directory = directory, .checkpoint = checkpoint};
  options.machine = machine_.nodes;
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
      .directory = directory, .pods = {}, .plugins = devices_.get(), .claims = claims_.get(), .cpus = cpus_.get(), .memory = memory_.get()};
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

namespace {

cpus::CpuManagerOptions cpu_options(const eviction::KubeletSettings& settings, const std::string& root) {
  cpus::CpuManagerOptions out{.policy = settings.cpu_manager_policy, .reserved = settings.reserved_system_cpus};
  out.options.insert(settings.cpu_manager_policy_options.begin(), settings.cpu_manager_policy_options.end());
  for (const auto* reserved : {&settings.kube_reserved, &settings.system_reserved})
    if (const auto found = reserved->find("cpu"); found != reserved->end())
      if (const auto amount = model::Quantity::parse(found->second)) out.reserved_milli += amount->milli_value();
  out.checkpoint = root + "/cpu_manager_state";
  return out;
}

Result<numa::MemoryManagerOptions> memory_options(const eviction::KubeletSettings& settings, const eviction::NodeResources& resources,
                                                  const std::string& root) {
  numa::MemoryManagerOptions out{.policy = settings.memory_manager_policy};
  for (const auto& [number, limits] : settings.reserved_memory)
    for (const auto& [type, text] : limits) {
      const auto amount = model::Quantity::parse(text);
      if (!amount) return invalid(fmt::format("reservedMemory: NUMA node {}, {}: \"{}\" is no quantity", number, type, text));
      out.reserved[number][type] += amount->value();
    }
  for (const auto& [type, amount] : resources.reservation)
    if (type == "memory" || type.starts_with("hugepages-")) out.node_total[type] = amount.value();
  out.checkpoint = root + "/memory_manager_state";
  return out;
}

}  // namespace

Result<void> NodeDrivers::manage_numa(const eviction::KubeletSettings& settings, const eviction::NodeResources& resources,
                                      const std::string& root, std::function<void()> changed) {
  auto cpu = cpu_options(settings, root);
  cpu.changed = std::move(changed);
  const auto capacity = resources.capacity.find("memory");
  const auto machine = numa::read_numa_machine(cpu.system_root, capacity == resources.capacity.end() ? 0 : capacity->second.value());
  if (!machine) return std::unexpected(machine.error());
  auto memory = memory_options(settings, resources, root);
  if (!memory) return std::unexpected(memory.error());
  auto policy = numa::alignment_policy(settings.topology_manager_policy, settings.topology_manager_scope,
                                       {settings.topology_manager_policy_options.begin(), settings.topology_manager_policy_options.end()},
                                       machine->layout);
  if (!policy) return std::unexpected(policy.error());
  if (const auto by_socket = cpu.options.find("align-by-socket");
      by_socket != cpu.options.end() && by_socket->second == "true" && policy->align == numa::Align::kSingleNumaNode)
    return invalid("Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option");
  auto cpus = cpus::CpuManager::start(std::move(cpu));
  if (!cpus) return std::unexpected(cpus.error());
  auto memories = numa::MemoryManager::start(*machine, std::move(*memory));
  if (!memories) return std::unexpected(memories.error());
  machine_ = machine->layout;
  alignment_ = *policy;
  cpus_ = std::move(*cpus);
  memory_ = std::move(*memories);
  return {};
}

std::vector<numa::Giver*> NodeDrivers::givers() const {
  std::vector<numa::Giver*> out;
  for (numa::Giver* one :
       {static_cast<numa::Giver*>(devices_.get()), static_cast<numa::Giver*>(cpus_.get()), static_cast<numa::Giver*>(memory_.get())})
    if (one != nullptr) out.push_back(one);
  return out;
}

std::optional<Refusal> NodeDrivers::refuse(const json::Value& pod, const std::vector<json::Value>& active) {
  std::set<std::string> known{std::string(json::get_string(pod, {"metadata", "uid"}))};
  for (const auto& other : active) known.emplace(json::get_string(other, {"metadata", "uid"}));
  const auto all = givers();
  for (numa::Giver* giver : all) giver->keep_only(known);
  return numa::admit(alignment_, machine_, numa::wishes_of(model::PodView::parse(pod)), all);
}

void NodeDrivers::publish_topology(client::Client& client, const std::string& node_name) {
  if (cpus_ || memory_ || alignment_.align != numa::Align::kNone) topology_ = std::make_unique<TopologyReporter>(client, clock_, node_name);
}

void NodeDrivers::stop_publishing() { topology_.reset(); }

void NodeDrivers::tell_topology(const NodePods& pods, const std::string& node_uid) {
  if (!topology_ || node_uid.empty() || !pods.is_synced()) return;
  std::set<std::string> active;
  for (const auto& worker : pods.workers())
    if (!worker->is_over()) active.insert(worker->uid());
  for (numa::Giver* giver : givers()) giver->keep_only(active);
  numa::TopologyReport report{.node_uid = node_uid, .policy = alignment_, .machine = machine_};
  report.gives_cpus = cpus_ != nullptr;
  report.gives_memory = memory_ != nullptr;
  if (cpus_) {
    report.threads_of_whole_cores = cpus_->threads_of_whole_cores();
    report.sockets = cpus_->sockets();
    cpus_->tell(report.offer);
  }
  if (memory_) memory_->tell(report.offer);
  if (devices_) devices_->tell(report.offer);
  topology_->tell(std::move(report));
}

void NodeDrivers::give_to(PodEnvironment& environment) const {
  environment.claims = claims_.get();
  environment.cpus = cpus_.get();
  environment.memory = memory_.get();
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

std::vector<eviction::VolumeUsage> NodeDrivers::volume_usage(const std::string& pod_uid) const {
  std::vector<eviction::VolumeUsage> out;
  if (csi_)
    for (const csi::VolumeFigures& one : csi_->figures(pod_uid)) out.push_back({one.name, one.usage, one.claim_ns, one.claim_name});
  return out;
}

}  // namespace berth::node::agent
