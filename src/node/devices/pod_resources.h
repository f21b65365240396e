// What monitoring agents ask a node: which pod has which devices (Kubernetes' podresources v1, pod-resources/kubelet.sock).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::node::cpus {
class CpuManager;
}
namespace berth::node::numa {
class MemoryManager;
}

namespace berth::node::devices {

class ClaimDrivers;
class DevicePlugins;

struct PodResourcesOptions {
  std::string directory = "/var/lib/kubelet/pod-resources";  ///< Where kubelet.sock is; made where it is not there.
  std::function<std::vector<json::Value>()> pods;            ///< Those that take room on the node.
  const DevicePlugins* plugins = nullptr;                    ///< Null: there are none.
  const ClaimDrivers* claims = nullptr;                      ///< Likewise.
  const cpus::CpuManager* cpus = nullptr;                    ///< Null: nobody has processors of his own.
  const numa::MemoryManager* memory = nullptr;               ///< Null: nobody has memory of certain NUMA nodes.
};

/// Thread-safe. The destructor ends the socket.
class PodResources {
 public:
  /// kUnavailable: somebody else serves that directory, or nobody can; the message says what to do.
  static Result<std::unique_ptr<PodResources>> start(PodResourcesOptions options);
  virtual ~PodResources() = default;
  /// The answer to a method of v1.PodResourcesLister. The error: no such pod, no such method.
  [[nodiscard]] virtual Result<json::Value> answer(std::string_view method, const json::Value& request) const = 0;
};

}  // namespace berth::node::devices
