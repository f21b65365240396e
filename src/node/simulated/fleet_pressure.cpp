// Simulated nodes that run out of memory, disk or process ids: the same eviction core as on real nodes, with made-up figures.
#include "model/quantity.h"
#include "node/eviction/policies.h"
#include "node/simulated/fleet_state.h"

namespace berth::node::simulated {
namespace {

constexpr std::int64_t kMaxPid = 32768, kInodes = 6'553'600;

std::uint64_t capacity_of(const NodeTemplate& node_template, const char* name) {
  const auto found = node_template.capacity.find(name);
  const auto quantity = found == node_template.capacity.end() ? std::nullopt : model::Quantity::parse(found->second);
  return quantity && quantity->sign() > 0 ? static_cast<std::uint64_t>(quantity->value()) : 0;
}

std::uint64_t rest(std::uint64_t capacity, std::uint64_t used) { return capacity > used ? capacity - used : 0; }

/// Amounts are made-up doubles: negative never, absurd ones cut.
std::uint64_t whole(double amount) {
  return amount <= 0 ? 0 : amount >= 9e18 ? 9'000'000'000'000'000'000ULL : static_cast<std::uint64_t>(amount);
}

eviction::PodUsage pod_usage(const PodSimulation& pod, TimePoint now) {
  eviction::PodUsage usage;
  usage.uid = pod.spec().uid;
  std::uint64_t memory = 0, disk = 0, inodes = 0, processes = 0;
  for (std::size_t i = 0; i < pod.spec().containers.size(); ++i) {
    eviction::ContainerUsage container;
    container.name = pod.spec().containers[i].name;
    const std::uint64_t bytes = whole(pod.usage(i, "memory", now));
    container.memory = eviction::MemoryUsage{{}, bytes, bytes, now};
    eviction::FsUsage rootfs, logs;
    rootfs.used_bytes = whole(pod.usage(i, "disk", now));
    rootfs.inodes_used = whole(pod.usage(i, "inodes", now));
    logs.used_bytes = logs.inodes_used = 0;
    memory += bytes;
    disk += *rootfs.used_bytes;
    inodes += *rootfs.inodes_used;
    processes += whole(pod.usage(i, "pids", now));
    container.rootfs = rootfs;
    container.logs = logs;
    usage.containers.push_back(std::move(container));
  }
  usage.memory = eviction::MemoryUsage{{}, memory, memory, now};
  usage.process_count = processes;
  eviction::FsUsage ephemeral;
  ephemeral.used_bytes = disk;
  ephemeral.inodes_used = inodes;
  usage.ephemeral_storage = ephemeral;
  return usage;
}

}  // namespace

void Fleet::for_each_pod(std::string_view node, const std::function<void(const PodSimulation&)>& each) const {
  if (node.empty()) {
    for (const auto& [uid, pod] : pods_) each(pod->sim);
    return;
  }
  const auto found = nodes_.find(std::string(node));
  if (found == nodes_.end()) return;
  for (const std::string_view uid : found->second->pods)
    if (const auto pod = pods_.find(uid); pod != pods_.end()) each(pod->second->sim);
}

std::vector<std::string> Fleet::node_names() const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

eviction::NodeUsage Fleet::node_usage(const Node& node, TimePoint now, std::unordered_map<std::string, eviction::PodUsage>* pods) const {
  std::uint64_t memory = 0, disk = 0, inodes = 0, processes = 0;
  for (const std::string_view uid : node.pods) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) continue;
    eviction::PodUsage usage = pod_usage(pod->second->sim, now);
    memory += *usage.memory->working_set_bytes;
    disk += *usage.ephemeral_storage->used_bytes;
    inodes += *usage.ephemeral_storage->inodes_used;
    processes += *usage.process_count;
    if (pods) pods->emplace(uid, std::move(usage));
  }
  const std::uint64_t memory_capacity = capacity_of(*node.spec.node_template, "memory"),
                      disk_capacity = capacity_of(*node.spec.node_template, "ephemeral-storage");
  eviction::NodeUsage out;
  out.memory = eviction::MemoryUsage{rest(memory_capacity, memory), std::min(memory, memory_capacity), memory, now};
  const std::uint64_t pods_limit = node.pods_memory_limit.value_or(memory_capacity);
  out.pods_memory = eviction::MemoryUsage{rest(pods_limit, memory), std::min(memory, pods_limit), memory, now};
  eviction::FsUsage fs;
  fs.capacity_bytes = disk_capacity;
  fs.used_bytes = std::min(disk, disk_capacity);
  fs.available_bytes = rest(disk_capacity, disk);
  fs.inodes = kInodes;
  fs.inodes_used = std::min<std::uint64_t>(inodes, kInodes);
  fs.inodes_free = rest(kInodes, inodes);
  fs.time = now;
  out.fs = out.image_fs = out.container_fs = fs;
  out.max_pid = kMaxPid;
  out.running_processes = static_cast<std::int64_t>(std::min<std::uint64_t>(processes, kMaxPid));
  out.process_time = now;
  return out;
}

