// What a node offers to pods (SPEC F9): capacity − kube-reserved − system-reserved − hard eviction thresholds. Source: kubelet
// cm/node_container_manager_linux.go, nodestatus/setters.go, cadvisor's MachineInfo conversion.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "node/eviction/pod_facts.h"
#include "node/eviction/thresholds.h"

namespace berth::node::eviction {

struct Machine {
  std::int64_t cores = 1, memory_bytes = 0, root_fs_bytes = 0, max_pid = 0;  ///< max_pid 0: unknown.
  struct HugePages {
    std::int64_t page_kib = 0, pages = 0;
  };
  std::vector<HugePages> huge_pages;
};

struct ReservationSettings {
  std::map<std::string, std::string> kube_reserved, system_reserved;
  StatementMap eviction_hard;
  bool ignore_eviction_threshold = false;
  bool local_storage_capacity_isolation = true;  ///< False: no ephemeral-storage.
  std::int64_t max_pods = 110, pods_per_core = 0;
};

struct NodeResources {
  ResourceList capacity, allocatable;
  ResourceList eviction_reservation;  ///< What the hard thresholds reserve.
  ResourceList reservation;           ///< All that is reserved, without zero entries.
  ResourceList cgroup;                ///< Limits of the cgroup above all pods: capacity − reserved, eviction thresholds not taken away.
  std::vector<std::string> invalid;   ///< Resources of which more is reserved than there is: the node must not start.
};

/// The error is the kubelet's start-up error for the first wrong setting.
[[nodiscard]] TextResult<NodeResources> compute_node_resources(const Machine& machine, const ReservationSettings& settings);
/// The same for a machine that is described by its resources, `capacity` (simulated nodes). What the kubelet knows nothing of (extended
/// resources, pods) is offered whole.
[[nodiscard]] TextResult<NodeResources> offer_resources(const ResourceList& capacity, const ReservationSettings& settings);
/// Every error text that some order of reading the settings gives.
[[nodiscard]] std::vector<std::string> all_reservation_errors(const ReservationSettings& settings);

}  // namespace berth::node::eviction
