// What a fleet keeps of each node and pod: shared by the files fleet*.cpp alone.
#pragma once
#include <bitset>

#include "node/admission.h"
#include "node/simulated/addresses.h"
#include "node/simulated/numa.h"

namespace berth::node::simulated {

inline constexpr Duration kMonitoringInterval = std::chrono::seconds(10);

inline bool is_marked_dead(const json::Value& node) {
  return json::get_string(node, {"metadata", "annotations", kDeadAnnotation}) == "true" ||
         json::get_string(node, {"metadata", "annotations", "kubesuite/dead"}) == "true";
}

struct Fleet::Node {
  NodeSpec spec;
  std::uint64_t arrival = 0;
  std::string uid;
  bool needs_create = true, needs_status = true, needs_lease = true;
  enum class Queue { kNone, kReports, kRenewals } queue = Queue::kNone;
  bool is_writing = false, is_dead = false, is_removed = false, is_foreign = false, is_counted = false;
  bool is_ready_seen = false;
  bool was_taken_for_lost = false;    ///< Others said that it is not ready: its next report turns its conditions over.
  bool was_steady = false;            ///< Its Lease has kHeartbeatsAnnotation.
  bool is_steady = false;             ///< Its Lease says so (FleetOptions::steady_heartbeats).
  std::optional<Duration> last_word;  ///< To be written: so long ago was the last heartbeat.
  TimePoint next_lease{}, next_status{}, ready_since{}, wake{}, not_before{};
  std::bitset<256> used_ips;
  std::set<std::string_view> pods;  ///< uids, as the pods have them
  int pods_with_usage = 0;          ///< While there are none, nothing can come under pressure.
  TimePoint next_check{};
  std::unique_ptr<eviction::EvictionManager> eviction;
  std::optional<std::uint64_t> pods_memory_limit;  ///< Of the cgroup above all pods; absent: the machine's memory.
  std::vector<eviction::NodeCondition> pressure;
  std::array<TimePoint, eviction::kConditionCount> pressure_since{};

  model::Labels labels;         ///< As last seen in the API.
  json::Object missing_labels;  ///< To be added to a node that was taken over.
  std::vector<model::Taint> taints;
  std::optional<AdmissionNode> admission;  ///< Made of these and the template, for the first pod that asks after they changed.

  struct Numa {
    std::string annotation;
    std::optional<NumaPart> part;  ///< Unset: the annotation makes no sense, or there is none.
    std::string told;              ///< As the API has it, as far as is known.
    bool is_dirty = false;
    TimePoint not_before{};
  };
  Numa numa;

  [[nodiscard]] std::string host_ip() const { return node_address(spec.index); }
  [[nodiscard]] std::string pod_ip(int host) const { return pod_prefix(spec.index) + std::to_string(host); }
  [[nodiscard]] std::string pod_cidr() const { return pod_ip(0) + "/24"; }
  int take_ip() {
    for (int i = 2; i < 255; ++i)
      if (!used_ips[static_cast<std::size_t>(i)]) return used_ips.set(static_cast<std::size_t>(i)), i;
    return 0;
  }
  /// Marks an address that an earlier process gave out; 0 when it is not one of this node's.
  int claim_ip(std::string_view ip) {
    const std::string prefix = pod_prefix(spec.index);
    int host = 0;
    if (!ip.starts_with(prefix)) return 0;
    ip.remove_prefix(prefix.size());
    if (std::from_chars(ip.data(), ip.data() + ip.size(), host).ec != std::errc() || host < 2 || host > 254) return 0;
    used_ips[static_cast<std::size_t>(host)] = true;
    return host;
  }
};

struct Fleet::Pod {
  Pod(const json::Value& document, const PodSimulationOptions& options, TimePoint now) : sim(document, options, now) {}
  PodSimulation sim;
  std::uint64_t arrival = 0;
  NodeRef node;
  int ip = 0;
  bool is_dirty = false, is_writing = false, is_queued = false, is_deleting = false, has_finalizers = false, is_gone = false;
  PodDemand demand;
  std::map<std::size_t, ProgramOrder> programs;  ///< Running, by container.
  bool is_held = false;      ///< Waits for a second look at its node's labels and taints before it is admitted or refused.
  bool wrote_final = false;  ///< The terminal status of a deleted pod has been written.
  bool has_moved = false;    ///< Its status tells of other addresses than it has here.
  std::optional<TimePoint> wake;
  TimePoint not_before{};
};

}  // namespace berth::node::simulated
