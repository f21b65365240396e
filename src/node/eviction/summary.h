// What a node measures, in the shape of the Summary API (stats/v1alpha1), and the signals drawn from it.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "node/eviction/thresholds.h"

namespace berth::node::eviction {

/// All amounts are absent where nothing measured them.
struct FsUsage {
  std::optional<std::uint64_t> available_bytes, capacity_bytes, used_bytes, inodes_free, inodes, inodes_used;
  std::optional<TimePoint> time;
};
struct MemoryUsage {
  std::optional<std::uint64_t> available_bytes, working_set_bytes, usage_bytes;
  std::optional<TimePoint> time;
  std::optional<std::uint64_t> rss_bytes = {}, page_faults = {}, major_page_faults = {};
};
struct ContainerUsage {
  std::string name;
  std::optional<MemoryUsage> memory;
  std::optional<FsUsage> rootfs, logs;
};
struct VolumeUsage {
  std::string name;
  FsUsage fs;
  std::string claim_ns = {}, claim_name = {};  ///< Empty: it is no claim's.
};
struct PodUsage {
  std::string uid;
  std::vector<ContainerUsage> containers;
  std::vector<VolumeUsage> volumes;
  std::optional<MemoryUsage> memory;
  std::optional<FsUsage> ephemeral_storage;
  std::optional<std::uint64_t> process_count;
};
struct NodeUsage {
  std::optional<MemoryUsage> memory, pods_memory;  ///< pods_memory: the cgroup above all pods.
  std::optional<FsUsage> fs, image_fs, container_fs;
  std::optional<std::int64_t> max_pid, running_processes;
  std::optional<TimePoint> process_time;
};
struct Summary {
  NodeUsage node;
  std::unordered_map<std::string, PodUsage> pods;  ///< By uid; of pods listed twice the last counts.
};

[[nodiscard]] NodeUsage read_node_usage(const json::Value& node);
[[nodiscard]] Summary read_summary(const json::Value& summary);

struct Observation {
  Quantity available, capacity;
  std::optional<TimePoint> time;
};
using Observations = std::array<std::optional<Observation>, kSignalCount>;
[[nodiscard]] Observations observe_signals(const NodeUsage& node);

}  // namespace berth::node::eviction
