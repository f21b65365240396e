// The Pod Security Standards (pod-security-admission's policy, as of Kubernetes 1.32): which of a level's rules a pod breaks. Pure.
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

/// Empty when the pod keeps the level's rules; otherwise each broken rule with who breaks it, in Kubernetes' words and order. `metadata`
/// and `spec` are a Pod's or a pod template's.
std::string pod_security_violations(PodSecurityLevel level, const json::Value& metadata, const json::Value& spec);
/// The broken rules alone, without who breaks them.
std::string pod_security_broken_rules(PodSecurityLevel level, const json::Value& metadata, const json::Value& spec);

}  // namespace berth::model
