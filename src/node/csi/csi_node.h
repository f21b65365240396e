// What a node tells the cluster of its CSI drivers: the CSINode object, labels of topology, the annotation of node ids (kubelet's
// pkg/volume/csi/nodeinfomanager). Pure functions over the documents.
#pragma once
#include <map>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace berth::node::csi {

/// What a driver says of the node (NodeGetInfo).
struct DriverNodeInfo {
  std::string driver, node_id;
  std::int64_t max_volumes = 0;  ///< 0: it does not say.
  std::map<std::string, std::string> topology;
  static DriverNodeInfo of(const std::string& driver, const json::Value& answer);
};

/// The CSINode of a node that has none yet.
[[nodiscard]] json::Value new_csi_node(const json::Value& node);
/// Puts a driver in, or in the place of what was known of it. True: something is another.
bool put_driver(json::Value& csi_node, const DriverNodeInfo& info);
bool remove_driver(json::Value& csi_node, const std::string& driver);

/// A merge patch of the node: labels and node id. The error: the node has another value of a label, which was given by somebody else.
[[nodiscard]] Result<json::Value> node_patch(const json::Value& node, const DriverNodeInfo& info);
/// Takes a driver's node id away; its labels stay, as volumes may be bound to them.
[[nodiscard]] json::Value node_patch_without(const json::Value& node, const std::string& driver);

}  // namespace berth::node::csi
