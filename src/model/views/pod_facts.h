// What those who move pods read of one beside its PodView, once per revision, and the rules by which they tell pods apart. Where the
// sources have different rules each stands here by its name.
#pragma once
#include "base/clock.h"
#include "model/views/pod_view.h"

namespace berth::model {

inline constexpr std::string_view kMirrorPod = "kubernetes.io/config.mirror";
inline constexpr std::string_view kPodSource = "kubernetes.io/config.source";
// What cluster-autoscaler reads in annotations of pods (utils/drain, utils/daemonset, processors/pods).
inline constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
inline constexpr std::string_view kSafeToEvictLocalVolumes = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
inline constexpr std::string_view kDaemonPod = "cluster-autoscaler.kubernetes.io/daemonset-pod";

/// In the order in which pods are given up.
enum class Qos : std::uint8_t { kBestEffort, kBurstable, kGuaranteed };

struct ContainerState {
  enum class Kind : std::uint8_t { kContainer, kInit, kEphemeral };
  Kind kind = Kind::kContainer;
  std::int64_t restarts = 0;
  std::string waiting_reason, terminated_reason;
  std::optional<std::int64_t> exit_code;  ///< Of a terminated one.
};

struct PodCondition {
  std::string type, status, reason;
  std::optional<TimePoint> last_transition;
};

/// Of status, whatever says more than a word. Whoever keeps all pods for good leaves it out.
struct PodStatus {
  std::string reason;
  std::vector<ContainerState> containers;
  std::vector<PodCondition> conditions;
  static std::shared_ptr<const PodStatus> parse(const json::Value& pod);
  [[nodiscard]] std::int64_t restarts(bool including_init) const;
};

/// A volume whose content is lost when the pod leaves its node.
struct LocalVolume {
  std::string name;
  bool is_host_path = false;  ///< Otherwise an emptyDir:
  bool is_in_memory = false;  ///< medium Memory
};

struct PodFacts {
  std::optional<TimePoint> created, started;
  std::optional<TimePoint> deletion_time;  ///< deletionTimestamp and the grace period behind it.
  std::optional<std::int64_t> priority;    ///< Nullopt when the spec has none.
  Qos qos = Qos::kBestEffort;
  bool has_node_selector = false;  ///< spec.nodeSelector or spec.affinity.nodeAffinity is there.
  bool is_unschedulable = false;   ///< The scheduler said so: PodScheduled is False for Unschedulable.
  bool is_disrupted = false;       ///< It has to leave: DisruptionTarget is True, whoever says so.
  bool is_evicted = false;         ///< The eviction API was asked for it.
  bool is_finished = false;        ///< Failed, or succeeded and never started again.
  std::string group;               ///< "namespace/name" of the PodGroup that it names; empty: none.
  std::vector<LocalVolume> local_volumes;
  std::shared_ptr<const PodStatus> status;  ///< Null where it was not asked for.

  /// Without `status`.
  static PodFacts parse(const json::Value& pod);
  /// It should have ended half a minute ago: nobody is there to end it, or nobody can. Who empties its node does not wait for it.
  [[nodiscard]] bool ends_too_long(TimePoint now) const { return deletion_time && *deletion_time + std::chrono::seconds(30) < now; }
};

/// "namespace/name" of the PodGroup that the pod's spec.schedulingGroup names; empty: none.
std::string pod_group_key(const json::Value& pod);

// Whose a pod is.
[[nodiscard]] inline bool is_mirror(const ObjectMeta& pod) { return pod.annotation(kMirrorPod) != nullptr; }
/// Of a file or URL of its node's, as the kubelet has it (pkg/kubelet/types, IsStaticPod).
bool is_static(const ObjectMeta& pod);
/// Its controller is a DaemonSet (kubectl drain, Karpenter).
bool is_of_daemon_set(const ObjectMeta& pod);
/// Or the pod says that it is as good as one (cluster-autoscaler).
bool counts_as_daemon(const ObjectMeta& pod);
/// Nobody moves it: it is its node's own, or its DaemonSet's.
bool goes_with_its_node(const ObjectMeta& pod);

/// Whose rule says that a pod has local storage, which speaks against moving it.
enum class LocalStorageRule : std::uint8_t {
  kDescheduler,  ///< Any hostPath or emptyDir (pkg/utils/pod.go, IsPodWithLocalStorage).
  kAutoscaler,   ///< As that, but for emptyDirs in memory and volumes that kSafeToEvictLocalVolumes names (utils/drain,
                 ///< HasBlockingLocalStorage).
  kDrain,        ///< Any emptyDir, in memory too: kubectl asks for --delete-emptydir-data.
};
bool has_local_storage(const PodFacts& facts, const ObjectMeta& pod, LocalStorageRule rule);

}  // namespace berth::model
