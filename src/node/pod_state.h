// What a node knows of a pod it runs, and the status that a kubelet would report for it. Shared by real and simulated nodes.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/shared_pool.h"

namespace berth::node {

/// The same where the texts are: the order of members counts, since it is shown.
struct ByText {
  static std::size_t hash(const json::Value& value) { return std::hash<std::string>()(json::serialize(value)); }
  static bool same(const json::Value& a, const json::Value& b) { return json::serialize(a) == json::serialize(b); }
};
using SharedJson = Shared<json::Value, ByText>;

enum class ContainerRole { kInit, kSidecar, kMain, kEphemeral };
enum class RestartPolicy { kAlways, kOnFailure, kNever };

/// One of a container's restartPolicyRules: an exit code that restarts it whatever its policy says.
struct RestartRule {
  bool is_in = true;  ///< Operator In; false: NotIn.
  std::vector<std::int64_t> exit_codes;
  bool restarts_all = false;  ///< Action RestartAllContainers; false: Restart.

  [[nodiscard]] bool matches(std::int64_t exit_code) const;
  friend bool operator==(const RestartRule&, const RestartRule&) = default;
  [[nodiscard]] auto parts() const { return std::tie(is_in, exit_codes, restarts_all); }
};

/// The part of a container's spec that decides how it is run and reported.
struct ContainerSpec {
  std::string name, image;
  ContainerRole role = ContainerRole::kMain;
  RestartPolicy restart_policy = RestartPolicy::kAlways;  ///< The container's own where it has one, else the pod's; sidecars: always.
  std::vector<RestartRule> restart_rules;                 ///< Asked before the policy; the first that matches decides.
  SharedJson resources{json::Object()};                   ///< spec.containers[].resources; an empty object without any.
  std::string volume_mounts;                              ///< As the status shows them, a JSON array; empty without any.
  friend bool operator==(const ContainerSpec&, const ContainerSpec&) = default;
  [[nodiscard]] auto parts() const { return std::tie(name, image, role, restart_policy, restart_rules, resources, volume_mounts); }
};

/// The part of a pod that decides how it is run and reported. Containers are in the order of the spec: init containers, main ones,
/// ephemeral ones (which may be added while the pod runs).
struct PodSpec {
  std::string ns, name, uid, node_name;
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  bool host_network = false;
  SharedList<ContainerSpec> containers;
  SharedList<std::string> readiness_gates;
  std::int64_t generation = 0;
  /// What the whole pod may use, {"requests":…,"limits":…}: its own amounts, or what its containers add up to.
  SharedJson resources{json::Object()};
};
[[nodiscard]] PodSpec read_pod_spec(const json::Value& pod);
/// Of a pod that is stopped for good: none of its containers is run again.
void forbid_restarts_of(PodSpec& spec);

struct ContainerState {
  enum class Kind { kWaiting, kRunning, kTerminated };
  Kind kind = Kind::kWaiting;
  std::string reason, message;  ///< Of waiting and terminated.
  int exit_code = 0;
  TimePoint started_at{}, finished_at{};
  std::string container_id;
};

struct ContainerRecord {
  ContainerState state;
  std::optional<ContainerState> last;
  int restart_count = 0;
  bool is_ready = false;
  bool is_started = false;
  bool is_reset = false;  ///< Removed so that the whole pod starts anew: its end counts for nothing, and its restart is counted already.
  std::string image_id, container_id;
  std::string image;              ///< As the runtime names it; empty: as the spec does.
  json::Value resources;          ///< What is in force, {"requests":…,"limits":…}; null: what the spec says, once there is a container.
  json::Array allocated_devices;  ///< How healthy its devices are, as status.allocatedResourcesStatus has it.
  json::Value user;               ///< {"linux":{"uid":…}} as the runtime tells it; null: it does not.
};

/// Of a container that was removed so that the whole pod starts anew (RestartAllContainers).
void reset_container(ContainerRecord& record);

struct ConditionRecord {
  std::string type, status, reason, message;
  TimePoint transition{};
  std::int64_t observed_generation = 0;  ///< Of the pod's spec that it is about; 0: not said.
};

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed };
[[nodiscard]] std::string_view to_string(PodPhase phase);
[[nodiscard]] std::optional<PodPhase> parse_phase(std::string_view text);

inline constexpr std::array<std::string_view, 5> kOwnConditions = {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady",
                                                                   "PodScheduled"};

/// One pod's state on its node. `containers` runs parallel to PodSpec::containers.
struct PodState {
  std::vector<ContainerRecord> containers;
  std::optional<TimePoint> start_time;
  std::string host_ip, pod_ip;
  std::vector<std::string> pod_ips;  ///< All of them; empty: just pod_ip.
  bool has_sandbox = false;
  /// Set for a pod failed as a whole (eviction, refused admission): overrides the phase that follows from the containers.
  std::string failure_reason, failure_message;
  bool is_restarting = false;  ///< All containers are being taken down so that the pod starts anew (RestartAllContainers).
  bool is_ended = false;       ///< Nothing of it runs any more and nothing will: its phase is a last one.
  bool is_rejected = false;    ///< Refused admission: the status tells of no containers, none was ever looked at.
  /// The kubelet's own conditions as last reported: status (-1: never) and when it last changed. Order: kOwnConditions.
  struct OwnCondition {
    std::int8_t status = -1;
    TimePoint transition{};
  };
  std::array<OwnCondition, 5> conditions;
  std::vector<ConditionRecord> extra_conditions;  ///< Reported besides the kubelet's own (DisruptionTarget).
};

/// The phase that the containers' states add up to (kubelet_pods.go getPhase).
[[nodiscard]] PodPhase pod_phase(const PodSpec& spec, const PodState& state);
/// The phase that a pod came to by itself, whatever its sidecars still do; nullopt: its containers have more to do.
[[nodiscard]] std::optional<PodPhase> pod_outcome(const PodSpec& spec, const PodState& state);
/// Whether this container is run again after it ended so (container rules, then its policy, then the pod's).
[[nodiscard]] bool is_restarted(const ContainerSpec& spec, std::int64_t exit_code);
/// True when this container will not run again by itself.
[[nodiscard]] bool is_done(const ContainerSpec& spec, const ContainerRecord& record);
/// True once every init container is over and every sidecar has started, or any main container has ever started.
[[nodiscard]] bool is_initialized(const PodSpec& spec, const PodState& state);

/// The pod's status as a kubelet writes it, for a strategic merge patch of pods/status. `observed` is the status last seen in the API: its
/// conditions feed readiness gates. Updates `state.conditions` (transition times are kept while a
/// condition's status stays). Rule source: kubelet status/generate.go, kubelet_pods.go.
[[nodiscard]] json::Value make_pod_status(const PodSpec& spec, PodState& state, const json::Value* observed, TimePoint now);

/// Takes over what an earlier process reported: container states, restart counts, IPs, times. The inverse of make_pod_status.
void restore_pod_state(const PodSpec& spec, const json::Value& status, PodState& state);

/// Delay before restart number `restart_count` + 1: none for the first, then 10 s doubling to 300 s (kubelet's container back-off).
[[nodiscard]] Duration restart_backoff(int restart_count, Duration most = std::chrono::seconds(300));

}  // namespace berth::node
