// Which kernel parameters a pod may set on its node (pkg/kubelet/sysctl): the safe ones, and those that the node's owner allowed.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "node/admission.h"

namespace berth::node {

/// Whether Kubernetes counts the parameter as safe in its namespace.
[[nodiscard]] bool is_safe_sysctl(std::string_view name);

/// SysctlForbidden for the first of the pod's `securityContext.sysctls` that is neither safe nor in `allowed_unsafe` (names, or prefixes
/// that end with `*`), or that belongs to a namespace which the pod shares with its host. Nullopt: all may be set.
[[nodiscard]] std::optional<Refusal> refuse_sysctls(const json::Value& pod, const std::vector<std::string>& allowed_unsafe);

/// Why this cannot be an entry of allowedUnsafeSysctls; empty when it can: only parameters that have a namespace can be a pod's own.
[[nodiscard]] std::string check_allowed_sysctl(std::string_view pattern);

}  // namespace berth::node
