// The Pod Security Standards (pod-security-admission's policy, every version up to Kubernetes 1.36): which of a level's rules a pod breaks.
// Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace berth::model {

enum class PodSecurityLevel { kPrivileged, kBaseline, kRestricted };

/// "privileged", "baseline", "restricted"; nullopt: none of them.
std::optional<PodSecurityLevel> parse_pod_security_level(std::string_view text);
std::string_view to_string(PodSecurityLevel level);

/// The newest rules; larger than every minor version.
inline constexpr int kLatestPodSecurityVersion = 1'000'000;

struct PodSecurityFindings {
  std::string reasons;  ///< The broken rules alone: "host namespaces, hostPort".
  std::string details;  ///< Each with who breaks it. Empty when the pod keeps all rules.
};

/// What of the level's rules the pod breaks, in Kubernetes' words and order. `minor_version` is the N of the rules' version v1.N.
/// `metadata` and `spec` are a Pod's or a pod template's.
PodSecurityFindings pod_security_findings(PodSecurityLevel level, int minor_version, const json::Value& metadata, const json::Value& spec);

/// The details of the newest rules.
inline std::string pod_security_violations(PodSecurityLevel level, const json::Value& metadata, const json::Value& spec) {
  return pod_security_findings(level, kLatestPodSecurityVersion, metadata, spec).details;
}

}  // namespace berth::model
