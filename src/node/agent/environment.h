// A container's environment: env, envFrom, the downward API, services (kubelet_pods.go makeEnvironmentVariables, envvars).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/agent/container_config.h"

namespace berth::node::agent {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// In the order in which they are defined. Errors are for CreateContainerConfigError.
[[nodiscard]] Result<Variables> container_environment(const PodContext& context, const json::Value& container, const ObjectSource& objects);

/// NAME_SERVICE_HOST and the like of services with a cluster IP.
[[nodiscard]] Variables service_variables(const std::vector<json::Value>& services);

/// `$(NAME)` replaced by the variable's value; `$$(NAME)` stands for itself; unknown names stay (Kubernetes' expansion) and are put into
/// `missing`.
[[nodiscard]] std::string expand_variables(std::string_view text, const std::map<std::string, std::string>& variables,
                                           std::vector<std::string>* missing = nullptr);

/// A downward API field: metadata.name, metadata.labels['x'], spec.nodeName, status.podIP, …; nullopt when not supported.
[[nodiscard]] std::optional<std::string> downward_field(const PodContext& context, std::string_view path);

/// A resourceFieldRef of the pod: the amount divided by the divisor, rounded up; limits that are not set are what the node has for pods.
/// `own` names the container when the reference does not. nullopt: no such container or resource.
[[nodiscard]] std::optional<std::string> resource_field(const PodContext& context, std::string_view own, const json::Value& reference);

}  // namespace berth::node::agent
