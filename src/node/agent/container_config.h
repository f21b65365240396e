// From a pod's spec to what the CRI wants: sandbox and container configurations, environment, resources (kubelet kuberuntime).
#pragma once
#include <functional>
#include <map>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "node/eviction/pod_facts.h"
#include "node/pod_state.h"

namespace berth::node::agent {

/// Looks up what environment variables and volumes refer to. kNotFound: the object is not there.
struct ObjectSource {
  std::function<Result<json::Value>(const std::string& ns, const std::string& name)> config_map, secret;
};

struct PodContext {
  const json::Value& pod;
  const PodSpec& spec;
  const eviction::PodFacts& facts;
  std::string pod_ip, host_ip, node_name;
  std::string log_directory;   ///< /var/log/pods/NS_NAME_UID
  std::string cgroup_parent;   ///< The pod's group.
  std::int64_t node_memory_bytes = 1;
  std::map<std::string, std::string> volumes;  ///< Volume name → host path.
};

[[nodiscard]] json::Value sandbox_config(const PodContext& context, int attempt);

/// The container at `index` of the spec's order (init containers first). Errors are for the container's waiting message
/// (CreateContainerConfigError): a missing ConfigMap key, an unknown volume.
[[nodiscard]] Result<json::Value> container_config(const PodContext& context, std::size_t index, int attempt, const ObjectSource& objects);

/// The spec of a container by its index in PodSpec::containers.
[[nodiscard]] const json::Value& container_spec(const json::Value& pod, std::size_t index);

/// `$(NAME)` replaced by the variable's value; `$$(NAME)` stands for itself; unknown names stay (Kubernetes' expansion).
[[nodiscard]] std::string expand_variables(std::string_view text, const std::map<std::string, std::string>& variables);

/// A downward API field: metadata.name, metadata.labels['x'], spec.nodeName, status.podIP, …; nullopt when not supported.
[[nodiscard]] std::optional<std::string> downward_field(const PodContext& context, std::string_view path);

/// cpu.shares and CFS quota (per 100 ms) of a container's requests and limits.
[[nodiscard]] std::int64_t cpu_shares(std::int64_t milli);
[[nodiscard]] std::int64_t cpu_quota_us(std::int64_t milli);

}  // namespace berth::node::agent
