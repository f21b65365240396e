// Which dead containers and sandboxes a node takes away (SPEC F6; kubelet pkg/kubelet/kuberuntime/kuberuntime_gc.go).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace berth::node::eviction {

/// The kubelet's flags minimum-container-ttl-duration, maximum-dead-containers-per-container and maximum-dead-containers.
struct ContainerGcPolicy {
  Duration minimum_age{};
  int most_per_container = 1;  ///< Dead instances kept for `kubectl logs --previous`; negative: any number.
  int most = -1;               ///< On the whole node; negative: any number.
};

struct DeadContainer {
  std::string id, pod_uid, name, sandbox_id;
  TimePoint created{};
  std::uint32_t attempt = 0;
  bool is_running = false;  ///< Listed so that its sandbox counts as used; never taken away.
};
struct DeadSandbox {
  std::string id, pod_uid;
  TimePoint created{};
  std::uint32_t attempt = 0;
  bool is_ready = false;
};

/// What is known of a pod. Terminated: Failed or Succeeded, and nothing of it runs. Gone: the API has it no more.
enum class PodExistence { kLive, kTerminated, kGone };

/// Ids of containers to be removed: oldest first within a container's instances; all of pods that are gone and, where `of_terminated` is
/// set (the node is short of disk), of those that are over. Then down to the policy's numbers.
[[nodiscard]] std::vector<std::string> containers_to_remove(std::vector<DeadContainer> containers, const ContainerGcPolicy& policy,
                                                            const std::function<PodExistence(const std::string& uid)>& pod,
                                                            bool of_terminated, TimePoint now);
/// Ids of sandboxes to be removed: not ready, without containers, and not the latest of a pod that still needs it.
[[nodiscard]] std::vector<std::string> sandboxes_to_remove(std::vector<DeadSandbox> sandboxes, const std::vector<DeadContainer>& containers,
                                                           const std::function<PodExistence(const std::string& uid)>& pod,
                                                           bool of_terminated);

}  // namespace berth::node::eviction
