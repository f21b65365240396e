// The CSI volumes of a node's pods: carries out what volume_ledger.h decides, by the drivers, and keeps the records by which the next
// process finds them. No call to a driver holds up anything but who waits for that volume.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/client.h"
#include "node/agent/object_data.h"
#include "node/agent/volumes.h"
#include "node/csi/volume_request.h"
#include "node/eviction/summary.h"

namespace berth::node::plugins {
class PluginHandler;
}

namespace berth::node::csi {

struct CsiOptions {
  std::string root, node;  ///< The agent's directory; the node's name.
  /// Asks the API; blocks. kNotFound, kConflict or kUnavailable.
  std::function<Result<json::Value>(client::Call call)> api;
  agent::TokenSource tokens;
  /// Something of a pod's volumes changed; any thread, must not block.
  std::function<void(const std::string& pod)> changed;
  /// Of node.status.volumesInUse.
  std::function<void()> in_use_changed;
  std::function<void(const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message)> event;
};

/// A volume's figures, as its driver counts them.
struct VolumeFigures {
  std::string name;  ///< In the pod.
  std::string claim_ns, claim_name;
  eviction::FsUsage usage;
};

/// Thread-safe. The destructor calls off what is under way and waits for it; volumes stay where they are.
class CsiVolumes {
 public:
  /// Takes over what an earlier process left. kUnavailable when this program was built without gRPC.
  static Result<std::unique_ptr<CsiVolumes>> start(const Clock& clock, CsiOptions options);
  virtual ~CsiVolumes() = default;
  virtual plugins::PluginHandler& handler() = 0;
  /// The Node object is there, or is there anew: its CSINode is made. Blocks.
  virtual Result<void> ensure_csi_node() = 0;
  /// Waits until the volume is there, cannot be had now, or `cancel` is true. Safe to repeat; who has it gets it at once.
  virtual Result<agent::PlacedVolume> place(const PodVolume& volume, const std::atomic<bool>& cancel) = 0;
  /// Waits until the pod has none of its volumes any more; an error is worth another try.
  virtual Result<void> release(const std::string& pod, const std::atomic<bool>& cancel) = 0;
  /// All pods that the node has: what others had is given back.
  virtual void settle(const std::set<std::string>& pods) = 0;
  /// As node.status.volumesInUse names them.
  [[nodiscard]] virtual std::vector<std::string> in_use() const = 0;
  /// As last counted, within a minute.
  [[nodiscard]] virtual std::vector<VolumeFigures> figures(const std::string& pod) = 0;
};

}  // namespace berth::node::csi
