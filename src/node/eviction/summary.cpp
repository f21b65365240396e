#include "node/eviction/summary.h"

namespace berth::node::eviction {
namespace {

std::optional<std::uint64_t> read_number(const json::Value& object, std::string_view key) {
  const json::Value* value = json::find(object, key);
  if (!value) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_int64()) return static_cast<std::uint64_t>(value->get_int64());
  if (value->is_double()) return static_cast<std::uint64_t>(value->get_double());
  return std::nullopt;
}

std::optional<TimePoint> read_time(const json::Value& object) { return parse_rfc3339(json::get_string(object, {"time"})); }

std::optional<FsUsage> read_fs(const json::Value* fs) {
  if (!fs) return std::nullopt;
  return FsUsage{read_number(*fs, "availableBytes"),
                 read_number(*fs, "capacityBytes"),
                 read_number(*fs, "usedBytes"),
                 read_number(*fs, "inodesFree"),
                 read_number(*fs, "inodes"),
                 read_number(*fs, "inodesUsed"),
                 read_time(*fs)};
}

std::optional<MemoryUsage> read_memory(const json::Value* memory) {
  if (!memory) return std::nullopt;
  return MemoryUsage{read_number(*memory, "availableBytes"), read_number(*memory, "workingSetBytes"), read_number(*memory, "usageBytes"),
                     read_time(*memory)};
}

PodUsage read_pod_usage(const json::Value& pod) {
  PodUsage usage;
  usage.uid = json::get_string(pod, {"podRef", "uid"});
  for (const json::Value& container : json::get_array(pod, {"containers"}))
    usage.containers.push_back({std::string(json::get_string(container, {"name"})), read_memory(json::find(container, "memory")),
                                read_fs(json::find(container, "rootfs")), read_fs(json::find(container, "logs"))});
  for (const json::Value& volume : json::get_array(pod, {"volume"}))
    usage.volumes.push_back({std::string(json::get_string(volume, {"name"})), *read_fs(&volume)});
  usage.memory = read_memory(json::find(pod, "memory"));
  usage.ephemeral_storage = read_fs(json::find(pod, "ephemeral-storage"));
  if (const json::Value* processes = json::find(pod, "process_stats")) usage.process_count = read_number(*processes, "process_count");
  return usage;
}

Quantity in_bytes(std::uint64_t value) { return Quantity::from_value(static_cast<std::int64_t>(value), Quantity::Format::kBinarySI); }
Quantity count(std::uint64_t value) { return Quantity::from_value(static_cast<std::int64_t>(value), Quantity::Format::kDecimalSI); }

void observe_memory(Observations& out, Signal signal, const std::optional<MemoryUsage>& memory) {
  if (!memory || !memory->available_bytes || !memory->working_set_bytes) return;
  out[static_cast<std::size_t>(signal)] =
      Observation{in_bytes(*memory->available_bytes), in_bytes(*memory->available_bytes + *memory->working_set_bytes), memory->time};
}

void observe_fs(Observations& out, Signal space, Signal inodes, const std::optional<FsUsage>& fs) {
  if (!fs) return;
  if (fs->available_bytes && fs->capacity_bytes)
    out[static_cast<std::size_t>(space)] = Observation{in_bytes(*fs->available_bytes), in_bytes(*fs->capacity_bytes), fs->time};
  if (fs->inodes_free && fs->inodes)
    out[static_cast<std::size_t>(inodes)] = Observation{count(*fs->inodes_free), count(*fs->inodes), fs->time};
}

}  // namespace

NodeUsage read_node_usage(const json::Value& node) {
  NodeUsage usage;
  usage.memory = read_memory(json::find(node, "memory"));
  for (const json::Value& container : json::get_array(node, {"systemContainers"})) {
    if (json::get_string(container, {"name"}) != "pods") continue;
    usage.pods_memory = read_memory(json::find(container, "memory"));
    break;
  }
  usage.fs = read_fs(json::find(node, "fs"));
  usage.image_fs = read_fs(json::find(node, {"runtime", "imageFs"}));
  usage.container_fs = read_fs(json::find(node, {"runtime", "containerFs"}));
  if (const json::Value* rlimit = json::find(node, "rlimit")) {
    if (const auto max = read_number(*rlimit, "maxpid")) usage.max_pid = static_cast<std::int64_t>(*max);
    if (const auto running = read_number(*rlimit, "curproc")) usage.running_processes = static_cast<std::int64_t>(*running);
    usage.process_time = read_time(*rlimit);
  }
  return usage;
}

Summary read_summary(const json::Value& document) {
  Summary summary;
  if (const json::Value* node = json::find(document, "node")) summary.node = read_node_usage(*node);
  for (const json::Value& pod : json::get_array(document, {"pods"})) {
    PodUsage usage = read_pod_usage(pod);
    summary.pods.insert_or_assign(usage.uid, std::move(usage));
  }
  return summary;
}

Observations observe_signals(const NodeUsage& node) {
  Observations out;
  observe_memory(out, Signal::kMemoryAvailable, node.memory);
  observe_memory(out, Signal::kAllocatableMemoryAvailable, node.pods_memory);
  observe_fs(out, Signal::kNodeFsAvailable, Signal::kNodeFsInodesFree, node.fs);
  observe_fs(out, Signal::kImageFsAvailable, Signal::kImageFsInodesFree, node.image_fs);
  observe_fs(out, Signal::kContainerFsAvailable, Signal::kContainerFsInodesFree, node.container_fs);
  if (node.max_pid && node.running_processes)
    out[static_cast<std::size_t>(Signal::kPidAvailable)] =
        Observation{count(static_cast<std::uint64_t>(*node.max_pid - *node.running_processes)),
                    count(static_cast<std::uint64_t>(*node.max_pid)), node.process_time};
  return out;
}

}  // namespace berth::node::eviction
