// The status that a node reports of itself: a pure function of what was found (kubelet nodestatus/setters.go).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "node/agent/machine.h"
#include "node/eviction/allocatable.h"
#include "node/eviction/manager.h"

namespace berth::node::agent {

struct NodeFacts {
  std::string address, hostname;
  std::uint16_t port = 0;
  eviction::ResourceList capacity, allocatable;
  std::vector<eviction::NodeCondition> pressure;
  /// Why the node is not ready: each is a reason's text; empty: it is ready.
  std::vector<std::string> not_ready;
  MachineIdentity machine;
  std::string runtime_version, kubelet_version;
  std::int64_t swap_bytes = 0;
  /// Images on the node as the status lists them: names and bytes, largest first, at most 50.
  json::Array images;
  std::optional<std::vector<std::string>> volumes_in_use;  ///< Of drivers; nullopt: it has none.
};

/// Since when each condition has had its status.
using ConditionTimes = std::map<std::string, std::pair<std::string, TimePoint>>;

/// The whole status for a strategic merge patch of nodes/status. Updates `times`.
[[nodiscard]] json::Value make_node_status(const NodeFacts& facts, ConditionTimes& times, TimePoint now);

/// The reasons of the events that tell of changed conditions: NodeReady, NodeHasSufficientMemory, …
[[nodiscard]] std::vector<std::string> condition_events(const ConditionTimes& before, const ConditionTimes& after);

/// Labels of a node of this machine: the well-known ones, and `own` over them.
[[nodiscard]] json::Object node_labels(const std::string& name, const std::map<std::string, std::string>& own);

/// status.images from the runtime's ListImages answer (ImageService): names with digests first, the largest 50 images.
[[nodiscard]] json::Array node_images(const json::Value& listed);

/// A runtime's version as the node shows it: "1.6.20" of "v1.6.20~ds1"; a semantic version stays whole.
[[nodiscard]] std::string plain_version(std::string_view version);

}  // namespace berth::node::agent