void Fleet::check_pressure(const NodeRef& node, TimePoint now) {
  // The kernel first: a container over its limit is killed whatever the node has left.
  for (const std::string& uid : std::vector<std::string>(node->pods.begin(), node->pods.end())) {
    const PodRef pod = pods_.at(uid);
    const PodSimulation& sim = pod->sim;
    for (std::size_t i = 0; i < sim.spec().containers.size(); ++i) {
      const std::int64_t limit = sim.behaviour().containers[i].memory_limit_bytes;
      if (limit <= 0 || sim.usage(i, "memory", now) <= static_cast<double>(limit)) continue;
      pod->sim.oom_kill(sim.spec().containers[i].name, now);
      touch(pod, now);
    }
  }
  if (!node->eviction) {
    auto config = eviction::manager_config(options_.kubelet);
    if (!config) return;  // Refused where options are read; a fleet made without asking has no eviction.
    node->eviction = std::make_unique<eviction::EvictionManager>(std::move(*config));
    (void)node->eviction->set_layout({});
  }
  eviction::Summary summary;
  summary.node = node_usage(*node, now, &summary.pods);
  std::vector<eviction::PodFacts> active;
  for (const std::string_view uid : node->pods) {
    const PodSimulation& sim = pods_.at(uid)->sim;
    if (sim.is_stopped() || sim.is_terminal() || !documents_) continue;
    if (const auto document = documents_(sim.spec().ns, sim.spec().name)) active.push_back(eviction::read_pod_facts(*document));
  }
  const eviction::Outcome* outcome = &node->eviction->begin(active, summary, now);
  if (!outcome->reclaim.empty()) outcome = &node->eviction->finish(&summary.node);  // There are no images to delete here.
  for (const eviction::Eviction& eviction : outcome->evictions) {
    const auto found = pods_.find(active[eviction.pod].uid);
    if (found == pods_.end()) continue;
    add_event(found->second->sim.spec(), {"Warning", std::string(eviction::kEvictedReason), eviction.message, "", false}, now);
    found->second->sim.fail(std::string(eviction::kEvictedReason), eviction.message, std::chrono::seconds(eviction.grace_period_seconds),
                            now, eviction.is_disruption);
    touch(found->second, now);
  }
  if (node->pressure == node->eviction->conditions()) return;
  for (std::size_t i = 0; i < eviction::kConditionCount; ++i) {
    const auto condition = static_cast<eviction::NodeCondition>(i);
    const auto in = [&](const std::vector<eviction::NodeCondition>& list) { return std::ranges::find(list, condition) != list.end(); };
    if (in(node->pressure) != in(node->eviction->conditions())) node->pressure_since[i] = now;
  }
  node->pressure = node->eviction->conditions();
  node->needs_status = true;
}

json::Value Fleet::summary(std::string_view name, TimePoint now) const {
  const auto found = nodes_.find(std::string(name));
  if (found == nodes_.end()) return nullptr;
  std::unordered_map<std::string, eviction::PodUsage> usages;
  const eviction::NodeUsage node = node_usage(*found->second, now, &usages);
  const std::string time = format_rfc3339(now);
  double cores = 0;
  json::Array pods;
  for (const std::string_view uid : found->second->pods) {
    const PodSimulation& sim = pods_.at(uid)->sim;
    double pod_cores = 0;
    json::Array containers;
    for (std::size_t i = 0; i < sim.spec().containers.size(); ++i) {
      const double use = sim.usage(i, "cpu", now);
      pod_cores += use;
      containers.push_back(json::Object{{"name", sim.spec().containers[i].name},
                                        {"cpu", json::Object{{"time", time}, {"usageNanoCores", whole(use * 1e9)}}},
                                        {"memory", json::Object{{"time", time}, {"workingSetBytes", whole(sim.usage(i, "memory", now))}}}});
    }
    cores += pod_cores;
    const eviction::PodUsage& usage = usages.at(std::string(uid));
    pods.push_back(json::Object{{"podRef", json::Object{{"name", sim.spec().name}, {"namespace", sim.spec().ns}, {"uid", uid}}},
                                {"containers", std::move(containers)},
                                {"cpu", json::Object{{"time", time}, {"usageNanoCores", whole(pod_cores * 1e9)}}},
                                {"memory", json::Object{{"time", time}, {"workingSetBytes", *usage.memory->working_set_bytes}}},
                                {"ephemeral-storage", json::Object{{"time", time}, {"usedBytes", *usage.ephemeral_storage->used_bytes}}}});
  }
  json::Object n{{"nodeName", name},
                 {"cpu", json::Object{{"time", time}, {"usageNanoCores", whole(cores * 1e9)}}},
                 {"memory", json::Object{{"time", time},
                                         {"availableBytes", *node.memory->available_bytes},
                                         {"workingSetBytes", *node.memory->working_set_bytes}}},
                 {"fs", json::Object{{"time", time},
                                     {"availableBytes", *node.fs->available_bytes},
                                     {"capacityBytes", *node.fs->capacity_bytes},
                                     {"usedBytes", *node.fs->used_bytes},
                                     {"inodes", *node.fs->inodes},
                                     {"inodesFree", *node.fs->inodes_free}}}};
  return json::Object{{"node", std::move(n)}, {"pods", std::move(pods)}};
}

}  // namespace berth::node::simulated
