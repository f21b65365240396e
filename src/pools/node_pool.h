// A NodePool and a NodeClaim (karpenter.sh/v1) as what is decided on, read from their documents.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "model/views/common.h"
#include "pools/requirements.h"

namespace berth::pools {

inline constexpr std::string_view kDoNotDisrupt = "karpenter.sh/do-not-disrupt";
inline constexpr std::string_view kHashAnnotation = "karpenter.sh/nodepool-hash";
inline constexpr std::string_view kHashVersionAnnotation = "karpenter.sh/nodepool-hash-version";
inline constexpr std::string_view kHashVersion = "v3";
inline constexpr std::string_view kTerminationTimestamp = "karpenter.sh/nodeclaim-termination-timestamp";
inline constexpr std::string_view kDisruptedTaint = "karpenter.sh/disrupted";
inline constexpr std::string_view kUnregisteredTaint = "karpenter.sh/unregistered";
inline constexpr std::string_view kRegisteredLabel = "karpenter.sh/registered";
inline constexpr std::string_view kInitializedLabel = "karpenter.sh/initialized";
inline constexpr std::string_view kFinalizer = "karpenter.sh/termination";
inline constexpr std::string_view kNodeClassGroup = "sim.berth.dev";
inline constexpr std::string_view kNodeClassKind = "SimulatedNodeClass";
/// Nodes are machines of groups: MachineSets', or an external provider's (machines.h).
inline constexpr std::string_view kMachineClassGroup = "berth.dev";
inline constexpr std::string_view kMachineClassKind = "MachineNodeClass";

/// On a node of a pool or its claim: its machine will be taken away in so long ("2m"), counted from when it is seen.
inline constexpr std::string_view kInterruption = "sim.berth.dev/interruption";

/// Why nodes go. Budgets name the first three; the others wait for nobody.
enum class Reason { kEmpty, kUnderutilized, kDrifted, kInterrupted, kUnhealthy };
std::string_view to_string(Reason reason);

struct Budget {
  std::string nodes = "10%";  ///< A number or a share, rounded up.
  std::string schedule;       ///< Empty: always.
  Duration duration{};
  std::vector<std::string> reasons;  ///< Empty: all.
  [[nodiscard]] bool is_active(TimePoint now) const;
};

struct NodeClassRef {
  std::string group, kind, name;
  [[nodiscard]] bool is_of_machines() const { return kind == kMachineClassKind && group == kMachineClassGroup; }
  [[nodiscard]] bool is_simulated() const { return kind == kNodeClassKind && group == kNodeClassGroup; }
  /// Whose types these are (InstanceType::node_class).
  [[nodiscard]] std::string_view types_of() const { return is_of_machines() ? std::string_view(name) : std::string_view(); }
};

struct NodePool {
  std::string name, uid;
  std::int64_t generation = 0, weight = 0;
  Requirements requirements;
  json::Array requirement_entries;  ///< As they stand.
  model::Labels labels;             ///< Of the template.
  std::vector<std::pair<std::string, std::string>> annotations;
  std::vector<model::Taint> taints, startup_taints;
  model::ResourceList limits;  ///< With "nodes", where that is limited.
  NodeClassRef node_class;
  std::optional<Duration> expire_after;  ///< nullopt: never.
  std::optional<Duration> termination_grace_period;
  bool only_when_empty = false;               ///< consolidationPolicy: WhenEmpty.
  std::optional<Duration> consolidate_after;  ///< nullopt: never.
  std::vector<Budget> budgets;
  bool is_deleting = false;
  std::string hash;  ///< Of what of the template new nodes alone get.

  static NodePool parse(const json::Value& document);
  /// How many of `nodes` may be gone at once for that reason: the least that an active budget allows.
  [[nodiscard]] std::int64_t allowed(Reason reason, std::int64_t nodes, TimePoint now) const;
};

/// A duration of the API: Go's words; "Never" and what is none are nullopt.
std::optional<Duration> api_duration(std::string_view text);

struct NodeClaim {
  std::string name, uid, pool;
  std::int64_t generation = 0;
  TimePoint created{};
  Requirements requirements;
  json::Array requirement_entries;
  std::vector<model::Taint> taints, startup_taints;
  model::Labels labels;
  std::vector<std::pair<std::string, std::string>> annotations;
  NodeClassRef node_class;
  std::optional<Duration> expire_after, termination_grace_period;
  std::string provider_id, node_name;
  model::ResourceList capacity, allocatable;
  std::optional<TimePoint> last_pod_event, deleted;  ///< deleted: since when it is going.
  bool has_finalizer = false;
  json::Array other_finalizers;  ///< Those of others.
  json::Array conditions;

  static NodeClaim parse(const json::Value& document);
  /// "True", "False", "Unknown"; empty: it has none.
  [[nodiscard]] std::string_view condition(std::string_view type) const;
  [[nodiscard]] bool is(std::string_view type) const { return condition(type) == "True"; }
  [[nodiscard]] std::optional<TimePoint> since(std::string_view type) const;
  [[nodiscard]] const std::string* annotation(std::string_view key) const;
};

}  // namespace berth::pools
