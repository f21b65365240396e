// From a pod's spec to what the CRI wants: sandbox and container configurations, security contexts, resources (kubelet kuberuntime).
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "node/agent/object_data.h"
#include "node/agent/pod_network.h"
#include "node/eviction/pod_facts.h"
#include "node/pod_state.h"

namespace berth::node::agent {

/// A volume as it lies on this machine.
struct PlacedVolume {
  std::string host_path;
  bool read_only = false;
  bool is_image = false;    ///< An image's root filesystem: nothing can be made in it.
  bool is_block = false;    ///< A device.
  bool is_drivers = false;  ///< A CSI driver's.
};

/// What containers may swap.
struct SwapRules {
  bool is_counted = false;          ///< The kernel counts swap per cgroup: there is something to set.
  std::int64_t capacity_bytes = 0;  ///< LimitedSwap: all swap of the machine; 0: nobody gets any.
};

struct PodContext {
  const json::Value& pod;
  const PodSpec& spec;
  const eviction::PodFacts& facts;
  std::vector<std::string> pod_ips;
  std::string host_ip, node_name;
  std::string pod_directory;  ///< ROOT/pods/UID
  std::string log_directory;  ///< ROOT/logs/NS_NAME_UID
  std::string cgroup_parent;  ///< The pod's group.
  std::int64_t node_memory_bytes = 1;
  eviction::ResourceList allocatable;  ///< What the node has for pods.
  PodNames names;
  DnsConfig dns;
  bool cgroup_v2 = false;
  SwapRules swap;
  std::map<std::string, PlacedVolume> volumes;
  std::set<std::string> with_own_cpus = {};  ///< Containers that have processors to themselves: nobody slows them down there.
};

/// A container's resources with the limits of its pod where it sets none: what it runs with.
[[nodiscard]] json::Value resources_in_force(json::Value own, const json::Value& of_pod);

[[nodiscard]] json::Value sandbox_config(const PodContext& context, int attempt);

/// The container at `index` of the spec's order (init containers first), but for its mounts of volumes (mounts.h) and its image's
/// reference. Errors are for the container's waiting message (CreateContainerConfigError): a missing ConfigMap key, for one.
struct ContainerPlan {
  json::Value config;
  std::map<std::string, std::string> variables;
};
[[nodiscard]] Result<ContainerPlan> container_config(const PodContext& context, std::size_t index, int attempt,
                                                     const ObjectSource& objects);

/// Whether the image may run as its own user under runAsNonRoot; the text is the container's waiting message. `image_status`: the runtime's
/// answer.
[[nodiscard]] std::optional<std::string> check_run_as_non_root(const PodContext& context, const json::Value& container,
                                                               const json::Value& image_status);

/// The spec of a container by its index in PodSpec::containers.
[[nodiscard]] const json::Value& container_spec(const json::Value& pod, std::size_t index);
/// "spec.initContainers{NAME}" and the like: what events about a container point at.
[[nodiscard]] std::string container_field_path(const PodSpec& spec, std::size_t index);
/// Changes when a container must be made anew: its name or image.
[[nodiscard]] std::string container_hash(const json::Value& container);

/// The bytes that a container may swap: of a Burstable pod that is not critical, the part of the machine's swap that its memory request is
/// of the machine's memory; 0 where it asks for none or for all that it may use (kuberuntime_container_linux.go).
[[nodiscard]] std::int64_t swap_limit_bytes(const PodContext& context, const json::Value& container);
/// LinuxContainerResources of one container.
[[nodiscard]] json::Object container_resources(const PodContext& context, const json::Value& container);

/// cpu.shares and CFS quota (per 100 ms) of a container's requests and limits.
[[nodiscard]] std::int64_t cpu_shares(std::int64_t milli);
[[nodiscard]] std::int64_t cpu_quota_us(std::int64_t milli);

}  // namespace berth::node::agent
