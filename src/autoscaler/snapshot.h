// What the autoscaler decides on: the cluster as placement sees it, what it needs to know beyond that, and the groups of nodes that can
// grow.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "placement/cluster.h"

namespace berth::autoscaler {

inline constexpr std::string_view kToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler";
inline constexpr std::string_view kDeletionCandidateTaint = "DeletionCandidateOfClusterAutoscaler";
inline constexpr std::string_view kScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
inline constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
inline constexpr std::string_view kSafeToEvictLocalVolumes = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
inline constexpr std::string_view kAcceleratorLabel = "cluster-api/accelerator";

/// What placement's view of a pod leaves out.
struct PodFacts {
  bool is_mirror = false, is_daemon = false;
  bool has_local_storage = false;  ///< hostPath or an emptyDir on disk, but for volumes named by safe-to-evict-local-volumes.
  bool is_unschedulable = false;   ///< The scheduler said so: PodScheduled is False for Unschedulable.
  bool is_finished = false;        ///< Failed, or succeeded and never started again.
  std::optional<TimePoint> deletion_time;
  TimePoint created{};
  static PodFacts parse(const json::Value& pod);
};

struct Pod {
  placement::PodInfoPtr info;
  PodFacts facts;
  [[nodiscard]] const model::PodView& view() const { return info->view(); }
  [[nodiscard]] const std::string& key() const { return info->key; }
  static std::shared_ptr<const Pod> parse(const json::Value& pod, placement::Era era);
};
using PodPtr = std::shared_ptr<const Pod>;
using PodMap = std::map<std::string, PodPtr, std::less<>>;  ///< By "namespace/name".

/// A machine of a group.
struct Instance {
  std::string id;    ///< The provider's: "namespace/name" of the Machine.
  std::string node;  ///< Empty: it has not become a node yet.
  TimePoint created{};
  bool is_leaving = false;  ///< Deleted or marked for it: the group's target no longer counts it.
};

struct NodeGroup {
  std::string id;
  std::int64_t min = 0, max = 0, target = 0;
  std::vector<Instance> instances;
  /// What a new node would be when the group has none to look at; null: not known, such a group cannot grow from zero.
  model::NodeViewPtr template_node;
};

struct Snapshot {
  const placement::Cluster* cluster = nullptr;
  const PodMap* pods = nullptr;                ///< Every pod that is not gone.
  std::vector<NodeGroup> groups;               ///< In order of id.
  std::vector<placement::PodInfoPtr> daemons;  ///< One pod of each DaemonSet, as it would come to a node.
  std::set<std::string, std::less<>> jobs;     ///< "namespace/name"
  std::set<std::string, std::less<>> daemon_sets;
  /// ConfigMap cluster-autoscaler-priority-expander's data.priorities; nullopt when there is none.
  std::optional<std::string> priorities;
};

enum class Readiness { kReady, kNotStarted, kUnready };
/// A node that is not ready counts as not started for its first fifteen minutes.
Readiness readiness_of(const model::NodeView& node, TimePoint now);
bool has_taint(const model::NodeView& node, std::string_view key);
/// The pod as its DaemonSet would make it, tolerating what daemons tolerate; not bound to a node.
placement::PodInfoPtr daemon_pod(const json::Value& daemon_set, placement::Era era);

}  // namespace berth::autoscaler
