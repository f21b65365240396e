// Taints and tolerations as the node controllers use them.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "controllers/pod_info.h"

namespace berth::controllers {

inline constexpr const char* kTaintNotReady = "node.kubernetes.io/not-ready";
inline constexpr const char* kTaintUnreachable = "node.kubernetes.io/unreachable";
inline constexpr const char* kTaintUnschedulable = "node.kubernetes.io/unschedulable";
inline constexpr const char* kTaintMemoryPressure = "node.kubernetes.io/memory-pressure";
inline constexpr const char* kTaintDiskPressure = "node.kubernetes.io/disk-pressure";
inline constexpr const char* kTaintPidPressure = "node.kubernetes.io/pid-pressure";
inline constexpr const char* kTaintNetworkUnavailable = "node.kubernetes.io/network-unavailable";

struct Taint {
  std::string key, value, effect;
  TimePoint time_added{};
  /// Key and effect: what makes a taint the same (v1.Taint.MatchTaint).
  [[nodiscard]] bool matches(const Taint& other) const { return key == other.key && effect == other.effect; }
  friend bool operator==(const Taint&, const Taint&) = default;
};
std::vector<Taint> node_taints(const json::Value& node);
/// Empty operator means Equal; an empty key with Exists, and an empty effect, match all (v1.Toleration.ToleratesTaint).
bool tolerates(const Toleration& toleration, const Taint& taint);
/// How long an allocated device (an entry of status.allocation.devices.results of a ResourceClaim) is used in spite of a NoExecute taint:
/// nullopt for ever.
std::optional<std::chrono::seconds> patience(const json::Value& device, const Taint& taint);

}  // namespace berth::controllers
