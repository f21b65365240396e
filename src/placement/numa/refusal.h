// Why a node does not take a pod.
#pragma once
#include <string>

namespace berth::placement::numa {

/// Becomes the pod's status.reason and, behind "Pod was rejected: ", its message.
struct Refusal {
  std::string reason, message;
  std::string container{};  ///< For which one of the pod's; empty: for none of them alone.
};

}  // namespace berth::placement::numa
