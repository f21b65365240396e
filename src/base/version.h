// The version of the Kubernetes API that berth presents to clients: kubectl compares it with its own, and a node's with the server's.
#pragma once

#include <string_view>

namespace berth {

inline constexpr std::string_view kKubernetesVersion = "v1.36.2";
inline constexpr std::string_view kKubernetesMinor = "36", kCompatibilityMinor = "35";
/// berth's own version is the suffix.
inline constexpr std::string_view kBuildVersion = "v1.36.2+berth.0.1.0";
inline constexpr std::string_view kBerthVersion = "0.1.0";

}  // namespace berth
