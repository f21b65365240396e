// The version of the Kubernetes API that berth presents to clients: kubectl compares it with its own, and a node's with the server's.
#pragma once

#include <string_view>

namespace berth {

inline constexpr std::string_view kKubernetesVersion = "v1.32.0";
inline constexpr std::string_view kBuildVersion = "v1.32.0+berth";

}  // namespace berth
