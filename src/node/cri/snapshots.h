// containerd's own snapshot service, for what the CRI of older runtimes cannot do: an image's root filesystem without a container.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace berth::node::cri {

/// How a snapshot is mounted: mount(8)'s words.
struct SnapshotMount {
  std::string type, source;
  std::vector<std::string> options;
};

/// Thread-safe; calls block. Keys are the caller's, in the namespace that the CRI uses.
class Snapshots {
 public:
  /// Nothing is connected yet. kUnavailable when this program was built without gRPC.
  static Result<std::unique_ptr<Snapshots>> open(const std::string& socket);
  virtual ~Snapshots() = default;
  /// A read-only view of the snapshot `parent` (an image's chain id), kept until it is removed; one that is there already is shown again.
  virtual Result<std::vector<SnapshotMount>> view(const std::string& snapshotter, const std::string& key, const std::string& parent) = 0;
  /// Gone already is well.
  virtual Result<void> remove(const std::string& snapshotter, const std::string& key) = 0;
};

/// The mounts of a ViewSnapshotResponse or MountsResponse; nullopt: not readable.
[[nodiscard]] std::optional<std::vector<SnapshotMount>> parse_snapshot_mounts(std::string_view response);
/// A message whose fields are these strings, numbered from 1; empty ones are left out.
[[nodiscard]] std::string message_of_strings(const std::vector<std::string>& fields);

}  // namespace berth::node::cri
